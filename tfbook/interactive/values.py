"""Reading what was typed into the boxes of a calculator."""

from typing import Any

from tfbook.exercises.expression import AnswerError
from tfbook.exercises.kinds import Integer
from tfbook.validation import LARGEST_COUNT

POWERS = tuple(2**n for n in range(15))


def count(values: dict[str, Any], name: str, symbol: str) -> int:
    """A whole number from a field. Raises AnswerError naming the field's symbol."""
    try:
        number = Integer().read(str(values[name]))
    except AnswerError as error:
        raise AnswerError(f"{symbol}: {error}") from None
    if not 1 <= number <= LARGEST_COUNT:
        raise AnswerError(f"{symbol} is out of range; give a whole number from 1 to {LARGEST_COUNT:,}")
    return number


def unless_blank(values: dict[str, Any], **symbols: str) -> dict[str, Any]:
    """The whole numbers of those fields that are not blank, by field name."""
    return {
        name: count(values, name, symbol) for name, symbol in symbols.items() if str(values[name]).strip()
    }
