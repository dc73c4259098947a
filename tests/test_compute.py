"""FLOPs as torch counts them, the rule 6 N D, and the bound of a decoding step."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

import tfbook.model.attention
from tests.strategies import models
from tfbook import TransformerConfig
from tfbook.accounting import (
    PRESETS,
    count_parameters,
    decode_bound,
    forward_flops,
    preset,
    training_flops,
)
from tfbook.accounting.compute import _pairs
from tfbook.model import EncoderDecoder, KVCache, attend_with_weights, build

DECODERS = [name for name in PRESETS if preset(name).layout != "encoder"]


def counted(config: TransformerConfig, batch: int, length: int, past: int = 0, source: int = 0) -> int:
    """What torch's counter sees of one pass on the plain path: it counts nothing of the fused one."""
    model = build(config).eval()
    plain = tfbook.model.attention.attend
    tfbook.model.attention.attend = lambda *given, **named: attend_with_weights(*given, **named)[0]
    try:
        with torch.inference_mode():
            ids = torch.zeros(batch, past + length, dtype=torch.long)
            cache = None if config.layout == "encoder" else KVCache(config, batch, past + length)
            sides = (
                [torch.zeros(batch, source, dtype=torch.long)] if isinstance(model, EncoderDecoder) else []
            )
            kept = {} if cache is None else {"cache": cache}
            if past:
                model(*sides, ids[:, :past], **kept)
            with FlopCounterMode(display=False) as counter:
                model(*sides, ids[:, past:], **kept)
    finally:
        tfbook.model.attention.attend = plain
    return counter.get_total_flops()


@settings(deadline=None)
@given(models(), st.integers(1, 3), st.integers(1, 5), st.integers(0, 4))
def test_a_pass_equals_torchs_counter(config: TransformerConfig, batch: int, length: int, past: int) -> None:
    source = 3 if config.layout == "encoder-decoder" else None
    past = 0 if config.layout == "encoder" else past
    account = forward_flops(config, batch, length, past, source_length=source)
    assert account.total == counted(config, batch, length, past, source or 0)
    assert account.total == sum(count for _, count in account.items())


def test_a_cached_step_and_a_full_pass_of_the_errata() -> None:
    """C-X-09: 24 d^2 + 4 t d for a step, 24 d^2 T + 4 T^2 d for a pass, a layer, without the head."""
    d, t = 64, 50
    config = TransformerConfig(d_model=d, n_heads=4, n_layers=1, vocab_size=7)
    step = forward_flops(config, 1, 1, t - 1).part("decoder").total
    assert step == 24 * d**2 + 4 * t * d
    assert forward_flops(config, 1, t).part("decoder").total == 24 * d**2 * t + 4 * t**2 * d


@pytest.mark.parametrize(("t", "share"), [(512, 0.02), (8192, 0.25), (24_576, 0.5), (131_072, 0.84)])
def test_the_share_of_attention_in_a_step(t: int, share: float) -> None:
    config = TransformerConfig(d_model=4096, n_heads=32, n_layers=1)
    block = forward_flops(config, 1, 1, t - 1).part("decoder").part("block")
    attended = block.part("scores").total + block.part("weighted sum").total
    assert round(attended / block.total, 2) == share


@given(st.integers(1, 7), st.integers(0, 9), st.integers(0, 9))
def test_pairs_that_the_mask_allows(length: int, past: int, window: int) -> None:
    seen = [past + t + 1 for t in range(length)]
    allowed = sum(min(keys, window) if window else keys for keys in seen)
    assert _pairs(length, past, window, causal=True, skip_masked=True) == allowed
    assert _pairs(length, past, window, causal=True, skip_masked=False) >= allowed


@given(st.sampled_from(DECODERS), st.integers(1, 500), st.integers(0, 5000), st.booleans())
def test_more_never_computes_less(name: str, length: int, past: int, skip: bool) -> None:
    config = preset(name)
    here = forward_flops(config, 2, length, past, skip_masked=skip, encoded=True).total
    assert here == 2 * forward_flops(config, 1, length, past, skip_masked=skip, encoded=True).total
    assert here <= forward_flops(config, 2, length + 1, past, skip_masked=skip, encoded=True).total
    assert forward_flops(config, 2, length, past, skip_masked=True, encoded=True).total <= here
    assert forward_flops(config, 2, length, past, last_only=True, encoded=True).total <= here or skip


@pytest.mark.parametrize("name", DECODERS)
def test_a_pass_in_one_is_a_pass_in_steps(name: str) -> None:
    """With the pairs that the mask allows, prefill in any chunks computes the same, where nothing is absorbed."""
    config = preset(name)
    fixed = {"skip_masked": True, "encoded": True}
    if config.layout == "encoder-decoder":
        fixed["source_length"] = 4
    whole = forward_flops(config, 1, 9, **fixed).total
    steps = [forward_flops(config, 1, 1, t, **fixed).total for t in range(9)]
    if config.latent is None:
        assert whole == sum(steps)
    else:
        assert whole < sum(steps)  # a step on the latent compares wider vectors


