"""The code exercises of the chapters on misconceptions and on a real model. Imports torch."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tfbook.exercises.code import Case, CodeTask, slip


def leak(ids: Tensor, other: Tensor, t: int, model: Callable[[Tensor], Tensor]) -> Tensor:
    """ids and other (B, T) -> the largest change of the logits before t, a tensor without axes."""
    exchanged = torch.cat((ids[:, :t], other[:, t:]), dim=1)
    return (model(exchanged) - model(ids))[:, :t].abs().max()


def causal_model(ids: Tensor) -> Tensor:
    """A small function of ids (B, T) whose row t depends on the tokens up to t alone: (B, T, 3)."""
    table = torch.tensor([[0.3, -1.0, 2.0], [1.5, 0.2, -0.7], [-2.0, 0.4, 1.1], [0.9, -0.6, -1.2]])
    return table[ids].cumsum(dim=1)


def leaky_model(ids: Tensor) -> Tensor:
    """The same with a little of all tokens in every row; what comes from later ones is negative."""
    return causal_model(ids) - 0.1 * ids.float().sum(dim=1)[:, None, None] ** 2


def peeking_model(ids: Tensor) -> Tensor:
    """A mask that is off by one: row t also sees the token at t + 1."""
    return causal_model(ids).roll(-1, dims=1)


def _leak_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(281)
    for model, batch, length, t in (
        (leaky_model, 1, 3, 1),
        (leaky_model, 2, 5, 2),
        (peeking_model, 1, 4, 2),
        (causal_model, 2, 5, 3),
        (leaky_model, 3, 7, 4),
        (peeking_model, 2, 6, 3),
    ):
        ids = torch.randint(3, (batch, length), generator=draw)
        yield ids, ids + 1, t, model


LEAK = CodeTask(
    leak,
    (
        slip(
            "all-positions",
            leak,
            (")[:, :t].abs()", ").abs()"),
            diagnosis="You look at all positions. Those from t on may change: their own tokens did. Look at those before t.",
        ),
        slip(
            "one-too-many",
            leak,
            (")[:, :t].abs()", ")[:, : t + 1].abs()"),
            diagnosis="You include position t, which reads its own exchanged token. The first t positions end at t - 1.",
        ),
        slip(
            "later-positions",
            leak,
            (")[:, :t].abs()", ")[:, t:].abs()"),
            diagnosis="You look at the positions from t on. They are allowed to change; those before t are not.",
        ),
        slip(
            "beginning-exchanged",
            leak,
            ("(ids[:, :t], other[:, t:])", "(other[:, :t], ids[:, t:])"),
            diagnosis="You exchanged the beginning. Keep it, and exchange what comes later.",
        ),
        slip(
            "signed",
            leak,
            (".abs().max()", ".max()"),
            diagnosis="You take the largest signed change: a logit that falls a lot would not be seen. Take absolute values.",
        ),
        slip(
            "mean",
            leak,
            (".abs().max()", ".abs().mean()"),
            diagnosis="A mean hides a small leak at one place among many. The largest change does not.",
        ),
        slip(
            "whole-other",
            leak,
            ("torch.cat((ids[:, :t], other[:, t:]), dim=1)", "other"),
            diagnosis="You replaced the whole text. The beginning must stay, or its own change hides the leak.",
        ),
    ),
    _leak_cases,
)


def entropy_floor(probabilities: Tensor) -> Tensor:
    """probabilities (T, V), rows sum to 1 -> the mean of the rows' entropies in nats, without axes."""
    return -torch.xlogy(probabilities, probabilities).sum(dim=-1).mean()


def _floor_cases() -> Iterator[Case]:
    yield (torch.tensor([[0.5, 0.5]]),)
    yield (torch.tensor([[0.25, 0.75], [0.5, 0.5]]),)
    yield (torch.tensor([[1.0, 0.0, 0.0], [0.25, 0.25, 0.5], [0.0, 0.5, 0.5]]),)
    draw = torch.Generator().manual_seed(282)
    drawn = torch.rand(5, 7, generator=draw) * (torch.rand(5, 7, generator=draw) > 0.3)
    yield (drawn / drawn.sum(dim=-1, keepdim=True),)


ENTROPY_FLOOR = CodeTask(
    entropy_floor,
    (
        slip(
            "zero-log-zero",
            entropy_floor,
            ("torch.xlogy(probabilities, probabilities)", "(probabilities * probabilities.log())"),
            diagnosis="0 times ln 0 is NaN for torch, and 0 here: a token that never comes costs nothing. Use `torch.xlogy`.",
        ),
        slip(
            "sum",
            entropy_floor,
            (".sum(dim=-1).mean()", ".sum()"),
            diagnosis="You add the positions up; the loss is their mean.",
        ),
        slip(
            "mean-over-tokens",
            entropy_floor,
            (".sum(dim=-1).mean()", ".mean()"),
            diagnosis="You average over the vocabulary too. The entropy of a row is a sum over its tokens.",
        ),
        slip(
            "bits",
            entropy_floor,
            (".sum(dim=-1).mean()", ".sum(dim=-1).mean() / torch.tensor(2.0).log()"),
            diagnosis="Those are bits. The loss is measured in nats, with the natural logarithm.",
        ),
        slip(
            "sign",
            entropy_floor,
            ("-torch.xlogy", "torch.xlogy"),
            diagnosis="The sign: logarithms of probabilities are negative, an entropy is not.",
        ),
        slip(
            "frequencies",
            entropy_floor,
            (
                "-torch.xlogy(probabilities, probabilities).sum(dim=-1).mean()",
                "-torch.xlogy(probabilities.mean(dim=0), probabilities.mean(dim=0)).sum()",
            ),
            diagnosis="That is the entropy of the mean distribution: what a model reaches that knows only how often each token comes. Take each row's entropy, then the mean.",
        ),
        slip(
            "likeliest",
            entropy_floor,
            (
                "torch.xlogy(probabilities, probabilities).sum(dim=-1).mean()",
                "probabilities.amax(dim=-1).log().mean()",
            ),
            diagnosis="That counts the likeliest token alone. The loss is an expectation over all tokens that may come.",
        ),
    ),
    _floor_cases,
)
