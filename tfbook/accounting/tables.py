"""One table, printed three ways: for a terminal, as Markdown, and as HTML."""

from collections.abc import Sequence
from html import escape

Row = Sequence[str]


def text_table(heads: Row, rows: Sequence[Row], numeric: Sequence[int] = ()) -> str:
    """Columns aligned by spaces, those of `numeric` to the right. No heads, no line of heads."""
    lines = [heads, *rows] if any(heads) else list(rows)
    widths = [max((len(line[i]) for line in lines), default=0) for i in range(len(heads))]
    told = [
        "  ".join(
            cell.rjust(w) if i in numeric else cell.ljust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    return "\n".join(line.rstrip() for line in told)


def markdown_table(heads: Row, rows: Sequence[Row], numeric: Sequence[int] = ()) -> str:
    """A table in GitHub's Markdown. Bars, underscores and stars in cells are escaped."""

    def line(cells: Row) -> str:
        return f"| {' | '.join(cells)} |"

    def safe(cell: str) -> str:
        return "".join(f"\\{c}" if c in "|_*" else c for c in cell)

    rule = line(["--:" if i in numeric else ":--" for i in range(len(heads))])
    return "\n".join([line(heads), rule, *(line([safe(cell) for cell in row]) for row in rows)])


def html_table(caption: str, heads: Row, rows: Sequence[Row], numeric: Sequence[int] = ()) -> str:
    """A table that scrolls sideways inside itself, can be reached by keyboard, and has a caption."""

    def cells(row: Row, tag: str) -> str:
        return "".join(
            f"<{tag}{' class=tfb-number' * (i in numeric)}>{escape(cell)}</{tag}>"
            for i, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return (
        f'<div class="tfb-scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{cells(heads, 'th')}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )
