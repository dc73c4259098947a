"""Attention masks. One convention everywhere: **True means "may attend"**.

A mask is a boolean tensor that broadcasts to (B, H, T, S): query t of head h may read key s. A
padding mask is (B, S), True where there is a real token.
"""

import torch
from torch import Tensor


def causal_mask(queries: int, keys: int | None = None, device: torch.device | None = None) -> Tensor:
    """Which of S keys each of T queries may read when nobody reads the future: (T, S).

    The queries are the **last** T of the S positions, so query t may read key s iff
    s <= t + (S - T). Without `keys`, S = T: the lower triangle.

    Raises ValueError if there are more queries than keys.
    """
    keys = queries if keys is None else keys
    if queries > keys:
        raise ValueError(f"queries={queries} exceeds keys={keys}; the queries are the last of the keys")
    every_pair = torch.ones(queries, keys, dtype=torch.bool, device=device)
    # Footgun: tril without the diagonal aligns the corner to the *first* key, and a second
    # chunk of queries would then see only the beginning of the past.
    return every_pair.tril(diagonal=keys - queries)


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Where the real tokens are: ids (B, S) -> booleans (B, S), False at the pad token."""
    return ids != pad_id


def attention_mask(
    queries: int, keys: int, causal: bool, real: Tensor | None = None, device: torch.device | None = None
) -> Tensor | None:
    """The one place where masks are combined: causality, and padding among the keys `real` (B, S).

    Returns a mask that broadcasts to (B, H, T, S), or None where every query may read every key.
    """
    mask = causal_mask(queries, keys, device) if causal and queries > 1 else None
    if real is None:
        return mask
    padding = real[:, None, None, :]  # (B, S) -> (B, 1, 1, S)
    return padding if mask is None else mask & padding
