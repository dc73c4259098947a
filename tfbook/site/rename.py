"""Give the book a public home: `make repository URL=https://github.com/you/book`.

Links of the built pages follow the git remote by themselves. A few files must name the repository in
their text: the first cells of the notebooks, which install the package in Colab; `_config.yml`, for
builds without git; `CITATION.cff`; and the launch links of the README.
"""

import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

import nbformat

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+?(?=\.git\b|/?$)")
LAUNCH = re.compile(r"(<!-- launch -->\n).*?(<!-- /launch -->)", re.S)


def main(root: Path = ROOT) -> None:
    """Rewrite the files for the repository that the command line names."""
    url = as_repository(sys.argv[1] if len(sys.argv) > 1 else "")
    for path in rename(root, url):
        print(path.relative_to(root))


def as_repository(given: str) -> str:
    """The address without ".git" or a slash behind it. Exits with a sentence for anything else."""
    found = REPOSITORY.match(given.strip())
    if found is None or urlsplit(given).query:
        sys.exit(f"URL={given!r} is no GitHub repository; give URL=https://github.com/you/your-book")
    return found[0]


def rename(root: Path, url: str) -> list[Path]:
    """Write the address wherever the old one stands; the files that changed."""
    config = root / "_config.yml"
    found = re.search(r"^  url: (https://github\.com/\S+)(?:  #.*)?$", config.read_text("utf-8"), re.M)
    if found is None:
        sys.exit("_config.yml names no repository.url; put one there: url: https://github.com/OWNER/tfbook")
    new = {config: config.read_text("utf-8").replace(found[0], f"  url: {url}")}
    citation = root / "CITATION.cff"
    lines = [
        line for line in citation.read_text("utf-8").splitlines() if not line.startswith("repository-code:")
    ]
    new[citation] = "\n".join([*lines, f"repository-code: {url}"]) + "\n"
    readme = root / "README.md"
    new[readme] = LAUNCH.sub(rf"\g<1>{launch_links(url)}\g<2>", readme.read_text("utf-8"))
    for path in sorted((root / "chapters").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.source = cell.source.replace(f"git+{found[1]}", f"git+{url}")
        new[path] = nbformat.writes(notebook) + "\n"
    changed = [path for path, text in new.items() if path.read_text("utf-8") != text]
    for path in changed:
        path.write_text(new[path], "utf-8")
    return changed


def launch_links(url: str) -> str:
    """The README's line of links: the pages, Colab and Binder."""
    owner, name = url.removeprefix("https://github.com/").split("/")
    pages = f"https://{owner.lower()}.github.io/" + (
        "" if name == f"{owner.lower()}.github.io" else f"{name}/"
    )
    colab = f"https://colab.research.google.com/github/{owner}/{name}/blob/main/chapters/2-5-1-multi-head-attention.ipynb"
    binder = f"https://mybinder.org/v2/gh/{owner}/{name}/main?urlpath=lab/tree/chapters/index.md"
    return f"[Read it]({pages}) · [Run the first chapter in Colab]({colab}) · [Run all in Binder]({binder})\n"


if __name__ == "__main__":
    main()
