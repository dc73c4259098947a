"""A form as accessible HTML for a static page. The page script brings it to life."""

import json
from html import escape
from itertools import groupby

from tfbook.interactive.form import Field, Form
from tfbook.interactive.markup import to_html, to_html_inline

# Stands in the form until the page script or a running notebook takes over.
NOT_LIVE = (
    "Not live here: on the book's pages JavaScript brings this form to life, elsewhere a running "
    "notebook does. What you see is its first state; hints and answers below open all the same."
)


def form_html(form: Form) -> str:
    """The whole form, filled with its first state. Buttons are off until the script turns them on."""
    asks = json.dumps({"name": form.name, "arguments": {"id": form.id}, "seed": form.seed}, sort_keys=True)
    live = "false" if form.button else "true"
    button = f'<button type="submit" disabled>{escape(form.button)}</button>' if form.button else ""
    if form.redraws:
        button += ' <button type="button" class="tfb-redraw" hidden>Another like this</button>'
    folds = "".join(
        f"<details><summary>{escape(summary)}</summary><div>{body}</div></details>"
        for summary, body in form.folds
    )
    return "".join(
        (
            f'<form class="tfb-form tfb-{form.name}" id="{form.name}-{form.id}" data-live="{live}" ',
            f'aria-label="{escape(form.title)}" data-asks="{escape(asks)}" novalidate autocomplete="off">',
            f'<p class="tfb-title">{to_html_inline(form.title)}<span class="tfb-mark"></span></p>',
            f'<div class="tfb-intro">{to_html(form.intro)}</div>',
            f'<div class="tfb-fields">{_fields(form.fields)}</div>',
            f'<div class="tfb-buttons">{button}</div>',
            f'<p class="tfb-note" role="status">{NOT_LIVE}</p>',
            f'<div class="tfb-result" aria-live="polite">{form.first}</div>',
            f'<div class="tfb-folds">{folds}</div></form>',
        )
    )


def _fields(fields: tuple[Field, ...]) -> str:
    """All inputs, those of a group in a fold of its name."""
    parts = []
    for group, members in groupby(fields, key=lambda field: field.group):
        inside = "".join(map(_field, members))
        fold = f'<summary>{escape(group)}</summary><div class="tfb-fields">{inside}</div>'
        parts.append(f'<details class="tfb-group">{fold}</details>' if group else inside)
    return "".join(parts)


def _field(field: Field) -> str:
    match field.kind:
        case "radio" | "checkboxes":
            return _choices(field)
        case "slider":
            return _slider(field)
        case "checkbox":
            checked = " checked" if field.value else ""
            box = f'<input type="checkbox" {_named(field)}{checked}>'
            return f'<label class="tfb-check">{box} <span>{escape(field.label)}</span></label>'
        case "order":
            return _order(field)
        case "select" | "area":
            body = _select(field) if field.kind == "select" else _area(field)
            return f'<label class="tfb-field">{_label(field)}{body}{_help(field)}</label>'
    box = f'<input type="text" {_named(field)} spellcheck="false" autocapitalize="off">'
    return f'<label class="tfb-field">{_label(field)}{box}{_help(field)}</label>'


def _choices(field: Field) -> str:
    kind, many = ("radio", "false") if field.kind == "radio" else ("checkbox", "true")
    options = "".join(
        f'<label class="tfb-check"><input type="{kind}" name="{field.name}" value="{escape(value)}"> '
        f"<span><b>{escape(value)}</b> {to_html_inline(label)}</span></label>"
        for value, label in field.options
    )
    return f'<fieldset data-many="{many}"><legend>{escape(field.label)}</legend>{options}</fieldset>'


def _select(field: Field) -> str:
    options = "".join(
        f'<option value="{escape(value)}"{" selected" * (value == field.value)}>{escape(label)}</option>'
        for value, label in field.options
    )
    return f'<select name="{field.name}" aria-label="{escape(field.label)}">{options}</select>'


def _area(field: Field) -> str:
    named = f'name="{field.name}" aria-label="{escape(field.label)}"'
    return f'<textarea {named} rows="5" spellcheck="false">{escape(str(field.value))}</textarea>'


def _order(field: Field) -> str:
    """A list to sort: each item has buttons to move it, and can be dragged where there is a mouse."""
    items = "".join(
        f'<li data-key="{key}" draggable="true"><span><b>{key}</b> {to_html_inline(label)}</span>'
        f'<button type="button" data-move="-1" aria-label="move {key} up">&uarr;</button>'
        f'<button type="button" data-move="1" aria-label="move {key} down">&darr;</button></li>'
        for key, label in field.options
    )
    keys = ", ".join(key for key, _ in field.options)
    hidden = f'<input type="hidden" name="{field.name}" value="{keys}">'
    legend = f"<legend>{escape(field.label)}</legend>"
    return f'<fieldset class="tfb-order">{legend}<ol>{items}</ol>{hidden}</fieldset>'


def _slider(field: Field) -> str:
    """A range over the stops, and a box for any value: the script keeps the two together."""
    nearest = min(range(len(field.stops)), key=lambda i: abs(field.stops[i] - int(field.value)))
    label = escape(field.label)
    slider = (
        f'<input type="range" min="0" max="{len(field.stops) - 1}" value="{nearest}" '
        f'data-stops="{escape(json.dumps(field.stops))}" aria-label="{label}, slider" '
        f'aria-valuetext="{field.value}">'
    )
    box = f'<input type="text" inputmode="numeric" {_named(field)}>'
    pair = f'<span class="tfb-slider">{slider}{box}</span>'
    return f'<div class="tfb-field">{_label(field)}{pair}{_help(field)}</div>'


def _label(field: Field) -> str:
    return f'<span class="tfb-label">{escape(field.label)}</span>'


def _help(field: Field) -> str:
    return f'<span class="tfb-help">{escape(field.help)}</span>' if field.help else ""


def _named(field: Field) -> str:
    value = "" if field.kind == "checkbox" else f' value="{escape(str(field.value))}"'
    return f'name="{field.name}" aria-label="{escape(field.label)}"{value}'
