"""The exercises of the chapter on a real model."""

from fractions import Fraction
from typing import Any

from tfbook.accounting import count_parameters, kv_cache, preset
from tfbook.accounting.units import format_bytes
from tfbook.exercises.authoring import ask, choose, find_bug, no, pick, write
from tfbook.exercises.compound import Bytes, Number
from tfbook.exercises.engine import Exercise, drawn

S = "real-model"
MODEL = preset("smollm2-135m")
WEIGHTS = count_parameters(MODEL).total


def _bits() -> Exercise:
    block, codes, scale, low = 32, 4, 16, 16
    return ask(
        S,
        Number("bits", Fraction(1, 1000)),
        Fraction(block * codes + scale + low, block),
        ("codes-alone", codes, "Those are the codes. Each block also stores its scale and its least value."),
        (
            "scale-alone",
            Fraction(block * codes + scale, block),
            "One of the two numbers of a block is missing: the scale **and** the least value, 16 bits each.",
        ),
        (
            "in-32-bits",
            Fraction(block * codes + 2 * (scale + low), block),
            "The two numbers have 16 bits each, not 32.",
        ),
        (
            "block-bytes",
            Fraction(block * codes + scale + low, 8),
            "Those are the bytes of a block of 32 weights.",
        ),
        ("added", codes + scale + low, "The two numbers serve 32 weights: divide their bits among them."),
        id="real-bits",
        title="Bits a weight",
        prompt="Q4_1 stores weights in blocks of 32: a code of 4 bits for each, and for the block a scale and a least value of 16 bits each. How many bits is that per weight?",
        hints=("How many bits has a whole block?",),
        solution="$(32 \\cdot 4 + 16 + 16)/32 = 5$ bits. Q8_0, with codes of 8 bits and a scale alone, has 8.5.",
    )


