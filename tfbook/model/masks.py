"""Attention masks. One convention everywhere: **True means "may attend"**.

A mask is a boolean tensor that broadcasts to (B, H, T, S): query t of head h may read key s.
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
