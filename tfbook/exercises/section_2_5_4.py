"""The exercises of section 2.5.4, the three layouts and their masks."""

import random
from typing import Any

from tfbook.accounting import attention_shapes
from tfbook.config import TransformerConfig
from tfbook.exercises.authoring import ask, choose, find_bug, no, pick, write
from tfbook.exercises.compound import Blank, Blanks, Ordering
from tfbook.exercises.engine import Exercise, drawn
from tfbook.exercises.kinds import Expression, Integer, Shape

S = "2.5.4"


def _who_reads(length: int, source: int, position: int) -> Exercise:
    names = (
        "among the T, without a mask",
        "among the T, with the causal mask",
        "in cross-attention to the source",
    )
    kinds = tuple(Blank(name, Integer()) for name in names)
    return ask(
        S,
        Blanks(kinds),
        (length, position, source),
        (
            "without-itself",
            (None, position - 1, None),
            "A position reads itself too: its own key is at its own place, which the causal mask allows.",
        ),
        (
            "decoder-reads-all",
            (None, length, None),
            "In a decoder nobody reads ahead: the causal mask removes what comes later.",
        ),
        (
            "encoder-causal",
            (position, None, None),
            "An encoder has no causal mask: every position reads the whole input.",
        ),
        (
            "cross-causal",
            (None, None, position),
            "Cross-attention reads the whole source, which is finished before writing starts.",
        ),
        (
            "cross-own-side",
            (None, None, length),
            "The keys of cross-attention come from the source, of length S.",
        ),
        id="layout-who-reads",
        title="How many keys does a position read?",
        prompt=f"A sequence of T = {length} positions attends to itself, once without a mask, as in an encoder, and once with the causal mask, as in a decoder. Then the decoder's positions read a source of S = {source}. How many keys may position {position} (counted from 1) read each time?",
        hints=(
            "Which of the three has a mask that forbids the future?",
            "Where do the keys of cross-attention come from?",
        ),
        solution=f"An encoder reads all {length}; a decoder the {position} up to and including its own; cross-attention all {source} of the source.",
    )


def _cross_scores() -> Exercise:
    config = TransformerConfig(d_model=512, n_heads=8)
    batch, length, source = 4, 20, 50
    truth = next(row.shape for row in attention_shapes(config, batch, length, source) if row.name == "scores")
    return ask(
        S,
        Shape(),
        truth,
        (
            "source-first",
            (batch, 8, source, length),
            "Rows are queries, and the queries come from the side being written (T).",
        ),
        (
            "target-by-target",
            (batch, 8, length, length),
            "Those are the scores of self-attention. The keys of cross-attention are the source's.",
        ),
        ("source-by-source", (batch, 8, source, source), "Those are the encoder's own scores."),
        ("no-heads", (batch, length, source), "Each of the 8 heads has scores of its own."),
        (
            "width",
            (batch, 8, length, 64),
            "That is a head's output. The scores compare positions with positions.",
        ),
        id="layout-cross-shape",
        title="The scores of cross-attention",
        prompt=f"d = 512, H = 8. A batch of {batch} targets of {length} tokens reads sources of {source} tokens. What shape have the scores of cross-attention?",
        hints=("One row for each query, one column for each key.",),
        solution=f"(B, H, T, S) = {truth}: the queries from the target, the keys from the source.",
    )


def _direction() -> Exercise:
    return choose(
        S,
        no(
            "queries from the encoder, keys and values from the decoder",
            "reversed",
            "Then there would be one output for each **source** position, and nothing for the word to be written.",
        ),
        no(
            "queries and keys from the decoder, values from the encoder",
            "mixed",
            "Weights over T keys cannot average S values: keys and values come in pairs, from the same side.",
        ),
        "queries from the decoder, keys and values from the encoder",
        no(
            "all three from the encoder, added to the decoder's states",
            "all-encoder",
            "That is the encoder's self-attention once more. The decoder's states must ask.",
        ),
        id="layout-direction",
        title="Who asks?",
        prompt="In cross-attention, what comes from where?",
        hints=(
            "The side that is being written knows what it lacks.",
            "How many outputs are needed: one for each source token, or for each target token?",
        ),
        solution="The decoder asks (queries), the encoder answers (keys and values): one output for each position that is written.",
    )


def _chunk(draw: random.Random) -> dict[str, int]:
    queries = draw.randint(2, 12)
    return {"T": queries, "S": queries + draw.randint(0, 9)}


