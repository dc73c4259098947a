"""The four questions of the section's self-test."""

from fractions import Fraction
from typing import Any

from tfbook.accounting import attention_parameters, feed_forward_parameters, kv_cache
from tfbook.accounting.units import format_bytes
from tfbook.config import TransformerConfig
from tfbook.exercises.authoring import ask, no, pick
from tfbook.exercises.compound import Blank, Blanks, Bytes, Number
from tfbook.exercises.engine import Exercise, drawn
from tfbook.exercises.kinds import Expression, Integer

S = "self-test"


def _heads() -> Exercise:
    formula = pick(
        no(
            "softmax(Q Kᵀ / √d) V, with the d of the whole model",
            "one-head",
            "That is one head of full width. Each head works on its own d_h-dimensional projections.",
        ),
        no(
            "the mean of the heads' outputs", "mean", "The heads' outputs are set side by side, not averaged."
        ),
        "Concat(head₁, ..., head_H) W_O with head_j = softmax(Q_j K_jᵀ / √d_h) V_j",
    )
    cost = pick(
        no("more parameters", "parameters", "Their number stays the same, as the first blank says."),
        "H score matrices of T x T, and heads too narrow to compare well",
        no(
            "nothing: more heads are always better",
            "nothing",
            "Narrow heads have a small space in which to compare, and every head has T x T scores.",
        ),
    )
    kinds = (
        Blank(
            "weights of the four maps, a formula in d and H",
            Expression(lambda draw: {"d": draw.randint(3, 40), "H": draw.randint(2, 9)}),
        ),
        Blank("the multi-head formula", formula),
        Blank("what a larger H costs", cost),
    )
    return ask(
        S,
        Blanks(kinds),
        ("4 d^2", formula.right(), cost.right()),
        (
            "times-heads",
            ("4 H d^2", None, None),
            "Each head maps into d_h = d/H dimensions: H heads of d x d/H are d x d together, and the H cancels.",
        ),
        ("no-output-map", ("3 d^2", None, None), "W_O is the fourth map: d² more."),
        *((m.name, (None, m.answer, None), m.diagnosis) for m in formula.mistakes()),
        *((m.name, (None, None, m.answer), m.diagnosis) for m in cost.mistakes()),
        id="self-test-1",
        title="Question 1: the heads",
        prompt="Multi-head attention with H d_h = d and without biases: how many weights has it and why does H not change that, what is its formula, and what is the price of a larger H?",
        hints=(
            "H · 3 · d · d_h + d².",
            "Narrower heads compare in fewer dimensions, and there are more matrices of scores.",
        ),
        solution="$H \\cdot 3\\,d\\,d_h + d^2 = 4 d^2$, since $H d_h = d$. The heads are concatenated and mixed by $W^O$. A larger H means more score matrices ($B\\,H\\,T^2$ numbers) and narrower heads.",
    )


def _thirds(d: int) -> Exercise:
    config = TransformerConfig(d_model=d, n_heads=8, qkv_bias=False, output_bias=False, ffn_bias=False)
    attention, ffn = attention_parameters(config).total, feed_forward_parameters(config, 4 * d).total
    kinds = (
        Blank("attention", Integer()),
        Blank("feed-forward layer", Integer()),
        Blank("its share of the two", Number(tolerance=Fraction(1, 200), percent=True)),
    )
    return ask(
        S,
        Blanks(kinds),
        (attention, ffn, Fraction(2, 3)),
        ("no-output-map", (3 * d * d, None, None), "Attention has four maps: W_O too."),
        (
            "one-matrix",
            (None, 4 * d * d, None),
            "The feed-forward layer has two matrices, up to 4 d and down again.",
        ),
        ("ratio", (None, None, Fraction(2)), "Two is the ratio. The share is 8 of 12."),
        ("third", (None, None, Fraction(1, 3)), "A third is attention's share."),
        (
            "heads-counted",
            (8 * attention, None, None),
            "The heads share the four maps; their number does not multiply them.",
        ),
        id="self-test-2",
        title="Question 2: two thirds",
        prompt=f"d = {d}, d_ff = 4d, H d_h = d, no biases. How many parameters have attention and the feed-forward layer, and which share is the latter's?",
        hints=("4 d² and 8 d².",),
        solution=f"$4 d^2 = {attention:,}$, $8 d^2 = {ffn:,}$: 8 of 12, two thirds.",
    )


