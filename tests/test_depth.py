"""What depth does, with the margins that chapter 2.5.3 states; and its training runs, repeated."""

import math
from typing import Any

import pytest
import torch

from tfbook.experiments.deep_training import train_decoder
from tfbook.experiments.depth import (
    amplification,
    carried_back,
    decoder_gradients,
    encoder_gradients,
    exponent,
    last_gradient,
    logit_deviation,
    over_seeds,
    trunk_sizes,
)
from tfbook.experiments.dictionary import EQUALS, FLOOR, LENGTH, entries, translations
from tfbook.experiments.recorded import SEEDS, SETTINGS, WARM_UP, recorded

DEPTHS = (2, 4, 8, 16, 32)


def test_the_exponent_of_a_power_is_found() -> None:
    assert exponent([1, 2, 8], [3, 12, 192]) == pytest.approx(2.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_identity_survives_in_pre_ln_alone(seed: int) -> None:
    for depth in DEPTHS:
        assert 0.85 < carried_back(depth, "pre", seed=seed).identity < 1.2
        assert abs(carried_back(depth, "pre", residual=False, seed=seed).identity) < 0.1
    assert 0.25 < carried_back(4, "post", seed=seed).identity < 0.45
    assert abs(carried_back(16, "post", seed=seed).identity) < 0.1


@pytest.mark.parametrize("seed", SEEDS)
def test_without_norms_gradients_explode_or_vanish(seed: int) -> None:
    assert carried_back(16, "none", seed=seed).size > 1e3
    assert carried_back(16, "none", residual=False, seed=seed).size < 1e-3
    assert 0.05 < carried_back(16, "pre", residual=False, seed=seed).size < 5


@pytest.mark.parametrize(
    ("how", "first", "deep"),
    [
        ({}, (0.35, 0.5), (0.45, 0.7)),
        ({"recipe": "torch"}, (0.05, 0.2), (0.4, 0.7)),
        ({"recipe": "gpt2"}, (-0.02, 0.02), (-0.02, 0.05)),
        ({"shared": True}, (0.8, 1.0), (0.9, 1.15)),
        ({"norm_position": "post"}, (-0.01, 0.01), (-0.01, 0.01)),
    ],
)
def test_the_growth_of_the_trunk(
    how: dict[str, Any], first: tuple[float, float], deep: tuple[float, float]
) -> None:
    for seed in range(3):
        sizes = trunk_sizes(192, seed=seed, **how)
        for (a, b), (low, high) in (((1, 12), first), ((48, 192), deep)):
            assert low < exponent(range(a, b + 1), sizes[a : b + 1]) < high


def test_the_last_gradient_falls_with_depth_in_pre_ln_and_is_flat_in_post_ln() -> None:
    for seed in SEEDS:
        pre, post = ([last_gradient(L, kind, seed) for L in DEPTHS] for kind in ("pre", "post"))
        assert -0.65 < exponent(DEPTHS, pre) < -0.4
        assert -0.1 < exponent(DEPTHS, post) < 0.15
    for width in (64, 256):
        seen = over_seeds(last_gradient, [6], "post", d_model=width)[6]
        assert sum(seen) / 5 == pytest.approx(math.sqrt(0.8 * width / 1.32), rel=0.1)


@pytest.mark.parametrize("seed", SEEDS)
def test_only_the_post_ln_decoder_has_gradients_that_grow(seed: int) -> None:
    post, pre = (decoder_gradients(12, kind, seed) for kind in ("post", "pre"))
    assert post[-1] / post[0] > 10 and 0.4 < pre[-1] / pre[0] < 0.8
    post, pre = (encoder_gradients(12, kind, seed) for kind in ("post", "pre"))
    assert 0.4 < post[-1] / post[0] < 1.6 and pre[-1] / pre[0] < 0.6


def test_post_ln_amplifies_a_step_more_and_the_final_norm_holds_the_logits() -> None:
    for kind, low, high in (("post", 0.9, 1.5), ("pre", 0.3, 0.7)):
        moved = over_seeds(amplification, DEPTHS, kind)
        assert low < exponent(DEPTHS, [sum(moved[L]) / 5 for L in DEPTHS]) < high
    for seed in SEEDS:
        assert logit_deviation(48, True, seed) == pytest.approx(1.0, abs=0.1)
        assert logit_deviation(48, False, seed) > 5


def test_the_dictionary_is_what_its_floor_says() -> None:
    ids = entries(1000)
    assert ids.shape == (1000, LENGTH) and sorted(translations().tolist()) == list(range(16))
    asked, equals, answers = ids.view(1000, -1, 3).unbind(-1)
    assert bool((equals == EQUALS).all()) and torch.equal(translations()[asked], answers)
    assert pytest.approx(0.8438, abs=1e-4) == FLOOR


def test_the_record_of_deep_training_is_whole_and_repeats() -> None:
    record = recorded("deep_training")
    assert record["losses"].keys() == SETTINGS.keys() and record["curves"].keys() == WARM_UP.keys()
    for by_case in record["losses"].values():
        assert by_case.keys() == WARM_UP.keys()
        assert all(len(losses) == len(SEEDS) for losses in by_case.values())
    first = next(iter(record["losses"].values()))
    assert min(first["Post-LN, no warm-up"]) > 2
    assert max(max(v) for case, v in first.items() if case != "Post-LN, no warm-up") < 0.9
    again = train_decoder(**SETTINGS["8 blocks, rate 0.003"], **WARM_UP["Pre-LN, no warm-up"], seed=1)
    assert again.loss == pytest.approx(first["Pre-LN, no warm-up"][1], abs=0.01)
    assert len(again.before) == len(again.after) == 9
