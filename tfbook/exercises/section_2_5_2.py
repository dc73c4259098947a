"""The exercises of section 2.5.2, the feed-forward layer. Numbers come from `tfbook.accounting`."""

import random
from fractions import Fraction
from typing import Any

from tfbook.accounting import attention_parameters, feed_forward_parameters, preset
from tfbook.config import TransformerConfig
from tfbook.exercises.authoring import ask, choose, find_bug, no, pick, write
from tfbook.exercises.compound import Blank, Blanks, Number, Ordering
from tfbook.exercises.engine import Exercise, drawn
from tfbook.exercises.kinds import Expression, Integer

S = "2.5.2"


def _parameters(d: int, ratio: int) -> Exercise:
    d_ff = ratio * d
    truth = feed_forward_parameters(TransformerConfig(d_model=d, n_heads=1), d_ff).total
    return ask(
        S,
        Integer(),
        truth,
        (
            "biases-forgotten",
            2 * d * d_ff,
            "Those are the two matrices. Each map also has a bias: one is d_ff wide, one d.",
        ),
        ("one-matrix", d * d_ff, "That is one matrix. The layer goes up to d_ff and comes down again: two."),
        (
            "one-matrix-and-bias",
            d * d_ff + d_ff,
            "That is the way up. The way down has a matrix and a bias too.",
        ),
        (
            "both-biases-wide",
            2 * d * d_ff + 2 * d_ff,
            "The second bias is added to the output, which is d wide, not d_ff.",
        ),
        (
            "both-biases-narrow",
            2 * d * d_ff + 2 * d,
            "The first bias is added to the hidden layer, which is d_ff wide.",
        ),
        ("one-bias", 2 * d * d_ff + d_ff, "The output has a bias too: d numbers are missing."),
        (
            "gated",
            3 * d * d_ff + 2 * d_ff + d,
            "That is a gated layer, with three matrices. This one has two.",
        ),
        id="ffn-parameters",
        title="Count one feed-forward layer",
        prompt=f"How many learned numbers has a feed-forward layer with d = {d} and d_ff = {d_ff}, two matrices and both biases?",
        hints=("Two maps: d to d_ff, and d_ff to d.", "A bias is as wide as what its map gives out."),
        solution=f"$2\\,d\\,d_{{ff}} + d_{{ff}} + d = 2 \\cdot {d} \\cdot {d_ff} + {d_ff} + {d} = {truth:,}$.",
    )


def _draw_parameters(draw: random.Random) -> dict[str, int]:
    return {"d": 64 * draw.randint(2, 24), "ratio": draw.choice([3, 4, 5])}


def _gated_width() -> Exercise:
    return ask(
        S,
        Expression(lambda draw: {"d": 3 * draw.randint(5, 40)}),
        "8 d / 3",
        (
            "same-width",
            "4 d",
            "At 4d the three matrices hold $12 d^2$: half as much again. The width must shrink.",
        ),
        ("half", "2 d", "That would fit four matrices. There are three."),
        ("two-thirds", "2 d / 3", "You took two thirds of d; it is two thirds of the classic width 4d."),
        (
            "four-thirds",
            "4 d / 3",
            "That keeps $4 d^2$, the count of attention. The layer to match has $8 d^2$.",
        ),
        ("one-matrix", "8 d", "That would be one matrix of $8 d^2$. There are three."),
        id="ffn-gated-width",
        title="The width of a gated layer",
        prompt=(
            "A classic layer (two matrices, d_ff = 4d) is to be replaced by SwiGLU (three matrices) of the same number of "
            "weights, without biases. Give d_ff as a formula in d."
        ),
        hints=("How many weights has the classic layer, in d²?", "Solve 3 d d_ff = 8 d²."),
        solution="$3\\,d\\,d_{ff} = 2 \\cdot d \\cdot 4d = 8 d^2$, so $d_{ff} = \\tfrac{8}{3} d$. Real models round it to what their hardware likes.",
        praise="Right: two thirds of 4d.",
    )


