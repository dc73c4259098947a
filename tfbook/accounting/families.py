"""What each model family means by its config.json, told in the fields of `TransformerConfig`.

A `Family` says where the sizes stand, what is absent from the file because it is always so
(biases, norms, tying), and which features its layers have. Members are written as what they
change in a relative. What a family does not name is refused, never guessed: see `huggingface`.

Sources: the config.json files of the models' authors, and the definitions that their own code gives.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tfbook.accounting import layer_features as layers
from tfbook.accounting.layer_features import Feature, Fields
from tfbook.accounting.reading import ConfigReader
from tfbook.special_layers import AudioSource
from tfbook.validation import short

Default = tuple[str, Any]


@dataclass(frozen=True, kw_only=True)
class Family:
    """How a family's fields are read.

    `sizes` maps our fields to theirs, all required; `optional` to theirs and the value where the
    file has none (None is: as `TransformerConfig` derives it); `fixed` are always so. `only` lists
    fields of which one value is supported. `tied` is what holds where the file does not say, None
    where it must. `head` stands on top of a model, `bare` on top of the architecture called "...Model".
    `built` families are also built by `tfbook.model`, function for function.
    """

    sizes: Mapping[str, str]
    optional: Mapping[str, Default] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    features: tuple[Feature, ...] = ()
    activation: Default = ("hidden_act|hidden_activation", "silu")
    gated: bool = True
    tied: bool | None = False
    head: str = "tokens"
    bare: str = "none"
    built: bool = False

    def but(self, **changes: Any) -> "Family":
        """A relative: mappings are extended, all else is replaced."""
        for name in ("sizes", "optional", "fixed", "only"):
            changes[name] = {**getattr(self, name), **changes.get(name, {})}
        return replace(self, **changes)


_BIASES = ("qkv_bias", "output_bias", "ffn_bias")
_NO_BIAS = dict.fromkeys(_BIASES, False)


def _biases(key: str, default: bool, *names: str) -> dict[str, Default]:
    return dict.fromkeys(names, (key, default))


# --- Decoders with rotary positions, RMSNorm and a gated layer: Llama and what came of it ---------

_LLAMA = Family(
    sizes={
        "vocab_size": "vocab_size",
        "d_model": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "d_ff": "intermediate_size",
    },
    optional={
        "max_length": ("max_position_embeddings", 2048),
        "n_kv_heads": ("num_key_value_heads", None),
        "d_head": ("head_dim", None),
        "norm_eps": ("rms_norm_eps", 1e-6),
        "rope_base": ("rope_theta", 10_000.0),
    },
    fixed={"norm": "rmsnorm", "positions": "rope", **_NO_BIAS},
)
_GROUPED = {
    "n_kv_heads": "num_key_value_heads"
}  # the family's own default is a number, which is no guess to make
_ATTENTION_BIAS = _biases("attention_bias", False, "qkv_bias", "output_bias")
_MLP_BIAS = _biases("mlp_bias", False, "ffn_bias")
_LLAMA_3 = _LLAMA.but(optional={**_ATTENTION_BIAS, **_MLP_BIAS})
_WITH_HEAD_WIDTH = {"d_head": ("head_dim", 128)}

_MISTRAL = _LLAMA.but(sizes=_GROUPED, features=(layers.window_everywhere,))
_FOREIGN = ("", None)  # a field of Llama's that a relative does not have
_QWEN2 = _LLAMA.but(sizes=_GROUPED, fixed={"qkv_bias": True}, features=(layers.window_above,))
_QWEN3 = _LLAMA.but(
    sizes=_GROUPED,
    optional={**_WITH_HEAD_WIDTH, **_ATTENTION_BIAS},
    fixed={"qk_norm": "head"},
    features=(layers.window_above,),
)
_GEMMA = _LLAMA.but(
    sizes=_GROUPED,
    optional={"d_head": ("head_dim", 256), **_ATTENTION_BIAS},
    fixed={"embedding_scale": True},
    only={"use_bidirectional_attention": (False,)},
    activation=("hidden_activation|hidden_act", "gelu_pytorch_tanh"),
    tied=True,
)
_GEMMA2 = _GEMMA.but(
    fixed={"norm_position": "sandwich"}, features=(layers.every("sliding_window_pattern", 2),)
)
_OLMO = _LLAMA.but(optional=_ATTENTION_BIAS)
_OLMO2 = _OLMO.but(fixed={"norm_position": "after", "qk_norm": "width"})
_COHERE = _LLAMA.but(
    optional={"norm_eps": ("layer_norm_eps", 1e-5), **_ATTENTION_BIAS},
    fixed={"norm": "layernorm", "norm_bias": False, "parallel": True, "shared_norm": True},
    tied=True,
)
_GLM = _LLAMA.but(
    sizes=_GROUPED,
    optional={**_WITH_HEAD_WIDTH, "qkv_bias": ("attention_bias", True)},
    fixed={"output_bias": False},
)
_DEEPSEEK = _LLAMA.but(
    optional={"d_head": ("", None), **_ATTENTION_BIAS},
    only={"mlp_bias": (False,)},
    features=(layers.latent_attention, layers.deepseek_experts),
)


def _window_told(read: ConfigReader) -> Fields:
    read.present("sliding_window")  # the family's own default is a window, the files' usual null none
    return {}


def _cohere_norms(read: ConfigReader) -> Fields:
    return {"qk_norm": "width" if read.flag("use_qk_norm", False) else "none"}


def _glm_norms(read: ConfigReader) -> Fields:
    return {"qk_norm": "head" if read.flag("use_qk_norm", False) else "none"}


def _exaone_layers(read: ConfigReader) -> Fields:
    if not read.present("sliding_window"):
        read.get("sliding_window_pattern", None)
        return layers.by_layer(lambda count: None)(read)
    pattern = read.get("sliding_window_pattern", 4)
    if isinstance(pattern, str):  # "LLLG": local, local, local, global
        if not pattern or set(pattern) - {"L", "G"}:
            raise ValueError(f"sliding_window_pattern={short(pattern)} is not understood; use L and G")
        names = {"L": "sliding_attention", "G": "full_attention"}
        return layers.by_layer(lambda count: [names[pattern[i % len(pattern)]] for i in range(count)])(read)
    return layers.every("sliding_window_pattern", 4)(read)


# --- Decoders with LayerNorm and two-matrix layers: GPT-2 and its time ----------------------------

_GPT2 = Family(
    sizes={
        "vocab_size": "vocab_size",
        "d_model": "n_embd|hidden_size",
        "n_layers": "n_layer|num_hidden_layers",
        "n_heads": "n_head|num_attention_heads",
        "max_length": "n_positions|max_position_embeddings",
    },
    optional={"d_ff": ("n_inner", None), "norm_eps": ("layer_norm_epsilon", 1e-5)},
    fixed={"positions": "learned"},
    only={"n_special": (0,)},
    activation=("activation_function", "gelu_new"),
    gated=False,
    tied=True,
)
_GPTJ = _GPT2.but(
    fixed={
        "positions": "rope",
        "qkv_bias": False,
        "output_bias": False,
        "head_bias": True,
        "parallel": True,
        "shared_norm": True,
    },
    tied=False,
)
_NEOX = _LLAMA.but(
    optional={
        "n_kv_heads": _FOREIGN,
        "d_head": _FOREIGN,
        "norm_eps": ("layer_norm_eps", 1e-5),
        "rope_base": ("rope_theta|rotary_emb_base", 10_000.0),
        "parallel": ("use_parallel_residual", True),
        **_biases("attention_bias", True, "qkv_bias", "output_bias"),
    },
    fixed={"norm": "layernorm", "ffn_bias": True},
    activation=("hidden_act", "gelu"),
    gated=False,
)
_PHI = _NEOX.but(
    optional={
        "n_kv_heads": ("num_key_value_heads", None),
        "qk_norm_bias": ("qk_layernorm", False),
        **dict.fromkeys(("parallel", "qkv_bias", "output_bias"), _FOREIGN),
    },
    fixed={"parallel": True, "shared_norm": True, "head_bias": True, "qkv_bias": True, "output_bias": True},
    activation=("hidden_act", "gelu_new"),
)


def _square_heads(read: ConfigReader) -> Fields:
    width, heads, each = (
        read.count("hidden_size"),
        read.count("num_attention_heads"),
        read.count("head_dim", 128),
    )
    if heads * each != width:
        told = f"num_attention_heads={heads} of head_dim={each} are not hidden_size={width} together"
        raise ValueError(f"{told}; this family's output map takes no other width")
    return {}


def _phi_norms(read: ConfigReader) -> Fields:
    return {"qk_norm": "head" if read.flag("qk_layernorm", False) else "none"}


def _stablelm_block(read: ConfigReader) -> Fields:
    parallel = read.flag("use_parallel_residual", False)
    qk_norm = "width" if read.flag("qk_layernorm", False) else "none"
    return {"parallel": parallel, "shared_norm": parallel, "qk_norm": qk_norm}


def _bigcode_heads(read: ConfigReader) -> Fields:
    heads = 1 if read.flag("multi_query", True) else read.count("n_head|num_attention_heads")
    read.only("num_key_value_heads", (heads,))
    return {"n_kv_heads": heads}


def _falcon_block(read: ConfigReader) -> Fields:
    """Falcon's three generations: 40B and 11B ("new"), 7B (one key/value head), RW (ALiBi, sequential)."""
    heads = read.count("num_attention_heads|n_head")
    new, alibi = read.flag("new_decoder_architecture", False), read.flag("alibi", False)
    side_by_side, one_kv_head = read.flag("parallel_attn", True), read.flag("multi_query", True)
    kv = read.count("num_kv_heads|n_head_kv", heads)
    if not new:  # the older generations ignore the number of key/value heads
        kv = 1 if one_kv_head else heads
    norms = read.count("num_ln_in_parallel_attn", 2 if new else 1)
    if norms > 2:
        raise ValueError(f"num_ln_in_parallel_attn={norms} is not supported; use 1 or 2")
    shared = side_by_side and norms == 1
    positions = "alibi" if alibi else "rope"
    return {"parallel": side_by_side, "shared_norm": shared, "n_kv_heads": kv, "positions": positions}


