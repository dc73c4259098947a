"""Docstrings for the API reference: they are plain text, and Sphinx reads reStructuredText."""

import re
from typing import Any

from sphinx.application import Sphinx


def as_restructured_text(
    app: Sphinx, what: str, name: str, subject: Any, options: Any, lines: list[str]
) -> None:
    """Code in single backticks becomes code; stars and trailing underscores stay themselves."""
    for index, line in enumerate(lines):
        parts = re.split(r"(`[^`]+`)", line)
        lines[index] = "".join(
            f"`{part}`" if part.startswith("`") else re.sub(r"([*|]|\w_(?=\W|$))", _escaped, part)
            for part in parts
        )


def _escaped(match: re.Match[str]) -> str:
    return match[0][:-1] + "\\" + match[0][-1]
