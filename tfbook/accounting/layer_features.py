"""What a config.json says about single layers: windows, experts, latent and linear attention.

Each function reads one such feature and returns fields of `TransformerConfig`. The same few serve
all families; where a file is silent, the pattern is that of the family's own definition.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tfbook.accounting.reading import ConfigReader
from tfbook.config import MOST_LAYERS
from tfbook.special_layers import DeltaNet, Experts, LatentAttention, ShortConvolution
from tfbook.validation import short

Fields = dict[str, Any]
Feature = Callable[[ConfigReader], Fields]

_KINDS = {
    "full_attention": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "sliding",  # at most one chunk is seen, and kept
    "linear_attention": "linear",
    "conv": "linear",
}


def n_layers(read: ConfigReader, keys: str = "num_hidden_layers") -> int:
    """The number of blocks, bounded before a list of that length is made."""
    count: int = read.count(keys)
    if count > MOST_LAYERS:
        raise ValueError(f"{read.name(keys)}={count} is more than any model's; give at most {MOST_LAYERS:,}")
    return count


def window_everywhere(read: ConfigReader) -> Fields:
    """Every layer slides where there is a window (Mistral 7B, Phi-3)."""
    window = read.count("sliding_window", None)
    return by_layer(lambda count: None if window is None else ["sliding_attention"] * count)(read)


def window_above(read: ConfigReader) -> Fields:
    """Layers from `max_window_layers` on slide, if `use_sliding_window` says so (Qwen)."""
    if not read.flag("use_sliding_window", False):
        read.get("sliding_window", None)
        read.get("max_window_layers", None)
        types = read.strings("layer_types")
        if types and set(types) != {"full_attention"}:
            raise ValueError(
                "layer_types has other than full layers but use_sliding_window is not true; say which"
            )
        return {}
    first = read.count_or_zero("max_window_layers")
    return by_layer(
        lambda count: ["full_attention" if i < first else "sliding_attention" for i in range(count)]
    )(read)


def every(keys: str, usual: int, other: str = "sliding_attention") -> Feature:
    """Of every so many layers the last is full and the others are of another kind.

    `keys` name the field that says how many; the empty text is: always the usual number.
    """

    def feature(read: ConfigReader) -> Fields:
        period = read.count(keys, usual) if keys else usual

        def pattern(count: int) -> list[str]:
            return ["full_attention" if (i + 1) % period == 0 else other for i in range(count)]

        return by_layer(pattern)(read)

    return feature


def by_layer(pattern: Callable[[int], list[str] | None], window: str = "sliding_window") -> Feature:
    """Layers as `layer_types` lists them, else by the family's pattern; None is: all full."""

    def feature(read: ConfigReader) -> Fields:
        count = n_layers(read)
        listed = read.strings("layer_types")
        types = listed or pattern(count) or []
        if listed and len(listed) != count:
            raise ValueError(f"layer_types has {len(listed)} entries for {count} layers; give one a layer")
        unknown = sorted(set(types) - _KINDS.keys())
        if unknown:
            raise ValueError(
                f"layer_types entry {short(unknown[0])} is not supported; use {', '.join(_KINDS)}"
            )
        kinds = tuple(_KINDS[name] for name in types)
        if "sliding" not in kinds:
            read.get(window, None)  # without sliding layers it says nothing
            return {"layer_kinds": kinds if "linear" in kinds else ()}
        seen = read.count(window)
        return {"window": seen, "layer_kinds": () if set(kinds) == {"sliding"} else kinds}

    return feature


def nope_layers(kind: str, window: str) -> Feature:
    """Layers with rotary positions are of one kind, those without (every fourth) full (Llama 4)."""

    def feature(read: ConfigReader) -> Fields:
        period = read.count("no_rope_layer_interval", 4)
        turned = read.integers("no_rope_layers")

        def pattern(count: int) -> list[str]:
            flags: Sequence[object] = turned or [(i + 1) % period for i in range(count)]
            return [kind if flag else "full_attention" for flag in flags]

        return by_layer(pattern, window)(read)

    return feature


def gpt_neo_layers(read: ConfigReader) -> Fields:
    """Global and local layers, told as [[kinds, times], ...]."""
    names = {"global": "full_attention", "local": "sliding_attention"}
    listed, groups = read.strings("attention_layers"), read.get("attention_types", [])
    if listed is None:
        listed = []
        for group in groups if isinstance(groups, list) else [groups]:
            match group:
                case [list(kinds), int(times)] if 0 < times * len(kinds) <= MOST_LAYERS:
                    listed += kinds * times
                case _:
                    raise ValueError(
                        f"attention_types={short(groups)} is not understood; give [[kinds, times], ...]"
                    )
    if any(kind not in names for kind in map(str, listed)):
        raise ValueError(f"attention_types={short(listed)} is not supported; use global and local")
    count = n_layers(read, "num_layers|num_hidden_layers")
    if len(listed) != count:
        raise ValueError(f"attention_types describes {len(listed)} layers of {count}; give one entry a layer")
    described = tuple("full" if kind == "global" else "sliding" for kind in listed)
    window = read.count("window_size", None)
    if "sliding" in described and window is None:
        raise ValueError("window_size is missing, and there are local layers; give it")
    return {"layer_kinds": described, "window": window if "sliding" in described else 0}


def experts_everywhere(count: str = "num_local_experts", **described: Any) -> Feature:
    """Every block has experts, of the width that a dense layer would have (Mixtral)."""

    def feature(read: ConfigReader) -> Fields:
        return {
            "experts": Experts(
                count=read.count(count),
                active=read.count("num_experts_per_tok|experts_per_token"),
                d_expert=read.count("intermediate_size"),
                **described,
            )
        }

    return feature


