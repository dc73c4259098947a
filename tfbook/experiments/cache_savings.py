"""What a smaller cache costs: fewer bits for keys and values, or a window of positions.

Both are tried on a trained language model of characters (`tfbook.experiments.text`) in one pass over
validation text, which sees what generation with such a cache would see. Keys are rounded before they
are turned by their positions.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tfbook.experiments.depth import blocks_of
from tfbook.experiments.hooks import hooked
from tfbook.experiments.text import documentation, excerpts, language_model
from tfbook.experiments.training import seeded
from tfbook.model import Decoder, causal_mask, next_token_loss
from tfbook.model.attention import split_heads
from tfbook.model.positions import rotation


def rounded(x: Tensor, bits: int) -> Tensor:
    """x (..., d_h) in signed whole numbers of so many bits, with one scale for each vector."""
    most = 2 ** (bits - 1) - 1
    scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / most
    return (x / scale).round() * scale


@dataclass(frozen=True)
class Savings:
    """A trained model and the text that it is tried on."""

    model: Decoder
    ids: Tensor

    @classmethod
    def trained(cls, seed: int = 0) -> "Savings":
        """Train the model and draw 500 excerpts of validation text."""
        model = language_model(seed=seed).model
        with seeded(seed):
            return cls(model, excerpts(documentation().validation, 500))

    @torch.no_grad()
    def loss(self, bits: int | None = None, window: int | None = None) -> float:
        """In nats a character, with keys and values of `bits`, each position reading `window` positions."""
        stack, config, length = self.model.stack, self.model.config, self.ids.shape[1]
        positions = torch.arange(length)[None]
        mask = causal_mask(length)
        if window is not None:
            mask = mask & (positions.T - positions < window)
        turned = rotation(positions, config.d_head, config.rope_base)
        with self._rounding(bits):
            x = stack.embed(self.ids, positions)
            for block in stack.blocks:
                x = block(x, mask, turned)
        assert stack.final_norm is not None
        return next_token_loss(self.model.head(stack.final_norm(x)), self.ids).item()

    @contextmanager
    def _rounding(self, bits: int | None) -> Iterator[None]:
        """Inside, every key and value comes out rounded."""
        n_kv = self.model.config.n_kv_heads

        def rounding(_: nn.Module, __: tuple[Tensor, ...], made: Tensor) -> Tensor:
            assert bits is not None
            return rounded(split_heads(made, n_kv), bits).transpose(1, 2).flatten(2)

        layers = [block.attention for block in blocks_of(self.model.stack)] if bits is not None else []
        parts = (part for layer in layers for part in (layer.key, layer.value))
        with hooked(part.register_forward_hook(rounding) for part in parts):
            yield
