"""What numbers weigh: equal to what torch holds, monotone, additive, in whole bytes."""

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.strategies import models
from tfbook import TransformerConfig
from tfbook.accounting import (
    PRESETS,
    capacity,
    count_parameters,
    format_bytes,
    kv_cache,
    parse_bytes,
    preset,
    training_memory,
    weight_memory,
)
from tfbook.accounting.units import DTYPE_BITS, UNITS, bytes_of
from tfbook.model import KVCache, build, next_token_loss
from tfbook.special_layers import LatentAttention

DECODERS = [name for name in PRESETS if preset(name).layout != "encoder"]
TORCH = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "fp64": torch.float64}


@given(
    models(("decoder", "encoder-decoder")),
    st.integers(1, 4),
    st.integers(1, 9),
    st.sampled_from(sorted(TORCH)),
)
def test_the_cache_equals_torchs(config: TransformerConfig, batch: int, length: int, dtype: str) -> None:
    need = kv_cache(config, batch, length, dtype)
    assert need.bytes - need.cross_bytes == KVCache(config, batch, length, dtype=TORCH[dtype]).nbytes


@given(models(("encoder-decoder",)), st.integers(1, 3), st.integers(1, 5))
def test_the_cache_of_cross_attention_equals_torchs(
    config: TransformerConfig, batch: int, source: int
) -> None:
    cache = KVCache(config, batch, 4)
    model = build(config).eval()
    ids = torch.zeros(batch, source, dtype=torch.long)
    with torch.inference_mode():
        model(ids, torch.zeros(batch, 1, dtype=torch.long), cache=cache)
    kept = sum(tensor.nbytes for pair in cache.cross if pair for tensor in pair)
    assert kv_cache(config, batch, 1, "fp32", source_length=source).cross_bytes == kept


@pytest.mark.parametrize(("n_kv_heads", "gib"), [(32, 4.0), (8, 1.0), (1, 0.125)])
def test_the_table_of_section_2_5_6(n_kv_heads: int, gib: float) -> None:
    config = TransformerConfig(d_model=4096, n_layers=32, n_heads=32, n_kv_heads=n_kv_heads)
    assert kv_cache(config, 1, 8192, "fp16").bytes == gib * 2**30
    assert kv_cache(config).bytes_per_token_per_layer == 4 * n_kv_heads * 128


def test_question_4_of_the_self_test() -> None:
    config = TransformerConfig(d_model=2048, n_layers=24, n_heads=16)
    assert (
        kv_cache(config, 1, 4096, "fp16").bytes == parse_bytes("805,306,368 bytes") == parse_bytes("0.75 GiB")
    )
    assert kv_cache(config.replace(n_kv_heads=4), 1, 4096).bytes == parse_bytes("192 MiB")


@given(
    st.sampled_from(DECODERS),
    st.integers(1, 300_000),
    st.integers(1, 50),
    st.sampled_from(sorted(DTYPE_BITS)),
)
def test_more_never_costs_less_and_sequences_add(name: str, length: int, batch: int, dtype: str) -> None:
    config = preset(name)
    source = {"source_length": 7} if config.layout == "encoder-decoder" else {}
    here = kv_cache(config, batch, length, dtype, **source)
    assert type(here.bytes) is int
    assert here.bytes == batch * kv_cache(config, 1, length, dtype, **source).bytes
    one_more = kv_cache(config, batch, length + 1, dtype, **source).bytes - here.bytes
    assert 0 <= batch * here.bytes_per_token_beyond_window <= one_more <= batch * here.bytes_per_token
    assert here.bytes == sum(count for _, count in here.account.items())


def test_quantised_caches_keep_scales() -> None:
    config = TransformerConfig(d_model=64, n_layers=3, n_heads=4)
    plain = kv_cache(config, 2, 5, "int8")
    assert plain.bytes == kv_cache(config, 2, 5, "fp16").bytes // 2
    assert "scales not counted" in str(plain.account)
    scaled = kv_cache(config, 2, 5, "int8", group_size=16)
    numbers = 2 * 3 * 2 * 5 * 64
    assert scaled.bytes == numbers + 2 * numbers // 16
    assert "scales" not in str(scaled.account)
    assert kv_cache(config, 1, 1, "int4").bytes == 3 * 2 * 32
    with pytest.raises(ValueError, match="scales belong to int8, int4 or fp8"):
        kv_cache(config, dtype="fp16", group_size=16)


def test_latent_attention_caches_its_latent() -> None:
    latent = LatentAttention(kv_rank=512, d_nope=128, d_rope=64, d_value=128)
    config = TransformerConfig(d_model=4096, n_layers=2, n_heads=32, latent=latent)
    assert kv_cache(config).bytes_per_token_per_layer == 2 * (512 + 64)
    assert kv_cache(config, expanded=True).bytes_per_token_per_layer == 2 * 32 * (192 + 128)


