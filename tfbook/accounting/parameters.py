"""An itemised account of a model's weights.

Conventions: every learned number is counted once. A weight used in two places (tied
embeddings) is counted where it first stands, and the second place is listed with zero and a
note. Buffers (masks, rotary tables, sinusoidal positions that are computed) are not learned and
not counted. The account is structural: it walks the parts that a model has, and a sum is only
ever made of the items below it.
"""

from collections import Counter

from tfbook.accounting.account import Account
from tfbook.config import TransformerConfig
from tfbook.special_layers import DeltaNet, Experts, LatentAttention, ShortConvolution
from tfbook.validation import as_count


def count_parameters(config: TransformerConfig) -> Account:
    """The account of a whole model, by the parts that `tfbook.model.build` makes.

    Tied weights are counted once. `.total` is the number of parameters, `.active` those that one
    token uses, `.matmul` those it multiplies in matrix products, `.items()` the list of
    (path, count), and `str()` a table with a formula beside each number.
    """
    parts = [_embedding(config)]
    if config.layout == "encoder-decoder":
        parts += [_stack("encoder", config), _stack("decoder", config, cross=True)]
    else:
        parts.append(_stack(config.layout, config))
    if config.head != "none":
        parts.append(_head(config))
    return Account(f"{config.layout} model", parts=tuple(parts))


def attention_parameters(config: TransformerConfig, name: str = "attention") -> Account:
    """The four maps of one attention layer and their biases.

    W_Q is d x H d_h, W_K and W_V are d x n_kv d_h, W_O is H d_h x d. With H d_h = d and
    n_kv = H that is 4 d^2, and 4 d more with biases, whatever H is. Latent attention makes
    keys and values through a bottleneck instead.
    """
    if config.latent is not None:
        return Account(name, parts=_latent(config, config.latent))
    d, query, kv = config.d_model, config.d_query, config.d_kv
    weights = [_matrix("W_Q", d, query, "d H d_h")]
    if config.attention_gate:
        weights.append(_matrix("W_G", d, query, "d H d_h", note="gate of the heads' outputs"))
    weights += [
        _matrix("W_K", d, kv, "d n_kv d_h"),
        _matrix("W_V", d, kv, "d n_kv d_h"),
        _matrix("W_O", query, d, "H d_h d"),
    ]
    if config.qkv_bias:
        weights.append(Account("b_Q", query, "H d_h"))
        weights += [Account("b_G", query, "H d_h")] if config.attention_gate else []
    if config.key_bias:
        weights.append(Account("b_K", kv, "n_kv d_h"))
    if config.qkv_bias:
        weights.append(Account("b_V", kv, "n_kv d_h"))
    if config.output_bias:
        weights.append(Account("b_O", d, "d"))
    if config.qk_norm != "none":
        sizes = {"head": (config.d_head, "d_h"), "width": (query, "H d_h")}[config.qk_norm]
        weights += _vector_norm("query_norm", *sizes, config.qk_norm_bias)
        sizes = {"head": (config.d_head, "d_h"), "width": (kv, "n_kv d_h")}[config.qk_norm]
        weights += _vector_norm("key_norm", *sizes, config.qk_norm_bias)
    if config.attention_sinks:
        weights.append(Account("sinks", config.n_heads, "H"))
    return Account(name, parts=tuple(weights))


def feed_forward_parameters(config: TransformerConfig, d_ff: int, name: str = "feed_forward") -> Account:
    """One dense feed-forward layer of hidden width `d_ff`: two matrices, or three with a gate."""
    return Account(name, parts=_feed_forward(config, as_count("d_ff", d_ff), "d_ff", config.ffn_bias))


def _matrix(name: str, rows: int, columns: int, formula: str, note: str = "") -> Account:
    return Account(name, rows * columns, formula, multiplied=rows * columns, note=note)


def _embedding(config: TransformerConfig) -> Account:
    narrow = config.d_embedding
    mapped = narrow != config.d_model
    # Positions and norm come before the map where there is a norm (as in ALBERT), else behind it (OPT).
    width, symbol = (narrow, "d_embedding") if mapped and config.embedding_norm else (config.d_model, "d")
    stacks = 2 if config.layout == "encoder-decoder" and config.audio is None else 1
    parts = []
    if config.audio is not None:
        mel, d = config.audio.mel_bins, config.d_model
        parts += [
            _matrix("convolution_1", 3 * mel, d, "3 mel_bins d"),
            _matrix("convolution_2", 3 * d, d, "3 d d"),
            Account("convolution_biases", 2 * d, "2 d"),
            Account("source_positions", config.audio.length * d, "source_length d", table=True),
        ]
    formula = "V d_embedding" if mapped else "V d"
    parts.append(Account("tokens", config.vocab_size * narrow, formula, table=True))
    if config.positions == "learned" or config.stored_positions:
        rows = config.max_length + config.position_offset
        formula = f"(max_length + {config.position_offset}) d" if config.position_offset else "max_length d"
        parts.append(Account("positions", rows * width, formula, times=stacks, table=True))
    if config.n_token_types:
        parts.append(
            Account("token_types", config.n_token_types * width, f"n_token_types {symbol}", table=True)
        )
    if config.embedding_norm:
        parts.append(Account("norm", parts=_norm_weights(config, width, symbol), times=stacks))
    if mapped:
        parts.append(_matrix("map", narrow, config.d_model, "d_embedding d"))
        parts += [Account("map_bias", config.d_model, "d")] if config.embedding_map_bias else []
    return Account("embedding", parts=tuple(parts))


