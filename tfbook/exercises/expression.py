"""Arithmetic that a reader types: names, numbers, + - * / ** and parentheses, nothing else.

An answer is data, never code. It is read into a syntax tree, every node of which is one of a
handful of kinds, and evaluated exactly, in integers and fractions of bounded size. What people
write by hand is understood too: `4d^2`, `2dn_{kv}d_h`, `1,050,624`, `4·d`.
"""

import ast
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

LONGEST = 200  # characters
LARGEST_BITS = 4096  # of any intermediate result
LARGEST_EXPONENT = 64


class AnswerError(ValueError):
    """An answer that cannot be read; its message tells the reader how to write one."""


_TOKEN = re.compile(
    r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|[-+*/()]))"
)
_SIGNS = str.maketrans(dict.fromkeys("·×⋅∙∗", "*") | {"−": "-", "–": "-", "÷": "/", "^": "**", "\u200b": ""})
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
# 1,050,624 anywhere; with spaces only where the number is the whole answer, since "4 512" may mean a product.
_THOUSANDS = re.compile(r"(?<![\d.])\d{1,3}([,_])\d{3}(?:\1\d{3})*(?!\d)")
_SPACED_THOUSANDS = re.compile(r"\d{1,3}([ '\u00a0\u2009\u202f])\d{3}(?:\1\d{3})*")
_OPERATIONS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
}


def evaluate(text: str, symbols: Mapping[str, int]) -> Fraction:
    """The exact value of an expression when its symbols have these values.

    Raises AnswerError with a sentence for the reader: empty, too long, unknown symbol,
    unreadable, divided by zero, exponent or result too large.
    """
    return _value(parse(text, symbols), symbols)


def parse(text: str, symbols: Mapping[str, int]) -> ast.expr:
    """The syntax tree of an expression in these symbols. Raises AnswerError where there is none."""
    source = " ".join(_tokens(text, symbols))
    try:
        return ast.parse(source, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):  # all three mean: not a readable expression
        raise AnswerError(
            f"“{shown(text)}” is not a complete expression; check its operators and parentheses"
        ) from None


def shown(text: str, most: int = 40) -> str:
    """What the reader typed, short enough to repeat in a message."""
    line = " ".join(text.split()).encode("utf-8", "replace").decode("utf-8")  # no lone surrogates
    return line if len(line) <= most else line[: most - 1] + "…"


def _tokens(text: str, symbols: Mapping[str, int]) -> list[str]:
    if not text.strip():
        raise AnswerError("The box is empty; type an answer first")
    if len(text) > LONGEST:
        raise AnswerError(f"That is {len(text):,} characters long; an answer here fits in {LONGEST}")
    text = _plain(text)
    tokens: list[str] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            sign = text[position:].lstrip()[0]
            raise AnswerError(f"“{shown(sign)}” has no meaning here; use {_vocabulary(symbols)}")
        number, name, sign = match.groups()
        pieces = _symbols_in(name, symbols) if name else [(number and _literal(number)) or sign]
        if pieces is None:
            raise AnswerError(
                f"“{shown(name)}” is not made of the symbols here; use {_vocabulary(symbols)}, "
                "with a space or * between factors"
            )
        if tokens and _ends_a_factor(tokens[-1]):
            if number:
                raise AnswerError(f"Put an operator before “{shown(number)}”, or one number first, as in 4 d")
            if name or sign == "(":
                tokens.append("*")  # 4d and 2(d + 1) mean products
        tokens.append(" * ".join(pieces))
        position = match.end()
    return tokens


def _plain(text: str) -> str:
    """The text in plain signs: what people write by hand or copy from a page, in the evaluator's own."""
    text = text.translate(_SIGNS).strip().removeprefix("=").strip()
    if _SPACED_THOUSANDS.fullmatch(text):
        return re.sub(r"\D", "", text)
    text = re.sub("[⁰¹²³⁴-⁹]+", lambda match: f"**{match[0].translate(_SUPERSCRIPTS)}", text)
    text = re.sub(r"_\{(\w+)\}", r"_\1", text).replace("{", "(").replace("}", ")")  # n_{kv}, d^{2}
    text = re.sub(r"(?<=[\w)])\s+x\s+(?=[\w(])", "*", text)  # d x d; no symbol of the book is called x
    return _THOUSANDS.sub(lambda match: match[0].replace(match[1], ""), text)


def _ends_a_factor(token: str) -> bool:
    return token[-1] == ")" or token[-1].isalnum() or token[-1] == "_"


def _symbols_in(name: str, symbols: Mapping[str, int]) -> list[str] | None:
    """The symbols whose product a run of letters means (dH is d H, dn_kv is d n_kv), or None.

    Underscores may be missing, as in `nkv`. The longest symbol wins, so `d_h` is never d and h.
    """
    if not name:
        return []
    for symbol in sorted(symbols, key=len, reverse=True):
        for written in {symbol, symbol.replace("_", "")}:
            if name.startswith(written):
                rest = _symbols_in(name.removeprefix(written), symbols)
                if rest is not None:
                    return [symbol, *rest]
    return None


def _literal(number: str) -> str:
    exponent = re.search(r"[eE]([+-]?\d+)$", number)
    if exponent and abs(int(exponent[1])) > LARGEST_EXPONENT:
        raise AnswerError(f"“{shown(number)}” is beyond any size that occurs here; check the exponent")
    value = Fraction(number)
    return str(value.numerator) if value.denominator == 1 else f"({value.numerator}/{value.denominator})"


def _vocabulary(symbols: Mapping[str, int]) -> str:
    signs = "numbers, + - * / ** and parentheses"
    return f"{', '.join(symbols)}, {signs}" if symbols else signs


def _value(node: ast.expr, symbols: Mapping[str, int]) -> Fraction:
    match node:
        case ast.Constant(value=int() as number):
            return _bounded(Fraction(number))
        case ast.Name(id=name):
            return Fraction(symbols[name])
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            value = _value(operand, symbols)
            return -value if isinstance(sign, ast.USub) else value
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _bounded(_power(_value(left, symbols), _value(right, symbols)))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            divisor = _value(right, symbols)
            if divisor == 0:
                raise AnswerError("That divides by zero")
            return _bounded(_value(left, symbols) / divisor)
        case ast.BinOp(left=left, op=operation, right=right):
            return _bounded(_OPERATIONS[type(operation)](_value(left, symbols), _value(right, symbols)))
    raise AnswerError("That is not a complete expression; check its operators and parentheses")


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        raise AnswerError("Exponents here are whole numbers")
    if abs(exponent) > LARGEST_EXPONENT:
        raise AnswerError(f"That exponent is too large; nothing here needs one above {LARGEST_EXPONENT}")
    if base == 0 and exponent < 0:
        raise AnswerError("That divides by zero")
    if _bits(base) * abs(exponent) > LARGEST_BITS:
        raise AnswerError("That number is far larger than any that occurs here; check the exponents")
    return Fraction(base ** int(exponent))


def _bounded(value: Fraction) -> Fraction:
    if _bits(value) > LARGEST_BITS:
        raise AnswerError("That number is far larger than any that occurs here; check the exponents")
    return value


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())
