"""The calculators of whole models: parameters, shapes, key/value cache, capacity, the decoding bound.

Each starts from a preset or a pasted config.json, whose sizes can be changed one by one.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from tfbook.accounting import (
    PRESETS,
    Account,
    capacity,
    count_parameters,
    decode_bound,
    format_bytes,
    forward_shapes,
    kv_cache,
    parse_bytes,
    parse_huggingface_config,
    preset,
    weight_memory,
)
from tfbook.accounting.shapes import HEADS, NUMERIC
from tfbook.accounting.tables import html_table
from tfbook.accounting.units import DTYPE_BITS
from tfbook.config import TransformerConfig
from tfbook.interactive.form import Field
from tfbook.interactive.svg import bars, curves, stacked_bar
from tfbook.interactive.values import POWERS, count, unless_blank
from tfbook.special_layers import LatentAttention

Values = dict[str, Any]


@dataclass(frozen=True)
class Calculator:
    """A title, an introduction, fields, and a function from their values to HTML."""

    title: str
    intro: str
    fields: tuple[Field, ...]
    compute: Callable[[Values], str]


_SIZES = {
    "n_layers": "L, layers",
    "d_model": "d, model width",
    "n_heads": "H, query heads",
    "n_kv_heads": "n_kv, key/value heads",
    "d_head": "d_h, head width",
    "d_ff": "d_ff, feed-forward width",
    "vocab_size": "V, vocabulary",
}
_PRESETS = tuple((name, entry.title) for name, entry in PRESETS.items())
_DECODERS = tuple(
    (name, title) for name, title in _PRESETS if preset(name).layout != "encoder"
)  # an encoder keeps no cache
_DTYPES = tuple((name, name) for name in DTYPE_BITS if name[:2] in ("bf", "fp", "in"))
_FURTHEST = 2**24  # tokens, in the chart of a cache
_CHANGES = "Change a size (blank: the model's own)"


def _model_fields(presets: tuple[tuple[str, str], ...]) -> tuple[Field, ...]:
    pasted = "in place of the preset: the whole file, braces included"
    return (
        Field("preset", "Model", "select", "llama-3-8b", options=presets),
        Field("config", "or paste a config.json", "area", help=pasted, group="A model of your own"),
        *(Field(name, label, group=_CHANGES) for name, label in _SIZES.items()),
    )


def _model(values: Values) -> TransformerConfig:
    """The model that the reader chose, pasted or changed."""
    pasted = str(values["config"]).strip()
    if not pasted and values["preset"] not in PRESETS:
        raise ValueError("this preset is not known; reload the page")
    config = parse_huggingface_config(pasted) if pasted else preset(values["preset"])
    symbols = {name: label.split(",")[0] for name, label in _SIZES.items()}
    changes = unless_blank(values, **symbols)
    return config.replace(**changes) if changes else config


def _source_length(config: TransformerConfig, values: Values) -> int | None:
    """The encoder's input, which only an encoder-decoder has: as typed, else as long as the target."""
    if config.layout != "encoder-decoder":
        return None
    typed = unless_blank(values, source_length="S")
    return typed.get("source_length", None if config.audio else count(values, "length", "T"))


def _parameters(values: Values) -> str:
    account = count_parameters(_model(values))
    told = f"<p><b>{account.total:,} parameters</b>"
    if account.active != account.total:
        told += f", of which a token uses {account.active:,} ({account.active / account.total:.1%})"
    told += (
        f". One token's pass multiplies {account.matmul:,} of them in matrix products; "
        f"in 16 bits they take {format_bytes(2 * account.total)}.</p>"
    )
    return told + stacked_bar(_by_kind(account), "Where the parameters are") + account.to_html()


def _by_kind(account: Account) -> list[tuple[str, int]]:
    """The parameters by what they do; they sum to the whole."""
    kinds = {
        "experts": "experts and routers",
        "feed_forward": "feed-forward",
        "attention": "attention",
        "cross_attention": "cross-attention",
        "delta_net": "linear attention",
        "short_convolution": "short convolution",
    }
    found: Counter[str] = Counter()
    for path, size, _ in account.leaves():
        names = path.split(".")[1:]
        kind = next((kinds[name] for name in names if name in kinds), None)
        outer = {"embedding": "embedding", "head": "output head"}.get(names[0], "norms and the rest")
        found[kind or outer] += size
    return found.most_common()


def _shapes(values: Values) -> str:
    config = _model(values)
    batch, length = count(values, "batch", "B"), count(values, "length", "T")
    rows = forward_shapes(config, batch, length, _source_length(config, values))
    largest = max(rows, key=lambda row: row.elements)
    squared = sum(
        row.elements for row in rows if row.name.endswith(("scores", "weights")) and len(row.shape) == 4
    )
    whole = sum(row.elements for row in rows)
    return (
        f"<p>The largest tensor is <b>{escape(largest.cells[0])}</b>: {largest.elements:,} numbers. Rows that grow "
        f"with T² hold {squared / whole:.1%} of the numbers listed.</p>"
        + html_table("The forward pass, each block's rows once", HEADS, [row.cells for row in rows], NUMERIC)
    )


