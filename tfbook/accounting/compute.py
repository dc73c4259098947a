"""What a forward pass computes, and what bounds a step of decoding.

Conventions. A multiply-add is 2 FLOPs. Only matrix products count: look-ups, norms, softmax,
nonlinearities and residuals are left out, as in the literature and in
`torch.utils.flop_counter`. Causal attention counts all T x S pairs, which is what a plain matrix
product computes; `skip_masked` counts only those the mask allows. A mixture of experts counts the
experts that a token visits. Latent attention makes keys and values in a full pass, and with a
past works on the cached latent ("absorbed"), whichever the models' own code does.

Sources: the accounts, Kaplan et al. 2020 (arXiv 2001.08361), section 2.1; the roofline, Williams
et al. 2009 (doi 10.1145/1498765.1498785); its use for decoding, Pope et al. 2022 (arXiv 2211.05102).
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from tfbook.accounting.account import Account
from tfbook.accounting.memory import kv_cache, source_length_of
from tfbook.accounting.parameters import count_parameters
from tfbook.accounting.units import bits
from tfbook.config import LAYER_KINDS, TransformerConfig
from tfbook.special_layers import DeltaNet
from tfbook.validation import as_count, check_flag, short


def forward_flops(
    config: TransformerConfig,
    batch: int = 1,
    length: int = 1,
    past: int = 0,
    *,
    source_length: int | None = None,
    encoded: bool | None = None,
    last_only: bool = False,
    skip_masked: bool = False,
) -> Account:
    """The matmul FLOPs of one forward pass over (B, T) new tokens, by parts; `total` is the sum.

    `past` tokens are in the cache already: T = 1 with past = t - 1 is the step that makes token t.
    `encoded` says that an encoder-decoder's source is in the cache; None is: where there is a past.
    `last_only` makes logits for the last position alone, as prefill may.
    Raises TypeError or ValueError for unusable sizes.
    """
    batch, length = as_count("batch", batch), as_count("length", length)
    past = 0 if type(past) is int and past == 0 else as_count("past", past)
    check_flag("last_only", last_only)
    check_flag("skip_masked", skip_masked)
    if past and config.layout == "encoder":
        raise ValueError(f"past={past} with layout='encoder'; an encoder has no past")
    encoded = past > 0 if encoded is None else encoded
    check_flag("encoded", encoded)
    account, source = count_parameters(config), source_length_of(config, source_length, length)
    tokens = batch * length
    parts = []
    embedding = account.part("embedding")
    if embedding.matmul:
        told = {part.name: part.matmul for part in embedding.parts if part.matmul}
        # Two convolutions hear a source: the first at twice the positions of what they make.
        times = {"map": tokens, "convolution_1": 2 * batch * source, "convolution_2": batch * source}
        heard = [name for name in told if not (encoded and name.startswith("convolution"))]
        parts.append(_sum("embedding", [_product(name, told[name] * times[name]) for name in heard]))
    if config.layout == "encoder-decoder":
        if not encoded:
            parts.append(_stack(config, account.part("encoder"), batch, source, 0, 0, True, skip_masked))
        parts.append(
            _stack(config, account.part("decoder"), batch, length, past, source, encoded, skip_masked)
        )
    else:
        parts.append(_stack(config, account.part(config.layout), batch, length, past, 0, True, skip_masked))
    if config.head != "none":
        one_row = last_only or config.head in ("pooler", "text-labels")
        rows, symbols = (batch, "B") if one_row else (tokens, "B T")
        parts.append(_product("head", account.part("head").matmul * rows, f"2 {symbols} weights"))
    return Account(f"forward pass, {length} new of {past + length}", parts=tuple(parts), unit="FLOPs")


@dataclass(frozen=True)
class TrainingFlops:
    """A training step's FLOPs, exactly and by the rule 6 N D, and what lies between the two.

    `six_n_d` is the rule with all parameters. `not_multiplied` is what it counts too much: tables
    that are only looked up (a tied one is multiplied, in the head), vectors, and experts that are not
    visited. `attention` is what it leaves out: the products of queries with keys and of weights
    with values. exact = six_n_d - not_multiplied + attention, in whole numbers.
    """

    exact: int
    six_n_d: int
    not_multiplied: int
    attention: int


def training_flops(
    config: TransformerConfig, batch: int = 1, length: int = 1, *, checkpointing: bool = False
) -> TrainingFlops:
    """One step over B x T tokens: a forward pass and a backward pass of twice its FLOPs.

    With `checkpointing` the forward pass runs once more, and the rule is 8 N D. Raises ValueError
    for an encoder-decoder, where "D tokens" has two meanings.
    """
    if config.layout == "encoder-decoder":
        raise ValueError("6 N D has no one D in an encoder-decoder; use forward_flops of both sides")
    forward, account = forward_flops(config, batch, length), count_parameters(config)
    passes = 4 if checkpointing else 3
    tokens = batch * length
    multiplied = 2 * account.matmul * tokens
    return TrainingFlops(
        exact=passes * forward.total,
        six_n_d=passes * 2 * account.total * tokens,
        not_multiplied=passes * 2 * (account.total - account.matmul) * tokens,
        attention=passes * (forward.total - multiplied),
    )


@dataclass(frozen=True)
class DecodeBound:
    """The least time of one decoding step, by the roofline. Times in seconds, sizes in bytes.

    `intensity` is FLOPs per byte; the hardware's own balance is `ridge` = peak / bandwidth. Below it
    the step waits for memory (`bound` is "memory"), above it for arithmetic ("compute").
    """

    weight_bytes: int
    cache_bytes: int
    flops: int
    memory_seconds: Fraction
    compute_seconds: Fraction
    intensity: Fraction
    ridge: Fraction
    batch: int

    @property
    def seconds(self) -> Fraction:
        """The longer of the two times: no step is faster."""
        return max(self.memory_seconds, self.compute_seconds)

    @property
    def bound(self) -> str:
        """What the step waits for: "memory" or "compute"."""
        return "memory" if self.memory_seconds >= self.compute_seconds else "compute"

    @property
    def tokens_per_second(self) -> Fraction:
        """At most so many tokens a second, over the whole batch."""
        return self.batch / self.seconds


def decode_bound(
    config: TransformerConfig,
    bandwidth: int,
    peak: int,
    batch: int = 1,
    length: int = 1,
    bytes: int = 2,
    *,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    source_length: int | None = None,
) -> DecodeBound:
    """A step that makes one token for each of `batch` sequences, whose caches then hold `length` tokens.

    `bandwidth` is in bytes per second and `peak` in FLOPs per second. The step reads every weight
    once for the whole batch, and each sequence's cache. Tables that are looked up cost a row, which
    is left out; of experts the batch can visit at most `batch` times as many as a token, and that
    many are counted. `bytes` is the size of a number; `dtype` and `kv_dtype` say it by name.
    """
    batch, length = as_count("batch", batch), as_count("length", length)
    for name, value in (("bandwidth", bandwidth), ("peak", peak)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < float("inf"):
            told = f"{name}={short(value)} is no number from 1 on"
            raise ValueError(f"{told}; give it per second, in bytes or FLOPs")
    widths = {1: "int8", 2: "fp16", 4: "fp32", 8: "fp64"}
    if dtype is None and (isinstance(bytes, bool) or bytes not in widths):
        raise ValueError(f"bytes={short(bytes)} is no size of a number; use 1, 2, 4 or 8, or name a dtype")
    dtype = widths[bytes] if dtype is None else dtype
    account = count_parameters(config)
    stacks = [part for part in account.parts if part.name not in ("embedding", "encoder")]
    if config.layout == "encoder":
        raise ValueError("layout='encoder' does not decode; give a decoder or an encoder-decoder")
    numbers = sum(_read(part, batch) for part in stacks)
    # Of the embedding a step multiplies the map and reads the decoder's own norm.
    numbers += sum(_read(replace(part, times=1), batch) for part in account.part("embedding").parts)
    weight_bytes = -(-numbers * bits(dtype) // 8)
    cache = kv_cache(
        config, batch, length, dtype if kv_dtype is None else kv_dtype, source_length=source_length
    ).bytes
    flops = forward_flops(config, batch, 1, length - 1, source_length=source_length, encoded=True).total
    moved, band, top = weight_bytes + cache, Fraction(bandwidth), Fraction(peak)
    return DecodeBound(
        weight_bytes=weight_bytes,
        cache_bytes=cache,
        flops=flops,
        memory_seconds=moved / band,
        compute_seconds=flops / top,
        intensity=Fraction(flops, moved),
        ridge=top / band,
        batch=batch,
    )


def _read(part: Account, batch: int) -> int:
    """The numbers a decoding step reads of a part: no tables, tied weights where they are used."""
    if part.table or part.name in ("convolution_1", "convolution_2", "convolution_biases"):
        return 0
    own = max(part.own, part.multiplied)
    times = part.times if part.used is None else max(min(part.times, part.used * batch), 1)
    parts = part.parts
    if part.name == "cross_attention":  # keys and values of the source are in the cache
        parts = tuple(inner for inner in parts if inner.name not in ("W_K", "W_V", "b_K", "b_V"))
    return times * (own + sum(_read(inner, batch) for inner in parts))


def _product(name: str, multiplied: int, formula: str = "") -> Account:
    """One matrix product: 2 FLOPs for each number it multiplies."""
    return Account(name, 2 * multiplied, formula, unit="FLOPs")


def _sum(name: str, parts: list[Account], times: int = 1) -> Account:
    return Account(name, parts=tuple(parts), times=times, unit="FLOPs")


def _stack(
    config: TransformerConfig,
    stack: Account,
    batch: int,
    length: int,
    past: int,
    source: int,
    encoded: bool,
    skip_masked: bool,
) -> Account:
    """A stack's blocks, each from its own weights and the pairs of positions that it compares."""
    causal, usual = stack.name == "decoder", next(config.layer_groups())[0]
    blocks = []
    for block in stack.parts:
        if not block.name.startswith("block"):
            if block.matmul:
                blocks.append(_product(block.name, block.matmul * batch * length, "2 B T weights"))
            continue
        kind = next((kind for kind in LAYER_KINDS if kind in block.name.split("_")), usual)
        window = config.window if kind == "sliding" else 0
        times = block.times if block.used is None else block.used
        pairs = batch * _pairs(length, past, window, causal, skip_masked)
        parts = _block(config, block, batch * length, past, 0 if encoded else batch * source, source, pairs)
        blocks.append(_sum(block.name, parts, times))
    return _sum(stack.name, blocks)


