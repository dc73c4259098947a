"""Three heads set by hand, so that each looks for one thing in a sentence. Nothing is trained.

The features of each word are written down here, as a grammar book would; the weights W_Q and
W_K only say which features ask for which. The patterns come out of the package's attention.
"""

from dataclasses import dataclass

import torch

from tfbook.config import TransformerConfig
from tfbook.model import MultiHeadAttention

FEATURES = (
    "subject 1",
    "verb 1",
    "subject 2",
    "verb 2",
    "a person",
    "a thing",
    "asks for a person",
    "asks for a thing",
)
SENTENCE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Ada", ("subject 1", "a person")),
    ("closed", ("verb 1",)),
    ("the", ()),
    ("book", ("a thing",)),
    ("because", ()),
    ("she", ("subject 2", "asks for a person")),
    ("had", ("verb 2",)),
    ("finished", ("verb 2",)),
    ("it", ("asks for a thing",)),
)
HEADS: dict[str, tuple[tuple[str, str], ...]] = {
    "the previous word": (),
    "the subject of a verb": (("verb 1", "subject 1"), ("verb 2", "subject 2")),
    "what a pronoun means": (("asks for a person", "a person"), ("asks for a thing", "a thing")),
}


@dataclass(frozen=True)
class SentenceHeads:
    """The words, what each head looks for, and the weights (heads, T, T) as nested lists."""

    words: list[str]
    looks_for: list[str]
    weights: list[list[list[float]]]


def sentence_heads(sharpness: float = 5.0) -> SentenceHeads:
    """The patterns of the three heads. `sharpness` is the score of a match, after the scaling."""
    length, features = len(SENTENCE), len(FEATURES)
    x = torch.zeros(1, length, length + features)  # which position, then which features
    for position, (_, has) in enumerate(SENTENCE):
        x[0, position, position] = 1.0
        for feature in has:
            x[0, position, length + FEATURES.index(feature)] = 1.0
    config = TransformerConfig(
        d_model=length + features,
        n_heads=len(HEADS),
        d_head=length + features,
        positions="none",
        qkv_bias=False,
        output_bias=False,
    )
    layer = MultiHeadAttention(config)
    with torch.no_grad():
        layer.key.weight.copy_(torch.eye(config.d_head).repeat(config.n_heads, 1))  # keys say what a word is
        layer.query.weight.copy_(torch.cat([_query(pairs, length) for pairs in HEADS.values()]))
        layer.query.weight.mul_(sharpness * config.d_head**0.5)
        _, weights = layer.with_weights(x)
    return SentenceHeads([word for word, _ in SENTENCE], list(HEADS), weights[0].tolist())


def _query(pairs: tuple[tuple[str, str], ...], length: int) -> torch.Tensor:
    """One head's W_Q (d_h, d): what a word asks for. With nothing to ask for, it looks at itself."""
    weight = torch.zeros(length + len(FEATURES), length + len(FEATURES))
    if not pairs:  # position t asks for position t - 1, and the first for itself
        for position in range(length):
            weight[max(position - 1, 0), position] = 1.0
        return weight
    weight[range(length), range(length)] = 0.5
    for asks, finds in pairs:
        weight[length + FEATURES.index(finds), length + FEATURES.index(asks)] = 1.0
    return weight
