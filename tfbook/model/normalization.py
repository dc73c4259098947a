"""The two norms. Both work on the feature axis of each position by itself.

Sources: Ba et al. 2016 (arXiv 1607.06450); Zhang and Sennrich 2019 (arXiv 1910.07467).
"""

import torch
from torch import Tensor, nn

from tfbook.config import TransformerConfig


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps), times a learned gain. No mean is removed and nothing is added."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """(..., d) -> (..., d). The statistics are float32 or finer, whatever x is."""
        wide = x.float() if x.dtype.itemsize < 4 else x
        # Footgun: eps stands inside the root, or a vector of zeros is divided by zero.
        scaled = wide * (wide.square().mean(-1, keepdim=True) + self.eps).rsqrt()
        return scaled.to(x.dtype) * self.weight


def build_norm(config: TransformerConfig) -> nn.Module:
    """The norm that a configuration names, over d features. (LayerNorm: biased variance, eps inside.)"""
    if config.norm == "rmsnorm":
        return RMSNorm(config.d_model, config.norm_eps)
    return nn.LayerNorm(config.d_model, config.norm_eps, bias=config.norm_bias)
