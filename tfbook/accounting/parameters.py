"""An itemised account of a model's weights.

Conventions: every learned number is counted once. A weight used in two places (tied
embeddings) is counted where it first stands, and the second place is listed with zero and a
note. Buffers (masks, rotary tables, sinusoidal positions) are not learned and not counted.
The account is structural: it walks the parts that the model builds, and a sum is only ever
made of the items below it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tfbook.config import TransformerConfig


@dataclass(frozen=True)
class Account:
    """A named part of a model: either one weight (`own` numbers) or the sum of its parts.

    `times` says how often the part occurs, with weights of its own each time; `formula`
    is how the number comes about, in the book's symbols; `note` is a remark for the reader.
    """

    name: str
    own: int = 0
    formula: str = ""
    parts: tuple["Account", ...] = field(default=())
    times: int = 1
    note: str = ""

    @property
    def total(self) -> int:
        """All parameters of this part, over all its occurrences."""
        return self.times * (self.own + sum(part.total for part in self.parts))

    def items(self) -> list[tuple[str, int]]:
        """The single weights as (path, parameters), over all occurrences; they sum to `total`."""
        return [(path, count) for path, count, _ in self.leaves()]

    def leaves(self, prefix: str = "", times: int = 1) -> Iterator[tuple[str, int, "Account"]]:
        """(path, parameters over all occurrences, account) of each single weight, in order."""
        times *= self.times
        if not self.parts:
            yield prefix + self.name, times * self.own, self
        for part in self.parts:
            yield from part.leaves(f"{prefix}{self.name}.", times)

    def part(self, name: str) -> "Account":
        """The direct part of that name. Raises KeyError, listing the names there are."""
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(
            f"{self.name} has no part {name!r}; use one of {', '.join(p.name for p in self.parts)}"
        )

    def __str__(self) -> str:
        rows = [
            ("  " * depth + part.name + (f" (x {part.times})" if part.times > 1 else ""), count, part)
            for depth, count, part in self.rows()
        ]
        label_width = max(len(label) for label, _, _ in rows)
        count_width = len(f"{self.total:,}")
        whole = max(self.total, 1)
        return "\n".join(
            f"{label:<{label_width}}  {count:>{count_width},}  {count / whole:8.3%}  {part.remark}".rstrip()
            for label, count, part in rows
        )

    def rows(self, depth: int = 0, times: int = 1) -> Iterator[tuple[int, int, "Account"]]:
        """(depth, parameters over all occurrences, account) of this part and all below it."""
        yield depth, times * self.total, self
        for part in self.parts:
            yield from part.rows(depth + 1, times * self.times)

    @property
    def remark(self) -> str:
        """The formula and the note in one phrase, for a table's last column."""
        return f"{self.formula} ({self.note})" if self.note else self.formula


def count_parameters(config: TransformerConfig) -> Account:
    """The account of a whole model, by the parts that `tfbook.model.build` makes.

    Tied weights are counted once. `.total` is the number of parameters, `.items()` the
    list of (path, count) and `str()` a table with a formula beside each number.
    """
    size = f"{config.layout} model"
    parts = [_embedding(config)]
    if config.layout == "encoder-decoder":
        parts += [_stack("encoder", config, cross=False), _stack("decoder", config, cross=True)]
    else:
        parts.append(_stack(config.layout, config, cross=False))
    if config.layout != "encoder":  # an encoder returns states: it has no output head
        parts.append(_head(config))
    return Account(size, parts=tuple(parts))


def attention_parameters(config: TransformerConfig, name: str = "attention") -> Account:
    """The four maps of one attention layer and their biases.

    W_Q is d x H d_h, W_K and W_V are d x n_kv d_h, W_O is H d_h x d. With H d_h = d and
    n_kv = H that is 4 d^2, and 4 d more with biases, whatever H is.
    """
    d, query, kv = config.d_model, config.d_query, config.d_kv
    weights = [
        Account("W_Q", d * query, "d H d_h"),
        Account("W_K", d * kv, "d n_kv d_h"),
        Account("W_V", d * kv, "d n_kv d_h"),
        Account("W_O", query * d, "H d_h d"),
    ]
    if config.qkv_bias:
        weights += [
            Account("b_Q", query, "H d_h"),
            Account("b_K", kv, "n_kv d_h"),
            Account("b_V", kv, "n_kv d_h"),
        ]
    if config.output_bias:
        weights.append(Account("b_O", d, "d"))
    return Account(name, parts=tuple(weights))


def _embedding(config: TransformerConfig) -> Account:
    parts = [Account("tokens", config.vocab_size * config.d_model, "V d")]
    if config.positions == "learned":
        stacks = 2 if config.layout == "encoder-decoder" else 1
        parts.append(Account("positions", config.max_length * config.d_model, "max_length d", times=stacks))
    if config.embedding_norm:
        stacks = 2 if config.layout == "encoder-decoder" else 1
        parts.append(replace(_norm("norm", config), times=stacks))
    return Account("embedding", parts=tuple(parts))


def _stack(name: str, config: TransformerConfig, cross: bool) -> Account:
    attention = [attention_parameters(config), _norm("attention_norm", config)]
    if cross:
        attention += [attention_parameters(config, "cross_attention"), _norm("cross_attention_norm", config)]
    block = (*attention, _feed_forward(config), _norm("feed_forward_norm", config))
    parts = [Account("block", parts=block, times=config.n_layers)]
    if config.final_norm:
        parts.append(_norm("final_norm", config))
    return Account(name, parts=tuple(parts))


def _feed_forward(config: TransformerConfig) -> Account:
    d, d_ff = config.d_model, config.d_ff
    weights = [Account("W_1", d * d_ff, "d d_ff")]
    if config.gated:
        weights.append(Account("W_3", d * d_ff, "d d_ff", note="gate"))
    weights.append(Account("W_2", d_ff * d, "d_ff d"))
    if config.ffn_bias:
        weights.append(Account("b_1", d_ff, "d_ff"))
        if config.gated:
            weights.append(Account("b_3", d_ff, "d_ff", note="gate"))
        weights.append(Account("b_2", d, "d"))
    return Account("feed_forward", parts=tuple(weights))


def _norm(name: str, config: TransformerConfig) -> Account:
    parts = [Account("gain", config.d_model, "d")]
    if config.norm_bias:
        parts.append(Account("bias", config.d_model, "d"))
    return Account(name, parts=tuple(parts))


def _head(config: TransformerConfig) -> Account:
    if config.tie_embeddings:
        parts = [Account("W", 0, "V d", note="tied: counted under embedding")]
    else:
        parts = [Account("W", config.vocab_size * config.d_model, "V d")]
    if config.head_bias:
        parts.append(Account("bias", config.vocab_size, "V"))
    return Account("head", parts=tuple(parts))