@given(models(), st.sampled_from(sorted(TORCH)))
def test_weights_equal_torchs(config: TransformerConfig, dtype: str) -> None:
    weighed = weight_memory(config, dtype)
    model = build(config).to(TORCH[dtype])
    assert weighed.bytes == sum(p.nbytes for p in model.parameters()) == sum(n for _, n in weighed.items())


def test_weights_in_four_bits_take_half_a_byte() -> None:
    config = preset("llama-3-8b")
    assert weight_memory(config, "int4").bytes == count_parameters(config).total // 2
    with pytest.raises(ValueError, match="dtype='fp7' is unknown; use one of float64"):
        weight_memory(config, "fp7")
    with pytest.raises(AttributeError, match="of parameters, not of bytes"):
        _ = count_parameters(config).bytes


def saved_by_autograd(config: TransformerConfig, batch: int, length: int) -> int:
    """The bytes that torch keeps for the backward pass, parameters aside, each storage once."""
    model = build(config).train()
    ids = torch.randint(config.vocab_size, (batch, length))
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, torch.Tensor] = {}  # held, so that no place is used twice

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        place = tensor.untyped_storage().data_ptr()
        if place not in weights and (place not in kept or tensor.nbytes > kept[place].nbytes):
            kept[place] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = model(ids)
        loss = out.sum() if config.layout == "encoder" else next_token_loss(out, ids)
    assert loss.requires_grad
    return sum(tensor.nbytes for tensor in kept.values())


@pytest.mark.parametrize(
    ("fields", "least"),
    [
        ({}, 0.95),
        ({"activation": "relu"}, 0.95),
        ({"norm_position": "post"}, 0.95),
        ({"layout": "encoder"}, 0.95),
        ({"embedding_norm": True, "activation": "reglu"}, 0.95),
        ({"n_kv_heads": 2, "activation": "swiglu", "norm": "rmsnorm"}, 0.8),  # these kernels are not fused
    ],
)
def test_activations_are_what_autograd_keeps(fields: dict[str, object], least: float) -> None:
    """Per block, by the difference of two depths: never more than torch keeps, and nearly all of it."""
    shallow, deep = (
        TransformerConfig(vocab_size=50, d_model=32, n_layers=n, n_heads=4, d_ff=96, **fields) for n in (1, 3)
    )
    told = [training_memory(c, 2, 16, "fp32").part("activations").total for c in (shallow, deep)]
    kept = [saved_by_autograd(c, 2, 16) for c in (shallow, deep)]
    assert least < (told[1] - told[0]) / (kept[1] - kept[0]) <= 1
    assert least < told[1] / kept[1] <= 1


def test_training_state_is_16_bytes_a_parameter() -> None:
    config = TransformerConfig(n_layers=2)
    number = count_parameters(config).total
    for dtype in ("bf16", "fp32"):
        state = training_memory(config, 1, 1, dtype)
        assert state.total - state.part("activations").total == 16 * number
    sgd = training_memory(config, 1, 1, "fp32", optimizer="sgd")
    assert sgd.total - sgd.part("activations").total == 8 * number


def test_checkpointing_keeps_less_and_attention_that_is_not_fused_more() -> None:
    config = TransformerConfig()
    usual, fewer, more = (
        training_memory(config, 8, 512, checkpointing=c, fused_attention=f).total
        for c, f in ((False, True), (True, True), (False, False))
    )
    assert fewer < usual < more
    assert more - usual == 2 * 12 * 8 * 12 * 512 * 512
    both = training_memory(TransformerConfig(layout="encoder-decoder", n_layers=2), 2, 8, source_length=6)
    assert "encoder: block" in str(both) and "cross-attention keys" in str(both)
    bare = training_memory(preset("bert-base-uncased"), 1, 128)
    assert "log-probabilities" not in str(bare)
    with pytest.raises(ValueError, match="knows no experts"):
        training_memory(preset("mixtral-8x7b"))
    with pytest.raises(ValueError, match="optimizer='lion' is unknown"):
        training_memory(config, optimizer="lion")


def test_capacity_of_the_section() -> None:
    """12 L d^2 weights of 12.0 GiB: the cache of heads of its own equals them at batch 3 (C-2.5.6-11)."""
    config = TransformerConfig(
        d_model=4096, n_layers=32, n_heads=32, vocab_size=1, positions="none", final_norm=False,
        qkv_bias=False, output_bias=False, ffn_bias=False, norm_gain=False,
    )  # fmt: skip
    found = capacity(config, parse_bytes("24 GiB") + 2 * 4096, 8192)
    assert found.weights == 12 * 2**30 + 2 * 4096  # and one row of the embedding
    assert (found.sequences, found.free) == (3, 0)
    assert found.cache_overtakes_at_batch == 4  # the embedding's row more than three caches
    assert found.cache_overtakes_at_length == 3 * 8192 + 1


