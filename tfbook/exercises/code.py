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
import mmap
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from tfbook.exercises.engine import Exercise, Mistake
from tfbook.exercises.expression import AnswerError, shown

Case = tuple[Any, ...]
TOLERANCE = 1e-5  # absolute and relative, float32 outputs of order one
SECONDS = 10.0  # that one case may take
LATE = f"your function gave no answer in {SECONDS:g} seconds; is there a loop that does not end?"
MEMORY = 2 * 2**30  # bytes that one case may ask for


@dataclass(frozen=True)
class CodeTask:
    """What a module provides for one code exercise: reference, slips, and cases, smallest first.

    The reference is a function, or a class with `use`: a function of the class and a case.
    """

    reference: Callable[..., Any]
    mistakes: tuple[Mistake, ...]
    cases: Callable[[], Iterable[Case]]
    use: Callable[..., Any] | None = None  # how an answer is used on a case; None is: called with it


def slip(name: str, reference: Callable[..., Any], *edits: tuple[str, str], diagnosis: str) -> Mistake:
    """A mistake made by replacing a fragment of the reference's source, or several.

    Raises ValueError if a fragment does not stand there exactly once.
    """
    source = inspect.getsource(reference)
    for old, new in edits:
        if source.count(old) != 1:
            raise ValueError(
                f"slip {name!r}: {old!r} stands {source.count(old)} times in {reference.__name__}"
            )
        source = source.replace(old, new)
    namespace = dict(vars(sys.modules[reference.__module__]))
    exec(source, namespace)  # the book's own text, never a reader's
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
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == self.name:
                return ast.get_source_segment(text, node) or ""
        raise LookupError(f"{self.home} defines no function {self.name}")

    def read(self, answer: Any) -> "Behaviour":
        """What the reader's function does on every case. It is run once a case.

        Raises AnswerError when it is no function, or takes other arguments.
        """
        if isinstance(answer, str):
            raise AnswerError(
                "This answer is a function; open this chapter as a notebook and hand it over there"
            )
        if not callable(answer):
            raise AnswerError(
                f"That is {type(answer).__name__}; hand over the function itself: check(id, {self.name})"
            )
        wanted = list(inspect.signature(self.task.reference).parameters)
        try:
            inspect.signature(answer).bind(*wanted)
        except (TypeError, ValueError):
            raise AnswerError(f"The function must be callable as {self.name}({', '.join(wanted)})") from None
        seen: list[Outcome] = []
        for case in self._cases():  # after one case without an end the others are not tried
            late = seen and seen[-1].fault == LATE
            seen.append(seen[-1] if late else _run(answer, case, self.task.use))
        return tuple(seen)

    def same(self, value: "Behaviour", other: Callable[..., Any]) -> bool:
        """Whether another function does the same on every case."""
        return not any(self._differences(value, other))

    def wrong(self, value: "Behaviour", truth: Callable[..., Any]) -> str:
        """The smallest failing case: what went in, what was seen, what was expected."""
        told = zip(self._cases(), self._differences(value, truth), strict=True)
        case, difference = next((case, difference) for case, difference in told if difference)
        return f"With {self._describe(case)}: {difference}"

    def _cases(self) -> list[Case]:
        import torch  # loaded only where code is judged

        with torch.device("cpu"):  # whatever default the reader has set
            return list(self.task.cases())

    def _differences(self, value: "Behaviour", other: Callable[..., Any]) -> Iterator[str | None]:
        for case, seen in zip(self._cases(), value, strict=True):
            expected = _run(other, case, self.task.use)
            if seen.fault != expected.fault:  # a slip may raise too, and is then known by what it raises
                yield seen.fault or "your function returns where another raises."
            else:
                yield None if seen.fault else _difference(seen.value, expected.value)

    def _describe(self, case: Case) -> str:
        """The case by the names of its arguments: shapes of tensors, values of numbers."""
        used = self.task.use or self.task.reference
        names = list(inspect.signature(used).parameters)[1 if self.task.use else 0 :]
        told = (
            f"{name} {tuple(item.shape)}"
            if hasattr(item, "shape")
            else f"{name} = {getattr(item, '__name__', item)}"
            for name, item in zip(names, case, strict=True)
        )
        return ", ".join(told)


@dataclass(frozen=True)
class Outcome:
    """What a function did with one case: the value it returned, or the fault that it showed."""

    value: Any = None
    fault: str | None = None


