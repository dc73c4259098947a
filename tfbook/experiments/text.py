"""Language models of characters, trained on real English: the documentation that ships with Python.

`pydoc_data.topics` is part of the standard library: some 465,000 characters, a little different from
version to version. The first nine tenths are for training, the rest for validation.
"""

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from tfbook.config import TransformerConfig
from tfbook.experiments.training import seeded, train
from tfbook.model import Decoder, next_token_loss

LENGTH, BATCH, STEPS, RATE = 64, 32, 400, 6e-3
# What a model is made of, by name: how many blocks, and whether they keep their feed-forward layers.
STACKS = {
    "two full blocks": (2, True),
    "six layers of attention": (6, False),
    "two layers of attention": (2, False),
}


@dataclass(frozen=True)
class Corpus:
    """A text as ids: its characters in order of their ids, and the two parts."""

    symbols: str
    training: Tensor
    validation: Tensor

    def encode(self, text: str) -> Tensor:
        """ids (1, T) of a text made of the corpus's characters."""
        return torch.tensor([[self.symbols.index(character) for character in text]])

    def decode(self, ids: Tensor) -> str:
        """The text of ids (1, T)."""
        return "".join(self.symbols[i] for i in ids[0].tolist())


@cache
def documentation() -> Corpus:
    """The documentation of Python's language, all topics in order of their names."""
    from pydoc_data.topics import topics

    text = "\n\n".join(topics[name] for name in sorted(topics))
    symbols = "".join(sorted(set(text)))
    number = {character: i for i, character in enumerate(symbols)}
    ids = torch.tensor([number[character] for character in text])
    border = len(ids) * 9 // 10
    return Corpus(symbols, ids[:border], ids[border:])


def pairs_loss(length: int) -> float:
    """Validation loss of counting: of characters alone (length 1), or after the one before (length 2).

    Every count starts at 1, so that nothing is impossible. In nats a character.
    """
    corpus = documentation()
    size = len(corpus.symbols)
    counts = torch.ones((size,) * length)
    trained = [corpus.training[i : len(corpus.training) - length + 1 + i] for i in range(length)]
    counts.index_put_(tuple(trained), torch.tensor(1.0), accumulate=True)
    logs = (counts / counts.sum(dim=-1, keepdim=True)).log()
    seen = [corpus.validation[i : len(corpus.validation) - length + 1 + i] for i in range(length)]
    return -logs[tuple(seen)].mean().item()


class Nothing(nn.Module):
    """A sublayer that adds nothing to the trunk."""

    def forward(self, x: Tensor) -> Tensor:
        """Zeros like x."""
        return torch.zeros_like(x)


@dataclass(frozen=True)
class Reader:
    """A trained language model and its validation loss, in nats a character."""

    model: Decoder
    loss: float

    @property
    def parameters(self) -> int:
        """How many numbers were trained."""
        return sum(parameter.numel() for parameter in self.model.parameters())


def language_model(
    stack: str = "two full blocks",
    seed: int = 0,
    positions: str = "rope",
    n_kv_heads: int = 4,
    steps: int = STEPS,
) -> Reader:
    """Train a decoder with d = 64 and H = 4 on random excerpts of 64 characters."""
    corpus = documentation()
    n_layers, whole = STACKS[stack]
    with seeded(seed):
        config = TransformerConfig(
            vocab_size=len(corpus.symbols),
            d_model=64,
            n_heads=4,
            n_kv_heads=n_kv_heads,
            n_layers=n_layers,
            activation="silu",
            norm="rmsnorm",
            positions=positions,
            max_length=LENGTH,
            tie_embeddings=False,
        )
        model = Decoder(config)
        if not whole:
            for block in model.stack.blocks:
                block.feed_forward, block.feed_forward_norm = Nothing(), nn.Identity()

        def loss() -> Tensor:
            ids = excerpts(corpus.training)
            return next_token_loss(model(ids), ids)

        train(model, loss, steps, RATE, f"characters, {stack}")
        with torch.no_grad():
            tries = [excerpts(corpus.validation, 200) for _ in range(5)]
            losses = [next_token_loss(model(ids), ids).item() for ids in tries]
    return Reader(model.eval(), sum(losses) / len(losses))


def excerpts(ids: Tensor, batch: int = BATCH) -> Tensor:
    """Random excerpts of a text: (batch, 64)."""
    starts = torch.randint(len(ids) - LENGTH, (batch, 1))
    return ids[starts + torch.arange(LENGTH)]
