"""The book on paper: `make pdf` joins the built pages into one, and Chromium prints it.

Forms become exercises on paper: the question where it stands, hints and answers in a part at the end.
Links between pages become links within the book; those to pages that are not printed become plain words.
"""

import re
import shutil
import sys
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from tfbook import __version__
from tfbook.site.serve import serving

ROOT = Path(__file__).resolve().parents[2]
STYLE = Path(__file__).parent / "static" / "print.css"
# Not on paper: what only lives on a screen, and what repeats the chapters.
LEFT_OUT = ("exercises", "calculators", "api", "figures", "for-teachers", "genindex")
SCREEN_ONLY = (
    *(".headerlink", ".tfb-note", ".tfb-buttons", ".tfb-result", ".tfb-help", "[data-tfb-progress]"),
    *("input", "script", ".toctree-wrapper", ".tag_hide-input > details", ".tfb-test", "select"),
    "details.hide > summary",
)


def main() -> None:
    """Print the built book to the file named, or to _build/the-transformer-executable.pdf."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "_build" / "the-transformer-executable.pdf"
    print_to(ROOT / "_build" / "html", out)
    print(out)


def print_to(html: Path, out: Path) -> None:
    """Join, open, wait for the mathematics, print."""
    from playwright.sync_api import sync_playwright  # only who prints needs a browser

    joined = join(html)  # never a file: it would stand among the book's pages
    with serving(html) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.route("**/paper.html", lambda route: route.fulfill(body=joined, content_type="text/html"))
        page.goto(f"{address}paper.html", wait_until="load", timeout=120_000)
        page.evaluate("MathJax.startup.promise")
        page.pdf(
            path=out,
            prefer_css_page_size=True,
            print_background=True,
            outline=True,
            tagged=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template='<div style="width:100%;text-align:center;font:9px serif">'
            '<span class="pageNumber"></span></div>',
        )
        browser.close()


def join(html: Path) -> str:
    """All printed pages as one, with a cover, contents, and the answers at the end."""
    pages = {name: _article(html, name) for name in printed_pages()}
    answers: list[str] = []
    contents: list[str] = []
    for name, article in pages.items():
        answers += _on_paper(article, name)
        _rename(article, name, pages)
        title = article.find("h1")
        assert isinstance(title, Tag)
        contents.append(f'<li><a href="#page--{name}">{title.get_text()}</a></li>')
    sections = (
        f'<section class="page" id="page--{name}">{article}</section>' for name, article in pages.items()
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>The Transformer, executable</title>
<link rel="stylesheet" href="_static/pygments.css"><style>{STYLE.read_text("utf-8")}</style>
<script>MathJax = {{
  tex: {{inlineMath: [["\\\\(", "\\\\)"], ["$", "$"]], tags: "ams"}},
  options: {{ignoreHtmlClass: "page", processHtmlClass: "mathjax_process|math|output_area|tfb-form"}}
}}</script>
<script defer src="_static/vendor/mathjax/tex-mml-chtml.js"></script></head><body>
<header><p class="title">The Transformer, executable</p>
<p>A textbook in which every number is computed and every claim is run</p>
<p class="edition">the tfbook contributors<br>edition {__version__}</p></header>
<nav><h1>Contents</h1><ol>{"".join(contents)}<li><a href="#answers">Hints and answers</a></li></ol></nav>
{"".join(sections)}
<section class="page" id="answers"><h1>Hints and answers</h1>{"".join(answers)}</section>
</body></html>"""


def printed_pages() -> list[str]:
    """The names of the pages on paper, in the order of the book."""
    files = re.findall(r"(?:root|file): (\S+)", (ROOT / "_toc.yml").read_text("utf-8"))
    return [name for name in (Path(file).name for file in files) if name not in LEFT_OUT]


def _article(html: Path, name: str) -> Tag:
    path = html / "chapters" / f"{name}.html"
    if not path.exists():
        sys.exit(f"tfbook: {path} is missing; run `make book`")
    article = BeautifulSoup(path.read_text("utf-8"), "html.parser").select_one("article.bd-article")
    assert isinstance(article, Tag)
    return article


def _on_paper(article: Tag, name: str) -> list[str]:
    """Take out what paper cannot do; return what is to stand among the answers."""
    answers = []
    for form in article.select("form.tfb-form"):
        form.name = "div"
        title = form.select_one(".tfb-title")
        folds = form.select_one(".tfb-folds")
        if form["class"][-1] == "tfb-exercise" and isinstance(title, Tag) and isinstance(folds, Tag):
            told = "".join(
                f"<p><b>{fold.summary.get_text()}.</b></p>{fold.div}"
                for fold in folds.select("details")
                if fold.summary and fold.div
            )
            head = f'<h3><a href="#{name}--{form["id"]}">{title.get_text()}</a></h3>'
            answers.append(f'<div class="tfb-form" id="answer--{form["id"]}">{head}{told}</div>')
            folds.decompose()
    for rule in SCREEN_ONLY:
        for found in article.select(rule):
            found.decompose()
    for fold in article.select("details"):
        fold.name = "div"
    return answers


def _rename(article: Tag, name: str, pages: dict[str, Tag]) -> None:
    """Ids become the page's own, links lead within the book, pictures are found from its root."""
    for tag in article.select("[id]"):
        tag["id"] = f"{name}--{tag['id']}"
    for image in article.select("img[src]"):
        image["src"] = str(image["src"]).removeprefix("../")
    for link in article.select("a[href]"):
        target, _, place = str(link["href"]).partition("#")
        page = target.removesuffix(".html") if target else name
        if "://" in target:
            continue
        if page in pages:
            link["href"] = f"#{page}--{place}" if place else f"#page--{page}"
        else:
            del link["href"]


if __name__ == "__main__":
    main()
