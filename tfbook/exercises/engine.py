"""What an exercise is, and how an answer is judged.

An exercise carries its right answer, computed and never typed, and the answers that known
slips lead to, each with a diagnosis. Judging is the same for every kind of answer: read it,
compare it with the right one, then with each slip, and only then say what is wrong in general.
Content lives in the section modules; kinds of answer in `kinds`.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tfbook.exercises.expression import AnswerError


@dataclass(frozen=True)
class Mistake:
    """A slip that people make: the answer it leads to, and what to tell them (Markdown)."""

    name: str
    answer: Any
    diagnosis: str


@dataclass(frozen=True)
class Verdict:
    """The judgement of one answer.

    `message` is Markdown. `mistake` is the name of the recognised slip, or None. An answer
    that could not be read has `understood` False and a plain-text message.
    """

    correct: bool
    message: str
    mistake: str | None = None
    understood: bool = True

    def __str__(self) -> str:
        return f"{'Correct' if self.correct else 'Not yet'}: {self.message}"

    __repr__ = __str__

    def _repr_markdown_(self) -> str | None:
        if not self.understood:
            return None  # the message may repeat what was typed: it is shown as plain text alone
        return f"**{'Correct' if self.correct else 'Not yet'}.** {self.message}"


class Kind(Protocol):
    """A kind of answer: how it is read, compared and found wrong."""

    def read(self, answer: Any) -> Any:
        """The answer as a value. Raises AnswerError when it cannot be read."""

    def same(self, value: Any, other: Any) -> bool:
        """Whether a value that was read equals the right answer or that of a slip."""

    def wrong(self, value: Any, truth: Any) -> str:
        """What to say of a wrong value that no known slip explains (Markdown), without the answer."""


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One self-test. All texts are Markdown with dollar mathematics."""

    id: str
    section: str
    title: str
    prompt: str
    kind: Kind
    hints: tuple[str, ...]
    solution: str
    truth: Any
    mistakes: tuple[Mistake, ...]
    praise: str = "The last fold shows one way to get there."
    run: str = ""  # code that measures what was predicted; shown with the verdict
    again: Callable[[int], "Exercise"] | None = None  # the same exercise with numbers drawn from a seed
    seed: int | None = None

    def key(self) -> tuple[Any, tuple[Mistake, ...]]:
        """The right answer and the known slips."""
        return self.truth, self.mistakes

    def check(self, answer: Any) -> Verdict:
        """Judge an answer; never raises for anything a reader can type."""
        try:
            value = self.kind.read(answer)
            truth, mistakes = self.key()
            if self.kind.same(value, truth):
                return Verdict(True, self.praise + self._to_run())
            for mistake in mistakes:
                if self.kind.same(value, mistake.answer):
                    return Verdict(False, mistake.diagnosis, mistake.name)
            return Verdict(False, self.kind.wrong(value, truth) + self._to_run())
        except AnswerError as error:
            return Verdict(False, f"{error}.", understood=False)

    def _to_run(self) -> str:
        return f"\n\nNow run it:\n\n```python\n{self.run}\n```" if self.run else ""

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        # Looked up when shown: the forms know the exercises, and this is the one look back.
        from tfbook.interactive import exercise_form

        return exercise_form(self)._repr_mimebundle_()


class SlipsCollideError(ValueError):
    """Two slips lead to one answer: with these numbers a reader would be accused of the other."""


def drawn(
    make: Callable[..., Exercise], numbers: Callable[[random.Random], dict[str, Any]], **first: Any
) -> Exercise:
    """An exercise whose numbers can be drawn anew: `first` are those in the book.

    `make` writes the exercise for any numbers, `numbers` draws them from a seeded generator.
    """

    def again(seed: int) -> Exercise:
        draw = random.Random(seed)
        for _ in range(100):  # until two slips lead to different answers
            try:
                return replace(make(**numbers(draw)), again=again, seed=seed)
            except SlipsCollideError:
                continue
        raise SlipsCollideError("no numbers tell the slips apart; draw them from a wider range")

    return replace(make(**first), again=again)
