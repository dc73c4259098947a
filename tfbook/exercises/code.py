"""Exercises whose answer is a function that the reader writes, judged in a kernel.

A code exercise is built like every other: a right answer (a reference function), slips
(functions too, each with its diagnosis), and a comparison. Two functions are compared by what
they return on the same cases, from small to large; a reader's function that behaves like a
slip on every case gets that slip's diagnosis, and any other gets the smallest case that fails.

The reference functions live in modules that import torch. They are loaded when an answer is
judged, so that a page can show the exercise where torch is not installed.
"""

import ast
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from typing import Any

from tfbook.exercises.engine import Exercise, Mistake
from tfbook.exercises.expression import AnswerError, shown

Case = tuple[Any, ...]
TOLERANCE = 1e-5  # absolute and relative, float32 outputs of order one


@dataclass(frozen=True)
class CodeTask:
    """What a module provides for one code exercise: reference, slips, and cases, smallest first."""

    reference: Callable[..., Any]
    mistakes: tuple[Mistake, ...]
    cases: Callable[[], Iterable[Case]]


def slip(name: str, reference: Callable[..., Any], edit: tuple[str, str], diagnosis: str) -> Mistake:
    """A mistake made by replacing one fragment of the reference's source.

    Raises ValueError if the fragment does not stand there exactly once.
    """
    source, (old, new) = inspect.getsource(reference), edit
    if source.count(old) != 1:
        raise ValueError(f"slip {name!r}: {old!r} stands {source.count(old)} times in {reference.__name__}")
    namespace = dict(reference.__globals__)
    exec(source.replace(old, new), namespace)  # the book's own text, never a reader's
    return Mistake(name, namespace[reference.__name__], diagnosis)


@dataclass(frozen=True)
class Code:
    """A function to write. `home` is the module of its `CodeTask`, named in capitals like the function."""

    name: str
    home: str

    @cached_property
    def task(self) -> CodeTask:
        """The reference, slips and cases. Imports torch."""
        task: CodeTask = getattr(import_module(self.home), self.name.upper())
        return task

    def reference_source(self) -> str:
        """The text of the reference function, read without importing it."""
        package, _, module = self.home.rpartition(".")
        text = files(package).joinpath(f"{module}.py").read_text("utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name == self.name:
                return ast.get_source_segment(text, node) or ""
        raise LookupError(f"{self.home} defines no function {self.name}")

    def read(self, answer: Any) -> Callable[..., Any]:
        """The reader's function. Raises AnswerError when it is none, or takes other arguments."""
        if isinstance(answer, str):
            raise AnswerError("This answer is a function; run it in a kernel, by the launch button above")
        if not callable(answer):
            raise AnswerError(
                f"That is {type(answer).__name__}; hand over the function itself: check(id, {self.name})"
            )
        wanted = list(inspect.signature(self.task.reference).parameters)
        try:
            inspect.signature(answer).bind(*wanted)
        except (TypeError, ValueError):
            raise AnswerError(f"The function must be callable as {self.name}({', '.join(wanted)})") from None
        return answer  # type: ignore[no-any-return]

    def same(self, value: Callable[..., Any], other: Callable[..., Any]) -> bool:
        """Whether two functions do the same on every case."""
        return self._first_difference(value, other) is None

    def wrong(self, value: Callable[..., Any], truth: Callable[..., Any]) -> str:
        """The smallest failing case: what went in, what was seen, what was expected."""
        return self._first_difference(value, truth) or ""

    def _first_difference(self, value: Callable[..., Any], other: Callable[..., Any]) -> str | None:
        for case in self.task.cases():
            difference = _compare(value, other, case)
            if difference:
                return f"With {_describe(case)}: {difference}"
        return None


@dataclass(frozen=True, kw_only=True)
class CodeExercise(Exercise):
    """An exercise answered by a function: its key is the task's, its solution the reference's text."""

    kind: Code
    truth: Any = None
    mistakes: tuple[Mistake, ...] = ()

    def key(self) -> tuple[Any, tuple[Mistake, ...]]:
        """The reference function and the slips. Imports torch."""
        return self.kind.task.reference, self.kind.task.mistakes


def _compare(value: Callable[..., Any], other: Callable[..., Any], case: Case) -> str | None:
    """What the two functions do differently on one case, or None."""
    given = _copy(case)
    try:
        seen = value(*given)
    except Exception as error:  # whatever the reader's code raises is the reader's to see
        return f"your function raised `{type(error).__name__}: {shown(str(error), 120)}`."
    if not _unchanged(given, case):
        return "your function changes its input in place; work on new tensors instead."
    return _difference(seen, other(*_copy(case)))


def _difference(seen: Any, expected: Any) -> str | None:
    import torch  # noqa: PLC0415  loaded only where code is judged

    if isinstance(expected, tuple):
        if not isinstance(seen, tuple) or len(seen) != len(expected):
            return f"expected {len(expected)} values in a tuple, and got {type(seen).__name__}."
        found = (_difference(s, e) for s, e in zip(seen, expected, strict=True))
        return next(filter(None, found), None)
    if seen is None or seen is Ellipsis:
        return "your function returns nothing yet; end it with `return ...`."
    if not isinstance(seen, torch.Tensor):
        return f"expected a tensor, and got {type(seen).__name__}."
    if seen.shape != expected.shape:
        return f"expected shape {tuple(expected.shape)}, and got {tuple(seen.shape)}."
    if seen.dtype != expected.dtype:
        return f"expected {expected.dtype}, and got {seen.dtype}."
    if seen.isnan().any() and not expected.isnan().any():  # before comparing: nan equals nothing
        return "some of the numbers are `nan`. Is a row of the softmax without any allowed key?"
    if torch.allclose(seen, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
        return None
    place = tuple(int(i) for i in torch.unravel_index((seen - expected).abs().argmax(), seen.shape))
    return f"at index {place} expected {expected[place].item():.4f}, and got {seen[place].item():.4f}."


def _copy(case: Case) -> Case:
    return tuple(item.clone() if hasattr(item, "clone") else item for item in case)


def _unchanged(given: Case, case: Case) -> bool:
    pairs = zip(given, case, strict=True)
    return all(not hasattr(b, "equal") or (a.shape == b.shape and a.equal(b)) for a, b in pairs)


def _describe(case: Case) -> str:
    shapes = (f"a tensor {tuple(item.shape)}" if hasattr(item, "shape") else f"`{item}`" for item in case)
    return ", ".join(shapes)
