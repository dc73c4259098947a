"""The exercises of the chapter on misconceptions: alarms, and what they tell."""

import math
import random
from fractions import Fraction
from typing import Any

from tfbook.accounting import count_parameters
from tfbook.config import TransformerConfig
from tfbook.exercises.authoring import ask, choose, find_bug, no, pick, write
from tfbook.exercises.compound import Number
from tfbook.exercises.engine import Exercise, drawn
from tfbook.exercises.kinds import Integer

S = "misconceptions"


def _floor(entries: int, symbols: int) -> Exercise:
    predicted, nats = 3 * entries - 1, math.log(symbols)

    def over(random_tokens: float, tokens: int = predicted, unit: float = nats) -> Fraction:
        return Fraction(random_tokens * unit / tokens)

    return ask(
        S,
        Number("nats", Fraction(1, 200)),
        over(entries - 1),
        (
            "first-counted",
            over(entries),
            "The first symbol of the text is read and never predicted: one random token fewer counts.",
        ),
        (
            "all-tokens",
            over(entries - 1, 3 * entries),
            "T tokens have T - 1 that are predicted: divide by those.",
        ),
        ("sum", over(entries - 1, 1), "That is the sum; the loss is the mean over all predicted tokens."),
        (
            "bits",
            over(entries - 1, unit=math.log2(symbols)),
            "Those are bits. The loss is in nats: ln, not log2.",
        ),
        (
            "every-token-random",
            over(1, 1),
            "Only the symbol that begins an entry is random; = and f(a) follow from what stands before.",
        ),
        id="belief-floor",
        title="A loss that cannot be",
        prompt=(
            f"A text has {entries} entries “a = f(a)” of three tokens each. The symbol a is drawn evenly out of "
            f"{symbols}; the dictionary f is fixed. What is the lowest mean loss (in nats a predicted token) that "
            "any model can reach on new texts, when the first token of a text is given? Give a decimal."
        ),
        hints=(
            "Which tokens can nobody know in advance?",
            f"Each of those costs at least ln {symbols}; the rest can cost 0.",
            f"{entries - 1} random ones among {predicted}.",
        ),
        solution=f"$({entries} - 1) \\ln {symbols} / ({3 * entries} - 1) = {float(over(entries - 1)):.3f}$. A loss below it has read the answer.",
    )


def _first_check() -> Exercise:
    return choose(
        S,
        no(
            "nothing: the held-out texts are new, so the model generalises",
            "validation",
            "Held-out texts leak in the same way: the answer stands in the input there too.",
        ),
        no(
            "the learning rate",
            "rate",
            "No learning rate makes a model know what nobody can. The loss is below the floor.",
        ),
        "the causal mask: exchange later tokens and see whether earlier logits move",
        no(
            "the size of the training set, for memorising",
            "memorised",
            "What is memorised does not help on held-out texts, and there the loss is as low.",
        ),
        no(
            "the sampling temperature",
            "temperature",
            "Temperature changes how tokens are drawn, and the loss says that something is wrong before any is.",
        ),
        id="belief-first-check",
        title="Read the log",
        prompt="Training loss 0.007, loss on held-out texts 0.007; the entropy floor of this language is 0.84. Generated texts are nonsense. What do you check first?",
        hints=("How can a loss be below the floor?",),
        solution="c. A loss below what is possible means that the answer was read. The test of causality shows it on an untrained model, in two passes.",
    )


def _survives() -> Exercise:
    return choose(
        S,
        no(
            "because copying is too easy for the mask to matter while training",
            "easy",
            "While training the mask matters there too: without it the loss falls below the floor, by reading the next token.",
        ),
        "because what is to be written stands in the prefix, so it can be found without the token ahead",
        no(
            "because a mask is switched on by itself in generation",
            "by-itself",
            "Nothing is switched on. In generation the later tokens are simply not there.",
        ),
        no(
            "because copying needs no positions",
            "positions",
            "It does: the next symbol to copy is known by its place.",
        ),
        id="belief-survives",
        title="Why copying survives",
        prompt="A decoder without a causal mask learned to copy: eight random symbols, “=”, the same eight again. Its loss is impossibly low, and yet it generates most copies right. With the dictionary f(a) it did not. Why?",
        hints=("Where else, beside the place ahead, does the answer stand?",),
        solution="b. In the copying task there are two places to read the answer from, one ahead and one in the prefix; the second is still there in generation. f(a) stands in the prefix only where a came before.",
    )


