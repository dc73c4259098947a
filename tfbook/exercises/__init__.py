"""Self-tests: what they ask, how answers are judged, and what each slip is told.

`exercise(id)` shows one, `check(id, answer)` judges an answer, `exercises(section)` lists them.
Nothing here imports torch until a code answer is judged.
"""

from functools import cache
from importlib import import_module
from typing import Any

from tfbook.exercises.engine import Exercise, Mistake, Verdict

__all__ = ["Exercise", "Mistake", "Verdict", "check", "exercise", "exercises"]

_SECTIONS = {
    **{f"2.5.{n}": f"tfbook.exercises.section_2_5_{n}" for n in range(1, 8)},
    "misconceptions": "tfbook.exercises.misconceptions",
    "real-model": "tfbook.exercises.real_model",
    "self-test": "tfbook.exercises.self_test",
}


def exercises(section: str | None = None) -> list[Exercise]:
    """All exercises in the book's order, or those of one section such as "2.5.1".

    Raises KeyError for a section that has none, naming those that have.
    """
    if section is not None and section not in _SECTIONS:
        raise KeyError(f"section {section!r} has no exercises; use one of {', '.join(_SECTIONS)}")
    wanted = [section] if section else list(_SECTIONS)
    return [e for name in wanted for e in import_module(_SECTIONS[name]).EXERCISES]


def exercise(id: str, seed: int | None = None) -> Exercise:
    """The exercise of that id; as the last line of a cell it shows itself.

    With a `seed` its numbers are drawn anew, the same for the same seed; an exercise without
    numbers to draw stays as it is. Raises KeyError for an unknown id.
    """
    if not isinstance(id, str) or id not in _by_id():
        raise KeyError(f"exercise {id!r} does not exist; use one of {', '.join(_by_id())}")
    found = _by_id()[id]
    return found if seed is None or found.again is None else found.again(seed)


def check(id: str, answer: Any, seed: int | None = None) -> Verdict:
    """Judge an answer to an exercise. Raises KeyError for an unknown id, and for nothing else."""
    return exercise(id, seed).check(answer)


@cache
def _by_id() -> dict[str, Exercise]:
    return {e.id: e for e in exercises()}
