"""Attention equals torch's own, its plain twin, and the definition; masks and groups mean what they say."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.strategies import attention_configs
from tfbook import TransformerConfig
from tfbook.model import MultiHeadAttention, attend, attend_with_weights, causal_mask

# float64: a difference between two right implementations is rounding alone.
EXACT = {"rtol": 0.0, "atol": 1e-12}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(251)


def layer_of(config: TransformerConfig) -> MultiHeadAttention:
    return MultiHeadAttention(config).double().eval()


def inputs(config: TransformerConfig, length: int = 5, batch: int = 2) -> Tensor:
    return torch.randn(batch, length, config.d_model, dtype=torch.float64)


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_equals_torchs_multihead_attention(cross: bool, causal: bool) -> None:
    config = TransformerConfig(d_model=12, n_heads=3)
    ours, torchs = layer_of(config), nn.MultiheadAttention(12, 3, batch_first=True).double().eval()
    with torch.no_grad():
        for name in ("weight", "bias"):
            parts = [getattr(linear, name) for linear in (ours.query, ours.key, ours.value)]
            getattr(torchs, f"in_proj_{name}").copy_(torch.cat(parts))
            getattr(torchs.out_proj, name).copy_(getattr(ours.output, name))
    x = inputs(config)
    source = inputs(config, length=7) if cross else x
    mask = causal_mask(5, source.shape[1]) if causal else None
    expected, weights = torchs(
        x, source, source, attn_mask=None if mask is None else ~mask, average_attn_weights=False
    )
    torch.testing.assert_close(ours(x, source, mask), expected, **EXACT)
    output, ours_weights = ours.with_weights(x, source, mask)
    torch.testing.assert_close(output, expected, **EXACT)
    torch.testing.assert_close(ours_weights, weights, **EXACT)


@given(attention_configs(), st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**16 - 1))
def test_the_fused_path_equals_the_plain_one(config: TransformerConfig, t: int, s: int, bits: int) -> None:
    layer = layer_of(config)
    x, source = inputs(config, t), inputs(config, s)
    mask = torch.tensor([bool(bits >> i & 1) for i in range(t * s)]).view(t, s)  # fully masked rows included
    for m in (None, mask):
        output, weights = layer.with_weights(x, source, m)
        torch.testing.assert_close(layer(x, source, m), output, **EXACT)
        rows = weights.sum(-1)
        allowed = torch.ones_like(rows) if m is None else m.any(-1).expand_as(rows).to(rows)
        torch.testing.assert_close(rows, allowed, **EXACT)


@given(attention_configs())
def test_grouped_heads_equal_repeated_ones(config: TransformerConfig) -> None:
    """Copy each key/value head to every query head of its group: nothing changes."""
    layer, full = layer_of(config), layer_of(config.replace(n_kv_heads=config.n_heads))
    group = config.n_heads // config.n_kv_heads
    with torch.no_grad():
        for name in ("query", "output"):
            getattr(full, name).load_state_dict(getattr(layer, name).state_dict())
        for name in ("key", "value"):
            state = {
                k: v.unflatten(0, (config.n_kv_heads, config.d_head))
                .repeat_interleave(group, 0)
                .flatten(0, 1)
                for k, v in getattr(layer, name).state_dict().items()
            }
            getattr(full, name).load_state_dict(state)
    x = inputs(config)
    torch.testing.assert_close(layer(x), full(x), **EXACT)


@pytest.mark.parametrize("attention", [attend, lambda *given: attend_with_weights(*given)[0]])
def test_a_query_with_nothing_to_attend_to_gets_zeros_and_finite_gradients(attention) -> None:
    query, key, value = (torch.randn(1, 2, 3, 4, requires_grad=True) for _ in range(3))
    mask = torch.ones(3, 3, dtype=torch.bool)
    mask[1] = False
    output = attention(query, key, value, mask)
    assert (output[:, :, 1] == 0).all() and output.isfinite().all()
    output.sum().backward()
    assert all(tensor.grad is not None and tensor.grad.isfinite().all() for tensor in (query, key, value))


@pytest.mark.parametrize("training", [True, False])
def test_no_query_sees_the_future(training: bool) -> None:
    config = TransformerConfig(d_model=12, n_heads=3)
    layer = layer_of(config).train(training)
    x = inputs(config, 6)
    changed = x.clone()
    changed[:, 4:] += 1.0
    before, after = (layer(z, mask=causal_mask(6)) for z in (x, changed))
    torch.testing.assert_close(before[:, :4], after[:, :4], **EXACT)
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_the_causal_mask_is_aligned_to_the_end() -> None:
    assert causal_mask(2, 4).tolist() == [[True, True, True, False], [True, True, True, True]]
    assert causal_mask(1, 4).all()
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    config = TransformerConfig(d_model=12, n_heads=3)
    layer, x = layer_of(config), inputs(config, 6)
    whole = layer(x, mask=causal_mask(6))
    torch.testing.assert_close(layer(x[:, 3:], x, causal_mask(3, 6)), whole[:, 3:], **EXACT)
    with pytest.raises(ValueError, match="queries=5 exceeds keys=4"):
        causal_mask(5, 4)


def test_without_a_mask_permuting_the_input_permutes_the_output() -> None:
    config = TransformerConfig(d_model=12, n_heads=3)
    layer, x = layer_of(config), inputs(config)
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order], **EXACT)


@pytest.mark.parametrize("path", ["fused", "plain"])
def test_dropout_is_off_in_eval_and_on_in_training(path: str) -> None:
    config = TransformerConfig(d_model=12, n_heads=3, dropout=0.5)
    layer, x = layer_of(config), inputs(config)
    run = layer if path == "fused" else lambda z: layer.with_weights(z)[0]
    assert torch.equal(run(x), run(x))
    layer.train()
    assert not torch.equal(run(x), run(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_agrees_to_its_rounding(dtype: torch.dtype) -> None:
    config = TransformerConfig(d_model=16, n_heads=4, n_kv_heads=2)
    layer, x = layer_of(config), inputs(config)
    expected = layer(x, mask=causal_mask(5))
    layer.to(dtype)
    for output in (
        layer(x.to(dtype), mask=causal_mask(5)),
        layer.with_weights(x.to(dtype), mask=causal_mask(5))[0],
    ):
        assert output.dtype == dtype
        torch.testing.assert_close(output.double(), expected, rtol=0.05, atol=0.02)


def test_masks_of_every_broadcastable_shape() -> None:
    config = TransformerConfig(d_model=12, n_heads=3)
    layer, x = layer_of(config), inputs(config)
    full = torch.rand(2, 3, 5, 5) > 0.3
    full[..., 0] = True
    for mask in (
        full,
        full[:, :1],
        full[0, 0],
        full[:1, :1, :1],
        full[:, :1, :1],
        full[0, 0, 0],
        torch.tensor(True),
    ):
        output, weights = layer.with_weights(x, mask=mask)
        torch.testing.assert_close(layer(x, mask=mask), output, **EXACT)
        assert (weights[(~mask).expand_as(weights)] == 0).all()


def test_large_scores_in_half_precision_agree_with_the_fused_path() -> None:
    query = torch.randn(1, 1, 4, 64, dtype=torch.float16).sign() * 40
    output, weights = attend_with_weights(query, query, query)
    assert weights.isfinite().all()
    torch.testing.assert_close(output, attend(query, query, query))


@pytest.mark.parametrize("attention", [attend, attend_with_weights])
@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ((1, 2, 5, 4), (1, 2, 3, 4), "agree in batch, heads and length"),
        ((2, 2, 5, 4), (2, 2, 5, 4), "agree in batch and head width"),
        ((1, 2, 5, 3), (1, 2, 5, 4), "agree in batch and head width"),
        ((1, 3, 5, 4), (1, 3, 5, 4), "must divide that of the query heads"),
        ((1, 4, 5, 4), (1, 4, 5, 4), "must divide that of the query heads"),
        ((2, 5, 4), (2, 5, 4), "give four axes each"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(attention, key, value, told) -> None:
    with pytest.raises(ValueError, match=told):
        attention(torch.randn(1, 2, 3, 4), torch.randn(key), torch.randn(value))


def test_bad_input_is_refused_by_name() -> None:
    layer = MultiHeadAttention(TransformerConfig(d_model=12, n_heads=3))
    x = torch.randn(2, 5, 12)
    for call, error, told in (
        (lambda: layer(x[0]), ValueError, r"x has shape \(5, 12\); give \(batch, length, d_model\)"),
        (lambda: layer(torch.randn(2, 5, 8)), ValueError, r"with d_model=12"),
        (lambda: layer(x, torch.randn(1, 5, 12)), ValueError, r"x has batch 2 but source has 1"),
        (
            lambda: layer(x, mask=torch.zeros(5, 5)),
            TypeError,
            r"mask has dtype torch.float32; give a boolean tensor",
        ),
        (lambda: layer(x, mask=[[True]]), TypeError, r"mask has type list; give a boolean tensor"),
        (lambda: layer(x, mask=torch.ones(5, 4, dtype=torch.bool)), ValueError, r"mask has shape \(5, 4\)"),
        (lambda: layer(x, mask=torch.ones(1, 1, 1, 5, 5, dtype=torch.bool)), ValueError, r"broadcasts to"),
    ):
        with pytest.raises(error, match=told):
            call()
