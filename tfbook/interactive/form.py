"""A form, described once: fields, and a named function that answers. No formula lives in a front end.

`html.py` renders it as a page's form, `widgets.py` as ipywidgets; `call` answers both.
"""

import os
import sys
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Field:
    """One input: text, area (many lines), slider, checkbox, radio, checkboxes, select or order.

    Neighbours of one `group` are folded away together, under its name. `options` are
    (value, label) pairs; a slider has `stops`, the values it can take, and shows a box beside it
    for any other value.
    """

    name: str
    label: str
    kind: str = "text"
    value: Any = ""
    options: tuple[tuple[str, str], ...] = ()
    stops: tuple[int, ...] = ()
    help: str = ""
    group: str = ""


@dataclass(frozen=True)
class Response:
    """What a form shows after an answer: HTML, and a status (correct, wrong, unreadable, ok or error)."""

    html: str
    status: str = "ok"


@dataclass(frozen=True, kw_only=True)
class Form:
    """What a reader can ask. `name` and `id` say which function answers, in `tfbook.interactive.call`.

    `button` is the text of the button that asks; a form without one answers at every change.
    `first` is shown before anything is asked, and `folds` are (summary, HTML) below the answer.
    A form that `redraws` can ask the same of other numbers; `seed` says of which.
    """

    name: str
    id: str
    title: str
    intro: str
    fields: tuple[Field, ...]
    first: str = ""
    button: str = ""
    folds: tuple[tuple[str, str], ...] = ()
    seed: int | None = None
    redraws: bool = False

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        from tfbook.interactive.html import form_html  # only what is shown is loaded

        bundle: dict[str, Any] = {"text/plain": f"{self.title} ({self.name} {self.id})"}
        if not html_would_win():
            bundle["text/html"] = form_html(self)
        if in_kernel():
            from tfbook.interactive.widgets import widget_bundle

            bundle |= widget_bundle(self)
        return bundle


def in_kernel() -> bool:
    """Whether a kernel runs this, so that widgets live."""
    return "ipykernel" in sys.modules


def html_would_win() -> bool:
    """Whether this front end prefers HTML to a live widget when it is offered both, as Colab does."""
    return "google.colab" in sys.modules or "COLAB_RELEASE_TAG" in os.environ
