"""A description validates itself, and says which field, which value and what to do."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from tfbook import TransformerConfig
from tfbook.validation import divisors


def test_derived_fields() -> None:
    config = TransformerConfig(d_model=64, n_heads=8)
    assert (config.n_kv_heads, config.d_head, config.d_ff) == (8, 8, 256)
    assert config.final_norm and config.norm_bias
    assert not TransformerConfig(norm_position="post").final_norm
    assert not TransformerConfig(norm="rmsnorm").norm_bias


def test_replace_derives_anew_and_keeps_what_was_given() -> None:
    config = TransformerConfig(d_model=64, n_heads=8)
    assert config.replace(n_heads=4).d_head == 16
    assert config.replace(n_heads=4).n_kv_heads == 4
    assert config.replace(d_model=128).d_ff == 512
    assert TransformerConfig(d_model=64, n_heads=8, d_head=32).replace(n_heads=4).d_head == 32
    assert config.replace(n_heads=4, d_head=8).d_head == 8
    assert TransformerConfig(d_model=64, n_heads=7, d_head=9).replace(d_model=62).d_head == 9
    with pytest.raises(TypeError, match="n_head is not a field"):
        config.replace(n_head=4)


def test_values_are_compared_hashed_copied_and_pickled() -> None:
    config = TransformerConfig(d_model=64, n_heads=8)
    assert config == TransformerConfig(d_model=64, n_heads=8, d_head=8)
    assert hash(config) == hash(copy.deepcopy(config))
    assert pickle.loads(pickle.dumps(config)) == config
    again = TransformerConfig(**dataclasses.asdict(config))  # equal values behave equally
    assert again == config and again.replace(n_heads=4) == config.replace(n_heads=4)


def test_integers_of_any_type() -> None:
    config = TransformerConfig(d_model=np.int64(64), n_heads=np.int32(8), dropout=np.float32(0.0))
    assert type(config.d_model) is int
    assert config == TransformerConfig(d_model=64, n_heads=8)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"d_model": 64, "n_heads": 7},
            r"n_heads=7 does not divide d_model=64; use one of 1, 2, 4, 8, 16, 32, 64, or set d_head",
        ),
        (
            {"d_model": 64, "n_heads": 8, "n_kv_heads": 3},
            r"n_kv_heads=3 does not divide n_heads=8; use one of 1, 2, 4, 8",
        ),
        ({"d_model": 0}, r"d_model=0 is not positive"),
        ({"d_model": None}, r"d_model=None; give a positive integer"),
        ({"max_length": None}, r"max_length=None; give a positive integer"),
        ({"window": 0.0}, r"window=0\.0 is float"),
        ({"position_offset": False}, r"position_offset=False is a truth value"),
        ({"d_model": -64}, r"d_model=-64 is not positive"),
        ({"d_model": 10**30}, r"d_model is larger than any model's"),
        ({"d_model": 64.0}, r"d_model=64.0 is float, not an integer"),
        ({"d_model": "64"}, r"d_model='64' is str, not an integer"),
        ({"n_layers": True}, r"n_layers=True is a truth value"),
        ({"activation": "mish"}, r"activation='mish' is unknown; use one of 'relu', 'relu2', 'gelu'"),
        ({"layout": ["decoder"]}, r"layout=\['decoder'\] is unknown"),
        ({"qkv_bias": 1}, r"qkv_bias=1 is int; give True or False"),
        ({"norm": "rmsnorm", "norm_bias": True}, r"RMSNorm has no bias"),
        ({"positions": "rope", "d_model": 15, "n_heads": 5}, r"d_head=3 is odd"),
        ({"d_model": 15, "n_heads": 5}, r"d_model=15 is odd"),
        ({"dropout": 1.0}, r"dropout=1.0 is out of range"),
        ({"dropout": float("nan")}, r"dropout=nan is out of range"),
        ({"dropout": "0.1"}, r"dropout='0.1' is str; give a number"),
        ({"norm_eps": -1e-5}, r"norm_eps=-1e-05 is out of range"),
        ({"rope_base": float("inf")}, r"rope_base=inf is out of range"),
        ({"rope_base": 10**400}, r"rope_base=inf is out of range"),
        ({"layout": np.array(["decoder"])}, r"layout=array.* is unknown"),
        ({"layout": "x" * 10_000}, r"layout='xxx.*… is unknown"),
        ({"n_layers": -(10**6000)}, r"n_layers=an integer of many digits is not positive"),
        ({"n_heads": np.bool_(True)}, r"n_heads=.*True.* is a truth value"),
        ({"d_model": 2**31 - 2, "n_heads": 1}, r"d_ff is larger than any model's"),
    ],
)
def test_bad_input_names_field_value_and_remedy(fields: dict[str, object], told: str) -> None:
    with pytest.raises((ValueError, TypeError), match=told):
        TransformerConfig(**fields)


@pytest.mark.parametrize("number", [1, 2, 36, 97, 720, 2**31 - 1])
def test_divisors(number: int) -> None:
    found = divisors(number)
    assert found == sorted(found)
    assert found[0] == 1 and found[-1] == number
    if number < 1000:
        assert found == [n for n in range(1, number + 1) if number % n == 0]
