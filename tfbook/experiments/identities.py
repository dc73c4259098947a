"""Exact facts about multi-head attention, shown on real layers: ranks and idle parameters."""

import torch
from torch import Tensor
from torch.autograd.functional import jacobian
from torch.func import functional_call

from tfbook.config import TransformerConfig
from tfbook.experiments.training import seeded
from tfbook.model import MultiHeadAttention


def score_ranks(n_heads: int, d_model: int = 64, length: int = 32, seed: int = 0) -> list[int]:
    """The rank of each head's score matrix Q K^T (T x T) on random input, at initialization (float64)."""
    with seeded(seed):
        layer = MultiHeadAttention(TransformerConfig(d_model=d_model, n_heads=n_heads)).double()
        query, key, _ = layer.project(torch.randn(1, length, d_model, dtype=torch.float64))
    ranks: list[int] = torch.linalg.matrix_rank(query[0] @ key[0].mT).tolist()
    return ranks


def identifiable_parameters(n_heads: int, d_model: int = 8, length: int = 12, seed: int = 0) -> int:
    """How many directions in the space of weights change the output at all: rank of d(output)/d(weights).

    No biases. Many random inputs, float64, so that the rank is that of the map itself.
    """
    with seeded(seed):
        config = TransformerConfig(d_model=d_model, n_heads=n_heads, qkv_bias=False, output_bias=False)
        layer = MultiHeadAttention(config).double()
        x = torch.randn(4, length, d_model, dtype=torch.float64)

    names, weights = zip(*layer.named_parameters(), strict=True)

    def output(*weights: Tensor) -> Tensor:
        result: Tensor = functional_call(layer, dict(zip(names, weights, strict=True)), (x,))
        return result.flatten()

    columns = [block.flatten(1) for block in jacobian(output, weights)]
    return int(torch.linalg.matrix_rank(torch.cat(columns, dim=1), rtol=1e-9))
