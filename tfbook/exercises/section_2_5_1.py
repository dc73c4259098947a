"""The exercises of section 2.5.1, easy to hard. Numbers come from `tfbook.accounting`, never typed."""

import random
from typing import Any

from tfbook.accounting import attention_parameters, attention_shapes
from tfbook.config import TransformerConfig
from tfbook.exercises.code import Code, CodeExercise
from tfbook.exercises.engine import Exercise, Mistake, drawn
from tfbook.exercises.kinds import Choice, Expression, Integer, Option, Shape

SECTION = "2.5.1"


def _shape_path() -> Exercise:
    config = TransformerConfig(d_model=768, n_heads=12)
    batch, length = 8, 512
    truth = next(row.shape for row in attention_shapes(config, batch, length) if row.name == "queries")
    _, heads, _, width = truth
    return Exercise(
        id="mha-shape-path",
        section=SECTION,
        title="The shape of the queries",
        prompt=(
            f"A batch of B = {batch} sequences of T = {length} tokens, width d = {config.d_model}, enters an "
            f"attention layer with H = {heads} heads. What shape do the queries have just before the scores "
            "are computed? Give the sizes in order."
        ),
        kind=Shape(),
        truth=truth,
        mistakes=(
            Mistake(
                "heads-after-positions",
                (batch, length, heads, width),
                "That is the shape right after cutting the last axis, (B, T, H, d_h). The product Q Kᵀ works on "
                "the last two axes, so positions and head width must come last: swap T and H.",
            ),
            Mistake(
                "not-split",
                (batch, length, config.d_model),
                "That is the projection before it is split into heads. Each head needs its own matrix of T rows.",
            ),
            Mistake(
                "head-width-is-d",
                (batch, heads, length, config.d_model),
                "Each head works in its own d_h = d/H dimensions, not in all d.",
            ),
            Mistake(
                "heads-before-batch",
                (heads, batch, length, width),
                "The batch stays first: (B, H, T, d_h).",
            ),
            Mistake(
                "transposed",
                (batch, heads, width, length),
                "Those are the keys **transposed**. A query is a row: positions before head width.",
            ),
            Mistake(
                "batch-dropped",
                (heads, length, width),
                "That is one sequence. The batch is the first axis of every tensor.",
            ),
            Mistake(
                "scores",
                (batch, heads, length, length),
                "That is the shape of the scores, one step later.",
            ),
        ),
        hints=(
            "The projection gives (B, T, d). Into how many pieces is the last axis cut, and how wide is each?",
            "Matrix products work on the last two axes. Which two axes must those be for Q Kᵀ to compare positions?",
        ),
        solution=(
            f"$d_h = d/H = {config.d_model}/{heads} = {width}$. The last axis is cut, "
            f"$(B, T, d) \\to (B, T, H, d_h)$, and heads and positions change places: "
            f"$(B, H, T, d_h) = ({', '.join(map(str, truth))})$."
        ),
    )


