"""The forward pass, row by row: what shape each tensor has and which weights made it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tfbook.accounting.account import Account
from tfbook.accounting.memory import source_length_of
from tfbook.accounting.parameters import attention_parameters, count_parameters
from tfbook.config import TransformerConfig
from tfbook.validation import as_count


@dataclass(frozen=True)
class ShapeRow:
    """One tensor of the forward pass. `parameters` are the weights that made it.

    `times` says in how many blocks the row occurs, with weights of its own each time; `where`
    names the stack and the kind of block, or is empty outside blocks.
    """

    name: str
    shape: tuple[int, ...]
    symbols: str
    parameters: int = 0
    note: str = ""
    times: int = 1
    where: str = ""

    @property
    def elements(self) -> int:
        """How many numbers the tensor holds."""
        return math.prod(self.shape)

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as the cells of a printed table, under `HEADS`."""
        name = f"{self.where}: {self.name}" if self.where else self.name
        shape = " x ".join(f"{n:,}" for n in self.shape)
        return (
            name,
            self.symbols,
            shape,
            f"{self.elements:,}",
            f"{self.parameters:,}",
            f"x {self.times}",
            self.note,
        )


HEADS = ("tensor", "symbols", "shape", "numbers", "parameters", "blocks", "note")
NUMERIC = (3, 4, 5)


def forward_shapes(
    config: TransformerConfig, batch: int = 1, length: int = 1, source_length: int | None = None
) -> list[ShapeRow]:
    """The tensors of a whole forward pass over (B, T) ids, in order; a block's rows stand once.

    `source_length` is the encoder's input length in an encoder-decoder, T when not given. The
    parameters of all rows, each `times` over, sum to `count_parameters(config).total`.
    Raises TypeError or ValueError for a size that is no positive integer.
    """
    batch, length = as_count("batch", batch), as_count("length", length)
    account = count_parameters(config)
    source = source_length_of(config, source_length, length)
    if config.layout != "encoder-decoder":
        rows = [
            _embedded(
                "embedding", config, batch, length, "T", _embedding_weights(account, main=True, alone=True)
            )
        ]
        return [
            *rows,
            *_stack_rows(config, account.part(config.layout), batch, length),
            *_head_rows(config, account, batch, length),
        ]
    encoder = _stack_rows(config, account.part("encoder"), batch, source)
    decoder = _stack_rows(config, account.part("decoder"), batch, length, source)
    return [
        _embedded("source embedding", config, batch, source, "S", _embedding_weights(account, main=False)),
        *[
            replace(row, symbols=row.symbols.replace("T", "S"), note=row.note.replace("T", "S"))
            for row in encoder
        ],
        _embedded("target embedding", config, batch, length, "T", _embedding_weights(account, main=True)),
        *decoder,
        *_head_rows(config, account, batch, length),
    ]


