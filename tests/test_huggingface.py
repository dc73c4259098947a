"""config.json files: exact against transformers for every family, or refused by name."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from hypothesis import given
from hypothesis import strategies as st
from transformers import CONFIG_MAPPING

from tests.huggingface_models import as_file, autos, on_meta, size, small_config
from tfbook import TransformerConfig
from tfbook.accounting import (
    PRESETS,
    count_parameters,
    forward_shapes,
    kv_cache,
    parse_huggingface_config,
    preset,
    read_huggingface_config,
)
from tfbook.accounting.families import FAMILIES
from tfbook.accounting.huggingface import COSTS_NOTHING, LARGEST_FILE

SEEDS = range(6)
PUBLISHED = json.loads(Path(__file__).with_name("published_models.json").read_text("utf-8"))


@pytest.fixture(autouse=True)
def quiet() -> None:
    transformers.logging.set_verbosity_error()  # small models have odd token ids, and it says so


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_family_equals_transformers_to_the_parameter(kind: str) -> None:
    for seed in SEEDS:
        config = small_config(kind, seed)
        for auto in autos(kind):
            model = on_meta(config, auto)
            ours = read_huggingface_config(as_file(config, type(model).__name__))
            account = count_parameters(ours)
            assert account.total == size(model), (seed, type(model).__name__, config)
            assert account.total == sum(count for _, count in account.items())
            assert account.active <= account.total
            rows = forward_shapes(ours, 2, 5)
            assert sum(row.times * row.parameters for row in rows) == account.total


@pytest.mark.parametrize("name", PRESETS)
def test_presets_have_their_published_figures(name: str) -> None:
    config, figures = preset(name), PUBLISHED[name]
    account = count_parameters(config)
    assert (account.total, account.active) == (figures["parameters"], figures["active"])
    if config.layout == "encoder":
        with pytest.raises(ValueError, match="keeps no key/value cache"):
            kv_cache(config)
    else:
        cache = kv_cache(config, dtype="bf16")
        told = cache.bytes_per_token, cache.bytes_per_token_beyond_window
        assert told == (figures["cache_bytes_per_token"], figures["beyond_window"])
    assert PRESETS[name].source and PRESETS[name].title


def test_presets_and_figures_are_of_the_same_models() -> None:
    assert PRESETS.keys() == PUBLISHED.keys()
    with pytest.raises(KeyError, match="preset 'gpt5' does not exist; use one of gpt2"):
        preset("gpt5")


def cached(kind: str, seed: int, length: int) -> tuple[TransformerConfig, Any]:
    """Our description of a small model, and the cache that transformers filled with so many tokens."""
    config = small_config(kind, seed)
    torch.manual_seed(0)
    model = autos(kind)[0].from_config(config).eval()
    ids = torch.randint(3, 100, (2, length))
    given_ids = {"decoder_input_ids": ids, "input_ids": ids[:, :3]} if kind == "t5" else {"input_ids": ids}
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cache = model(**given_ids, use_cache=True).past_key_values
    return read_huggingface_config(as_file(config, type(model).__name__)), cache


def stored(cache: Any) -> int:
    layers = getattr(cache, "self_attention_cache", cache).layers
    return sum(t.numel() * t.element_size() for layer in layers for t in (layer.keys, layer.values))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "kind", ["llama", "gpt2", "qwen3", "gpt_bigcode", "deepseek_v3", "mixtral", "t5", "phi"]
)
def test_the_cache_equals_that_of_transformers(kind: str, seed: int) -> None:
    length = 6  # below every window
    ours, cache = cached(kind, seed, length)
    need = kv_cache(ours, 2, length, "fp32", source_length=3 if kind == "t5" else None)
    assert need.bytes - need.cross_bytes == stored(cache) == 2 * length * need.bytes_per_token
    if kind == "t5":
        cross = sum(
            t.nbytes for layer in cache.cross_attention_cache.layers for t in (layer.keys, layer.values)
        )
        assert need.cross_bytes == cross == 2 * 3 * need.cross_bytes_per_source_token


@pytest.mark.parametrize("kind", ["gemma3_text", "gpt_oss", "mistral"])
def test_a_window_ends_the_growth(kind: str) -> None:
    """transformers keeps one token less between steps: the step's own token makes the window full."""
    ours, cache = cached(kind, 1, 40)
    assert ours.window
    need = kv_cache(ours, 2, 40, "fp32")
    per_layer = 2 * need.bytes_per_token_per_layer
    sliding = sum(count for kind, _, count in ours.layer_groups() if kind == "sliding")
    assert need.bytes - sliding * per_layer == stored(cache)
    for length in (ours.window - 1, ours.window, ours.window + 1):
        grown = kv_cache(ours, 1, length + 1).bytes - kv_cache(ours, 1, length).bytes
        full = kv_cache(ours).bytes_per_token_beyond_window
        assert grown == (kv_cache(ours).bytes_per_token if length < ours.window else full)


