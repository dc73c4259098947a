"""Where a token stands: sinusoids, learned vectors, or rotations of queries and keys.

Positions are integers of shape (1, T) or, where rows of a batch are padded on the left,
(B, T): the first real token of every row stands at 0.

Sources: sinusoids, Vaswani et al. 2017 (arXiv 1706.03762), section 3.5; rotary positions, Su et
al. 2021 (arXiv 2104.09864).
"""

import torch
from torch import Tensor

Rotation = tuple[Tensor, Tensor]


def sinusoids(positions: Tensor, d_model: int) -> Tensor:
    """Sines in the even coordinates and cosines in the odd ones: (..., T) -> (..., T, d), float32."""
    angles = _angles(positions, d_model, base=10_000.0)  # (..., T, d / 2)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


def rotation(positions: Tensor, d_head: int, base: float) -> Rotation:
    """Cosines and sines that turn each pair of coordinates: (1 or B, T) -> two of (1 or B, 1, T, d_h / 2).

    Always float32. Footgun: in bfloat16 neighbouring positions beyond 256 share one phase.
    """
    angles = _angles(positions, d_head, base).unsqueeze(1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, by: Rotation) -> Tensor:
    """Turn queries or keys (B, H, T, d_h) by their positions. The pairs are (i, i + d_h / 2)."""
    cos, sin = by
    left, right = x.float().chunk(2, dim=-1) if x.dtype.itemsize < 4 else x.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1).to(x.dtype)


def _angles(positions: Tensor, width: int, base: float) -> Tensor:
    """position / base^(2i / width) for each pair i: (..., T) -> (..., T, width / 2)."""
    pair = torch.arange(0, width, 2, device=positions.device, dtype=torch.float32)
    return positions.float().unsqueeze(-1) * base ** (-pair / width)
