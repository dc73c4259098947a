"""The code exercises about training and decoding, sections 2.5.6 and 2.5.7. Imports torch."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from tfbook.exercises.code import Case, CodeTask, slip


def next_token_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """logits (B, T, V), ids (B, T) -> the mean cross-entropy of the next token."""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def _loss_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(259)
    for batch, length, vocab in ((1, 2, 3), (1, 4, 3), (3, 5, 7)):
        yield (
            torch.randn(batch, length, vocab, generator=draw),
            torch.randint(vocab, (batch, length), generator=draw),
        )


NEXT_TOKEN_LOSS = CodeTask(
    next_token_loss,
    (
        slip(
            "not-shifted",
            next_token_loss,
            ("logits[:, :-1]", "logits"),
            ("ids[:, 1:]", "ids"),
            diagnosis="You score each position on the token it has read. The logits at t predict the token at t + 1: shift by one.",
        ),
        slip(
            "shifted-backwards",
            next_token_loss,
            ("logits[:, :-1]", "logits[:, 1:]"),
            ("ids[:, 1:]", "ids[:, :-1]"),
            diagnosis="You shifted the wrong way: position t + 1 is asked for the token at t, which it has read.",
        ),
        slip(
            "last-token-alone",
            next_token_loss,
            ("logits[:, :-1]", "logits[:, -2:-1]"),
            ("ids[:, 1:]", "ids[:, -1:]"),
            diagnosis="You score the last token alone. Teacher forcing scores every position.",
        ),
        slip(
            "sum",
            next_token_loss,
            (".flatten())", ".flatten(), reduction='sum')"),
            diagnosis="You add the losses up; the loss is their mean, so that it does not grow with the batch.",
        ),
        slip(
            "per-sequence",
            next_token_loss,
            (".flatten())", ".flatten(), reduction='sum') / len(ids)"),
            diagnosis="You average over sequences. The mean is over all targets.",
        ),
        slip(
            "wrapped-around",
            next_token_loss,
            (
                "logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()",
                "logits.flatten(0, 1), ids.roll(-1, dims=1).flatten()",
            ),
            diagnosis="`roll` makes the last position predict the first token of its own text. The last position has no target.",
        ),
        slip(
            "base-two",
            next_token_loss,
            (
                "return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())",
                "return F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()) / math.log(2)",
            ),
            diagnosis="Those are bits. The usual loss takes the natural logarithm.",
        ),
        slip(
            "flattened-first",
            next_token_loss,
            (
                "logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()",
                "logits.flatten(0, 1)[:-1], ids.flatten()[1:]",
            ),
            diagnosis="You flattened before shifting: the last position of a text then predicts the first token of the next.",
        ),
    ),
    _loss_cases,
)


def top_p(probabilities: Tensor, p: float) -> Tensor:
    """probabilities (V,) -> the nucleus renormalized, zeros elsewhere."""
    ordered, places = probabilities.sort(descending=True)
    before = ordered.cumsum(0) - ordered
    kept = torch.zeros_like(probabilities)
    kept[places] = ordered * (before < p)
    return kept / kept.sum()


def _top_p_cases() -> Iterator[Case]:
    # Halves, quarters and eighths: the edge where a sum equals p is met exactly.
    exact = torch.tensor([0.125, 0.5, 0.0625, 0.25, 0.0625])
    exact[4], exact[2] = 0.03125, 0.09375
    for p in (0.5, 0.75, 0.01, 0.6, 1.0, 0.9):
        yield exact, p
    draw = torch.Generator().manual_seed(260)
    for size, p in ((3, 0.7), (9, 0.4), (9, 0.95)):
        yield torch.randn(size, generator=draw).mul(2).softmax(0), p


TOP_P = CodeTask(
    top_p,
    (
        slip(
            "one-too-many",
            top_p,
            ("before < p", "before <= p"),
            diagnosis="At equality you keep one token too many: once the sum has reached p, stop.",
        ),
        slip(
            "one-too-few",
            top_p,
            ("(before < p)", "(ordered.cumsum(0) <= p)"),
            diagnosis="You drop the token that crosses p, and perhaps all of them. A token is kept while the sum **before** it is below p.",
        ),
        slip(
            "at-most-p",
            top_p,
            ("(before < p)", "((ordered.cumsum(0) <= p) | (before == 0))"),
            diagnosis="You stop before the sum passes p. The nucleus sums to **at least** p: the token that crosses it belongs to it.",
        ),
        slip(
            "not-renormalized",
            top_p,
            (" / kept.sum()", ""),
            diagnosis="What is kept must sum to 1 again: divide by its sum.",
        ),
        slip(
            "smallest-first",
            top_p,
            ("descending=True", "descending=False"),
            diagnosis="You keep the **least** probable tokens: sort from the largest.",
        ),
        slip(
            "not-put-back",
            top_p,
            ("kept[places] = ordered", "kept[:] = ordered"),
            diagnosis="You return the sorted order: each probability must go back to its own token.",
        ),
        slip(
            "threshold",
            top_p,
            ("ordered * (before < p)", "ordered * (ordered >= p)"),
            diagnosis="You keep tokens whose own probability is at least p. It is the **sum** that is compared with p.",
        ),
        slip(
            "softmax-again",
            top_p,
            ("kept / kept.sum()", "kept.softmax(0)"),
            diagnosis="A softmax of probabilities is another distribution. Divide by the sum.",
        ),
        slip(
            "uniform",
            top_p,
            ("ordered * (before < p)", "(before < p).to(ordered.dtype)"),
            diagnosis="The kept tokens keep their proportions; you made them equally probable.",
        ),
    ),
    _top_p_cases,
)


def cached_step(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """One head's step: x (B, 1, d), keys and values (B, t, d_h) -> output (B, 1, d_h), and both one longer."""
    keys = torch.cat([keys, x @ w_k], dim=1)
    values = torch.cat([values, x @ w_v], dim=1)
    scores = (x @ w_q) @ keys.transpose(-2, -1) / math.sqrt(keys.shape[-1])  # (B, 1, t + 1)
    return scores.softmax(dim=-1) @ values, keys, values


