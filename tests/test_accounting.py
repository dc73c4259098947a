"""The accounts equal what torch really has, item by item, and published figures."""

import json
import warnings
from pathlib import Path

import pytest
import torch
from hypothesis import given
from torch import nn

from tests.strategies import attention_configs
from tfbook import TransformerConfig
from tfbook.accounting import Account, attention_parameters, attention_shapes, count_parameters
from tfbook.model import MultiHeadAttention

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


PUBLISHED = json.loads(Path(__file__).with_name("published_models.json").read_text("utf-8"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models(name: str) -> None:
    model = PUBLISHED[name]
    account = count_parameters(TransformerConfig(**model["config"]))
    assert account.total == model["parameters"]
    assert sum(count for _, count in account.items()) == account.total


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


def test_an_empty_account_prints() -> None:
    assert "nothing" in str(Account("nothing"))
