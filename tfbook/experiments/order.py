"""What attention without positions can and cannot know of the order of its input."""

import torch
from torch import Tensor

from tfbook.config import TransformerConfig
from tfbook.experiments.training import seeded
from tfbook.model import MultiHeadAttention, causal_mask


def change_under_reordering(n_layers: int, causal: bool, length: int = 8, seed: int = 0) -> float:
    """Largest change of the last position's output when the earlier positions are reordered.

    A stack of attention layers with residual connections, random weights, no position
    information, d = 32, H = 4. Relative to the largest output.
    """
    with seeded(seed):
        config = TransformerConfig(d_model=32, n_heads=4, positions="none")
        layers = [MultiHeadAttention(config) for _ in range(n_layers)]
        x = torch.randn(1, length, 32)
        order = torch.cat([torch.randperm(length - 1), torch.tensor([length - 1])])
    mask = causal_mask(length) if causal else None

    def last(x: Tensor) -> Tensor:
        for layer in layers:
            x = x + layer(x, mask=mask)
        return x[:, -1]

    with torch.no_grad():
        return ((last(x[:, order]) - last(x)).abs().max() / last(x).abs().max()).item()
