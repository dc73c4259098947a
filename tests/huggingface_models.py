"""Small random models of every family that is read, as transformers builds them."""

import json
import random
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, PretrainedConfig, PreTrainedModel

from tfbook.accounting.families import FAMILIES

# Values that a field may take, wherever a family has it. Sizes differ from each other on purpose.
SIZES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim"), (48, 96)),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), (4, 8)),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), (4, 6)),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), (1, 2, 4)),
    **dict.fromkeys(("head_dim", "d_kv"), (8, 20)),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_decoder_layers"), (2, 4, 5)),
    **dict.fromkeys(("num_layers", "encoder_layers", "decoder_layers"), (2, 4)),
    **dict.fromkeys(
        ("intermediate_size", "ffn_dim", "d_ff", "hidden_dim", "intermediate_size_mlp"), (56, 104)
    ),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "ffn_hidden_size", "n_inner"), (40, 88)),
    **dict.fromkeys(("vocab_size", "decoder_vocab_size"), (131,)),
    **dict.fromkeys(
        ("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions"), (64, 72)
    ),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), (4, 6)),
    **dict.fromkeys(("num_experts_per_tok", "n_shared_experts", "decoder_sparse_step"), (1, 2)),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), (24, 32)),
    **dict.fromkeys(("kv_lora_rank", "qk_nope_head_dim", "v_head_dim"), (16, 24)),
    **dict.fromkeys(("sliding_window", "attention_chunk_size", "window_size"), (7, 16)),
    **dict.fromkeys(("linear_num_key_heads",), (2,)),
    **dict.fromkeys(("linear_num_value_heads",), (4,)),
    **dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), (8, 12)),
    "q_lora_rank": (None, 20),
    "qk_rope_head_dim": (8,),
    "first_k_dense_replace": (1, 2),
    "interleave_moe_layer_step": (1, 2),
    "n_group": (1,),
    "topk_group": (1,),
    "embedding_size": (20, 48),
    "word_embed_proj_dim": (20, 48),
    "num_mel_bins": (16,),
    "max_source_positions": (30,),
    "type_vocab_size": (2, 3),
    "relative_attention_num_buckets": (8, 12),
    "feed_forward_proj": ("relu", "gated-gelu", "gated-silu"),
    "conv_L_cache": (3, 4),
    "block_multiple_of": (16,),
    "pad_token_id": (1,),
    **dict.fromkeys(("bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id"), (2,)),
    **dict.fromkeys(("decoder_start_token_id", "forced_eos_token_id", "mask_token_id"), (2,)),
}
FLAGS = (
    *(
        "attention_bias",
        "mlp_bias",
        "use_bias",
        "qkv_bias",
        "use_qkv_bias",
        "attention_out_bias",
        "lm_head_bias",
        "bias",
    ),
    *(
        "use_qk_norm",
        "qk_layernorm",
        "use_parallel_residual",
        "parallel_attn",
        "alibi",
        "new_decoder_architecture",
    ),
    *(
        "multi_query",
        "enable_bias",
        "do_layer_norm_before",
        "layer_norm_elementwise_affine",
        "use_sliding_window",
    ),
)
# transformers reads no such field, or reads it otherwise than the public files mean it.
UNTOUCHED = {
    "qwen2_moe": ("use_sliding_window",),
    "qwen3_moe": ("use_sliding_window",),
    "smollm3": ("use_sliding_window",),
    "lfm2": ("num_heads",),
}


def small_config(kind: str, seed: int) -> PretrainedConfig:
    """A small configuration of a family, drawn from its own fields."""
    draw = random.Random(f"{kind} {seed}")
    known = CONFIG_MAPPING[kind]().to_dict() if kind not in _NEEDS else _NEEDS[kind]
    chosen: dict[str, Any] = {
        name: draw.choice(values)
        for name, values in SIZES.items()
        if name in known
        and (known[name] is not None or name in ("q_lora_rank", "head_dim", "n_inner", "num_experts_per_tok"))
    }
    chosen |= {
        name: draw.random() < 0.5 for name in FLAGS if name in known and name not in UNTOUCHED.get(kind, ())
    }
    layout = FAMILIES[kind].fixed.get("layout", "decoder")
    if layout == "decoder" and "tie_word_embeddings" in known:
        chosen["tie_word_embeddings"] = draw.random() < 0.5
    _fit(kind, chosen, draw)
    return CONFIG_MAPPING[kind](**chosen)


def _fit(kind: str, chosen: dict[str, Any], draw: random.Random) -> None:
    """What one family asks of its fields together."""
    layers = chosen.get("num_hidden_layers") or chosen.get("num_layers")
    if kind == "gpt_neo":
        chosen["attention_types"] = [[["global", "local"], layers // 2]]
    if kind == "stablelm" and chosen["qk_layernorm"]:
        chosen["hidden_size"] = 96
    if kind == "dbrx":
        chosen["tie_word_embeddings"] = False
        chosen["attn_config"] = {"kv_n_heads": draw.choice([1, 2]), "rope_theta": 1e4}
        chosen["ffn_config"] = {"ffn_hidden_size": 40, "moe_num_experts": 4, "moe_top_k": 2}
    if kind == "lfm2":
        chosen["layer_types"] = [draw.choice(["conv", "full_attention"]) for _ in range(layers)]
    if kind == "helium":  # its output map takes d, so H d_h must be d
        chosen["head_dim"] = chosen["hidden_size"] // chosen["num_attention_heads"]
    if kind.startswith("deepseek"):
        chosen |= {"num_key_value_heads": chosen["num_attention_heads"], "mlp_bias": False}
        chosen.pop("head_dim", None)
    if kind == "gpt_bigcode":  # follows from multi_query
        chosen.pop("num_key_value_heads", None)
    if kind == "albert":
        chosen["embedding_size"] = 20
    if kind.startswith(("qwen2", "qwen3")) and chosen.get("use_sliding_window"):
        chosen["max_window_layers"] = draw.choice([0, 1, 3])
    if kind in ("qwen2_moe", "qwen3_moe", "qwen3_next"):
        chosen["mlp_only_layers"] = draw.choice([[], [0]])


_NEEDS = {
    "nemotron": {**CONFIG_MAPPING["llama"]().to_dict()},
    "dbrx": {
        "d_model": 1,
        "n_heads": 1,
        "n_layers": 1,
        "vocab_size": 1,
        "max_seq_len": 1,
        "tie_word_embeddings": True,
    },
}


def as_file(config: PretrainedConfig, architecture: str | None) -> dict[str, Any]:
    """The config.json that transformers would write, with every field."""
    fields: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    return fields | {"architectures": [architecture] if architecture else None}


def on_meta(config: PretrainedConfig, auto: Any) -> PreTrainedModel:
    """The model without memory for its weights."""
    with torch.device("meta"):
        model: PreTrainedModel = auto.from_config(config)
    return model


def autos(kind: str) -> list[Any]:
    """The classes that build a family's model, with its head and bare."""
    layout = FAMILIES[kind].fixed.get("layout", "decoder")
    with_head = {
        "decoder": transformers.AutoModelForCausalLM,
        "encoder": transformers.AutoModelForMaskedLM,
        "encoder-decoder": transformers.AutoModelForSeq2SeqLM,
    }[layout]
    if kind == "whisper":
        with_head = transformers.AutoModelForSpeechSeq2Seq
    return [with_head, transformers.AutoModel]


def size(model: PreTrainedModel) -> int:
    """All parameters, shared ones once."""
    return sum(parameter.numel() for parameter in model.parameters())