def _mpt_attention(read: ConfigReader) -> Fields:
    inner, heads = read.inner("attn_config"), read.count("n_heads")
    inner.only("alibi", (True,))
    inner.only("qk_ln", (False,))
    inner.only("prefix_lm", (False,))
    inner.only("attn_type", ("multihead_attention",))
    inner.only("kv_n_heads", (heads,))
    return {"d_ff": read.count("expansion_ratio", 4) * read.count("d_model")}


def _opt_block(read: ConfigReader) -> Fields:
    before = read.flag("do_layer_norm_before", True)
    removed = read.flag("_remove_final_layer_norm", False)
    final = before and not removed
    return {"norm_position": "pre" if before else "post", "final_norm": final, "embedding_map_bias": False}


# --- Encoders ---------------------------------------------------------------------------------

_BERT = Family(
    sizes={
        "vocab_size": "vocab_size",
        "d_model": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "d_ff": "intermediate_size",
        "max_length": "max_position_embeddings",
        "n_token_types": "type_vocab_size",
    },
    optional={"norm_eps": ("layer_norm_eps", 1e-12)},
    fixed={"layout": "encoder", "norm_position": "post", "positions": "learned", "embedding_norm": True},
    only={"position_embedding_type": ("absolute",), "is_decoder": (False,)},
    activation=("hidden_act", "gelu"),
    gated=False,
    tied=True,
    head="none",
    bare="pooler",
)


