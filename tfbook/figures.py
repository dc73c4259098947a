"""The book's figures: one function each, from plain data to a matplotlib figure.

House style: text of 9 points or more on figures narrow enough for a phone, a palette that
colour-blind readers can tell apart and that differs in lightness, labels at the lines rather
than legends, a white card that also sits on a dark page.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from matplotlib.ticker import LogLocator, NullLocator

from tfbook.config import TransformerConfig

BLUE, ORANGE, GREEN, PINK, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#666666"
Points = Sequence[Sequence[float]]
WEIGHTS = "Blues"  # the colour map of attention weights: white is 0, so prints in grey keep their order

_STYLE: Any = {
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "tfbook",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw inside this block, and the reader's own matplotlib settings stay as they are."""
    with mpl.rc_context(_STYLE):
        yield


def heads_on_a_sentence(
    words: Sequence[str], names: Sequence[str], weights: Sequence[Sequence[Sequence[float]]]
) -> Figure:
    """A heat map for each head (heads, T, T): rows ask, columns are read."""
    with house_style():
        figure, panels = plt.subplots(len(names), 1, figsize=(4.8, 3.0 * len(names)), sharex=True)
        for axes, name, pattern in zip(np.atleast_1d(panels), names, weights, strict=True):
            _heat_map(axes, np.asarray(pattern), words, words)
            axes.set_title(f"head: {name}", loc="left")
            axes.set_ylabel("query")
        axes.set_xlabel("key")
        axes.tick_params(axis="x", labelrotation=60)
    return _done(figure)


def heat_map(
    values: Points,
    rows: Sequence[str],
    columns: Sequence[str],
    xlabel: str,
    ylabel: str,
    numbers: bool = False,
) -> Figure:
    """Values between 0 and 1 as one heat map, paler and with each number written in with `numbers`."""
    with house_style():
        height = 0.42 if len(rows) < 12 else 0.28  # inches a row
        figure, axes = plt.subplots(figsize=(5.2, height * len(rows) + 1.2))
        shown = np.asarray(values)
        _heat_map(axes, 0.5 * shown if numbers else shown, rows, columns)
        if numbers:
            _write_numbers(axes, shown)
        if sum(map(len, columns)) > 30:
            axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right", rotation_mode="anchor")
        axes.set(xlabel=xlabel, ylabel=ylabel)
    return _done(figure)


def schedules(charts: Mapping[str, Any]) -> Figure:
    """Which place works when, one chart below the other: a row for each place, dark where it works.

    Each chart has `rows` of (first step, steps), and `steps` in all.
    """
    with house_style():
        figure, panels = plt.subplots(len(charts), 1, figsize=(5.4, 2.3 * len(charts)), sharex=True)
        for axes, (name, chart) in zip(np.atleast_1d(panels), charts.items(), strict=True):
            for row, spans in enumerate(chart.rows):
                axes.broken_barh([(0, chart.steps)], (row - 0.4, 0.8), color="#d9d9d9")
                for number, span in enumerate(spans):
                    axes.broken_barh([span], (row - 0.4, 0.8), color=BLUE, alpha=0.95 - 0.3 * (number % 2))
            axes.set_title(name, loc="left")
            axes.set(ylabel="place", yticks=range(len(chart.rows)))
            axes.set_yticklabels([str(row + 1) for row in range(len(chart.rows))])
            axes.invert_yaxis()
        axes.set_xlabel("step")
    return _done(figure)


def stacked_shares(bars: Mapping[str, Mapping[str, float]]) -> Figure:
    """Shares of a whole that sum to 1, one bar for each name, its parts in colours named above the first."""
    colours = (ORANGE, BLUE, GREEN, GREY)
    with house_style():
        figure, axes = plt.subplots(figsize=(5.4, 0.52 * len(bars) + 1.2))
        for row, (name, parts) in enumerate(bars.items()):
            left = 0.0
            for share, colour in zip(parts.values(), colours, strict=True):
                axes.barh(row, share, left=left, color=colour, height=0.55, alpha=0.75, ec="white")
                if share > 0.12:
                    axes.text(left + share / 2, row, f"{share:.0%}", ha="center", va="center", color="black")
                left += share
            axes.text(0, row - 0.32, name, va="bottom", fontsize=9)
        marks = [Rectangle((0, 0), 1, 1, color=colour, alpha=0.75) for colour in colours]
        names = list(next(iter(bars.values())))
        axes.legend(marks, names, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, fontsize=9)
        axes.set(xlim=(0, 1), yticks=[], xlabel="share of all parameters")
        axes.set_ylim(len(bars) - 0.5, -0.75)
        axes.spines["left"].set_visible(False)
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    return _done(figure)


