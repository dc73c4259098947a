"""The three models: an encoder, a decoder (language model), and an encoder-decoder.

All are made of one `Stack`: embedding, blocks, final norm. The mask alone makes a stack an
encoder or a decoder. Nothing here depends on `training` but dropout.

Left out: what only the accounts describe, refused by `refuse_unbuilt`.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfbook.config import TransformerConfig
from tfbook.model.block import Block
from tfbook.model.cache import KVCache, positions_of
from tfbook.model.masks import attention_mask
from tfbook.model.normalization import build_norm
from tfbook.model.positions import rotation, sinusoids
from tfbook.model.unbuilt import refuse_unbuilt


class Stack(nn.Module):
    """Embedding, blocks and final norm: ids (B, T) -> states (B, T, d)."""

    def __init__(self, config: TransformerConfig, causal: bool, cross: bool = False) -> None:
        super().__init__()
        refuse_unbuilt(config)
        self.config, self.causal = config, causal
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        learned = config.positions == "learned"
        self.positions = nn.Embedding(config.max_length, config.d_model) if learned else None
        self.embedding_norm = build_norm(config) if config.embedding_norm else None
        self.blocks = nn.ModuleList(Block(config, layer, cross) for layer in range(config.n_layers))
        self.final_norm = build_norm(config) if config.final_norm else None

    def forward(
        self,
        ids: Tensor,
        padding_mask: Tensor | None = None,
        cache: KVCache | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """ids (B, T), padding_mask (B, T) with True at real tokens, memory (B, S, d) -> (B, T, d)."""
        self._check(ids, padding_mask)
        batch, new = ids.shape
        past = 0 if cache is None else cache.length
        if cache is not None:
            positions = cache.begin(batch, new, padding_mask)
            real = cache.real[:, : past + new] if cache.padded else None
        else:
            positions = (
                torch.arange(new, device=ids.device)[None]
                if padding_mask is None
                else positions_of(padding_mask)
            )
            real = padding_mask
        self._check_length(past + new)
        mask = attention_mask(new, past + new, self.causal, real, ids.device)
        turned = None
        if self.config.positions == "rope":
            turned = rotation(positions, self.config.d_head, self.config.rope_base)
        x = self.embed(ids, positions)
        for block in self.blocks:
            x = block(x, mask, turned, cache, memory, memory_mask)
        if cache is not None:
            cache.advance(new)
        return x if self.final_norm is None else self.final_norm(x)

    def embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Token vectors with their positions added, where positions are added: (B, T) -> (B, T, d)."""
        x: Tensor = self.tokens(ids)
        if self.config.embedding_scale:
            x = x * math.sqrt(self.config.d_model)
        if self.positions is not None:
            x = x + self.positions(positions)
        if self.config.positions == "sinusoidal":
            x = x + sinusoids(positions, self.config.d_model).to(x.dtype)
        if self.embedding_norm is not None:
            x = self.embedding_norm(x)
        return F.dropout(x, self.config.dropout, self.training)

    def _check(self, ids: Tensor, padding_mask: Tensor | None) -> None:
        if ids.dim() != 2 or ids.dtype not in (torch.int32, torch.int64):
            raise ValueError(
                f"ids have shape {tuple(ids.shape)} and {ids.dtype}; give int64 ids of shape (batch, length)"
            )
        if padding_mask is not None and (padding_mask.shape != ids.shape or padding_mask.dtype != torch.bool):
            raise ValueError(
                f"padding_mask has shape {tuple(padding_mask.shape)} and {padding_mask.dtype}; "
                f"give booleans of the shape of ids, {tuple(ids.shape)}, True at real tokens"
            )
        low, high = (int(ids.min()), int(ids.max())) if ids.numel() else (0, 0)
        if low < 0 or high >= self.config.vocab_size:
            wrong = low if low < 0 else high
            raise ValueError(
                f"id {wrong} is not in the vocabulary; ids run from 0 to {self.config.vocab_size - 1}"
            )

    def _check_length(self, length: int) -> None:
        """Learned positions end at max_length; the other kinds go on, but the model was made for no more."""
        if length > self.config.max_length:
            raise ValueError(
                f"length {length} exceeds max_length={self.config.max_length}; shorten the input or "
                "build the model with a larger max_length"
            )


