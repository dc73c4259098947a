"""Short ways to write an exercise. See "Writing an exercise" in the book's apparatus."""

from dataclasses import replace
from typing import Any

from tfbook.exercises.code import Code, CodeExercise
from tfbook.exercises.compound import Blank, Blanks
from tfbook.exercises.engine import Exercise, Kind, Mistake, SlipsCollideError
from tfbook.exercises.kinds import Choice, Line, Option


def ask(section: str, kind: Kind, truth: Any, *slips: tuple[str, Any, str], **texts: Any) -> Exercise:
    """An exercise with a computed answer. Each slip is (name, the answer it leads to, what to say).

    A slip that happens to lead to the right answer is left out: with some numbers it can. Two slips
    of one answer must say the same, or a reader would be accused of the other: SlipsCollideError.
    """
    asked = Exercise(section=section, kind=kind, truth=truth, mistakes=(), **texts)
    mistakes: list[Mistake] = []
    for slip in (Mistake(*told) for told in slips):
        value = kind.read(example_answer(asked, slip))
        twins = [other for other in mistakes if kind.same(value, other.answer)]
        if twins and twins[0].diagnosis != slip.diagnosis:
            raise SlipsCollideError(
                f"{asked.id}: the slips {twins[0].name} and {slip.name} lead to one answer"
            )
        if not twins and not kind.same(value, truth):
            mistakes.append(slip)
    return replace(asked, mistakes=tuple(mistakes))


def choose(section: str, *options: Option | str, many: bool = False, **texts: Any) -> Exercise:
    """A choice. A right option is its text alone; a wrong one is `no(text, slip, feedback)`."""
    kind = Choice(tuple(Option(o) if isinstance(o, str) else o for o in options), many)
    return Exercise(section=section, kind=kind, truth=kind.right(), mistakes=kind.mistakes(), **texts)


def no(text: str, slip: str, feedback: str) -> Option:
    """A wrong option."""
    return Option(text, slip, feedback)


def pick(*options: Option | str) -> Choice:
    """A single choice as one blank of several."""
    return Choice(tuple(Option(o) if isinstance(o, str) else o for o in options))


def find_bug(
    section: str, line: int, repairs: Choice, *slips: tuple[str, int, str], listing: str, **texts: Any
) -> Exercise:
    """Find the planted fault: the number of its line, and which repair mends it."""
    lines = listing.strip("\n").split("\n")
    numbered = "\n".join(f"{n:>2}  {text}" for n, text in enumerate(lines, 1))
    as_code = Choice(tuple(replace(option, text=f"`{option.text}`") for option in repairs.options))
    kind = Blanks((Blank("The line of the fault", Line()), Blank("The repair", as_code)))
    right = repairs.right()
    wrong_lines = [(name, (where, None), told) for name, where, told in slips]
    wrong_repairs = [(m.name, (line, m.answer), m.diagnosis) for m in repairs.mistakes()]
    texts["prompt"] = f"{texts['prompt']}\n\n```text\n{numbered}\n```"
    return ask(section, kind, (line, right), *wrong_lines, *wrong_repairs, **texts)


def write(section: str, home: str, name: str, remark: str, **texts: Any) -> Exercise:
    """A function or class to write, whose reference, slips and cases stand in `home`."""
    kind = Code(name, f"tfbook.exercises.{home}")
    solution = f"```python\n{kind.reference_source()}\n```\n\n{remark}"
    return CodeExercise(section=section, kind=kind, solution=solution, **texts)


def example_answer(asked: Exercise, mistake: Mistake) -> Any:
    """An answer that a reader who made this slip would give, complete."""
    if not isinstance(asked.kind, Blanks):
        return mistake.answer
    return tuple(t if m is None else m for m, t in zip(mistake.answer, asked.truth, strict=True))
