"""Multi-head attention: several scaled dot-product attentions side by side, then one mixing matrix.

Conventions: batch first; rows are positions; a mask is boolean and True means "may attend"
(see `tfbook.model.masks`). Shapes use B batch, T query length, S key length, d model width,
H query heads, n_kv key/value heads, d_h head width. Grouped-query attention (n_kv < H) and
multi-query attention (n_kv = 1) are the same code with fewer key/value heads: query head h
reads key/value head h // (H / n_kv).

Two paths compute the same numbers. `attend` is the one to use: torch's fused kernel. Its plain
twin `attend_with_weights` writes the formula out and also returns the weights, for looking at.

Source: Vaswani et al. 2017 (arXiv 1706.03762), section 3.2; grouped queries: Ainslie et al.
2023 (arXiv 2305.13245).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfbook.config import TransformerConfig
from tfbook.model.cache import KeysValues
from tfbook.model.positions import Rotation, rotate
from tfbook.model.unbuilt import refuse_unbuilt


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """softmax(Q K^T / sqrt(d_h)) V, fused.

    query (B, H, T, d_h), key (B, n_kv, S, d_h), value (B, n_kv, S, d_v); mask boolean, any
    shape that broadcasts to (B, H, T, S). Returns (B, H, T, d_v). A query that may attend to
    nothing gets zeros. Raises ValueError or TypeError for shapes or a mask that do not fit.
    """
    _check_shapes(query, key, value)
    grouped = key.shape[1] != query.shape[1]
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=_aligned(mask, query, key), dropout_p=dropout, enable_gqa=grouped
    )


def attend_with_weights(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The same as `attend`, written out. Returns the output and the weights (B, H, T, S).

    With dropout the weights returned are those that were used: their rows no longer sum to 1.
    """
    _check_shapes(query, key, value)
    mask = _aligned(mask, query, key)
    group = query.shape[1] // key.shape[1]
    # Footgun: query heads of a group are neighbours, so repeat each K/V head in place
    # (0, 0, 1, 1); `repeat` would tile them (0, 1, 0, 1) and mix up the groups.
    key = key.repeat_interleave(group, dim=1)  # (B, n_kv, S, d_h) -> (B, H, S, d_h)
    value = value.repeat_interleave(group, dim=1)
    # Footgun: scale the queries, not the scores, which in half precision may have overflowed by then.
    scores = query / math.sqrt(query.shape[-1]) @ key.transpose(-2, -1)  # (B, H, T, S)
    if mask is not None:
        # The lowest finite number rather than -inf: a row with nothing to attend to stays finite.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1, dtype=torch.float32 if scores.dtype.itemsize < 4 else None)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    weights = F.dropout(weights.to(value.dtype), dropout, training=dropout > 0)
    return weights @ value, weights


