"""The code exercises of section 2.5.1: references, slips and cases. Imports torch.

Each slip is the reference with one fragment replaced, so that it differs in that alone.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from tfbook.exercises.code import Case, CodeTask, slip


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(B, T, H d_h) -> (B, H, T, d_h)."""
    batch, length, width = x.shape
    return x.reshape(batch, length, n_heads, width // n_heads).transpose(1, 2)


def _split_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(251)
    for batch, length, heads, width in ((1, 2, 2, 1), (1, 1, 3, 2), (2, 3, 4, 5), (2, 5, 1, 4)):
        yield torch.randn(batch, length, heads * width, generator=draw), heads


SPLIT_HEADS = CodeTask(
    split_heads,
    (
        slip(
            "split-without-transpose",
            split_heads,
            ("length, n_heads, width // n_heads).transpose(1, 2)", "n_heads, length, width // n_heads)"),
            diagnosis=(
                "The shape is right and the content is not: one `reshape` straight to (B, H, T, d_h) cuts the "
                "numbers in memory order, so a head gets pieces of several positions. Cut the last axis first, "
                "(B, T, H, d_h), then swap the axes of positions and heads."
            ),
        ),
        slip(
            "heads-not-moved",
            split_heads,
            (".transpose(1, 2)", ""),
            diagnosis=(
                "You have (B, T, H, d_h): the last axis is cut correctly. The matrix product works on the last two "
                "axes, which must be positions and head width: swap axes 1 and 2."
            ),
        ),
        slip(
            "interleaved",
            split_heads,
            ("n_heads, width // n_heads).transpose(1, 2)", "width // n_heads, n_heads).permute(0, 3, 1, 2)"),
            diagnosis=(
                "You gave head h every H-th coordinate. By the definition head h owns the **contiguous** slice from "
                "h d_h to (h + 1) d_h: split the last axis as (H, d_h), heads first."
            ),
        ),
        slip(
            "transposed-heads",
            split_heads,
            (".transpose(1, 2)", ".permute(0, 2, 3, 1)"),
            diagnosis=(
                "You have (B, H, d_h, T). That is the layout of K transposed; the split itself keeps positions "
                "before width."
            ),
        ),
        slip(
            "heads-for-width",
            split_heads,
            ("n_heads, width // n_heads)", "width // n_heads, n_heads)"),
            diagnosis="You made d_h heads of width H: the two factors of the last axis are exchanged.",
        ),
        slip(
            "heads-before-batch",
            split_heads,
            (".transpose(1, 2)", ".permute(2, 0, 1, 3)"),
            diagnosis="You have (H, B, T, d_h). The batch stays first, so that a mask or a cache finds it there.",
        ),
    ),
    _split_cases,
)


def multi_head_attention(
    x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, n_heads: int
) -> Tensor:
    """x (B, T, d), weights (d, d) used as x @ w -> (B, T, d). No biases, no mask."""
    query, key, value = (split_heads(x @ w, n_heads) for w in (w_q, w_k, w_v))  # (B, H, T, d_h)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (B, H, T, T)
    heads = scores.softmax(dim=-1) @ value  # (B, H, T, d_h)
    return heads.transpose(1, 2).flatten(2) @ w_o  # (B, T, d)


def _attention_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(251)
    # Sizes all different, and scores of order one: a saturated softmax would hide a missing scale.
    for batch, length, heads, width in ((1, 2, 1, 2), (1, 3, 2, 3), (2, 5, 3, 4)):
        d = heads * width
        weights = (1.2 * torch.randn(d, d, generator=draw) / math.sqrt(d) for _ in range(4))
        yield torch.randn(batch, length, d, generator=draw), *weights, heads


MULTI_HEAD_ATTENTION = CodeTask(
    multi_head_attention,
    (
        slip(
            "no-scale",
            multi_head_attention,
            (" / math.sqrt(query.shape[-1])", ""),
            diagnosis=(
                "The scores are not divided by $\\sqrt{d_h}$. Nothing fails at first; the softmax just grows too "
                "sharp as heads widen."
            ),
        ),
        slip(
            "scale-by-model-width",
            multi_head_attention,
            ("query.shape[-1]", "x.shape[-1]"),
            diagnosis=(
                "You divide by $\\sqrt{d}$. Each head takes inner products of $d_h$ terms, so the scale is "
                "$\\sqrt{d_h}$."
            ),
        ),
        slip(
            "scale-without-root",
            multi_head_attention,
            ("math.sqrt(query.shape[-1])", "query.shape[-1]"),
            diagnosis=(
                "You divide by $d_h$ rather than $\\sqrt{d_h}$: the standard deviation of a sum of $d_h$ terms "
                "grows with the root."
            ),
        ),
        slip(
            "softmax-over-queries",
            multi_head_attention,
            ("softmax(dim=-1)", "softmax(dim=-2)"),
            diagnosis=(
                "The softmax runs over the queries. Each **query** shares out one unit of attention among the "
                "keys: normalise over the last axis."
            ),
        ),
        slip(
            "softmax-over-heads",
            multi_head_attention,
            ("softmax(dim=-1)", "softmax(dim=1)"),
            diagnosis=(
                "The softmax runs over the heads, which makes them compete. Heads do not talk to each other: "
                "normalise over the keys, the last axis."
            ),
        ),
        slip(
            "values-from-keys",
            multi_head_attention,
            ("(w_q, w_k, w_v)", "(w_q, w_k, w_k)"),
            diagnosis="The values are made with W_K. Keys say what is found, values what is returned: use W_V.",
        ),
        slip(
            "no-output-map",
            multi_head_attention,
            (" @ w_o", ""),
            diagnosis="The heads are concatenated but never mixed: multiply by W_O at the end.",
        ),
        slip(
            "merge-without-transpose",
            multi_head_attention,
            ("heads.transpose(1, 2).flatten(2)", "heads.reshape(x.shape)"),
            diagnosis=(
                "The heads are put together by `reshape` straight from (B, H, T, d_h), which mixes up positions. "
                "Swap heads and positions back first."
            ),
        ),
        slip(
            "split-without-transpose",
            multi_head_attention,
            ("split_heads(x @ w, n_heads)", "(x @ w).reshape(len(x), n_heads, x.shape[1], -1)"),
            diagnosis=(
                "The heads are cut by `reshape` straight to (B, H, T, d_h), which mixes up positions. Cut the "
                "last axis, then swap axes 1 and 2."
            ),
        ),
        slip(
            "single-head",
            multi_head_attention,
            ("split_heads(x @ w, n_heads)", "split_heads(x @ w, 1)"),
            diagnosis="This is one head of width d: `n_heads` has no effect. Split before the scores.",
        ),
        slip(
            "query-key-swapped",
            multi_head_attention,
            ("(w_q, w_k, w_v)", "(w_k, w_q, w_v)"),
            diagnosis="Queries and keys have changed places: the scores are $K Q^\\top$. Row t must belong to query t.",
        ),
        slip(
            "weights-transposed",
            multi_head_attention,
            ("(x @ w, n_heads)", "(x @ w.T, n_heads)"),
            diagnosis=(
                "The weights here are used as `x @ w` (rows are positions). `nn.Linear` stores the transpose; a "
                "plain matrix does not."
            ),
        ),
        slip(
            "split-and-merge-by-reshape",
            multi_head_attention,
            ("split_heads(x @ w, n_heads)", "(x @ w).reshape(len(x), n_heads, x.shape[1], -1)"),
            ("heads.transpose(1, 2).flatten(2)", "heads.reshape(x.shape)"),
            diagnosis=(
                "Both the split and the merge are a `reshape` in memory order, which mixes up heads and positions. "
                "Cut the last axis and swap axes 1 and 2; merge by swapping them back, then flattening."
            ),
        ),
        slip(
            "values-and-keys-swapped",
            multi_head_attention,
            ("(w_q, w_k, w_v)", "(w_q, w_v, w_k)"),
            diagnosis="Keys are made with W_V and values with W_K: the two have changed places.",
        ),
        slip(
            "output-map-transposed",
            multi_head_attention,
            (" @ w_o", " @ w_o.T"),
            diagnosis="W_O is used transposed. All four weights are used as `x @ w`.",
        ),
        slip(
            "no-softmax",
            multi_head_attention,
            (".softmax(dim=-1)", ""),
            diagnosis="The scores mix the values directly: there is no softmax, so the rows do not sum to 1.",
        ),
        slip(
            "causal",
            multi_head_attention,
            (
                "scores.softmax(dim=-1)",
                "scores.masked_fill(~torch.ones_like(scores).tril().bool(), -math.inf).softmax(dim=-1)",
            ),
            diagnosis="You added a causal mask. None is asked for: every position may read every other.",
        ),
        slip(
            "residual-added",
            multi_head_attention,
            (" @ w_o", " @ w_o + x"),
            diagnosis="You added x to the result. The residual connection belongs to the block around this layer.",
        ),
        slip(
            "no-scale-and-merge-without-transpose",
            multi_head_attention,
            (" / math.sqrt(query.shape[-1])", ""),
            ("heads.transpose(1, 2).flatten(2)", "heads.reshape(x.shape)"),
            diagnosis="Two things: the scores are not divided by $\\sqrt{d_h}$, and the merge by `reshape` mixes up positions.",
        ),
    ),
    _attention_cases,
)


def attention_weights(query: Tensor, key: Tensor, mask: Tensor) -> Tensor:
    """query (B, H, T, d_h), key (B, n_kv, S, d_h), mask (T, S), True = may attend -> (B, H, T, S)."""
    key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)  # (B, n_kv, ...) -> (B, H, ...)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)


