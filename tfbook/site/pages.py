"""What every page gets: the theme's settings, the list of self-tests, and mended details."""

import json
import os
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective

from tfbook.exercises import exercises
from tfbook.exercises.code import Code
from tfbook.interactive import calculator, exercise_form
from tfbook.interactive.html import form_html

NOT_FOUND = """<h1>This page is not here</h1>
<p>It may have been renamed, or the link has a slip in it. Begin at
<a href="{0}chapters/index.html">the opening</a>, look a word up in
<a href="{0}genindex.html">the index</a>, or <a href="{0}search.html">search</a>.</p>"""
MATHJAX_PATH = "vendor/mathjax/tex-mml-chtml.js"


def set_theme(app: Sphinx, config: Config) -> None:
    """Local MathJax, no widget manager (committed outputs carry HTML), no second search header."""
    config.mathjax_path = MATHJAX_PATH
    config.nb_ipywidgets_js = {}
    config.html_theme_options["navbar_persistent"] = []
    config.notfound_urls_prefix = base = site_root()
    config.notfound_context = {"title": "This page is not here", "body": NOT_FOUND.format(base)}


def site_root() -> str:
    """The path at which the built book will stand: the page for missing pages can be served from anywhere.

    In a GitHub workflow it is that of the repository's Pages; otherwise the root of a server.
    """
    name = os.environ.get("GITHUB_REPOSITORY", "").partition("/")[2]
    return f"/{name}/" if name and not name.endswith(".github.io") else "/"


class CalculatorDirective(SphinxDirective):
    """`:::{calculator} kv-cache` puts a calculator into a Markdown page, with its first result."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The form, as HTML. Raises an error that names the page for an unknown calculator."""
        name = self.arguments[0]
        try:
            html = form_html(calculator(name))
        except KeyError as error:
            raise self.error(error.args[0]) from None
        return [nodes.raw("", html, format="html")]


class ExercisesDirective(SphinxDirective):
    """`:::{exercises} 2.5.6` puts all exercises of a section into a Markdown page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The forms, as HTML. Raises an error that names the page for an unknown section."""
        try:
            found = exercises(self.arguments[0])
        except KeyError as error:
            raise self.error(error.args[0]) from None
        return [nodes.raw("", form_html(exercise_form(one)), format="html") for one in found]


def complete_page(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Drop thebe's scripts, and give the page the ids of all self-tests for its progress line."""
    context["script_files"] = [script for script in context.get("script_files", []) if not _is_thebe(script)]
    by_section: dict[str, list[str]] = {}
    for exercise in exercises():
        if isinstance(exercise.kind, Code):
            continue  # answered in a notebook: the page cannot count it
        by_section.setdefault(exercise.section, []).append(exercise.id)
    data = json.dumps(by_section).replace("<", "\\u003c")
    context["body"] = (
        f'{context.get("body", "")}<script type="application/json" id="tfb-exercises">{data}</script>'
    )


def _is_thebe(script: Any) -> bool:
    """Whether a script belongs to thebe, which is off: it comes all the same, twice, and names a CDN."""
    source = f"{getattr(script, 'filename', script)}{getattr(script, 'attributes', {}).get('body', '')}"
    return "thebe" in source.lower()
