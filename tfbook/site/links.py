"""Every link of the built book: local ones must lead somewhere; external ones are listed, and asked.

`make links` prints the external ones with what their hosts answer.
"""

import re
import sys
import urllib.error
import urllib.request
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from tqdm.auto import tqdm

HTML = Path(__file__).resolve().parents[2] / "_build" / "html"
_LINK = re.compile(r'<(?:a|link|img|script|iframe)\b[^>]*?\s(?:href|src)="([^"]*)"')
_BASE = "http://book.invalid/"


def links(html: Path) -> dict[str, set[str]]:
    """Where each link of all pages leads, resolved, and the pages on which it stands."""
    found: dict[str, set[str]] = {}
    for path in sorted(html.rglob("*.html")):
        if "_static" in path.parts:
            continue  # the theme's own templates
        name = path.relative_to(html).as_posix()
        for target in _LINK.findall(path.read_text("utf-8")):
            if not target.startswith(("data:", "mailto:", "javascript:")):
                found.setdefault(urljoin(_BASE + name, unescape(target)), set()).add(name)
    return found


def dead_local_links(html: Path) -> list[str]:
    """Links within the book that lead to no file, or to no such place in a page."""
    faults = []
    for link, pages in links(html).items():
        if not link.startswith(_BASE):
            continue
        parts = urlsplit(link)
        target = html / unquote(parts.path).lstrip("/")
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            told = "no such file"
        elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in _ids(target):
            told = "no such place"
        else:
            continue
        faults.append(f"{link.removeprefix(_BASE)}: {told}; linked from {', '.join(sorted(pages))}")
    return faults


def external_links(html: Path) -> list[str]:
    """Links to other hosts, each once."""
    return sorted(link for link in links(html) if not link.startswith(_BASE))


@cache
def _ids(path: Path) -> set[str]:
    return {unescape(id) for id in re.findall(r'\s(?:id|name)="([^"]+)"', path.read_text("utf-8"))}


def answer_of(link: str) -> str:
    """What the host says: a status, or why there is none."""
    request = urllib.request.Request(link, method="HEAD", headers={"User-Agent": "Mozilla/5.0 (tfbook)"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(answer.status)
    except urllib.error.HTTPError as error:
        return str(error.code)
    except (urllib.error.URLError, TimeoutError) as error:
        return f"no answer ({getattr(error, 'reason', error)})"


def main() -> None:
    """List everything; exit 1 for a dead local link, or an external one that is gone (404, 410)."""
    faults = dead_local_links(HTML)
    answers = {link: answer_of(link) for link in tqdm(external_links(HTML), unit="link")}
    for link, answer in answers.items():
        print(f"{answer:<14} {link}")
    gone = [link for link, answer in answers.items() if answer in ("404", "410")]
    print(*faults, sep="\n")
    if faults or gone:
        sys.exit(f"tfbook: {len(faults)} local and {len(gone)} external links are dead")


if __name__ == "__main__":
    main()
