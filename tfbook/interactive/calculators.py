"""The calculators: forms whose answer comes from `tfbook.accounting`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from tfbook.accounting import attention_parameters, attention_shapes
from tfbook.config import TransformerConfig
from tfbook.exercises.expression import AnswerError
from tfbook.exercises.kinds import Integer
from tfbook.interactive.form import Field, Form, Response
from tfbook.interactive.svg import stacked_bar

_POWERS = tuple(2**n for n in range(15))
_HEADS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)


@dataclass(frozen=True)
class Calculator:
    """A title, an introduction, fields, and a function from their values to HTML."""

    title: str
    intro: str
    fields: tuple[Field, ...]
    compute: Callable[[dict[str, Any]], str]


def calculator(id: str) -> Form:
    """A calculator by name, with its first result; as the last line of a cell it shows itself.

    Raises KeyError for an unknown name, listing those there are.
    """
    if id not in CALCULATORS:
        raise KeyError(f"calculator {id!r} does not exist; use one of {', '.join(CALCULATORS)}")
    found = CALCULATORS[id]
    first = found.compute({field.name: field.value for field in found.fields})
    return Form(
        name="calculator", id=id, title=found.title, intro=found.intro, fields=found.fields, first=first
    )


def respond_calculator(id: str, values: dict[str, Any]) -> Response:
    """The result for these values, or one sentence that says which value cannot be used."""
    if id not in CALCULATORS:
        raise KeyError(id)
    defaults = {field.name: field.value for field in CALCULATORS[id].fields}
    try:
        return Response(CALCULATORS[id].compute(defaults | values))
    except (AnswerError, ValueError) as error:
        told = str(error)
        for field in CALCULATORS[id].fields:  # the symbols that stand at the boxes, for the names in code
            told = re.sub(rf"\b{field.name}\b", field.label.split(",")[0], told)
        return Response(f'<p class="tfb-unreadable">{escape(told)}.</p>', "error")


def _attention(values: dict[str, Any]) -> str:
    config = TransformerConfig(
        d_model=_count(values, "d_model", "d"),
        n_heads=_count(values, "n_heads", "H"),
        **_unless_blank(values, n_kv_heads="n_kv", d_head="d_h"),
        qkv_bias=bool(values["bias"]),
        output_bias=bool(values["bias"]),
        positions="none",
    )
    batch, length = _count(values, "batch", "B"), _count(values, "length", "T")
    account = attention_parameters(config)
    rows = attention_shapes(config, batch, length)
    scores = next(row for row in rows if row.name == "scores")
    reference = 4 * config.d_model**2 + (4 * config.d_model if config.qkv_bias else 0)
    compared = "exactly" if account.total == reference else f"{account.total / reference:.2f} times"
    formula = "4d² + 4d" if config.qkv_bias else "4d²"
    weights = [(row.name, f"{row.own:,}", row.formula) for _, _, row in account.leaves()]
    shapes = [(r.name, r.symbols, " × ".join(f"{n:,}" for n in r.shape), f"{r.elements:,}") for r in rows]
    return (
        f"<p><b>{account.total:,} parameters</b>, {compared} {formula}. Each head is "
        f"d_h = {config.d_head} wide. The scores are <b>{scores.elements:,}</b> numbers, "
        f"{scores.elements / rows[0].elements:,.2f} times the input.</p>"
        + stacked_bar(_by_map(account.items()), "Parameters of one attention layer")
        + _table("Parameters", ("weight", "numbers", "formula"), weights, numeric=(1,))
        + _table(
            "Shapes, from input to output", ("tensor", "symbols", "shape", "numbers"), shapes, numeric=(3,)
        )
    )


def _by_map(items: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The four matrices one by one, the biases together."""
    matrices = [(path.split(".")[-1], n) for path, n in items if ".W_" in path]
    return [*matrices, ("biases", sum(n for path, n in items if ".b_" in path))]


def _unless_blank(values: dict[str, Any], **symbols: str) -> dict[str, Any]:
    """The whole numbers of those fields that are not blank, by field name."""
    return {
        name: _count(values, name, symbol) for name, symbol in symbols.items() if str(values[name]).strip()
    }


def _count(values: dict[str, Any], name: str, symbol: str) -> int:
    """A whole number from a field. Raises AnswerError naming the field's symbol."""
    try:
        number = Integer().read(str(values[name]))
    except AnswerError as error:
        raise AnswerError(f"{symbol}: {error}") from None
    if not 1 <= number < 2**31:
        raise AnswerError(f"{symbol} is out of range; give a whole number from 1 to {2**31 - 1:,}")
    return number


def _table(
    caption: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]], numeric: tuple[int, ...]
) -> str:
    def cells(row: tuple[str, ...], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=tfb-number' * (i in numeric)}>{escape(cell)}</{tag}>"
            for i, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return (
        f'<div class="tfb-scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{cells(head, 'th')}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


CALCULATORS = {
    "attention": Calculator(
        title="Calculator: one attention layer",
        intro=(
            "Change one thing at a time, and predict before you look. "
            "A blank box takes the usual value: n_kv = H, d_h = d/H."
        ),
        fields=(
            Field("d_model", "d, model width", "slider", 768, stops=(*_POWERS[3:10], 768, *_POWERS[10:])),
            Field("n_heads", "H, query heads", "slider", 12, stops=_HEADS),
            Field("n_kv_heads", "n_kv, key/value heads", help="blank: n_kv = H"),
            Field("d_head", "d_h, head width", help="blank: d_h = d/H"),
            Field("bias", "biases on all four maps", "checkbox", value=True),
            Field("batch", "B, batch", "slider", 8, stops=_POWERS[:10]),
            Field("length", "T, length", "slider", 512, stops=_POWERS),
        ),
        compute=_attention,
    )
}
