"""The glossary's terms, where they are defined: a link to the entry, and an entry of the index.

Chapters set a term in bold where they define it. At the first such place of each page the words
become a link to the glossary, and the index gets an entry that leads there.
"""

import re
from functools import cache
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

GLOSSARY = "glossary.md"


@cache
def glossary_terms(path: Path) -> dict[str, str]:
    """Each term of the glossary page, by its name in lower case."""
    block = re.search(r"^:::\{glossary\}$(.*?)^:::$", path.read_text("utf-8"), re.M | re.S)
    lines = block[1].splitlines() if block else []
    return {line.lower(): line for line in lines if line and not line.startswith((" ", ":"))}


class LinkTerms(SphinxTransform):
    """Finds the bold terms of a page."""

    default_priority = 600  # when the page is complete, before references are resolved

    def apply(self) -> None:
        """Wrap the first bold occurrence of each term."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        if not (folder / GLOSSARY).exists() or self.env.docname.endswith("glossary"):
            return
        terms, seen = glossary_terms(folder / GLOSSARY), set()
        for strong in list(self.document.findall(nodes.strong)):
            term = _term(terms, strong.astext())
            if term is None or term in seen or _inside_link(strong):
                continue
            seen.add(term)
            id = f"term-{nodes.make_id(term)}"
            link = addnodes.pending_xref(
                "",
                refdomain="std",
                reftype="term",
                reftarget=term,
                refexplicit=True,
                refwarn=True,
                refdoc=self.env.docname,
            )
            entry = addnodes.index(entries=[("single", term, id, "", None)])
            strong.replace_self([entry, nodes.target("", "", ids=[id]), link])
            link += strong


def _term(terms: dict[str, str], text: str) -> str | None:
    """The term that some bold words name, in the singular or plural."""
    words = text.lower().strip(" .,:").removesuffix("'s").removesuffix("\u2019s")
    return terms.get(words) or terms.get(words.removesuffix("s"))


def _inside_link(node: nodes.Node) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, nodes.reference | addnodes.pending_xref | nodes.title):
            return True
        parent = parent.parent
    return False