def _use_step(
    step: object, x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, keys: Tensor, values: Tensor
) -> Tensor:
    """All that a step returns as one tensor: the output first, then the grown keys and values."""
    found = step(x, w_q, w_k, w_v, keys, values)  # type: ignore[operator]  # whatever the reader hands over
    if (
        not isinstance(found, tuple | list)
        or not all(isinstance(part, Tensor) for part in found)
        or len(found) != 3
    ):
        raise TypeError("return three tensors: output, keys, values")
    grown = (keys.shape[0], keys.shape[1] + 1, keys.shape[2])
    shapes = {"the output": (x.shape[0], 1, w_v.shape[1]), "keys": grown, "values": grown}
    for (name, shape), part in zip(shapes.items(), found, strict=True):
        if part.shape != shape:
            raise ValueError(f"{name} should have shape {tuple(shape)}, and have {tuple(part.shape)}")
    return torch.cat(list(found), dim=1)


def _step_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(261)
    for batch, past, d, d_h in ((1, 0, 2, 2), (1, 1, 2, 3), (2, 4, 4, 3)):
        sizes = ((batch, 1, d), (d, d_h), (d, d_h), (d, d_h), (batch, past, d_h), (batch, past, d_h))
        yield tuple(torch.randn(size, generator=draw) for size in sizes)


CACHED_STEP = CodeTask(
    cached_step,
    (
        slip(
            "new-token-unread",
            cached_step,
            ("keys.transpose", "keys[:, :-1].transpose"),
            ("@ values, keys", "@ values[:, :-1], keys"),
            diagnosis="The new token must read itself too: append its key and value **before** attending.",
        ),
        slip(
            "prepended",
            cached_step,
            ("[keys, x @ w_k]", "[x @ w_k, keys]"),
            ("[values, x @ w_v]", "[x @ w_v, values]"),
            diagnosis="The new key and value go to the **end**: position t comes after the others.",
        ),
        slip(
            "no-scale",
            cached_step,
            (" / math.sqrt(keys.shape[-1])", ""),
            diagnosis="The scores are not scaled by the root of the head width.",
        ),
        slip(
            "scaled-by-model-width",
            cached_step,
            ("math.sqrt(keys.shape[-1])", "math.sqrt(x.shape[-1])"),
            diagnosis="You divide by the root of d. The scale is the root of the **head** width, of queries and keys.",
        ),
        slip(
            "scaled-by-length",
            cached_step,
            ("math.sqrt(keys.shape[-1])", "math.sqrt(keys.shape[1])"),
            diagnosis="The scale is the root of the head width, not of the number of keys.",
        ),
        slip(
            "keys-as-values",
            cached_step,
            ("[values, x @ w_v]", "[values, x @ w_k]"),
            diagnosis="The new value comes from w_v.",
        ),
        slip(
            "newest-alone",
            cached_step,
            ("softmax(dim=-1) @ values,", "softmax(dim=-1)[..., -1:] @ values[:, -1:],"),
            diagnosis="The step must read all cached values, not only the newest.",
        ),
        slip(
            "softmax-over-batch",
            cached_step,
            ("softmax(dim=-1)", "softmax(dim=0)"),
            diagnosis="The weights of each query sum to 1 over the **keys**: the last axis.",
        ),
        slip(
            "keys-exchanged",
            cached_step,
            ("@ values, keys, values", "@ values, values, keys"),
            diagnosis="Return the output, then the keys, then the values.",
        ),
    ),
    _step_cases,
    _use_step,
)