def _padded_positions(read: ConfigReader) -> Fields:
    """The table's first rows belong to the padding token and what is before it."""
    before = read.count_or_zero("pad_token_id", 1) + 1
    rows = read.count("max_position_embeddings")
    if rows <= before:
        raise ValueError(
            f"max_position_embeddings={rows} leaves no row beyond pad_token_id={before - 1}; check both"
        )
    return {"position_offset": before, "max_length": rows - before}


def _mapped_embedding(read: ConfigReader) -> Fields:
    narrow, width = read.count("embedding_size"), read.count("hidden_size")
    if narrow == width:  # ALBERT maps its token vectors even then, which no field here can say
        raise ValueError(f"embedding_size={narrow} is hidden_size; an ALBERT is read where it is smaller")
    return {}


_ALBERT = _BERT.but(
    sizes={"d_embedding": "embedding_size"},
    fixed={"shared_layers": True},
    features=(_mapped_embedding,),
    only={"num_hidden_groups": (1,), "inner_group_num": (1,), "net_structure_type": (0,)},
    activation=("hidden_act", "gelu_new"),
)

# --- Encoder-decoders --------------------------------------------------------------------------

_BART = Family(
    sizes={
        "vocab_size": "vocab_size",
        "d_model": "d_model",
        "n_layers": "decoder_layers",
        "n_encoder_layers": "encoder_layers",
        "n_heads": "decoder_attention_heads",
        "d_ff": "decoder_ffn_dim",
        "encoder_d_ff": "encoder_ffn_dim",
        "max_length": "max_position_embeddings",
    },
    optional={"embedding_scale": ("scale_embedding", False)},
    fixed={
        "layout": "encoder-decoder",
        "norm_position": "post",
        "positions": "learned",
        "position_offset": 2,
        "embedding_norm": True,
    },
    only={"is_decoder": (False,), "add_bias_logits": (False,), "add_final_layer_norm": (False,)},
    activation=("activation_function", "gelu"),
    gated=False,
    tied=True,
)
_MBART = _BART.but(fixed={"norm_position": "pre"}, only={"add_final_layer_norm": (True,)})
_MARIAN = _BART.but(
    fixed={"positions": "sinusoidal", "stored_positions": True, "position_offset": 0, "embedding_norm": False}
)
_T5 = Family(
    sizes={
        "vocab_size": "vocab_size",
        "d_model": "d_model|hidden_size",
        "n_encoder_layers": "num_layers|num_hidden_layers",
        "n_heads": "num_heads|num_attention_heads",
        "d_head": "d_kv|head_dim",
        "d_ff": "d_ff",
    },
    optional={
        "relative_buckets": ("relative_attention_num_buckets", 32),
        "norm_eps": ("layer_norm_epsilon", 1e-6),
        "max_length": ("n_positions", 512),
    },
    fixed={"layout": "encoder-decoder", "norm": "rmsnorm", "positions": "relative", **_NO_BIAS},
    only={"is_decoder": (False,)},
    activation=("", None),
    tied=True,
)


