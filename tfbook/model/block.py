"""One Transformer block: attention, cross-attention where there is an encoder, feed-forward.

Every sublayer stands in a residual connection with a norm, in one of two orders:

    Post-LN  x = norm(x + sublayer(x))        Vaswani et al. 2017 (arXiv 1706.03762)
    Pre-LN   x = x + sublayer(norm(x))        Xiong et al. 2020 (arXiv 2002.04745)
"""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from tfbook.config import TransformerConfig
from tfbook.model.attention import MultiHeadAttention, split_heads
from tfbook.model.cache import KeysValues, KVCache
from tfbook.model.feedforward import FeedForward
from tfbook.model.normalization import build_norm
from tfbook.model.positions import Rotation


class Block(nn.Module):
    """A block at a given depth of its stack; with `cross` it also reads an encoder."""

    def __init__(self, config: TransformerConfig, layer: int, cross: bool = False) -> None:
        super().__init__()
        self.layer, self.pre, self.dropout = layer, config.norm_position == "pre", config.dropout
        self.attention, self.attention_norm = MultiHeadAttention(config), build_norm(config)
        self.cross_attention = MultiHeadAttention(config) if cross else None
        self.cross_attention_norm = build_norm(config) if cross else None
        self.feed_forward, self.feed_forward_norm = FeedForward(config), build_norm(config)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        rotation: Rotation | None = None,
        cache: KVCache | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """x (B, T, d) -> (B, T, d). `memory` (B, S, d) are the encoder's states, None once cached."""

        def extend(key: Tensor, value: Tensor) -> KeysValues:
            return (key, value) if cache is None else cache.extend(self.layer, key, value)

        def attend(z: Tensor) -> Tensor:
            output: Tensor = self.attention(z, mask=mask, rotation=rotation, extend=extend)
            return output

        def read_encoder(z: Tensor) -> Tensor:
            assert self.cross_attention is not None
            query = split_heads(self.cross_attention.query(z), self.cross_attention.n_heads)
            return self.cross_attention.read(query, self._memory(memory, cache), memory_mask)

        x = self._sublayer(x, self.attention_norm, attend)
        if self.cross_attention_norm is not None:
            x = self._sublayer(x, self.cross_attention_norm, read_encoder)
        return self._sublayer(x, self.feed_forward_norm, self.feed_forward)

    def _sublayer(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """The residual connection, with the norm where the configuration puts it."""
        if self.pre:
            return x + self._drop(sublayer(norm(x)))
        normed: Tensor = norm(x + self._drop(sublayer(x)))
        return normed

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)

    def _memory(self, memory: Tensor | None, cache: KVCache | None) -> KeysValues:
        """Keys and values of the encoder's states: projected once, then kept in the cache."""
        assert self.cross_attention is not None
        if cache is not None and cache.encoded:
            kept = cache.cross[self.layer]
            assert kept is not None
            return kept
        assert memory is not None
        keys, values = self.cross_attention.keys_values(memory)
        if cache is not None:
            cache.cross[self.layer] = (keys.detach(), values.detach())
        return keys, values
