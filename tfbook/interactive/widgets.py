"""A form as ipywidgets, for a live kernel: Jupyter, Binder, Colab."""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

import ipywidgets as ipw

from tfbook.interactive.form import Field, Form
from tfbook.interactive.markup import to_html, to_html_inline

_ALIGNED = {"description_width": "12em"}
_WIDTH = {"width": "34em", "max_width": "100%"}


def widget_bundle(form: Form) -> dict[str, Any]:
    """The MIME bundle of the form's widget, without its text form."""
    bundle: dict[str, Any] = dict(build_widget(form)._repr_mimebundle_())
    bundle.pop("text/plain", None)
    return bundle


def build_widget(form: Form, answered: Callable[[str, bool], Any] | None = None) -> ipw.VBox:
    """The whole form. Its answers come from the same function as those of the static page.

    `answered` is told the id and whether it was right, at every answer that could be read.
    """
    from tfbook.interactive import respond  # forms are built there: this is the way back

    inputs = {field.name: _input(field) for field in form.fields}
    result = ipw.HTMLMath(form.first)

    def ask(_: object = None) -> None:
        values = {name: given.read() for name, given in inputs.items()} | {"seed": form.seed}
        response = respond({"name": form.name, "arguments": {"id": form.id, "values": values}})
        result.value = response.html
        if answered is not None and response.status in ("correct", "wrong"):
            answered(form.id, response.status == "correct")

    parts: list[ipw.Widget] = [ipw.HTMLMath(f"<b>{to_html_inline(form.title)}</b>{to_html(form.intro)}")]
    for group, members in groupby(form.fields, key=lambda field: field.group):
        shown = [inputs[field.name].shown for field in members]
        parts += [ipw.Accordion([ipw.VBox(shown)], titles=(group,), selected_index=None)] if group else shown
    if form.button:
        button = ipw.Button(description=form.button, button_style="primary")
        button.on_click(ask)
        parts.append(button)
    else:
        for given in inputs.values():
            given.source.observe(ask, "value")
    whole = ipw.VBox()
    if form.redraws:
        again = ipw.Button(description="Another like this")
        again.on_click(lambda _: setattr(whole, "children", _redrawn(form).children))
        parts.append(again)
    parts.append(result)
    parts += [
        ipw.HTMLMath(f"<details><summary>{name}</summary>{body}</details>") for name, body in form.folds
    ]
    whole.children = parts
    return whole


def _redrawn(form: Form) -> ipw.VBox:
    """The same exercise with the next seed's numbers."""
    from tfbook.exercises import exercise
    from tfbook.interactive.exercise_forms import exercise_form  # forms are built there

    return build_widget(exercise_form(exercise(form.id, (form.seed or 0) + 1)))


@dataclass(frozen=True)
class _Input:
    """The widget of a field as shown, the one that changes, and how to read it."""

    shown: ipw.Widget
    source: ipw.Widget
    read: Callable[[], Any]


def _input(field: Field) -> _Input:
    match field.kind:
        case "radio":
            pairs = [(f"{value}  {label}", value) for value, label in field.options]
            radio = ipw.RadioButtons(options=pairs, value=None, layout={"width": "max-content"})
            group = ipw.VBox([ipw.HTML(f"<b>{escape(field.label)}</b>"), radio])
            return _Input(group, radio, lambda: radio.value or "")
        case "checkboxes":
            boxes = {
                value: ipw.Checkbox(description=f"{value}  {label}", indent=False, layout={"width": "auto"})
                for value, label in field.options
            }
            group = ipw.VBox([ipw.HTML(f"<b>{escape(field.label)}</b>"), *boxes.values()])
            return _Input(group, group, lambda: [value for value, box in boxes.items() if box.value])
        case "slider":
            box = ipw.Text(value=str(field.value), layout={"width": "8em"})
            slider = ipw.SelectionSlider(
                options=field.stops,
                value=field.value,
                description=field.label,
                readout=False,
                style=_ALIGNED,
                layout=_WIDTH,
            )
            slider.observe(lambda change: setattr(box, "value", str(change["new"])), "value")
            box.observe(lambda change: _follow(slider, change["new"]), "value")
            return _Input(ipw.HBox([slider, box]), box, lambda: box.value)
        case "order":
            keys = [key for key, _ in field.options]
            listed = "".join(f"<li><b>{key}</b> {to_html_inline(label)}</li>" for key, label in field.options)
            shown_items = ipw.HTMLMath(f"<ul>{listed}</ul>")
            typed = ipw.Text(
                description=field.label, placeholder=", ".join(keys), style=_ALIGNED, layout=_WIDTH
            )
            return _Input(ipw.VBox([shown_items, typed]), typed, lambda: typed.value)
        case "select":
            pairs = [(label, value) for value, label in field.options]
            select = ipw.Dropdown(
                options=pairs, value=field.value, description=field.label, style=_ALIGNED, layout=_WIDTH
            )
            return _Input(select, select, lambda: select.value)
        case "area":
            area = ipw.Textarea(
                description=field.label, placeholder=field.help, style=_ALIGNED, layout=_WIDTH, rows=5
            )
            return _Input(area, area, lambda: area.value)
        case "checkbox":
            check = ipw.Checkbox(description=field.label, value=bool(field.value), indent=False)
            return _Input(check, check, lambda: check.value)
    text = ipw.Text(
        description=field.label, placeholder=field.help, value=str(field.value), style=_ALIGNED, layout=_WIDTH
    )
    return _Input(text, text, lambda: text.value)


def _follow(slider: ipw.SelectionSlider, text: str) -> None:
    """Move the slider to the value that was typed, where it is one of its stops."""
    stop = {str(stop): stop for stop in slider.options}.get(text.strip())
    if stop is not None:
        slider.value = stop
