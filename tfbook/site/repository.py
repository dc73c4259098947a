"""Which public repository the launch, edit and issue links of a build lead to.

A fork gets its own links without editing anything: `GITHUB_REPOSITORY` (set in GitHub's
workflows), else the git remote `origin`, else `repository.url` in `_config.yml`. Where none of
them names a public repository the buttons are left out: no link is better than a dead one.
"""

import os
import re
import subprocess
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

PLACEHOLDER = "OWNER"  # the owner in the repository.url of a book that has no public home yet
_GITHUB = re.compile(r"(?:https://|git@|ssh://git@)github\.com[/:](?P<slug>[\w.-]+/[\w.-]+?)(?:\.git)?/?$")
_LINKS = (
    "launch_buttons",
    "use_repository_button",
    "use_edit_page_button",
    "use_issues_button",
    "use_source_button",
)

log = logging.getLogger(__name__)


def set_links(app: Sphinx, config: Config) -> None:
    """Point the theme's buttons at the repository, or leave them out and say so."""
    options = config.html_theme_options
    url = find_repository(Path(app.srcdir), options.get("repository_url", ""))
    if url:
        options["repository_url"] = url
        return
    for name in ("repository_url", *_LINKS):
        options.pop(name, None)
    log.info("tfbook: no public repository is known, so this build has no launch, edit or issue buttons")


def find_repository(folder: Path, configured: str) -> str | None:
    """The https URL of the public GitHub repository, or None."""
    if slug := os.environ.get("GITHUB_REPOSITORY"):
        return f"https://github.com/{slug}"
    for candidate in (_origin(folder), configured):
        match = _GITHUB.match(candidate)
        if match and not match["slug"].startswith(f"{PLACEHOLDER}/"):
            return f"https://github.com/{match['slug']}"
    return None


def _origin(folder: Path) -> str:
    """The address of the remote `origin`, or nothing where this folder is no git checkout of its own."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != folder.resolve():  # a copy inside somebody else's repository
        return ""
    return _git(folder, "remote", "get-url", "origin")


def _git(folder: Path, *arguments: str) -> str:
    """What git prints, or nothing where it fails or is not installed."""
    try:
        run = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return run.stdout.strip()
