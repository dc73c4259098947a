"""The mixed test as ipywidgets, for a live kernel."""

import random
import time

import ipywidgets as ipw

from tfbook.interactive.exercise_forms import exercise_form
from tfbook.interactive.mixed_test import MixedTest, questions, score_html
from tfbook.interactive.widgets import build_widget


def build_test_widget(test: MixedTest) -> ipw.VBox:
    """Start, ten questions, finish, score. The first answer to each question counts."""
    start, finish = (
        ipw.Button(description="Start a test", button_style="primary"),
        ipw.Button(description="Finish"),
    )
    body, score = ipw.VBox(), ipw.HTML()
    asked: list[tuple[str, str]] = []
    first: dict[str, bool] = {}
    begun = 0.0

    def note(id: str, right: bool) -> None:
        first.setdefault(id, right)

    def begin(_: object) -> None:
        nonlocal begun
        drawn = questions(random.randrange(2**31))
        asked[:] = [(one.id, one.section) for one in drawn]
        first.clear()
        score.value, begun = "", time.monotonic()
        body.children = [
            *(build_widget(exercise_form(one), note) for one in drawn),
            finish,
        ]

    def end(_: object) -> None:
        results: dict[str, list[bool]] = {}
        for id, section in asked:
            results.setdefault(section, []).append(first.get(id, False))
        minutes = (time.monotonic() - begun) / 60
        late = f"<p>You took {minutes:.0f} of {test.minutes} minutes.</p>"
        score.value = score_html(results) + late

    start.on_click(begin)
    finish.on_click(end)
    return ipw.VBox([ipw.HTML(test.intro), start, body, score])
