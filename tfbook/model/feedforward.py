"""The position-wise feed-forward layer: the same small network at every position.

Sources: Vaswani et al. 2017 (arXiv 1706.03762), section 3.3; gated variants, Shazeer 2020
(arXiv 2002.05202).
"""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from tfbook.config import TransformerConfig
from tfbook.model.unbuilt import refuse_unbuilt

_GELU_TANH = partial(F.gelu, approximate="tanh")
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "relu2": lambda x: F.relu(x).square(),
    "gelu": F.gelu,
    "gelu_tanh": _GELU_TANH,
    "silu": F.silu,
    "swiglu": F.silu,
    "geglu": F.gelu,
    "geglu_tanh": _GELU_TANH,
    "reglu": F.relu,
}


class FeedForward(nn.Module):
    """W_2 phi(W_1 x), or gated: W_2 (phi(W_1 x) * W_3 x). Widths d -> d_ff -> d."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        refuse_unbuilt(config)
        self.activation = ACTIVATIONS[config.activation]
        self.up = nn.Linear(config.d_model, config.d_ff, bias=config.ffn_bias)
        self.gate = nn.Linear(config.d_model, config.d_ff, bias=config.ffn_bias) if config.gated else None
        self.down = nn.Linear(config.d_ff, config.d_model, bias=config.ffn_bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, d) -> (B, T, d)."""
        hidden = self.activation(self.up(x))  # (B, T, d_ff)
        if self.gate is not None:
            hidden = hidden * self.gate(x)
        output: Tensor = self.down(hidden)
        return output
