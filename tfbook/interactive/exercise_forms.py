"""An exercise as a form: its answer kind decides the field, its verdict the response."""

from html import escape
from typing import Any

from tfbook.exercises import Exercise, exercise
from tfbook.exercises.code import Code
from tfbook.exercises.compound import Blanks, Bytes, Number, Ordering
from tfbook.exercises.engine import Kind
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
        seed=asked.seed,
        redraws=asked.again is not None,
    )


def respond_exercise(id: str, values: dict[str, Any]) -> Response:
    """The verdict on an answer, as HTML. What the reader typed is shown as text, never as markup."""
    asked = exercise(id, seed_of(values))
    if isinstance(asked.kind, Blanks):
        answer: Any = [values.get(f"answer.{i}", "") for i in range(len(asked.kind.blanks))]
    else:
        answer = values.get("answer", "")
    verdict = asked.check(answer)
    if not verdict.understood:
        return Response(
            f'<p class="tfb-unreadable mathjax_ignore">{escape(verdict.message)}</p>', "unreadable"
        )
    status = "correct" if verdict.correct else "wrong"
    word = "Correct." if verdict.correct else "Not yet."
    return Response(f'<div class="tfb-{status}"><b>{word}</b> {to_html(verdict.message)}</div>', status)


def respond_redraw(id: str, values: dict[str, Any]) -> Response:
    """The form of the same exercise with numbers drawn from a seed."""
    from tfbook.interactive.html import form_html

    return Response(form_html(exercise_form(exercise(id, seed_of(values)))))


def seed_of(values: dict[str, Any]) -> int | None:
    """The seed that a form was drawn with; None for the numbers in the book."""
    seed = values.get("seed")
    return seed if type(seed) is int and 0 <= seed < 2**32 else None


def _fields(asked: Exercise) -> tuple[Field, ...]:
    match asked.kind:
        case Code():
            return ()
        case Blanks(blanks=blanks):
            return tuple(_field(b.kind, f"answer.{i}", b.label) for i, b in enumerate(blanks))
    return (_field(asked.kind, "answer", ""),)


def _field(kind: Kind, name: str, named: str) -> Field:
    """The input of one answer; a blank of several has a name of its own."""
    match kind:
        case Choice(many=many):
            options = tuple((key, option.text) for key, option in kind.by_key.items())
            label = named or ("Choose all that apply" if many else "Choose one")
            return Field(name, label, "checkboxes" if many else "radio", options=options)
        case Ordering(by_key=items):
            return Field(name, named or "Put these in order", "order", options=tuple(items.items()))
        case Expression():
            return Field(name, named or "Your formula", help=f"symbols: {', '.join(kind.symbols)}")
        case Shape():
            return Field(name, named or "Your shape", help="sizes in order, such as 2, 4, 8")
        case Bytes():
            return Field(name, named or "Your answer", help="a size with its unit, such as 1.5 GiB")
        case Number():
            unit = f", in {kind.unit}" if kind.unit else ""
            return Field(name, named or "Your answer", help=f"a number{unit}; arithmetic and % are welcome")
    usual = "a whole number; arithmetic such as 3*2^4 is welcome"
    noun = getattr(kind, "noun", "a whole number")
    return Field(name, named or "Your answer", help=usual if noun == "a whole number" else noun)


def _how_to_hand_in(asked: Exercise) -> str:
    assert isinstance(asked.kind, Code)
    call = escape(f'check("{asked.id}", {asked.kind.name})')
    return (
        '<p class="tfb-code">This one is answered in a running notebook: write the function in a cell '
        f"and run <code>{call}</code>. <span data-launch></span></p>"
    )