def qwen_experts(shared: bool) -> Feature:
    """Experts in every so many-th block, but for a list of dense ones; perhaps one shared, with a gate."""

    def feature(read: ConfigReader) -> Fields:
        step, dense = read.count("decoder_sparse_step", 1), set(read.integers("mlp_only_layers") or [])
        layers = tuple(i for i in range(n_layers(read)) if (i + 1) % step == 0 and i not in dense)
        experts = Experts(
            count=read.count("num_experts|num_local_experts"),
            active=read.count("num_experts_per_tok"),
            d_expert=read.count("moe_intermediate_size"),
            d_shared=read.count("shared_expert_intermediate_size") if shared else 0,
            shared_gate=shared,
            layers=None if len(layers) == n_layers(read) else layers,
        )
        return {"experts": experts if layers else None}

    return feature


def deepseek_experts(read: ConfigReader) -> Fields:
    """Experts from block `first_k_dense_replace` on, and some that every token passes."""
    first = read.count_or_zero("first_k_dense_replace") if read.present("first_k_dense_replace") else 0
    shared = read.count_or_zero("n_shared_experts") if read.present("n_shared_experts") else 0
    count = n_layers(read)
    read.only("moe_layer_freq", (1,))
    width = read.count("moe_intermediate_size")
    experts = Experts(
        count=read.count("n_routed_experts"),
        active=read.count("num_experts_per_tok"),
        d_expert=width,
        d_shared=width * shared,
        layers=tuple(range(first, count)) if first else None,
    )
    return {"experts": experts if first < count else None}


def llama4_experts(read: ConfigReader) -> Fields:
    """Experts and a shared one in every so many-th block; the dense blocks have a width of their own."""
    step, count, width = (
        read.count("interleave_moe_layer_step", 1),
        n_layers(read),
        read.count("intermediate_size"),
    )
    layers = read.integers("moe_layers")
    layers = list(range(step - 1, count, step)) if layers is None else sorted(set(layers))
    experts = Experts(
        count=read.count("num_local_experts"),
        active=read.count("num_experts_per_tok"),
        d_expert=width,
        d_shared=width,
        layers=None if len(layers) == count else tuple(layers),
    )
    return {"experts": experts, "d_ff": read.count("intermediate_size_mlp")}


def dbrx_experts(read: ConfigReader) -> Fields:
    """Key/value heads and experts, each in an object of its own."""
    attention, ffn = read.inner("attn_config"), read.inner("ffn_config")
    width, kv_heads = ffn.count("ffn_hidden_size"), attention.count("kv_n_heads")
    read.only("num_key_value_heads", (kv_heads,))
    for reader, names in ((attention, ("clip_qkv",)), (ffn, ("ffn_act_fn", "hidden_size"))):
        for name in names:  # they change the function, or repeat the width
            reader.get(name, None)
    experts = Experts(count=ffn.count("moe_num_experts"), active=ffn.count("moe_top_k"), d_expert=width)
    return {"n_kv_heads": kv_heads, "d_ff": width, "experts": experts}


def latent_attention(read: ConfigReader) -> Fields:
    """Keys and values from one narrow vector (DeepSeek-V2 and V3)."""
    latent = LatentAttention(
        kv_rank=read.count("kv_lora_rank"),
        q_rank=read.count("q_lora_rank") if read.present("q_lora_rank") else None,
        d_nope=read.count("qk_nope_head_dim"),
        d_rope=read.count("qk_rope_head_dim"),
        d_value=read.count("v_head_dim"),
    )
    for derived in ("head_dim", "qk_head_dim"):  # libraries write either; what counts are its two parts
        read.get(derived, None)
    heads = read.count("num_attention_heads")
    if read.count("num_key_value_heads", heads) != heads:
        raise ValueError(
            f"num_key_value_heads differs from num_attention_heads={heads}; latent attention has one kind"
        )
    return {"latent": latent}


def delta_net(read: ConfigReader) -> Fields:
    """Three linear layers of four (Qwen3-Next)."""
    linear = DeltaNet(
        n_key_heads=read.count("linear_num_key_heads"),
        n_value_heads=read.count("linear_num_value_heads"),
        d_key=read.count("linear_key_head_dim"),
        d_value=read.count("linear_value_head_dim"),
        kernel=read.count("linear_conv_kernel_dim"),
    )
    fields = every("full_attention_interval", 4, "linear_attention")(read)
    return fields | {"linear": linear if "linear" in fields["layer_kinds"] else None}


def short_convolution(read: ConfigReader) -> Fields:
    """Short convolutions between attention layers, and a width that is rounded up (LFM2)."""
    linear = ShortConvolution(kernel=read.count("conv_L_cache"), bias=read.flag("conv_bias", False))
    full = read.integers("full_attn_idxs")

    def pattern(count: int) -> list[str]:
        if full is None:
            raise ValueError("layer_types is missing; give it, or full_attn_idxs")
        return ["full_attention" if i in full else "conv" for i in range(count)]

    fields = by_layer(pattern)(read)
    width: int = read.count("intermediate_size|block_ff_dim")
    multiple = read.count("block_multiple_of", 256)
    factor = read.real("block_ffn_dim_multiplier", 1.0, 0.0, 1000.0)
    if read.flag("block_auto_adjust_ff_dim", True):
        width = int(factor * int(2 * width / 3))
        width = multiple * ((width + multiple - 1) // multiple)
    return fields | {"linear": linear if "linear" in fields["layer_kinds"] else None, "d_ff": width}
