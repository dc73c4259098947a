"""The exercises of section 2.5.5, shapes and parameters."""

import random
from fractions import Fraction
from typing import Any

from tfbook.accounting import count_parameters, forward_shapes
from tfbook.config import TransformerConfig
from tfbook.exercises.authoring import ask, choose, find_bug, no, pick, write
from tfbook.exercises.compound import Blank, Blanks, Number, Ordering
from tfbook.exercises.engine import Exercise, drawn
from tfbook.exercises.kinds import Integer

S = "2.5.5"


def _block(d: int, n_heads: int) -> Exercise:
    config = TransformerConfig(d_model=d, n_heads=n_heads, n_layers=1)
    truth = count_parameters(config).part("decoder").part("block").total
    return ask(
        S,
        Integer(),
        truth,
        ("matrices-alone", 12 * d * d, "That is 12 d², the matrices. Biases and two LayerNorms add 13 d."),
        (
            "four-d-short",
            12 * d * d + 9 * d,
            "4 d are missing: as many as two LayerNorms hold (2 d each), and as many as attention's four biases.",
        ),
        (
            "two-d-short",
            12 * d * d + 11 * d,
            "2 d are missing: a block has two LayerNorms, each with a gain **and** a bias.",
        ),
        (
            "no-biases",
            12 * d * d + 4 * d,
            "The maps have biases: 4 d in attention, 5 d in the feed-forward layer.",
        ),
        (
            "attention-alone",
            4 * d * d + 4 * d,
            "That is attention. The feed-forward layer and the norms follow.",
        ),
        (
            "feed-forward-alone",
            8 * d * d + 5 * d,
            "That is the feed-forward layer. Attention and the norms are missing.",
        ),
        id="account-block",
        title="Count one block",
        prompt=f"A block with d = {d}, H = {n_heads}, d_ff = 4d, biases everywhere and two LayerNorms: how many parameters?",
        hints=(
            "Matrices: 4 d² and 8 d².",
            "Biases: 4 d in attention; 4 d and d in the feed-forward layer.",
            "Each LayerNorm has 2 d.",
        ),
        solution=f"$12 d^2 + 13 d = {12 * d * d:,} + {13 * d:,} = {truth:,}$.",
    )


def _draw_block(draw: random.Random) -> dict[str, int]:
    heads = draw.choice([4, 8, 12, 16])
    return {"d": heads * 64, "n_heads": heads}


def _error() -> Exercise:
    d = 768
    block = 12 * d * d + 13 * d
    return ask(
        S,
        Number(tolerance=Fraction(1, 40), percent=True),
        Fraction(13 * d, block),
        (
            "inverted",
            Fraction(block, 13 * d),
            "That is the inverse. The error is what the rule leaves out, over the whole.",
        ),
        ("biases-only", Fraction(9 * d, block), "The norms' 4 d belong to what 12 d² leaves out, too."),
        ("norms-only", Fraction(4 * d, block), "The biases' 9 d belong to what 12 d² leaves out, too."),
        id="account-error",
        title="How good is 12 d²?",
        prompt="For d = 768, which share of a block's parameters does the mental arithmetic 12 d² leave out? (in per cent, two digits)",
        hints=("A block has 12 d² + 13 d.",),
        solution=f"$13 d / (12 d^2 + 13 d) = {13 * d / block:.3%}$, about 13/(12 d): the wider the model, the better the rule.",
    )


def _total() -> Exercise:
    config = TransformerConfig(layout="encoder")
    truth = count_parameters(config).total
    d, blocks = 768, 12 * (12 * 768**2 + 13 * 768)
    return ask(
        S,
        Integer(),
        truth,
        ("blocks-alone", blocks, "Those are the 12 blocks. The embedding and the final norm are missing."),
        ("no-final-norm", blocks + 32_000 * d, "One LayerNorm is missing: the final one, 2 d."),
        ("twice", truth + 32_000 * d, "Tied embeddings are one table: count it once."),
        ("no-embedding", blocks + 2 * d, "The embedding is missing: V d."),
        ("one-block", 12 * 768**2 + 13 * 768 + 32_000 * d + 2 * d, "You counted one block instead of 12."),
        id="account-total",
        title="The whole encoder",
        prompt="d = 768, 12 blocks (7,087,872 each), V = 32,000 with tied embeddings, sinusoidal positions, a final LayerNorm. How many parameters? You may type arithmetic.",
        hints=("12 blocks, one table, one norm.", "Sinusoids are computed, not learned."),
        solution=f"$12 \\cdot 7{{,}}087{{,}}872 + 32{{,}}000 \\cdot 768 + 2 \\cdot 768 = {truth:,}$.",
    )