class Encoder(nn.Module):
    """Reads in both directions: ids (B, T) -> states (B, T, d)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        refuse_unbuilt(config, "encoder")
        self.config = config
        self.stack = Stack(config, causal=False)

    def forward(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """ids (B, T), padding_mask (B, T) with True at real tokens. Returns the states (B, T, d)."""
        states: Tensor = self.stack(ids, padding_mask)
        return states


class Decoder(nn.Module):
    """A language model: ids (B, T) -> logits (B, T, V) for the token after each position."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        refuse_unbuilt(config, "decoder")
        self.config = config
        self.stack = Stack(config, causal=True)
        self.head = build_head(config, self.stack)

    def forward(
        self, ids: Tensor, cache: KVCache | None = None, padding_mask: Tensor | None = None
    ) -> Tensor:
        """ids (B, T): the whole sequence, or with a cache the next chunk of it. Returns (B, T, V)."""
        logits: Tensor = self.head(self.states(ids, cache, padding_mask))
        return logits

    def states(self, ids: Tensor, cache: KVCache | None = None, padding_mask: Tensor | None = None) -> Tensor:
        """The last layer's states (B, T, d), before the head."""
        states: Tensor = self.stack(ids, padding_mask, cache)
        return states


class EncoderDecoder(nn.Module):
    """Reads a source and writes a target: two (B, S) and (B, T) -> logits (B, T, V)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        refuse_unbuilt(config, "encoder-decoder")
        self.config = config
        self.encoder = Stack(config, causal=False)
        self.decoder = Stack(config, causal=True, cross=True)
        self.decoder.tokens = self.encoder.tokens  # one vocabulary, one embedding
        self.head = build_head(config, self.decoder)

    def forward(
        self,
        source_ids: Tensor,
        target_ids: Tensor,
        source_padding_mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """source_ids (B, S), target_ids (B, T). With a cache only the first call encodes the source."""
        logits: Tensor = self.head(self.states(source_ids, target_ids, source_padding_mask, cache))
        return logits

    def states(
        self,
        source_ids: Tensor,
        target_ids: Tensor,
        source_padding_mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """The decoder's last states (B, T, d), before the head."""
        if source_ids.shape[0] != target_ids.shape[0]:
            # Footgun: a batch of one would broadcast, silently, against a batch of many.
            raise ValueError(
                f"source has batch {source_ids.shape[0]} and target {target_ids.shape[0]}; give equal batches"
            )
        memory = None
        if cache is not None and cache.encoded:
            kept = cache.cross[0]
            assert kept is not None
            if kept[0].shape[2] != source_ids.shape[1]:
                told = f"source has length {source_ids.shape[1]} but the cache has one of {kept[0].shape[2]}"
                raise ValueError(f"{told}; crop the cache to 0 for another source")
            source_padding_mask = cache.source_mask  # the cache owns it: it moves with reordered rows
        else:
            memory = self.encoder(source_ids, source_padding_mask)
            if cache is not None:
                cache.source_mask = source_padding_mask
        memory_mask = attention_mask(target_ids.shape[1], source_ids.shape[1], False, source_padding_mask)
        states: Tensor = self.decoder(target_ids, None, cache, memory, memory_mask)
        return states


def build_head(config: TransformerConfig, stack: Stack) -> nn.Linear:
    """The output layer d -> V; tied, it shares its weight with the token embedding."""
    head = nn.Linear(config.d_model, config.vocab_size, bias=config.head_bias)
    if config.tie_embeddings:
        head.weight = stack.tokens.weight
    return head


def build(config: TransformerConfig) -> Encoder | Decoder | EncoderDecoder:
    """The model of a configuration, freshly initialised by torch's defaults (see `initialize`)."""
    if config.layout == "encoder":
        return Encoder(config)
    return Decoder(config) if config.layout == "decoder" else EncoderDecoder(config)
