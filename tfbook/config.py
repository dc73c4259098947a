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

Real models have more than the book's own. The fields below "of real models" describe it, so
that the accounts are exact; `tfbook.model` says plainly which of them it does not build.

Left out: what neither costs anything nor is built, such as the scaling of rotary angles. `beyond`
keeps the names of such settings, so that nobody builds a different model unawares.
"""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tfbook.special_layers import AudioSource, DeltaNet, Experts, LatentAttention, ShortConvolution
from tfbook.validation import as_count, as_real, check_choice, check_flag, divisors, listed, nearest, short

LAYOUTS = ("decoder", "encoder", "encoder-decoder")
GATED_ACTIVATIONS = ("swiglu", "geglu", "geglu_tanh", "reglu")
ACTIVATIONS = ("relu", "relu2", "gelu", "gelu_tanh", "silu", *GATED_ACTIVATIONS)
NORMS = ("layernorm", "rmsnorm")
NORM_POSITIONS = ("pre", "post", "sandwich", "after")
POSITIONS = ("none", "sinusoidal", "learned", "rope", "alibi", "relative")
QK_NORMS = ("none", "head", "width")
HEADS = ("none", "tokens", "pooler", "masked-tokens", "text-labels", "token-labels")
LAYER_KINDS = ("full", "sliding", "linear")
MOST_LAYERS = 100_000

# The default of a field whose value follows from others. None is for input only: it is replaced at
# once, so that whoever reads a configuration never meets it; hence no field says `| None`.
DERIVED: Any = None

_CHOICES = {
    "layout": LAYOUTS,
    "activation": ACTIVATIONS,
    "norm": NORMS,
    "norm_position": NORM_POSITIONS,
    "positions": POSITIONS,
    "qk_norm": QK_NORMS,
    "head": HEADS,
}
_COUNTS = (
    *("vocab_size", "d_model", "n_layers", "n_heads", "n_kv_heads", "d_head", "d_ff", "max_length"),
    *("n_encoder_layers", "encoder_d_ff", "d_embedding"),
)
_COUNTS_OR_ZERO = ("window", "position_offset", "n_token_types", "relative_buckets", "n_labels")
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
    *(
        "key_bias",
        "norm_gain",
        "qk_norm_bias",
        "attention_gate",
        "attention_sinks",
        "parallel",
        "shared_norm",
    ),
    *("stored_positions", "relative_in_every_layer", "embedding_map_bias", "shared_layers"),
)
_SPECIALS = {
    "experts": (Experts,),
    "latent": (LatentAttention,),
    "linear": (DeltaNet, ShortConvolution),
    "audio": (AudioSource,),
}


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

    Of real models (see `tfbook.special_layers` for the larger ones):
    `window` is how many positions a sliding layer sees, its own among them; 0 without. `layer_kinds`
    names each decoder block "full", "sliding" or "linear"; empty, all are sliding where there is a
    window, else full. `norm_position` "sandwich" has a norm before and after each sublayer, "after"
    one behind it, inside the residual connection. In a `parallel` block both sublayers read the same
    input, through one norm with `shared_norm`. `qk_norm` normalizes queries and keys, each "head" or
    the whole "width" at once. `attention_gate` multiplies the heads' outputs by a gate made like the queries;
    `attention_sinks` adds a learned score per head to each softmax.
    `position_offset` counts rows of the learned table before the first position, `stored_positions`
    says that sinusoids are kept among the weights; `relative_buckets` is the height of a table of
    scores by distance, one a stack or `relative_in_every_layer`. `d_embedding` is the width of the
    token vectors where a map (with `embedding_map_bias`) brings them to d. `head` is what stands on
    top: "tokens", "masked-tokens" (with a dense layer), "pooler", "text-labels" (a pooler and `n_labels`
    scores), "token-labels" or "none". `shared_layers`: all
    blocks use the same weights. `encoder_d_ff` and `n_encoder_layers` are the encoder's, where they differ.
    `beyond` lists settings that cost nothing and are not described.

    Raises ValueError or TypeError, naming the field, its value and a remedy.
    Source: Vaswani et al. 2017 (arXiv 1706.03762), section 3, for the architecture.
    """

    layout: str = "decoder"
    vocab_size: int = 32_000
    d_model: int = 768
    n_layers: int = 12
    n_heads: int = 12
    n_kv_heads: int = DERIVED
    d_head: int = DERIVED
    d_ff: int = DERIVED
    activation: str = "gelu"
    norm: str = "layernorm"
    norm_position: str = "pre"
    final_norm: bool = DERIVED
    positions: str = "sinusoidal"
    max_length: int = 1024
    qkv_bias: bool = True
    output_bias: bool = True
    ffn_bias: bool = True
    norm_bias: bool = DERIVED
    head_bias: bool = False
    tie_embeddings: bool = True
    embedding_norm: bool = False
    embedding_scale: bool = False
    dropout: float = 0.0
    norm_eps: float = 1e-5
    rope_base: float = 10_000.0
    # Of real models:
    window: int = 0
    layer_kinds: tuple[str, ...] = ()
    experts: Experts | None = None
    latent: LatentAttention | None = None
    linear: DeltaNet | ShortConvolution | None = None
    audio: AudioSource | None = None
    head: str = DERIVED
    n_labels: int = 0
    key_bias: bool = DERIVED
    norm_gain: bool = True
    qk_norm: str = "none"
    qk_norm_bias: bool = False
    attention_gate: bool = False
    attention_sinks: bool = False
    parallel: bool = False
    shared_norm: bool = False
    shared_layers: bool = False
    position_offset: int = 0
    stored_positions: bool = False
    relative_buckets: int = 0
    relative_in_every_layer: bool = False
    n_token_types: int = 0
    d_embedding: int = DERIVED
    embedding_map_bias: bool = True
    n_encoder_layers: int = DERIVED
    encoder_d_ff: int = DERIVED
    beyond: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, options in _CHOICES.items():
            if name != "head" or self.head is not None:
                check_choice(name, getattr(self, name), options)
        for name in _COUNTS:
            if getattr(self, name) is not None:
                self._set(name, as_count(name, getattr(self, name)))
            elif name in ("vocab_size", "d_model", "n_layers", "n_heads", "max_length"):
                raise TypeError(f"{name}=None; give a positive integer, or leave it out for its default")
        for name, value in self._usual().items():
            if getattr(self, name) is None:
                self._set(name, as_count(name, value) if name in _COUNTS else value)
        for name in _COUNTS_OR_ZERO:
            if type(getattr(self, name)) is not int or getattr(self, name) != 0:
                self._set(name, as_count(name, getattr(self, name)))
        for name in _FLAGS:
            check_flag(name, getattr(self, name))
        for name, low, below in (("dropout", 0.0, 1.0), ("norm_eps", 0.0, 1.0), ("rope_base", 1.0, math.inf)):
            self._set(name, as_real(name, getattr(self, name), low, below))
        self._check_heads()
        self._check_layers()

    def replace(self, **changes: Any) -> "TransformerConfig":
        """A copy with some fields changed, in which fields with their usual value follow.

        A field that stands at the value it is derived to (`d_head` at d/H, say) is derived
        anew; name it among the changes to hold it. `dataclasses.replace` would hold it
        silently, and make grouped queries of more heads.
        """
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in changes.keys() - fields.keys():
            raise TypeError(f"{name} is not a field of TransformerConfig; use one of {listed(fields)}")
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

    @property
    def d_value(self) -> int:
        """Width of one head's values: d_h, but in latent attention."""
        return self.d_head if self.latent is None else self.latent.d_value

    def layer_groups(self) -> Iterator[tuple[str, bool, int]]:
        """Runs of like blocks of the main stack, in order: (kind, has experts, how many)."""
        if not self.layer_kinds and (self.experts is None or self.experts.layers is None):
            yield "sliding" if self.window else "full", self.experts is not None, self.n_layers
            return
        kinds = self.layer_kinds or ("sliding" if self.window else "full",) * self.n_layers
        chosen = None if self.experts is None else self.experts.layers
        special = set(range(self.n_layers) if chosen is None else chosen)
        with_experts = [self.experts is not None and layer in special for layer in range(self.n_layers)]
        for (kind, has_experts), run in groupby(zip(kinds, with_experts, strict=True)):
            yield kind, has_experts, len(list(run))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # the dataclass is frozen for everyone else

    def _usual(self) -> dict[str, Any]:
        """What the fields that may be None are derived to."""
        usual: dict[str, Any] = {"n_kv_heads": self.n_heads, "d_ff": 4 * self.d_model}
        if isinstance(self.latent, LatentAttention):
            usual["d_head"] = self.latent.d_nope + self.latent.d_rope
        elif self.d_model % self.n_heads == 0:
            usual["d_head"] = self.d_model // self.n_heads
        elif self.d_head is None:
            raise ValueError(
                f"n_heads={self.n_heads} does not divide d_model={self.d_model}; "
                f"use one of {nearest(divisors(self.d_model), self.n_heads)}, or set d_head"
            )
        return usual | {
            "final_norm": self.norm_position != "post",
            "norm_bias": self.norm == "layernorm" and self.norm_gain,
            "key_bias": self.qkv_bias,
            "head": "none" if self.layout == "encoder" else "tokens",
            "d_embedding": self.d_model,
            "n_encoder_layers": self.n_layers,
            "encoder_d_ff": self.d_ff or usual["d_ff"],
        }

    def _check_heads(self) -> None:
        if self.n_heads % self.n_kv_heads:
            raise ValueError(
                f"n_kv_heads={self.n_kv_heads} does not divide n_heads={self.n_heads}; "
                f"use one of {nearest(divisors(self.n_heads), self.n_kv_heads)}"
            )
        if self.positions == "rope" and self.latent is None and self.d_head % 2:
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

    def _check_layers(self) -> None:
        if self.n_layers > MOST_LAYERS:
            raise ValueError(f"n_layers={self.n_layers} is more than any model's; give up to {MOST_LAYERS:,}")
        for name, kinds in _SPECIALS.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kinds):
                wanted = " or ".join(kind.__name__ for kind in kinds)
                raise TypeError(f"{name}={short(value)} is {type(value).__name__}; give None or {wanted}")
        for name in ("layer_kinds", "beyond"):
            value = getattr(self, name)
            if not isinstance(value, tuple) or not all(isinstance(entry, str) for entry in value):
                raise TypeError(f"{name}={short(value)} is no tuple of strings")
        for kind in sorted(set(self.layer_kinds)):
            check_choice("layer_kinds entry", kind, LAYER_KINDS)
        for wrong, told in self._contradictions():
            if wrong:
                raise ValueError(told)

    def _contradictions(self) -> Iterator[tuple[bool, str]]:
        """(whether it holds, what to say) of each pair of fields that cannot both be so."""
        kinds, layers, latent = self.layer_kinds, self.n_layers, self.latent
        chosen = None if self.experts is None else self.experts.layers
        yield (
            bool(kinds) and len(kinds) != layers,
            f"layer_kinds has {len(kinds)} entries for n_layers={layers}; give one a layer, or none",
        )
        yield (
            "sliding" in kinds and not self.window,
            "layer_kinds has sliding layers but window=0; give the window's length",
        )
        yield (
            ("linear" in kinds) != (self.linear is not None),
            "layer_kinds has linear layers exactly where linear describes them; give both or none",
        )
        yield (
            chosen is not None and any(not 0 <= layer < layers for layer in chosen),
            f"experts.layers={short(chosen)} leaves 0 to {layers - 1}; index blocks from 0",
        )
        yield (
            self.head.endswith("labels") and not self.n_labels,
            f"head={self.head!r} with n_labels=0; say how many labels there are",
        )
        yield (
            self.audio is not None and self.layout != "encoder-decoder",
            f"audio with layout={self.layout!r}; only an encoder-decoder hears a source",
        )
        yield (
            self.positions == "relative" and not self.relative_buckets,
            "positions='relative' with relative_buckets=0; give the height of the table of scores",
        )
        yield (
            self.shared_norm and not (self.parallel and self.norm_position == "pre"),
            "shared_norm=True needs parallel=True and norm_position='pre'; only then is there one input",
        )
        yield (
            latent is not None and self.d_head != latent.d_nope + latent.d_rope,
            f"d_head={self.d_head} is not latent.d_nope + latent.d_rope; leave d_head to be derived",
        )
