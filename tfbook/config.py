"""The one description of a Transformer that both wings of the package read.

`tfbook.accounting` computes from it what a model costs; `tfbook.model` builds from it
what a model computes. The book's symbols and their fields:

| symbol | field        | meaning                                     |
|--------|--------------|---------------------------------------------|
| d      | `d_model`    | width of a position's vector                |
| H      | `n_heads`    | query heads                                 |
| n_kv   | `n_kv_heads` | key/value heads                             |
| d_h    | `d_head`     | width of one head                           |
| d_ff   | `d_ff`       | hidden width of the feed-forward layer      |
| L      | `n_layers`   | blocks in each stack                        |
| V      | `vocab_size` | tokens in the vocabulary                    |
| B, T, S| (arguments)  | batch, query length, key length of one call |

Left out: mixture of experts, latent attention and sliding windows have no fields yet.
A description that cannot say a thing is better than one whose fields nothing reads.
"""

import dataclasses
import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

LAYOUTS = ("decoder", "encoder", "encoder-decoder")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu")
GATED_ACTIVATIONS = ("swiglu", "geglu")
NORMS = ("layernorm", "rmsnorm")
NORM_POSITIONS = ("pre", "post")
POSITIONS = ("none", "sinusoidal", "learned", "rope")

LARGEST_COUNT = 2**31 - 1

