"""What readers type is read, evaluated exactly, and can do nothing else."""

import contextlib
import random
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfbook.exercises.expression import AnswerError, evaluate

SYMBOLS = {"d": 7, "n_kv": 2, "d_h": 3, "H": 4}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4d^2 + 4d", 224),
        ("4*d**2+4*d", 224),
        ("2 d n_kv d_h", 84),
        ("2(d + 1)(d − 1)", 96),
        ("4·d²", 196),
        ("d × d_h", 21),
        ("-d", -7),
        ("1,050,624", 1_050_624),
        ("1 050 624", 1_050_624),
        ("1_050_624", 1_050_624),
        ("1'050'624", 1_050_624),
        ("8e8", 800_000_000),
        ("0.5d", Fraction(7, 2)),
        ("d/n_kv", Fraction(7, 2)),
        ("d**-1", Fraction(1, 7)),
        ("2^3^1", 8),
        ("2²⁺¹".replace("⁺¹", ""), 4),
        ("2¹⁰", 1024),
        ("2dn_{kv}d_h", 84),
        ("2dnkv dh", 84),
        ("dHd_h", 84),
        ("d^{2}", 49),
        ("d x d_h", 21),
        ("= 4d", 28),
        ("d ⋅ d", 49),
        (" ( d ) ", 7),
    ],
)
def test_notations(text: str, value: int | Fraction) -> None:
    assert evaluate(text, SYMBOLS) == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("abc", "“abc” is not made of the symbols"),
        ("10 parsecs", "“parsecs” is not made of the symbols"),
        ("9**9**9", "exponent is too large"),
        ("9**64**2", "exponent is too large"),
        ("(9**64)**64", "far larger"),
        ('__import__("os")', "“__import__” is not made of the symbols"),
        ("d.real", "“.” has no meaning"),
        ("x" * 10_000, "10,000 characters"),
        ("1e999", "beyond any size"),
        ("nan", "“nan” is not"),
        ("inf", "“inf” is not"),
        ("d/0", "divides by zero"),
        ("0**-1", "divides by zero"),
        ("d**0.5", "whole numbers"),
        ("(((", "not a complete expression"),
        ("()", "not a complete expression"),
        ("d +", "not a complete expression"),
        ("d // 2", "not a complete expression"),
        ("3 4", "operator before “4”"),
        ("4 512^2", "operator before “512”"),
        ("\ud800", "has no meaning"),
        ("lambda: 1", "“lambda” is not"),
        ("d if d else d", "“if” is not"),
        ("[d]", "has no meaning"),
        ("d == d", "has no meaning"),
    ],
)
def test_bad_input_gets_a_sentence(text: str, told: str) -> None:
    with pytest.raises(AnswerError, match=told.replace("(", r"\(")) as caught:
        evaluate(text, SYMBOLS)
    str(caught.value).encode("utf-8")  # printable anywhere


@given(
    st.recursive(
        st.sampled_from(["d", "H", "2", "13"]),
        lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        max_leaves=12,
    )
)
def test_agrees_with_python(text: str) -> None:
    if len(text) <= 200:
        assert evaluate(text, SYMBOLS) == eval(text, {}, dict(SYMBOLS))


def test_a_hundred_thousand_strings_neither_crash_nor_hang() -> None:
    draw = random.Random(251)
    likely = [
        "d",
        "n_kv",
        "d_h",
        "H",
        "1",
        "9",
        "0",
        ".",
        "e",
        "+",
        "-",
        "*",
        "/",
        "**",
        "(",
        ")",
        " ",
        "^",
        "_",
        ",",
    ]
    unlikely = [
        "²",
        "import",
        "'",
        '"',
        "[",
        "]",
        "lambda",
        ":",
        "=",
        "\n",
        "\t",
        "\\",
        "\x00",
        "é",
        "٣",
        "not",
        "~",
        "@",
        "\ud800",
    ]
    slowest = 0.0
    for _ in range(100_000):
        pieces = likely if draw.random() < 0.7 else likely + unlikely
        text = "".join(draw.choices(pieces, k=draw.randint(0, 60)))
        begun = time.process_time()
        with contextlib.suppress(AnswerError):
            evaluate(text, SYMBOLS)
        slowest = max(slowest, time.process_time() - begun)
    assert slowest < 0.1  # seconds of this process: the bound on size, not a benchmark
