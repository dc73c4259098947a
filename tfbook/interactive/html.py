"""A form as accessible HTML for a static page. The page script brings it to life."""

import json
from html import escape
from typing import Any

from tfbook.interactive.form import Field, Form
from tfbook.interactive.markup import to_html, to_html_inline

NO_SCRIPT = (
    "This form answers with Python in your browser, and JavaScript is off. "
    "What you see is its first state; hints and answers below open without it."
)


def form_html(form: Form) -> str:
    """The whole form, filled with its first state. Buttons are off until the script turns them on."""
    asks = json.dumps({"name": form.name, "arguments": {"id": form.id}}, sort_keys=True)
    button = (
        f'<div class="tfb-buttons"><button type="submit" disabled>{escape(form.button)}</button></div>'
        if form.button
        else ""
    )
    folds = "".join(_fold(summary, body, index) for index, (summary, body) in enumerate(form.folds))
    return (
        f'<form class="tfb-form tfb-{form.name}" id="{form.name}-{form.id}" aria-label="{escape(form.title)}" '
        f'data-asks="{escape(asks)}" data-live="{str(not form.button).lower()}" novalidate autocomplete="off">'
        f'<p class="tfb-title">{to_html_inline(form.title)}<span class="tfb-mark" aria-hidden="true"></span></p>'
        f'<div class="tfb-intro">{to_html(form.intro)}</div>'
        f'<div class="tfb-fields">{"".join(map(_field, form.fields))}</div>{button}'
        f'<p class="tfb-note" role="status" hidden></p><noscript><p class="tfb-note">{NO_SCRIPT}</p></noscript>'
        f'<div class="tfb-result" aria-live="polite">{form.first}</div>'
        f'<div class="tfb-folds">{folds}</div></form>'
    )


def _fold(summary: str, body: str, index: int) -> str:
    return f'<details data-fold="{index}"><summary>{escape(summary)}</summary><div>{body}</div></details>'


def _field(field: Field) -> str:
    match field.kind:
        case "radio" | "checkboxes":
            return _choices(field)
        case "slider":
            return _slider(field)
        case "checkbox":
            box = f'<input type="checkbox" {_named(field)}{" checked" * bool(field.value)}>'
            return f'<label class="tfb-check">{box} <span>{to_html_inline(field.label)}</span></label>'
    box = f'<input type="text" {_named(field)} value="{escape(str(field.value))}" spellcheck="false" autocapitalize="off">'
    return _labelled(field, box)


def _choices(field: Field) -> str:
    kind = "radio" if field.kind == "radio" else "checkbox"
    options = "".join(
        f'<label class="tfb-check"><input type="{kind}" name="{field.name}" value="{escape(value)}"> '
        f"<span><b>{escape(value)}</b> {to_html_inline(label)}</span></label>"
        for value, label in field.options
    )
    return f'<fieldset data-many="{str(kind == "checkbox").lower()}"><legend>{escape(field.label)}</legend>{options}</fieldset>'


def _slider(field: Field) -> str:
    """A range over the stops, and a box for any value: the script keeps the two together."""
    stops = json.dumps(field.stops)
    nearest = min(range(len(field.stops)), key=lambda i: abs(field.stops[i] - int(field.value)))
    label = escape(field.label, quote=True)
    return _labelled(
        field,
        f'<span class="tfb-slider"><input type="range" min="0" max="{len(field.stops) - 1}" value="{nearest}" '
        f'data-stops="{escape(stops)}" aria-label="{label}, slider" aria-valuetext="{field.value}">'
        f'<input type="text" inputmode="numeric" {_named(field)} value="{field.value}"></span>',
        wraps=False,
    )


def _labelled(field: Field, control: str, wraps: bool = True) -> str:
    text = f'<span class="tfb-label">{to_html_inline(field.label)}</span>'
    hint = f'<span class="tfb-help">{to_html_inline(field.help)}</span>' if field.help else ""
    tag = "label" if wraps else "div"
    return f'<{tag} class="tfb-field">{text}{control}{hint}</{tag}>'


def _named(field: Field) -> Any:
    return f'name="{field.name}" aria-label="{escape(field.label, quote=True)}"'