def _stack(name: str, config: TransformerConfig, cross: bool = False) -> Account:
    main = config.layout != "encoder-decoder" or cross
    groups = list(config.layer_groups()) if main else [("full", False, config.n_encoder_layers)]
    d_ff = config.d_ff if main else config.encoder_d_ff
    like = Counter[tuple[str, bool]]()  # blocks of one kind are told together, wherever they stand
    for kind, experts, count in groups:
        like[kind, experts] += count
    parts = []
    for (kind, experts), count in like.items():
        label, block = _block_name(kind, experts, groups), _block(config, kind, experts, d_ff, cross)
        if config.shared_layers:
            parts.append(Account(label, parts=block, used=count, note=f"one block, used {count} times"))
        else:
            parts.append(Account(label, parts=block, times=count))
    if config.relative_buckets:
        tables = like.total() if config.relative_in_every_layer else 1
        size = config.relative_buckets * config.n_heads
        parts.append(Account("relative_positions", size, "relative_buckets H", times=tables))
    if config.final_norm:
        parts.append(_norm("final_norm", config))
    if config.d_embedding != config.d_model and name == "decoder":
        parts.append(_matrix("map", config.d_model, config.d_embedding, "d d_embedding"))
    return Account(name, parts=tuple(parts))


def _block_name(kind: str, experts: bool, groups: list[tuple[str, bool, int]]) -> str:
    """`block`, and what tells it from the other blocks of its stack."""
    words = ["block"]
    if len({kind for kind, _, _ in groups}) > 1:
        words.append(kind)
    if len({experts for _, experts, _ in groups}) > 1:
        words.append("experts" if experts else "dense")
    return "_".join(words)


def _block(
    config: TransformerConfig, kind: str, experts: bool, d_ff: int, cross: bool
) -> tuple[Account, ...]:
    parts = [_linear(config) if kind == "linear" else attention_parameters(config)]
    parts += _norms("attention" if not config.shared_norm else "shared", config)
    if cross:
        parts += [attention_parameters(config, "cross_attention"), *_norms("cross_attention", config)]
    if experts:
        assert config.experts is not None
        parts.append(_experts(config, config.experts))
    else:
        parts.append(feed_forward_parameters(config, d_ff))
    return (*parts, *(() if config.shared_norm else _norms("feed_forward", config)))


def _norms(sublayer: str, config: TransformerConfig) -> list[Account]:
    """The norms of one sublayer: one, or one on each side of it."""
    names = ["", "_after"] if config.norm_position == "sandwich" else [""]
    return [_norm(f"{sublayer}_norm{name}", config) for name in names]


def _norm(name: str, config: TransformerConfig) -> Account:
    return Account(name, parts=_norm_weights(config, config.d_model, "d"))


def _norm_weights(config: TransformerConfig, width: int, symbol: str) -> tuple[Account, ...]:
    if not config.norm_gain:
        return (Account("gain", 0, note="this norm has no weights"),)
    gain = Account("gain", width, symbol)
    return (gain, Account("bias", width, symbol)) if config.norm_bias else (gain,)


def _vector_norm(name: str, width: int, symbol: str, bias: bool) -> list[Account]:
    return [Account(name, width, symbol), *([Account(f"{name}_bias", width, symbol)] if bias else [])]


def _feed_forward(config: TransformerConfig, d_ff: int, symbol: str, bias: bool) -> tuple[Account, ...]:
    d = config.d_model
    weights = [_matrix("W_1", d, d_ff, f"d {symbol}")]
    if config.gated:
        weights.append(_matrix("W_3", d, d_ff, f"d {symbol}", note="gate"))
    weights.append(_matrix("W_2", d_ff, d, f"{symbol} d"))
    if bias:
        weights.append(Account("b_1", d_ff, symbol))
        if config.gated:
            weights.append(Account("b_3", d_ff, symbol, note="gate"))
        weights.append(Account("b_2", d, "d"))
    return tuple(weights)


