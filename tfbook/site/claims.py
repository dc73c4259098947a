"""Links to the place where a statement is proved, run or cited: `{claim}`C-2.5.1-08``.

The chapters mark each statement that the book has to teach with an empty span whose id starts
with "C-". A link names the section and the heading under which the span stands.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx.util.docutils import SphinxRole

_MARK = re.compile(r'<span id="(C-[\w.-]+)">')


@dataclass(frozen=True)
class Place:
    """Where a statement stands: the page, and the headings above it."""

    page: str
    title: str
    heading: str

    @property
    def label(self) -> str:
        """The section's number, or the page's name, and the heading."""
        number = re.match(r"[\d.]+", self.title)
        name = number[0] if number else "opening" if self.page == "index" else self.title
        return f"{name}, {self.heading}"


@cache
def places(folder: Path) -> dict[str, Place]:
    """Every marked statement of the pages in a folder; the first place where one is marked twice."""
    found: dict[str, Place] = {}
    for path in sorted(folder.glob("*.md")) + sorted(folder.glob("*.ipynb")):
        title = heading = ""
        for line in _markdown(path).splitlines():
            if line.startswith("# "):
                title = line[2:]
            elif line.startswith("#"):
                heading = line.lstrip("# ")
            for id in _MARK.findall(line):
                found.setdefault(id, Place(path.stem, title, heading))
    return found


def _markdown(path: Path) -> str:
    """The Markdown of a page, without code cells."""
    if path.suffix == ".md":
        return re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


class ClaimRole(SphinxRole):
    """A link to a statement of another page of the same folder."""

    inliner: Inliner

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The link, or an error that names the page for a statement that stands nowhere."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        place = places(folder).get(self.text)
        if place is None:
            error = self.inliner.reporter.error(f"no page has the statement {self.text}", line=self.lineno)
            return [], [error]
        address = f"{place.page}.html#{self.text}"
        return [nodes.reference(self.text, place.label, refuri=address, internal=True)], []
