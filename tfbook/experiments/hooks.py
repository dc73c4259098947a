"""Hooks that live as long as a block of code, whatever happens in it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch.utils.hooks import RemovableHandle


@contextmanager
def hooked(handles: Iterable[RemovableHandle]) -> Iterator[None]:
    """Remove these hooks at the end of the block."""
    kept = list(handles)
    try:
        yield
    finally:
        for handle in kept:
            handle.remove()
