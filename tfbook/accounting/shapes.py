"""The forward pass, row by row: what shape each tensor has and what it costs.

So far the rows of one attention layer; the other layers follow with their chapters.
"""

import math
from dataclasses import dataclass

from tfbook.accounting.parameters import attention_parameters
from tfbook.config import TransformerConfig
from tfbook.validation import as_count


@dataclass(frozen=True)
class ShapeRow:
    """One tensor of the forward pass. `parameters` are the weights that made it."""

    name: str
    shape: tuple[int, ...]
    symbols: str
    parameters: int = 0
    note: str = ""

    @property
    def elements(self) -> int:
        """How many numbers the tensor holds."""
        return math.prod(self.shape)


def attention_shapes(
    config: TransformerConfig, batch: int, length: int, key_length: int | None = None
) -> list[ShapeRow]:
    """The tensors of one attention layer, from its input (B, T, d) to its output (B, T, d).

    `key_length` is S, the length of the source in cross-attention; T when not given.
    Raises TypeError or ValueError for a size that is no positive integer.
    """
    batch, length = as_count("batch", batch), as_count("length", length)
    keys = length if key_length is None else as_count("key_length", key_length)
    weight = dict(attention_parameters(config).items())

    def made_by(*names: str) -> int:
        return sum(weight.get(f"attention.{name}", 0) for name in names)

    heads, kv_heads, width = config.n_heads, config.n_kv_heads, config.d_head
    n_kv, s = "H" if kv_heads == heads else "n_kv", "T" if key_length is None else "S"
    return [
        ShapeRow("input", (batch, length, config.d_model), "(B, T, d)"),
        ShapeRow("queries", (batch, heads, length, width), "(B, H, T, d_h)", made_by("W_Q", "b_Q")),
        ShapeRow("keys", (batch, kv_heads, keys, width), f"(B, {n_kv}, {s}, d_h)", made_by("W_K", "b_K")),
        ShapeRow("values", (batch, kv_heads, keys, width), f"(B, {n_kv}, {s}, d_h)", made_by("W_V", "b_V")),
        ShapeRow("scores", (batch, heads, length, keys), f"(B, H, T, {s})", note=f"no d: grows with T {s}"),
        ShapeRow("weights", (batch, heads, length, keys), f"(B, H, T, {s})", note="softmax: rows sum to 1"),
        ShapeRow("head outputs", (batch, heads, length, width), "(B, H, T, d_h)"),
        ShapeRow("concatenated", (batch, length, config.d_query), "(B, T, H d_h)"),
        ShapeRow("output", (batch, length, config.d_model), "(B, T, d)", made_by("W_O", "b_O")),
    ]
