"""The exercises of section 2.5.3, residual connections and normalization."""

import math
import random
from fractions import Fraction
from typing import Any

from tfbook.exercises.authoring import ask, choose, find_bug, no, pick, write
from tfbook.exercises.compound import Blank, Blanks, Number, Ordering
from tfbook.exercises.engine import Exercise, drawn
from tfbook.exercises.kinds import Integer, Shape

S = "2.5.3"
_FINE = Fraction(1, 200)


def _root(value: float | Fraction) -> Fraction:
    return Fraction(math.sqrt(value))


def _layer_norm(x: tuple[int, ...]) -> Exercise:
    n, last = len(x), x[-1]
    mean = Fraction(sum(x), n)
    variance = sum((v - mean) ** 2 for v in x) / n
    unbiased = variance * n / (n - 1)
    kinds = (
        Blank("the mean", Number(tolerance=_FINE)),
        Blank("the variance", Number(tolerance=_FINE)),
        Blank("the last number, normalized", Number(tolerance=_FINE)),
    )
    return ask(
        S,
        Blanks(kinds),
        (mean, variance, (last - mean) / _root(variance)),
        ("unbiased", (None, unbiased, None), "LayerNorm divides by n, not n - 1: the biased variance."),
        (
            "standard-deviation",
            (None, _root(variance), None),
            "That is the standard deviation; the variance is its square.",
        ),
        (
            "mean-of-squares",
            (None, sum(Fraction(v * v) for v in x) / n, None),
            "That is the mean of the squares, as RMSNorm takes it. The variance is about the mean.",
        ),
        (
            "not-centred",
            (None, None, last / _root(variance)),
            "LayerNorm subtracts the mean before it divides.",
        ),
        (
            "divided-by-variance",
            (None, None, (last - mean) / variance),
            "You divided by the variance. It is its root.",
        ),
        (
            "unbiased-at-the-end",
            (None, None, (last - mean) / _root(unbiased)),
            "You divided by the root of the unbiased variance; LayerNorm's has n below.",
        ),
        id="norm-by-hand",
        title="LayerNorm by hand",
        prompt=f"One position holds the vector ({', '.join(map(str, x))}). Normalize it with LayerNorm, gain 1, bias 0 and eps = 0. Three significant digits are enough.",
        hints=(
            "The mean over the features of this position.",
            "The variance is the mean of the squared distances from it.",
            "Subtract the mean, divide by the root of the variance.",
        ),
        solution=f"Mean {float(mean):.4g}, variance {float(variance):.4g}; the last number is {float(last - mean):.4g} above the mean, and divided by $\\sqrt{{{float(variance):.4g}}}$ it is {float((last - mean) / _root(variance)):.4g}.",
    )


def _draw_vector(draw: random.Random) -> dict[str, tuple[int, ...]]:
    while True:
        x = tuple(draw.randint(-9, 9) for _ in range(4))
        if len(set(x)) == 4 and sum(x) not in (0, 4 * x[-1]):
            return {"x": x}


def _draw_rms(draw: random.Random) -> dict[str, tuple[int, ...]]:
    """A vector whose RMSNorm and LayerNorm differ visibly."""
    while True:
        x = _draw_vector(draw)["x"]
        mean, squares = sum(x) / 4, sum(v * v for v in x) / 4
        centred = (x[-1] - mean) / math.sqrt(squares - mean**2)
        plain = x[-1] / math.sqrt(squares)
        if x[-1] and min(abs(centred - plain), abs((x[-1] - mean) / math.sqrt(squares) - plain)) > 0.05 * abs(
            plain
        ):
            return {"x": x}


