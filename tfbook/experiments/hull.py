"""Where the outputs of one head lie: among its values, until something else moves them."""

import torch
from torch import Tensor

from tfbook.config import TransformerConfig
from tfbook.experiments.training import seeded
from tfbook.model import FeedForward, attend


def head_outputs(n_values: int = 6, n_queries: int = 300, seed: int = 0) -> tuple[Tensor, Tensor]:
    """One head of width 2 asks many random questions of a few values, from vague to sharp.

    Returns the values (n_values, 2) and the outputs (n_queries, 2).
    """
    with seeded(seed):
        values = torch.randn(1, 1, n_values, 2)
        keys = torch.randn(1, 1, n_values, 2)
        sharpness = 6 * torch.rand(1, 1, n_queries, 1)
        outputs = attend(sharpness * torch.randn(1, 1, n_queries, 2), keys, values)
    return values[0, 0], outputs[0, 0]


def feed_forward_step(points: Tensor, seed: int = 0, bend: bool = True) -> Tensor:
    """Points (n, 2) plus a random feed-forward layer of them; without its nonlinearity if not `bend`.

    The layer's first weights are doubled, to make its bend visible.
    """
    with seeded(seed), torch.no_grad():
        layer = FeedForward(TransformerConfig(d_model=2, n_heads=1, d_ff=32, activation="gelu"))
        for parameter in layer.parameters():
            parameter.mul_(2)
        moved: Tensor = points + (layer(points) if bend else layer.down(layer.up(points)))
    return moved


def inside_hull(points: Tensor, corners: Tensor, slack: float = 1e-5) -> Tensor:
    """Which points (n, 2) lie in the convex hull of the corners (m, 2): booleans (n,).

    In every direction a point of the hull reaches no further than the furthest corner: 720 directions
    decide it in the plane, up to a sliver at the corners.
    """
    angles = torch.linspace(0, 2 * torch.pi, 721)[:-1]
    directions = torch.stack([angles.cos(), angles.sin()])  # (2, 720)
    furthest = (corners @ directions).max(dim=0).values
    return (points @ directions <= furthest + slack).all(dim=1)