def _parameters(d_model: int, n_heads: int) -> Exercise:
    config = TransformerConfig(d_model=d_model, n_heads=n_heads)
    d, d_h, H = config.d_model, config.d_head, config.n_heads  # noqa: N806  the book's symbols
    truth = attention_parameters(config).total
    without_bias = attention_parameters(config.replace(qkv_bias=False, output_bias=False)).total
    return Exercise(
        id="mha-parameters",
        section=SECTION,
        title="Count one layer",
        prompt=(
            f"How many learned numbers has one multi-head attention layer with d = {d} and "
            f"H = {H}, H d_h = d, with a bias on each of its four maps? You may type arithmetic."
        ),
        kind=Integer(),
        truth=truth,
        mistakes=(
            Mistake(
                "biases-forgotten",
                without_bias,
                f"Those are the four matrices, $4 d^2$. Each of the four maps also has a bias of d = {d} numbers.",
            ),
            Mistake(
                "output-map-forgotten",
                truth - d * d - d,
                "You counted W_Q, W_K and W_V. The concatenated heads still pass through $W^O \\in \\mathbb{R}^{d \\times d}$ "
                "with its bias.",
            ),
            Mistake(
                "output-map-and-biases-forgotten",
                3 * d * d,
                "That is $3 d^2$: W^O and all the biases are missing.",
            ),
            Mistake("output-bias-forgotten", truth - d, "W^O has a bias of its own: d numbers are missing."),
            Mistake(
                "only-output-bias",
                without_bias + d,
                "The queries, keys and values have biases too: d numbers each.",
            ),
            Mistake(
                "full-width-heads",
                H * 3 * (d * d + d) + d * d + d,
                full_width := (
                    "You gave each head three matrices of d x d. A head maps into its own d_h = d/H dimensions, so its "
                    "matrices are d x d_h, and the H in front cancels."
                ),
            ),
            Mistake(
                "full-width-heads-without-biases",
                H * 3 * d * d + d * d,
                full_width + " (And the biases are missing.)",
            ),
            Mistake(
                "every-head-a-whole-layer",
                H * truth,
                f"You multiplied the whole layer by H. The H = {H} heads **share** the d dimensions: each has d_h = {d_h}.",
            ),
            Mistake(
                "every-head-a-whole-layer-without-biases",
                H * without_bias,
                f"You multiplied $4 d^2$ by H. The H = {H} heads share the d dimensions. (And the biases are missing.)",
            ),
            Mistake(
                "one-head-counted",
                3 * (d * d_h + d_h) + d * d + d,
                f"The matrices of **one** head are counted. There are H = {H} of them.",
            ),
            Mistake(
                "one-head-counted-without-biases",
                3 * d * d_h + d * d,
                f"The matrices of **one** head are counted. There are H = {H} of them. (And the biases are missing.)",
            ),
            Mistake(
                "biases-of-one-head",
                without_bias + 3 * d_h + d,
                f"The weights are right. The biases of queries, keys and values are as long as all H = {H} heads: d each.",
            ),
        ),
        hints=(
            "One head has three matrices of d x d_h. How many numbers are in all H heads together?",
            "H · 3 d d_h = 3 d², because H d_h = d. What comes after the heads?",
            "Four matrices of d², and four biases. How long is each bias?",
        ),
        solution=(
            f"The heads: $H \\cdot 3 d d_h = 3 d^2$. The output map: $d^2$. The biases: $4 d$.\n\n"
            f"$4 d^2 + 4 d = 4 \\cdot {d}^2 + 4 \\cdot {d}$ = **{truth:,}**"
        ),
    )


def _heads_and_count() -> Exercise:
    def layer(n_heads: int) -> TransformerConfig:
        return TransformerConfig(d_model=1024, n_heads=n_heads, d_head=64, qkv_bias=False, output_bias=False)

    few, many = (attention_parameters(layer(n_heads)).total for n_heads in (16, 32))
    kind = Choice(
        (
            Option(
                "weights the same, scores times 2",
                "as-if-heads-shrank",
                f"That holds when heads get narrower as their number grows, H d_h = d. Here d_h stays: {few:,} weights "
                f"before and {many:,} after.",
            ),
            Option("weights times 2, scores times 2"),
            Option(
                "weights times 2, scores the same",
                "scores-once",
                "The scores are one T x T matrix **per head**: B H T², twice as many.",
            ),
            Option(
                "both the same",
                "nothing-changes",
                "Neither: each new head brings its own W_Q, W_K, W_V, its rows of W_O, and its own T x T scores.",
            ),
        )
    )
    return _choice(
        kind,
        id="mha-double-heads",
        title="Predict: twice the heads",
        prompt=(
            "A layer without biases has d = 1024, H = 16 and d_h = 64. You change H to 32 and **keep d_h = 64** (and d). "
            "Before you compute anything: what happens to the number of weights, and what to the number of scores?"
        ),
        hints=("Write both counts with H and d_h in them. What is held fixed here?",),
        solution=(
            f"W_Q, W_K, W_V are $d \\times H d_h$ and W_O is $H d_h \\times d$: $4 d H d_h$ weights, {few:,} before and "
            f"{many:,} after. Scores: $B H T^2$, twice as many. Only with $d_h = d/H$ does H cancel in the weights."
        ),
        praise="Right: with d_h fixed nothing cancels. Each head brings its weights and its scores.",
    )


