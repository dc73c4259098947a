"""What a Transformer computes, in torch: the parts, the three models, and the key/value cache."""

from tfbook.model.attention import MultiHeadAttention, attend, attend_with_weights
from tfbook.model.block import Block
from tfbook.model.cache import KVCache
from tfbook.model.feedforward import FeedForward
from tfbook.model.initialization import initialize
from tfbook.model.loss import next_token_loss
from tfbook.model.masks import attention_mask, causal_mask, padding_mask
from tfbook.model.normalization import RMSNorm
from tfbook.model.transformer import Decoder, Encoder, EncoderDecoder, build

__all__ = [
    "Block",
    "Decoder",
    "Encoder",
    "EncoderDecoder",
    "FeedForward",
    "KVCache",
    "MultiHeadAttention",
    "RMSNorm",
    "attend",
    "attend_with_weights",
    "attention_mask",
    "build",
    "causal_mask",
    "initialize",
    "next_token_loss",
    "padding_mask",
]
