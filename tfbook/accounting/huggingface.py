"""A Hugging Face config.json -> `TransformerConfig`, exact or refused.

A config.json says less than it seems: biases, norms and tying follow from `model_type`, and many
fields change nothing that is counted here. So every field is one of four: read by the family
(see `families`), known to cost nothing, known to change the function though it costs nothing (then
its name goes to `beyond`, and the model is not built), or refused by name. A wrong number is worse
than none.

Left out: what a file's weights are stored as (`quantization_config`); name a dtype instead.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfbook.accounting.families import FAMILIES, Family
from tfbook.accounting.reading import ConfigReader
from tfbook.config import TransformerConfig
from tfbook.validation import listed, short

LARGEST_FILE = 8_000_000  # bytes; real files are a few thousand, some with long lists of labels


def read_huggingface_config(source: str | Path | Mapping[str, Any]) -> TransformerConfig:
    """The description of a model from its config.json: a path, its folder, or the parsed object.

    Raises ValueError or TypeError, naming the field, for a family or field that is not known, a
    missing or unusable value; FileNotFoundError where there is no such file.
    """
    if isinstance(source, Mapping):
        return _read(source)
    path = Path(source)
    path = path / "config.json" if path.is_dir() else path
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file; give the path of a config.json or of its folder")
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(
            f"{path} has {path.stat().st_size:,} bytes; no config.json is that large, so give the right file"
        )
    return parse_huggingface_config(path.read_bytes())


def parse_huggingface_config(text: str | bytes) -> TransformerConfig:
    """The same from the text of the file."""
    if len(text) > LARGEST_FILE:
        raise ValueError(f"the text has {len(text):,} characters; no config.json is that long")
    try:
        told = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        fields = json.loads(told, object_pairs_hook=_without_duplicates)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply to be a config.json") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"this is no text in UTF-8, so no config.json ({error.reason})") from None
    except json.JSONDecodeError as error:
        told = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise ValueError(f"this is no JSON ({told}); paste the whole config.json, braces included") from None
    except ValueError as error:  # Python reads no integer of thousands of digits
        if "digits" not in str(error):
            raise
        raise ValueError("a number has thousands of digits; no config.json holds such") from None
    if not isinstance(fields, dict):
        raise ValueError(f"a config.json holds one object in braces, not {type(fields).__name__}")
    return _read(fields)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{short(twice)} stands there twice; keep one")
    return fields


def _read(fields: Mapping[str, Any]) -> TransformerConfig:
    kind = fields.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        if "text_config" in fields:
            raise ValueError(
                f"model_type={short(kind)} has a text_config; give that object alone, for the text model"
            )
        raise ValueError(
            f"model_type={short(kind)} is not supported; use one of {', '.join(sorted(FAMILIES))}"
        )
    family, read = FAMILIES[kind], ConfigReader(fields)
    ours = _of_family(read, family)
    if "activation" not in ours:
        ours["activation"] = _activation(read, family)
    ours |= _top(read, family, ours)
    ours["beyond"] = _beyond(read, family, ours)
    read.only("is_encoder_decoder", (ours.get("layout") == "encoder-decoder",))
    _refuse_the_unknown(read, kind)
    try:
        return TransformerConfig(**ours)
    except (ValueError, TypeError) as error:
        raise type(error)(_in_their_words(str(error), family, read)) from None


def _of_family(read: ConfigReader, family: Family) -> dict[str, Any]:
    """What the family says of its fields: fixed, sizes, optional ones, and its features."""
    ours: dict[str, Any] = dict(family.fixed)
    for name, keys in family.sizes.items():
        if keys:
            ours[name] = (read.count_or_zero if name == "n_token_types" else read.count)(keys)
    for name, (keys, default) in family.optional.items():
        if keys:
            ours[name] = _optional(read, name, keys, default)
    for key, allowed in family.only.items():
        read.only(key, allowed)
    for feature in family.features:
        try:
            ours |= feature(read)
        except ValueError as error:
            raise ValueError(_of_experts(str(error))) from None
    return ours


def _top(read: ConfigReader, family: Family, ours: dict[str, Any]) -> dict[str, Any]:
    """What stands on top: the head, its bias and labels, and whether it is tied."""
    head, tied = _head(read, family), _tied(read, family)
    if head == "masked-tokens" and not tied:
        raise ValueError(
            "tie_word_embeddings=False is not supported for a masked language model; versions differ"
        )
    return {
        "head": head,
        "head_bias": ours.get("head_bias", head == "masked-tokens"),
        "n_labels": _labels(read) if head.endswith("labels") else 0,
        "tie_embeddings": tied,
    }


def _optional(read: ConfigReader, name: str, keys: str, default: Any) -> Any:
    if name == "norm_eps":
        return read.real(keys, default, 0.0, 1.0)
    if name == "rope_base":
        rope = read.get("rope_parameters|rope_scaling", {})
        base = rope.get("rope_theta") if isinstance(rope, Mapping) else None
        return (
            read.real(keys, default, 1.0)
            if base is None
            else ConfigReader(rope).real("rope_theta", default, 1.0)
        )
    if isinstance(default, bool):
        return read.flag(keys, default)
    if name == "d_head" and keys in read.fields and read.fields[keys] is None:
        read.get(keys, None)
        return None  # null says: as wide as d / H
    return read.count(keys, default)


_ACTIVATIONS = {  # plain and gated
    "relu": ("relu", "reglu"),
    "relu2": ("relu2", None),
    "gelu": ("gelu", "geglu"),
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_fast"), ("gelu_tanh", "geglu_tanh")),
    **dict.fromkeys(("silu", "swish"), ("silu", "swiglu")),
}


def _activation(read: ConfigReader, family: Family) -> str:
    keys, default = family.activation
    found = [read.get(key, None) for key in keys.split("|")] if keys else []
    told = next((value for value in found if value is not None), default)
    known = _ACTIVATIONS.get(told) if isinstance(told, str) else None
    ours = known and known[family.gated]
    if not ours:
        raise ValueError(
            f"{read.name(keys)}={short(told)} is not supported; use one of {', '.join(_ACTIVATIONS)}"
        )
    return ours


# What the ending of an architecture's name says of the head, by the layout's usual one.
_ENDINGS = {
    "tokens": ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "MTModel", "ForSeq2SeqLM"),
    "none": ("ForMaskedLM",),
}
_NOT_BARE = ("HeadModel", "HeadsModel", "EncoderModel", "DecoderModel", "MTModel")
# Heads that tell texts or tokens apart, of encoders.
_LABELLED = {
    "ForSequenceClassification": "text-labels",
    "ForTokenClassification": "token-labels",
    "ForQuestionAnswering": "token-labels",
}


def _head(read: ConfigReader, family: Family) -> str:
    told = read.get("architectures", None)
    if told is None or told == []:
        return family.head if family.head != "none" else family.bare
    if isinstance(told, list) and len(told) == 1 and isinstance(told[0], str):
        if told[0].endswith(_ENDINGS[family.head]):
            return "masked-tokens" if family.head == "none" else family.head
        labelled = [kind for ending, kind in _LABELLED.items() if told[0].endswith(ending)]
        if labelled and family.head == "none":
            return labelled[0]
        if told[0].endswith("Model") and not told[0].endswith(_NOT_BARE):
            return family.bare
    known = listed((*_ENDINGS[family.head], *(_LABELLED if family.head == "none" else ()), "Model"))
    raise ValueError(f"architectures={short(told)} is not supported; use one whose name ends in {known}")


def _labels(read: ConfigReader) -> int:
    """How many labels there are: two, unless the file lists or counts them."""
    named = read.get("id2label", {"0": "", "1": ""})
    if not isinstance(named, Mapping) or not named:
        raise ValueError(f"id2label={short(named)} names no labels; give an object with one entry a label")
    read.only("num_labels", (len(named),))
    read.only("_num_labels", (len(named),))
    return len(named)


def _tied(read: ConfigReader, family: Family) -> bool:
    told = read.flag("tie_word_embeddings|tie_embedding", family.tied)
    if told is None:
        raise ValueError(
            "tie_word_embeddings is missing, and versions of this family differ; say true or false"
        )
    return bool(told)


# Settings that change the function and cost nothing, with the values at which they change nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "apply_residual_connection_post_layernorm": (False,),
    "is_decoder": (False, True),
    "attention_multiplier": (),
    "attn_logit_softcapping": (),
    "attn_scale": (),
    "attn_temperature_tuning": (False,),
    "clip_qkv": (),
    "embedding_multiplier": (1.0,),
    "final_logit_softcapping": (),
    "floor_scale": (),
    "logit_scale": (1.0,),
    "logits_scaling": (1.0,),
    "no_rope_layer_interval": (),
    "no_rope_layers": (),
    "partial_rotary_factor": (1.0,),
    "query_pre_attn_scalar": (),
    "residual_multiplier": (1.0,),
    "rope_percent": (1.0,),
    "rotary_dim": (),
    "rotary_pct": (1.0,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "scale_attn_weights": (True,),
    "swiglu_alpha": (),
    "swiglu_limit": (),
}


def _beyond(read: ConfigReader, family: Family, ours: dict[str, Any]) -> tuple[str, ...]:
    found = [] if family.built else [f"model_type={short(read.get('model_type'))}"]
    for key, neutral in _NEUTRAL.items():
        value = None if key in read.used else read.get(key, None)
        if value is not None and value not in neutral:
            found.append(f"{key}={short(value)}")
    rope = read.get("rope_parameters|rope_scaling", {})
    if not isinstance(rope, Mapping):
        raise ValueError(
            f"{read.name('rope_parameters|rope_scaling')}={short(rope)} is no object; give one in braces"
        )
    plain = {"rope_type": "default", "type": "default", "partial_rotary_factor": 1.0}
    scaled = [key for key, value in rope.items() if key != "rope_theta" and plain.get(key, "") != value]
    if ours.get("positions") == "rope" and scaled:
        found.append(f"rope_scaling={short(dict(rope))}")
    return tuple(found)


def _of_experts(told: str) -> str:
    """A complaint about experts, with the file's names for them."""
    return told.replace("active=", "num_experts_per_tok=").replace(" count=", " the number of experts ")