def attention_shapes(
    config: TransformerConfig, batch: int, length: int, key_length: int | None = None
) -> list[ShapeRow]:
    """The tensors of one attention layer, from its input (B, T, d) to its output (B, T, d).

    `key_length` is S, the length of the source in cross-attention; T when not given.
    Raises TypeError or ValueError for a size that is no positive integer.
    """
    batch, length = as_count("batch", batch), as_count("length", length)
    keys = length if key_length is None else as_count("key_length", key_length)
    weight = {name.removeprefix("attention."): n for name, n in attention_parameters(config).items()}

    def made_by(*names: str) -> int:
        return sum(weight.get(name, 0) for name in names)

    heads, kv_heads, width = config.n_heads, config.n_kv_heads, config.d_head
    n_kv, s = "H" if kv_heads == heads else "n_kv", "T" if key_length is None else "S"
    rows = [ShapeRow("input", (batch, length, config.d_model), "(B, T, d)")]
    latent = config.latent
    if latent is not None:
        if latent.q_rank is not None:
            made = made_by("W_Q_down", "b_Q_down", "query_norm")
            rows.append(ShapeRow("query latent", (batch, length, latent.q_rank), "(B, T, q_rank)", made))
        made = made_by("W_KV_down", "b_KV_down", "latent_norm")
        kept = latent.kv_rank + latent.d_rope
        rows.append(
            ShapeRow(
                "latent and rotary key", (batch, keys, kept), f"(B, {s}, kv_rank + d_rope)", made, "cached"
            )
        )
    queries = (
        made_by("W_Q", "b_Q", "W_Q_up", "query_norm", "query_norm_bias")
        if latent is None
        else made_by("W_Q", "W_Q_up")
    )
    rows += [
        ShapeRow("queries", (batch, heads, length, width), "(B, H, T, d_h)", queries),
        ShapeRow(
            "keys",
            (batch, kv_heads, keys, width),
            f"(B, {n_kv}, {s}, d_h)",
            made_by("W_K", "b_K", "key_norm", "key_norm_bias", "W_K_up"),
        ),
        ShapeRow(
            "values",
            (batch, kv_heads, keys, config.d_value),
            f"(B, {n_kv}, {s}, {'d_h' if latent is None else 'd_value'})",
            made_by("W_V", "b_V", "W_V_up"),
        ),
        ShapeRow("scores", (batch, heads, length, keys), f"(B, H, T, {s})", note=f"no d: grows with T {s}"),
        ShapeRow(
            "weights",
            (batch, heads, length, keys),
            f"(B, H, T, {s})",
            made_by("sinks"),
            "softmax: rows sum to 1",
        ),
        ShapeRow("head outputs", (batch, heads, length, config.d_value), "(B, H, T, d_h)"),
    ]
    if config.attention_gate:
        rows.append(ShapeRow("gate", (batch, length, config.d_query), "(B, T, H d_h)", made_by("W_G", "b_G")))
    rows += [
        ShapeRow("concatenated", (batch, length, heads * config.d_value), "(B, T, H d_h)"),
        ShapeRow("output", (batch, length, config.d_model), "(B, T, d)", made_by("W_O", "b_O")),
    ]
    return rows


def _embedded(
    name: str, config: TransformerConfig, batch: int, length: int, symbol: str, weights: int
) -> ShapeRow:
    return ShapeRow(name, (batch, length, config.d_model), f"(B, {symbol}, d)", weights)


def _embedding_weights(account: Account, main: bool, alone: bool = False) -> int:
    """The weights behind an embedding; of two, the first to use a table is told to have made it."""
    parts = account.part("embedding").parts
    if alone:
        return sum(part.total for part in parts)
    heard = any(part.name == "source_positions" for part in parts)
    of_source = ("convolution_1", "convolution_2", "convolution_biases", "source_positions")
    counted = 0
    for part in parts:
        if part.times == 2:  # each stack has one of its own
            counted += part.total // 2
        elif main == (part.name not in of_source if heard else False):
            counted += part.total
    return counted


def _stack_rows(
    config: TransformerConfig, stack: Account, batch: int, length: int, source: int | None = None
) -> list[ShapeRow]:
    """The rows of a stack's kinds of block, then its final norm."""
    rows = []
    for block in stack.parts:
        if not block.name.startswith("block"):
            continue
        where = (
            f"{stack.name} {block.name}"
            if len([p for p in stack.parts if p.name.startswith("block")]) > 1
            else stack.name
        )
        rows += [
            replace(row, times=block.times, where=where)
            for row in _block_rows(config, block.parts, batch, length, source)
        ]
    states = (batch, length, config.d_model)
    for part in stack.parts:
        if part.name == "relative_positions":
            shape = (config.n_heads, length, length)
            rows.append(ShapeRow("scores by distance", shape, "(H, T, T)", part.total, "added to the scores"))
        if part.name == "map":
            mapped = (batch, length, config.d_embedding)
            rows.append(ShapeRow("decoder map", mapped, "(B, T, d_embedding)", part.total))
        if part.name == "final_norm":
            rows.append(ShapeRow(f"{stack.name} final norm", states, "(B, T, d)", part.total))
    return rows