def _head_width_given() -> Exercise:
    config = TransformerConfig(
        d_model=640, n_heads=10, d_head=96, n_kv_heads=2, qkv_bias=False, output_bias=False
    )
    d, query, kv = config.d_model, config.d_query, config.d_kv
    truth = attention_parameters(config).total
    usual = d // config.n_heads
    return Exercise(
        id="mha-explicit-head-width",
        section=SECTION,
        title="When H d_h is not d",
        prompt=(
            f"A model states d = {d}, H = {config.n_heads} query heads of d_h = {config.d_head}, n_kv = {config.n_kv_heads} "
            "key/value heads and no biases. How many weights do the four maps W_Q, W_K, W_V and W_O of one layer have together?"
        ),
        kind=Integer(),
        truth=truth,
        mistakes=(
            Mistake(
                "four-d-squared",
                4 * d * d,
                f"That is $4 d^2$, which holds when $H d_h = d$ and $n_{{kv}} = H$. Here H d_h = {query}: W_Q is {d} x {query}.",
            ),
            Mistake(
                "query-heads-for-kv",
                4 * d * query,
                f"W_K and W_V have n_kv = {config.n_kv_heads} heads, not {config.n_heads}: they are {d} x {kv}.",
            ),
            Mistake(
                "keys-without-values", truth - d * kv, "There are two maps of the K/V kind: W_K **and** W_V."
            ),
            Mistake(
                "derived-head-width",
                2 * d * d + 2 * d * config.n_kv_heads * usual,
                f"You took d_h = d/H = {usual}. This model states d_h = {config.d_head}; the quotient is a convention, not a rule.",
            ),
            Mistake(
                "square-output-map",
                d * query + 2 * d * kv + d * d,
                f"W_O takes all heads side by side: it is {query} x {d}.",
            ),
            Mistake("output-map-forgotten", d * query + 2 * d * kv, f"W_O is missing: {query} x {d}."),
            Mistake("key-value-maps-forgotten", 2 * d * query, f"W_K and W_V are missing: {d} x {kv} each."),
        ),
        hints=(
            "How wide are all query heads side by side? And all key heads?",
            f"W_Q maps {d} numbers to {query}. What does W_O do with them?",
        ),
        solution=(
            f"$W^Q$: {d} x {query}. $W^K$ and $W^V$: {d} x {kv} each. $W^O$: {query} x {d}. Together "
            f"$2 d H d_h + 2 d\\, n_{{kv}} d_h$ = **{truth:,}**."
        ),
    )


def _grouped_formula() -> Exercise:
    def points(draw: random.Random) -> dict[str, int]:
        n_kv, group, d_h = draw.sample(range(2, 12), 3)  # all different, so that none can stand for another
        return {"d": n_kv * group * d_h, "H": n_kv * group, "n_kv": n_kv, "d_h": d_h}

    truth = "2 d**2 + 2 d n_kv d_h + 2 d + 2 n_kv d_h"
    return Exercise(
        id="gqa-parameters",
        section=SECTION,
        title="A formula for shared key/value heads, biases included",
        prompt=(
            "Grouped-query attention: H query heads with H d_h = d, n_kv key/value heads, and a bias on each of the four maps. "
            "Write the number of **all** parameters as a formula in d, H, n_kv and d_h; products as `4 d`, powers as `d^2`."
        ),
        kind=Expression(points),
        truth=truth,
        mistakes=(
            Mistake(
                "as-multi-head",
                "4 d**2 + 4 d",
                "That is the count for n_kv = H. With fewer key/value heads W_K and W_V are narrower.",
            ),
            Mistake(
                "biases-forgotten",
                "2 d**2 + 2 d n_kv d_h",
                "Those are the weights. Each map also has a bias, as long as its output.",
            ),
            Mistake(
                "biases-all-of-length-d",
                "2 d**2 + 2 d n_kv d_h + 4 d",
                "The weights are right. A bias is as long as its map's output: d for queries and output, n_kv d_h for keys and values.",
            ),
            Mistake(
                "output-bias-forgotten",
                "2 d**2 + 2 d n_kv d_h + d + 2 n_kv d_h",
                "The output map has a bias too: another d.",
            ),
            Mistake(
                "keys-without-values",
                "2 d**2 + d n_kv d_h + 2 d + n_kv d_h",
                "W_K **and** W_V are d x n_kv d_h, each with its bias: those terms stand twice.",
            ),
            Mistake(
                "only-keys-shared",
                "3 d**2 + d n_kv d_h + 3 d + n_kv d_h",
                "Keys **and** values are shared: W_V has n_kv heads as well.",
            ),
            Mistake(
                "output-map-shrunk",
                "d**2 + 3 d n_kv d_h + 2 d + 2 n_kv d_h",
                "W_O takes the outputs of all H **query** heads, so it stays d x d.",
            ),
            Mistake(
                "output-map-forgotten",
                "d**2 + 2 d n_kv d_h + d + 2 n_kv d_h",
                "W_O is missing, with its bias: another d² + d.",
            ),
            Mistake(
                "head-width-forgotten",
                "2 d**2 + 2 d n_kv + 2 d + 2 n_kv",
                "A key/value head is d_h wide: W_K has n_kv d_h columns, not n_kv.",
            ),
            Mistake(
                "group-count",
                "2 d**2 + 2 d H/n_kv d_h + 2 d + 2 H/n_kv d_h",
                "n_kv is the number of key/value heads; H/n_kv is how many queries share one.",
            ),
            Mistake(
                "one-shared-head",
                "2 d**2 + 2 d d_h + 2 d + 2 d_h",
                "That is multi-query attention, n_kv = 1. Here there are n_kv heads of d_h.",
            ),
        ),
        hints=(
            "Write each matrix as rows times columns. Which of the four have n_kv in them?",
            "W_Q is d x H d_h = d x d. W_K is d x n_kv d_h. And W_O?",
            "A bias is as long as the output of its map.",
        ),
        solution=(
            "W_Q and W_O: $d^2 + d$ each. W_K and W_V: $d\\, n_{kv} d_h + n_{kv} d_h$ each. Together "
            "$2 d^2 + 2 d\\, n_{kv} d_h + 2 d + 2 n_{kv} d_h$, which is $4 d^2 + 4 d$ for $n_{kv} = H$."
        ),
    )