def _in_their_words(told: str, family: Family, read: ConfigReader) -> str:
    """The description's own complaint, with the file's names for the fields."""
    names = dict(family.sizes) | {ours: keys for ours, (keys, _) in family.optional.items()}
    for ours, keys in names.items():
        if keys:
            told = told.replace(f"{ours}=", f"{read.name(keys)}=").replace(
                f"set {ours}", f"set {read.name(keys)}"
            )
    return told


# Switches that some families do not have and some files carry all the same, turned off.
_NOTHING_WHEN_OFF = (
    *(
        "add_cross_attention",
        "attention_bias",
        "lm_head_bias",
        "mlp_bias",
        "qk_layernorm",
        "use_bias",
        "use_mrope",
        "use_qk_norm",
    ),
    *("for_llm_compressor", "query_key_layer_norm", "tie_encoder_decoder", "use_sliding_window"),
)


def _refuse_the_unknown(read: ConfigReader, kind: str) -> None:
    for key in _NOTHING_WHEN_OFF:
        if key not in read.used:
            read.only(key, (False,))
    read.only("pruned_heads", ({},))
    read.only("mlp_type", ("default",))
    unknown = sorted(
        reader.where + name
        for reader in (read, *read.inside)
        for name, value in reader.fields.items()
        if value is not None and name not in reader.used and name not in COSTS_NOTHING
    )
    if unknown:
        raise ValueError(
            f"{listed(short(name) for name in unknown[:5])}{' and more' * (len(unknown) > 5)}: not known for "
            f"model_type={kind!r}, and what it costs would be a guess; remove it if it costs nothing"
        )


