"""One head of attention on four positions, small enough to check by hand."""

from dataclasses import dataclass

import torch

from tfbook.model import attend_with_weights

QUERY = [[2.0, 0.0], [0.0, 2.0], [1.0, 1.0], [-1.0, 1.0]]
KEY = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.0]]


@dataclass(frozen=True)
class OneHead:
    """Scores and weights (T, S) as nested lists."""

    scores: list[list[float]]
    weights: list[list[float]]


def one_head() -> OneHead:
    """softmax(Q K^T / sqrt(d_h)) for T = 4, d_h = 2."""
    query, key = torch.tensor(QUERY), torch.tensor(KEY)
    scores = query @ key.T / query.shape[-1] ** 0.5
    _, weights = attend_with_weights(query[None, None], key[None, None], key[None, None])
    return OneHead(scores.tolist(), weights[0, 0].tolist())