def _block_rows(
    config: TransformerConfig, parts: Sequence[Account], batch: int, length: int, source: int | None
) -> list[ShapeRow]:
    weights: dict[str, int] = {part.name: part.total for part in parts}
    states = (batch, length, config.d_model)
    rows: list[ShapeRow] = []
    for part in parts:
        match part.name:
            case "attention":
                rows += attention_shapes(config, batch, length)[1:]
            case "cross_attention":
                named = [
                    replace(row, name=f"cross-attention {row.name}")
                    for row in attention_shapes(config, batch, length, source)
                ]
                rows += named[1:]
            case "feed_forward":
                rows += _feed_forward_rows(config, part, batch, length)
            case "experts":
                rows += _expert_rows(config, part, batch, length)
            case "delta_net" | "short_convolution":
                rows.append(
                    ShapeRow(
                        part.name.replace("_", " "),
                        states,
                        "(B, T, d)",
                        part.total,
                        "a state instead of T x T scores",
                    )
                )
            case _:  # a norm, or one of two around a sublayer
                if not part.name.endswith("_after"):
                    made = part.total + weights.get(f"{part.name}_after", 0)
                    rows.append(
                        ShapeRow(f"{part.name.replace('_', ' ')} and residual", states, "(B, T, d)", made)
                    )
    return rows


def _feed_forward_rows(config: TransformerConfig, layer: Account, batch: int, length: int) -> list[ShapeRow]:
    weight = {part.name: part.total for part in layer.parts}
    d_ff = weight["W_1"] // config.d_model
    hidden = ((batch, length, d_ff), "(B, T, d_ff)")
    rows = [ShapeRow("feed-forward hidden", *hidden, weight["W_1"] + weight.get("b_1", 0))]
    if config.gated:
        rows.append(ShapeRow("feed-forward gate", *hidden, weight["W_3"] + weight.get("b_3", 0)))
    made = weight["W_2"] + weight.get("b_2", 0)
    return [*rows, ShapeRow("feed-forward output", (batch, length, config.d_model), "(B, T, d)", made)]


def _expert_rows(config: TransformerConfig, layer: Account, batch: int, length: int) -> list[ShapeRow]:
    assert config.experts is not None
    experts, weight = config.experts, {part.name: part for part in layer.parts}
    each = {part.name: experts.count * part.total for part in weight["expert"].parts}
    down = each["W_2"] + each.get("b_2", 0)
    router = weight["router"].total + (weight["router_bias"].total if experts.router_bias else 0)
    rows = [
        ShapeRow("router scores", (batch, length, experts.count), "(B, T, n_experts)", router),
        ShapeRow(
            "experts' hidden",
            (batch, length, experts.active, experts.d_expert),
            "(B, T, active, d_expert)",
            sum(each.values()) - down,
            "each token visits its own experts",
        ),
    ]
    if experts.d_shared:
        shared = weight["shared_expert"].total + (
            weight["shared_expert_gate"].total if experts.shared_gate else 0
        )
        rows.append(
            ShapeRow("shared expert's hidden", (batch, length, experts.d_shared), "(B, T, d_shared)", shared)
        )
    return [*rows, ShapeRow("feed-forward output", (batch, length, config.d_model), "(B, T, d)", down)]


def _head_rows(config: TransformerConfig, account: Account, batch: int, length: int) -> list[ShapeRow]:
    if config.head == "none":
        return []
    made = account.part("head").total
    match config.head:
        case "pooler":
            return [ShapeRow("pooled", (batch, config.d_model), "(B, d)", made, "of the first position")]
        case "text-labels":
            return [ShapeRow("label scores", (batch, config.n_labels), "(B, n_labels)", made)]
        case "token-labels":
            return [ShapeRow("label scores", (batch, length, config.n_labels), "(B, T, n_labels)", made)]
    tied = "tied to the embedding" if config.tie_embeddings else ""
    return [ShapeRow("logits", (batch, length, config.vocab_size), "(B, T, V)", made, tied)]
