"""Layers that real models have and the book's own model does not build.

`TransformerConfig` carries them so that the accounts of those models are exact; `tfbook.model`
refuses to build them. Each is a small description, validated as a whole.
"""

from dataclasses import dataclass, fields
from typing import Any

from tfbook.validation import as_count, check_flag, short


@dataclass(frozen=True, kw_only=True)
class _Description:
    """Counts are positive integers, or None or 0 where that is the default; flags are booleans."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value: Any = getattr(self, field.name)
            if isinstance(field.default, bool):
                check_flag(field.name, value)
            elif value != field.default and field.name != "layers":
                object.__setattr__(self, field.name, as_count(field.name, value))


@dataclass(frozen=True, kw_only=True)
class Experts(_Description):
    """Mixture of experts in place of the feed-forward layer, of which a router picks some per token.

    `d_expert` is the hidden width of each of the `count` experts; `d_shared` that of the shared
    expert which every token passes (all shared ones together), behind a gate with `shared_gate`.
    `layers` are the blocks that have experts, by index from 0; the others keep a dense layer of
    width d_ff. None means all. Source: Shazeer et al. 2017 (arXiv 1701.06538).
    """

    count: int
    active: int
    d_expert: int
    d_shared: int = 0
    shared_gate: bool = False
    bias: bool = False
    router_bias: bool = False
    layers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.active > self.count:
            raise ValueError(
                f"active={self.active} exceeds count={self.count}; a token picks among all experts"
            )
        if self.shared_gate and not self.d_shared:
            raise ValueError("shared_gate=True with d_shared=0; there is no shared expert to gate")
        layers = self.layers
        if layers is not None and not (isinstance(layers, tuple) and all(type(n) is int for n in layers)):
            raise TypeError(f"layers={short(layers)} is no tuple of block indexes")


@dataclass(frozen=True, kw_only=True)
class LatentAttention(_Description):
    """Multi-head latent attention: keys and values are made from one narrow vector, which is cached.

    `kv_rank` is its width; `d_rope` that of the rotary key all heads share, cached beside it.
    A head's queries and keys are d_nope + d_rope wide, its values d_value. Queries pass a
    bottleneck of width `q_rank`, unless it is None.
    Source: DeepSeek-V2 (arXiv 2405.04434), section 2.1.
    """

    kv_rank: int
    d_nope: int
    d_rope: int
    d_value: int
    q_rank: int | None = None


@dataclass(frozen=True, kw_only=True)
class DeltaNet(_Description):
    """A gated delta-rule layer: linear attention whose state does not grow with the sequence.

    The state is a d_key x d_value matrix for each value head, and the last `kernel` inputs of a
    short convolution. Source: Yang et al. 2024 (arXiv 2412.06464).
    """

    n_key_heads: int
    n_value_heads: int
    d_key: int
    d_value: int
    kernel: int


@dataclass(frozen=True, kw_only=True)
class ShortConvolution(_Description):
    """A gated convolution over the last `kernel` positions in place of attention, width d."""

    kernel: int
    bias: bool = False


@dataclass(frozen=True, kw_only=True)
class AudioSource(_Description):
    """A source that is heard: two convolutions over `mel_bins` make `length` states of width d.

    Source: Radford et al. 2022 (arXiv 2212.04356), section 2.2.
    """

    mel_bins: int
    length: int