@given(st.sampled_from(DECODERS), st.integers(1, 10**6), st.integers(0, 10**13))
def test_what_fits_fits_and_one_more_does_not(name: str, length: int, memory: int) -> None:
    config = preset(name)
    found = capacity(config, memory, length, "bf16", reserve=10**9)
    used = found.weights + 10**9 + found.sequences * found.cache_per_sequence
    assert found.free == memory - used
    assert used + found.cache_per_sequence > memory
    assert found.sequences == 0 or used <= memory
    longest = found.cache_overtakes_at_length
    if longest is not None:
        assert kv_cache(config, 1, longest, "bf16").bytes >= found.weights
        assert longest == 1 or kv_cache(config, 1, longest - 1, "bf16").bytes < found.weights
    batch = found.cache_overtakes_at_batch
    assert batch is not None
    assert batch * found.cache_per_sequence >= found.weights > (batch - 1) * found.cache_per_sequence


def test_a_cache_of_windows_alone_never_overtakes() -> None:
    assert capacity(preset("mistral-7b-v0.1"), 10**11, 100).cache_overtakes_at_length is None


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"batch": 0}, "batch=0 is not positive"),
        ({"length": 1.5}, r"length=1\.5 is float"),
        ({"length": True}, "length=True is a truth value"),
        ({"dtype": "fp7"}, "dtype='fp7' is unknown"),
        ({"source_length": 4}, "only an encoder-decoder has a source"),
        ({"expanded": 1}, "expanded=1 is int; give True or False"),
        ({"group_size": 0, "dtype": "int8"}, "group_size=0 is not positive"),
    ],
)
def test_bad_sizes_are_refused_by_name(fields: dict[str, object], told: str) -> None:
    with pytest.raises((ValueError, TypeError), match=told):
        kv_cache(TransformerConfig(), **fields)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0.75 GiB", 805_306_368),
        ("768 MiB", 805_306_368),
        ("805,306,368 bytes", 805_306_368),
        ("8e8", 800_000_000),
        ("80 GB", 80 * 10**9),
        ("80gb", 80 * 10**9),
        ("0.1 GiB", 107_374_182),
        ("1_000 kB", 10**6),
        ("  1 byte ", 1),
        ("3 Bytes", 3),
        ("2 kiB", 2048),
        ("5e-1 KiB", 512),
        (12, 12),
    ],
)
def test_sizes_as_people_type_them(text: str | int, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("80 G", "does not say which unit; write GB or GiB"),
        ("80 Gb", "may mean bits; write GB for bytes"),
        ("80 Gib", "may mean bits; write GiB"),
        ("1.5", "a fraction of a byte"),
        ("-5", "is no size"),
        ("1,23 GB", "is no size"),
        ("1e9999 GB", "is no size"),
        ("", "is no size"),
        ("nan", "is no size"),
        ("٣ GB", "is no size"),
        ("9" * 10_000, "is no size"),
        (-1, "is negative"),
        (True, "is bool"),
        (1.5, "is float"),
        (None, "is NoneType"),
    ],
)
def test_what_is_no_size_is_refused(text: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_bytes(text)


@given(st.integers(0, 10**18), st.sampled_from(sorted(UNITS)))
def test_a_size_survives_its_own_text(size: int, unit: str) -> None:
    assert parse_bytes(f"{size} bytes") == parse_bytes(f"{size:,}") == size
    assert parse_bytes(f"{size} {unit}") == size * UNITS[unit]
    for system in ("binary", "decimal"):
        told = format_bytes(size, system).replace("1,0", "10")  # 1,023 KiB is no group of thousands to parse
        again = parse_bytes(told)
        assert abs(again - size) <= size * 0.006


def test_sizes_as_people_read_them() -> None:
    assert format_bytes(805_306_368) == "768 MiB (805 MB)"
    assert format_bytes(2**30, "binary") == "1 GiB"
    assert format_bytes(2**40 - 1, "binary") == "1 TiB"  # where rounding reaches the next unit
    assert [format_bytes(n) for n in (0, 1, 999, 1000)] == [
        "0 bytes",
        "1 byte",
        "999 bytes",
        "1000 bytes (1 kB)",
    ]
    with pytest.raises(ValueError, match="is negative"):
        format_bytes(-1)
    with pytest.raises(ValueError, match="beyond any memory"):
        format_bytes(10**400)
    with pytest.raises(TypeError, match="size=True is bool"):
        format_bytes(True)
    with pytest.raises(ValueError, match="system='metric' is unknown"):
        format_bytes(1, "metric")


@given(st.integers(0, 10**6), st.sampled_from(sorted(DTYPE_BITS)))
def test_half_bytes_are_rounded_up(numbers: int, dtype: str) -> None:
    assume(numbers > 0)
    assert bytes_of(numbers, dtype) == -(-numbers * DTYPE_BITS[dtype] // 8)