def _rms(x: tuple[int, ...]) -> Exercise:
    n, last = len(x), x[-1]
    squares, mean = sum(v * v for v in x), Fraction(sum(x), n)
    variance = sum((v - mean) ** 2 for v in x) / n
    return ask(
        S,
        Number(tolerance=_FINE),
        last / _root(squares / n),
        (
            "length",
            last / _root(squares),
            "You divided by the vector's length. RMSNorm divides by the root of the **mean** square.",
        ),
        ("centred", (last - mean) / _root(variance), "That is LayerNorm: RMSNorm subtracts no mean."),
        (
            "centred-above",
            (last - mean) / _root(squares / n),
            "RMSNorm subtracts no mean, neither above nor below.",
        ),
        ("no-root", Fraction(last * n, squares), "You divided by the mean square itself; take its root."),
        (
            "root-mean-absolute",
            last / Fraction(sum(map(abs, x)), n),
            "You divided by the mean absolute value. It is the root of the mean **square**.",
        ),
        id="rms-by-hand",
        title="RMSNorm by hand",
        prompt=f"One position holds the vector ({', '.join(map(str, x))}). Normalize it with RMSNorm, gain 1, eps = 0. What does its last number become?",
        hints=("Square all, take the mean, take the root.",),
        solution=f"The mean square is {squares / n:.4g}, its root {math.sqrt(squares / n):.4g}, and ${last}/{math.sqrt(squares / n):.4g} = {last / math.sqrt(squares / n):.4g}$.",
    )


def _axis() -> Exercise:
    batch, length, d = 8, 512, 768
    return ask(
        S,
        Shape(),
        (batch, length, 1),
        (
            "batch-norm",
            (1, 1, d),
            "Those are BatchNorm's statistics, one for each feature over all positions. LayerNorm's are one for each position.",
        ),
        (
            "per-sequence",
            (batch, 1, 1),
            "Each **position** is normalized for itself, not the sequence as a whole.",
        ),
        (
            "per-position-of-the-batch",
            (1, length, 1),
            "The sequences of a batch do not share statistics: that is what makes the layer independent of the batch.",
        ),
        (
            "every-number",
            (batch, length, d),
            "That is the shape of the input. Each position has one mean over its d features.",
        ),
        ("whole", (1, 1, 1), "One mean for the whole tensor would tie all positions together."),
        id="norm-axis",
        title="One mean for what?",
        prompt=f"LayerNorm gets x of shape ({batch}, {length}, {d}) and takes means that broadcast against x (the averaged axis kept with size 1). What is their shape?",
        hints=("Over which axis does it average?",),
        solution=f"The average runs over the d features: ({batch}, {length}, 1). Nothing of the batch and nothing of other positions enters.",
    )


def _formulas() -> Exercise:
    pre, post = "X + Sub(LN(X))", "LN(X + Sub(X))"

    def options(right: str) -> Any:
        told = {
            pre: "That is Pre-LN: the norm stands before the sublayer, and the trunk is a bare sum.",
            post: "That is Post-LN: the sum itself is normalized.",
            "LN(X) + Sub(LN(X))": "Here the residual path is normalized too: no identity is left. Neither of the two is so.",
            "X + LN(Sub(X))": "The norm behind the sublayer but inside the residual connection: OLMo 2 does so. Neither of the two.",
        }
        return pick(
            *(
                text if text == right else no(text, f"{right[:1]}-{i}", feedback)
                for i, (text, feedback) in enumerate(told.items())
            )
        )

    kinds = (Blank("Post-LN", options(post)), Blank("Pre-LN", options(pre)))
    right = tuple(blank.kind.right() for blank in kinds)  # type: ignore[attr-defined]  # both are choices
    return ask(
        S,
        Blanks(kinds),
        right,
        (
            "exchanged",
            (right[1].__class__("a"), right[1].__class__("b")),
            "The two are exchanged: **post** means the norm comes after the sum.",
        ),
        (
            "residual-normalized",
            (None, frozenset("c")),
            "In Pre-LN the residual path stays bare: X itself is added, not LN(X).",
        ),
        (
            "post-inside",
            (frozenset("d"), None),
            "Post-LN normalizes the **sum**, not the sublayer's output alone.",
        ),
        id="norm-formulas",
        title="Which is which?",
        prompt="Choose the formula of each placement of the norm.",
        hints=("Post-LN was the original: add, then norm.",),
        solution=f"Post-LN: {post}. Pre-LN: {pre}.",
    )


