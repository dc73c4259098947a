"""What a Transformer computes, in torch.

So far the attention layer; the rest of the model follows in its own modules.
"""

from tfbook.model.attention import MultiHeadAttention, attend, attend_with_weights
from tfbook.model.masks import causal_mask

__all__ = ["MultiHeadAttention", "attend", "attend_with_weights", "causal_mask"]
