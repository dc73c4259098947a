"""Forms that answer with Python, in a notebook and on a static page alike.

`call` is the one function that a front end needs: JSON in, JSON out. It never raises for
anything that a form can send. Imports neither torch nor numpy nor ipywidgets.
"""

import json
from collections.abc import Callable
from typing import Any

from tfbook.interactive.calculators import calculator, respond_calculator
from tfbook.interactive.exercise_forms import exercise_form, respond_exercise, respond_redraw
from tfbook.interactive.form import Field, Form, Response
from tfbook.interactive.mixed_test import MixedTest, respond_score, respond_test

__all__ = ["Field", "Form", "MixedTest", "Response", "calculator", "call", "exercise_form", "respond"]

_ANSWERS: dict[str, Callable[[str, dict[str, Any]], Response]] = {
    "exercise": respond_exercise,
    "redraw": respond_redraw,
    "test": respond_test,
    "score": respond_score,
    "calculator": respond_calculator,
}


def call(request: str) -> str:
    """Answer one request: `{"name": "exercise", "arguments": {"id": ..., "values": {...}}}`.

    Returns `{"html": ..., "status": ...}`. A request that is none gets status "error".
    """
    try:
        asked = json.loads(request)
    except (ValueError, RecursionError):  # not JSON, or nested or long beyond reason
        asked = None
    response = respond(asked)
    return json.dumps({"html": response.html, "status": response.status})


def respond(request: Any) -> Response:
    """The same from and to Python objects."""
    match request:
        case {"name": str(name), "arguments": {"id": str(id), "values": dict(values)}} if name in _ANSWERS:
            try:
                return _ANSWERS[name](id, values)
            except KeyError:
                return Response(
                    f"<p>This page asks for a {name} that this version does not have.</p>", "error"
                )
    return Response("<p>This page and its Python do not fit together; reload the page.</p>", "error")