def _kv_cache(values: Values) -> str:
    config, dtype = _model(values), values["dtype"]
    batch, length = count(values, "batch", "B"), count(values, "length", "T")
    source = _source_length(config, values)
    group = unless_blank(values, group_size="the group").get("group_size")

    def size(changed: TransformerConfig, tokens: int, expanded: bool = False) -> int:
        return kv_cache(
            changed, batch, tokens, dtype, source_length=source, group_size=group, expanded=expanded
        ).bytes

    need = kv_cache(config, batch, length, dtype, source_length=source, group_size=group)
    weights = weight_memory(config, "fp16").bytes
    told = (
        f"<p><b>{format_bytes(need.bytes)}</b>, exactly {need.bytes:,} bytes: {need.bytes / weights:.2f} times the "
        f"weights' {format_bytes(weights)} in 16 bits. One more token costs {need.bytes_per_token:,} bytes a sequence, "
        f"{need.bytes_per_token_per_layer:,} in each layer.</p>"
    )
    if need.bytes_per_token_beyond_window != need.bytes_per_token:
        told += (
            f"<p>Beyond the window of {config.window:,} tokens it costs "
            f"{need.bytes_per_token_beyond_window:,} bytes a sequence.</p>"
        )
    expanded = size(config, length, expanded=True)
    if expanded != need.bytes:
        told += (
            f"<p>A library that stores keys and values for every query head needs {format_bytes(expanded)}, "
            f"{expanded / need.bytes:.4g} times as much.</p>"
        )
    lengths = [2**power for power in range(max(17, length.bit_length()) + 1)]
    while (
        size(config, lengths[-1]) < 2 * weights and lengths[-1] < _FURTHEST
    ):  # to where the lines have crossed
        lengths.append(2 * lengths[-1])
    lines = [
        (f"cache at B = {batch}", [(tokens, size(config, tokens)) for tokens in lengths]),
        ("weights in 16 bits", [(tokens, weights) for tokens in lengths]),
    ]
    binary = (_short_count, lambda size: format_bytes(size, "binary"))
    chart = curves(
        lines,
        "The cache against T",
        ("T, tokens; both axes logarithmic", "bytes"),
        binary,
        (length, need.bytes),
    )
    kinds = [(name, size(changed, length)) for name, changed in _attention_kinds(config)]
    compared = bars(kinds, f"The same model with other attention, B = {batch}, T = {length:,}", format_bytes)
    return told + chart + compared + need.account.to_html()