def _growth(times: int) -> Exercise:
    return ask(
        S,
        Number(tolerance=Fraction(1, 50)),
        _root(times),
        (
            "linear",
            Fraction(times),
            "That would be so if all the steps pointed the same way (as with one set of weights in all layers). Nearly uncorrelated steps add like the sides of a right angle.",
        ),
        ("no-growth", Fraction(1), "Nothing normalizes the trunk of a Pre-LN model: every block adds to it."),
        (
            "logarithmic",
            Fraction(math.log2(times)),
            "Neither the logarithm: the **squares** of the lengths add.",
        ),
        ("squared", Fraction(times**2), "The squares add, so the length grows by the root."),
        id="norm-growth",
        title="How the trunk grows",
        prompt=(
            f"In a Pre-LN model every sublayer adds to the trunk an output of about the same length, nearly uncorrelated with the rest. "
            f"Predict: with {times} times as many layers (and a small input), the trunk's length at the end is how many times as large?"
        ),
        hints=("For uncorrelated vectors, what adds: the lengths or their squares?",),
        solution=f"Squares add: $\\lVert x_L \\rVert^2 \\approx L \\cdot s^2$, so the length grows by $\\sqrt{{{times}}} = {math.sqrt(times):.4g}$.",
        run=(
            "import torch\n\n"
            "torch.manual_seed(0)\n"
            "trunk, lengths = torch.zeros(512), []\n"
            f"for _ in range({4 * times}):\n"
            "    trunk = trunk + torch.randn(512)  # a step of unit variance\n"
            "    lengths.append(trunk.norm())\n"
            f"print(lengths[-1] / lengths[3])  # {times} times as many steps"
        ),
    )


def _final_norm() -> Exercise:
    return choose(
        S,
        "the trunk's scale grows with depth, and would set the scale of the logits",
        no(
            "without it the last block's output could not be read by the softmax",
            "unreadable",
            "Any vector can be multiplied by the output matrix; the trouble is its scale.",
        ),
        "each block normalizes what it reads, but nothing normalizes the sum they leave behind",
        no(
            "it replaces the first norm of the model",
            "replaces",
            "Every sublayer keeps its own norm; the final one is in addition.",
        ),
        no(
            "Post-LN models need it as well, for the same reason",
            "post-too",
            "In Post-LN the last thing that happens **is** a norm.",
        ),
        many=True,
        id="norm-final",
        title="Why a final norm",
        prompt="Pre-LN models put one more norm before the output head. Which reasons hold?",
        hints=("What is the last operation of a Pre-LN block? Of a Post-LN block?",),
        solution="a and c. The trunk is a sum of all outputs; a norm at the end makes the logits' scale independent of depth.",
    )


def _xiong() -> Exercise:
    return choose(
        S,
        no(
            "in Pre-LN the gradient of the last layer grows with depth",
            "pre-grows",
            "The bound falls, like one over the root of the depth. Measured with Xavier's initialization the gradient does so; with PyTorch's default hardly, with GPT-2's not at all.",
        ),
        "the **bound** on the last layer's gradient falls like $L^{-1/2}$ with total depth in Pre-LN, and does not depend on depth in Post-LN",
        no(
            "in Post-LN the gradients vanish exponentially",
            "post-vanishes",
            "They do not vanish: in the last layers they stay as large however deep the model is (measured in encoder stacks).",
        ),
        no(
            "both are the same at initialization and differ only later",
            "same",
            "The difference is there at initialization; the paper's theorem is about that moment.",
        ),
        id="norm-xiong",
        title="What was proved in 2020",
        prompt="Xiong et al. 2020 bound the gradient of the last feed-forward layer at initialization. Which sentence says it rightly?",
        hints=("The bounds: $O(d\\sqrt{\\ln d})$ for Post-LN, $O(d\\sqrt{\\ln d / L})$ for Pre-LN.",),
        solution="The bound for Pre-LN has $\\sqrt{L}$ below, that for Post-LN does not. Bounds from above, at initialization: no more, no less.",
        praise="Right, and as bounds from above, at initialization.",
    )