def _score_numbers(batch: int, length: int, n_heads: int) -> Exercise:
    config = TransformerConfig(d_model=64 * n_heads, n_heads=n_heads)
    truth = next(row.elements for row in attention_shapes(config, batch, length) if row.name == "scores")
    heads = config.n_heads
    return Exercise(
        id="mha-score-count",
        section=SECTION,
        title="How many scores",
        prompt=(
            f"With B = {batch}, T = {length}, H = {heads} and d = {config.d_model}: how many attention scores does one layer "
            "compute in one forward pass, before any mask?"
        ),
        kind=Integer(),
        truth=truth,
        mistakes=(
            Mistake("one-sequence", truth // batch, "That is one sequence. The batch has B of them."),
            Mistake(
                "one-head", truth // heads, "That is one head. Each of the H heads has its own T x T matrix."
            ),
            Mistake("one-head-one-sequence", length**2, "That is one T x T matrix: one head, one sequence."),
            Mistake(
                "causal-half",
                batch * heads * length * (length + 1) // 2,
                "That counts only the pairs that a causal mask allows. Before the mask all T² are computed.",
            ),
            Mistake(
                "times-head-width",
                truth * config.d_head,
                "The head width is summed over in each inner product: it costs work, but leaves one number a pair.",
            ),
            Mistake(
                "queries-counted",
                batch * heads * length * config.d_head,
                "Those are the numbers in Q. A score is a number for each **pair** of positions.",
            ),
        ),
        hints=("A score belongs to a pair of positions, in one head, in one sequence.",),
        solution=f"$B H T^2$ = {batch} · {heads} · {length}² = {truth:,}. No d in it.",
    )


def _score_rank() -> Exercise:
    d, heads, length = 64, 2, 16
    width = TransformerConfig(d_model=d, n_heads=heads).d_head
    truth = min(width, length)
    return Exercise(
        id="mha-score-rank",
        section=SECTION,
        title="Predict: the rank of a score matrix",
        prompt=(
            f"T = {length} positions, d = {d}, H = {heads}. Predict before you run it: what is the largest possible rank "
            "of one head's score matrix Q Kᵀ?"
        ),
        kind=Integer(),
        truth=truth,
        mistakes=(
            Mistake(
                "head-width",
                width,
                f"d_h = {width} is one bound. The matrix itself has only T = {length} rows.",
            ),
            Mistake(
                "model-width",
                d,
                f"No rank exceeds the size of the matrix, {length} x {length}, nor the inner dimension d_h.",
            ),
            Mistake("head-count", heads, "The number of heads is not the width of one head."),
            Mistake("length-over-heads", length // heads, "It is d that is divided among the heads, not T."),
        ),
        hints=("Q is T x d_h. What can the rank of a product of a T x d_h and a d_h x T matrix be at most?",),
        solution=(
            f"$Q K^\\top$ is {length} x {length} and passes through $d_h = {d}/{heads} = {width}$ dimensions: its rank is at most the "
            f"smaller of the two, **{truth}**. The bottleneck of narrow heads binds only where $d_h < T$."
        ),
    )


def _one_head_enough() -> Exercise:
    kind = Choice(
        (
            Option(
                "all heads have the same W_V",
                "equal-values",
                "Equal values give the **average** of the patterns, $\\bar P V$, and an average of two heads' patterns "
                "is in general none that a single head can make: the chapter proves it for a function.",
            ),
            Option("all heads have the same W_Q and the same W_K"),
            Option(
                "W_O is block diagonal",
                "block-output",
                "W_O only mixes what the heads return. Different patterns stay different whatever comes after.",
            ),
            Option(
                "all heads have the same W_Q",
                "equal-queries",
                "With different keys the same query still gives different scores, and so different patterns.",
            ),
        )
    )
    return _choice(
        kind,
        id="mha-reduce-to-one",
        title="When several heads are one",
        prompt=(
            "Under which condition can H heads **always** be replaced by a single head with the same output, "
            "whatever the input (no biases)?"
        ),
        hints=(
            "A head's pattern is the softmax of its scores. When are all patterns equal for every input?",
        ),
        solution=(
            "Equal W_Q and W_K give equal patterns P. Then $[P V_1, \\dots, P V_H]\\, W^O = "
            "P\\, [V_1, \\dots, V_H]\\, W^O$: one pattern, one (wider) value map."
        ),
        praise="Right: the equal pattern P factors out, and the rest is one linear map.",
    )


def _read_a_claim() -> Exercise:
    kind = Choice(
        (
            Option(
                "The models differ in parameters",
                feedback="One head of 64 has 1/16 of the attention weights: part of the gain may be size.",
            ),
            Option(
                "The models differ in compute per step",
                feedback="Projections 16 times as wide, and 16 score matrices against one: more work per step.",
            ),
            Option(
                "16 heads of 64 cannot be built with d = 1024",
                "cannot-be-built",
                "16 · 64 = 1024: they can, and even that equality is only a convention.",
            ),
            Option(
                "Steps and tuning may not have been equal",
                feedback="A comparison needs equal steps and an equal search for the learning rate.",
            ),
            Option(
                "Multi-head is always better, so no comparison is needed",
                "always-better",
                "At equal width neither class contains the other; the chapter runs both directions.",
            ),
        ),
        many=True,
    )
    return Exercise(
        id="mha-read-a-claim",
        section=SECTION,
        title="Read a claim",
        prompt=(
            "Suppose you read: with 16 heads of 64, a model beats the single-head one with d_h = 64 by two points. "
            "Both have d = 1024. Which doubts are justified? Choose all that are."
        ),
        kind=kind,
        truth=kind.right(),
        mistakes=(
            Mistake(
                "compute-forgotten",
                frozenset("ad"),
                "Count the work of a step: the projections of one model are 16 times as wide.",
            ),
            Mistake(
                "parameters-forgotten",
                frozenset("bd"),
                "Count the parameters: H d_h = 1024 in one model and 64 in the other.",
            ),
            Mistake(
                "steps-forgotten", frozenset("ab"), "And the training: same steps, same search for the rate?"
            ),
        ),
        hints=("Ask three things of such a claim: equal parameters? equal compute? equal steps?",),
        solution=(
            "a, b and d. A fair single-head rival has d_h = 1024: equal parameters, and then the two differ only in how they "
            "compare positions. Even then the softmax has 16 times as many scores to handle; and steps and tuning must be told."
        ),
    )


def _find_the_line() -> Exercise:
    kind = Choice(
        (
            Option(
                "line a", "projection", "Each row of x is multiplied by each matrix: that is the definition."
            ),
            Option(
                "line b",
                "split",
                "The last axis is cut into (H, d_h), and heads change places with positions.",
            ),
            Option(
                "line c",
                "softmax",
                "Scaled by the root of the head width, normalised over the keys: correct.",
            ),
            Option("line d"),
            Option(
                "line e",
                "output",
                "Multiplying by W_O is right. Check the shape and the content of what reaches it.",
            ),
        )
    )
    return _choice(
        kind,
        id="mha-find-the-bug",
        title="Find the bug",
        prompt=(
            "This runs, returns the right shape, trains, and is wrong. Which line?\n\n"
            "```text\n"
            "  def attention(x, w_q, w_k, w_v, w_o, n_heads):\n"
            "      B, T, d = x.shape\n"
            "a     q, k, v = x @ w_q, x @ w_k, x @ w_v\n"
            "b     q, k, v = (z.view(B, T, n_heads, -1).transpose(1, 2)\n"
            "                 for z in (q, k, v))\n"
            "c     p = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)\n"
            "d     out = (p @ v).reshape(B, T, d)\n"
            "e     return out @ w_o\n"
            "```"
        ),
        hints=("Write the shape after every line.", "Which line undoes the swap of heads and positions?"),
        solution=(
            "Line d. `p @ v` is (B, H, T, d_h); `reshape` straight to (B, T, d) keeps the memory order, so a row of the "
            "result is made of consecutive positions, mostly of one head. It must be `(p @ v).transpose(1, 2).reshape(B, T, d)`."
        ),
        praise="Right: heads and positions are never swapped back.",
    )


def _split_code() -> Exercise:
    return _code(
        "split_heads",
        id="mha-split-heads",
        title="Code: split into heads",
        prompt=(
            "Write `split_heads(x, n_heads)`: from (B, T, H d_h) to (B, H, T, d_h), where head h gets the contiguous "
            "coordinates of each position from h d_h up to, not including, (h + 1) d_h (counting from 0)."
        ),
        hints=(
            "Cut the last axis into two first. `reshape` keeps the order of numbers in memory.",
            "(B, T, H, d_h) → swap two axes → (B, H, T, d_h).",
        ),
        remark="The order matters: cut the last axis, and only then move the heads forward.",
    )


def _attention_code() -> Exercise:
    return _code(
        "multi_head_attention",
        id="mha-from-scratch",
        title="Code: multi-head attention",
        prompt=(
            "Write `multi_head_attention(x, w_q, w_k, w_v, w_o, n_heads)`: x is (B, T, d), the weights are (d, d) and used "
            "as `x @ w`, no biases, no mask; returns (B, T, d). Your `split_heads` helps."
        ),
        hints=(
            "Project, split, compare, normalise over the keys, mix the values, merge, multiply by w_o.",
            "The scale is the root of the width of **one head**.",
            "Merging undoes splitting: swap heads and positions back, then flatten the last two axes.",
        ),
        remark="Seven steps, each a line or less. Write the shape behind each, and most bugs show themselves.",
    )


def _repair_code() -> Exercise:
    return _code(
        "attention_weights",
        id="gqa-repair",
        title="Code: find the planted bug and mend it",
        prompt=(
            "Grouped queries with a mask, boolean and True where a query **may attend**. The function below runs and its "
            "rows sum to 1, but a test against the definition fails: query head h must read key head h // (H / n_kv). "
            "Mend it.\n\n"
            "```python\n"
            "def attention_weights(query, key, mask):\n"
            "    # query (B, H, T, d_h), key (B, n_kv, S, d_h), mask (T, S)\n"
            "    key = key.repeat(1, query.shape[1] // key.shape[1], 1, 1)\n"
            "    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5\n"
            "    return scores.masked_fill(~mask, float('-inf')).softmax(dim=-1)\n"
            "```"
        ),
        hints=(
            "With H = 4 and n_kv = 2, which key head must query heads 0, 1, 2, 3 read? Which do they read here?",
            "Compare `torch.arange(2).repeat(2)` with `torch.arange(2).repeat_interleave(2)`.",
        ),
        remark="Query heads of one group are neighbours, so each key head is repeated in place: 0, 0, 1, 1 and not 0, 1, 0, 1.",
    )


def _choice(kind: Choice, **texts: Any) -> Exercise:
    return Exercise(section=SECTION, kind=kind, truth=kind.right(), mistakes=kind.mistakes(), **texts)


def _code(name: str, remark: str, **texts: Any) -> Exercise:
    kind = Code(name, "tfbook.exercises.attention_code")
    solution = f"```python\n{kind.reference_source()}\n```\n\n{remark}"
    return CodeExercise(section=SECTION, kind=kind, solution=solution, **texts)


def _draw_layer(draw: random.Random) -> dict[str, int]:
    n_heads = draw.choice([4, 8, 16])
    return {"d_model": n_heads * draw.choice([24, 32, 48, 96, 128]), "n_heads": n_heads}


def _draw_scores(draw: random.Random) -> dict[str, int]:
    return {
        "batch": draw.randint(3, 7),
        "length": 100 * draw.randint(3, 30),
        "n_heads": draw.choice([9, 10, 14, 20]),
    }


EXERCISES = (
    _shape_path(),
    drawn(_parameters, _draw_layer, d_model=512, n_heads=8),
    _heads_and_count(),
    drawn(_score_numbers, _draw_scores, batch=8, length=1024, n_heads=12),
    _head_width_given(),
    _grouped_formula(),
    _score_rank(),
    _one_head_enough(),
    _read_a_claim(),
    _find_the_line(),
    _split_code(),
    _attention_code(),
    _repair_code(),
)
