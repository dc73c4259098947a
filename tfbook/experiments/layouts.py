"""What the mask and the direction of cross-attention decide, on two small tasks.

Tagging: for each of 12 random tokens, does the same token come **again later**? Reversal: write a
source of 8 symbols backwards. Every stack has d = 64, H = 4 and two blocks, and is trained with AdamW
at 0.003 for 200 steps.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfbook.config import TransformerConfig
from tfbook.experiments.depth import blocks_of
from tfbook.experiments.hooks import hooked
from tfbook.experiments.training import seeded, train
from tfbook.model import Block, EncoderDecoder, KVCache
from tfbook.model.positions import Rotation
from tfbook.model.transformer import Stack

STEPS, BATCH, RATE = 200, 64, 3e-3
TAGGED, KINDS = 12, 8
SYMBOLS, LENGTH, START = 12, 8, 12
KINDS_OF_CROSS = ("right", "swapped", "swapped, causal")
CONFIG = TransformerConfig(
    layout="encoder-decoder",
    vocab_size=SYMBOLS + 1,
    d_model=64,
    n_heads=4,
    n_layers=2,
    activation="silu",
    norm="rmsnorm",
    positions="learned",
    max_length=TAGGED,
    tie_embeddings=False,
)


def comes_again(ids: Tensor) -> Tensor:
    """Whether the token at each position occurs at a later one: (B, T) -> booleans (B, T)."""
    later = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).triu(diagonal=1)
    same: Tensor = ids[:, :, None] == ids[:, None, :]
    return (same & later).any(dim=2)


def best_without_future() -> float:
    """The highest accuracy of a tagger that sees no later token: the likelier answer at each position.

    Later tokens are independent of earlier ones, so nothing but how many are left helps.
    """
    again = [1 - (1 - 1 / KINDS) ** (TAGGED - 1 - t) for t in range(TAGGED)]
    return sum(max(p, 1 - p) for p in again) / TAGGED


def tagging(causal: bool, seed: int = 0, steps: int = STEPS) -> float:
    """Train a stack with or without the causal mask to tag; its accuracy on fresh sequences."""
    with seeded(seed):
        stack, head = Stack(CONFIG, causal), nn.Linear(CONFIG.d_model, 2)

        def batch() -> Tensor:
            return torch.randint(KINDS, (BATCH, TAGGED))

        def loss() -> Tensor:
            ids = batch()
            return F.cross_entropy(head(stack(ids)).flatten(0, 1), comes_again(ids).long().flatten())

        label = f"tagging, {'causal' if causal else 'both directions'}"
        train(nn.ModuleList((stack, head)), loss, steps, RATE, label)
        ids = torch.randint(KINDS, (1000, TAGGED))
        with torch.no_grad():
            return (head(stack(ids)).argmax(-1) == comes_again(ids)).float().mean().item()


def who_reads(run: Callable[[Tensor], Tensor], ids: Tensor, vocabulary: int) -> Tensor:
    """Which outputs change when one input token is another: booleans (T outputs, S inputs).

    `run` takes ids (1, S) and returns anything of shape (1, T, ...).
    """
    before, columns = run(ids), []
    for s in range(ids.shape[1]):
        other = ids.clone()
        other[0, s] = (other[0, s] + 1) % vocabulary
        columns.append((run(other) - before)[0].flatten(1).abs().amax(dim=1) > 1e-4)
    return torch.stack(columns, dim=1)


class SwappedBlock(Block):
    """A decoder block whose cross-attention is written the wrong way round: the source asks.

    With `masked` a causal mask stands on it too.
    """

    def __init__(self, config: TransformerConfig, layer: int, masked: bool = False) -> None:
        super().__init__(config, layer, cross=True)
        self.masked = masked

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        rotation: Rotation | None = None,
        cache: KVCache | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """x (B, T, d), memory (B, S, d): the sum needs T = S, or one of them 1, which broadcasts."""
        assert self.cross_attention is not None and self.cross_attention_norm is not None
        assert rotation is None and cache is None and memory_mask is None  # left out here
        x = x + self.attention(self.attention_norm(x), mask=mask)
        seen = mask if self.masked else None
        x = x + self.cross_attention(memory, source=self.cross_attention_norm(x), mask=seen)  # (B, S, d)
        return x + self.feed_forward(self.feed_forward_norm(x))


@dataclass(frozen=True)
class Reversal:
    """A trained model; its training loss (last ten steps); and what it generates.

    `by_position` is the share of symbols that are right at each position, generated greedily. `leak` is
    by how much the logits of the first four positions change when the tokens behind them are others.
    """

    model: EncoderDecoder
    loss: float
    by_position: list[float]
    leak: float

    @property
    def accuracy(self) -> float:
        """The share of all symbols that are right."""
        return sum(self.by_position) / len(self.by_position)


def reversal(kind: str = "right", seed: int = 0, steps: int = STEPS) -> Reversal:
    """Train an encoder-decoder to reverse; its cross-attention is of one of KINDS_OF_CROSS."""
    if kind not in KINDS_OF_CROSS:
        raise ValueError(f"kind={kind!r} is unknown; use one of {', '.join(KINDS_OF_CROSS)}")
    with seeded(seed):
        model = EncoderDecoder(CONFIG)
        if kind != "right":
            masked = kind == "swapped, causal"
            blocks = (SwappedBlock(CONFIG, layer, masked) for layer in range(CONFIG.n_layers))
            model.decoder.blocks = nn.ModuleList(blocks)

        def loss() -> Tensor:
            source = sources(BATCH)
            logits = model(source, shifted(source.flip(1)))
            return F.cross_entropy(logits.flatten(0, 1), source.flip(1).flatten())

        losses = train(model, loss, steps, RATE, f"reversal, {kind}")
        source = sources(200)
        with torch.no_grad():
            right = (write(model, source) == source.flip(1)).float().mean(dim=0).tolist()
            target = shifted(source.flip(1))
            other = torch.cat((target[:, :4], (target[:, 4:] + 1) % SYMBOLS), dim=1)
            leak = (model(source, target) - model(source, other))[:, :4].abs().max().item()
    return Reversal(model.eval(), sum(losses[-10:]) / 10, right, leak)


def sources(batch: int) -> Tensor:
    """Random sources: ids (batch, 8)."""
    return torch.randint(SYMBOLS, (batch, LENGTH))


def shifted(target: Tensor) -> Tensor:
    """What the decoder reads while it writes `target`: the start token, then all but the last."""
    return torch.cat((torch.full_like(target[:, :1], START), target[:, :-1]), dim=1)


@torch.no_grad()
def write(model: EncoderDecoder, source: Tensor) -> Tensor:
    """Greedy generation in a window of full length, so that a swapped model can run too: (B, 8)."""
    written = torch.full_like(source, START)
    for t in range(LENGTH):
        written[:, t] = model(source, shifted(written))[:, t].argmax(dim=-1)
    return written


@torch.no_grad()
def cross_weights(model: EncoderDecoder, source: Tensor, target: Tensor) -> Tensor:
    """Weights of every cross-attention on one pass: (L, H, T, S) for a single pair (1, S), (1, T)."""
    asked: list[Tensor] = []
    blocks = blocks_of(model.decoder)
    norms = [block.cross_attention_norm for block in blocks if block.cross_attention_norm is not None]
    with hooked(norm.register_forward_hook(lambda *call: asked.append(call[2])) for norm in norms):
        model(source, target)
    memory = model.encoder(source)
    layers = [block.cross_attention for block in blocks if block.cross_attention is not None]
    return torch.stack([layer.with_weights(z, memory)[1][0] for layer, z in zip(layers, asked, strict=True)])