def _silent() -> Exercise:
    return choose(
        S,
        no("x, exactly", "pre", "That is Pre-LN. Here a norm stands in the trunk, and works on x itself."),
        no("zero", "no-residual", "Zero would come out if there were no residual connection."),
        "x normalized: the norms in the trunk are all that is left",
        no(
            "x plus the norm of x",
            "added",
            "The norm is not added to x. It takes the place of x.",
        ),
        id="belief-silent",
        title="Silence the sublayers",
        prompt="A block computes x = norm(x), x = x + attention(x), x = norm(x), x = x + feed_forward(x). The last maps of both sublayers are set to zero. What comes out?",
        hints=("Both sublayers now return 0. What is left of the four lines?",),
        solution="c. Two norms, one after the other (with gain 1 the second changes next to nothing). A Pre-LN block would return x, and this is the test that tells them apart.",
    )


def _find_bug() -> Exercise:
    return find_bug(
        S,
        5,
        pick(
            no("x = x + self.feed_forward(z)", "name", "That has no return: the caller would get nothing."),
            "return x + self.feed_forward(z)",
            no(
                "return self.norm_2(x + self.feed_forward(z))",
                "post",
                "That adds a norm in the trunk; it is neither Pre-LN nor Post-LN.",
            ),
            no("return z + self.feed_forward(x)", "swapped", "The sublayer must read the normalized z."),
        ),
        ("read-normed", 2, "The first sublayer reads the norm of x, as it should."),
        ("trunk", 3, "Here x is added back untouched: this is Pre-LN."),
        ("second-norm", 4, "z is what the sublayer reads; computing it is right."),
        listing="""
def forward(self, x, mask):
    z = self.norm_1(x)
    x = x + self.attention(z, mask)
    z = self.norm_2(x)
    return z + self.feed_forward(z)
""",
        id="belief-find-bug",
        title="Find the bug: called Pre-LN",
        prompt="This block was meant to be Pre-LN. With silent sublayers it does not return its input. Which line, and how should it read?",
        hints=("Follow the bare x through both residual connections.",),
        solution="Line 5 adds the normalized z back, so the trunk goes through a norm in every block.",
    )


def _share(d: int, layers: int, vocab: int, heads: int, kv: int) -> Exercise:
    config = TransformerConfig(
        vocab_size=vocab,
        d_model=d,
        n_layers=layers,
        n_heads=heads,
        n_kv_heads=kv,
        norm="rmsnorm",
        activation="swiglu",
        d_ff=3 * d,
        qkv_bias=False,
        output_bias=False,
        ffn_bias=False,
        norm_bias=False,
        head_bias=False,
    )
    account = count_parameters(config)
    attention = sum(number for path, number in account.items() if ".attention." in path)
    blocks = account.part("decoder").part("block").total
    full = layers * 4 * d * d
    return ask(
        S,
        Number("%", Fraction(1, 100), percent=True),
        Fraction(attention, account.total),
        (
            "a-third",
            Fraction(1, 3),
            "A third is the share in a classic block. Count this model: keys and values are shared, and there is a table.",
        ),
        (
            "without-table",
            Fraction(attention, blocks),
            "That is the share of the blocks. The embedding's table belongs to the model.",
        ),
        (
            "all-heads",
            Fraction(full, account.total - attention + full),
            f"Keys and values have {kv} heads here, not {heads}.",
        ),
        (
            "two-tables",
            Fraction(attention, account.total + vocab * d),
            "The tables are tied: one, counted once.",
        ),
        id="belief-share",
        title="Attention's share, predicted",
        prompt=(
            f"d = {d}, L = {layers}, V = {vocab:,} (tied), H = {heads} query heads and {kv} key/value heads of "
            f"{d // heads}, a gated feed-forward layer of three matrices with d_ff = 3 d, RMSNorm, no biases. Estimate first: "
            "which share of all parameters is in the attention layers? Give per cent."
        ),
        hints=(
            "Attention: two matrices of d x d, and two of d x (n_kv d_h), per layer.",
            "Feed-forward: 3 d d_ff = 9 d² per layer. The table: V d.",
        ),
        solution=f"{attention:,} of {account.total:,}: {attention / account.total:.1%}.",
    )