def _norms() -> Exercise:
    post = pick(
        no("Y = X + Sub(LN(X))", "post-is-pre", "That is Pre-LN: the norm stands before the sublayer."),
        "Y = LN(X + Sub(X))",
        no("Y = X + LN(Sub(X))", "post-inside", "Post-LN normalizes the whole sum."),
    )
    pre = pick(
        "Y = X + Sub(LN(X))",
        no("Y = LN(X) + Sub(LN(X))", "pre-normalized", "The residual path stays bare: X itself is added."),
        no("Y = LN(X + Sub(X))", "pre-is-post", "That is Post-LN: the sum is normalized."),
    )
    why = pick(
        no("it has fewer parameters", "fewer", "Both have the same, but for Pre-LN's final norm."),
        no(
            "its final loss is always lower",
            "better",
            "It is a statement about the stability of training, not about final quality.",
        ),
        "an identity path leads through all blocks, so gradients reach every layer without crossing the norms inside them",
    )
    kinds = (
        Blank("Post-LN", post),
        Blank("Pre-LN", pre),
        Blank("why deep Pre-LN models are easier to train", why),
    )
    slips = [
        (mistake.name, tuple(mistake.answer if i == place else None for i in range(3)), mistake.diagnosis)
        for place, choice in enumerate((post, pre, why))
        for mistake in choice.mistakes()
    ]
    return ask(
        S,
        Blanks(kinds),
        (post.right(), pre.right(), why.right()),
        *slips,
        id="self-test-3",
        title="Question 3: where the norm stands",
        prompt="Give the two placements of the norm, and why one trains deep more easily.",
        hints=("Post: add, then norm. Pre: norm, then add.", "Where does X pass untouched?"),
        solution="Post-LN: LN(X + Sub(X)). Pre-LN: X + Sub(LN(X)), whose Jacobian is I + ...: gradients take the bare path. That is about stability; Post-LN can end as good, with warm-up.",
    )


def _cache(n_layers: int, d: int, n_heads: int, length: int, n_kv_heads: int) -> Exercise:
    config = TransformerConfig(n_layers=n_layers, d_model=d, n_heads=n_heads)
    own = kv_cache(config, 1, length).bytes
    shared = kv_cache(config.replace(n_kv_heads=n_kv_heads), 1, length).bytes
    weights = 2 * 12 * n_layers * d * d
    kinds = (
        Blank("MHA", Bytes()),
        Blank(f"GQA with n_kv = {n_kv_heads}", Bytes()),
        Blank("the weights, 12 L d² in FP16", Bytes()),
    )
    return ask(
        S,
        Blanks(kinds),
        (own, shared, weights),
        ("keys-alone", (own // 2, None, None), "Keys and values are kept: a factor of 2."),
        ("one-layer", (own // n_layers, None, None), "That is one layer."),
        ("gb-for-gib", (own * 10**9 // 2**30, None, None), "GiB is $2^{30}$ bytes, GB $10^9$."),
        ("not-shared", (None, own, None), "With grouped queries only n_kv heads are kept."),
        (
            "groups",
            (None, own // n_kv_heads, None),
            "n_kv is the number of key/value heads that are kept, not the number that share one.",
        ),
        ("parameters", (None, None, weights // 2), "Those are parameters; in FP16 each takes 2 bytes."),
        id="self-test-4",
        title="Question 4: the cache",
        prompt=f"L = {n_layers}, d = {d}, H = {n_heads}, B = 1, T = {length:,}, FP16: how large is the key/value cache with heads of its own and with n_kv = {n_kv_heads}, and how large are the weights?",
        hints=("2 · L · T · n_kv · d_h numbers of 2 bytes.", f"d_h = {d // n_heads}."),
        solution=f"{format_bytes(own)} and {format_bytes(shared)}, beside {format_bytes(weights)} of weights: a ratio of {own / weights:.2g}, which grows with T and B.",
    )


def _draw_question_4(draw: Any) -> dict[str, int]:
    heads = draw.choice([16, 32])
    return {
        "n_layers": draw.choice([16, 24, 32, 40]),
        "d": heads * draw.choice([64, 128]),
        "n_heads": heads,
        "length": 1024 * draw.choice([2, 4, 8, 16]),
        "n_kv_heads": draw.choice([2, 8]),
    }


EXERCISES: tuple[Any, ...] = (
    _heads(),
    drawn(_thirds, lambda draw: {"d": 64 * draw.randint(4, 40)}, d=512),
    _norms(),
    drawn(_cache, _draw_question_4, n_layers=24, d=2048, n_heads=16, length=4096, n_kv_heads=4),
)
