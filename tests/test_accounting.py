"""The accounts equal what torch really has, item by item, and published figures."""

import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.strategies import attention_configs, models
from tfbook import TransformerConfig
from tfbook.accounting import (
    Account,
    attention_parameters,
    attention_shapes,
    count_parameters,
    forward_shapes,
    preset,
)
from tfbook.model import Decoder, Encoder, EncoderDecoder, FeedForward, KVCache, MultiHeadAttention, build
from tfbook.special_layers import AudioSource, Experts, LatentAttention, ShortConvolution

LAYOUTS_BUILT = ("encoder", "decoder", "encoder-decoder")
LAYERS = {"W_Q": "query", "W_K": "key", "W_V": "value", "W_O": "output"}


def size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@given(attention_configs())
def test_attention_equals_torch_item_by_item(config: TransformerConfig) -> None:
    account = attention_parameters(config)
    layer = dict(MultiHeadAttention(config).named_parameters())
    told = {
        name: (layer[f"{part}.weight"].numel(), f"{part}.bias" in layer and layer[f"{part}.bias"].numel())
        for name, part in LAYERS.items()
    }
    items = dict(account.items())
    for name, (weight, bias) in told.items():
        assert items[f"attention.{name}"] == weight
        assert items.get(f"attention.b_{name[-1]}", False) == bias
    assert account.total == sum(p.numel() for p in layer.values()) == sum(items.values())


@given(attention_configs())
def test_shapes_equal_the_tensors_of_a_pass(config: TransformerConfig) -> None:
    batch, length, keys = 2, 3, 4
    layer = MultiHeadAttention(config)
    x, source = torch.randn(batch, length, config.d_model), torch.randn(batch, keys, config.d_model)
    seen: dict[str, tuple[int, ...]] = {}
    layer.output.register_forward_pre_hook(lambda _, given: seen.update(concatenated=tuple(given[0].shape)))
    query, key, value = layer.project(x, source)
    output, weights = layer.with_weights(x, source)
    tensors = {
        "input": x,
        "queries": query,
        "keys": key,
        "values": value,
        "weights": weights,
        "output": output,
    }
    seen |= {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    rows = {row.name: row for row in attention_shapes(config, batch, length, keys)}
    assert {name: rows[name].shape for name in seen} == seen
    assert rows["scores"].shape == rows["weights"].shape
    assert rows["head outputs"].shape == tuple(query.shape)
    assert sum(row.parameters for row in rows.values()) == size(layer)
    assert all(row.elements == torch.Size(row.shape).numel() for row in rows.values())


@pytest.mark.parametrize("n_heads", [1, 2, 4, 8, 16, 32, 64])
def test_the_theorem(n_heads: int) -> None:
    config = TransformerConfig(d_model=64, n_heads=n_heads)
    assert (
        attention_parameters(config).total == 4 * 64**2 + 4 * 64 == size(nn.MultiheadAttention(64, n_heads))
    )


def test_an_encoder_equals_torchs() -> None:
    config = TransformerConfig(layout="encoder", d_model=32, n_heads=4, n_layers=3, d_ff=48, vocab_size=100)
    stack = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(32, 4, 48, norm_first=True),
        3,
        norm=nn.LayerNorm(32),
        enable_nested_tensor=False,
    )
    account = count_parameters(config)
    assert account.part("encoder").total == size(stack)
    assert account.total == size(stack) + 100 * 32


def test_an_encoder_decoder_equals_torchs() -> None:
    config = TransformerConfig(layout="encoder-decoder", d_model=32, n_heads=4, n_layers=2, d_ff=48)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that its nested tensors do not apply here
        both = nn.Transformer(32, 4, 2, 2, 48, norm_first=True)
    account = count_parameters(config)
    assert account.part("encoder").total == size(both.encoder)
    assert account.part("decoder").total == size(both.decoder)


def test_the_encoder_of_section_2_5_5() -> None:
    account = count_parameters(TransformerConfig(layout="encoder"))
    block = account.part("encoder").part("block")
    assert block.total == 12 * 7_087_872 == 85_054_464
    assert account.total == 109_632_000


def test_the_table_sums_and_names_its_parts() -> None:
    account = count_parameters(TransformerConfig(n_layers=2))
    for _, _, part in account.rows():
        if part.parts:
            assert part.total == part.times * sum(inner.total for inner in part.parts)
    text = str(account)
    assert "tied: counted under embedding" in text and "block (x 2)" in text
    with pytest.raises(KeyError, match="has no part 'norm'; use one of"):
        account.part("norm")


def test_tied_weights_are_counted_once() -> None:
    tied, untied = (count_parameters(TransformerConfig(tie_embeddings=t)).total for t in (True, False))
    assert untied - tied == 32_000 * 768


def test_an_account_prints_in_three_ways() -> None:
    account = count_parameters(TransformerConfig(n_layers=2, vocab_size=11))
    rows = list(account.rows())
    text, markdown, html = str(account).splitlines(), account.to_markdown().splitlines(), account.to_html()
    assert len(text) == len(rows) == len(markdown) - 2 == html.count("<tr>") - 1
    for line, marked, (_, count, part) in zip(text, markdown[2:], rows, strict=True):
        assert f"{count:,}" in line and f"{count:,}" in marked and f"{count:,}" in html
        assert part.formula in line and part.name.replace("_", r"\_") in marked
    assert account._repr_html_() == html
    assert "100.000%" in text[0]


def test_an_empty_account_prints() -> None:
    assert "nothing" in str(Account("nothing"))