def _pairs() -> Exercise:
    return ask(
        S,
        Expression(_chunk),
        "T(T + 1)/2 + T (S - T)",
        ("all", "T S", "That is every pair. The mask forbids keys after the query's own position."),
        (
            "square",
            "T(T + 1)/2",
            "That counts the new tokens among themselves. They also read the S - T that are cached.",
        ),
        ("strict", "T(T - 1)/2 + T (S - T)", "Each query reads its own key too: the diagonal is allowed."),
        ("half", "T S / 2", "Half of all pairs is near for T = S, and the diagonal is missing."),
        id="layout-pairs",
        title="Count the pairs of a chunk",
        prompt="A decoder has S - T tokens in its cache and reads T new ones in one chunk, so there are S keys in all. How many (query, key) pairs does the causal mask allow, per head? Give a formula in T and S.",
        hints=(
            "Each of the T queries reads all S - T cached keys.",
            "Among the new ones, query t reads t of them (counted from 1).",
        ),
        solution="$T(S - T)$ with the cached keys, and $1 + 2 + \\dots + T = T(T+1)/2$ among the new ones.",
    )


def _prefix(prefix: int, total: int) -> Exercise:
    truth = prefix * prefix + sum(range(prefix + 1, total + 1))
    return ask(
        S,
        Integer(),
        truth,
        (
            "causal",
            total * (total + 1) // 2,
            "That is the causal mask. In a prefix LM the prefix reads itself in both directions.",
        ),
        ("prefix-only", prefix**2, "The tokens after the prefix read too: each all before it and itself."),
        (
            "rest-causal-alone",
            prefix**2 + (total - prefix) * (total - prefix + 1) // 2,
            "The tokens after the prefix also read the whole prefix.",
        ),
        ("everything", total**2, "Only the prefix is bidirectional; what follows is causal."),
        (
            "prefix-reads-on",
            truth + prefix * (total - prefix),
            "The prefix does not read what comes after it.",
        ),
        id="layout-prefix",
        title="A fourth mask",
        prompt=f"A prefix LM reads its first {prefix} tokens in both directions and writes the rest causally. Of {total} tokens in all, how many (query, key) pairs are allowed?",
        hints=("The prefix: every token reads every token of it.", "Behind it: token t reads t keys."),
        solution=f"${prefix}^2 = {prefix**2}$ in the prefix and ${prefix + 1} + \\dots + {total} = {truth - prefix**2}$ behind it: {truth}.",
    )


def _what_differs() -> Exercise:
    return choose(
        S,
        no("their feed-forward layers", "feed-forward", "The same layer stands in both."),
        no(
            "the number of parameters in a block",
            "parameters",
            "Without cross-attention the two blocks have exactly the same weights.",
        ),
        "the mask of self-attention",
        no("that a decoder has no residual connections", "residual", "Both have them around every sublayer."),
        id="layout-what-differs",
        title="Encoder or decoder?",
        prompt="What makes the same stack of blocks (without cross-attention) an encoder or a decoder?",
        hints=("In this book's code, `Stack(config, causal=...)` makes either.",),
        solution="The mask alone: with the causal mask a decoder, without it an encoder.",
        praise="Right: one boolean.",
    )


def _default() -> Exercise:
    return choose(
        S,
        "many tasks can be put as continuation of a text, so one model serves them all",
        no(
            "it was proved that encoder-decoders cannot be scaled",
            "proved",
            "No such proof exists; encoder-decoders are in use for speech and translation.",
        ),
        "one causal implementation serves training, the key/value cache and streaming",
        no(
            "a decoder needs no padding mask, whichever side is padded",
            "padding",
            "With padding on the left it needs one; on the right causality protects the real tokens. Neither is why it became the default.",
        ),
        no(
            "a decoder computes fewer FLOPs a token than an encoder of the same size",
            "flops",
            "Projections and feed-forward cost the same. A kernel that skips masked pairs saves half of the score work: not why it became the default.",
        ),
        many=True,
        id="layout-default",
        title="Why decoder-only became the default",
        prompt="Most language models of today are decoders alone. Which of these are true, and speak for it?",
        hints=("Which are engineering, and which claim more?",),
        solution="a and c: a convergence of engineering, not a proof that the others are useless.",
    )