def _stuck(symbols: int, entries: int) -> Exercise:
    targets = 3 * entries - 1
    share = Fraction(entries, targets)  # of "=" among the tokens that are predicted
    own, rest = float(share), float(1 - share)
    random, fixed = entries - 1, math.log(symbols)
    truth = -own * math.log(own) - rest * math.log(rest / symbols)
    return ask(
        S,
        Number(tolerance=_FINE),
        Fraction(truth),
        (
            "uniform",
            Fraction(math.log(symbols + 1)),
            f"That is the loss of one who knows nothing: {symbols + 1} tokens, all alike. This model knows that '=' is more frequent.",
        ),
        (
            "floor",
            Fraction(random * fixed / targets),
            "That is the floor, for one who reads the dictionary and the order of the tokens. This model reads nothing.",
        ),
        (
            "knows-where",
            Fraction((random + entries) * fixed / targets),
            "That model knows **where** the '=' stand: their loss is 0 there. A model that ignores its input doesn't know where it is.",
        ),
        (
            "all-tokens",
            Fraction(-math.log(1 / 3) / 3 - 2 / 3 * math.log(2 / 3 / symbols)),
            f"You took a third for the share of '='. The first token of a text is not predicted: it is {entries} of {targets}.",
        ),
        (
            "bits",
            Fraction(truth / math.log(2)),
            "That is in bits. Losses here are in nats: use the natural logarithm.",
        ),
        ("sign", Fraction(-truth), "The sign: a loss is positive."),
        id="norm-stuck",
        title="Where a stuck model stands",
        prompt=(
            f"A text has {entries} entries 'a = f(a)' over {symbols} symbols; its {targets} tokens after the first are predicted. "
            "A model that is stuck ignores its input and gives each token its frequency among the predicted ones. What is its loss, in nats a token?"
        ),
        hints=(
            f"How often does '=' occur among the {targets} predicted tokens? And each symbol, on average?",
            "The loss of predicting frequencies p is the sum of p times minus ln p.",
        ),
        solution=f"'=' has the frequency {entries}/{targets}, each symbol {targets - entries}/{targets * symbols}. The entropy is $-\\tfrac{{{entries}}}{{{targets}}}\\ln\\tfrac{{{entries}}}{{{targets}}} - \\tfrac{{{targets - entries}}}{{{targets}}}\\ln\\tfrac{{{targets - entries}}}{{{targets * symbols}}} = {truth:.3f}$.",
    )


def _jacobian() -> Exercise:
    return ask(
        S,
        Integer(),
        2,
        (
            "mean-only",
            1,
            "Subtracting the mean removes one direction. Dividing by the standard deviation removes another: along x-hat itself only the scale changes.",
        ),
        ("none", 0, "Add a constant to all features, or multiply them all by two: does the output change?"),
        ("all", 3, "Which third one? Name each direction by what undoes it."),
        id="norm-jacobian",
        title="What a norm forgets",
        prompt="In how many linearly independent directions can the input of LayerNorm (eps = 0) move without any change of the output, to first order?",
        hints=(
            "Which change of all features at once does subtracting the mean undo?",
            "And which does dividing by the standard deviation undo?",
        ),
        solution="Two: along (1, ..., 1), which the mean removes, and along the centred vector itself, which the division removes. All other singular values of the Jacobian are 1/sigma.",
        praise="Right: the mean's direction and its own.",
    )