def masks(panels: Mapping[str, Points], rows: str, columns: Mapping[str, str]) -> Figure:
    """Masks by name, two in a row: blue where a query (row) may read a key (column)."""
    lines = (len(panels) + 1) // 2
    with house_style():
        figure, grid = plt.subplots(lines, 2, figsize=(5.2, 2.7 * lines), squeeze=False)
        for axes, (name, mask) in zip(grid.flat, panels.items(), strict=True):
            shown = np.asarray(mask, dtype=float)
            numbers = [[str(i + 1) for i in range(size)] for size in shown.shape]
            _heat_map(axes, 0.7 * shown, *numbers)
            axes.set_title(name, loc="left")
            axes.set_aspect("equal")
            axes.set(xlabel=columns.get(name, "key"), ylabel=rows)
    return _done(figure)


def accuracy_by_heads(
    tasks: Mapping[str, Mapping[int, Sequence[float]]], chance: Mapping[str, float]
) -> Figure:
    """Accuracy against H at equal parameters: a line through the means, a dot for each seed."""
    with house_style():
        figure, axes = plt.subplots(figsize=(5.2, 3.6))
        for (task, by_heads), colour, marker in zip(tasks.items(), (BLUE, ORANGE), "os", strict=False):
            heads = sorted(by_heads)
            axes.plot(heads, [mean(by_heads[h]) for h in heads], color=colour, lw=2)
            for h in heads:
                axes.plot([h] * len(by_heads[h]), by_heads[h], marker, color=colour, ms=4, alpha=0.6)
            axes.axhline(chance[task], color=colour, lw=1, ls=":")
            best = max(heads, key=lambda h: mean(by_heads[h]))
            axes.annotate(
                task,
                (best, mean(by_heads[best])),
                (0, 8),
                textcoords="offset points",
                ha="left" if best == heads[0] else "center",
                color=colour,
                weight="bold",
            )
        axes.set_xscale("log", base=2)
        axes.set_xticks(heads, [str(h) for h in heads])
        axes.set(xlabel="heads H, at d = 64 (head width 64 / H)", ylabel="accuracy", ylim=(0, 1.12))
        axes.text(
            heads[-1],
            max(chance.values()) - 0.02,
            "dotted: chance",
            ha="right",
            va="top",
            fontsize=9,
            color=GREY,
        )
    return _done(figure)


def attention_by_offset(weights: Sequence[Sequence[float]], look_back: int) -> Figure:
    """Mean weight (heads, offsets) that each head of a trained layer gives to the token so far back."""
    shown = np.asarray(weights)[:, : look_back + 2]
    with house_style():
        figure, axes = plt.subplots(figsize=(5.0, 0.34 * len(shown) + 1.1))
        _heat_map(
            axes,
            shown,
            [f"head {h}" for h in range(1, len(shown) + 1)],
            [str(k) for k in range(shown.shape[1])],
        )
        axes.set_xlabel("tokens back from the query (0 is the query itself)")
    return _done(figure)


def activation_curves(xs: Sequence[float], curves: Mapping[str, Sequence[float]]) -> Figure:
    """Three nonlinearities over one number, each named in the colour of its line."""
    with house_style():
        figure, axes = plt.subplots(figsize=(4.8, 3.2))
        axes.axhline(0, color="#dddddd", lw=1, zorder=0)
        axes.axvline(0, color="#dddddd", lw=1, zorder=0)
        places = (-2.9, -1.0, -1.9)  # where a name stands, clear of the other lines
        drawn = zip(curves.items(), (BLUE, ORANGE, GREEN), ("-", "--", ":"), places, strict=True)
        for level, ((name, ys), colour, dash, place) in enumerate(drawn):
            axes.plot(xs, ys, dash, color=colour, lw=2.2)
            axes.text(place, 0.55 + 0.45 * level, name, color=colour, weight="bold")
        axes.set(xlabel="input of the nonlinearity", ylabel="output", ylim=(-0.6, 3))
    return _done(figure)


