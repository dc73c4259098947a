"""Self-tests: what they ask, how answers are judged, and what each slip is told.

`exercise(id)` shows one, `check(id, answer)` judges an answer, `exercises(section)` lists them.
Nothing here imports torch until a code answer is judged.
"""

from functools import cache
from importlib import import_module
from typing import Any

from tfbook.exercises.engine import Exercise, Mistake, Verdict

__all__ = ["Exercise", "Mistake", "Verdict", "check", "exercise", "exercises"]

_SECTIONS = {"2.5.1": "tfbook.exercises.section_2_5_1"}


def exercises(section: str | None = None) -> list[Exercise]:
    """All exercises in the book's order, or those of one section such as "2.5.1".

    Raises KeyError for a section that has none, naming those that have.
    """
    if section is not None and section not in _SECTIONS:
        raise KeyError(f"section {section!r} has no exercises; use one of {', '.join(_SECTIONS)}")
    wanted = [section] if section else list(_SECTIONS)
    return [e for name in wanted for e in import_module(_SECTIONS[name]).EXERCISES]


def exercise(id: str) -> Exercise:
    """The exercise of that id; as the last line of a cell it shows itself. Raises KeyError."""
    if not isinstance(id, str) or id not in _by_id():
        raise KeyError(f"exercise {id!r} does not exist; use one of {', '.join(_by_id())}")
    return _by_id()[id]


def check(id: str, answer: Any) -> Verdict:
    """Judge an answer to an exercise. Raises KeyError for an unknown id, and for nothing else."""
    return exercise(id).check(answer)


@cache
def _by_id() -> dict[str, Exercise]:
    return {e.id: e for e in exercises()}