def _attention_kinds(config: TransformerConfig) -> list[tuple[str, TransformerConfig]]:
    """The model as it is, and with its heads shared otherwise."""
    heads, width = config.n_heads, config.d_value
    shared = [n for n in (heads, heads // 4, 1) if n and heads % n == 0]
    names = {heads: "MHA", 1: "MQA"}
    kinds = [
        (f"{names.get(n, 'GQA')}, n_kv = {n}", config.replace(latent=None, d_head=width, n_kv_heads=n))
        for n in dict.fromkeys(shared)
    ]
    if width % 2 == 0:
        latent = LatentAttention(kv_rank=4 * width, d_nope=width, d_rope=width // 2, d_value=width)
        changed = config.replace(latent=latent, d_head=None, n_kv_heads=heads, qk_norm="none")
        kinds.append((f"MLA, latent of 4 d_h + d_h/2 = {4 * width + width // 2}", changed))
    return [("as it is", config), *kinds]


def _capacity(values: Values) -> str:
    config, length = _model(values), count(values, "length", "T")
    found = capacity(
        config,
        parse_bytes(str(values["memory"])),
        length,
        values["dtype"],
        kv_dtype=values["kv_dtype"] or None,
        reserve=parse_bytes(str(values["reserve"]) or 0),
        source_length=_source_length(config, values),
    )
    if found.free < 0:
        missing = format_bytes(-found.free)
        told = f"<p><b>The weights and what is kept free do not fit</b>: {missing} are missing.</p>"
        shares = [("weights", found.weights)]
    else:
        told = f"<p><b>{found.sequences:,} sequences</b> of {length:,} tokens fit beside the weights.</p>"
        cached = found.sequences * found.cache_per_sequence
        kept = found.memory - found.weights - cached - found.free
        shares = [
            ("weights", found.weights),
            ("cache", cached),
            ("kept free", kept),
            ("left over", found.free),
        ]
    longest = found.cache_overtakes_at_length
    told += (
        f"<p>A sequence takes {format_bytes(found.cache_per_sequence)}. The cache is as large as the weights at batch "
        f"{found.cache_overtakes_at_batch:,} of this length; in one sequence "
        f"{'it never is' if longest is None else f'at {longest:,} tokens'}.</p>"
    )
    return told + stacked_bar(shares, "The memory", format_bytes)


def _decode_bound(values: Values) -> str:
    config, dtype = _model(values), values["dtype"]
    batch, length = count(values, "batch", "B"), count(values, "length", "T")
    bandwidth = parse_bytes(str(values["bandwidth"]).strip().removesuffix("/s"))
    peak = parse_bytes(str(values["peak"]).strip())  # a bare number: FLOPs per second, "989e12"
    source = _source_length(config, values)

    def bound(rows: int) -> Any:
        return decode_bound(config, bandwidth, peak, rows, length, dtype=dtype, source_length=source)

    here = bound(batch)
    waits = "memory bandwidth" if here.bound == "memory" else "arithmetic"
    told = (
        f"<p>At most <b>{float(here.tokens_per_second):,.1f} tokens per second</b>"
        f"{' over the batch' if batch > 1 else ''}: the step waits for <b>{waits}</b>. It reads "
        f"{format_bytes(here.weight_bytes)} of weights and {format_bytes(here.cache_bytes)} of cache "
        f"({float(1000 * here.memory_seconds):,.3g} ms) and computes {here.flops:,} FLOPs "
        f"({float(1000 * here.compute_seconds):,.3g} ms): {float(here.intensity):,.3g} FLOPs a byte, where this "
        f"hardware could do {float(here.ridge):,.3g}.</p>"
    )
    batches = [2**power for power in range(0, max(10, batch.bit_length()) + 1)]
    lines = [
        ("bound", [(rows, float(bound(rows).tokens_per_second)) for rows in batches]),
        (
            "if only arithmetic counted",
            [(rows, float(rows / bound(rows).compute_seconds)) for rows in batches],
        ),
    ]
    rates = (_short_count, _short_count)
    chart = curves(
        lines,
        f"Tokens per second against the batch, T = {length:,}",
        ("B, sequences; both axes logarithmic", "tokens per second"),
        rates,
        (batch, float(here.tokens_per_second)),
    )
    return told + chart


def _short_count(number: int) -> str:
    """A count as a tick: 512, 4k, 1M, in powers of 1024 as tokens are counted."""
    power = min(max(number.bit_length() - 1, 0) // 10, 4)
    return f"{number >> (10 * power)}{('', 'k', 'M', 'G', 'T')[power]}"


_BATCH = Field("batch", "B, batch", "slider", 1, stops=POWERS[:13])
_LENGTH = Field("length", "T, tokens", "slider", 8192, stops=(*POWERS, *(2**n for n in range(15, 21))))
_SOURCE = Field("source_length", "S, source length", help="of an encoder-decoder; blank: T, or as heard")
_DTYPE = Field("dtype", "Type of the numbers", "select", "bf16", options=_DTYPES)

MODEL_CALCULATORS = {
    "parameters": Calculator(
        title="Calculator: the parameters of a model",
        intro="Every weight once, tied ones where they first stand.",
        fields=_model_fields(_PRESETS),
        compute=_parameters,
    ),
    "shapes": Calculator(
        title="Calculator: the shapes of a forward pass",
        intro="Row by row. The column *blocks* says in how many blocks a row occurs.",
        fields=(
            *_model_fields(_PRESETS),
            _BATCH,
            Field("length", "T, tokens", "slider", 512, stops=_LENGTH.stops),
            _SOURCE,
        ),
        compute=_shapes,
    ),
    "kv-cache": Calculator(
        title="Calculator: the key/value cache",
        intro="What the architecture needs for $B$ sequences of $T$ tokens, and what a library may store.",
        fields=(
            *_model_fields(_DECODERS),
            _BATCH,
            _LENGTH,
            _DTYPE,
            Field("group_size", "Numbers per scale", help="of int8, int4 or fp8; blank: scales not counted"),
            _SOURCE,
        ),
        compute=_kv_cache,
    ),
    "capacity": Calculator(
        title="Calculator: how many sequences fit",
        intro="Memory, less the weights, less what you keep free, over the cache of one sequence.",
        fields=(
            *_model_fields(_DECODERS),
            Field("memory", "Memory", value="80 GB", help="such as 80 GB or 24 GiB"),
            _LENGTH,
            Field("dtype", "Type of the weights", "select", "bf16", options=_DTYPES),
            Field("kv_dtype", "Type of the cache", "select", "", options=(("", "as the weights"), *_DTYPES)),
            Field("reserve", "Kept free", value="0", help="such as 4 GB"),
            _SOURCE,
        ),
        compute=_capacity,
    ),
    "decode-bound": Calculator(
        title="Calculator: the bound of a decoding step",
        intro="No step is faster than reading the weights and the cache, nor than its matrix products.",
        fields=(
            *_model_fields(_DECODERS),
            Field("bandwidth", "Memory bandwidth", value="3.35 TB/s", help="bytes per second"),
            Field("peak", "Peak FLOPs per second", value="989e12", help="of matrix products, such as 989e12"),
            _BATCH,
            _LENGTH,
            _DTYPE,
            _SOURCE,
        ),
        compute=_decode_bound,
    ),
}