Behaviour = tuple[Outcome, ...]


@dataclass(frozen=True, kw_only=True)
class CodeExercise(Exercise):
    """An exercise answered by a function: its key is the task's, its solution the reference's text."""

    kind: Code
    truth: Any = None
    mistakes: tuple[Mistake, ...] = ()

    def key(self) -> tuple[Any, tuple[Mistake, ...]]:
        """The reference function and the slips. Imports torch."""
        return self.kind.task.reference, self.kind.task.mistakes


def _run(function: Callable[..., Any], case: Case, use: Callable[..., Any] | None = None) -> Outcome:
    """Run a reader's function on copies of a case's arguments, for a bounded time."""
    given = tuple(item.clone() if hasattr(item, "clone") else item for item in case)
    try:
        with bounded():
            value = function(*given) if use is None else use(function, *given)
    except OutOfTimeError:
        return Outcome(fault=LATE)
    except (Exception, SystemExit, GeneratorExit) as error:  # the reader's code, so the reader's to see
        told = traceback.format_exception_only(error)[-1].strip()
        return Outcome(fault=f"your function raised `{shown(told, 120)}`.")
    if not _unchanged(given, case):
        return Outcome(fault="your function changes its input in place; work on new tensors instead.")
    return Outcome(value)


def _difference(seen: Any, expected: Any) -> str | None:
    import torch  # loaded only where code is judged

    if seen is None or seen is Ellipsis:
        return "your function returns nothing yet; end it with `return ...`."
    if isinstance(expected, int):
        return _number_difference(seen, expected)
    if not isinstance(seen, torch.Tensor):
        return f"expected a tensor, and got {type(seen).__name__}."
    if seen.layout != expected.layout or seen.device != expected.device or seen.is_nested:
        return (
            f"expected an ordinary tensor on the {expected.device}, and got {seen.layout} on {seen.device}."
        )
    if seen.shape != expected.shape:
        return f"expected shape {tuple(expected.shape)}, and got {tuple(seen.shape)}."
    if seen.dtype != expected.dtype:
        return f"expected {expected.dtype}, and got {seen.dtype}."
    if seen.isnan().any() and not expected.isnan().any():  # before comparing: nan equals nothing
        return "some of the numbers are `nan`."
    if torch.allclose(seen, expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
        return None
    gap = (seen != expected).int() if seen.dtype == torch.bool else (seen - expected).abs()
    place = tuple(int(i) for i in torch.unravel_index(gap.argmax(), seen.shape))
    wanted, found = (
        t[place].item() if t.dtype == torch.bool else f"{t[place].item():.6g}" for t in (expected, seen)
    )
    return f"at index {place} expected {wanted}, and got {found}."


def _number_difference(seen: Any, expected: int) -> str | None:
    if isinstance(seen, bool) or not isinstance(seen, int):
        return f"expected an int, and got {type(seen).__name__}."
    told = f"{seen:,}" if abs(seen) < 10**30 else "a very large number"
    return None if seen == expected else f"expected {expected:,}, and got {told}."


class OutOfTimeError(BaseException):
    """The code took too long. No `Exception`, so that a reader's `except Exception` does not catch it."""


@contextmanager
def bounded(seconds: float = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Stop the code inside after so many seconds, or once it asks for so many bytes more.

    Raises OutOfTimeError, or lets an allocation fail with the error of whoever asked. Where the
    system has no such limits (Windows; threads other than the main one) the code runs unbounded.
    """
    alarm = getattr(signal, "setitimer", None)
    if alarm is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    import resource  # of Unix alone

    def late(*_: object) -> None:
        raise OutOfTimeError

    before, (soft, hard) = signal.signal(signal.SIGALRM, late), resource.getrlimit(resource.RLIMIT_AS)
    used = _address_space()
    if used is not None:
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, hard))
    alarm(signal.ITIMER_REAL, seconds, 1)  # and again, should the code swallow it
    try:
        yield
    finally:
        alarm(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space() -> int | None:
    """The bytes of address space in use, where the system tells (Linux)."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    except OSError:
        return None
    return pages * mmap.PAGESIZE


def _unchanged(given: Case, case: Case) -> bool:
    pairs = zip(given, case, strict=True)
    return all(not hasattr(b, "equal") or (a.shape == b.shape and a.equal(b)) for a, b in pairs)
