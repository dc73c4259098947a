"""The code exercises of the chapter on a real model. Imports torch."""

from collections.abc import Iterator

import torch
from torch import Tensor

from tfbook.exercises.code import Case, CodeTask, slip


def four_bits(weights: Tensor) -> Tensor:
    """weights (n, 32) -> the same, each at the nearest of its block's 16 levels."""
    low, high = weights.amin(dim=-1, keepdim=True), weights.amax(dim=-1, keepdim=True)
    scale = (high - low) / 15
    codes = ((weights - low) / scale).round()  # 0 to 15
    return codes * scale + low


def _bits_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(283)
    yield (torch.linspace(0, 4, 32)[None],)
    for blocks in (1, 3):
        yield (torch.randn(blocks, 32, generator=draw) + 0.5,)


FOUR_BITS = CodeTask(
    four_bits,
    (
        slip(
            "sixteen-steps",
            four_bits,
            ("(high - low) / 15", "(high - low) / 16"),
            diagnosis="Sixteen levels have fifteen steps between them. With sixteen the largest weight would need the code 16.",
        ),
        slip(
            "fifteen-levels",
            four_bits,
            ("(high - low) / 15", "(high - low) / 14"),
            diagnosis="You use fifteen levels. Four bits give sixteen, with fifteen steps between them.",
        ),
        slip(
            "truncated",
            four_bits,
            (".round()", ".floor()"),
            diagnosis="You cut off. The nearest level is found by rounding; cutting off doubles the largest error.",
        ),
        slip(
            "one-scale-for-all",
            four_bits,
            (
                "weights.amin(dim=-1, keepdim=True), weights.amax(dim=-1, keepdim=True)",
                "weights.min().expand(len(weights), 1), weights.max().expand(len(weights), 1)",
            ),
            diagnosis="Each block has its own least and largest weight: that is why there are blocks.",
        ),
        slip(
            "symmetric",
            four_bits,
            ("weights.amin(dim=-1, keepdim=True)", "-weights.abs().amax(dim=-1, keepdim=True)"),
            diagnosis="You go from minus the largest size. The levels go from the least weight to the largest, and none is wasted.",
        ),
        slip(
            "not-shifted",
            four_bits,
            ("((weights - low) / scale)", "(weights / scale)"),
            diagnosis="Subtract the least weight first: its code is 0.",
        ),
    ),
    _bits_cases,
)


def induction_score(weights: Tensor, period: int) -> Tensor:
    """weights (H, T, T), T = 2 period -> (H,)."""
    return weights.diagonal(1 - period, dim1=-2, dim2=-1)[..., 1:].mean(dim=-1)


def _score_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(284)
    for heads, period in ((1, 2), (2, 3), (3, 5)):
        scores = 2 * torch.randn(heads, 2 * period, 2 * period, generator=draw)
        yield scores.softmax(dim=-1), period


INDUCTION_SCORE = CodeTask(
    induction_score,
    (
        slip(
            "same-token",
            induction_score,
            ("(1 - period, dim1=-2, dim2=-1)[..., 1:]", "(-period, dim1=-2, dim2=-1)"),
            diagnosis="That is the earlier occurrence itself. The head copies what comes right after it: one further.",
        ),
        slip(
            "token-before",
            induction_score,
            ("(1 - period, dim1=-2, dim2=-1)[..., 1:]", "(-1 - period, dim1=-2, dim2=-1)"),
            diagnosis="That is the token in front of the earlier occurrence. Right after it is one further on, not one back.",
        ),
        slip(
            "rows-and-columns",
            induction_score,
            ("dim1=-2, dim2=-1", "dim1=-1, dim2=-2"),
            diagnosis="You took columns for queries. Rows ask, columns are read.",
        ),
        slip(
            "first-half-too",
            induction_score,
            ("[..., 1:]", ""),
            diagnosis="The diagonal starts with the last query of the first half, whose token has not been seen before. Count the second half alone.",
        ),
        slip(
            "sum",
            induction_score,
            (".mean(dim=-1)", ".sum(dim=-1)"),
            diagnosis="You add the weights up; the score is their mean.",
        ),
        slip(
            "over-heads",
            induction_score,
            (".mean(dim=-1)", ".mean()[None].expand(len(weights))"),
            diagnosis="You average over the heads too: the point is to tell them apart.",
        ),
    ),
    _score_cases,
)
