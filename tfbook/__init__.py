"""tfbook: the Transformer, executable. The package behind the book's chapters.

Importing it costs nothing: names are loaded when first used (PEP 562), so that the
arithmetic half runs where torch is not installed, such as in a reader's browser.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {"TransformerConfig": "tfbook.config", "device": "tfbook.hardware"}

__all__ = ["TransformerConfig", "__version__", "device"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tfbook' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
