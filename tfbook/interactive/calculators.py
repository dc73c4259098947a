"""The calculators: forms whose answer comes from `tfbook.accounting`."""

import re
from dataclasses import replace
from html import escape
from typing import Any

from tfbook.accounting import attention_parameters, attention_shapes
from tfbook.accounting.tables import html_table
from tfbook.config import TransformerConfig
from tfbook.exercises.expression import AnswerError
from tfbook.interactive.form import Field, Form, Response
from tfbook.interactive.model_calculators import MODEL_CALCULATORS, Calculator
from tfbook.interactive.svg import stacked_bar
from tfbook.interactive.values import POWERS, count, unless_blank

_HEADS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)


def calculator(id: str, **values: Any) -> Form:
    """A calculator by name, with its first result; as the last line of a cell it shows itself.

    `values` set fields by name: `calculator("kv-cache", preset="gpt2", length=1024)`. Raises KeyError
    for an unknown calculator or field, listing those there are, and ValueError for an unusable value.
    """
    if id not in CALCULATORS:
        raise KeyError(f"calculator {id!r} does not exist; use one of {', '.join(CALCULATORS)}")
    found = CALCULATORS[id]
    names = [field.name for field in found.fields]
    for name in values.keys() - set(names):
        raise KeyError(f"calculator {id!r} has no field {name!r}; use one of {', '.join(names)}")
    fields = tuple(replace(field, value=values.get(field.name, field.value)) for field in found.fields)
    first = found.compute({field.name: field.value for field in fields})
    return Form(name="calculator", id=id, title=found.title, intro=found.intro, fields=fields, first=first)


def respond_calculator(id: str, values: dict[str, Any]) -> Response:
    """The result for these values, or one sentence that says which value cannot be used."""
    if id not in CALCULATORS:
        raise KeyError(id)
    defaults = {field.name: field.value for field in CALCULATORS[id].fields}
    try:
        return Response(CALCULATORS[id].compute(defaults | values))
    except (AnswerError, ValueError, TypeError) as error:
        told = str(error)
        for field in CALCULATORS[id].fields:  # the symbols that stand at the boxes, for the names in code
            told = re.sub(rf"\b{field.name}\b", field.label.split(",")[0], told)
        return Response(f'<p class="tfb-unreadable">{escape(told)}.</p>', "error")


def _attention(values: dict[str, Any]) -> str:
    config = TransformerConfig(
        d_model=count(values, "d_model", "d"),
        n_heads=count(values, "n_heads", "H"),
        **unless_blank(values, n_kv_heads="n_kv", d_head="d_h"),
        qkv_bias=bool(values["bias"]),
        output_bias=bool(values["bias"]),
        positions="none",
    )
    batch, length = count(values, "batch", "B"), count(values, "length", "T")
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
        + html_table("Parameters", ("weight", "numbers", "formula"), weights, numeric=(1,))
        + html_table(
            "Shapes, from input to output", ("tensor", "symbols", "shape", "numbers"), shapes, numeric=(3,)
        )
    )


def _by_map(items: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """The four matrices one by one, the biases together."""
    matrices = [(path.split(".")[-1], n) for path, n in items if ".W_" in path]
    return [*matrices, ("biases", sum(n for path, n in items if ".b_" in path))]


CALCULATORS = {
    "attention": Calculator(
        title="Calculator: one attention layer",
        intro=(
            "Change one thing at a time, and predict before you look. "
            "A blank box takes the usual value: n_kv = H, d_h = d/H."
        ),
        fields=(
            Field("d_model", "d, model width", "slider", 768, stops=(*POWERS[3:10], 768, *POWERS[10:])),
            Field("n_heads", "H, query heads", "slider", 12, stops=_HEADS),
            Field("n_kv_heads", "n_kv, key/value heads", help="blank: n_kv = H"),
            Field("d_head", "d_h, head width", help="blank: d_h = d/H"),
            Field("bias", "biases on all four maps", "checkbox", value=True),
            Field("batch", "B, batch", "slider", 8, stops=POWERS[:10]),
            Field("length", "T, length", "slider", 512, stops=POWERS),
        ),
        compute=_attention,
    ),
    **MODEL_CALCULATORS,
}
