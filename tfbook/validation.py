"""Reading one value: each function returns it clean, or says which field, which value and what to do."""

import math
import operator
from collections.abc import Iterable
from numbers import Real

LARGEST_COUNT = 2**31 - 1


def divisors(number: int) -> list[int]:
    """The positive divisors of a positive integer, in ascending order."""
    small = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return small + [number // n for n in reversed(small) if n * n != number]


def as_count(name: str, value: object) -> int:
    """A positive integer from any integer type (numpy's included), or an error that says why not."""
    if isinstance(value, bool) or "bool" in str(getattr(value, "dtype", "")):
        raise TypeError(f"{name}={value!r} is a truth value; give a positive integer")
    try:
        number = operator.index(value)  # type: ignore[arg-type]  # refusing the rest is its job
    except TypeError:
        raise TypeError(
            f"{name}={short(value)} is {type(value).__name__}, not an integer; give a positive integer"
        ) from None
    if number < 1:
        raise ValueError(f"{name}={short(number)} is not positive; give an integer of at least 1")
    if number > LARGEST_COUNT:
        raise ValueError(f"{name} is larger than any model's; give an integer up to {LARGEST_COUNT:,}")
    return number


def as_real(name: str, value: object, low: float, below: float) -> float:
    """A number in a range, or an error that says why not."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={short(value)} is {type(value).__name__}; give a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not low <= number < below:  # also false for nan
        raise ValueError(f"{name}={number!r} is out of range; give a number from {low:g} to below {below:g}")
    return number


def check_choice(name: str, value: object, options: tuple[str, ...]) -> None:
    """Raise ValueError, listing the options, unless the value is one of them."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name}={short(value)} is unknown; use one of {listed(map(repr, options))}")


def check_flag(name: str, value: object) -> None:
    """Raise TypeError unless the value is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}={short(value)} is {type(value).__name__}; give True or False")


def short(value: object) -> str:
    """A value as it stands in a message: cut where it is long."""
    if isinstance(value, int) and value.bit_length() > 200:
        return "an integer of many digits"
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def listed(options: Iterable[object]) -> str:
    """Options as a message lists them."""
    return ", ".join(map(str, options))


def nearest(options: list[int], value: int, most: int = 12) -> str:
    """The options as text; where there are many, only those nearest to the value."""
    return listed(sorted(sorted(options, key=lambda option: abs(option - value))[:most]))