def outputs_and_hull(planes: Mapping[str, tuple[Points, Points]]) -> Figure:
    """Outputs (dots) and values (squares, with their convex hull in grey), one plane below the other."""
    with house_style():
        figure, panels = plt.subplots(len(planes), 1, figsize=(4.6, 3.2 * len(planes)), squeeze=False)
        drawn = zip(panels[:, 0], planes.items(), (BLUE, ORANGE), strict=True)
        for axes, (title, (outputs, values)), colour in drawn:
            corners = np.asarray(values)
            axes.fill(*corners[_around(corners)].T, color="#dddddd", zorder=0)
            axes.plot(*np.asarray(outputs).T, ".", color=colour, ms=5, alpha=0.7)
            axes.plot(*corners.T, "s", color="black", ms=6)
            axes.set(title=title, xlabel="first coordinate", ylabel="second coordinate")
            axes.set_aspect("equal", adjustable="datalim")
    return _done(figure)


def _around(points: "np.ndarray") -> list[int]:
    """The corners of the convex hull of points in the plane, in order (Andrew's monotone chain)."""
    order = np.lexsort(points.T[::-1])

    def chain(indexes: Sequence[int]) -> list[int]:
        kept: list[int] = []
        for i in indexes:
            while len(kept) > 1 and _turn(points[kept[-2]], points[kept[-1]], points[i]) <= 0:
                kept.pop()
            kept.append(int(i))
        return kept[:-1]

    return chain(order.tolist()) + chain(order[::-1].tolist())


