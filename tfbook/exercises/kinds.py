"""Kinds of answer: an integer, an expression, a shape, one choice or several, and code (`code.py`)."""

import math
import operator
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

from tfbook.exercises.engine import Mistake
from tfbook.exercises.expression import AnswerError, evaluate, shown


@dataclass(frozen=True)
class Integer:
    """A whole number; arithmetic such as `4*512^2` is welcome."""

    noun: str = "a whole number"

    def read(self, answer: Any) -> int:
        """An int from text, or from any integral number."""
        value = evaluate(answer, {}) if isinstance(answer, str) else self._number(answer)
        if value.denominator != 1:
            raise AnswerError(f"The answer is {self.noun}, and {_number(value)} is not whole")
        return value.numerator

    def _number(self, answer: Any) -> Fraction:
        refusal = AnswerError(f"That is {type(answer).__name__}; the answer is {self.noun}")
        if isinstance(answer, bool):
            raise refusal
        try:
            return Fraction(
                answer if isinstance(answer, float | Fraction | Decimal) else operator.index(answer)
            )
        except (TypeError, ValueError, OverflowError):  # not a number, nan, or infinite
            raise refusal from None

    def same(self, value: int, other: int) -> bool:
        """Exact equality."""
        return value == other

    def wrong(self, value: int, truth: int) -> str:
        """The direction."""
        if value <= 0:
            return f"{_number(value)} is not positive, and this counts things. Open a hint."
        side = "large" if value > truth else "small"
        return f"{_number(value)} is too {side}, and no slip that we know leads to it. Open a hint."


@dataclass(frozen=True)
class Line(Integer):
    """The number of a line in a listing."""

    noun: str = "a line number"

    def wrong(self, value: int, truth: int) -> str:
        """That it is another line, and not which."""
        return f"Line {_number(value)} is not where it goes wrong."


@dataclass(frozen=True)
class Expression:
    """A formula in some of the book's symbols, right when equal at random points.

    `points` draws one assignment of whole numbers to all symbols that may occur, keeping
    whatever holds between them (such as d = H d_h).
    """

    points: Callable[[random.Random], dict[str, int]]

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols that may occur."""
        return tuple(self.points(random.Random(0)))

    def read(self, answer: Any) -> tuple[Fraction, ...]:
        """The values of the expression at eight fixed random points."""
        if not isinstance(answer, str):
            raise AnswerError(f"That is {type(answer).__name__}; give the formula as text")
        formula = answer.rpartition("=")[2]  # "t = 6d" names what it gives
        draw = random.Random(251)
        return tuple(evaluate(formula, self.points(draw)) for _ in range(8))

    def same(self, value: tuple[Fraction, ...], other: str) -> bool:
        """Whether the two formulas agree at every point."""
        return value == self.read(other)

    def wrong(self, value: tuple[Fraction, ...], truth: str) -> str:
        """The first point where it is wrong, and what the reader's formula gives there."""
        draw = random.Random(251)
        points = [self.points(draw) for _ in value]
        where, seen, wanted = next(
            point for point in zip(points, value, self.read(truth), strict=True) if point[1] != point[2]
        )
        told = ", ".join(f"{name} = {n}" for name, n in where.items())
        side = "large" if seen > wanted else "small"
        return (
            f"At {told} your formula gives {_number(seen)}, which is too {side}. "
            "Count a small case by hand, or open a hint."
        )