def _embedding_share(d: int, n_layers: int, vocab: int) -> Exercise:
    tied = count_parameters(
        TransformerConfig(layout="encoder", d_model=d, n_heads=1, n_layers=n_layers, vocab_size=vocab)
    )
    table, rest = vocab * d, tied.total - vocab * d
    return ask(
        S,
        Number(tolerance=Fraction(1, 40), percent=True),
        Fraction(table, tied.total),
        (
            "untied",
            Fraction(2 * table, tied.total + table),
            "That is the share when input and output have tables of their own. Here they are tied: one table.",
        ),
        (
            "ratio",
            Fraction(table, rest),
            "That is the ratio to the rest. The share is of the whole, embedding included.",
        ),
        (
            "rest",
            Fraction(rest, tied.total),
            "That is the share of everything else, or you counted one block instead of all.",
        ),
        id="account-embedding-share",
        title="The embedding's share",
        prompt=f"A model has d = {d}, L = {n_layers} blocks of about 12 d² + 13 d parameters, and V = {vocab:,} with tied embeddings. Which share of all parameters is the embedding's? (in per cent, two digits)",
        hints=("The table has V d numbers.", "Compare V with 12 L d + V."),
        solution=f"${table:,} / {tied.total:,} = {table / tied.total:.1%}$. Roughly $V / (V + 12 L d)$: large vocabularies weigh on small models.",
    )


def _draw_share(draw: random.Random) -> dict[str, int]:
    return {
        "d": 128 * draw.randint(2, 16),
        "n_layers": draw.randint(4, 30),
        "vocab": 1000 * draw.randint(20, 150),
    }


def _squared_rows() -> Exercise:
    return choose(
        S,
        no("the queries", "queries", "(B, H, T, d_h): they grow with T, not with its square."),
        "the scores",
        no("the logits", "logits", "(B, T, V): large, and linear in T."),
        "the softmax weights",
        no("the hidden layer of the feed-forward network", "hidden", "(B, T, d_ff): linear in T."),
        many=True,
        id="account-squared",
        title="Which rows grow with T²?",
        prompt="Which tensors of a forward pass grow with the square of T?",
        hints=("Which have T twice in their shape?",),
        solution="Two: the scores and the weights, both (B, H, T, T). They do not depend on d.",
        praise="Right: two rows, and written out, attention keeps at least one of them for the backward pass.",
    )


def _overtake(n_heads: int, vocab: int) -> Exercise:
    return ask(
        S,
        Number(tolerance=Fraction(1, 100)),
        Fraction(vocab, n_heads),
        ("vocabulary", Fraction(vocab), "You left out the heads: there are H matrices of scores."),
        ("root", Fraction(round((vocab / n_heads) ** 0.5)), "One T cancels: B H T² against B T V."),
        ("product", Fraction(vocab * n_heads), "Solve H T = V for T."),
        id="account-overtake",
        title="When scores overtake logits",
        prompt=f"With H = {n_heads} heads and V = {vocab:,}, from which length T on do the scores of one layer hold more numbers than the logits?",
        hints=("Scores: B H T². Logits: B T V.",),
        solution=f"$B H T^2 > B T V$ when $T > V/H = {vocab / n_heads:,.0f}$.",
    )


def _order() -> Exercise:
    rows = {row.name: row.elements for row in forward_shapes(TransformerConfig(), 8, 512)}
    names = {"a": "feed-forward hidden", "b": "logits", "c": "queries", "d": "scores"}
    truth = tuple(sorted(names, key=lambda key: rows[names[key]]))
    kind = Ordering(
        (
            "the hidden layer of the feed-forward network",
            "the logits",
            "the queries of one layer",
            "the scores of one layer",
        )
    )
    return ask(
        S,
        kind,
        truth,
        (
            "scores-largest",
            ("c", "a", "b", "d"),
            "With V = 32,000 the logits are larger than the scores here: 131 million against 25.",
        ),
        (
            "hidden-largest",
            ("c", "d", "b", "a"),
            "The hidden layer is 4 d wide: four times the queries, and half the scores here.",
        ),
        ("largest-first", tuple(reversed(truth)), "From the smallest to the largest, please."),
        id="account-order",
        title="Sort the tensors",
        prompt="B = 8, T = 512, d = 768, H = 12, d_ff = 3072, V = 32,000. Order by the number of elements, the smallest first.",
        hints=("B T d, B T d_ff, B H T², B T V.",),
        solution="; ".join(f"{names[key]} {rows[names[key]]:,}" for key in truth) + ".",
    )


