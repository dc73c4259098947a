"""The exercises of section 2.5.6, training and inference."""

import random
from fractions import Fraction
from typing import Any

from tfbook.accounting import decode_bound, kv_cache, preset, weight_memory
from tfbook.accounting.units import format_bytes
from tfbook.config import TransformerConfig
from tfbook.exercises.authoring import ask, choose, find_bug, no, pick, write
from tfbook.exercises.compound import Bytes, Number, Ordering
from tfbook.exercises.engine import Exercise, drawn
from tfbook.exercises.kinds import Expression, Integer

S = "2.5.6"


def _cached(n_layers: int, d: int, n_heads: int, n_kv_heads: int) -> TransformerConfig:
    return TransformerConfig(n_layers=n_layers, d_model=d, n_heads=n_heads, n_kv_heads=n_kv_heads)


def _per_token(n_layers: int, n_heads: int, n_kv_heads: int, d_head: int) -> Exercise:
    truth = kv_cache(_cached(n_layers, n_heads * d_head, n_heads, n_kv_heads)).bytes_per_token
    return ask(
        S,
        Bytes(),
        truth,
        ("float32", 2 * truth, "FP16 takes 2 bytes a number, not 4."),
        (
            "keys-alone",
            truth // 2,
            "A factor of 2 is missing: keys **and** values are kept, and a number takes 2 bytes.",
        ),
        ("one-layer", truth // n_layers, "That is one layer. Every layer keeps its own."),
        (
            "query-heads",
            truth * n_heads // n_kv_heads,
            "You counted query heads. Only the n_kv key/value heads are kept.",
        ),
        (
            "groups",
            truth * n_heads // n_kv_heads // n_kv_heads,
            "You took n_kv for the number of queries that share a head. It is the number of key/value heads.",
        ),
        id="kv-per-token",
        title="One more token",
        prompt=f"L = {n_layers} layers, H = {n_heads} query heads, n_kv = {n_kv_heads}, d_h = {d_head}, FP16. By how much does the cache of a sequence grow with every token? Give a size with its unit.",
        hints=("Two vectors for each key/value head and layer.", "2 · L · n_kv · d_h numbers of 2 bytes."),
        solution=f"$2 \\cdot {n_layers} \\cdot {n_kv_heads} \\cdot {d_head} \\cdot 2 = {truth:,}$ bytes = {format_bytes(truth)}.",
    )


def _draw_cache(draw: random.Random) -> dict[str, int]:
    n_kv = draw.choice([2, 4, 8])
    return {
        "n_layers": draw.choice([16, 24, 32, 48]),
        "n_heads": n_kv * draw.choice([3, 5, 6]),
        "n_kv_heads": n_kv,
        "d_head": draw.choice([64, 128]),
    }


def _whole(batch: int, length: int, n_kv_heads: int) -> Exercise:
    config = _cached(32, 4096, 32, n_kv_heads)
    truth = kv_cache(config, batch, length).bytes
    return ask(
        S,
        Bytes(),
        truth,
        (
            "query-heads",
            truth * 32 // n_kv_heads,
            "You counted the 32 query heads; the cache holds the key/value heads.",
        ),
        ("keys-alone", truth // 2, "Keys and values: a factor of 2 is missing (or 2 bytes a number)."),
        ("one-layer", truth // 32, "You counted one layer of 32."),
        ("one-sequence", truth // batch, "You counted one sequence of the batch."),
        ("one-token", truth // length, "You counted one token."),
        (
            "gb-for-gib",
            truth * 10**9 // 2**30,
            "You divided by $2^{30}$ and wrote GB, or the other way round: GiB is $2^{30}$ bytes, GB is $10^9$.",
        ),
        ("gib-for-gb", truth * 2**30 // 10**9, "You divided by $10^9$ and wrote GiB: GiB is $2^{30}$ bytes."),
        id="kv-whole",
        title="The whole cache",
        prompt=f"L = 32, d = 4096, H = 32, n_kv = {n_kv_heads}, FP16. How large is the cache of B = {batch} sequences of T = {length:,} tokens?",
        hints=(
            "Per token and layer: 2 n_kv d_h numbers, d_h = 128.",
            "Times layers, tokens and sequences; 2 bytes each.",
        ),
        solution=f"$2 \\cdot 32 \\cdot {batch} \\cdot {length} \\cdot {n_kv_heads} \\cdot 128 \\cdot 2$ bytes = {format_bytes(truth)}.",
    )


def _targets(length: int) -> Exercise:
    return ask(
        S,
        Integer(),
        length - 1,
        (
            "all",
            length,
            "The last token has no successor in the text: its prediction cannot be scored, unless one more token is known.",
        ),
        ("one", 1, "Teacher forcing scores every position at once, not only the last."),
        (
            "pairs",
            length * (length - 1) // 2,
            "Each position predicts one next token, from all before it: not one for each pair.",
        ),
        ("two-less", length - 2, "Token 1 predicts token 2, and so on to the last but one: T - 1."),
        id="training-targets",
        title="How many targets?",
        prompt=f"A text of T = {length} tokens, and no more is known of it. How many next-token predictions does one forward pass score?",
        hints=("Which positions have a known successor?",),
        solution=f"Positions 1 to {length - 1} have a successor: {length - 1} targets, all in one pass.",
    )


def _crossing() -> Exercise:
    return ask(
        S,
        Expression(lambda draw: {"d": draw.randint(3, 60)}),
        "6 d",
        (
            "attention-map",
            "2 d",
            "That is where attention equals its own four maps, 8 d². The feed-forward layer has 16 d² FLOPs more.",
        ),
        ("without-values", "12 d", "Scores and averages: 4 t d, not 2 t d."),
        ("width", "d", "24 d² against 4 t d: divide."),
        ("weights-not-flops", "3 d", "Each weight costs 2 FLOPs: 24 d², not 12 d²."),
        id="decode-crossing",
        title="When attention takes half of a step",
        prompt="A cached step at length t costs about 24 d² FLOPs in projections and feed-forward layer and 4 t d in attention, a layer. At which t (a formula in d) are the two equal?",
        hints=("Set 24 d² = 4 t d.",),
        solution="$t = 24 d^2 / 4d = 6d$: for d = 4096 that is 24,576 tokens. Before it, projections and feed-forward layer dominate.",
    )


def _what_a_step_does() -> Exercise:
    return choose(
        S,
        "query, key and value of token t",
        no("keys of all earlier tokens", "keys-again", "They are in the cache: that is its purpose."),
        "one row of scores, over all t keys",
        "the output map and the feed-forward layer, for one position",
        no("logits of all earlier positions", "all-logits", "Only the last position's logits are needed."),
        many=True,
        id="decode-step",
        title="What a cached step computes",
        prompt="Tokens 1 to t - 1 are in the cache; token t comes in, and token t + 1 is to be predicted. What does the step compute?",
        hints=("What of the past is kept, and what was never needed again?",),
        solution="a, c and d. The past's keys and values are read, not computed.",
    )


def _why_serial() -> Exercise:
    return choose(
        S,
        no(
            "nobody has written a parallel implementation yet",
            "engineering",
            "It is no matter of effort: token t + 1 is drawn from a distribution that depends on token t.",
        ),
        no(
            "the cache can be written by one thread only",
            "cache",
            "The cache has nothing to do with it; without one generation is as serial, and slower.",
        ),
        "the next token's distribution depends on the token that is drawn before it",
        no(
            "attention cannot be computed in parallel over positions",
            "attention",
            "It can, and in training and prefill it is.",
        ),
        id="decode-serial",
        title="Why generation is serial",
        prompt="Training scores all positions at once. Why does sampling go token by token?",
        hints=("What must be known before token t + 1 can be drawn?",),
        solution="By the definition of the objective: p(x_{t+1} | x_{≤t}) needs x_t. Batches, several samples, prefill and speculative checks are parallel all the same.",
        praise="Right: the definition is serial, not its implementation.",
    )


def _order() -> Exercise:
    config = _cached(32, 4096, 32, 32)
    sizes = {
        "a": kv_cache(config.replace(n_kv_heads=8), 1, 8192, "int8").bytes,
        "b": kv_cache(config, 1, 8192).bytes,
        "c": kv_cache(config.replace(n_kv_heads=1), 1, 8192).bytes,
        "d": kv_cache(config.replace(n_kv_heads=8), 1, 8192).bytes,
    }
    truth = tuple(sorted(sizes, key=lambda key: sizes[key]))
    kind = Ordering(
        ("n_kv = 8, 8 bits", "n_kv = 32 (MHA), 16 bits", "n_kv = 1 (MQA), 16 bits", "n_kv = 8 (GQA), 16 bits")
    )
    return ask(
        S,
        kind,
        truth,
        ("largest-first", tuple(reversed(truth)), "From the smallest to the largest, please."),
        (
            "bits-first",
            ("a", "c", "d", "b"),
            "Eight bits halve a cache; one head instead of eight divides it by eight.",
        ),
        ("mqa-last", ("a", "d", "b", "c"), "MQA keeps one head: the smallest cache of the four."),
        id="kv-order",
        title="Sort the caches",
        prompt="The same model (H = 32) with four caches, at equal T. Order by size, the smallest first.",
        hints=("Size goes with n_kv times the bytes of a number.",),
        solution="; ".join(f"{key}: {format_bytes(sizes[key])}" for key in truth) + " at T = 8192.",
    )


def _overtakes() -> Exercise:
    config = TransformerConfig(d_model=5120, n_layers=40, n_heads=40)
    weights, each = 2 * 12 * 40 * 5120**2, kv_cache(config, 1, 2048).bytes
    truth = weights // each
    return ask(
        S,
        Integer(),
        truth,
        (
            "with-groups",
            config.n_heads // 8 * truth,
            "That is for n_kv = 8. Here every head has keys and values of its own.",
        ),
        ("one-layer-cache", truth * 40, "The cache has 40 layers too."),
        ("keys-alone", 2 * truth, "Keys and values are kept."),
        id="kv-overtakes",
        title="When the cache overtakes the weights",
        prompt="L = 40, d = 5120, MHA, FP16; about 12 L d² weights. At which batch of sequences of T = 2048 does the cache take as many bytes as the weights?",
        hints=("Weights: 2 · 12 L d² bytes.", f"One sequence: {format_bytes(each)}."),
        solution=f"{format_bytes(weights)} of weights over {format_bytes(each)} a sequence: B = {truth}.",
    )


def _window(length: int, window: int) -> Exercise:
    config = TransformerConfig(n_layers=32, d_model=4096, n_heads=32, n_kv_heads=8, window=window)
    truth = kv_cache(config, 1, length).bytes
    full = kv_cache(config.replace(window=0), 1, length).bytes
    half = config.replace(layer_kinds=("sliding", "full") * 16)
    return ask(
        S,
        Bytes(),
        truth,
        ("no-window", full, "Beyond the window a layer forgets: it keeps at most the window."),
        (
            "half-the-layers",
            kv_cache(half, 1, length).bytes,
            "All 32 layers slide here, not every other one.",
        ),
        ("saved", full - truth, "That is what the window saves."),
        ("keys-alone", truth // 2, "Keys and values are kept."),
        ("query-heads", 4 * truth, "n_kv = 8 heads are kept, not 32."),
        id="kv-window",
        title="A sliding window",
        prompt=f"L = 32 layers, n_kv = 8, d_h = 128, FP16, and every layer sees a window of {window:,} positions. How large is the cache at T = {length:,}?",
        hints=("How many positions does a sliding layer keep?",),
        solution=f"min(T, window) = {min(length, window):,} positions in each layer: {format_bytes(truth)}. Without the window {format_bytes(full)}.",
    )


def _bound(bandwidth: int) -> Exercise:
    config = preset("llama-3-8b")
    bound = decode_bound(config, bandwidth, 10**15, 1, 1)
    weights = weight_memory(config).bytes
    truth = bound.tokens_per_second
    return ask(
        S,
        Number(tolerance=Fraction(5, 100)),
        truth,
        ("one-byte", 2 * truth, "In 16 bits each weight takes 2 bytes."),
        ("four-bytes", truth / 2, "16 bits are 2 bytes, not 4."),
        ("seconds", 1 / truth, "Those are seconds per token. Tokens per second are the inverse."),
        (
            "compute",
            Fraction(10**15, bound.flops),
            "That is the bound by arithmetic, far away. The step waits for memory: every weight must be read.",
        ),
        id="decode-bound",
        title="Predict: how fast can it be?",
        prompt=f"Llama 3 8B, {weights // 2:,} parameters in 16 bits, of which {config.vocab_size * config.d_model:,} in the embedding's table; one sequence, an empty cache; memory delivers {bandwidth / 10**12:g} TB/s and arithmetic is free. At most how many tokens per second? Predict to about 5 per cent: what does a step read?",
        hints=(
            "Every step reads every weight once (the embedding only by a row).",
            "Bytes of the weights over bytes per second.",
        ),
        solution=f"{format_bytes(bound.weight_bytes)} a step at {bandwidth / 10**12:g} TB/s: {float(truth):.0f} tokens per second at most.",
        run=(
            "from tfbook.accounting import decode_bound, preset\n\n"
            f'bound = decode_bound(preset("llama-3-8b"), {bandwidth}, 10**15)\n'
            "print(float(bound.tokens_per_second), bound.bound)"
        ),
    )


def _find_bug() -> Exercise:
    return find_bug(
        S,
        4,
        pick(
            no(
                "loss = cross_entropy(logits[:, 1:], ids[:, :-1])",
                "backwards",
                "Now the logits at t + 1 are to predict the token at t, which they have read.",
            ),
            "loss = cross_entropy(logits[:, :-1], ids[:, 1:])",
            no(
                "loss = cross_entropy(logits[:, :-1], ids[:, :-1])",
                "same",
                "That still scores each position on its own token.",
            ),
        ),
        ("model", 3, "One parallel forward pass over all positions: right."),
        ("ids", 2, "Reading a batch is right."),
        ("backward", 5, "The backward pass is right; what it starts from is not."),
        listing="""
def training_step(model, batch):
    ids = batch                              # (B, T)
    logits = model(ids)                      # (B, T, V)
    loss = cross_entropy(logits, ids)        # over all positions
    loss.backward()
    return loss
""",
        id="training-find-bug",
        title="Find the bug: a loss that falls too fast",
        prompt="This loss falls close to zero, and the model only copies. Which line, and how should it read? (`cross_entropy` flattens its arguments.)",
        hints=("Which token should the logits at position t predict?", "Has the model read it?"),
        solution="Line 4 scores position t on token t, which the model has just read. Shift: logits without the last, ids without the first.",
    )


def _code(
    name: str, home: str, id: str, title: str, prompt: str, hints: tuple[str, ...], remark: str
) -> Exercise:
    return write(S, home, name, remark, id=id, title=title, prompt=prompt, hints=hints)


EXERCISES: tuple[Any, ...] = (
    drawn(_targets, lambda draw: {"length": draw.randint(5, 4096)}, length=512),
    _why_serial(),
    _what_a_step_does(),
    drawn(_per_token, _draw_cache, n_layers=80, n_heads=64, n_kv_heads=8, d_head=128),
    drawn(
        _whole,
        lambda draw: {
            "batch": draw.choice([3, 5, 6]),
            "length": 1024 * draw.randint(2, 64),
            "n_kv_heads": draw.choice([1, 4, 8]),
        },
        batch=3,
        length=8192,
        n_kv_heads=8,
    ),
    _order(),
    _crossing(),
    _overtakes(),
    drawn(
        _window,
        lambda draw: {"window": 1024 * draw.choice([1, 2, 4]), "length": 1024 * draw.randint(8, 64)},
        length=32_768,
        window=4096,
    ),
    drawn(
        _bound,
        lambda draw: {"bandwidth": draw.choice([936, 1008, 2039, 3350, 4800]) * 10**9},
        bandwidth=3_350_000_000_000,
    ),
    _find_bug(),
    _code(
        "kv_bytes",
        "account_code",
        "kv-bytes-code",
        "Code: bytes of the cache",
        "Write `kv_bytes(batch, length, n_layers, n_kv_heads, d_head, bytes_per_number)`. Returns an int.",
        ("Two vectors per key/value head, layer, token and sequence.",),
        "Six factors and a 2.",
    ),
    _code(
        "next_token_loss",
        "decoding_code",
        "next-token-loss-code",
        "Code: the loss of the next token",
        "Write `next_token_loss(logits, ids)`: logits (B, T, V), ids (B, T) whole numbers; the mean cross-entropy (natural logarithm) of each token given those before it, over all known targets. Returns a scalar tensor.",
        (
            "The logits at position t predict the token at t + 1.",
            "Drop the last logits and the first token; `torch.nn.functional.cross_entropy` takes (N, V) and (N,).",
        ),
        "Shift, flatten, average.",
    ),
    _code(
        "top_p",
        "decoding_code",
        "top-p-code",
        "Code: nucleus sampling's filter",
        "Write `top_p(probabilities, p)`: probabilities (V,) sum to 1, no two equal; 0 < p <= 1. Keep the fewest most probable tokens whose probabilities sum to at least p, set the others to 0, and renormalize.",
        (
            "Sort from the largest, add up.",
            "A token is kept if the sum of those **before** it is still below p.",
        ),
        "At least one token is always kept, and at p = 1 all are.",
    ),
)
