"""A Pre-LN block as section 2.5.7 builds it, in the words of its cells: nothing is imported but torch."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Cache = dict[str, Tensor]


class Norm(nn.Module):
    """RMSNorm over the features of each position."""

    def __init__(self, d: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(d))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, d) -> (B, T, d)."""
        mean_square = x.square().mean(dim=-1, keepdim=True)  # (B, T, 1)
        return self.weight * x / (mean_square + self.eps).sqrt()


def split(x: Tensor, n_heads: int) -> Tensor:
    """(B, T, d) -> (B, H, T, d_h)."""
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def causal_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The queries are the last T of S positions: (B, H, T, d_h)."""
    t, s = query.shape[2], key.shape[2]
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    every = torch.ones(t, s, dtype=torch.bool, device=query.device)
    keep = every.tril(diagonal=s - t)  # (T, S)
    weights = scores.masked_fill(~keep, float("-inf")).softmax(dim=-1)
    return weights @ value


def extend(cache: Cache, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Put new keys and values behind those in the cache; return all so far."""
    if cache:
        key = torch.cat((cache["key"], key), dim=2)  # (B, H, S, d_h)
        value = torch.cat((cache["value"], value), dim=2)
    cache.update(key=key, value=value)
    return key, value


class Attention(nn.Module):
    """Causal multi-head attention with a cache of keys and values."""

    def __init__(self, d: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.query, self.key = (nn.Linear(d, d, bias=False) for _ in range(2))
        self.value, self.output = (nn.Linear(d, d, bias=False) for _ in range(2))

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:
        """x (B, T, d): the newest positions; the cache holds those before."""
        query = split(self.query(x), self.n_heads)
        key = split(self.key(x), self.n_heads)
        value = split(self.value(x), self.n_heads)
        if cache is not None:
            key, value = extend(cache, key, value)
        heads = causal_attention(query, key, value).transpose(1, 2)
        out: Tensor = self.output(heads.flatten(2))  # (B, T, d)
        return out


class Block(nn.Module):
    """Norm, attention, sum; norm, feed-forward, sum."""

    def __init__(self, d: int, n_heads: int) -> None:
        super().__init__()
        self.norm_1, self.attention = Norm(d), Attention(d, n_heads)
        self.norm_2 = Norm(d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:
        """(B, T, d) -> (B, T, d)."""
        x = x + self.attention(self.norm_1(x), cache)
        hidden = F.silu(self.up(self.norm_2(x)))  # (B, T, 4 d)
        y: Tensor = x + self.down(hidden)
        return y