def _bart_heads(read: ConfigReader) -> Fields:
    width = read.count("d_model")
    read.only("num_hidden_layers", (read.count("encoder_layers"),))
    for side in ("encoder", "decoder"):  # the two stacks may cut the same width differently
        heads = read.count(f"{side}_attention_heads")
        if width % heads:
            raise ValueError(f"{side}_attention_heads={heads} does not divide d_model={width}; use a divisor")
    return {}


def _t5_stacks(read: ConfigReader) -> Fields:
    told = read.get("feed_forward_proj", "relu" if read.get("model_type") == "t5" else "gated-gelu")
    known = {
        "relu": "relu",
        "gelu": "gelu",
        "silu": "silu",
        "gated-gelu": "geglu_tanh",
        "gated-silu": "swiglu",
        "gated-relu": "reglu",
    }
    if not isinstance(told, str) or told not in known:
        raise ValueError(f"feed_forward_proj={short(told)} is not supported; use one of {', '.join(known)}")
    read.only("is_gated_act", (told.startswith("gated"),))
    read.get("dense_act_fn", None)
    both = read.count("num_layers|num_hidden_layers")
    return {"activation": known[told], "n_layers": read.count("num_decoder_layers", both)}


def _whisper(read: ConfigReader) -> Fields:
    audio = AudioSource(mel_bins=read.count("num_mel_bins"), length=read.count("max_source_positions"))
    return {"audio": audio} | _bart_heads(read)


