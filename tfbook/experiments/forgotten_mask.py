"""Language models trained without their causal mask: a superb loss, and what becomes of generation.

Two languages. In the "dictionary" (`tfbook.experiments.dictionary`) the answer f(a) stands in the
prefix only where a has come before, in a fifth of the entries. In "copying" eight random symbols are
followed by the same eight: all that is to be generated stands in the prefix. Decoders with d = 48,
H = 4 and two blocks (RMSNorm, SiLU).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from tfbook.config import TransformerConfig
from tfbook.experiments.dictionary import EQUALS, FLOOR, LENGTH, SYMBOLS, VOCABULARY, entries
from tfbook.experiments.training import seeded, train
from tfbook.model import Decoder, next_token_loss

STEPS, BATCH, RATE, HALF = 300, 64, 3e-3, 8
FLOORS = {"dictionary": FLOOR, "copying": 7 / 16 * torch.log(torch.tensor(16.0)).item()}


@dataclass(frozen=True)
class Trained:
    """The last ten steps' mean loss, the share of tokens generated right, and what the future changes.

    `leak` is by how much the logits of the first half change when the second half is another.
    """

    loss: float
    accuracy: float
    leak: float


def copies(batch: int) -> Tensor:
    """Eight random symbols, the sign "=", and the same eight: ids (batch, 17)."""
    word = torch.randint(SYMBOLS, (batch, HALF))
    return torch.cat((word, torch.full_like(word[:, :1], EQUALS), word), dim=1)


def trained(
    task: str = "dictionary", mask: bool = True, positions: str = "learned", seed: int = 0, steps: int = STEPS
) -> Trained:
    """Train a model with or without its mask, and let it generate what can be known."""
    if task not in FLOORS:
        raise ValueError(f"task={task!r} is unknown; use one of {', '.join(FLOORS)}")
    batch = entries if task == "dictionary" else copies
    with seeded(seed):
        config = TransformerConfig(
            vocab_size=VOCABULARY,
            d_model=48,
            n_heads=4,
            n_layers=2,
            activation="silu",
            norm="rmsnorm",
            positions=positions,
            max_length=LENGTH,
            tie_embeddings=False,
        )
        model = Decoder(config)
        model.stack.causal = mask

        def loss() -> Tensor:
            ids = batch(BATCH)
            return next_token_loss(model(ids), ids)

        losses = train(model, loss, steps, RATE, f"{task}, {'masked' if mask else 'no mask'}")
        model.eval()
        with torch.no_grad():
            ids = batch(200)
            accuracy = _generated(model, ids, task)
            half = ids.shape[1] // 2
            other = torch.cat((ids[:, :half], batch(200)[:, half:]), dim=1)
            leak = (model(ids) - model(other))[:, :half].abs().max().item()
    return Trained(sum(losses[-10:]) / 10, accuracy, leak)


def _generated(model: Decoder, ids: Tensor, task: str) -> float:
    """The share of tokens right, each from a prefix of the true text and what was generated so far."""
    if task == "dictionary":  # the last token of each entry, from the text before it
        right = [
            model(ids[:, :end])[:, -1].argmax(dim=-1) == ids[:, end] for end in range(2, ids.shape[1], 3)
        ]
        return torch.stack(right).float().mean().item()
    text = ids[:, : HALF + 1]
    for _ in range(HALF):
        text = torch.cat((text, model(text)[:, -1:].argmax(dim=-1)), dim=1)
    return (text[:, HALF + 1 :] == ids[:, HALF + 1 :]).float().mean().item()
