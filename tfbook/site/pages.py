"""What every page gets: the theme's settings, the list of self-tests, and mended details."""

import json
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from tfbook.exercises import exercises

MATHJAX_PATH = "vendor/mathjax/tex-mml-chtml.js"


def set_theme(app: Sphinx, config: Config) -> None:
    """Local MathJax, no widget manager (committed outputs carry HTML), no second search header."""
    config.mathjax_path = MATHJAX_PATH
    config.nb_ipywidgets_js = {}
    config.html_theme_options["navbar_persistent"] = []


def complete_page(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Drop repeated scripts, and give the page the ids of all self-tests for its progress line."""
    seen: set[str] = set()
    scripts = []
    for script in context.get("script_files", []):
        name = str(getattr(script, "filename", script) or id(script))
        if "thebe" in name or name in seen:  # thebe is off; its scripts come all the same, and twice
            continue
        seen.add(name)
        scripts.append(script)
    context["script_files"] = scripts
    by_section: dict[str, list[str]] = {}
    for exercise in exercises():
        by_section.setdefault(exercise.section, []).append(exercise.id)
    data = json.dumps(by_section).replace("<", "\\u003c")
    context["body"] = (
        f'{context.get("body", "")}<script type="application/json" id="tfb-exercises">{data}</script>'
    )