def _draw_share(draw: random.Random) -> dict[str, int]:
    heads = draw.choice((8, 12, 16))
    return {
        "d": heads * 64,
        "layers": draw.randint(4, 24),
        "vocab": draw.choice((32_000, 50_000, 128_000)),
        "heads": heads,
        "kv": heads // 4,
    }


def _passes(prompt: int, new: int, batch: int) -> Exercise:
    return ask(
        S,
        Integer(),
        new,
        ("prompt-too", prompt + new, "The prompt is known: one pass reads it as a whole."),
        ("prefill-extra", new + 1, "The pass over the prompt already gives the first new token."),
        ("one", 1, "One pass would do if the tokens were known. Each is the input of the next step."),
        ("each-sequence", batch * new, "The sequences of a batch go through a pass side by side."),
        ("last-free", new - 1, "The last token needs a pass too: it is drawn from that pass's logits."),
        id="belief-passes",
        title="How many passes?",
        prompt=f"A batch of {batch} prompts of {prompt} tokens each; {new} new tokens are generated for each, greedily, with a key/value cache, without speculation. How many passes must follow one another?",
        hints=("Which pass gives the first new token?", "What runs side by side?"),
        solution=f"{new}: the pass over all prompts gives the first new token of each, and every further token needs the one before.",
    )


EXERCISES: tuple[Any, ...] = (
    _first_check(),
    drawn(
        _floor,
        lambda draw: {"entries": draw.randint(4, 12), "symbols": draw.choice((8, 10, 20, 26, 32))},
        entries=8,
        symbols=10,
    ),
    _survives(),
    _silent(),
    drawn(_share, _draw_share, d=512, layers=8, vocab=50_000, heads=8, kv=2),
    drawn(
        _passes,
        lambda draw: {
            "prompt": draw.randint(10, 400),
            "new": draw.randint(10, 200),
            "batch": draw.randint(2, 16),
        },
        prompt=100,
        new=50,
        batch=4,
    ),
    _find_bug(),
    write(
        S,
        "alarm_code",
        "leak",
        "Two passes and a difference. A causal model gives 0, up to rounding.",
        id="leak-code",
        title="Code: the test of causality",
        prompt="Write `leak(ids, other, t, model)`: `model` maps ids (B, T) to logits (B, T, V). Return by how much (the largest absolute difference, a tensor without axes) the logits of the first t positions change when the tokens of `ids` from position t on are replaced by those of `other`. Positions count from 0.",
        hints=(
            "`torch.cat` the beginning of one to the end of the other.",
            "The first t positions are those before t.",
            "Changes have a sign, and the largest one may be negative.",
        ),
    ),
    write(
        S,
        "alarm_code",
        "entropy_floor",
        "`torch.xlogy(p, p)` is p ln p, and 0 at p = 0.",
        id="entropy-floor-code",
        title="Code: the floor of a loss",
        prompt="Write `entropy_floor(probabilities)`: row t of (T, V) has the true probabilities of the token at position t, given what stands before. Return the lowest mean loss over the T positions that any model can have, in nats. Some probabilities are 0.",
        hints=(
            "The best model gives exactly these probabilities: its loss is their entropy.",
            "What is 0 ln 0 in torch, and what should it be?",
        ),
    ),
)
