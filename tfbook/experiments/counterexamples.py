"""Two functions that show one head and several heads to be incomparable at equal width d = 2.

`coordinatewise_maximum`: two heads of width 1 reach it, one head of width 2 cannot.
`swap_on_circle`: one head of width 2 reaches it, two heads of width 1 do not.
Both are asked of one bare attention layer with biases: no norm, no residual, no FFN.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tfbook.config import TransformerConfig
from tfbook.experiments.training import seeded
from tfbook.model import MultiHeadAttention


@dataclass(frozen=True)
class Question:
    """Sequences of two points in the plane (N, 2, 2), and what to answer at each position."""

    points: Tensor
    answers: Tensor

    def error(self, layer: MultiHeadAttention) -> float:
        """The largest Euclidean distance between an output and its answer."""
        with torch.no_grad():
            return (layer(self.points) - self.answers).norm(dim=-1).max().item()


def coordinatewise_maximum() -> Question:
    """From {a, a}, {b, b} and {a, b} with a = (1, 0), b = (0, 1): the maximum of each coordinate."""
    a, b = torch.eye(2, dtype=torch.float64)
    points = torch.stack([torch.stack(pair) for pair in ((a, a), (b, b), (a, b))])
    return Question(points, points.max(dim=1, keepdim=True).values.expand_as(points))


def swap_on_circle(n: int = 5) -> Question:
    """From every ordered pair of n points of the unit circle: at each position, the other point."""
    angle = 2 * math.pi * torch.arange(n, dtype=torch.float64) / n
    circle = torch.stack([angle.cos(), angle.sin()], dim=-1)
    points = torch.stack([circle[[i, j]] for i in range(n) for j in range(n) if i != j])
    return Question(points, points.flip(1))


def layer_by_hand(n_heads: int, sharpness: float) -> MultiHeadAttention:
    """The layer that solves one of the two questions as the sharpness of its scores grows.

    Two heads: head h scores a point by its own coordinate h and returns that coordinate, which
    tends to the maximum. One head: it scores each point by how far it lies in the opposite
    direction, and returns the point it finds.
    """
    layer = _bare_layer(n_heads)
    identity, zeros = torch.eye(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    with torch.no_grad():
        for linear in (layer.query, layer.key, layer.value, layer.output):
            linear.weight.copy_(identity)
            linear.bias.copy_(zeros)
        if n_heads == 2:
            layer.query.weight.zero_()  # every point asks the same question: the query is a constant
            layer.query.bias.fill_(sharpness)
        else:
            layer.query.weight.copy_(-sharpness * identity)
    return layer


def best_trained_error(question: Question, n_heads: int, restarts: int = 8, steps: int = 600) -> float:
    """The smallest worst-case error over several random starts, trained with Adam (float64)."""
    return min(_trained_error(question, n_heads, seed, steps) for seed in range(restarts))


def _trained_error(question: Question, n_heads: int, seed: int, steps: int) -> float:
    with seeded(seed):
        layer = _bare_layer(n_heads)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(steps):
        distance = (layer(question.points) - question.answers).norm(dim=-1)
        loss = distance.pow(8).mean().pow(1 / 8)  # close to the largest distance, but smooth
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return question.error(layer)


def _bare_layer(n_heads: int) -> MultiHeadAttention:
    return MultiHeadAttention(TransformerConfig(d_model=2, n_heads=n_heads)).double()