def test_what_an_architecture_needs_and_what_a_library_stores_are_two_figures() -> None:
    falcon = preset("falcon-40b")
    assert kv_cache(falcon, expanded=True).bytes == 16 * kv_cache(falcon).bytes
    deepseek = kv_cache(preset("deepseek-v3"), dtype="bf16", expanded=True)
    assert deepseek.bytes == 4_997_120


def test_linear_layers_keep_a_state_of_fixed_size() -> None:
    hybrid = preset("qwen3-next-80b-a3b")
    short, long = kv_cache(hybrid, 1, 10, "bf16"), kv_cache(hybrid, 1, 1000, "bf16")
    assert short.state_bytes == long.state_bytes == 77_856_768
    assert long.bytes - short.bytes == 990 * 24_576


# transformers ties T5 whatever the file says, and takes a null there for "not gated" beside a gated
# `feed_forward_proj`; this package follows the public files.
OTHERWISE = {(kind, key) for kind in ("t5", "mt5", "umt5") for key in ("tie_word_embeddings", "is_gated_act")}


@pytest.mark.parametrize("absent", [True, False], ids=["absent", "null"])
@pytest.mark.parametrize("kind", FAMILIES)
def test_a_field_that_is_missing_or_null_means_what_the_family_means_or_is_asked_for(
    kind: str, absent: bool
) -> None:
    config = small_config(kind, 1)
    fields = as_file(config, type(on_meta(config, autos(kind)[0])).__name__)
    compared = 0
    for key in fields.keys() - COSTS_NOTHING - {"model_type", "architectures", "layer_types"}:
        changed = {name: value for name, value in fields.items() if name != key or not absent}
        if not absent:
            changed[key] = None
        try:
            ours = count_parameters(read_huggingface_config(changed)).total
        except ValueError:
            continue
        try:
            theirs = size(on_meta(CONFIG_MAPPING[kind].from_dict(dict(changed)), autos(kind)[0]))
        except (StrictDataclassError, TypeError, KeyError):
            # transformers refuses the file (a wrong type) or stumbles over the null: nothing to compare with
            continue
        compared += 1
        if (kind, key) not in OTHERWISE:
            assert ours == theirs, key
    assert compared > 2 or not absent  # transformers itself refuses most nulls


def test_fields_of_relatives_are_not_taken_for_ones_own() -> None:
    base = {"vocab_size": 32, "hidden_size": 64, "intermediate_size": 32, "num_hidden_layers": 2}
    base |= {"num_attention_heads": 4, "num_key_value_heads": 4, "sliding_window": 8}
    for kind, key, value in [
        ("gpt_neox", "head_dim", 8),
        ("stablelm", "head_dim", 32),
        ("olmoe", "head_dim", 8),
        ("olmo3", "sliding_window_pattern", 2),
        ("phi", "attention_bias", True),
    ]:
        with pytest.raises(ValueError, match=key):
            read_huggingface_config(
                {"model_type": kind, "num_experts": 4, "num_experts_per_tok": 2, **base, key: value}
            )