def _pairs(length: int, past: int, window: int, causal: bool, skip_masked: bool) -> int:
    """How many (query, key) pairs one head of one sequence compares."""
    if not causal:
        return length * length  # both ways; what a local mask hides is computed all the same
    if not skip_masked:
        return length * (length + (min(past, window - 1) if window else past))
    seen = past * length + length * (length + 1) // 2  # query t sees the past and t + 1 new keys
    if window:
        over = past + length - window  # how far the last query's keys reach beyond its window
        beyond = min(max(over, 0), length)  # queries whose window is full
        seen -= beyond * (max(over, 0) + max(over - beyond + 1, 0)) // 2 if beyond else 0
    return seen


def _block(
    config: TransformerConfig,
    block: Account,
    tokens: int,
    past: int,
    read: int,
    source: int,
    pairs: int,
) -> list[Account]:
    """The products of a block over so many `tokens`; of a source, `read` states are projected anew."""
    heads, parts = config.n_heads, []
    for layer in block.parts:
        if not layer.matmul:
            continue
        if layer.name == "cross_attention":
            of_source = sum(part.matmul for part in layer.parts if part.name in ("W_K", "W_V"))
            made = (layer.matmul - of_source) * tokens + of_source * read
            parts.append(_product("cross-attention projections", made))
            parts += _attended(heads, tokens * source, config.d_head, config.d_value, "cross-attention ")
        elif layer.name == "attention":
            formula = "2 B T (W_Q + W_K + W_V + W_O)" if config.latent is None else "2 B T weights"
            parts.append(_product("attention projections", layer.matmul * tokens, formula))
            latent = config.latent
            widths = (config.d_head, config.d_value)
            if latent is not None and past:  # absorbed: scores and sums over the latent itself
                widths = (latent.kv_rank + latent.d_rope, latent.kv_rank)
            parts += _attended(heads, pairs, *widths)
        else:
            parts.append(_product(layer.name.replace("_", " "), layer.matmul * tokens, "2 B T weights"))
            if layer.name == "delta_net" and isinstance(config.linear, DeltaNet):
                state = config.linear.n_value_heads * config.linear.d_key * config.linear.d_value
                parts.append(_product("state", 3 * state * tokens, "2 B T 3 n_value_heads d_key d_value"))
    return parts


def _attended(heads: int, pairs: int, key: int, value: int, prefix: str = "") -> list[Account]:
    return [
        _product(f"{prefix}scores", heads * pairs * key, "2 B H T S d_h"),
        _product(f"{prefix}weighted sum", heads * pairs * value, "2 B H T S d_h"),
    ]