_CHOICES = {
    "layout": LAYOUTS,
    "activation": ACTIVATIONS,
    "norm": NORMS,
    "norm_position": NORM_POSITIONS,
    "positions": POSITIONS,
}
_COUNTS = ("vocab_size", "d_model", "n_layers", "n_heads", "n_kv_heads", "d_head", "d_ff", "max_length")
_FLAGS = (
    "final_norm",
    "qkv_bias",
    "output_bias",
    "ffn_bias",
    "norm_bias",
    "head_bias",
    "tie_embeddings",
    "embedding_norm",
    "embedding_scale",
)


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """A Transformer, described completely and validated on construction.

    The defaults are the running example of section 2.5.5: d = 768, H = 12, L = 12,
    d_ff = 3072, V = 32000. Fields given as None are derived from the others:
    `n_kv_heads = n_heads`, `d_head = d_model / n_heads`, `d_ff = 4 d_model`,
    `final_norm` where the norm comes first, `norm_bias` where the norm is LayerNorm.

    In an encoder-decoder `n_layers` counts the blocks of each stack. `embedding_norm` puts a norm
    behind the embedding (as BERT and BART do), `embedding_scale` multiplies token vectors by
    sqrt(d) (as the original Transformer does).

    Raises ValueError or TypeError, naming the field, its value and a remedy.
    Source: Vaswani et al. 2017 (arXiv 1706.03762), section 3, for the architecture.
    """

    layout: str = "decoder"
    vocab_size: int = 32_000
    d_model: int = 768
    n_layers: int = 12
    n_heads: int = 12
    # Where a field below ignores its type: None is for input only, and a value is derived at once,
    # so that whoever reads a configuration never meets None.
    n_kv_heads: int = None  # type: ignore[assignment]
    d_head: int = None  # type: ignore[assignment]
    d_ff: int = None  # type: ignore[assignment]
    activation: str = "gelu"
    norm: str = "layernorm"
    norm_position: str = "pre"
    final_norm: bool = None  # type: ignore[assignment]
    positions: str = "sinusoidal"
    max_length: int = 1024
    qkv_bias: bool = True
    output_bias: bool = True
    ffn_bias: bool = True
    norm_bias: bool = None  # type: ignore[assignment]
    head_bias: bool = False
    tie_embeddings: bool = True
    embedding_norm: bool = False
    embedding_scale: bool = False
    dropout: float = 0.0
    norm_eps: float = 1e-5
    rope_base: float = 10_000.0

    def __post_init__(self) -> None:
        for name, options in _CHOICES.items():
            _check_choice(name, getattr(self, name), options)
        for name in _COUNTS:
            if getattr(self, name) is not None:
                self._set(name, as_count(name, getattr(self, name)))
        for name, value in self._usual().items():
            if getattr(self, name) is None:
                self._set(name, as_count(name, value) if name in _COUNTS else value)
        for name in _FLAGS:
            _check_flag(name, getattr(self, name))
        self._check_heads()
        for name, low, below in (("dropout", 0.0, 1.0), ("norm_eps", 0.0, 1.0), ("rope_base", 1.0, math.inf)):
            self._set(name, _as_real(name, getattr(self, name), low, below))

    def replace(self, **changes: Any) -> "TransformerConfig":
        """A copy with some fields changed, in which fields with their usual value follow.

        A field that stands at the value it is derived to (`d_head` at d/H, say) is derived
        anew; name it among the changes to hold it. `dataclasses.replace` would hold it
        silently, and make grouped queries of more heads.
        """
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in changes.keys() - fields.keys():
            raise TypeError(f"{name} is not a field of TransformerConfig; use one of {_list(fields)}")
        follow = {name: None for name, value in self._usual().items() if getattr(self, name) == value}
        return TransformerConfig(**fields | follow | changes)

    @property
    def gated(self) -> bool:
        """Whether the feed-forward layer has a third, gating matrix."""
        return self.activation in GATED_ACTIVATIONS

    @property
    def d_query(self) -> int:
        """Width of all query heads side by side, H d_h (which need not equal d)."""
        return self.n_heads * self.d_head

    @property
    def d_kv(self) -> int:
        """Width of all key (or value) heads side by side, n_kv d_h."""
        return self.n_kv_heads * self.d_head

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # the dataclass is frozen for everyone else

    def _usual(self) -> dict[str, Any]:
        """What the fields that may be None are derived to."""
        usual: dict[str, Any] = {"n_kv_heads": self.n_heads, "d_ff": 4 * self.d_model}
        if self.d_model % self.n_heads == 0:
            usual["d_head"] = self.d_model // self.n_heads
        elif self.d_head is None:
            raise ValueError(
                f"n_heads={self.n_heads} does not divide d_model={self.d_model}; "
                f"use one of {_nearest(divisors(self.d_model), self.n_heads)}, or set d_head"
            )
        return usual | {"final_norm": self.norm_position == "pre", "norm_bias": self.norm == "layernorm"}

    def _check_heads(self) -> None:
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"n_kv_heads={self.n_kv_heads} does not divide n_heads={self.n_heads}; "
                f"use one of {_nearest(divisors(self.n_heads), self.n_kv_heads)}"
            )
        if self.positions == "rope" and self.d_head % 2:
            raise ValueError(
                f"d_head={self.d_head} is odd, and positions='rope' turns pairs of coordinates; "
                "use an even d_head or other positions"
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(
                f"d_model={self.d_model} is odd, and positions='sinusoidal' fills it with pairs of "
                "sine and cosine; use an even d_model or other positions"
            )
        if self.norm == "rmsnorm" and self.norm_bias:
            raise ValueError(
                "norm_bias=True, but RMSNorm has no bias; use norm='layernorm' or drop norm_bias"
            )


def divisors(number: int) -> list[int]:
    """The positive divisors of a positive integer, in ascending order."""
    small = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return small + [number // n for n in reversed(small) if n * n != number]


def as_count(name: str, value: object) -> int:
    """A positive integer from any integer type (numpy's included), or an error that says why not."""
    if isinstance(value, bool) or "bool" in str(getattr(value, "dtype", "")):
        raise TypeError(f"{name}={value!r} is a truth value; give a positive integer")
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # refusing the rest is its job
    except TypeError:
        raise TypeError(
            f"{name}={_short(value)} is {type(value).__name__}, not an integer; give a positive integer"
        ) from None
    if number < 1:
        raise ValueError(f"{name}={_short(number)} is not positive; give an integer of at least 1")
    if number > LARGEST_COUNT:
        raise ValueError(f"{name} is larger than any model's; give an integer up to {LARGEST_COUNT:,}")
    return number


def _as_real(name: str, value: object, low: float, below: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={_short(value)} is {type(value).__name__}; give a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not low <= number < below:  # also false for nan
        raise ValueError(f"{name}={number!r} is out of range; give a number from {low:g} to below {below:g}")
    return number


def _check_choice(name: str, value: object, options: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name}={_short(value)} is unknown; use one of {_list(map(repr, options))}")


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name}={_short(value)} is {type(value).__name__}; give True or False")


def _short(value: object) -> str:
    """A value as it stands in a message: cut where it is long."""
    if isinstance(value, int) and value.bit_length() > 200:
        return "an integer of many digits"
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _list(options: Iterable[object]) -> str:
    return ", ".join(map(str, options))


def _nearest(options: list[int], value: int, most: int = 12) -> str:
    """The options as text; where there are many, only those nearest to the value."""
    return _list(sorted(sorted(options, key=lambda option: abs(option - value))[:most]))
