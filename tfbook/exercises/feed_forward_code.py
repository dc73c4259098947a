"""The code exercises of section 2.5.2: references, slips and cases. Imports torch."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from tfbook.exercises.code import Case, CodeTask, slip


def feed_forward(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    """x (B, T, d) -> (B, T, d): up to d_ff, ReLU, down again."""
    return (x @ w1 + b1).relu() @ w2 + b2


def _ffn_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(252)
    for batch, length, d, d_ff in ((1, 1, 2, 3), (1, 2, 2, 2), (2, 3, 4, 5)):
        sizes = ((batch, length, d), (d, d_ff), (d_ff,), (d_ff, d), (d,))
        # Large enough that a ReLU with a ceiling would show.
        yield tuple(3 * torch.randn(size, generator=draw) for size in sizes)


FEED_FORWARD = CodeTask(
    feed_forward,
    (
        slip(
            "no-nonlinearity",
            feed_forward,
            (".relu()", ""),
            diagnosis="Without a nonlinearity between them the two maps are one matrix. Apply ReLU to the hidden layer.",
        ),
        slip(
            "nonlinearity-last",
            feed_forward,
            ("(x @ w1 + b1).relu() @ w2 + b2", "((x @ w1 + b1) @ w2 + b2).relu()"),
            diagnosis="You applied ReLU to the output. It stands between the two maps; the output may be negative.",
        ),
        slip(
            "bias-after-nonlinearity",
            feed_forward,
            ("(x @ w1 + b1).relu()", "((x @ w1).relu() + b1)"),
            diagnosis="The first bias is added **before** ReLU: it moves the point where the nonlinearity bends.",
        ),
        slip(
            "first-bias-forgotten",
            feed_forward,
            (" + b1", " + 0 * b1"),
            diagnosis="The first map has a bias b1, which you left out.",
        ),
        slip(
            "second-bias-forgotten",
            feed_forward,
            (" + b2", " + 0 * b2"),
            diagnosis="The second map has a bias b2, which you left out.",
        ),
        slip(
            "gelu",
            feed_forward,
            ("(x @ w1 + b1).relu()", "F.gelu(x @ w1 + b1)"),
            diagnosis="That is GELU. This exercise asks for ReLU, max(0, a).",
        ),
        slip(
            "relu-twice",
            feed_forward,
            ("(x @ w1 + b1).relu() @ w2 + b2", "((x @ w1 + b1).relu() @ w2).relu() + b2"),
            diagnosis="There is one nonlinearity, on the hidden layer; you applied a second after w2.",
        ),
    ),
    _ffn_cases,
)


def swiglu(x: Tensor, w1: Tensor, w3: Tensor, w2: Tensor) -> Tensor:
    """x (B, T, d) -> (B, T, d): Swish of one path gates the other."""
    return (F.silu(x @ w1) * (x @ w3)) @ w2


def _swiglu_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(253)
    for batch, length, d, d_ff in ((1, 1, 2, 3), (1, 2, 2, 2), (2, 3, 4, 5)):
        sizes = ((batch, length, d), (d, d_ff), (d, d_ff), (d_ff, d))
        yield tuple(torch.randn(size, generator=draw) for size in sizes)


SWIGLU = CodeTask(
    swiglu,
    (
        slip(
            "paths-exchanged",
            swiglu,
            ("F.silu(x @ w1) * (x @ w3)", "F.silu(x @ w3) * (x @ w1)"),
            diagnosis="Swish belongs to the path of w1; you applied it to that of w3.",
        ),
        slip(
            "both-gated",
            swiglu,
            ("* (x @ w3)", "* F.silu(x @ w3)"),
            diagnosis="Only one path passes Swish; the other stays linear.",
        ),
        slip(
            "sum-of-paths",
            swiglu,
            (") * (x @ w3)", ") + (x @ w3)"),
            diagnosis="The two paths are multiplied, not added: one gates the other.",
        ),
        slip(
            "sigmoid-gate",
            swiglu,
            ("F.silu(x @ w1)", "(x @ w1).sigmoid()"),
            diagnosis="That is the sigmoid gate of GLU. Swish is a sigmoid(a): multiply by a once more.",
        ),
        slip(
            "gelu-gate",
            swiglu,
            ("F.silu(", "F.gelu("),
            diagnosis="That is GEGLU. Swish (SiLU) is a sigmoid(a).",
        ),
        slip(
            "no-gate",
            swiglu,
            (" * (x @ w3)", " + 0 * (x @ w3)"),
            diagnosis="The path of w3 is missing: it is what the gate lets through.",
        ),
        slip(
            "swish-of-product",
            swiglu,
            ("F.silu(x @ w1) * (x @ w3)", "F.silu((x @ w1) * (x @ w3))"),
            diagnosis="Swish is applied to one path before the product, not to the product.",
        ),
    ),
    _swiglu_cases,
)