# Training, tokens, generation, libraries: what neither adds a weight nor changes a layer's width.
COSTS_NOTHING = frozenset(
    """
    _attn_implementation _attn_implementation_autoset _commit_hash _name_or_path _num_labels
    _sliding_window activation_dropout adapt_dtype alibi_bias_max apply_spec_augment architectures
    attention_dropout attention_probs_dropout_prob attention_softmax_in_fp32 attn_impl attn_pdrop
    attn_uses_sequence_id auto_map aux_loss_alpha bad_words_ids begin_suppress_tokens
    bias_dropout_fusion block_dim block_mlp_init_scale block_out_init_scale block_use_swiglu
    block_use_xavier_init boi_token_id bos_token_id cache_implementation chunk_size_feed_forward
    classif_dropout classifier_activation classifier_dropout classifier_dropout_prob
    classifier_proj_size conv_dim conv_dim_out conv_use_xavier_init cross_attention_hidden_size
    custom_pipelines decoder_layerdrop decoder_start_token_id decoder_vocab_size default_theta
    directionality diversity_penalty do_sample down_scale_factor dropout dropout_rate dtype
    early_stopping emb_pdrop embd_pdrop embed_dropout embedding_dropout embedding_fraction
    encoder_layerdrop encoder_no_repeat_ngram_size eoi_token_id eos_token_id ep_size expert_capacity
    exponential_decay_length_penalty extra_pos_embeddings finetuning_task
    force_bos_token_to_be_generated forced_bos_token_id forced_decoder_ids forced_eos_token_id
    full_attn_mod gap_size gradient_checkpointing hidden_dropout hidden_dropout_prob id2label
    inference_runner init_config init_device init_method_std init_std initial_context_length
    initializer_factor initializer_range input_jitter_noise input_router_jitter_noise interpolate_factor
    is_composition is_llama_config label2id layer_norm_eps layer_norm_epsilon layerdrop layernorm_eps
    learned_pos_emb length_penalty mask_feature_length mask_feature_min_masks mask_feature_prob
    mask_time_length mask_time_min_masks mask_time_prob mask_token_id mask_zero_padding
    masked_softmax_fusion masked_spec_embed max_length max_new_tokens max_sequence_length
    median_filter_width memory_attention min_length mlm_probability model_max_length model_type
    moe_jitter_eps moe_loss_weight moe_normalize_expert_weights n_ctx n_group nb_inference_params
    no_repeat_ngram_size norm_eps norm_topk_prob norm_type normalize_before normalize_embedding
    num_assistant_tokens num_beam_groups num_beams num_labels num_memory_blocks num_mtp_layers
    num_nextn_predict_layers num_return_sequences offset_alibi original_max_position_embeddings
    output_attentions output_hidden_states output_past output_router_logits output_scores pad_key_length
    pad_token_id pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head
    pooler_type pre_allocate_kv_cache predict_special_tokens prefix pretraining_tp problem_type
    qa_dropout quantization_config relative_attention_max_distance remove_invalid_values
    reorder_and_upcast_attn repetition_penalty resid_dropout resid_pdrop residual_dropout return_dict
    return_dict_in_generate rope_interleave rope_interleaved rope_local_base_freq rope_parameters
    rope_scaling rope_theta rotary routed_scaling_factor router_aux_loss_coef router_bias_update_speed
    router_jitter_noise save_step scalable_attention scale_attention_softmax_in_fp32
    scale_decoder_outputs scoring_func sep_token_id seq_aux seq_classif_dropout skip_bias_add
    skip_bias_add_qkv sliding_window_size slow_but_exact softmax_scale static_position_embeddings
    summary_activation summary_first_dropout summary_last_dropout summary_proj_to_labels summary_type
    summary_use_proj suppress_tokens task_specific_params temperature tf_legacy_loss tokenizer_class
    tokenizer_name top_k top_p topk_group topk_method torch_dtype torchscript transformers.js_config
    transformers_version typical_p unk_index unk_token_id unsloth_fixed unsloth_version use_bfloat16
    use_cache use_parallel_embedding use_pos_enc validate_runner_input verbose vocab_pad_size
    """.split()  # noqa: SIM905 - as a list it would be 190 lines
)
