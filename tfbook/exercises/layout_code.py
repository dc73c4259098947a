"""The code exercises of section 2.5.4: references, slips and cases. Imports torch."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from tfbook.exercises.code import Case, CodeTask, slip


def causal_mask(queries: int, keys: int) -> Tensor:
    """(queries, keys) booleans, True where a query may read a key; queries are the last positions."""
    return torch.ones(queries, keys, dtype=torch.bool).tril(diagonal=keys - queries)


def _mask_cases() -> Iterator[Case]:
    yield from ((1, 1), (2, 2), (1, 3), (2, 5), (4, 4), (3, 7))


CAUSAL_MASK = CodeTask(
    causal_mask,
    (
        slip(
            "aligned-to-the-first-key",
            causal_mask,
            ("diagonal=keys - queries", "diagonal=0"),
            diagnosis="Right for queries = keys. With keys in a cache the triangle must end at the last key: the queries are the last positions.",
        ),
        slip(
            "future",
            causal_mask,
            ("tril(diagonal=keys - queries)", "triu(diagonal=keys - queries)"),
            diagnosis="You allow the future and forbid the past: True means **may read**.",
        ),
        slip(
            "forbidden",
            causal_mask,
            ("return torch.ones", "return ~torch.ones"),
            diagnosis="Your mask is True where reading is forbidden. Here True means may read.",
        ),
        slip(
            "strict",
            causal_mask,
            ("keys - queries)", "keys - queries - 1)"),
            diagnosis="A query reads its own position too: the diagonal belongs to the allowed part.",
        ),
        slip(
            "one-ahead",
            causal_mask,
            ("keys - queries)", "keys - queries + 1)"),
            diagnosis="Your mask lets each query read one key of its future.",
        ),
        slip(
            "everything",
            causal_mask,
            (".tril(diagonal=keys - queries)", ""),
            diagnosis="Your mask allows everything: nothing keeps a query from its future.",
        ),
        slip(
            "transposed",
            causal_mask,
            ("queries, keys, dtype", "keys, queries, dtype"),
            diagnosis="Rows are queries and columns keys: (queries, keys).",
        ),
        slip(
            "not-boolean",
            causal_mask,
            (", dtype=torch.bool", ""),
            diagnosis="The mask holds numbers. Make it boolean: `dtype=torch.bool`.",
        ),
    ),
    _mask_cases,
)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """(B, H, T, d_h), (B, H, S, d_h), (B, H, S, d_v), mask (T, S) -> (B, H, T, d_v)."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return weights @ value


def _attend_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(257)
    for batch, heads, t, s, d_h, d_v in ((1, 1, 1, 2, 2, 2), (1, 1, 2, 3, 4, 2), (2, 3, 4, 6, 5, 3)):
        sizes = ((batch, heads, t, d_h), (batch, heads, s, d_h), (batch, heads, s, d_v))
        yield (
            *(torch.randn(size, generator=draw) for size in sizes),
            causal_mask(t, s) if t > 1 else torch.tensor([[True, False]]),
        )