def _table() -> Exercise:
    config = TransformerConfig(layout="encoder", n_layers=1)
    block = count_parameters(config).part("encoder").part("block")
    parts = {name: block.part(name).total for name in ("attention", "feed_forward")}
    norms = block.total - sum(parts.values())
    kinds = tuple(Blank(name, Integer()) for name in ("attention", "feed-forward layer", "the two norms"))
    d = 768
    return ask(
        S,
        Blanks(kinds),
        (parts["attention"], parts["feed_forward"], norms),
        (
            "attention-without-biases",
            (4 * d * d, None, None),
            "Attention: each of the four maps has a bias of d.",
        ),
        (
            "feed-forward-without-biases",
            (None, 8 * d * d, None),
            "Feed-forward: its biases are d_ff and d wide.",
        ),
        (
            "norms-without-bias",
            (None, None, 2 * d),
            "LayerNorm has a bias beside its gain, and there are two norms.",
        ),
        ("one-norm", (None, None, d), "Two norms, each with a gain and a bias of d."),
        id="account-table",
        title="Fill the table",
        prompt="One block with d = 768, d_ff = 3072, biases everywhere, two LayerNorms. Fill in the parameters; arithmetic is welcome.",
        hints=("4 d² + 4 d.", "2 d d_ff + d_ff + d.", "Two times 2 d."),
        solution=f"{parts['attention']:,}, {parts['feed_forward']:,} and {norms:,}: {block.total:,} in all, shares "
        + ", ".join(f"{n / block.total:.2%}" for n in (*parts.values(), norms))
        + ".",
    )


def _find_bug() -> Exercise:
    return find_bug(
        S,
        5,
        pick(
            no("head = vocab + d", "sum", "An output map has V times d weights."),
            "head = 0 if tied else vocab * d",
            no(
                "head = vocab",
                "bias",
                "That would be a bias of the output. The weights are shared with the embedding when tied.",
            ),
        ),
        ("blocks", 4, "Line 4 is right: 12 d² + 13 d in each of the blocks."),
        ("embedding", 3, "The table is counted here, and rightly so."),
        ("sum", 6, "The sum is right; one of its parts is not."),
        listing="""
def count(vocab, d, n_layers, tied):
    # LayerNorm blocks, d_ff = 4d
    embedding = vocab * d
    blocks = n_layers * (12 * d**2 + 13 * d)
    head = vocab * d
    return embedding + blocks + 2 * d + head
""",
        id="account-find-bug",
        title="Find the bug: too many parameters",
        prompt="For a model with tied embeddings this count is too large. Which line, and how should it read?",
        hints=("What does tied mean for the output map?",),
        solution="Line 5: tied, the output map is the embedding's table, counted in line 3 already.",
    )


def _code(name: str, id: str, title: str, prompt: str, hints: tuple[str, ...], remark: str) -> Exercise:
    return write(S, "account_code", name, remark, id=id, title=title, prompt=prompt, hints=hints)


EXERCISES: tuple[Any, ...] = (
    drawn(_block, _draw_block, d=1024, n_heads=16),
    _table(),
    _squared_rows(),
    _error(),
    _total(),
    drawn(
        _overtake,
        lambda draw: {"n_heads": draw.choice([8, 12, 16, 32]), "vocab": 1000 * draw.randint(16, 128)},
        n_heads=16,
        vocab=50_000,
    ),
    drawn(_embedding_share, _draw_share, d=768, n_layers=12, vocab=32_000),
    _order(),
    _find_bug(),
    _code(
        "decoder_parameters",
        "parameter-count-code",
        "Code: count a decoder",
        "Write `decoder_parameters(vocab, d, n_layers, d_ff, d_kv, tied)`: token table, blocks with attention (keys and values d_kv wide in all, H d_h = d), a feed-forward layer of two matrices, two RMSNorms, no biases; a final RMSNorm; and an output map, which is the table when tied. No positions are learned. Returns an int.",
        (
            "Attention: d² for queries and for the output, d d_kv for keys and for values.",
            "RMSNorm has a gain of d and no bias.",
        ),
        "The account is structural: it walks the parts and adds.",
    ),
    _code(
        "pass_flops",
        "pass-flops-code",
        "Code: the FLOPs of a pass",
        "Write `pass_flops(batch, length, d, n_layers, vocab)`: the matmul FLOPs of a decoder's full pass, a multiply-add as 2, with d_ff = 4d, n_kv = H, H d_h = d, every (query, key) pair counted, and logits at every position. Look-ups are no FLOPs. Returns an int.",
        (
            "Each weight of a matrix costs 2 FLOPs a token: 24 d² a block.",
            "Scores and averages: 2 T² d each, a block and sequence.",
            "The output map: 2 V d a token.",
        ),
        "Per block and sequence 24 d² T + 4 T² d, and the head.",
    ),
)
