"""What a stack of attention layers computes when its feed-forward layers are taken out.

The task has one position's own input to transform: a point of the square [-1, 1]^2 is to be given
the colour of a 2 x 2 checkerboard. Two full blocks (d = 48, H = 4, d_ff = 4d) are compared with six
attention layers and with three feed-forward layers, which have as many parameters within one per
cent (norms, where asked for, come on top). Every sublayer stands in a residual connection.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfbook.config import TransformerConfig
from tfbook.experiments.training import seeded, train
from tfbook.model import FeedForward, MultiHeadAttention, RMSNorm

FULL, ATTENTION_ALONE = "afaf", "aaaaaa"
STEPS, BATCH = 400, 512
CONFIG = TransformerConfig(d_model=48, n_heads=4, positions="none")


@dataclass(frozen=True)
class Trained:
    """How often a trained stack names the right colour, on fresh points, and its size."""

    accuracy: float
    parameters: int


class Sublayers(nn.Module):
    """A stack of sublayers, "a" for attention and "f" for feed-forward: (B, T, 2) -> (B, T, 2)."""

    def __init__(self, kinds: str, normalized: bool = False) -> None:
        super().__init__()
        self.read, self.write = nn.Linear(2, CONFIG.d_model), nn.Linear(CONFIG.d_model, 2)
        made = {"a": MultiHeadAttention, "f": FeedForward}
        self.sublayers = nn.ModuleList(made[kind](CONFIG) for kind in kinds)
        norms = (RMSNorm(CONFIG.d_model, 1e-5) if normalized else nn.Identity() for _ in kinds)
        self.norms = nn.ModuleList(norms)

    def forward(self, points: Tensor) -> Tensor:
        """Scores of the two colours at each position."""
        x = self.read(points)
        for norm, sublayer in zip(self.norms, self.sublayers, strict=True):
            x = x + sublayer(norm(x))
        scores: Tensor = self.write(x)
        return scores

    @property
    def size(self) -> int:
        """Parameters of the sublayers: what is compared."""
        return sum(parameter.numel() for parameter in self.sublayers.parameters())


def colour(points: Tensor) -> Tensor:
    """The checkerboard: 1 where both coordinates have the same sign, otherwise 0. (..., 2) -> (...)."""
    return (points.prod(dim=-1) > 0).long()


def best_straight_line(grid: int = 120) -> float:
    """The highest accuracy that one straight boundary reaches, by search over angles and offsets."""
    line = (torch.arange(grid) + 0.5) * 2 / grid - 1
    points = torch.cartesian_prod(line, line)  # (grid^2, 2)
    colours = colour(points).bool()
    angles = torch.arange(0, 360, 5).deg2rad()
    along = points @ torch.stack([angles.cos(), angles.sin()])  # (grid^2, angles)
    return max(
        ((along > offset) == colours[:, None]).float().mean(dim=0).max().item()
        for offset in torch.linspace(0, 1.4, 57)
    )


def checkerboard(
    kinds: str, seed: int = 0, normalized: bool = False, length: int = 1, steps: int = STEPS
) -> Trained:
    """Train a stack on the checkerboard, `length` points side by side as one sequence."""
    with seeded(seed):
        model = Sublayers(kinds, normalized)

        def batch() -> tuple[Tensor, Tensor]:
            points = 2 * torch.rand(BATCH // length, length, 2) - 1
            return points, colour(points)

        def loss() -> Tensor:
            points, colours = batch()
            return F.cross_entropy(model(points).flatten(0, 1), colours.flatten())

        train(model, loss, steps, 3e-3, f"checkerboard {kinds}")
        with torch.no_grad():
            tries = [batch() for _ in range(8)]
            right = [(model(points).argmax(-1) == colours).float().mean() for points, colours in tries]
    return Trained(torch.stack(right).mean().item(), model.size)


def departure_from_affine(kinds: str, length: int = 1, seed: int = 0, normalized: bool = False) -> float:
    """How far an untrained stack is from an affine map of its input: 0 for one that is affine.

    An affine f has f(x) + f(y) = f(x + y) + f(0). The largest violation, relative to the largest output.
    """
    with seeded(seed):
        model = Sublayers(kinds, normalized)
        x, y = torch.randn(2, 16, length, 2)
    with torch.no_grad():
        gap = model(x) + model(y) - model(x + y) - model(torch.zeros_like(x))
        return (gap.abs().max() / model(x).abs().max()).item()
