"""What a Transformer costs, by arithmetic alone. Standard library only: no torch, no numpy."""

from tfbook.accounting.account import Account
from tfbook.accounting.compute import (
    DecodeBound,
    TrainingFlops,
    decode_bound,
    forward_flops,
    training_flops,
)
from tfbook.accounting.huggingface import parse_huggingface_config, read_huggingface_config
from tfbook.accounting.memory import (
    CacheSize,
    Capacity,
    capacity,
    kv_cache,
    training_memory,
    weight_memory,
)
from tfbook.accounting.parameters import attention_parameters, count_parameters, feed_forward_parameters
from tfbook.accounting.presets import PRESETS, preset
from tfbook.accounting.shapes import ShapeRow, attention_shapes, forward_shapes
from tfbook.accounting.units import format_bytes, parse_bytes

__all__ = [
    "PRESETS",
    "Account",
    "CacheSize",
    "Capacity",
    "DecodeBound",
    "ShapeRow",
    "TrainingFlops",
    "attention_parameters",
    "attention_shapes",
    "capacity",
    "count_parameters",
    "decode_bound",
    "feed_forward_parameters",
    "format_bytes",
    "forward_flops",
    "forward_shapes",
    "kv_cache",
    "parse_bytes",
    "parse_huggingface_config",
    "preset",
    "read_huggingface_config",
    "training_flops",
    "training_memory",
    "weight_memory",
]