def _turn(a: "np.ndarray", b: "np.ndarray", c: "np.ndarray") -> float:
    """Positive where the way from a over b to c turns left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def accuracy_by_stack(results: Mapping[str, Sequence[float]], marks: Mapping[str, float]) -> Figure:
    """One row for each kind of stack, a dot for each seed; named levels are dotted lines."""
    lowest = min(*marks.values(), *(min(values) for values in results.values()))
    with house_style():
        figure, axes = plt.subplots(figsize=(5.4, 0.75 * len(results) + 1.2))
        for row, (name, values) in enumerate(results.items()):
            colour = BLUE if "feed-forward" in name else ORANGE
            axes.plot(values, [row] * len(values), "o", color=colour, ms=6, alpha=0.6)
            axes.text(lowest + 0.01, row - 0.24, name, va="bottom", bbox={"color": "white", "pad": 1})
        for name, level in marks.items():
            axes.axvline(level, color=GREY, ls=":", lw=1, zorder=0)
            axes.text(level, -0.95, name, color=GREY, ha="center", va="bottom")
        axes.set(xlabel="accuracy", xlim=(lowest - 0.04, 1.02), yticks=[])
        axes.set_ylim(len(results) - 0.5, -0.9)
        axes.spines["left"].set_visible(False)
    return _done(figure)


# What a sublayer's branch passes through, from the bottom up, by the placement of the norm.
PLACEMENTS = {
    "post": ("Post-LN", ("sublayer",)),
    "pre": ("Pre-LN", ("norm", "sublayer")),
    "after": ("norm after", ("sublayer", "norm")),
    "sandwich": ("sandwich", ("norm", "sublayer", "norm")),
}


def norm_placements(kinds: Sequence[str]) -> Figure:
    """One residual connection for each placement, side by side: the trunk, its branch, and the norms."""
    with house_style():
        figure, panels = plt.subplots(1, len(kinds), figsize=(2.7 * len(kinds), 3.9), squeeze=False)
        for axes, kind in zip(panels[0], kinds, strict=True):
            title, parts = PLACEMENTS[kind]
            axes.set(xlim=(-0.75, 3.0), ylim=(-0.6, 6.9))
            axes.set_title(title, loc="left")
            axes.axis("off")
            trunk, branch, width, join = 0.0, 1.85, 2.1, 4.9
            axes.plot([trunk, branch, branch], [0.45, 0.45, join], color="black", lw=1.2)
            _arrow_to(axes, (branch, join), (trunk + 0.25, join))
            for level, part in enumerate(parts):
                y = 0.95 + (1.25 if len(parts) == 3 else 1.6) * level + (0.9 if len(parts) == 1 else 0.0)
                _box(axes, branch - width / 2, y, width, part, "", GREEN if part == "norm" else BLUE)
            axes.plot([trunk, trunk], [-0.1, join], color=ORANGE, lw=3)
            axes.text(trunk, -0.5, "X", ha="center")
            if kind == "post":
                _arrow_to(axes, (trunk, join), (trunk, 5.6))
                _box(axes, trunk - 0.7, 5.6, 1.4, "norm", "", GREEN)
                _arrow_to(axes, (trunk, 6.3), (trunk, 6.8))
            else:
                _arrow_to(axes, (trunk, join), (trunk, 6.8), ORANGE, 3)
            axes.text(trunk + 0.2, 6.55, "Y", ha="left")
            axes.add_patch(Circle((trunk, join), 0.22, fc="white", ec="black", lw=1.2, zorder=5))
            axes.text(trunk, join - 0.02, "+", ha="center", va="center", zorder=6)
    return _done(figure)


def lines(
    curves: Mapping[str, Mapping[float, Sequence[float]]],
    xlabel: str,
    ylabel: str,
    log: str = "",
    level: tuple[str, float] | None = None,
    top: float | None = None,
) -> Figure:
    """A line through the means over seeds and a band from the least to the largest, named at its end.

    `curves` has the values of each seed by abscissa; `log` names the logarithmic axes, "x", "y" or "xy";
    `level` is a named dotted line; `top` cuts the axis off.
    """
    colours = (BLUE, ORANGE, GREEN, PINK, "black", "#56B4E9", GREY)
    with house_style():
        figure, axes = plt.subplots(figsize=(5.4, 3.7))
        axes.set_xscale("log" if "x" in log else "linear")
        axes.set_yscale("log" if "y" in log else "linear")
        axes.set(xlabel=xlabel, ylabel=ylabel)
        ends = []
        for (name, curve), colour, dash in zip(curves.items(), colours, _DASHES, strict=False):
            xs = list(curve)
            ys = [mean(curve[x]) for x in xs]
            axes.plot(xs, ys, dash, color=colour, lw=2)
            band = [min(curve[x]) for x in xs], [max(curve[x]) for x in xs]
            axes.fill_between(xs, *band, color=colour, alpha=0.2, lw=0)
            ends.append((name, xs[-1], ys[-1], colour))
        if level is not None:
            axes.axhline(level[1], color=GREY, ls=":", lw=1)
            axes.annotate(
                level[0],
                (0.98, level[1]),
                (0, -3),
                xycoords=axes.get_yaxis_transform(),
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize=9,
                color=GREY,
            )
        if top is not None:
            axes.set_ylim(top=top)
        if level is not None:
            low, high = axes.get_ylim()
            axes.set_ylim(low - 0.06 * (high - low), high)  # room for the name below the line
        if "x" in log or len(xs) < 10:
            axes.set_xticks(xs, [f"{x:g}" for x in xs])
            axes.xaxis.set_minor_locator(NullLocator())
        low, high = axes.get_ylim()
        if "y" in log and high < 200 * low:  # too few powers of ten for ticks
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
            axes.yaxis.set_minor_locator(NullLocator())
        _names_at_ends(axes, ends)
    return _done(figure)


_DASHES = ("-", "--", "-.", ":", "-", "--", "-.")


def _names_at_ends(axes: Axes, ends: Sequence[tuple[str, float, float, str]]) -> None:
    """Each line's name to the right of the axes, at its end's height, moved apart where they would touch."""
    to_axes = axes.transData + axes.transAxes.inverted()
    high = axes.get_ylim()[1]
    heights = [(float(to_axes.transform((x, min(y, high)))[1]), name, colour) for name, x, y, colour in ends]
    line = 0.06  # of the axes' height
    below = -1.0  # where the name before ends
    for height, name, colour in sorted(heights):
        half = line * (1 + name.count("\n")) / 2
        centre = max(height, below + half)
        axes.text(1.02, centre, name, color=colour, va="center", transform=axes.transAxes)
        below = centre + half


def two_counterexamples(distance: float) -> Figure:
    """The plane pictures of the two functions: what one head cannot reach, and what it swaps."""
    with house_style():
        figure, (left, right) = plt.subplots(2, 1, figsize=(3.6, 6.4))
        left.plot([1, 0], [0, 1], color=BLUE, lw=3)
        left.plot([1, 0], [0, 1], "o", color=BLUE)
        left.plot([1], [1], "s", color=ORANGE, ms=8)
        left.annotate("", (1, 1), (0.5, 0.5), arrowprops={"arrowstyle": "<->", "color": GREY})
        left.text(0.56, 0.84, f"{distance:.3f}", color=GREY, ha="center")
        left.text(1.0, 1.08, "wanted: (1, 1)", color=ORANGE, ha="center")
        left.text(-0.1, 0.12, "one head:\non the line", color=BLUE, ha="left")
        left.set(xlim=(-0.15, 1.35), ylim=(-0.15, 1.3), title="coordinatewise maximum")
        turn = 2 * np.pi * np.arange(5) / 5
        x, y = np.cos(turn), np.sin(turn)
        right.add_patch(Circle((0, 0), 1, fill=False, color=GREY, lw=1))
        right.plot(x, y, "o", color=BLUE, ms=7)
        arrow = {"arrowstyle": "<->", "color": ORANGE, "lw": 2, "shrinkA": 6, "shrinkB": 6}
        right.annotate("", (x[0], y[0]), (x[2], y[2]), arrowprops=arrow)
        right.text(
            0, -0.02, "each answers\nwith the other", color=ORANGE, ha="center", va="center", fontsize=9
        )
        right.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), title="swap two of n points")
        for axes in (left, right):
            axes.set_aspect("equal")
            axes.set_xlabel("first coordinate")
            axes.set_ylabel("second coordinate")
    return _done(figure)


def one_head_by_numbers(scores: Sequence[Sequence[float]], weights: Sequence[Sequence[float]]) -> Figure:
    """Scores (T, S) and their softmax side by side, each number written into its cell."""
    with house_style():
        figure, panels = plt.subplots(1, 2, figsize=(5.4, 2.8), sharey=True)
        names = [str(t + 1) for t in range(len(scores))]
        for axes, numbers, title in zip(
            panels, (scores, weights), ("scores Q Kᵀ / √d_k", "weights: rows sum to 1"), strict=True
        ):
            shown = np.asarray(numbers)
            # Pale enough for the numbers in the cells, in order of size.
            _heat_map(axes, 0.5 * (shown - shown.min()) / np.ptp(shown), names, names)
            _write_numbers(axes, shown)
            axes.set(title=title, xlabel="key s")
        panels[0].set_ylabel("query t")
    return _done(figure)


def transformer_map(config: TransformerConfig) -> Figure:
    """The encoder and decoder stacks with the paths of data, and the section that treats each part."""
    with house_style():
        figure, axes = plt.subplots(figsize=(6.0, 6.6))
        axes.set(xlim=(0, 10), ylim=(-1.8, 10.3))
        axes.axis("off")
        attention, feed_forward = "2.5.1", "2.5.2"
        _stack_of_boxes(
            axes,
            left=0.4,
            title="encoder",
            times=config.n_layers,
            boxes=[("self-attention", attention, BLUE), ("feed-forward", feed_forward, GREEN)],
            below="source tokens",
            above=f"T states of width d = {config.d_model}",
        )
        _stack_of_boxes(
            axes,
            left=5.6,
            title="decoder",
            times=config.n_layers,
            boxes=[
                ("causal self-attention", attention, BLUE),
                ("cross-attention", "2.5.4", PINK),
                ("feed-forward", feed_forward, GREEN),
            ],
            below="target tokens so far",
            above=f"next token, one of V = {config.vocab_size:,}",
        )
        # From the encoder's states to the keys and values of every cross-attention.
        axes.plot([2.2, 2.2, 4.95, 4.95], [8.0, 8.6, 8.6, 4.85], color=PINK, lw=2)
        arrow = FancyArrowPatch(
            (4.95, 4.85), (5.65, 4.85), arrowstyle="-|>", mutation_scale=12, color=PINK, lw=2
        )
        axes.add_patch(arrow)
        axes.text(2.4, 8.75, "keys and values", ha="left", va="bottom", fontsize=9.5, color=PINK)
        for line, text in enumerate(
            (
                "2.5.4 three layouts  ·  2.5.5 shapes and parameters",
                "2.5.6 training and inference  ·  2.5.7 build it",
            )
        ):
            axes.text(5, -1.0 - 0.55 * line, text, ha="center", fontsize=9.5, color=GREY)
    return _done(figure)


def _stack_of_boxes(
    axes: Axes,
    left: float,
    title: str,
    times: int,
    boxes: Sequence[tuple[str, str, str]],
    below: str,
    above: str,
) -> None:
    """One stack, from its tokens at the bottom to what it returns at the top."""
    middle, width, bottom, step = left + 1.8, 3.6, 2.5, 2.0
    top = bottom + step * len(boxes)
    axes.add_patch(
        Rectangle((left - 0.2, bottom - 0.55), width + 0.6, top - bottom + 0.35, fill=False, ls="--", ec=GREY)
    )
    axes.text(left - 0.15, top - 0.1, title, fontsize=9.5, color=GREY, va="bottom")
    axes.text(
        left + width + 0.35, top - 0.1, f"× {times} blocks", fontsize=9.5, color=GREY, va="bottom", ha="right"
    )
    _arrow(axes, middle, 0.25, 0.85)
    axes.text(middle, 0.0, below, ha="center", va="center")
    _box(axes, left, 0.9, width, "embedding + positions", "", GREY)
    _arrow(axes, middle, 1.6, bottom)
    for index, (name, section, colour) in enumerate(boxes):
        y = bottom + index * step
        _box(axes, left, y, width, name, section, colour)
        _arrow(axes, middle, y + 0.7, y + 1.0)
        axes.text(middle, y + 1.2, "add & norm  2.5.3", ha="center", va="center", fontsize=9, color="black")
        # The residual path goes around the sublayer.
        side = left + width + 0.22
        axes.plot([middle, side, side], [y - 0.25, y - 0.25, y + 1.2], color=ORANGE, lw=1.5)
        axes.add_patch(
            FancyArrowPatch(
                (side, y + 1.2), (middle + 1.45, y + 1.2), arrowstyle="-|>", mutation_scale=9, color=ORANGE
            )
        )
        if index + 1 < len(boxes):
            _arrow(axes, middle, y + 1.4, y + step)
    axes.text(middle, top + 1.2, above, ha="center", va="center", fontsize=9.5)
    _arrow(axes, middle, top - 0.6, top + 0.95)


def _box(axes: Axes, x: float, y: float, width: float, name: str, section: str, colour: str) -> None:
    style = "round,pad=0.02,rounding_size=0.12"
    axes.add_patch(FancyBboxPatch((x, y), width, 0.7, boxstyle=style, fc="white", ec=colour, zorder=2))
    axes.add_patch(FancyBboxPatch((x, y), width, 0.7, boxstyle=style, fc=colour, alpha=0.16, zorder=2))
    axes.add_patch(
        FancyBboxPatch((x, y), width, 0.7, boxstyle=style, fill=False, ec=colour, lw=1.5, zorder=2)
    )
    label = f"{name}  {section}".strip()
    axes.text(x + width / 2, y + 0.35, label, ha="center", va="center", fontsize=9.5, color="black")


def _arrow(axes: Axes, x: float, low: float, high: float) -> None:
    _arrow_to(axes, (x, low), (x, high), width=1)


def _arrow_to(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str = "black",
    width: float = 1.2,
) -> None:
    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=10, color=colour, lw=width, shrinkA=0, shrinkB=0
        )
    )


def _heat_map(axes: Axes, values: "np.ndarray", rows: Sequence[str], columns: Sequence[str]) -> None:
    axes.imshow(values, cmap=WEIGHTS, vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.spines[:].set_visible(False)
    axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="#dddddd", lw=0.6)
    axes.tick_params(which="both", length=0)


def _write_numbers(axes: Axes, values: "np.ndarray") -> None:
    for (row, column), number in np.ndenumerate(values):
        axes.text(column, row, f"{number:.2f}", ha="center", va="center", fontsize=9, color="black")


def _done(figure: Figure) -> Figure:
    """Detach the figure from pyplot: a notebook shows it once, by being a cell's value."""
    plt.close(figure)
    return figure


def save_drawings(folder: Path) -> list[Path]:
    """Write the drawings that Markdown pages show, as SVG with the same bytes every time."""
    from tfbook.experiments.refresher import one_head  # needs torch, unlike the figures

    head = one_head()
    drawings = {
        "transformer-map": transformer_map(TransformerConfig(n_layers=6, d_model=512, n_heads=8)),
        "one-head-by-numbers": one_head_by_numbers(head.scores, head.weights),
    }
    paths = []
    for name, figure in drawings.items():
        path = folder / f"{name}.svg"
        with house_style():
            figure.savefig(path, metadata={"Date": None, "Creator": None})
        paths.append(path)
    return paths


if __name__ == "__main__":
    save_drawings(Path("chapters/images"))
