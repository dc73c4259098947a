"""A test of ten questions over all sections, drawn from a seed, with a clock and a score by section.

It is a form like the others: the same Python draws it in a notebook and on a static page. Only the
first answer to a question counts, as in a test; the diagnosis is shown all the same.
"""

import random
from dataclasses import dataclass
from html import escape
from typing import Any

from tfbook.exercises import Exercise, exercise, exercises
from tfbook.exercises.code import Code
from tfbook.interactive.exercise_forms import exercise_form, seed_of
from tfbook.interactive.form import Response, html_would_win, in_kernel
from tfbook.interactive.html import NOT_LIVE, form_html

QUESTIONS, MINUTES = 10, 20
# Where a section is read.
PAGES = {
    "2.5.1": "2-5-1-multi-head-attention.html",
    "2.5.2": "2-5-2-feed-forward.html",
    "2.5.3": "2-5-3-residual-and-normalization.html",
    "2.5.4": "2-5-4-three-layouts.html",
    "2.5.5": "2-5-5-shapes-and-parameters.html",
    "2.5.6": "2-5-6-training-and-inference.html",
    "2.5.7": "2-5-7-build-and-verify.html",
    "misconceptions": "misconceptions.html",
    "real-model": "a-real-model.html",
    "self-test": "self-test.html",
}


def questions(seed: int) -> list[Exercise]:
    """Ten exercises for a seed, at least one of each section, none that asks for code."""
    draw = random.Random(seed)
    by_section: dict[str, list[Exercise]] = {}
    for asked in exercises():
        if not isinstance(asked.kind, Code) and asked.section != "self-test":
            by_section.setdefault(asked.section, []).append(asked)
    chosen = [draw.choice(found) for found in by_section.values()]
    others = [asked for found in by_section.values() for asked in found if asked not in chosen]
    chosen += draw.sample(others, QUESTIONS - len(chosen))
    order = [asked.id for asked in exercises()]
    return [exercise(one.id, seed) for one in sorted(chosen, key=lambda one: order.index(one.id))]


def page_of(section: str) -> str:
    """The page where a section is read or practised, relative to the chapters' folder."""
    return PAGES.get(section, f"exercises.html#section-{section.replace('.', '-')}")


def respond_test(id: str, values: dict[str, Any]) -> Response:
    """The forms of a test, in the order of the book."""
    if id != "mixed":
        raise KeyError(id)
    asked = questions(seed_of(values) or 0)
    parts = [f'<div data-section="{one.section}">{form_html(exercise_form(one))}</div>' for one in asked]
    return Response("".join(parts))


@dataclass(frozen=True)
class MixedTest:
    """The test; as the last line of a cell it shows itself."""

    minutes: int = MINUTES

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": f"A test of {QUESTIONS} questions in {self.minutes} minutes"}
        if not html_would_win():
            bundle["text/html"] = self.to_html()
        if in_kernel():
            from tfbook.interactive.mixed_widget import build_test_widget

            widget = dict(build_test_widget(self)._repr_mimebundle_())
            widget.pop("text/plain", None)
            bundle |= widget
        return bundle

    def to_html(self) -> str:
        """The place of the test on a page; the page script fills it when the reader starts."""
        buttons = "".join(
            f'<button type="button" class="tfb-{name}" hidden>{text}</button> '
            for name, text in (("start", "Start a test"), ("finish", "Finish"))
        )
        return (
            f'<section class="tfb-test" data-minutes="{self.minutes}" aria-label="Mixed test">{self.intro}'
            f'<p>{buttons}<span class="tfb-clock" role="timer"></span></p>'
            f'<p class="tfb-note" role="status">{NOT_LIVE}</p>'
            '<div class="tfb-questions"></div><div class="tfb-score" aria-live="polite"></div></section>'
        )

    @property
    def intro(self) -> str:
        """What the test is, as HTML."""
        return (
            f'<p class="tfb-title">A test of {QUESTIONS} questions</p>'
            "<p>Drawn over all sections, with other numbers each time. "
            f"You have {self.minutes} minutes; the first answer to each question counts.</p>"
        )


def score_html(results: dict[str, list[bool]]) -> str:
    """The score by section, with links to what was missed. `results` has the first verdicts."""
    right, asked = sum(map(sum, results.values())), sum(map(len, results.values()))
    rows = "".join(
        f"<tr><td>{escape(section)}</td><td class=tfb-number>{sum(found)} of {len(found)}</td>"
        f"<td>{'' if all(found) else _again(section)}</td></tr>"
        for section, found in results.items()
    )
    heads = "<tr><th>section</th><th>right at once</th><th></th></tr>"
    table = f"<table><thead>{heads}</thead><tbody>{rows}</tbody></table>"
    return f"<p><b>{right} of {asked} right at the first answer.</b></p>{table}"


def _again(section: str) -> str:
    return f'<a href="{page_of(section)}">read and practise {escape(section)}</a>'


def respond_score(id: str, values: dict[str, Any]) -> Response:
    """The score of a finished test, from the sections and first verdicts that the page noted."""
    if id != "mixed":
        raise KeyError(id)
    results: dict[str, list[bool]] = {}
    known = {asked.section for asked in exercises()}
    for entry in values.get("answers", []) if isinstance(values.get("answers"), list) else []:
        match entry:
            case [str(section), bool(right)] if section in known:
                results.setdefault(section, []).append(right)
    return Response(score_html(results))