def _experts(config: TransformerConfig, experts: Experts) -> Account:
    d = config.d_model
    parts = [_matrix("router", d, experts.count, "d n_experts")]
    if experts.router_bias:
        parts.append(Account("router_bias", experts.count, "n_experts"))
    each = _feed_forward(config, experts.d_expert, "d_expert", experts.bias)
    note = f"{experts.active} of {experts.count} used by a token"
    parts.append(Account("expert", parts=each, times=experts.count, used=experts.active, note=note))
    if experts.d_shared:
        parts.append(
            Account("shared_expert", parts=_feed_forward(config, experts.d_shared, "d_shared", False))
        )
    if experts.shared_gate:
        parts.append(_matrix("shared_expert_gate", d, 1, "d"))
    return Account("experts", parts=tuple(parts))


def _latent(config: TransformerConfig, latent: LatentAttention) -> tuple[Account, ...]:
    d, heads, query = config.d_model, config.n_heads, config.d_query
    parts = []
    if latent.q_rank is None:
        parts.append(_matrix("W_Q", d, query, "d H (d_nope + d_rope)"))
    else:
        parts += [
            _matrix("W_Q_down", d, latent.q_rank, "d q_rank"),
            Account("query_norm", latent.q_rank, "q_rank"),
            _matrix("W_Q_up", latent.q_rank, query, "q_rank H (d_nope + d_rope)"),
        ]
    parts += [
        _matrix("W_KV_down", d, latent.kv_rank + latent.d_rope, "d (kv_rank + d_rope)"),
        Account("latent_norm", latent.kv_rank, "kv_rank"),
        _matrix("W_K_up", latent.kv_rank, heads * latent.d_nope, "kv_rank H d_nope"),
        _matrix("W_V_up", latent.kv_rank, heads * latent.d_value, "kv_rank H d_value"),
        _matrix("W_O", heads * latent.d_value, d, "H d_value d"),
    ]
    if config.qkv_bias:
        parts.append(Account("b_KV_down", latent.kv_rank + latent.d_rope, "kv_rank + d_rope"))
        parts += [Account("b_Q_down", latent.q_rank, "q_rank")] if latent.q_rank else []
    if config.output_bias:
        parts.append(Account("b_O", d, "d"))
    return tuple(parts)


def _linear(config: TransformerConfig) -> Account:
    """The layer that stands in attention's place where a block is of the kind "linear"."""
    d = config.d_model
    match config.linear:
        case DeltaNet(n_key_heads=n_k, n_value_heads=n_v, d_key=d_k, d_value=d_v, kernel=kernel):
            keys, values = n_k * d_k, n_v * d_v
            parts = (
                _matrix("W_QK", d, 2 * keys, "2 d n_key_heads d_key"),
                _matrix("W_VG", d, 2 * values, "2 d n_value_heads d_value", note="values and output gate"),
                _matrix("W_decay", d, 2 * n_v, "2 d n_value_heads"),
                _matrix("convolution", 2 * keys + values, kernel, "(2 keys + values) kernel"),
                Account("decay_constants", 2 * n_v, "2 n_value_heads"),
                Account("norm", d_v, "d_value"),
                _matrix("W_O", values, d, "n_value_heads d_value d"),
            )
            return Account("delta_net", parts=parts)
        case ShortConvolution(kernel=kernel, bias=bias):
            weights = [
                _matrix("W_in", d, 3 * d, "3 d d"),
                _matrix("convolution", d, kernel, "d kernel"),
                _matrix("W_out", d, d, "d d"),
            ]
            return Account(
                "short_convolution", parts=(*weights, *([Account("biases", 5 * d, "5 d")] if bias else []))
            )
    raise AssertionError("a configuration with linear layers describes them")


def _head(config: TransformerConfig) -> Account:
    d, narrow, vocab = config.d_model, config.d_embedding, config.vocab_size
    pooler = [_matrix("pooler", d, d, "d d"), Account("pooler_bias", d, "d")]
    scores = config.n_labels
    labels = [_matrix("labels", d, scores, "d n_labels"), Account("labels_bias", scores, "n_labels")]
    if config.head not in ("tokens", "masked-tokens"):
        kinds = {"pooler": pooler, "text-labels": [*pooler, *labels], "token-labels": labels}
        return Account("head", parts=tuple(kinds[config.head]))
    parts = []
    if config.head == "masked-tokens":
        symbol = "d" if narrow == d else "d_embedding"
        parts += [_matrix("dense", d, narrow, f"d {symbol}"), Account("dense_bias", narrow, symbol)]
        parts.append(Account("norm", parts=_norm_weights(config, narrow, symbol)))
    formula = "V d" if narrow == d else "V d_embedding"
    if config.tie_embeddings:
        tied = Account("W", 0, formula, multiplied=vocab * narrow, note="tied: counted under embedding")
        parts.append(tied)
    else:
        parts.append(_matrix("W", narrow, vocab, formula))
    if config.head_bias:
        parts.append(Account("bias", vocab, "V"))
    return Account("head", parts=tuple(parts))