@dataclass(frozen=True)
class Shape:
    """The shape of a tensor, such as `8, 12, 512, 64` or `(8, 12, 512, 64)`."""

    def read(self, answer: Any) -> tuple[int, ...]:
        """A tuple of positive sizes from text or from any sequence of integers."""
        parts = self._parts(answer) if isinstance(answer, str) else self._items(answer)
        if not parts:
            raise AnswerError("Type the sizes in order, such as 2, 4, 8")
        if len(parts) > 8:
            raise AnswerError(f"That has {len(parts)} axes; no tensor here has more than 8")
        sizes = tuple(Integer("a list of whole sizes").read(part) for part in parts)
        if any(size < 1 for size in sizes):
            raise AnswerError("Every size is at least 1")
        return sizes

    @staticmethod
    def _parts(text: str) -> list[str]:
        """The sizes as typed: with or without brackets, separated by commas, spaces or x."""
        text = text.rpartition("=")[2].strip().removeprefix("torch.Size")
        while text[:1] in ("(", "[") and text[-1:] in (")", "]"):
            text = text[1:-1].strip()
        separator = r"[,;]" if re.search("[,;]", text) else r"\s*[xX×]\s*|\s+"
        return [part for part in re.split(separator, text) if part.strip()]

    @staticmethod
    def _items(answer: Any) -> list[Any]:
        try:
            return list(islice(answer, 9))
        except TypeError:
            raise AnswerError(
                f"That is {type(answer).__name__}; give the sizes in order, such as 2, 4, 8"
            ) from None

    def same(self, value: tuple[int, ...], other: tuple[int, ...]) -> bool:
        """The same sizes in the same order."""
        return value == tuple(other)

    def wrong(self, value: tuple[int, ...], truth: tuple[int, ...]) -> str:
        """The number of axes, the number of elements or the order: the first that differs."""
        if len(value) != len(truth):
            axes = "1 axis" if len(value) == 1 else f"{len(value)} axes"
            return f"That shape has {axes}. Count again which axes this tensor has."
        if math.prod(value) != math.prod(truth):
            return f"That shape holds {_number(math.prod(value))} numbers, which is not how many there are."
        if sorted(value) == sorted(truth):
            return "The right sizes, in another order. Which axes does the matrix product work on?"
        return "The right number of elements, but not the right axes."


@dataclass(frozen=True)
class Option:
    """One option of a choice: its text, and for a wrong one the slip it shows and what to say of it."""

    text: str
    slip: str = ""
    feedback: str = ""


@dataclass(frozen=True)
class Choice:
    """One option, or several when `many`, named by letters. `read` takes "b", "a, c" or ["a", "c"]."""

    options: tuple[Option, ...]
    many: bool = False

    @property
    def by_key(self) -> dict[str, Option]:
        """The options by their letters, a for the first."""
        return {chr(ord("a") + i): option for i, option in enumerate(self.options)}

    def right(self) -> frozenset[str]:
        """The letters of the options that show no slip."""
        return frozenset(key for key, option in self.by_key.items() if not option.slip)

    def mistakes(self) -> tuple[Mistake, ...]:
        """For a single choice: each wrong option as a mistake of its own."""
        return tuple(Mistake(o.slip, frozenset(key), o.feedback) for key, o in self.by_key.items() if o.slip)

    def read(self, answer: Any) -> frozenset[str]:
        """The set of chosen keys."""
        if isinstance(answer, str):
            answer = re.findall(r"[^\s,;.()]+", answer)
        if not isinstance(answer, list | tuple | set | frozenset) or not all(
            isinstance(k, str) for k in answer
        ):
            raise AnswerError(f"That is {type(answer).__name__}; give the letter of an option, such as 'a'")
        keys = frozenset(key.lower() for key in answer)
        letters = ", ".join(self.by_key)
        for key in sorted(keys - self.by_key.keys()):
            raise AnswerError(f"“{shown(key)}” is not an option; use {letters}")
        if not keys:
            raise AnswerError(
                "Nothing is chosen; pick at least one option" if self.many else "Pick an option first"
            )
        if len(keys) > 1 and not self.many:
            raise AnswerError(f"One answer is asked for, and {len(keys)} are given")
        return keys

    def same(self, value: frozenset[str], other: frozenset[str]) -> bool:
        """The same set of options."""
        return value == other

    def wrong(self, value: frozenset[str], truth: frozenset[str]) -> str:
        """Feedback on each option that was wrongly chosen, and how many are missing."""
        told = [f"- **{key}**: {self.by_key[key].feedback}" for key in sorted(value - truth)]
        missing = len(truth - value)
        if missing and self.many:
            told.append(f"- {missing} more {'option is' if missing == 1 else 'options are'} right.")
        return "Look again:\n\n" + "\n".join(told)


def _number(value: int | Fraction) -> str:
    value = Fraction(value)
    if abs(value) >= 10**30:
        return "a very large number"
    return f"{float(value):.10g}" if value.denominator > 1 else f"{int(value):,}"