def _order() -> Exercise:
    kind = Ordering(
        (
            "the decoder's state asks the source's keys",
            "the encoder reads the whole source",
            "the last state gives logits for the next word",
            "the start token passes masked self-attention",
        )
    )
    return ask(
        S,
        kind,
        ("b", "d", "a", "c"),
        (
            "cross-first",
            ("b", "a", "d", "c"),
            "In a decoder block self-attention comes before cross-attention: first what is written, then what is read.",
        ),
        ("self-first", ("d", "b", "a", "c"), "The source is read before the decoder starts."),
        (
            "logits-before-cross",
            ("b", "d", "c", "a"),
            "The logits come last, from the state after cross-attention.",
        ),
        id="layout-order",
        title="A step of translation",
        prompt="An encoder-decoder reads a source and then writes its first word. Its decoder has one block. Put the events of this forward pass in order, as this book's code runs them.",
        hints=("The source is read once, before anything is written.",),
        solution="b, d, a, c: the encoder, then in the decoder self-attention, cross-attention and the output head.",
    )


def _find_bug() -> Exercise:
    return find_bug(
        S,
        4,
        pick(
            "keep = ones.tril(diagonal=S - T)",
            no(
                "keep = ones.triu(diagonal=S - T)",
                "upper",
                "The upper triangle is the future: exactly what must be removed.",
            ),
            no(
                "keep = ones.tril(diagonal=T - S)",
                "sign",
                "With T - S the triangle moves to the left, and the new queries lose what they may read.",
            ),
        ),
        ("ones", 3, "One entry for each pair of query and key, (T, S): right."),
        ("fill", 5, "Filling where the mask is False is right."),
        ("sizes", 2, "The sizes are right: T queries, S keys."),
        listing="""
def causal_scores(scores):      # (B, H, T, S), the last T of S positions ask
    T, S = scores.shape[-2:]
    ones = torch.ones(T, S, dtype=torch.bool)
    keep = ones.tril()
    return scores.masked_fill(~keep, float('-inf'))
""",
        id="layout-find-bug",
        title="Find the bug: a mask that is right only at first",
        prompt="On a whole sequence (T = S) this is right. With keys in a cache (T < S) it hides what may be read. Which line, and how should it read?",
        hints=(
            "Take T = 1 and S = 5: which keys does the single query keep?",
            "The last query must keep all S keys.",
        ),
        solution="Line 4 aligns the triangle with the first key. Query t stands at position t + (S - T): `ones.tril(diagonal=S - T)`.",
    )


def _code(name: str, id: str, title: str, prompt: str, hints: tuple[str, ...], remark: str) -> Exercise:
    return write(S, "layout_code", name, remark, id=id, title=title, prompt=prompt, hints=hints)


def _draw_reads(draw: random.Random) -> dict[str, int]:
    length = draw.randint(4, 12)
    return {"length": length, "source": length + draw.randint(1, 9), "position": draw.randint(2, length - 1)}


def _draw_prefix(draw: random.Random) -> dict[str, int]:
    prefix = draw.randint(2, 9)
    return {"prefix": prefix, "total": prefix + draw.randint(2, 9)}


EXERCISES: tuple[Any, ...] = (
    drawn(_who_reads, _draw_reads, length=6, source=9, position=4),
    _what_differs(),
    _cross_scores(),
    _direction(),
    drawn(_prefix, _draw_prefix, prefix=4, total=10),
    _order(),
    _pairs(),
    _default(),
    _find_bug(),
    _code(
        "causal_mask",
        "causal-mask-code",
        "Code: the causal mask of a chunk",
        "Write `causal_mask(queries, keys)`: a boolean tensor (queries, keys), True where a query may read a key. The queries are the **last** of the keys' positions, as with a cache.",
        (
            "Query t stands at position t + (keys - queries).",
            "`torch.ones(..., dtype=torch.bool).tril(diagonal=...)`",
        ),
        "For one query it is all True: a single new token may read everything.",
    ),
    _code(
        "attend",
        "masked-attention-code",
        "Code: attention with a mask",
        "Write `attend(query, key, value, mask)`: scaled dot-product attention of (B, H, T, d_h), (B, H, S, d_h) and (B, H, S, d_v) with a boolean mask (T, S), True where a query may read. Every query may read something.",
        (
            "Scale, mask, softmax over the keys, average.",
            "Mask the **scores**, with minus infinity, before the softmax.",
        ),
        "The mask comes before the softmax, so that the rows still sum to 1.",
    ),
    _code(
        "cross_attention",
        "cross-attention-code",
        "Code: cross-attention of one head",
        "Write `cross_attention(x, memory, w_q, w_k, w_v)`: one head, x (B, T, d) is being written, memory (B, S, d) was read; weights (d, d_h) multiply from the right. Returns (B, T, d_h).",
        ("Who asks, and who answers?", "The scores are (B, T, S)."),
        "Queries from x, keys and values from memory; no causal mask, since the source is complete.",
    ),
)