def _cache(length: int) -> Exercise:
    def held(**other: int) -> int:
        return kv_cache(MODEL.replace(**other), 1, length).bytes

    truth = held()
    return ask(
        S,
        Bytes(),
        truth,
        (
            "query-heads",
            held(n_kv_heads=9),
            "Those are the 9 query heads. The cache has the 3 key/value heads.",
        ),
        ("keys-alone", truth // 2, "Half of it: keys **and** values are kept, and each number has 2 bytes."),
        ("one-layer", truth // 30, "That is one layer; the model has 30."),
        ("fp32", 2 * truth, "FP16 has 2 bytes a number."),
        ("one-head", truth // 3, "That is a single key/value head; there are 3."),
        id="real-cache",
        title="The cache of this model",
        prompt=f"SmolLM2-135M: L = 30, d = 576, 9 query heads, 3 key/value heads, d_h = 64. How large is its cache in FP16 for one text of {length:,} tokens?",
        hints=("2 n_kv d_h numbers per token and layer.", "Two bytes each, 30 layers."),
        solution=f"$2 \\cdot 3 \\cdot 64 \\cdot 2 = 768$ bytes per token and layer, 23,040 in all 30: {format_bytes(truth)}.",
    )


def _overtakes() -> Exercise:
    per_token = kv_cache(MODEL, 1, 1).bytes_per_token
    truth = Fraction(2 * WEIGHTS, per_token)
    return ask(
        S,
        Number("tokens"),
        truth,
        ("query-heads", truth / 3, "That is with 9 heads cached. There are 3 key/value heads."),
        ("keys-alone", 2 * truth, "The cache has keys and values."),
        ("one-layer", 30 * truth, "That is the cache of one layer."),
        (
            "mixed-units",
            truth / 2,
            "Half of it. Both are in 16 bits, and the cache has keys and values: compare numbers with numbers.",
        ),
        id="real-overtakes",
        title="When the cache is as large as the model",
        prompt=f"The {WEIGHTS:,} weights of SmolLM2-135M and its cache are both kept in FP16. At how many cached tokens, over all texts of a batch, are the two equally large? (L = 30, 3 key/value heads of 64.) (Then say to yourself whether one text gets there: the model reads up to 8192 tokens.)",
        hints=("How many numbers does one token leave in the cache, over all layers?",),
        solution=f"$2 \\cdot 30 \\cdot 3 \\cdot 64 = 11{{,}}520$ numbers a token; {WEIGHTS:,} / 11,520 = {float(truth):,.0f} tokens: more than one text can have, less than two full ones.",
    )


def _bound(bandwidth: int, bytes_each: int) -> Exercise:
    kind = {1: "one byte", 2: "16 bits", 4: "32 bits"}[bytes_each]
    truth = Fraction(bandwidth * 10**9, bytes_each * WEIGHTS)
    embedding = MODEL.vocab_size * MODEL.d_model
    return ask(
        S,
        Number("tokens a second", Fraction(2, 100)),
        truth,
        ("numbers", truth * bytes_each, f"Each weight is {kind}: the step reads bytes, not numbers."),
        (
            "without-table",
            Fraction(bandwidth * 10**9, bytes_each * (WEIGHTS - embedding)),
            "The tied table is the output layer too, and that is read whole.",
        ),
        (
            "two-tables",
            Fraction(bandwidth * 10**9, bytes_each * (WEIGHTS + embedding)),
            "The tables are tied. Of the embedding a step reads one row; as the output layer it reads it whole, once.",
        ),
        ("inverse", 1 / truth, "Those are seconds a token."),
        (
            "flops",
            truth / 2,
            "Half of it. A weight is read once, whatever is then done with it; and count its bytes: "
            f"here each is {kind}.",
        ),
        id="real-bound",
        title="The fastest step",
        prompt=f"A machine reads {bandwidth} GB a second. How many tokens a second can SmolLM2-135M ({WEIGHTS:,} weights, tied) write at most for one text, its weights in {kind}? Leave the cache out.",
        hints=("What must be read for each token?",),
        solution=f"{bandwidth} GB over {format_bytes(bytes_each * WEIGHTS)} of weights: {float(truth):.0f} tokens a second.",
    )


def _sink() -> Exercise:
    return choose(
        S,
        no(
            "the first word matters most for the next one",
            "meaning",
            "The weight goes to the first token whatever it is. What it carries is hardly passed on.",
        ),
        "the head has to put its weight somewhere, and puts it there when it has nothing to read",
        no(
            "the causal mask is wrong",
            "mask",
            "The first token is in everyone's past: the mask allows it, and it forbids the future as before.",
        ),
        no(
            "the softmax has overflowed",
            "overflow",
            "Rows still sum to 1, and other heads of the same layer do otherwise.",
        ),
        id="real-sink",
        title="Nearly all weight on the first token",
        prompt="In a trained decoder a head gives 0.99 of its weight to the first token, for almost every query and every text. What is the best reading?",
        hints=("The weights of a row sum to 1. What can a head do that has nothing to add?",),
        solution="b, as it is usually read: an attention sink. The value of that token is small, so that the head then adds little.",
    )


def _induction() -> Exercise:
    return choose(
        S,
        no(
            "to the earlier occurrence of the same token",
            "same",
            "That finds the token again, and not what came after it.",
        ),
        no(
            "to the token before the query",
            "previous",
            "That is the other head of the pair, in an earlier layer.",
        ),
        no(
            "to the first token",
            "sink",
            "That is where such a head rests when nothing repeats.",
        ),
        "to the token right after the earlier occurrence of its own",
        id="real-induction",
        title="A head that completes",
        prompt="In “... A B ... A”, an induction head at the second A raises the probability of B. To which token does it attend?",
        hints=("Which token's value is worth copying?",),
        solution="d. It reads B. To find it, its key must know that A stood before it: an earlier head has written that there.",
    )


def _find_bug() -> Exercise:
    return find_bug(
        S,
        7,
        pick(
            no("new = ids[:, 1:]", "window", "Those tokens are in the cache already."),
            no("new = ids[:, -2:]", "two", "The token before the last is in the cache already."),
            "new = token",
            no(
                "cache.crop(0)",
                "no-cache",
                "Then `new` stays the prompt, and every pass appends the same token. (With `new = ids` kept as well it would be right, and compute everything again.)",
            ),
        ),
        ("capacity", 2, "The cache has room for the prompt and all new tokens."),
        ("last", 5, "The last position's logits are the ones to choose from."),
        ("append", 6, "Appending the token to the text is right."),
        listing="""
def answer(model, ids, n):
    cache = KVCache(model.config, len(ids), ids.shape[1] + n)
    new = ids
    for _ in range(n):
        token = model(new, cache)[:, -1:].argmax(-1)
        ids = torch.cat((ids, token), dim=1)
        new = ids
    return ids
""",
        id="real-find-bug",
        title="Find the bug: twice in the cache",
        prompt="Generation with a cache: the first new token is right, then an error says that the cache is full (or, with a larger cache, the text is odd). Which line, and how should it read?",
        hints=("What does the cache hold after the first pass?", "What has it not seen?"),
        solution="Line 7 hands over the whole text again, and the cache takes it as a continuation. It has to get what it has not seen: the new token.",
    )


EXERCISES: tuple[Any, ...] = (
    _bits(),
    drawn(_cache, lambda draw: {"length": 2 ** draw.randint(7, 13)}, length=2048),
    _overtakes(),
    drawn(
        _bound,
        lambda draw: {
            "bandwidth": draw.choice((20, 30, 50, 80, 100, 400)),
            "bytes_each": draw.choice((1, 2, 4)),
        },
        bandwidth=50,
        bytes_each=2,
    ),
    _sink(),
    _induction(),
    _find_bug(),
    write(
        S,
        "quantization_code",
        "four_bits",
        "The error of a weight is at most half a step: (max - min) / 30.",
        id="four-bits-code",
        title="Code: four bits a weight",
        prompt="Write `four_bits(weights)`: weights (n, 32), a block in each row. A block has 16 levels, evenly from its least to its largest weight. Return (n, 32): each weight at the nearest level of its block. No block is constant.",
        hints=(
            "The least weight gets code 0, the largest 15.",
            "How many steps are there between 16 levels?",
            "Subtract the least, divide by the step, round; then back.",
        ),
    ),
    write(
        S,
        "quantization_code",
        "induction_score",
        "`diagonal` with the offset 1 - period.",
        id="induction-score-code",
        title="Code: find the induction heads",
        prompt="Write `induction_score(weights, period)`: weights (H, T, T) of one layer on a text that repeats itself after `period` tokens (T is twice the period). Return (H,): the mean weight that the queries of the second half give to the token right after the earlier occurrence of their own. Rows are queries.",
        hints=(
            "The token at t stood at t - period before. What comes right after it?",
            "`weights.diagonal(offset, dim1=-2, dim2=-1)` has the entries (t, t + offset).",
            "Queries from t = period on.",
        ),
    ),
)
