"""Kinds of answer made of parts: quantities with a unit, orders, and several blanks at once."""

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tfbook.accounting.units import format_bytes, parse_bytes
from tfbook.exercises.engine import Kind
from tfbook.exercises.expression import AnswerError, evaluate, shown
from tfbook.exercises.kinds import Integer

_HUGE = 10**24  # beyond which a number is not repeated


@dataclass(frozen=True)
class Bytes:
    """A size in bytes with any unit, such as `0.75 GiB`, `768 MiB` or `805306368`; arithmetic counts bytes.

    Right within half a percent: far less than the 7 % between GB and GiB, and room for three digits.
    """

    def read(self, answer: Any) -> int:
        """Whole bytes, from text or an integer."""
        if not isinstance(answer, str):
            return Integer("a size in bytes").read(answer)
        if not answer.strip():
            raise AnswerError("Type a size and its unit, such as 1.5 GiB")
        try:
            return parse_bytes(answer)
        except ValueError as error:
            if re.search(r"[A-Za-z]", answer):  # a unit was meant: its own message helps
                raise AnswerError(shown(str(error), 200).rstrip(".")) from None
        return Integer("a size in bytes").read(answer)

    def same(self, value: int, other: int) -> bool:
        """Equal to three digits."""
        return abs(value - other) * 200 <= other

    def wrong(self, value: int, truth: int) -> str:
        """The direction, and the factor where it is a simple one."""
        side = "large" if value > truth else "small"
        if value >= _HUGE:
            return "That is more than all the memory there is. Open a hint."
        ratio = Fraction(max(value, truth), max(min(value, truth), 1))
        if any(abs(ratio * 1000**k / 1024**k - 1) * 200 <= 1 for k in range(1, 5)):
            return (
                f"{format_bytes(value)} is off by the difference of the units: "
                "KiB, MiB and GiB are powers of 1024, kB, MB and GB of 1000."
            )
        simple = next((n for n in range(2, 129) if abs(ratio - n) * 200 <= n), None)
        by = f" by a factor of {simple}" if simple else ""
        told = f"{format_bytes(max(value, 0))} is too {side}{by}"
        return f"{told}. Which factor of the formula is that? Open a hint."


@dataclass(frozen=True)
class Number:
    """A number within a relative tolerance; per cent, arithmetic and fractions are welcome."""

    unit: str = ""
    tolerance: Fraction = Fraction(1, 100)
    percent: bool = False  # a share, for which 22.4 and 22.4 % and 0.224 are the same

    def read(self, answer: Any) -> Fraction:
        """An exact fraction from text or from any real number."""
        if isinstance(answer, str):
            text = answer.strip().removesuffix(self.unit).strip() if self.unit else answer.strip()
            percent = text.endswith("%")
            value = evaluate(text.removesuffix("%"), {})
            return value / 100 if percent else value
        if isinstance(answer, bool) or not isinstance(answer, int | float | Fraction):
            raise AnswerError(f"That is {type(answer).__name__}; the answer is a number")
        try:
            return Fraction(answer)
        except (ValueError, OverflowError):  # nan or infinite
            raise AnswerError("That is no finite number") from None

    def same(self, value: Fraction, other: Fraction) -> bool:
        """Equal within the tolerance."""
        values = (value, value / 100) if self.percent else (value,)
        return any(abs(v - other) <= self.tolerance * abs(other) for v in values)

    def wrong(self, value: Fraction, truth: Fraction) -> str:
        """The direction."""
        if self.percent and value > 1:
            value /= 100
        side = "large" if value > truth else "small"
        told = f"{float(value):.4g}" if abs(value) < _HUGE else "That number"
        return f"{told} is too {side}. Open a hint."


@dataclass(frozen=True)
class Ordering:
    """Items to put in order, lettered as they are shown. `read` takes "c, a, b" or ["c", "a", "b"]."""

    items: tuple[str, ...]

    @property
    def by_key(self) -> dict[str, str]:
        """The items by their letters, in the order they are shown."""
        return {chr(ord("a") + i): item for i, item in enumerate(self.items)}

    def read(self, answer: Any) -> tuple[str, ...]:
        """The letters in the reader's order. Every item must be there once."""
        if isinstance(answer, str):
            answer = re.findall(r"[^\s,;.()>→-]+", answer)
            if len(answer) == 1 and len(answer[0]) == len(self.items):
                answer = list(answer[0])  # written without separators
        if not isinstance(answer, list | tuple) or not all(isinstance(key, str) for key in answer):
            raise AnswerError(
                f"That is {type(answer).__name__}; give the letters in order, such as 'b, a, c'"
            )
        keys = tuple(key.lower() for key in answer)
        if sorted(keys) != sorted(self.by_key):
            raise AnswerError(f"Put each of {', '.join(self.by_key)} in its place, once")
        return keys

    def same(self, value: tuple[str, ...], other: tuple[str, ...]) -> bool:
        """The same order."""
        return value == tuple(other)

    def wrong(self, value: tuple[str, ...], truth: tuple[str, ...]) -> str:
        """Two neighbours that stand the wrong way round: there always are such."""
        place = {key: i for i, key in enumerate(truth)}
        early, late = next(pair for pair in pairwise(value) if place[pair[0]] > place[pair[1]])
        right = sum(a == b for a, b in zip(value, truth, strict=True))
        told = f"{right} of {len(truth)} stand in their place"
        return f"{told}. **{late}** must come somewhere before **{early}**."


@dataclass(frozen=True)
class Blank:
    """One blank: its label, and how it is answered."""

    label: str
    kind: Kind


@dataclass(frozen=True)
class Blanks:
    """Several blanks, answered together: of a formula, of a table, or a line and its repair.

    The right answer is a tuple, one entry a blank. A slip's answer is one too; None in it matches
    anything but the right entry. `read` takes a list, a dict by position, or text with semicolons.
    """

    blanks: tuple[Blank, ...]

    def read(self, answer: Any) -> tuple[Any, ...]:
        """The value of every blank. Raises AnswerError naming the blank that cannot be read."""
        if isinstance(answer, dict):
            answer = [answer.get(str(i), answer.get(i, "")) for i in range(len(self.blanks))]
        if isinstance(answer, str):
            answer = answer.split(";")
        if not isinstance(answer, list | tuple):
            raise AnswerError(
                f"That is {type(answer).__name__}; give the blanks in order, with semicolons between"
            )
        if len(answer) != len(self.blanks):
            raise AnswerError(f"There are {len(self.blanks)} blanks, and {len(answer)} are given")
        return tuple(self._one(blank, entry) for blank, entry in zip(self.blanks, answer, strict=True))

    @staticmethod
    def _one(blank: Blank, entry: Any) -> Any:
        try:
            return blank.kind.read(entry)
        except AnswerError as error:
            raise AnswerError(f"{blank.label}: {error}") from None

    def same(self, value: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
        """Whether all blanks agree; None agrees with everything."""
        triples = zip(self.blanks, value, other, strict=True)
        return all(o is None or blank.kind.same(v, o) for blank, v, o in triples)

    def wrong(self, value: tuple[Any, ...], truth: tuple[Any, ...]) -> str:
        """Which blanks are right, and what is wrong with each of the others."""
        told = []
        for blank, v, t in zip(self.blanks, value, truth, strict=True):
            if blank.kind.same(v, t):
                told.append(f"- {blank.label}: right.")
            else:
                told.append(f"- {blank.label}: {blank.kind.wrong(v, t)}")
        return "Blank by blank:\n\n" + "\n".join(told)