ATTEND = CodeTask(
    attend,
    (
        slip(
            "no-scale",
            attend,
            (" / math.sqrt(query.shape[-1])", ""),
            diagnosis="The scores are not scaled: divide by the root of the head width.",
        ),
        slip(
            "scaled-by-width",
            attend,
            ("math.sqrt(query.shape[-1])", "query.shape[-1]"),
            diagnosis="You divide by d_h; it is its root.",
        ),
        slip(
            "scaled-by-values",
            attend,
            ("math.sqrt(query.shape[-1])", "math.sqrt(value.shape[-1])"),
            diagnosis="The scale is the root of the width of **queries and keys**, not of the values.",
        ),
        slip(
            "mask-inverted",
            attend,
            ("~mask", "mask"),
            diagnosis="You remove what may be read. True means may read, so fill where the mask is False.",
        ),
        slip(
            "mask-inverted-softly",
            attend,
            ('scores.masked_fill(~mask, float("-inf"))', "scores.masked_fill(mask, -1e9)"),
            diagnosis="You remove what may be read. True means may read, so fill where the mask is False.",
        ),
        slip(
            "no-mask", attend, ('.masked_fill(~mask, float("-inf"))', ""), diagnosis="The mask is not used."
        ),
        slip(
            "masked-after",
            attend,
            (
                '.masked_fill(~mask, float("-inf")).softmax(dim=-1)',
                ".softmax(dim=-1).masked_fill(~mask, 0.0)",
            ),
            diagnosis="You mask after the softmax, so the rows no longer sum to 1. Mask the scores before it.",
        ),
        slip(
            "masked-with-zero",
            attend,
            ('float("-inf")', "0.0"),
            diagnosis="A score of 0 still gets weight: exp(0) = 1. Fill with minus infinity.",
        ),
        slip(
            "softmax-over-queries",
            attend,
            ("softmax(dim=-1)", "softmax(dim=-2).nan_to_num()"),
            diagnosis="The softmax runs over the queries. Each query's weights over its **keys** sum to 1: the last axis.",
        ),
        slip(
            "keys-as-values",
            attend,
            ("weights @ value", "(weights @ key)[..., : value.shape[-1]]"),
            diagnosis="You average the keys. What is passed on are the values.",
        ),
    ),
    _attend_cases,
)


def cross_attention(x: Tensor, memory: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Tensor:
    """x (B, T, d), memory (B, S, d), weights (d, d_h) -> (B, T, d_h)."""
    query, key, value = x @ w_q, memory @ w_k, memory @ w_v
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (B, T, S)
    return scores.softmax(dim=-1) @ value


def _cross_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(258)
    for batch, t, s, d, d_h in ((1, 1, 2, 2, 2), (1, 3, 3, 2, 3), (2, 3, 5, 4, 2)):
        sizes = ((batch, t, d), (batch, s, d), (d, d_h), (d, d_h), (d, d_h))
        yield tuple(torch.randn(size, generator=draw) for size in sizes)


CROSS_ATTENTION = CodeTask(
    cross_attention,
    (
        slip(
            "reversed",
            cross_attention,
            ("x @ w_q, memory @ w_k, memory @ w_v", "memory @ w_q, x @ w_k, x @ w_v"),
            diagnosis="You let the source ask. The queries come from x, the side being written.",
        ),
        slip(
            "self-attention",
            cross_attention,
            ("memory @ w_k, memory @ w_v", "x @ w_k, x @ w_v"),
            diagnosis="That is self-attention: the source is never read. Keys and values come from memory.",
        ),
        slip(
            "own-keys",
            cross_attention,
            ("memory @ w_k", "(x @ w_k).mean(1, keepdim=True) + 0 * memory @ w_k"),
            diagnosis="The keys must come from memory, each from its own source position.",
        ),
        slip(
            "no-scale",
            cross_attention,
            (" / math.sqrt(query.shape[-1])", ""),
            diagnosis="The scores are not scaled by the root of the head width.",
        ),
        slip(
            "scaled-by-model-width",
            cross_attention,
            ("math.sqrt(query.shape[-1])", "math.sqrt(x.shape[-1])"),
            diagnosis="You divide by the root of d. The scale is the root of the **head** width, of queries and keys.",
        ),
        slip(
            "softmax-over-queries",
            cross_attention,
            ("softmax(dim=-1)", "softmax(dim=-2)"),
            diagnosis="The softmax must run over the source positions: the last axis.",
        ),
        slip(
            "values-from-key-map",
            cross_attention,
            ("memory @ w_v", "memory @ w_k"),
            diagnosis="The values have a map of their own, w_v.",
        ),
        slip(
            "causal",
            cross_attention,
            (
                "scores.softmax",
                "scores.tril().masked_fill(torch.ones_like(scores).tril() == 0, float('-inf')).softmax",
            ),
            diagnosis="You masked the future. The source is complete: cross-attention needs no causal mask.",
        ),
    ),
    _cross_cases,
)
