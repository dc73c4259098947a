"""Does the number of heads matter at equal parameters? Two tasks that answer in opposite ways.

`previous_tokens`: say the K tokens before this one. That takes K patterns at once, so it
rewards many heads, until a head is too narrow to tell positions apart. `nearest_key`: find the
one nearest of many noisy vectors. That takes one fine pattern, so it rewards wide heads.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfbook.config import TransformerConfig
from tfbook.experiments.training import seeded, train
from tfbook.hardware import device
from tfbook.model import MultiHeadAttention, causal_mask

VOCABULARY, LENGTH, LOOK_BACK, WIDTH = 8, 24, 8, 64
KEYS, KEY_WIDTH, NOISE = 16, 31, 0.5


@dataclass(frozen=True)
class HeadsRun:
    """One trained model: its accuracy on fresh data and its size.

    `attention_by_offset` is (H, LENGTH): the mean weight that each head gives to the position
    `offset` tokens back (previous_tokens only).
    """

    n_heads: int
    seed: int
    accuracy: float
    parameters: int
    attention_by_offset: list[list[float]] | None = None


class LookBackModel(nn.Module):
    """One Pre-LN block (RMSNorm, SiLU) with learned positions and one read-out per offset."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH))
        self.attention_norm, self.ffn_norm, self.final_norm = (nn.RMSNorm(WIDTH) for _ in range(3))
        self.attention = MultiHeadAttention(TransformerConfig(d_model=WIDTH, n_heads=n_heads))
        self.ffn = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Linear(4 * WIDTH, WIDTH))
        self.read_out = nn.Linear(WIDTH, LOOK_BACK * VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        """ids (B, T) -> logits (B, T, LOOK_BACK, VOCABULARY)."""
        x = self.embed(ids)
        x = x + self.attention(self.attention_norm(x), mask=self.mask(ids))
        x = x + self.ffn(self.ffn_norm(x))
        return self.read_out(self.final_norm(x)).unflatten(-1, (LOOK_BACK, VOCABULARY))

    def attention_weights(self, ids: Tensor) -> Tensor:
        """ids (B, T) -> the weights of every head (B, H, T, T)."""
        return self.attention.with_weights(self.attention_norm(self.embed(ids)), mask=self.mask(ids))[1]

    def embed(self, ids: Tensor) -> Tensor:
        """ids (B, T) -> token plus position vectors (B, T, d)."""
        return self.tokens(ids) + self.positions[: ids.shape[1]]

    @staticmethod
    def mask(ids: Tensor) -> Tensor:
        """The causal mask (T, T)."""
        return causal_mask(ids.shape[1], device=ids.device)


def previous_tokens(n_heads: int, seed: int = 0, steps: int = 400) -> HeadsRun:
    """Train one block to say the 8 tokens before each position, and measure how often it is right.

    Random sequences of 24 tokens from 8; d = 64; AdamW, rate 5e-3, batch 16. Chance is 1/8.
    """
    with seeded(seed):
        model = LookBackModel(n_heads).to(device())

        def batch(size: int) -> tuple[Tensor, Tensor]:
            ids = torch.randint(VOCABULARY, (size, LENGTH)).to(device())
            past = [ids[:, LOOK_BACK - back : LENGTH - back] for back in range(1, LOOK_BACK + 1)]
            return ids, torch.stack(
                past, dim=-1
            )  # (B, T - 8, 8): position t is asked once 8 tokens stand before

        def loss_of_batch() -> Tensor:
            ids, past = batch(16)
            return F.cross_entropy(model(ids)[:, LOOK_BACK:].flatten(0, 2), past.flatten())

        train(model, loss_of_batch, steps, rate=5e-3, label=f"previous tokens, H={n_heads}")
        with torch.no_grad():
            ids, past = batch(512)
            accuracy = (model(ids)[:, LOOK_BACK:].argmax(-1) == past).float().mean().item()
            offsets = _by_offset(model.attention_weights(ids[:64]).mean(0))
    return HeadsRun(n_heads, seed, accuracy, _size(model), offsets.tolist())


def _by_offset(weights: Tensor) -> Tensor:
    """(H, T, T) -> (H, LENGTH): mean weight at each distance back, over the positions that are asked."""
    asked = range(LOOK_BACK, LENGTH)
    rows = [F.pad(weights[:, t, : t + 1].flip(-1), (0, LENGTH - t - 1)) for t in asked]
    return torch.stack(rows).mean(0)


def nearest_key(n_heads: int, seed: int = 0, steps: int = 500) -> HeadsRun:
    """Train one bare attention layer to return the value of the key nearest to a noisy query.

    16 random unit keys in R^31, each with a +1 or -1 beside it; the query is one of the keys plus
    noise of size 0.5. Cross-attention from the query to the keys; d = 64; no norm, no FFN.
    AdamW, rate 5e-3, batch 128. Chance is 1/2.
    """
    with seeded(seed):
        model = nn.ModuleDict(
            {
                "key": nn.Linear(KEY_WIDTH + 1, WIDTH),
                "query": nn.Linear(KEY_WIDTH, WIDTH),
                "attention": MultiHeadAttention(TransformerConfig(d_model=WIDTH, n_heads=n_heads)),
                "read_out": nn.Linear(WIDTH, 1),
            }
        ).to(device())

        def batch(size: int) -> tuple[Tensor, Tensor, Tensor]:
            keys = F.normalize(torch.randn(size, KEYS, KEY_WIDTH), dim=-1)
            values = torch.randint(2, (size, KEYS, 1)).float()
            noise = F.normalize(torch.randn(size, 1, KEY_WIDTH), dim=-1) * NOISE
            query = keys[:, :1] + noise  # the keys are in random order: let the first be the one
            nearest = torch.cdist(query, keys).argmin(-1)  # (B, 1), after the noise
            target = values[torch.arange(size), nearest[:, 0], 0]
            return query.to(device()), torch.cat([keys, 2 * values - 1], -1).to(device()), target.to(device())

        def logits(query: Tensor, keys: Tensor) -> Tensor:
            mixed = model["attention"](model["query"](query), model["key"](keys))  # (B, 1, d)
            return model["read_out"](mixed)[:, 0, 0]

        def loss_of_batch() -> Tensor:
            query, keys, target = batch(128)
            return F.binary_cross_entropy_with_logits(logits(query, keys), target)

        train(model, loss_of_batch, steps, rate=5e-3, label=f"nearest key, H={n_heads}")
        with torch.no_grad():
            query, keys, target = batch(4096)
            accuracy = ((logits(query, keys) > 0) == (target > 0.5)).float().mean().item()
    return HeadsRun(n_heads, seed, accuracy, _size(model))


def _size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
