"""Small charts as SVG text, drawn by Python where there is no matplotlib: in the reader's browser."""

from collections.abc import Sequence
from html import escape

# Okabe and Ito's palette: told apart by colour-blind readers, and by lightness in print.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")


def stacked_bar(parts: Sequence[tuple[str, int]], title: str, width: int = 640) -> str:
    """One bar cut in proportion, with a legend of names, numbers and shares below it.

    Parts of zero are left out. The text alternative lists what the picture shows.
    """
    parts = [(name, value) for name, value in parts if value]
    total = sum(value for _, value in parts) or 1
    told = ", ".join(f"{name} {value / total:.1%}" for name, value in parts)
    columns, row_height = 2, 20
    rows = -(-len(parts) // columns)
    height = 34 + rows * row_height
    marks, x = [], 0.0
    for index, (name, value) in enumerate(parts):
        colour, span = PALETTE[index % len(PALETTE)], width * value / total
        marks.append(f'<rect x="{x:.1f}" y="0" width="{max(span, 1):.1f}" height="24" fill="{colour}"/>')
        left, top = (index % columns) * width // columns, 34 + (index // columns) * row_height
        marks.append(f'<rect x="{left}" y="{top}" width="12" height="12" fill="{colour}"/>')
        text = f"{name}: {value:,} ({value / total:.1%})"
        marks.append(f'<text x="{left + 18}" y="{top + 11}" fill="currentColor">{escape(text)}</text>')
        x += span
    return (
        f'<svg class="tfb-chart" role="img" viewBox="0 0 {width} {height}" width="100%" font-size="13" '
        f'font-family="sans-serif" xmlns="http://www.w3.org/2000/svg"><title>{escape(f"{title}: {told}")}</title>'
        f"{''.join(marks)}</svg>"
    )
