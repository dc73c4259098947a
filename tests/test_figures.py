"""Figures are legible, and the committed drawings are what the code draws today."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from tfbook import TransformerConfig, figures
from tfbook.experiments.serving import Schedule

IMAGES = Path(__file__).resolve().parents[1] / "chapters" / "images"
WORDS = ["a", "b"]

EVERY = {
    "heads_on_a_sentence": lambda: figures.heads_on_a_sentence(WORDS, ["one"], [[[0.5, 0.5], [1.0, 0.0]]]),
    "accuracy_by_heads": lambda: figures.accuracy_by_heads({"t": {1: [0.5, 0.6], 2: [0.7]}}, {"t": 0.5}),
    "attention_by_offset": lambda: figures.attention_by_offset([[0.5] * 12] * 3, look_back=8),
    "activation_curves": lambda: figures.activation_curves(
        [-1.0, 1.0], {"ReLU": [0.0, 1.0], "GELU": [-0.2, 0.8], "SiLU": [-0.3, 0.7]}
    ),
    "outputs_and_hull": lambda: figures.outputs_and_hull(
        {"before": ([[0.3, 0.3]], [[0, 0], [1, 0], [0, 1]]), "after": ([[2, 2]], [[0, 0], [1, 0], [0, 2]])}
    ),
    "accuracy_by_stack": lambda: figures.accuracy_by_stack(
        {"attention and feed-forward": [0.9, 1.0], "attention alone": [0.5]}, {"chance": 0.5}
    ),
    "heat_map": lambda: figures.heat_map([[0.5, 0.1]] * 2, WORDS, WORDS, "key", "query", numbers=True),
    "masks": lambda: figures.masks({"one": [[True, False]] * 2, "two": [[True]]}, "query", {"two": "key"}),
    "schedules": lambda: figures.schedules({"one": Schedule([[(0, 3)], [(1, 1)]])}),
    "stacked_shares": lambda: figures.stacked_shares(
        {"one": {"a": 0.5, "b": 0.3, "c": 0.15, "d": 0.05}, "two": {"a": 0.9, "b": 0.1, "c": 0.0, "d": 0.0}}
    ),
    "norm_placements": lambda: figures.norm_placements(list(figures.PLACEMENTS)[:2]),
    "lines": lambda: figures.lines(
        {"one": {1: [1.0, 2.0], 10: [3.0]}, "two,\nwith more": {1: [1.0], 10: [3.1]}},
        "blocks",
        "size",
        log="xy",
        level=("floor", 1.0),
        top=4,
    ),
    "two_counterexamples": lambda: figures.two_counterexamples(0.7),
    "one_head_by_numbers": lambda: figures.one_head_by_numbers([[0.0, 1.0]] * 2, [[0.3, 0.7]] * 2),
    "transformer_map": lambda: figures.transformer_map(TransformerConfig(n_layers=3, vocab_size=99)),
}


@pytest.mark.parametrize("name", EVERY)
def test_text_is_never_below_nine_points_and_fits_a_phone(name: str) -> None:
    figure: Figure = EVERY[name]()
    texts = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
    assert texts and min(text.get_fontsize() for text in texts) >= 9
    assert figure.get_figwidth() <= 6


def test_numbers_in_the_map_follow_the_configuration() -> None:
    texts = " ".join(text.get_text() for text in EVERY["transformer_map"]().findobj(Text))
    assert "× 3 blocks" in texts and "V = 99" in texts


def test_the_readers_settings_stay_as_they_are() -> None:
    before = dict(mpl.rcParams)
    EVERY["two_counterexamples"]()
    assert dict(mpl.rcParams) == before


def test_committed_drawings_are_current(tmp_path: Path) -> None:
    for path in figures.save_drawings(tmp_path):
        assert path.read_bytes() == (IMAGES / path.name).read_bytes(), "run `make figures`"


def test_the_hull_has_its_corners_in_order() -> None:
    points = np.array([[0, 0], [2, 0], [1, 0.5], [2, 2], [0, 2], [1, 1]], dtype=float)
    assert sorted(figures._around(points)) == [0, 1, 3, 4]


def test_names_at_the_ends_of_lines_do_not_touch() -> None:
    figure = EVERY["lines"]()
    figure.canvas.draw()
    names = [t for t in figure.findobj(Text) if t.get_text() in ("one", "two,\nwith more")]
    one, two = sorted((name.get_window_extent() for name in names), key=lambda box: float(box.y0))
    assert one.y1 <= two.y0


@pytest.mark.parametrize("kind", figures.PLACEMENTS)
def test_the_trunk_is_unbroken_but_in_post_ln(kind: str) -> None:
    """What the picture shows is what the block computes: a path from X to Y without a norm."""
    axes = figures.norm_placements([kind]).axes[0]
    heads = [patch for patch in axes.patches if patch.get_linewidth() == 3]
    assert bool(heads) == (kind != "post")
    norms = [text for text in axes.texts if text.get_text() == "norm"]
    assert len(norms) == (2 if kind == "sandwich" else 1)
