"""What a model's numbers weigh: weights, key/value cache, training state, and how much fits.

Every figure is a whole number of bytes, itemised in an `Account`. Conventions are stated with each
function. What the architecture needs and what a library stores can differ; both are told.

Sources: the cache formula, Pope et al. 2022 (arXiv 2211.05102); training state, Rajbhandari et al.
2020 (arXiv 1910.02054), section 3; activations, Korthikanti et al. 2022 (arXiv 2205.05198).
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

from tfbook.accounting.account import Account
from tfbook.accounting.parameters import count_parameters
from tfbook.accounting.units import bits, bytes_of
from tfbook.config import TransformerConfig
from tfbook.special_layers import DeltaNet, ShortConvolution
from tfbook.validation import LARGEST_COUNT, as_count, check_choice, check_flag


@dataclass(frozen=True)
class CacheSize:
    """The cache of a batch. `account` is itemised; all sizes are in bytes.

    `bytes_per_token` is what one more token of one sequence costs while no window is full, and
    `bytes_per_token_beyond_window` what it costs once all are; per layer, it is that of the first
    attention layer. `cross_bytes` (of the encoder's states) and `state_bytes` (of linear layers)
    do not grow with the sequence; both are part of `bytes`.
    """

    account: Account
    bytes_per_token: int
    bytes_per_token_per_layer: int
    bytes_per_token_beyond_window: int
    cross_bytes: int
    cross_bytes_per_source_token: int
    state_bytes: int

    @property
    def bytes(self) -> int:
        """The whole cache of the batch."""
        return self.account.total


def kv_cache(
    config: TransformerConfig,
    batch: int = 1,
    length: int = 1,
    dtype: str = "fp16",
    *,
    source_length: int | None = None,
    group_size: int | None = None,
    expanded: bool = False,
) -> CacheSize:
    """The key/value cache of `batch` sequences of `length` tokens, as the architecture needs it.

    Each layer keeps 2 n_kv d_h numbers per token, so B T L of that in all. A sliding layer keeps at
    most its window, latent attention its latent and the shared rotary key, a linear layer a state
    of fixed size (its matrices in float32, as they are accumulated), an encoder-decoder also the
    keys and values of `source_length` encoder states in every layer: as many as given, else as a heard
    source has, else T.

    `group_size` says how many neighbouring numbers of a quantised cache ("int8", "int4", "fp8")
    share a 16-bit scale; None counts no scales. `expanded` tells what a library stores that repeats
    keys and values for every query head (latent attention: that makes them) before it caches them.
    Raises ValueError or TypeError for an encoder, which keeps no cache, and for unusable sizes.
    """
    if config.layout == "encoder":
        raise ValueError("layout='encoder' keeps no key/value cache; it reads its whole input at once")
    batch, length = as_count("batch", batch), as_count("length", length)
    source = source_length_of(config, source_length, length)
    check_flag("expanded", expanded)
    group = None if group_size is None else as_count("group_size", group_size)
    if group is not None and bits(dtype) > 8:
        raise ValueError(f"group_size={group} with dtype={dtype!r}; scales belong to int8, int4 or fp8")

    def stored(numbers: int, tokens: int) -> int:
        scales = 0 if group is None else 2 * -(-numbers // group)
        return tokens * (bytes_of(numbers, dtype) + scales)

    widths = _cached_widths(config, expanded)
    per_layer = sum(stored(numbers, 1) for _, numbers, _ in widths)
    groups = list(config.layer_groups())
    names = {kind: f"{kind}_layers" for kind in ("full", "sliding", "linear")}
    parts = []
    for kind, run in _merged(groups).items():
        if kind == "linear":
            parts.append(Account(names[kind], parts=_states(config, batch, dtype), times=run))
            continue
        tokens = min(length, config.window) if kind == "sliding" else length
        seen = "min(T, window)" if kind == "sliding" else "T"
        items = tuple(
            Account(name, batch * stored(numbers, tokens), f"B {seen} {formula} bytes", unit="bytes")
            for name, numbers, formula in widths
        )
        parts.append(Account(names[kind], parts=items, times=run))
    cross_per_token = 0
    if config.layout == "encoder-decoder":
        cross_per_token = config.n_layers * per_layer
        items = tuple(Account(name, batch * stored(n, source), f"B S {f} bytes") for name, n, f in widths)
        parts.append(Account("cross_attention_layers", parts=items, times=config.n_layers))
    note = "scales not counted: give group_size" if bits(dtype) <= 8 and group is None else ""
    account = _in_bytes(Account("key/value cache", parts=tuple(parts), note=note))
    counts = _merged(groups)
    return CacheSize(
        account=account,
        bytes_per_token=per_layer * (counts.get("full", 0) + counts.get("sliding", 0)),
        bytes_per_token_per_layer=per_layer,
        bytes_per_token_beyond_window=per_layer * counts.get("full", 0),
        cross_bytes=batch * source * cross_per_token,
        cross_bytes_per_source_token=cross_per_token,
        state_bytes=sum(part.total for part in parts if part.name == names["linear"]),
    )


def weight_memory(config: TransformerConfig, dtype: str = "fp16") -> Account:
    """The bytes of all weights in one type, item by item; tied weights once. No scales are counted."""
    bits(dtype)  # an unknown type is refused before anything is walked

    def weigh(part: Account) -> Account:
        return replace(part, own=bytes_of(part.own, dtype), parts=tuple(map(weigh, part.parts)), unit="bytes")

    return weigh(count_parameters(config))


def training_memory(
    config: TransformerConfig,
    batch: int = 1,
    length: int = 1,
    dtype: str = "bf16",
    *,
    optimizer: str = "adam",
    checkpointing: bool = False,
    fused_attention: bool = True,
    source_length: int | None = None,
) -> Account:
    """The bytes of training on one device, by parts: parameters, gradients, optimizer, activations.

    Convention: parameters and gradients in `dtype`; with 16 bits also a master copy in float32.
    Adam keeps two float32 numbers per parameter, "sgd" (without momentum) none. With Adam that is 16 bytes
    per parameter, in float32 as in mixed precision. Activations are every input that a matrix
    product, norm, nonlinearity or attention needs for its backward pass, once, in `dtype`;
    attention that is not fused also keeps its T x S weights. The loss keeps the logits' float32
    log-probabilities. No dropout. With `checkpointing` a block keeps its input alone, and one block at a
    time is computed anew. Left out: fragmentation, temporary buffers, the statistics of norms and softmax
    (a few numbers a position) and the copies that kernels which are not fused make; experts and other special
    layers, for which it raises ValueError.
    """
    batch, length = as_count("batch", batch), as_count("length", length)
    check_flag("checkpointing", checkpointing)
    check_flag("fused_attention", fused_attention)
    check_choice("optimizer", optimizer, ("adam", "sgd"))
    if config.experts or config.latent or config.linear or config.audio:
        raise ValueError(
            "training_memory knows no experts, latent or linear attention and no audio; use a dense model"
        )
    number = count_parameters(config).total
    copies = [("parameters", bytes_of(number, dtype)), ("gradients", bytes_of(number, dtype))]
    if bits(dtype) < 32:
        copies.append(("master copy", 4 * number))
    if optimizer == "adam":
        copies += [("Adam's first moment", 4 * number), ("Adam's second moment", 4 * number)]
    parts = [Account(name, size) for name, size in copies]
    stacks: list[tuple[str, int, int, int, int | None]] = [
        (config.layout, config.n_layers, config.d_ff, length, None)
    ]
    if config.layout == "encoder-decoder":
        source = source_length_of(config, source_length, length)
        stacks = [
            ("encoder", config.n_encoder_layers, config.encoder_d_ff, source, None),
            ("decoder", config.n_layers, config.d_ff, length, source),
        ]
    kept = []
    for name, blocks, d_ff, tokens, source_tokens in stacks:
        block = _block_activations(config, d_ff, batch, tokens, source_tokens, fused_attention)
        weighed = tuple(Account(told, bytes_of(numbers, dtype)) for told, numbers in block)
        if checkpointing:
            inputs = Account(
                "inputs of blocks", bytes_of(batch * tokens * config.d_model, dtype), times=blocks
            )
            kept += [
                replace(inputs, name=f"{name}: {inputs.name}"),
                Account(f"{name}: one block anew", parts=weighed),
            ]
        else:
            kept.append(Account(f"{name}: block", parts=weighed, times=blocks))
    states = batch * length * config.d_model
    others = {
        "inputs of the embeddings' norms": sum(tokens for _, _, _, tokens, _ in stacks)
        * batch
        * config.d_model
        * config.embedding_norm,
        "inputs of the final norms": sum(tokens for _, _, _, tokens, _ in stacks)
        * batch
        * config.d_model
        * config.final_norm,
        "encoder's states": batch * stacks[0][3] * config.d_model * (len(stacks) == 2),
        "input of the head": states * (config.head != "none"),
    }
    kept += [Account(name, bytes_of(numbers, dtype)) for name, numbers in others.items() if numbers]
    if config.head in ("tokens", "masked-tokens"):
        kept.append(Account("log-probabilities", 4 * batch * length * config.vocab_size))
    parts.append(Account("activations", parts=tuple(kept)))
    return _in_bytes(Account("training state", parts=tuple(parts)))


@dataclass(frozen=True)
class Capacity:
    """What fits beside the weights. Sizes in bytes; `sequences` of the length asked for.

    `cache_overtakes_at_batch` is the smallest batch of that length whose cache is at least as large as the
    weights, and `cache_overtakes_at_length` the smallest length of one sequence; None where none is.
    """

    memory: int
    weights: int
    cache_per_sequence: int
    sequences: int
    free: int
    cache_overtakes_at_batch: int | None
    cache_overtakes_at_length: int | None


def capacity(
    config: TransformerConfig,
    memory: int,
    length: int,
    dtype: str = "fp16",
    *,
    kv_dtype: str | None = None,
    reserve: int = 0,
    source_length: int | None = None,
) -> Capacity:
    """How many sequences of `length` tokens fit in `memory` bytes beside the weights.

    `reserve` bytes are kept free for what else a server needs. Activations are not counted: at
    decoding they are small beside the rest. `free` is what is left, negative where not even the weights fit.
    """
    memory, length = as_count_of_bytes("memory", memory), as_count("length", length)
    weights, kept = weight_memory(config, dtype).total, as_count_of_bytes("reserve", reserve)

    def cache(tokens: int) -> int:
        return kv_cache(
            config, 1, tokens, dtype if kv_dtype is None else kv_dtype, source_length=source_length
        ).bytes

    each = cache(length)
    room = memory - weights - kept
    sequences = max(room // each, 0)
    return Capacity(
        memory=memory,
        weights=weights,
        cache_per_sequence=each,
        sequences=sequences,
        free=room - sequences * each,
        cache_overtakes_at_batch=-(-weights // each),
        cache_overtakes_at_length=_smallest_length(cache, weights),
    )


def as_count_of_bytes(name: str, value: int) -> int:
    """A size in whole bytes, of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(
            f"{name}={value!r} is {type(value).__name__}; give whole bytes, by parse_bytes perhaps"
        )
    if value < 0:
        raise ValueError(f"{name}={value} is negative; give a size of at least 0")
    return value


def _smallest_length(cache: Callable[[int], int], weights: int) -> int | None:
    """The smallest length at which a cache that only ever grows reaches the weights."""
    high = 1
    while cache(high) < weights:
        high *= 2
        if high > LARGEST_COUNT:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if cache(middle) >= weights else (middle, high)
    return high


def source_length_of(config: TransformerConfig, given: int | None, default: int) -> int:
    """How long an encoder-decoder's input is: as given, else as a heard source is, else the default."""
    if config.layout != "encoder-decoder":
        if given is not None:
            raise ValueError(
                f"source_length={given} with layout={config.layout!r}; only an encoder-decoder has a source"
            )
        return 0
    usual = default if config.audio is None else config.audio.length
    return usual if given is None else as_count("source_length", given)


def _merged(groups: list[tuple[str, bool, int]]) -> dict[str, int]:
    """How many layers there are of each kind."""
    return {
        kind: sum(count for _, _, count in run)
        for kind, run in itertools.groupby(sorted(groups), key=lambda group: group[0])
    }


def _cached_widths(config: TransformerConfig, expanded: bool) -> list[tuple[str, int, str]]:
    """(name, numbers, formula) of what a layer keeps of one token."""
    if expanded:
        return [
            ("keys", config.n_heads * config.d_head, "H d_h"),
            ("values", config.n_heads * config.d_value, "H d_value" if config.latent else "H d_h"),
        ]
    if config.latent is not None:
        return [("latent", config.latent.kv_rank, "kv_rank"), ("rotary key", config.latent.d_rope, "d_rope")]
    return [("keys", config.d_kv, "n_kv d_h"), ("values", config.d_kv, "n_kv d_h")]


def _states(config: TransformerConfig, batch: int, dtype: str) -> tuple[Account, ...]:
    """What a linear layer keeps of a whole sequence."""
    match config.linear:
        case DeltaNet(n_key_heads=n_k, n_value_heads=n_v, d_key=d_k, d_value=d_v, kernel=kernel):
            inputs = batch * bytes_of((2 * n_k * d_k + n_v * d_v) * kernel, dtype)
            return (
                Account("convolution inputs", inputs, "B (2 keys + values) kernel bytes"),
                Account("state matrices", batch * 4 * n_v * d_k * d_v, "4 B n_value_heads d_key d_value"),
            )
        case ShortConvolution(kernel=kernel):
            return (
                Account(
                    "convolution inputs", batch * bytes_of(config.d_model * kernel, dtype), "B d kernel bytes"
                ),
            )
    raise AssertionError("a configuration with linear layers describes them")


def _block_activations(
    config: TransformerConfig, d_ff: int, batch: int, tokens: int, source: int | None, fused: bool
) -> list[tuple[str, int]]:
    """(name, numbers) of what the backward pass of one block needs."""
    states, hidden = batch * tokens * config.d_model, batch * tokens * d_ff

    def attention(prefix: str, keys: int, inputs: int) -> list[tuple[str, int]]:
        rows = [
            (f"{prefix} inputs", inputs),
            (f"{prefix} queries", batch * tokens * config.d_query),
            (f"{prefix} keys", batch * keys * config.d_kv),
            (f"{prefix} values", batch * keys * config.d_kv),
            (f"{prefix} head outputs", batch * tokens * config.d_query),
        ]
        return rows if fused else [*rows, (f"{prefix} weights", batch * config.n_heads * tokens * keys)]

    # Both sublayers of a parallel block read the same x: through norms of their own, or through one.
    norms = {"sandwich": 4, "pre": 2, "post": 2, "after": 2}[config.norm_position] - config.parallel
    rows = attention("attention", tokens, states)
    if config.qk_norm != "none":
        rows.append(("before the norm of queries and keys", batch * tokens * (config.d_query + config.d_kv)))
    if source is not None:
        rows += attention("cross-attention", source, states)
        norms += norms // 2
    rows += [
        ("norm inputs", norms * states),
        *([] if config.shared_norm else [("feed-forward input", states)]),
        # ReLU's backward pass needs its output alone, which is the hidden layer kept below.
        *([] if config.activation in ("relu", "reglu") else [("before the nonlinearity", hidden)]),
        *([("gate", hidden), ("nonlinearity", hidden)] if config.gated else []),
        ("feed-forward hidden", hidden),
    ]
    return rows


def _in_bytes(account: Account) -> Account:
    """The same account, said to be of bytes."""
    return replace(account, unit="bytes", parts=tuple(map(_in_bytes, account.parts)))