BASE = PRESETS["llama-3-8b"].config


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"model_type": "rwkv"}, "model_type='rwkv' is not supported; use one of albert"),
        ({"model_type": None}, "model_type=None is not supported"),
        ({"model_type": "gemma3", "text_config": {}}, "has a text_config; give that object alone"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": "4096"}, "hidden_size='4096' is no integer"),
        ({"hidden_size": 4096.0}, r"hidden_size=4096\.0 is no integer"),
        ({"hidden_size": True}, "hidden_size=True is no integer"),
        ({"hidden_size": -1}, "hidden_size=-1 is not positive"),
        ({"hidden_size": 10**40}, "hidden_size is larger than any model's"),
        ({"num_hidden_layers": 10**8}, "num_hidden_layers=100000000 is more than any model's"),
        (
            {"num_attention_heads": 33},
            "num_attention_heads=33 does not divide hidden_size=4096.*or set head_dim",
        ),
        ({"num_key_value_heads": 5}, "num_key_value_heads=5 does not divide num_attention_heads=32"),
        ({"head_dim": 0}, "head_dim=0 is not positive"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings='yes' is no truth value"),
        ({"hidden_act": "mish"}, "hidden_act='mish' is not supported; use one of relu"),
        ({"rope_theta": "x"}, "rope_theta='x' is no number"),
        ({"rope_scaling": 3}, "rope_scaling=3 is no object"),
        ({"architectures": ["LlamaForQuestionAnswering"]}, r"architectures=\['LlamaForQuestionAnswering'\]"),
        ({"architectures": "LlamaForCausalLM"}, "architectures='LlamaForCausalLM' is not supported"),
        ({"n_magic": 3}, "'n_magic': not known for model_type='llama'"),
        ({"attention_bias": 1}, "attention_bias=1 is no truth value"),
        ({"is_encoder_decoder": True}, "is_encoder_decoder=True is not supported"),
        ({"rms_norm_eps": float("nan")}, r"rms_norm_eps is not a number"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads=.* is not supported"),
        (
            {"rope_parameters": {"rope_theta": 1.0}, "rope_scaling": {"factor": 2}},
            "say the same thing differently",
        ),
    ],
)
def test_bad_fields_are_refused_by_name(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_huggingface_config(BASE | change)


@pytest.mark.parametrize(
    ("kind", "change", "told"),
    [
        ("gemma3_text", {"layer_types": ["full_attention"]}, "layer_types has 1 entries for 26 layers"),
        ("gemma3_text", {"layer_types": ["ring"] * 26}, "layer_types entry 'ring' is not supported"),
        ("gemma3_text", {"layer_types": "full"}, "layer_types='full' is no list of strings"),
        ("gemma3_text", {"sliding_window": None}, "sliding_window is missing"),
        ("mixtral", {"num_experts_per_tok": 9}, "num_experts_per_tok=9 exceeds the number of experts 8"),
        (
            "deepseek_v3",
            {"num_key_value_heads": 8},
            "num_key_value_heads differs from num_attention_heads=128",
        ),
        ("deepseek_v3", {"moe_layer_freq": 2}, "moe_layer_freq=2 is not supported"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type='relative_key'"),
        ("t5", {"feed_forward_proj": "gated-mish"}, "feed_forward_proj='gated-mish' is not supported"),
        ("falcon", {"num_ln_in_parallel_attn": 3}, "num_ln_in_parallel_attn=3 is not supported"),
        ("gpt2", {"architectures": ["GPT2DoubleHeadsModel"]}, "architectures="),
        (
            "bert",
            {"architectures": ["BertForMaskedLM"], "tie_word_embeddings": False},
            "not supported for a masked",
        ),
        (
            "bert",
            {"architectures": ["BertForSequenceClassification"], "id2label": {}},
            "id2label={} names no labels",
        ),
        ("mistral", {"sliding_window": False}, "sliding_window=False is no integer"),
        ("falcon", {"multi_query": None}, "multi_query is null; say true or false"),
        ("qwen2", {"layer_types": ["sliding_attention"] * 24}, "layer_types has other than full layers"),
    ],
)
def test_features_are_refused_by_name(kind: str, change: dict[str, Any], told: str) -> None:
    base = next(entry.config for entry in PRESETS.values() if entry.config["model_type"] == kind)
    with pytest.raises(ValueError, match=told):
        read_huggingface_config(base | change)


def test_tying_is_read_by_type_and_asked_for_where_versions_differ() -> None:
    assert read_huggingface_config({k: v for k, v in PRESETS["gemma-2b"].config.items()}).tie_embeddings
    assert not read_huggingface_config(
        {k: v for k, v in BASE.items() if k != "tie_word_embeddings"}
    ).tie_embeddings
    fields = PRESETS["t5-small"].config | {"model_type": "mt5"}
    del fields["tie_word_embeddings"]
    with pytest.raises(ValueError, match="tie_word_embeddings is missing"):
        read_huggingface_config(fields)


def test_what_costs_nothing_but_changes_the_function_is_kept_by_name() -> None:
    assert read_huggingface_config(BASE).beyond == ()
    scaled = read_huggingface_config(BASE | {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}})
    assert "rope_scaling" in scaled.beyond[0]
    for odd in ({"factor": 2.0}, {"rope_type": "default", "type": "linear"}):
        assert read_huggingface_config(BASE | {"rope_scaling": odd}).beyond
    assert read_huggingface_config(PRESETS["pythia-160m"].config).beyond[0] == "model_type='gpt_neox'"


def test_files_folders_and_text(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    text = json.dumps(BASE)
    file.write_text("\ufeff" + text, "utf-8")  # a byte order mark, as some editors leave
    expected = read_huggingface_config(BASE)
    assert read_huggingface_config(file) == read_huggingface_config(str(tmp_path)) == expected
    assert parse_huggingface_config(text) == expected
    with pytest.raises(FileNotFoundError, match="nothing is no file"):
        read_huggingface_config(tmp_path / "nothing")
    for content, told in [
        (b"\xff\xfe\x00", "no text in UTF-8"),
        (b"", "this is no JSON"),
        (b"[1]", "one object in braces, not list"),
        (b'{"model_type": "llama", "model_type": "bert"}', "'model_type' stands there twice"),
        (b'{"a": ' * 100_000, "this is no JSON|nested too deeply"),
        (b'{"model_type": NaN}', "model_type=nan is not supported"),
        (b'{"a": ' + b"1" * 5000 + b"}", "a number has thousands of digits"),
    ]:
        file.write_bytes(content)
        with pytest.raises(ValueError, match=told):
            read_huggingface_config(file)
    file.write_bytes(b" " * (LARGEST_FILE + 1))
    with pytest.raises(ValueError, match=r"no config\.json is that large"):
        read_huggingface_config(file)


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(list(PRESETS)), st.data())
def test_a_file_that_was_tampered_with_is_refused_or_counted(name: str, data: st.DataObject) -> None:
    """Any field replaced or dropped: an answer or a sentence, and never another exception."""
    fields = dict(PRESETS[name].config)
    for key in data.draw(st.lists(st.sampled_from(sorted(fields)), min_size=1, max_size=3)):
        if data.draw(st.booleans()):
            fields.pop(key, None)
        else:
            fields[key] = data.draw(ODD)
    try:
        config = read_huggingface_config(fields)
    except ValueError as error:
        assert 20 < len(str(error)) < 2000
    else:
        assert count_parameters(config).total > 0