def test_experts_count_as_visited_and_look_ups_not_at_all() -> None:
    mixtral = preset("mixtral-8x7b")
    dense = forward_flops(mixtral, 1, 1).total
    account = count_parameters(mixtral)
    assert dense < 2 * account.active < 2 * account.total
    untied, tied = (TransformerConfig(tie_embeddings=t) for t in (False, True))
    assert forward_flops(untied, 1, 4).total == forward_flops(tied, 1, 4).total


@pytest.mark.parametrize("name", ["gpt2", "llama-3-8b", "mixtral-8x7b"])
def test_the_rule_6_n_d_and_what_it_leaves_out(name: str) -> None:
    config = preset(name)
    rule = training_flops(config, 2, 128)
    assert rule.exact == rule.six_n_d - rule.not_multiplied + rule.attention
    assert rule.exact == 3 * forward_flops(config, 2, 128).total
    assert rule.six_n_d == 6 * count_parameters(config).total * 2 * 128
    again = training_flops(config, 2, 128, checkpointing=True)
    assert again.exact * 3 == rule.exact * 4
    with pytest.raises(ValueError, match="no one D in an encoder-decoder"):
        training_flops(preset("t5-small"))


def test_the_bound_of_a_step() -> None:
    config = preset("llama-3-8b")
    bound = decode_bound(config, 10**12, 10**14, 1, 8192)
    read = 2 * (count_parameters(config).total - 128_256 * 4096)  # all but the table that is looked up
    assert (bound.weight_bytes, bound.cache_bytes) == (read, 2**30)
    assert bound.bound == "memory"
    assert bound.seconds == bound.memory_seconds == (read + 2**30) / bound.memory_seconds.__class__(10**12)
    assert bound.tokens_per_second * bound.seconds == 1
    assert float(bound.intensity) == pytest.approx(bound.flops / (read + 2**30))
    assert decode_bound(config, 10**12, 10**10, 1, 1).bound == "compute"
    tied = preset("gpt2")  # its table is read, by the head
    positions = 1024 * 768
    assert decode_bound(tied, 1, 1).weight_bytes == 2 * (count_parameters(tied).total - positions)


def test_a_step_of_an_encoder_decoder_reads_its_decoder_alone() -> None:
    bart = preset("bart-base")
    account = count_parameters(bart)
    d, layers = 768, 6
    cross = layers * 2 * (d * d + d)  # keys and values of the source are in the cache
    positions = account.part("embedding").part("positions").total
    read = (
        account.total - account.part("encoder").total - cross - positions - 2 * d
    )  # and the encoder's own norm
    assert decode_bound(bart, 10**12, 10**15, source_length=1).weight_bytes == 2 * read


@given(st.sampled_from(DECODERS), st.integers(1, 300), st.integers(1, 5000))
def test_a_larger_batch_is_never_slower_a_token(name: str, batch: int, length: int) -> None:
    config = preset(name)
    one, more = (decode_bound(config, 10**12, 10**15, b, length) for b in (batch, batch + 1))
    assert more.seconds >= one.seconds
    assert more.weight_bytes >= one.weight_bytes  # equal, but with experts
    if config.experts is None:
        assert more.tokens_per_second >= one.tokens_per_second


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"bandwidth": 0}, "bandwidth=0 is no number from 1 on"),
        ({"peak": float("nan")}, "peak=nan is no number from 1 on"),
        ({"peak": 1e-320}, "peak=1e-320 is no number from 1 on"),
        ({"bytes": True}, "bytes=True is no size"),
        ({"bytes": 3}, "bytes=3 is no size of a number"),
        ({"batch": -1}, "batch=-1 is not positive"),
        ({"dtype": "x"}, "dtype='x' is unknown"),
    ],
)
def test_bad_bounds_are_refused_by_name(fields: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        decode_bound(TransformerConfig(), **{"bandwidth": 1, "peak": 1} | fields)


def test_bad_passes_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="an encoder has no past"):
        forward_flops(TransformerConfig(layout="encoder"), past=3)
    with pytest.raises(ValueError, match="layout='encoder' does not decode"):
        decode_bound(TransformerConfig(layout="encoder"), 1, 1)
    with pytest.raises(TypeError, match="skip_masked=1 is int"):
        forward_flops(TransformerConfig(), skip_masked=1)
    with pytest.raises(ValueError, match="past=-1 is not positive"):
        forward_flops(TransformerConfig(), past=-1)
