"""The exercises of section 2.5.7, build it and verify it."""

import random
from fractions import Fraction
from typing import Any

from tfbook.accounting import count_parameters
from tfbook.config import TransformerConfig
from tfbook.exercises.authoring import ask, choose, find_bug, no, pick, write
from tfbook.exercises.compound import Blank, Blanks, Number, Ordering
from tfbook.exercises.engine import Exercise, drawn
from tfbook.exercises.kinds import Expression, Integer

S = "2.5.7"


def _block(d: int) -> Exercise:
    config = TransformerConfig(
        d_model=d, n_heads=1, n_layers=1, norm="rmsnorm", activation="silu", qkv_bias=False, output_bias=False
    )
    truth = count_parameters(config).part("decoder").part("block").total
    return ask(
        S,
        Integer(),
        truth,
        (
            "layernorm-account",
            12 * d * d + 13 * d,
            "That is the block of 2.5.5, with LayerNorm and all biases. This one has RMSNorm, and biases in the feed-forward layer alone.",
        ),
        ("no-norms", 12 * d * d + 5 * d, "The two RMSNorms have a gain of d each."),
        ("no-biases", 12 * d * d + 2 * d, "The feed-forward layer has biases: 4 d and d."),
        ("matrices", 12 * d * d, "Those are the matrices alone."),
        ("norms-with-bias", 12 * d * d + 9 * d, "RMSNorm has a gain and no bias."),
        ("one-norm", 12 * d * d + 6 * d, "There are two norms."),
        id="build-block-count",
        title="Count the block you build",
        prompt=f"A Pre-LN block of width d = {d}, attention without biases, RMSNorm, a SiLU feed-forward layer of two matrices **with** biases, d_ff = 4d. How many parameters?",
        hints=("12 d² in matrices.", "5 d in biases, 2 d in gains."),
        solution=f"$12 d^2 + 7 d = {truth:,}$.",
    )


def _query(draw: random.Random) -> dict[str, int]:
    queries = draw.randint(6, 12)
    return {"t": draw.randint(0, 5), "T": queries, "S": queries + draw.randint(0, 9)}


def _rule() -> Exercise:
    return ask(
        S,
        Expression(_query),
        "t + S - T",
        ("no-offset", "t", "That aligns the first query with the first key, which holds only when T = S."),
        ("whole-cache", "S - T", "That is the cached part. The query also reads the new keys up to its own."),
        (
            "all-keys",
            "S - 1",
            "That lets every query read to the end: the first of a chunk would see its future.",
        ),
        (
            "backwards",
            "t + T - S",
            "The sign: with more keys than queries the queries stand **later**, so the offset is S - T.",
        ),
        ("one-more", "t + S - T + 1", "One too many: that is the future's first key."),
        id="verify-mask-rule",
        title="The last key a query may read",
        prompt="T new queries and S keys in all (S - T of them cached), both counted from 0. Up to which key s may query t read? Give the largest s as a formula in t, T and S.",
        hints=("At which position of the sequence does query t stand?", "For T = S it is t."),
        solution="Query t stands at position t + (S - T) and reads up to itself: $s \\le t + (S - T)$.",
    )


def _blind_spots() -> Exercise:
    return choose(
        S,
        "the scale of the scores is missing",
        no(
            "in one pass, every position reads the future",
            "future",
            "The test sees it: in one pass the future is read, step by step there is none to read.",
        ),
        "values are computed from the key map",
        no(
            "heads are split without a transpose, so that positions get mixed (`view(B, H, T, d_h)`)",
            "axis",
            "The test sees it: positions get mixed differently when they come one by one.",
        ),
        "Post-LN is written where Pre-LN was meant",
        many=True,
        id="verify-blind-spots",
        title="What the consistency test cannot see",
        prompt="Step-by-step decoding equals the full pass. Which faults can hide from this test?",
        hints=("Which faults do the same in both ways of computing?",),
        solution="a, c and e: both ways commit them alike. Parity with a reference sees them; the consistency test sees what treats positions differently.",
    )


