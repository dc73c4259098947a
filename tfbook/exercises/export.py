"""Exercises as plain data, for teachers: prompts, options, hints, and on request the answer key.

A seed draws other numbers for every exercise that has numbers to draw, the same for the same seed.
Code exercises carry the signature to write; their key is the text of the reference.
"""

from fractions import Fraction
from typing import Any

from tfbook.exercises import exercise, exercises
from tfbook.exercises.code import Code
from tfbook.exercises.compound import Blanks, Bytes, Number, Ordering
from tfbook.exercises.engine import Exercise, Kind
from tfbook.exercises.kinds import Choice, Expression, Integer, Line, Shape

FORMAT = "tfbook-quiz-1"
_NAMES: dict[type, str] = {
    Integer: "integer",
    Line: "integer",
    Bytes: "bytes",
    Number: "number",
    Expression: "expression",
    Shape: "shape",
    Choice: "choice",
    Ordering: "ordering",
    Blanks: "blanks",
    Code: "code",
}


def quiz(section: str | None = None, seed: int | None = None, key: bool = False) -> dict[str, Any]:
    """All exercises, or those of a section, as JSON data; with `key` also answers, slips and solutions.

    `{"format": "tfbook-quiz-1", "seed": ..., "exercises": [...]}`. Raises KeyError for an unknown section.
    """
    asked = [exercise(found.id, seed) for found in exercises(section)]
    return {"format": FORMAT, "seed": seed, "exercises": [as_data(one, key) for one in asked]}


def as_data(asked: Exercise, key: bool = False) -> dict[str, Any]:
    """One exercise as JSON data."""
    data = {
        "id": asked.id,
        "section": asked.section,
        "title": asked.title,
        "kind": kind_name(asked.kind),
        "prompt": asked.prompt,
        **_parts(asked.kind),
        "hints": list(asked.hints),
        "redrawn": asked.again is not None,
    }
    if not key:
        return data
    truth, mistakes = asked.key()
    slips = [{"name": m.name, "answer": _plain(m.answer), "diagnosis": m.diagnosis} for m in mistakes]
    return data | {"answer": _plain(truth), "slips": slips, "solution": asked.solution}


def kind_name(kind: Kind) -> str:
    """The kind of an answer, as a word."""
    return _NAMES[type(kind)]


def _parts(kind: Kind) -> dict[str, Any]:
    match kind:
        case Choice(by_key=options, many=many):
            return {"options": {key: option.text for key, option in options.items()}, "several": many}
        case Ordering(by_key=items):
            return {"items": items}
        case Blanks(blanks=blanks):
            told = [{"label": b.label, "kind": kind_name(b.kind), **_parts(b.kind)} for b in blanks]
            return {"blanks": told}
        case Expression(symbols=symbols):
            return {"symbols": list(symbols)}
    return {}


def _plain(answer: Any) -> Any:
    """An answer as JSON holds it; of a function, its name."""
    match answer:
        case None | bool() | int() | float() | str():
            return answer
        case Fraction():
            return answer.numerator if answer.denominator == 1 else float(answer)
        case frozenset():
            return sorted(answer)
        case tuple() | list():
            return [_plain(part) for part in answer]
    return getattr(answer, "__name__", str(answer))
