"""Where the outputs of one head lie: among its values, until something else moves them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tfbook.config import TransformerConfig
from tfbook.experiments.training import seeded
from tfbook.model import FeedForward, attend


@dataclass(frozen=True)
class Outputs:
    """Points of the plane, (n, 2): a head's values, its outputs, and those after a feed-forward layer."""

    values: Tensor
    outputs: Tensor
    transformed: Tensor


def head_outputs(n_values: int = 6, n_queries: int = 300, seed: int = 0) -> Outputs:
    """One head of width 2 asks many random questions of a few values, from vague to sharp."""
    with seeded(seed):
        values = torch.randn(1, 1, n_values, 2)
        keys = torch.randn(1, 1, n_values, 2)
        sharpness = 6 * torch.rand(1, 1, n_queries, 1)
        outputs = attend(sharpness * torch.randn(1, 1, n_queries, 2), keys, values)
        layer = FeedForward(TransformerConfig(d_model=2, n_heads=1, d_ff=32, activation="gelu"))
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.mul_(2)  # torch's first weights are small: make the layer's bend visible
            transformed = outputs + layer(outputs)
    return Outputs(values[0, 0], outputs[0, 0], transformed[0, 0])


def inside_hull(points: Tensor, corners: Tensor, slack: float = 1e-5) -> Tensor:
    """Which points (n, 2) lie in the convex hull of the corners (m, 2): booleans (n,).

    In every direction a point of the hull reaches no further than the furthest corner; enough
    directions decide it in the plane.
    """
    angles = torch.linspace(0, 2 * torch.pi, 721)[:-1]
    directions = torch.stack([angles.cos(), angles.sin()])  # (2, 720)
    furthest = (corners @ directions).max(dim=0).values
    return (points @ directions <= furthest + slack).all(dim=1)