def _rounded(d: int, multiple: int) -> Exercise:
    exact, step = 8 * d // 3, multiple
    rounded = step * -(-8 * d // (3 * step))
    kinds = (
        Blank("8d/3, rounded down to a whole number", Integer()),
        Blank(f"the next multiple of {multiple}", Integer()),
        Blank("its ratio to d", Number(tolerance=Fraction(1, 200))),
    )
    return ask(
        S,
        Blanks(kinds),
        (exact, rounded, Fraction(rounded, d)),
        ("two-thirds-of-d", (2 * d // 3, None, None), "The first blank: two thirds of **4d**, not of d."),
        ("rounded-to-nearest", (exact + 1, None, None), "The first blank: rounded **down**."),
        (
            "rounded-down",
            (None, rounded - step, None),
            "The second blank: round **up**, so that nothing is lost.",
        ),
        (
            "not-rounded",
            (None, None, Fraction(8, 3)),
            "The third blank: the ratio after rounding, not 8/3 itself.",
        ),
        id="ffn-rounded-width",
        title="From 8/3 d to a real width",
        prompt=f"A model of width d = {d} takes SwiGLU and rounds the width up to a multiple of {multiple}. Fill the blanks.",
        hints=("8/3 of d first; then divide by the multiple and round up.",),
        solution=(
            f"$\\tfrac83 \\cdot {d} = {float(Fraction(8 * d, 3)):.2f}$; the next multiple of {multiple} is {rounded:,}, "
            f"which is {rounded / d:.4g} d. (With d = 4096 and 256 this is Llama 7B's 11008.)"
        ),
    )


def _share() -> Exercise:
    config = preset("llama-3-8b")
    d, d_ff = config.d_model, config.d_ff
    attention = attention_parameters(config).total
    ffn = feed_forward_parameters(config, d_ff).total
    own_heads = 4 * d * d
    return ask(
        S,
        Number(tolerance=Fraction(1, 200), percent=True),
        Fraction(ffn, attention + ffn),
        (
            "two-thirds",
            Fraction(2, 3),
            "Two thirds holds for d_ff = 4d, two matrices and key/value heads of their own. None of the three is so here.",
        ),
        (
            "all-heads",
            Fraction(ffn, own_heads + ffn),
            "You gave attention $4 d^2$. With n_kv = 8 of 32 heads its keys and values are a quarter as wide.",
        ),
        (
            "two-matrices",
            Fraction(2 * d * d_ff, attention + 2 * d * d_ff),
            "SwiGLU has three matrices, not two.",
        ),
        ("share-of-attention", Fraction(attention, attention + ffn), "That is the share of attention."),
        ("ratio", Fraction(ffn, attention), "That is the ratio to attention; the share is of the sum."),
        id="ffn-share",
        title="Is it two thirds?",
        prompt=(
            f"A block of Llama 3 8B has d = {d}, H = {config.n_heads}, n_kv = {config.n_kv_heads}, d_h = {config.d_head}, SwiGLU with "
            f"d_ff = {d_ff}, no biases. Which share of the weights of attention and feed-forward together is the feed-forward layer's?"
        ),
        hints=("Attention: $2 d^2 + 2\\,d\\,n_{kv}\\,d_h$.", "Feed-forward: $3\\,d\\,d_{ff}$."),
        solution=f"${ffn:,} / ({attention:,} + {ffn:,}) = {ffn / (attention + ffn):.1%}$. A convention's two thirds, not a law's.",
    )


def _position_wise() -> Exercise:
    return choose(
        S,
        no(
            "changing token 3 can change the layer's output at token 5",
            "positions-meet",
            "No two positions meet in this layer: the same map is applied to each row by itself.",
        ),
        "permuting the positions of the input permutes the output, and changes nothing else",
        "the layer works on a sequence longer than any in training",
        no(
            "it has one set of weights for each position",
            "own-weights",
            "All positions share one set of weights; that is why the length is free.",
        ),
        "without its nonlinearity its two matrices could be multiplied out into one",
        many=True,
        id="ffn-position-wise",
        title="What position-wise means",
        prompt="Which statements about one feed-forward layer (without attention and norm) are true?",
        hints=("Write the layer for row t alone.", "Where, if anywhere, does T stand in a weight's shape?"),
        solution="Row t of the output is a function of row t of the input, the same for all t. Hence b, c and, since $\\mathbf{W}_2\\mathbf{W}_1$ is a matrix, e.",
        praise="Right: one function, applied to every row.",
    )


def _hull() -> Exercise:
    return choose(
        S,
        no(
            "softmax weights are too small to add anything",
            "small-weights",
            "They sum to 1, however many they are: an average is not small.",
        ),
        "they are averages of value vectors, and an average lies in the convex hull of what it averages",
        no(
            "attention weights do not depend on the input",
            "fixed-weights",
            "They do, through the scores; that is where attention is nonlinear.",
        ),
        no(
            "the output map W_O undoes the mixing",
            "undone",
            "W_O is one matrix for all positions; it cannot undo mixing across positions.",
        ),
        id="ffn-hull",
        title="What attention cannot do",
        prompt="Before the output map, the outputs of one head cannot leave a region spanned by its values, however its scores are. Why?",
        hints=("What do the weights of a row sum to, and can one be negative?",),
        solution="The weights of a row are at least 0 and sum to 1, so each output is a convex combination of the value vectors. The feed-forward layer is not so confined.",
        praise="Right. What leaves that region, position by position, is the feed-forward layer (and W_O maps it as a whole).",
    )


def _swiglu_order() -> Exercise:
    kind = Ordering(
        (
            "multiply the two, number by number",
            "project z to d_ff twice: z W₁ and z W₃",
            "multiply by W₂, back to width d",
            "apply Swish to the first of them",
        )
    )
    return ask(
        S,
        kind,
        ("b", "d", "a", "c"),
        (
            "gate-after",
            ("b", "a", "d", "c"),
            "Swish is applied to one path **before** the two are multiplied; the other path stays linear.",
        ),
        ("down-first", ("b", "d", "c", "a"), "The gate works on the hidden layer, at width d_ff: before W₂."),
        (
            "swish-first",
            ("d", "b", "a", "c"),
            "Swish acts on the projection z W₁, so the projection comes first.",
        ),
        id="ffn-swiglu-order",
        title="The steps of SwiGLU",
        prompt="Put the steps of SwiGLU(z) in order.",
        hints=("Read the formula (Swish(z W₁) ⊙ (z W₃)) W₂ from the inside out.",),
        solution="b, d, a, c: two projections, Swish on the first, the product, and the way down.",
    )


def _find_bug() -> Exercise:
    return find_bug(
        S,
        4,
        pick(
            no(
                "hidden = w2 @ hidden",
                "from-the-left",
                "From the left, $\\mathbf{W}_2$ would combine positions. Rows are positions: weights multiply from the right.",
            ),
            "return hidden @ w2",
            no(
                "return (hidden @ w2).mean(dim=1)",
                "averaged",
                "The mean over positions removes them. The layer keeps (B, T, d).",
            ),
        ),
        ("the-nonlinearity", 3, "The nonlinearity is right there: between the two maps, number by number."),
        ("the-projection", 2, "Line 2 is right: (B, T, d) @ (d, d_ff)."),
        ("the-signature", 1, "The signature is fine."),
        listing="""
def feed_forward(x, w1, w2):            # x (B, T, d), w1 (d, d_ff), w2 (d_ff, d)
    hidden = x @ w1
    hidden = hidden.relu()
    return (hidden.softmax(dim=1) @ w2)
""",
        id="ffn-find-bug",
        title="Find the bug: a layer that peeks",
        prompt="This layer's output at one position changes when another position changes. Which line lets them meet, and which line mends it?",
        hints=("Which operation runs over dim=1, and what is that axis?",),
        solution="Line 4: the softmax over dim 1 normalises across **positions**. A feed-forward layer has none: `return hidden @ w2`.",
    )


def _code(name: str, id: str, title: str, prompt: str, hints: tuple[str, ...], remark: str) -> Exercise:
    return write(S, "feed_forward_code", name, remark, id=id, title=title, prompt=prompt, hints=hints)


EXERCISES: tuple[Any, ...] = (
    drawn(_parameters, _draw_parameters, d=768, ratio=4),
    _position_wise(),
    _gated_width(),
    drawn(
        _rounded,
        lambda draw: {"d": 256 * draw.randint(3, 32) + 64, "multiple": draw.choice([128, 256])},
        d=4096,
        multiple=256,
    ),
    _share(),
    _hull(),
    _swiglu_order(),
    _find_bug(),
    _code(
        "feed_forward",
        "ffn-code",
        "Code: the feed-forward layer",
        "Write `feed_forward(x, w1, b1, w2, b2)` with ReLU: x is (B, T, d), w1 (d, d_ff), w2 (d_ff, d); weights multiply from the right.",
        (
            "Up, nonlinearity, down.",
            "Both maps add their bias, the second after the nonlinearity is long past.",
        ),
        "One line. The same map meets every row, so no index t occurs.",
    ),
    _code(
        "swiglu",
        "swiglu-code",
        "Code: SwiGLU",
        "Write `swiglu(x, w1, w3, w2)`: (Swish(x w1) * (x w3)) w2, with Swish(a) = a sigmoid(a). x is (B, T, d); no biases.",
        ("`torch.nn.functional.silu` is Swish.", "The gate is a product number by number, at width d_ff."),
        "The path through w3 stays linear; the other decides how much of it passes.",
    ),
)
