"""Markdown with dollar mathematics to HTML, the same in a kernel and in the reader's browser."""

from functools import cache
from html import escape

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin


def to_html(text: str) -> str:
    """HTML of our own Markdown texts. HTML inside them is escaped, never passed on."""
    html: str = _markdown().render(text)
    return html


def to_html_inline(text: str) -> str:
    """The same for one line, without a paragraph around it."""
    html: str = _markdown().renderInline(text)
    return html


def typeset(content: str, display: bool) -> str:
    r"""TeX as MathJax finds it, in the pages and in Jupyter: `\(...\)` or `\[...\]`."""
    left, right = (r"\[", r"\]") if display else (r"\(", r"\)")
    return f'<span class="math notranslate nohighlight">{left}{escape(content)}{right}</span>'


@cache
def _markdown() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    return parser.use(
        dollarmath_plugin, renderer=lambda content, options: typeset(content, options["display_mode"])
    )