def _weights_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(251)
    for batch, heads, kv_heads, queries, keys, width in (
        (1, 2, 1, 1, 2, 2),
        (1, 4, 2, 3, 3, 2),
        (1, 3, 3, 2, 4, 2),
        (2, 6, 2, 2, 5, 4),
        (1, 4, 1, 3, 4, 2),
    ):
        mask = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
        mask[-1, 0] = False  # neither symmetric nor plainly causal
        query = torch.randn(batch, heads, queries, width, generator=draw)
        yield query, torch.randn(batch, kv_heads, keys, width, generator=draw), mask


ATTENTION_WEIGHTS = CodeTask(
    attention_weights,
    (
        slip(
            "tiled-heads",
            attention_weights,
            (
                "key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)",
                "key.repeat(1, query.shape[1] // key.shape[1], 1, 1)",
            ),
            diagnosis=(
                "Query heads of one group are neighbours: with H = 4 and n_kv = 2, query heads 0 and 1 share key head 0. "
                "In your function they read key heads 0 and 1."
            ),
        ),
        slip(
            "group-hard-coded",
            attention_weights,
            ("query.shape[1] // key.shape[1]", "2"),
            diagnosis="The group size is taken to be 2. It is H / n_kv, which differs from case to case.",
        ),
        slip(
            "no-mask",
            attention_weights,
            ('.masked_fill(~mask, float("-inf"))', ""),
            diagnosis="The mask has no effect: forbidden keys get weight.",
        ),
        slip(
            "mask-inverted",
            attention_weights,
            ("~mask", "mask"),
            diagnosis=(
                "The mask is read the wrong way round. Here True means **may attend**, so the scores to remove "
                "are those where it is False."
            ),
        ),
        slip(
            "mask-after-softmax",
            attention_weights,
            (
                '.masked_fill(~mask, float("-inf")).softmax(dim=-1)',
                ".softmax(dim=-1).masked_fill(~mask, 0.0)",
            ),
            diagnosis=(
                "You mask after the softmax, so the rows no longer sum to 1: the forbidden keys took their share "
                "before they were removed. Mask the scores."
            ),
        ),
        slip(
            "mask-with-zero",
            attention_weights,
            ('float("-inf")', "0.0"),
            diagnosis="A masked score of 0 is not no attention: $e^0 = 1$. Use $-\\infty$.",
        ),
        slip(
            "no-scale",
            attention_weights,
            (" / math.sqrt(query.shape[-1])", ""),
            diagnosis="The scores are not divided by $\\sqrt{d_h}$.",
        ),
        slip(
            "softmax-over-queries",
            attention_weights,
            ("softmax(dim=-1)", "softmax(dim=-2)"),
            diagnosis="The softmax runs over the queries; normalise over the keys, the last axis.",
        ),
    ),
    _weights_cases,
)
