"""The demonstrations say what the chapters say of them, with margins that hold over seeds."""

import pytest
import torch

from tfbook.experiments import heads
from tfbook.experiments.counterexamples import coordinatewise_maximum, layer_by_hand, swap_on_circle
from tfbook.experiments.hull import feed_forward_step, head_outputs, inside_hull
from tfbook.experiments.identities import identifiable_parameters, score_ranks
from tfbook.experiments.order import change_under_reordering
from tfbook.experiments.recorded import (
    HEAD_COUNTS,
    SEEDS,
    STACKS,
    TASKS,
    recorded_accuracies,
    recorded_without_ffn,
    spread,
)
from tfbook.experiments.refresher import one_head
from tfbook.experiments.sentence import sentence_heads
from tfbook.experiments.training import seeded
from tfbook.experiments.without_ffn import (
    ATTENTION_ALONE,
    FULL,
    Sublayers,
    best_straight_line,
    checkerboard,
    departure_from_affine,
)


@pytest.mark.parametrize("seed", range(5))
def test_what_attention_without_positions_knows_of_order(seed: int) -> None:
    """The four cases of the opening page."""
    assert change_under_reordering(1, causal=False, seed=seed) < 1e-6
    assert change_under_reordering(2, causal=False, seed=seed) < 1e-6
    assert change_under_reordering(1, causal=True, seed=seed) < 1e-6
    assert change_under_reordering(2, causal=True, seed=seed) < 0.05
    assert change_under_reordering(2, causal=True, seed=seed) > 0.01


@pytest.mark.parametrize("sharpness", [20, 40])
def test_by_hand_each_layer_solves_its_own_question_and_not_the_other(sharpness: float) -> None:
    maximum, swap = coordinatewise_maximum(), swap_on_circle()
    assert maximum.error(layer_by_hand(2, sharpness)) < 1e-8
    assert maximum.error(layer_by_hand(1, sharpness)) > 8**-0.5
    assert swap.error(layer_by_hand(1, sharpness)) < 1e-4
    assert swap.error(layer_by_hand(2, sharpness)) > 0.3


def test_ranks_and_identifiable_parameters() -> None:
    assert [max(score_ranks(n)) for n in (1, 2, 4, 8, 16, 32, 64)] == [32, 32, 16, 8, 4, 2, 1]
    assert identifiable_parameters(4, d_model=4, length=6) == 4 * 4**2 - 2 * 4 * 1


def test_each_head_on_the_sentence_finds_its_word() -> None:
    seen = sentence_heads()
    row = {word: position for position, word in enumerate(seen.words)}
    strongest = [
        [max(range(len(seen.words)), key=pattern.__getitem__) for pattern in head] for head in seen.weights
    ]
    previous, subject, pronoun = strongest
    assert previous == [0, *range(len(seen.words) - 1)]
    assert [subject[row[w]] for w in ("closed", "had", "finished")] == [row[w] for w in ("Ada", "she", "she")]
    assert [pronoun[row[w]] for w in ("she", "it")] == [row[w] for w in ("Ada", "book")]


def test_the_numbers_of_the_opening_page() -> None:
    head = one_head()
    assert all(abs(sum(row) - 1) < 1e-6 for row in head.weights)
    assert f"{min(map(min, head.scores)):.2f} {max(map(max, head.scores)):.2f}" == "-1.41 1.41"
    assert f"{head.weights[2][2]:.2f}" == "0.47" and max(head.weights[2]) == head.weights[2][2]


def test_the_record_is_whole_and_shows_what_the_chapter_says() -> None:
    for task in TASKS:
        assert {h: len(v) for h, v in recorded_accuracies(task).items()} == dict.fromkeys(
            HEAD_COUNTS, len(SEEDS)
        )
    previous, nearest = (recorded_accuracies(task) for task in TASKS)
    assert max(previous[1]) < 0.5 and min(previous[8]) > 0.93 and max(previous[64]) < 0.8
    for narrow, wide in zip(HEAD_COUNTS[1:], HEAD_COUNTS, strict=False):
        assert sum(nearest[narrow]) < sum(nearest[wide])
    assert min(nearest[1]) > 0.93 and 0.7 < sum(nearest[64]) / 5 < 0.8
    slow, order = (recorded_accuracies(task, long=True) for task in TASKS)
    assert max(slow[1]) < 0.7 and min(slow[8]) > 0.99 and min(slow[64]) > 0.95
    assert min(order[1]) > max(order[8]) and min(order[8]) > max(order[64]) > max(nearest[64])
    assert spread([0.1, 0.3]) == "0.20 (0.10 to 0.30)"
    with pytest.raises(ValueError, match="use one of previous_tokens, nearest_key"):
        recorded_accuracies("nothing")


@pytest.mark.parametrize(
    ("task", "n_heads", "margin"), [("previous_tokens", 8, 0.05), ("nearest_key", 4, 0.05)]
)
def test_a_recorded_run_repeats(task: str, n_heads: int, margin: float) -> None:
    run = getattr(heads, task)(n_heads, seed=0)
    assert run.accuracy == pytest.approx(recorded_accuracies(task)[n_heads][0], abs=margin)


def test_seeded_leaves_the_readers_random_state_alone() -> None:
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    with seeded(7):
        torch.rand(5)
    assert torch.equal(torch.rand(2), expected)


def test_without_feed_forward_layers_a_single_position_sees_an_affine_map() -> None:
    """C-2.5.2-07, both halves."""
    for seed in range(5):
        assert departure_from_affine("aaaaaa", seed=seed) < 1e-5
        assert departure_from_affine("aaaaaa", length=8, seed=seed) > 0.01
        assert departure_from_affine("aaaaaa", normalized=True, seed=seed) > 0.1
        assert departure_from_affine("afaf", seed=seed) > 0.01
    full, alone = Sublayers(FULL).size, Sublayers(ATTENTION_ALONE).size
    assert (full, alone) == (56_160, 56_448)


def test_no_straight_line_colours_more_than_two_thirds_of_the_checkerboard() -> None:
    """x + y = 2/3 reaches it: 1 - 2/9 + 2 - 1/9 of 4 are right."""
    assert abs(best_straight_line() - 2 / 3) < 0.005


def test_the_record_of_the_checkerboard_is_whole_and_repeats() -> None:
    record = recorded_without_ffn()
    assert record.keys() == STACKS.keys()
    assert all(len(values) == len(SEEDS) for values in record.values())
    for name in ("attention and feed-forward", "attention alone"):
        again = checkerboard(seed=2, **STACKS[name]).accuracy
        assert abs(again - record[name][2]) < 0.06, name


def test_outputs_of_a_head_lie_among_its_values_until_transformed() -> None:
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    points = torch.tensor([[0.2, 0.2], [0.5, 0.5], [0.6, 0.6], [-0.01, 0.5]])
    assert inside_hull(points, corners).tolist() == [True, True, False, False]
    for seed in range(5):
        values, outputs = head_outputs(seed=seed)
        assert inside_hull(outputs, values).all()
        straight = [feed_forward_step(points, seed, bend=False) for points in (outputs, values)]
        assert inside_hull(*straight, slack=1e-4).all()  # an affine map carries the hull along
    values, outputs = head_outputs(seed=1)
    bent = [feed_forward_step(points, 16) for points in (outputs, values)]
    assert inside_hull(*bent, slack=1e-2).float().mean() < 0.6