def _order() -> Exercise:
    kind = Ordering(
        (
            "add X back",
            "attention",
            "norm",
            "feed-forward",
            "add back what entered the second norm",
            "norm again",
        )
    )
    return ask(
        S,
        kind,
        ("c", "b", "a", "f", "d", "e"),
        (
            "post",
            ("b", "a", "c", "d", "e", "f"),
            "That is Post-LN: sublayer, sum, norm. In Pre-LN the norm comes first.",
        ),
        (
            "norm-after-attention",
            ("b", "c", "a", "d", "f", "e"),
            "There each norm stands behind its sublayer, inside the residual connection. Pre-LN has it in front.",
        ),
        (
            "feed-forward-first",
            ("c", "d", "a", "f", "b", "e"),
            "Attention comes before the feed-forward layer.",
        ),
        id="norm-block-order",
        title="The order of a Pre-LN block",
        prompt="Put the operations of a Pre-LN block on X in order.",
        hints=("Twice: norm, sublayer, sum.",),
        solution="c, b, a, f, d, e: norm, attention, sum, norm, feed-forward, sum.",
    )


def _find_bug() -> Exercise:
    return find_bug(
        S,
        3,
        pick(
            no(
                "x = norm_1(x + attention(x))",
                "post",
                "That would make the first half Post-LN. The block is to be Pre-LN.",
            ),
            no(
                "x = norm_1(x) + attention(x)",
                "exchanged",
                "Now the sublayer reads the bare trunk and the residual is normalized: the wrong way round.",
            ),
            "x = x + attention(norm_1(x))",
        ),
        ("the-second-half", 4, "Line 4 is Pre-LN as it should be: x + feed_forward(norm_2(x))."),
        ("the-signature", 1, "The signature is fine."),
        ("the-return", 5, "Returning x is right."),
        listing="""
def block(x, attention, feed_forward, norm_1, norm_2):
    # Pre-LN
    x = norm_1(x) + attention(norm_1(x))
    x = x + feed_forward(norm_2(x))
    return x
""",
        id="norm-find-bug",
        title="Find the bug: the text says Pre-LN",
        prompt="The comment says Pre-LN. Which line is not, and how should it read?",
        hints=("Follow the bare x through each line: where does the identity path end?",),
        solution="Line 3 adds the **normalized** x back, so no bare path leads through the block: `x = x + attention(norm_1(x))`.",
    )


def _code(name: str, id: str, title: str, prompt: str, hints: tuple[str, ...], remark: str) -> Exercise:
    return write(S, "norm_code", name, remark, id=id, title=title, prompt=prompt, hints=hints)


EXERCISES: tuple[Any, ...] = (
    drawn(_layer_norm, _draw_vector, x=(1, 3, 5, 7)),
    drawn(_rms, _draw_rms, x=(1, 3, 3, 9)),
    _axis(),
    _formulas(),
    _order(),
    _jacobian(),
    drawn(_growth, lambda draw: {"times": draw.choice([4, 9, 16, 25, 64])}, times=16),
    _final_norm(),
    _xiong(),
    drawn(
        _stuck,
        lambda draw: {"symbols": draw.choice([8, 10, 20, 26]), "entries": draw.randint(4, 12)},
        symbols=16,
        entries=8,
    ),
    _find_bug(),
    _code(
        "layer_norm",
        "layer-norm-code",
        "Code: LayerNorm",
        "Write `layer_norm(x, gain, bias, eps)` without `torch.nn`: x is (B, T, d), gain and bias (d,).",
        ("Mean and biased variance over the last axis, kept as an axis.", "eps stands under the root."),
        "`var(unbiased=False)`, eps inside the root, gain and bias last.",
    ),
    _code(
        "RMSNorm",
        "rms-norm-code",
        "Code: RMSNorm as a module",
        "Write a class `RMSNorm(d, eps)`, a `torch.nn.Module` with one parameter `weight` of d ones, whose forward takes x (B, T, d).",
        ("No mean is subtracted and no bias added.", "`nn.Parameter(torch.ones(d))`, named `weight`."),
        "The root of the mean square, eps inside it, and the gain.",
    ),
)
