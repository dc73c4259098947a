"""Mends faults of the theme and of other extensions in the finished pages.

Each is a fault that axe-core reports and that no setting reaches. A mend that finds nothing
left to mend is reported as a warning, and so fails the build: then it is time to remove it.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

MENDS = (
    # A label that hides the words on the button: speech control cannot press "Search Ctrl+K".
    (r'(<button class="btn search-button-field[^>]*?) aria-label="Search"', r"\1"),
    (r'(<button class="[^"]*theme-switch-button[^>]*?) aria-label="Color mode"', r"\1"),
    (r'<summary aria-label="Toggle hidden content">', "<summary>"),
    # A list role on entries that are not list items.
    (r'<div role="list" class="citation-list">', '<div class="citation-list">'),
)

log = logging.getLogger(__name__)


def mend_pages(app: Sphinx, error: Exception | None) -> None:
    """Apply every mend to every page of a finished HTML build."""
    if error or app.builder.format != "html":
        return
    counts = [0] * len(MENDS)
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text("utf-8")
        for index, (pattern, replacement) in enumerate(MENDS):
            text, found = re.subn(pattern, replacement, text)
            counts[index] += found
        path.write_text(text, "utf-8")
    for count, (pattern, _) in zip(counts, MENDS, strict=True):
        if not count:
            log.warning("tfbook: this mend found nothing and can go: %s", pattern)
