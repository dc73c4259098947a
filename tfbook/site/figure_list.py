"""`:::{figure-list}`: every figure of the book in words, with its caption and a link to it."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class FigureListDirective(SphinxDirective):
    """Leaves a mark, which is filled when all pages have been read."""

    def run(self) -> list[nodes.Node]:
        """A container that `fill_figure_lists` finds."""
        return [nodes.container(classes=["tfb-figure-list"])]


def fill_figure_lists(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """List the figures of all pages, in the order of the book."""
    for mark in list(doctree.findall(nodes.container)):
        if "tfb-figure-list" in mark["classes"]:
            mark.extend(_listed(app, page))


def _listed(app: Sphinx, page: str) -> list[nodes.Node]:
    out: list[nodes.Node] = []
    for other in _pages(app):
        rows = [
            _entry(app, page, other, figure)
            for figure in app.env.get_doctree(other).findall(nodes.figure)
            if figure["ids"]
        ]
        if rows:
            out += [nodes.rubric("", app.env.titles[other].astext()), nodes.bullet_list("", *rows)]
    return out


def _entry(app: Sphinx, page: str, other: str, figure: nodes.figure) -> nodes.list_item:
    """The figure's number as a link, its caption, and what it shows."""
    id = figure["ids"][0]
    numbers: dict[str, Any] = app.env.toc_fignumbers.get(other, {}).get("figure", {})
    number = ".".join(map(str, numbers.get(id, ())))
    address = f"{app.builder.get_relative_uri(page, other)}#{id}"
    caption = next(iter(figure.findall(nodes.caption)), nodes.caption())
    words = next((image["alt"] for image in figure.findall(nodes.image) if image.get("alt")), "")
    head = nodes.paragraph()
    head += nodes.reference("", f"Figure {number}", refuri=address, internal=True)
    head += [nodes.Text(" "), *(child.deepcopy() for child in caption.children)]
    return nodes.list_item("", head, nodes.paragraph("", words))


def _pages(app: Sphinx) -> list[str]:
    """All pages in reading order."""
    order = [app.config.root_doc]
    for name in order:
        order += [child for child in app.env.toctree_includes.get(name, []) if child not in order]
    return order