class MultiHeadAttention(nn.Module):
    """Multi-head, grouped-query or multi-query attention, self or cross.

    The four maps are `nn.Linear`, so a weight is stored transposed: `query.weight` is
    (H d_h, d), and the h-th head's W^Q is its rows h d_h to (h + 1) d_h, transposed.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        refuse_unbuilt(config)
        self.n_heads, self.n_kv_heads, self.d_head = config.n_heads, config.n_kv_heads, config.d_head
        self.d_model, self.dropout = config.d_model, config.dropout
        self.query = nn.Linear(config.d_model, config.d_query, bias=config.qkv_bias)
        self.key = nn.Linear(config.d_model, config.d_kv, bias=config.qkv_bias)
        self.value = nn.Linear(config.d_model, config.d_kv, bias=config.qkv_bias)
        self.output = nn.Linear(config.d_query, config.d_model, bias=config.output_bias)

    def forward(
        self,
        x: Tensor,
        source: Tensor | None = None,
        mask: Tensor | None = None,
        rotation: Rotation | None = None,
        extend: Callable[[Tensor, Tensor], KeysValues] | None = None,
    ) -> Tensor:
        """Attend from each position of x to the positions of the source (x itself when None).

        x (B, T, d), source (B, S, d), mask boolean and broadcastable to (B, H, T, S). Queries and
        keys are turned by `rotation` where positions are rotary. A cache comes as `extend`, which
        stores the new keys and values and returns all so far. Returns (B, T, d). Raises
        ValueError for a shape or mask that does not fit.
        """
        query, key, value = self._turned(x, source, rotation)
        if extend is not None:
            key, value = extend(key, value)
        return self.read(query, (key, value), mask)

    def read(self, query: Tensor, keys_values: KeysValues, mask: Tensor | None = None) -> Tensor:
        """From queries (B, H, T, d_h) and given keys and values (B, n_kv, S, d_h) to (B, T, d)."""
        output: Tensor = self.output(merge_heads(attend(query, *keys_values, mask, self._dropout_now())))
        return output

    def with_weights(
        self,
        x: Tensor,
        source: Tensor | None = None,
        mask: Tensor | None = None,
        rotation: Rotation | None = None,
    ) -> tuple[Tensor, Tensor]:
        """`forward` by the plain path: the output (B, T, d) and the weights (B, H, T, S)."""
        query, key, value = self._turned(x, source, rotation)
        heads, weights = attend_with_weights(query, key, value, mask, self._dropout_now())
        return self.output(merge_heads(heads)), weights

    def project(self, x: Tensor, source: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, T, d_h) from x; keys and values (B, n_kv, S, d_h) from the source."""
        source = x if source is None else source
        self._check_input("x", x)
        self._check_input("source", source)
        if x.shape[0] != source.shape[0]:
            # Footgun: a batch of one would broadcast, silently, against a batch of many.
            raise ValueError(f"x has batch {x.shape[0]} but source has {source.shape[0]}; give equal batches")
        return (split_heads(self.query(x), self.n_heads), *self.keys_values(source))

    def _turned(
        self, x: Tensor, source: Tensor | None, rotation: Rotation | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """`project`, with queries and keys at their positions where positions are rotary."""
        query, key, value = self.project(x, source)
        if rotation is not None:
            query, key = rotate(query, rotation), rotate(key, rotation)
        return query, key, value

    def keys_values(self, source: Tensor) -> KeysValues:
        """Keys and values (B, n_kv, S, d_h) of a source (B, S, d)."""
        return (
            split_heads(self.key(source), self.n_kv_heads),
            split_heads(self.value(source), self.n_kv_heads),
        )

    def _dropout_now(self) -> float:
        return self.dropout if self.training else 0.0  # the fused kernel would drop in eval mode too

    def _check_input(self, name: str, x: Tensor) -> None:
        if x.dim() != 3 or x.shape[-1] != self.d_model:
            wanted = f"(batch, length, d_model) with d_model={self.d_model}"
            raise ValueError(f"{name} has shape {tuple(x.shape)}; give {wanted}")


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(B, T, H d_h) -> (B, H, T, d_h)."""
    batch, length, width = x.shape
    # Footgun: viewing straight as (B, H, T, d_h) has the right shape and mixes positions with heads.
    return x.view(batch, length, n_heads, width // n_heads).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, T, d_h) -> (B, T, H d_h): the heads side by side, undoing `split_heads`."""
    return x.transpose(1, 2).flatten(2)


def _check_shapes(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Refuse what a kernel would broadcast, or read past the end of, without a word."""
    told = f"query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
    if not query.dim() == key.dim() == value.dim() == 4:
        raise ValueError(f"{told}; give four axes each: (B, H, T, d_h), (B, n_kv, S, d_h), (B, n_kv, S, d_v)")
    if key.shape[:3] != value.shape[:3]:
        raise ValueError(f"{told}; key and value must agree in batch, heads and length")
    if query.shape[0] != key.shape[0] or query.shape[3] != key.shape[3]:
        raise ValueError(f"{told}; query and key must agree in batch and head width")
    if query.shape[1] % key.shape[1]:
        raise ValueError(f"{told}; the number of key/value heads must divide that of the query heads")


def _aligned(mask: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
    """The mask with four axes, checked to be boolean and to broadcast to (B, H, T, S)."""
    if mask is None:
        return None
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        # Footgun: a float mask would be *added* to the scores, and a 0/1 mask would mask nothing.
        kind = f"dtype {mask.dtype}" if isinstance(mask, Tensor) else f"type {type(mask).__name__}"
        raise TypeError(f"mask has {kind}; give a boolean tensor in which True means may attend")
    full = (*query.shape[:3], key.shape[2])  # (B, H, T, S)
    # Footgun: axes are aligned from the right, so a padding mask (B, S) must come as (B, 1, 1, S).
    shape = (1,) * (4 - mask.dim()) + tuple(mask.shape)
    if len(shape) != 4 or any(m not in (1, f) for m, f in zip(shape, full, strict=True)):
        raise ValueError(
            f"mask has shape {tuple(mask.shape)}; give one that broadcasts to (B, H, T, S) = {full}"
        )
    return mask.view(shape)