def _tolerance() -> Exercise:
    return choose(
        S,
        no(
            "1e-12, since the two are mathematically equal",
            "too-strict",
            "float32 carries about 7 digits: equal formulas in another order differ by about 1e-6 of the size.",
        ),
        "relative to the size of the numbers, about 1e-5 in float32",
        no(
            "an absolute 1e-5, whatever the size of the activations",
            "absolute",
            "In a deep stack with activations of size 30 a correct implementation errs by more than that.",
        ),
        no(
            "0.1, to be safe",
            "too-loose",
            "At 0.1 real faults pass: a mask off by one may move a logit by less.",
        ),
        id="verify-tolerance",
        title="How equal is equal?",
        prompt="A cached and a full pass are compared in float32. Which tolerance is sensible?",
        hints=("What is the rounding error of one number in float32, relative to its size?",),
        solution="Relative to the size, about 1e-5; in bfloat16 about 1e-1 at depth, in float64 about 1e-12.",
    )


def _padding() -> Exercise:
    return choose(
        S,
        no(
            "nothing: causal attention never reads padding",
            "never",
            "With padding on the **left** every later token reads it, unless a mask forbids it.",
        ),
        "with left padding and no padding mask, the real tokens read the pads and their states change",
        "with right padding the real tokens are unchanged in a causal model",
        no(
            "with right padding decoding can simply go on at the end",
            "append",
            "It would append behind the pads. The new token must follow the last real one.",
        ),
        "a row whose scores are all minus infinity gives NaN in the softmax",
        many=True,
        id="verify-padding",
        title="Padding",
        prompt="A causal decoder runs a batch of texts of unequal length. What is true?",
        hints=("Which positions come **before** a real token, with padding on the left? On the right?",),
        solution="b: a later token reads what stands before it, pads included. c: it never reads what stands behind it. e: the softmax divides zero by zero.",
    )


