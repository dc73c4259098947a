"""An exercise as a form: its answer kind decides the field, its verdict the response."""

from html import escape
from typing import Any

from tfbook.exercises import Exercise, exercise
from tfbook.exercises.code import Code
from tfbook.exercises.kinds import Choice, Expression, Shape
from tfbook.interactive.form import Field, Form, Response
from tfbook.interactive.markup import to_html


def exercise_form(asked: Exercise) -> Form:
    """The form of one exercise. Hints and the worked solution are folds, which need no script."""
    hints = [(f"Hint {n}", to_html(hint)) for n, hint in enumerate(asked.hints, 1)]
    return Form(
        name="exercise",
        id=asked.id,
        title=f"Exercise: {asked.title}",
        intro=asked.prompt,
        fields=_fields(asked),
        button="" if isinstance(asked.kind, Code) else "Check",
        first=_how_to_hand_in(asked) if isinstance(asked.kind, Code) else "",
        folds=(*hints, ("Answer and how to get there", to_html(asked.solution))),
    )


def respond_exercise(id: str, values: dict[str, Any]) -> Response:
    """The verdict on an answer, as HTML. What the reader typed is shown as text, never as markup."""
    verdict = exercise(id).check(values.get("answer", ""))
    if not verdict.understood:
        return Response(f'<p class="tfb-unreadable">{escape(verdict.message)}</p>', "unreadable")
    status = "correct" if verdict.correct else "wrong"
    word = "Correct." if verdict.correct else "Not yet."
    return Response(f'<div class="tfb-{status}"><b>{word}</b> {to_html(verdict.message)}</div>', status)


def _fields(asked: Exercise) -> tuple[Field, ...]:
    match asked.kind:
        case Code():
            return ()
        case Choice(many=many) as kind:
            options = tuple((key, option.text) for key, option in kind.by_key.items())
            label = "Choose all that apply" if many else "Choose one"
            return (Field("answer", label, "checkboxes" if many else "radio", options=options),)
        case Expression() as kind:
            return (Field("answer", "Your formula", help=f"symbols: {', '.join(kind.symbols)}"),)
        case Shape():
            return (Field("answer", "Your shape", help="sizes in order, such as 2, 4, 8"),)
    return (Field("answer", "Your answer", help="a whole number; arithmetic such as 3*2^4 is welcome"),)


def _how_to_hand_in(asked: Exercise) -> str:
    assert isinstance(asked.kind, Code)
    call = escape(f'check("{asked.id}", {asked.kind.name})')
    return (
        '<p class="tfb-code">This one is answered in a running notebook: write the function in a cell '
        f"and run <code>{call}</code>. <span data-launch></span></p>"
    )
