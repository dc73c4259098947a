"""Bytes: what people type, and what people read. GB is 10^9, GiB is 2^30; neither stands for the other.

Numbers stay exact: a size is parsed to whole bytes, and a fraction only appears in what is printed.
"""

import re
from fractions import Fraction

from tfbook.validation import listed, short

UNITS = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("kMGTP", 1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGTP", 1)},
}
_SPELLINGS = {unit.lower(): size for unit, size in UNITS.items()} | {"": 1, "byte": 1, "bytes": 1}
_NUMBER = re.compile(r"([0-9]{1,3}(?:[,_][0-9]{3})+|[0-9]+)(\.[0-9]+)?(?:e([+-]?[0-9]{1,2}))?", re.IGNORECASE)
LARGEST = 10**30  # bytes that are still printed
_LONGEST = 40  # characters: longer than any size that a person means

# How many bits a number of each type takes. What a quantised type keeps beside (scales) is counted apart.
DTYPE_BITS = {
    **dict.fromkeys(("float64", "fp64"), 64),
    **dict.fromkeys(("float32", "fp32"), 32),
    **dict.fromkeys(("float16", "fp16", "bfloat16", "bf16"), 16),
    **dict.fromkeys(("float8", "fp8", "int8"), 8),
    **dict.fromkeys(("float4", "fp4", "int4"), 4),
}


def parse_bytes(text: str | int) -> int:
    """A size in whole bytes from "0.75 GiB", "768 MiB", "805,306,368 bytes", "8e8" or a number.

    kB, MB, GB ... are powers of 1000, KiB, MiB, GiB ... of 1024; a bare number is bytes. A unit may
    be in upper or lower case. A fraction of a unit is rounded to the nearest byte. Raises
    ValueError for anything else, among it "8 G" (which unit?), "8 Gb" (bits?), and half a byte.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        if text < 0:
            raise ValueError(f"{short(text)} bytes is negative; give a size of at least 0")
        return text
    if not isinstance(text, str):
        raise ValueError(f"{short(text)} is {type(text).__name__}; give a size such as '0.75 GiB'")
    said = text.strip()
    found = _NUMBER.match(said) if len(said) <= _LONGEST else None
    unit = said[found.end() :].strip() if found else ""
    as_bits = unit.endswith("b") and unit != unit.lower()  # "Gb", "Gib"
    if found is None or unit.lower() not in _SPELLINGS or as_bits:
        if found and unit.lower() in tuple("kmgtp"):
            letter = unit.upper()
            raise ValueError(f"{short(text)} does not say which unit; write {letter}B or {letter}iB")
        if found and unit.lower() in _SPELLINGS:
            raise ValueError(f"{short(text)} may mean bits; write {unit[:-1]}B for bytes")
        raise ValueError(
            f"{short(text)} is no size; write a number and one of {listed(UNITS)}, such as 0.75 GiB"
        )
    whole, decimals, exponent = found.groups()
    number = Fraction(re.sub("[,_]", "", whole) + (decimals or "")) * Fraction(10) ** int(exponent or 0)
    size: Fraction = number * _SPELLINGS[unit.lower()]
    if size.denominator != 1 and not unit.lower().strip("bytes"):
        raise ValueError(f"{short(text)} is a fraction of a byte; give whole bytes, or a unit such as GiB")
    return round(size)


def format_bytes(size: int, system: str = "both") -> str:
    """A size for people: "0.75 GiB (805 MB)", or in one system: "binary" (GiB) or "decimal" (GB).

    Three significant digits, and the exact number below 1,000 bytes. Raises ValueError for a negative size.
    """
    if isinstance(size, bool) or not isinstance(size, int):
        raise TypeError(f"size={short(size)} is {type(size).__name__}; give whole bytes")
    if not 0 <= size < LARGEST:
        raise ValueError(f"{short(size)} bytes is negative or beyond any memory; give a size of at least 0")
    if system == "both":
        return f"{_in(size, 1024)} ({_in(size, 1000)})" if size >= 1000 else _in(size, 1024)
    if system not in ("binary", "decimal"):
        raise ValueError(f"system={short(system)} is unknown; use 'both', 'binary' or 'decimal'")
    return _in(size, 1024 if system == "binary" else 1000)


def bytes_of(numbers: int, dtype: str) -> int:
    """How many bytes so many numbers of a type take; half a byte at the end counts whole."""
    return -(-numbers * bits(dtype) // 8)


def bits(dtype: str) -> int:
    """The bits of a type by name, such as "bf16". Raises ValueError listing the names."""
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise ValueError(f"dtype={short(dtype)} is unknown; use one of {listed(DTYPE_BITS)}")
    return DTYPE_BITS[dtype]


def _in(size: int, base: int) -> str:
    units = [unit for unit, worth in UNITS.items() if worth == 1 or (unit[1:2] == "i") == (base == 1024)]
    power = 0
    while size >= base ** (power + 1) and power < len(units) - 1:
        power += 1
    # 1023.99 MiB would print as 1,020 MiB: where rounding reaches the next unit, use it.
    if power and power < len(units) - 1 and round(size / base**power, 2) >= base:
        power += 1
    if power == 0:
        return f"{size} {'byte' if size == 1 else 'bytes'}"
    return f"{_three_digits(size / base**power)} {units[power]}"


def _three_digits(number: float) -> str:
    """Three significant digits, without trailing zeros behind the point: 0.75, 12, 1,023."""
    decimals = 2 if number < 10 else 1 if number < 100 else 0
    text = f"{number:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
