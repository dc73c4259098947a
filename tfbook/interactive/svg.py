"""Small charts as SVG text, drawn by Python where there is no matplotlib: in the reader's browser."""

from collections.abc import Sequence
from html import escape
from itertools import cycle

# Okabe and Ito's palette: told apart by colour-blind readers, and by lightness in print.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")


def stacked_bar(parts: Sequence[tuple[str, int]], title: str) -> str:
    """One bar cut in proportion, with a legend of names, numbers and shares below it.

    Parts of zero are left out. The legend is text, so that it stays readable on a phone.
    """
    parts = [(name, value) for name, value in parts if value]
    total = sum(value for _, value in parts) or 1
    bars, legend, x = [], [], 0.0
    for (name, value), colour in zip(parts, cycle(PALETTE), strict=False):
        span = 100 * value / total
        bars.append(f'<rect x="{x:.3f}" width="{span:.3f}" height="8" fill="{colour}"/>')
        square = f'<rect width="12" height="12" fill="{colour}"/>'
        key = f'<svg width="12" height="12" aria-hidden="true">{square}</svg>'
        legend.append(f"<li>{key} {escape(name)}: {value:,} ({value / total:.1%})</li>")
        x += span
    return (
        f'<figure class="tfb-chart"><svg role="img" aria-label="{escape(title)}, as one bar" '
        'viewBox="0 0 100 8" preserveAspectRatio="none" width="100%" height="24" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(bars)}</svg><ul>{"".join(legend)}</ul></figure>'
    )