def _seen(past: int, new: int) -> Exercise:
    total = past + new
    allowed = past * new + new * (new + 1) // 2
    return ask(
        S,
        Blanks(
            (
                Blank("the first new query reads", Integer()),
                Blank("the last new query reads", Integer()),
                Blank("pairs in all", Integer()),
            )
        ),
        (past + 1, total, allowed),
        (
            "no-mask",
            (total, None, None),
            "Without a mask the first query of the chunk would read its future: it reads the cache and itself.",
        ),
        ("cache-only", (past, None, None), "A query reads itself, too."),
        ("all-pairs", (None, None, new * total), "That is every pair; the chunk's own future is forbidden."),
        (
            "cache-forgotten",
            (None, None, new * (new + 1) // 2),
            "Those are the new tokens among themselves; each also reads the cache.",
        ),
        id="verify-chunk",
        title="A second chunk",
        prompt=f"{past} tokens are cached, and a chunk of {new} arrives. How many keys does a query read?",
        hints=("Each new query reads the whole cache, and of the chunk what is not later than itself.",),
        solution=f"The first {past + 1}, the last {total}; together {past} · {new} + {new} · {new + 1}/2 = {allowed}.",
    )


def _depth() -> Exercise:
    return ask(
        S,
        Number(tolerance=Fraction(1, 4)),
        Fraction(12),
        (
            "root",
            Fraction(346, 100),
            "The root holds for nearly uncorrelated steps. Copies of one layer push nearly the same way every time.",
        ),
        ("none", Fraction(1), "Nothing normalizes the trunk of a Pre-LN stack."),
        ("square", Fraction(144), "The steps add; they do not multiply."),
        id="verify-clones",
        title="Predict: twelve copies of one layer",
        prompt="Twelve Pre-LN blocks are copies of one block, as `nn.TransformerEncoder` makes them at construction, and each adds a step of length s to the trunk. If all steps point almost the same way, the trunk's length is about how many s?",
        hints=("How do parallel vectors add?",),
        solution="Parallel steps add like numbers: about 12 s, instead of the root of 12. That is the trap of cloned modules: initialise every layer for itself.",
        run=(
            "import torch\nfrom torch import nn\n\n"
            "torch.manual_seed(0)\n"
            "layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, norm_first=True, batch_first=True)\n"
            "stack = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)  # twelve copies\n"
            "trunk, steps = 1e-3 * torch.randn(1, 16, 64), []\n"
            "with torch.no_grad():\n"
            "    for block in stack.layers:\n"
            "        after = block(trunk)\n"
            "        steps.append((after - trunk).norm())\n"
            "        trunk = after\n"
            "print(trunk.norm() / torch.stack(steps).mean())"
        ),
    )


def _order() -> Exercise:
    kind = Ordering(
        (
            "write its key and value behind those of the past",
            "average all values so far with the weights",
            "project the new token to query, key and value",
            "turn the new query and key to their position",
            "compare the query with all keys so far, scale, softmax",
        )
    )
    return ask(
        S,
        kind,
        ("c", "d", "a", "e", "b"),
        (
            "cached-unturned",
            ("c", "a", "d", "e", "b"),
            "The key is turned **before** it is cached: its position never changes again.",
        ),
        (
            "attend-first",
            ("c", "d", "e", "b", "a"),
            "The new token reads itself too, so its key and value must be in the cache before it attends.",
        ),
        ("turn-first", ("d", "c", "a", "e", "b"), "There is nothing to turn before the projection."),
        id="build-step-order",
        title="A cached step with rotary positions",
        prompt="Put the operations of one cached attention step in order.",
        hints=("Rotary positions act on queries and keys, after the projection.",),
        solution="c, d, a, e, b.",
    )


def _find_bug() -> Exercise:
    return find_bug(
        S,
        6,
        pick(
            no("if cache is not None:", "inverted", "Then a pass without a cache reads its future."),
            no("if T == S:", "square", "A second chunk has T < S and still must not read its own future."),
            "if T > 1:",
        ),
        ("cache-write", 4, "Writing behind the past is right."),
        ("scores", 5, "The scores are right."),
        ("softmax", 8, "The softmax over the keys is right."),
        ("mask", 7, "Line 7 builds the right mask; the question is when it is used."),
        listing="""
def attend(q, k, v, cache=None):
    T = q.shape[-2]
    if cache is not None:
        k, v = cache.extend(k, v)             # S keys in all
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if cache is None:
        scores = scores.masked_fill(~causal_mask(T, k.shape[-2]), -inf)
    return scores.softmax(-1) @ v
""",
        id="verify-find-bug",
        title="Find the bug: the well-known rule",
        prompt="“The mask is only needed without a cache.” One token at a time this is right; a second chunk of 8 tokens errs. Which line, and how should it read? (`causal_mask` is aligned to the last key, S = k.shape[-2].)",
        hints=(
            "What does the first token of the second chunk read?",
            "For which T does the mask change nothing?",
        ),
        solution="Line 6: with T = 1 the aligned mask is all True and can be skipped; with any longer chunk it is needed, cache or not.",
    )


def _draw_chunk(draw: random.Random) -> dict[str, int]:
    return {"past": draw.randint(2, 30), "new": draw.randint(2, 12)}


EXERCISES: tuple[Any, ...] = (
    drawn(_block, lambda draw: {"d": 16 * draw.randint(2, 60)}, d=64),
    drawn(_seen, _draw_chunk, past=8, new=8),
    _rule(),
    _order(),
    _blind_spots(),
    _tolerance(),
    _padding(),
    _depth(),
    _find_bug(),
    write(
        S,
        "norm_code",
        "pre_ln_block",
        "Two lines. The bare x leads through both.",
        id="pre-ln-block-code",
        title="Code: the Pre-LN block",
        prompt="Write `pre_ln_block(x, attention, feed_forward, norm_1, norm_2)`: the last four are functions from (B, T, d) to (B, T, d). Returns (B, T, d).",
        hints=("Norm, sublayer, sum; twice.", "The sum takes x as it came, not its norm."),
    ),
    write(
        S,
        "decoding_code",
        "cached_step",
        "The cache grows first, so that the new token reads itself.",
        id="cached-step-code",
        title="Code: one cached step",
        prompt="Write `cached_step(x, w_q, w_k, w_v, keys, values)` for one head: x (B, 1, d) is the new token's state, keys and values (B, t, d_h) are cached; weights (d, d_h) multiply from the right. Return three tensors: the output (B, 1, d_h), and keys and values with the new token appended. Change nothing in place.",
        hints=(
            "`torch.cat` along the positions.",
            "Append, then attend: one row of t + 1 scores.",
            "No mask is needed for one query: why?",
        ),
    ),
)
