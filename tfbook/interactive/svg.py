"""Small charts as SVG text, drawn by Python where there is no matplotlib: in the reader's browser.

Text in a chart takes the page's colour, so that it is readable in both themes; what a chart
shows is also said in words or in a table beside it.
"""

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import cycle

# Okabe and Ito's palette: told apart by colour-blind readers, and by lightness in print.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
# A drawing with axes: its width, the margins of its plot, and the plot's height, in its own units.
_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT = 400, 62, 14, 10, 190

Points = Sequence[tuple[int, float]]
Told = Callable[[int], str]
_PLAIN: Told = "{:,}".format


def stacked_bar(parts: Sequence[tuple[str, int]], title: str, told: Told = _PLAIN) -> str:
    """One bar cut in proportion, with a legend of names, numbers and shares below it.

    Parts of zero are left out. The legend is text, so that it stays readable on a phone.
    """
    parts = [(name, value) for name, value in parts if value]
    total = sum(value for _, value in parts) or 1
    bars, legend, x = [], [], 0.0
    for (name, value), colour in zip(parts, cycle(PALETTE), strict=False):
        span = 100 * value / total
        bars.append(f'<rect x="{x:.3f}" width="{span:.3f}" height="8" fill="{colour}"/>')
        legend.append(_key(colour, f"{name}: {told(value)} ({value / total:.1%})"))
        x += span
    drawn = (
        f'<svg role="img" aria-label="{escape(title)}, as one bar" viewBox="0 0 100 8" '
        f'preserveAspectRatio="none" width="100%" height="24">{"".join(bars)}</svg>'
    )
    return _figure(title, drawn, legend)


def bars(rows: Sequence[tuple[str, int]], title: str, told: Told = _PLAIN) -> str:
    """One bar a row, on one scale from zero, each under its name and value."""
    largest = max((value for _, value in rows), default=0) or 1
    drawn = []
    for i, (name, value) in enumerate(rows):
        y, span = 34 * i, 396 * value / largest
        drawn.append(f'<text x="0" y="{y + 12}">{escape(name)}: {escape(told(value))}</text>')
        drawn.append(f'<rect x="0" y="{y + 17}" width="{max(span, 1):.2f}" height="11" fill="{PALETTE[0]}"/>')
    named = "; ".join(f"{name} {told(value)}" for name, value in rows)
    return _figure(title, _drawing(f"{title}: {named}", 34 * len(rows), drawn), [])


def curves(
    lines: Sequence[tuple[str, Points]],
    title: str,
    axes: tuple[str, str],
    told: tuple[Told, Told],
    mark: tuple[int, float] | None = None,
) -> str:
    """Lines over two logarithmic axes, with a legend below; `told` writes the ticks of each axis.

    Values must be positive. `mark` is a point to ring: where the reader stands.
    """
    xs = [x for _, points in lines for x, _ in points]
    ys = [y for _, points in lines for _, y in points]
    across, up = _scale(min(xs), max(xs), _WIDTH - _LEFT - _RIGHT), _scale(min(ys), max(ys), _HEIGHT)
    bottom = _TOP + _HEIGHT

    def place(x: float, y: float) -> str:
        return f"{_LEFT + across(x):.1f},{bottom - up(y):.1f}"

    drawn = [f'<path d="M{_LEFT} {_TOP}V{bottom}H{_WIDTH - _RIGHT}" fill="none" stroke="currentColor"/>']
    for tick in _ticks(min(xs), max(xs), 6):
        x = _LEFT + across(tick)
        drawn.append(f'<path d="M{x:.1f} {bottom}v4" stroke="currentColor"/>')
        drawn.append(
            f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{escape(told[0](tick))}</text>'
        )
    for tick in _ticks(math.ceil(min(ys)), math.floor(max(ys)), 6):
        y = bottom - up(tick)
        drawn.append(f'<path d="M{_LEFT - 4} {y:.1f}h4" stroke="currentColor"/>')
        drawn.append(
            f'<text x="{_LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{escape(told[1](tick))}</text>'
        )
    legend = []
    for (name, points), colour, dash in zip(lines, cycle(PALETTE), cycle(_DASHES), strict=False):
        path = " ".join(place(x, y) for x, y in points)
        style = f'fill="none" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash}"'
        drawn.append(f'<polyline points="{path}" {style}/>')
        legend.append(_key(colour, name, dash))
    if mark is not None:
        cx, cy = place(*mark).split(",")
        drawn.append(
            f'<circle cx="{cx}" cy="{cy}" r="6" fill="none" stroke="currentColor" stroke-width="2"/>'
        )
    drawn.append(_text(_WIDTH - _RIGHT, bottom + 34, "end", axes[0]))
    names = ", ".join(name for name, _ in lines)
    label = f"{title}. Across: {axes[0]}; up: {axes[1]}; lines: {names}"
    return _figure(f"{title} ({axes[1]})", _drawing(label, bottom + 40, drawn), legend)


def _scale(low: float, high: float, length: int) -> Callable[[float], float]:
    """A logarithmic scale from 0 to `length`."""
    span = math.log(high / low) or 1.0
    return lambda value: length * math.log(value / low) / span


def _ticks(low: int, high: int, most: int) -> list[int]:
    """At most so many powers of two between two numbers, evenly spaced."""
    first, last = max(low - 1, 0).bit_length(), high.bit_length() - 1
    step = max(1, -(-(last - first + 1) // most))
    return [2**power for power in range(first, last + 1, step)]


def _drawing(label: str, height: float, parts: list[str]) -> str:
    return (
        f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {_WIDTH} {height}" width="100%" '
        f'class="tfb-drawing">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, anchor: str, told: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(told)}</text>'


def _key(colour: str, told: str, dash: str | None = None) -> str:
    """One entry of a legend: a square for an area, a dash for a line."""
    sample = f'<rect width="12" height="12" fill="{colour}"/>'
    if dash is not None:
        sample = f'<path d="M0 6h24" stroke="{colour}" stroke-width="3" stroke-dasharray="{dash}"/>'
    width = 12 if dash is None else 24
    return f'<li><svg width="{width}" height="12" aria-hidden="true">{sample}</svg> {escape(told)}</li>'


def _figure(title: str, drawn: str, legend: list[str]) -> str:
    keys = f"<ul>{''.join(legend)}</ul>" if legend else ""
    return f'<figure class="tfb-chart"><figcaption>{escape(title)}</figcaption>{drawn}{keys}</figure>'
