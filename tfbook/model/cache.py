"""The key/value cache: what the past leaves behind, so that no position is projected twice.

One buffer for each layer's keys and one for its values, (B, n_kv, max_length, d_h), allocated
once. A chunk is written by slice and attended through a view: nothing is copied that was there
before. The cache is the one owner of positions: it knows which of its entries are real tokens
and at which position each row goes on. Cross-attention keys and values are kept beside, with
the mask of their source, as the encoder left them; they never grow.

A chunk counts only once all layers have stored it: a forward pass that fails can be tried again.
A cache is for inference: what it returns carries no gradient.

Left out: sliding windows and quantised storage.
"""

import operator

import torch
from torch import Tensor

from tfbook.config import TransformerConfig
from tfbook.model.unbuilt import refuse_unbuilt
from tfbook.validation import as_count

KeysValues = tuple[Tensor, Tensor]


class KVCache:
    """Keys and values of a batch, for up to `max_length` positions.

    `length` positions are filled. `crop` forgets the newest, for speculative decoding; `reorder`
    chooses rows, for beam search. Raises ValueError for what does not fit, before anything is written.
    """

    def __init__(
        self,
        config: TransformerConfig,
        batch: int,
        max_length: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        refuse_unbuilt(config, "decoder", "encoder-decoder")
        self.batch, self.max_length = as_count("batch", batch), as_count("max_length", max_length)
        shape = (self.batch, config.n_kv_heads, self.max_length, config.d_head)
        self.keys = [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.n_layers)]
        self.values = [torch.zeros_like(keys) for keys in self.keys]
        self.cross: list[KeysValues | None] = [None] * config.n_layers
        self.source_mask: Tensor | None = None  # (B, S), of the source behind `cross`
        self.encoded = False  # whether `cross` holds a source for all layers
        self.real = torch.zeros(self.batch, self.max_length, dtype=torch.bool, device=device)
        self.padded = False  # whether any entry is padding: without any, one query needs no mask
        self.length = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the self-attention buffers, filled or not."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.keys + self.values)

    def begin(self, batch: int, new: int, padding_mask: Tensor | None) -> Tensor:
        """Make room for a chunk and return its positions, (1, T) or (B, T). `advance` ends it."""
        if batch != self.batch:
            raise ValueError(
                f"ids have batch {batch} but the cache was made for {self.batch}; make a new cache"
            )
        if self.length + new > self.max_length:
            raise ValueError(
                f"the cache holds {self.max_length} positions, {self.length} are filled and {new} more "
                "are given; make it longer or crop it"
            )
        chunk = slice(self.length, self.length + new)
        self.real[:, chunk] = True if padding_mask is None else padding_mask
        self.padded = self.padded or (padding_mask is not None and not bool(padding_mask.all()))
        if not self.padded:
            return torch.arange(self.length, self.length + new, device=self.real.device).unsqueeze(0)
        return positions_of(self.real[:, : self.length + new])[:, chunk]

    def extend(self, layer: int, key: Tensor, value: Tensor) -> KeysValues:
        """Write a chunk's keys and values (B, n_kv, T, d_h); return all so far (B, n_kv, S, d_h)."""
        keys, values = self.keys[layer], self.values[layer]
        if key.dtype != keys.dtype:
            raise ValueError(
                f"keys are {key.dtype} but the cache is {keys.dtype}; give dtype={key.dtype} to KVCache"
            )
        end = self.length + key.shape[2]
        keys[:, :, self.length : end] = key.detach()
        values[:, :, self.length : end] = value.detach()
        return keys[:, :, :end], values[:, :, :end]

    def advance(self, new: int) -> None:
        """Count a chunk as stored, once all layers have written it."""
        self.length += new
        self.encoded = self.cross[-1] is not None

    def crop(self, length: int) -> None:
        """Forget all but the first `length` positions; at 0 the source of a cross-attention too."""
        length = operator.index(length)
        if not 0 <= length <= self.length:
            raise ValueError(f"crop to {length}, but {self.length} positions are filled")
        self.length = length
        self.padded = not bool(self.real[:, :length].all())
        if length == 0:
            self.cross, self.source_mask, self.encoded = [None] * len(self.cross), None, False

    def reorder(self, rows: Tensor) -> None:
        """Let row b continue what row rows[b] was: (B,) integers, repeats allowed. Sources move along."""
        if rows.shape != (self.batch,) or rows.dtype not in (torch.int32, torch.int64):
            told = f"rows has shape {tuple(rows.shape)} and {rows.dtype}"
            raise ValueError(f"{told}; give one row number for each of the {self.batch} rows")
        for buffer in self.keys + self.values:
            buffer[:, :, : self.length] = buffer[rows, :, : self.length]
        self.real[:, : self.length] = self.real[rows, : self.length]
        self.cross = [None if pair is None else (pair[0][rows], pair[1][rows]) for pair in self.cross]
        self.source_mask = None if self.source_mask is None else self.source_mask[rows]


def positions_of(real: Tensor) -> Tensor:
    """The position of each token where padding is on either side: (B, T) booleans -> (B, T) integers.

    Real tokens count from 0; padding gets some position, which nobody reads.
    """
    return (real.cumsum(dim=1) - 1).clamp(min=0)