FAMILIES: dict[str, Family] = {
    # Llama's relatives
    "llama": _LLAMA_3.but(built=True),
    "mistral": _MISTRAL.but(built=True, features=(_window_told, layers.window_everywhere)),
    "mixtral": _MISTRAL.but(features=(layers.window_everywhere, layers.experts_everywhere())),
    "qwen2": _QWEN2.but(built=True),
    "qwen2_moe": _QWEN2.but(
        optional={"qkv_bias": ("qkv_bias", True)},
        only={"use_sliding_window": (False,)},
        features=(layers.window_above, layers.qwen_experts(shared=True)),
    ),
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3.but(
        optional={"d_head": ("head_dim", None)},
        only={"use_sliding_window": (False,)},
        features=(layers.window_above, layers.qwen_experts(shared=False)),
    ),
    "qwen3_next": _QWEN3.but(
        fixed={"attention_gate": True},
        optional={"d_head": ("head_dim", 256)},
        features=(layers.delta_net, layers.qwen_experts(shared=True)),
    ),
    "gemma": _GEMMA,
    "gemma2": _GEMMA2,
    # The text part of the larger Gemma 3 files leaves out what is as in the family's own definition.
    "gemma3_text": _GEMMA2.but(
        sizes=dict.fromkeys(("vocab_size", "n_heads", "n_kv_heads"), ""),
        optional={
            "vocab_size": ("vocab_size", 262_208),
            "n_heads": ("num_attention_heads", 8),
            "n_kv_heads": ("num_key_value_heads", 4),
        },
        fixed={"qk_norm": "head"},
        features=(layers.every("sliding_window_pattern|_sliding_window_pattern", 6),),
    ),
    "phi3": _LLAMA.but(features=(layers.window_everywhere,)),
    "phimoe": _LLAMA.but(
        sizes=_GROUPED,
        optional={**_ATTENTION_BIAS, "head_bias": ("lm_head_bias", False)},
        fixed={"norm": "layernorm", "norm_bias": True},
        features=(layers.window_everywhere, layers.experts_everywhere()),
    ),
    "olmo": _OLMO.but(fixed={"norm": "layernorm", "norm_gain": False}),
    "olmo2": _OLMO2,
    "olmo3": _OLMO2.but(features=(layers.every("", 4),)),
    "olmoe": _OLMO.but(
        optional={"d_head": _FOREIGN},
        fixed={"qk_norm": "width"},
        features=(layers.experts_everywhere("num_experts|num_local_experts"),),
    ),
    "cohere": _COHERE.but(features=(_cohere_norms,)),
    "cohere2": _COHERE.but(
        only={
            **dict.fromkeys(("use_embedding_sharing", "use_gated_activation", "use_parallel_block"), (True,)),
            "order_of_interleaved_layers": ("local_attn_first",),
            "position_embedding_type": ("rope_gptj",),
        },
        features=(layers.every("sliding_window_pattern|_sliding_window_pattern|layer_switch", 4),),
    ),
    "granite": _LLAMA_3,
    "granitemoe": _OLMO.but(features=(layers.experts_everywhere(),)),
    "smollm3": _LLAMA_3.but(
        sizes=_GROUPED, only={"use_sliding_window": (False,)}, features=(layers.window_above,), tied=True
    ),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "gpt_oss": _LLAMA.but(
        sizes=_GROUPED,
        optional={"d_head": ("head_dim", 64), **_biases("attention_bias", True, "qkv_bias", "output_bias")},
        fixed={"attention_sinks": True},
        features=(
            layers.every("", 2),
            layers.experts_everywhere("num_local_experts|num_experts", bias=True, router_bias=True),
        ),
    ),
    "glm": _GLM,
    "glm4": _GLM.but(fixed={"norm_position": "sandwich"}),
    "glm4_moe": _GLM.but(
        optional={"d_head": ("head_dim", None), "qkv_bias": ("attention_bias", False)},
        features=(layers.deepseek_experts, _glm_norms),
    ),
    "llama4_text": _LLAMA_3.but(
        sizes=_GROUPED,
        optional={**_WITH_HEAD_WIDTH, "ffn_bias": _FOREIGN},
        only={"use_qk_norm": (True, False)},  # a norm without weights
        features=(layers.nope_layers("chunked_attention", "attention_chunk_size"), layers.llama4_experts),
    ),
    "ernie4_5": _LLAMA.but(
        sizes=_GROUPED, optional={**_WITH_HEAD_WIDTH, **_biases("use_bias", False, *_BIASES)}, tied=True
    ),
    "seed_oss": _LLAMA.but(
        sizes=_GROUPED,
        optional={
            **_WITH_HEAD_WIDTH,
            **_MLP_BIAS,
            "qkv_bias": ("attention_bias", True),
            "output_bias": ("attention_out_bias", False),
        },
    ),
    "exaone4": _LLAMA.but(
        sizes=_GROUPED, fixed={"norm_position": "after", "qk_norm": "head"}, features=(_exaone_layers,)
    ),
    "arcee": _LLAMA_3.but(activation=("hidden_act", "relu2"), gated=False),
    "helium": _LLAMA.but(
        sizes=_GROUPED,
        features=(_square_heads,),
        optional={"d_head": ("head_dim", 128), **_MLP_BIAS, "qkv_bias": ("attention_bias", False)},
    ),
    "nemotron": _LLAMA_3.but(
        optional={"norm_eps": ("norm_eps", 1e-5)},
        fixed={"norm": "layernorm"},
        activation=("hidden_act", "relu2"),
        gated=False,
    ),
    "lfm2": _LLAMA.but(
        sizes={
            **_GROUPED,
            "n_heads": "num_attention_heads|num_heads",
            "d_ff": "intermediate_size|block_ff_dim",
        },
        optional={"norm_eps": ("norm_eps|block_norm_eps", 1e-5)},
        fixed={"qk_norm": "head"},
        features=(layers.short_convolution,),
        activation=("", "silu"),
        tied=True,
    ),
    "stablelm": _LLAMA.but(
        sizes=_GROUPED,
        optional={
            "d_head": _FOREIGN,
            "norm_eps": ("layer_norm_eps", 1e-5),
            "qkv_bias": ("use_qkv_bias", False),
        },
        fixed={"norm": "layernorm"},
        features=(_stablelm_block,),
    ),
    "starcoder2": _LLAMA.but(
        sizes=_GROUPED,
        optional={"norm_eps": ("norm_epsilon", 1e-5), **_biases("use_bias", True, *_BIASES)},
        fixed={"norm": "layernorm"},
        features=(layers.window_everywhere,),
        activation=("hidden_act", "gelu_pytorch_tanh"),
        gated=False,
        tied=True,
    ),
    "dbrx": Family(
        sizes={
            "vocab_size": "vocab_size",
            "d_model": "d_model",
            "n_layers": "n_layers|num_hidden_layers",
            "n_heads": "n_heads",
            "max_length": "max_seq_len",
        },
        fixed={"norm": "layernorm", "norm_bias": False, "positions": "rope", **_NO_BIAS},
        features=(layers.dbrx_experts,),
        activation=("", "silu"),
    ),
    # GPT-2's relatives
    "gpt2": _GPT2.but(built=True),
    "gpt_bigcode": _GPT2.but(
        activation=("activation_function", "gelu_pytorch_tanh"), features=(_bigcode_heads,)
    ),
    "gptj": _GPTJ,
    "codegen": _GPTJ,
    "gpt_neo": _GPT2.but(
        sizes={
            "d_model": "hidden_size",
            "n_layers": "num_layers|num_hidden_layers",
            "n_heads": "num_heads|num_attention_heads",
            "max_length": "max_position_embeddings",
        },
        optional={"d_ff": ("intermediate_size", None)},
        fixed={"qkv_bias": False},
        features=(layers.gpt_neo_layers,),
    ),
    "gpt_neox": _NEOX,
    "phi": _PHI.but(features=(_phi_norms,)),
    "bloom": _GPT2.but(
        sizes={"d_model": "hidden_size|n_embed", "max_length": ""},
        optional={"d_ff": ("", None), "max_length": ("seq_length", 2048)},
        fixed={"positions": "alibi", "embedding_norm": True},
        activation=("", "gelu_new"),
    ),
    "falcon": Family(
        sizes={
            "vocab_size": "vocab_size",
            "d_model": "hidden_size|n_embed",
            "n_layers": "num_hidden_layers|n_layer",
            "n_heads": "num_attention_heads|n_head",
        },
        optional={
            "d_ff": ("ffn_hidden_size", None),
            "norm_eps": ("layer_norm_epsilon", 1e-5),
            "rope_base": ("rope_theta", 10_000.0),
            "max_length": ("max_position_embeddings", 2048),
            **_biases("bias", False, *_BIASES),
        },
        only={"ff_factor": (4,)},
        features=(_falcon_block,),
        activation=("activation", "gelu"),
        gated=False,
        tied=True,
    ),
    "mpt": Family(
        sizes={
            "vocab_size": "vocab_size",
            "d_model": "d_model",
            "n_layers": "n_layers",
            "n_heads": "n_heads",
            "max_length": "max_seq_len",
        },
        fixed={"positions": "alibi", "norm_bias": False, **_NO_BIAS},
        only={"no_bias": (True,)},
        features=(_mpt_attention,),
        activation=("", "gelu"),
        gated=False,
        tied=True,
    ),
    "opt": Family(
        sizes={
            "vocab_size": "vocab_size",
            "d_model": "hidden_size",
            "n_layers": "num_hidden_layers",
            "n_heads": "num_attention_heads",
            "d_ff": "ffn_dim",
            "max_length": "max_position_embeddings",
        },
        optional={
            "d_embedding": ("word_embed_proj_dim", None),
            **_biases("enable_bias", True, *_BIASES),
            "norm_gain": ("layer_norm_elementwise_affine", True),
        },
        fixed={"positions": "learned", "position_offset": 2},
        features=(_opt_block,),
        activation=("activation_function", "relu"),
        gated=False,
        tied=True,
    ),
    # encoders
    "bert": _BERT.but(built=True),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), _BERT.but(features=(_padded_positions,))),
    "electra": _BERT.but(sizes={"d_embedding": "embedding_size"}, bare="none"),
    "albert": _ALBERT,
    "mpnet": _BERT.but(
        sizes={"n_token_types": "", "relative_buckets": "relative_attention_num_buckets"},
        features=(_padded_positions,),
    ),
    "distilbert": _BERT.but(
        sizes={
            "n_token_types": "",
            **{"d_model": "dim", "n_layers": "n_layers", "n_heads": "n_heads", "d_ff": "hidden_dim"},
        },
        only={"sinusoidal_pos_embds": (False,), "tie_weights_": (True,)},
        activation=("activation", "gelu"),
        bare="none",
    ),
    # encoder-decoders
    "t5": _T5.but(features=(_t5_stacks,)),
    "mt5": _T5.but(features=(_t5_stacks,), tied=None),
    "umt5": _T5.but(features=(_t5_stacks,), fixed={"relative_in_every_layer": True}, tied=None),
    "bart": _BART.but(features=(_bart_heads,)),
    "mbart": _MBART.but(features=(_bart_heads,)),
    "pegasus": _MARIAN.but(
        fixed={"norm_position": "pre"}, only={"add_final_layer_norm": (True,)}, features=(_bart_heads,)
    ),
    "marian": _MARIAN.but(only={"share_encoder_decoder_embeddings": (True,)}, features=(_bart_heads,)),
    "m2m_100": _BART.but(
        fixed={
            "norm_position": "pre",
            "positions": "sinusoidal",
            "position_offset": 0,
            "embedding_norm": False,
        },
        features=(_bart_heads,),
        activation=("activation_function", "relu"),
    ),
    "whisper": _BART.but(
        sizes={"max_length": "max_target_positions"},
        fixed={"norm_position": "pre", "position_offset": 0, "embedding_norm": False, "key_bias": False},
        only={"use_weighted_layer_sum": (False,)},
        features=(_whisper,),
    ),
}