@pytest.mark.parametrize("layout", ["decoder", "encoder", "encoder-decoder"])
@given(data=st.data())
def test_forward_shapes_equal_hooks(layout: str, data: st.DataObject) -> None:
    """Every module's output in a real pass has the shape that the table gives it."""
    config = data.draw(models((layout,)))
    batch, length, source = 2, 3, 4
    model = build(config).eval()
    seen: dict[str, list[tuple[int, ...]]] = {}

    def note(name: str, module: nn.Module) -> None:
        module.register_forward_hook(lambda *call: seen.setdefault(name, []).append(tuple(call[2].shape)))

    def sizes(name: str) -> set[tuple[int, ...]]:
        return set(seen.get(name, []))

    for path, module in model.named_modules():
        note(
            path.rsplit(".", 1)[-1] if "cross_attention." not in path else f"cross.{path.rsplit('.', 1)[-1]}",
            module,
        )
    ids = torch.zeros(batch, length, dtype=torch.long)
    side = [torch.zeros(batch, source, dtype=torch.long)] if layout == "encoder-decoder" else []
    with torch.inference_mode():
        model(*side, ids)
    rows = forward_shapes(config, batch, length, source if side else None)
    told: dict[str, set[tuple[int, ...]]] = {}
    for row in rows:
        told.setdefault(row.name, set()).add(row.shape)
    assert sum(row.parameters * row.times for row in rows) == size(model)

    def flat(shapes: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
        """Heads side by side again, as the maps give them."""
        return {(b, t, h * w) for b, h, t, w in shapes}

    assert flat(told["queries"]) == sizes("query")
    assert flat(told["keys"]) == sizes("key") and flat(told["values"]) == sizes("value")
    assert told["feed-forward hidden"] == sizes("up")
    assert told["feed-forward output"] == sizes("down")
    assert told["output"] == sizes("output")
    assert told["attention norm and residual"] == sizes("attention_norm")
    assert told.get("logits", set()) == sizes("head")
    embedded = {"source embedding", "target embedding"} if side else {"embedding"}
    assert set().union(*(told[name] for name in embedded)) == sizes("tokens")
    if side:
        assert flat(told["cross-attention queries"]) == sizes("cross.query")
        assert flat(told["cross-attention keys"]) == sizes("cross.key") == {(batch, source, config.d_kv)}
        assert told["cross-attention scores"] == {(batch, config.n_heads, length, source)}


def test_the_table_of_section_2_5_5() -> None:
    rows = {row.name: row for row in forward_shapes(TransformerConfig(), 8, 512)}
    assert rows["scores"].elements == rows["weights"].elements == 25_165_824
    assert rows["logits"].elements == 131_072_000
    assert rows["queries"].shape == (8, 12, 512, 64)
    assert rows["feed-forward hidden"].shape == (8, 512, 3072)


@pytest.mark.parametrize(
    "fields",
    [
        {"experts": Experts(count=4, active=2, d_expert=8)},
        {"latent": LatentAttention(kv_rank=8, d_nope=4, d_rope=2, d_value=4)},
        {"window": 8},
        {"window": 8, "layer_kinds": ("full", "sliding")},
        {"layer_kinds": ("full", "linear"), "linear": ShortConvolution(kernel=3)},
        {"layout": "encoder-decoder", "audio": AudioSource(mel_bins=8, length=10)},
        {"head": "none"},
        {"layout": "encoder", "head": "pooler"},
        {"layout": "encoder", "head": "text-labels", "n_labels": 2},
        {"key_bias": False},
        {"norm_gain": False},
        {"qk_norm": "head"},
        {"attention_gate": True},
        {"attention_sinks": True},
        {"parallel": True},
        {"parallel": True, "shared_norm": True},
        {"shared_layers": True},
        {"position_offset": 2},
        {"stored_positions": True},
        {"positions": "relative", "relative_buckets": 8},
        {"positions": "alibi"},
        {"norm_position": "sandwich"},
        {"norm_position": "after"},
        {"n_token_types": 2},
        {"d_embedding": 16},
        {"layout": "encoder-decoder", "n_encoder_layers": 3},
        {"layout": "encoder-decoder", "encoder_d_ff": 3},
        {"beyond": ("rope_scaling={}",)},
    ],
    ids=lambda fields: list(fields)[-1],
)
def test_what_is_only_described_is_counted_and_never_built(fields: dict[str, object]) -> None:
    config = TransformerConfig(vocab_size=10, d_model=32, n_heads=4, n_layers=2, **fields)
    assert count_parameters(config).total > 0
    assert (
        sum(row.times * row.parameters for row in forward_shapes(config, 1, 2))
        == count_parameters(config).total
    )
    for make in (build, lambda config: KVCache(config, 1, 1)):
        with pytest.raises(ValueError, match=r"not built|does not fit here"):
            make(config)


def test_each_model_takes_its_own_layout_and_parts_refuse_what_they_cannot_do() -> None:
    encoder, decoder, both = (
        TransformerConfig(d_model=16, n_heads=2, layout=layout) for layout in LAYOUTS_BUILT
    )
    for made, wrong in ((Encoder, decoder), (Decoder, encoder), (EncoderDecoder, decoder), (Encoder, both)):
        with pytest.raises(ValueError, match="does not fit here; use"):
            made(wrong)
    with pytest.raises(ValueError, match="layout='encoder' does not fit here"):
        KVCache(encoder, 1, 4)
    for part in (MultiHeadAttention, FeedForward):
        with pytest.raises(ValueError, match="qk_norm='head' is described for the accounts alone"):
            part(TransformerConfig(d_model=16, n_heads=2, qk_norm="head"))


def test_blocks_of_one_kind_are_told_together() -> None:
    gemma = count_parameters(preset("gemma-2-9b")).part("decoder")
    assert [(part.name, part.times) for part in gemma.parts[:2]] == [
        ("block_sliding", 21),
        ("block_full", 21),
    ]
