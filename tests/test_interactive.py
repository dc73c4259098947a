"""One form, two front ends: the same answers as HTML, as widgets and through `call`."""

import importlib
import itertools
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import ipywidgets as ipw
import pytest

import tests.example_exercise
from tests.example_exercise import MINE
from tests.strategies import BAD_ANSWERS
from tfbook.accounting import PRESETS, kv_cache, preset
from tfbook.exercises import _SECTIONS as SECTIONS
from tfbook.exercises import exercise, exercises
from tfbook.exercises.authoring import example_answer
from tfbook.exercises.compound import Blanks, Number
from tfbook.interactive import calculator, call, exercise_form
from tfbook.interactive.calculators import CALCULATORS
from tfbook.interactive.html import form_html
from tfbook.interactive.markup import to_html
from tfbook.interactive.mixed_test import QUESTIONS, MixedTest, questions
from tfbook.interactive.mixed_widget import build_test_widget
from tfbook.interactive.svg import bars, curves, stacked_bar
from tfbook.interactive.widgets import build_widget

FORMS = [*(exercise_form(e) for e in exercises()), *map(calculator, CALCULATORS)]


def ask(name: str, id: str, **values: object) -> dict[str, str]:
    answer = json.loads(call(json.dumps({"name": name, "arguments": {"id": id, "values": values}})))
    assert answer.keys() == {"html", "status"}
    return answer


class Balance(HTMLParser):
    """Checks that every element that is opened is closed, in order."""

    VOID = ("input", "br", "hr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An SVG shape closes itself."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.id)
def test_the_html_is_whole_and_every_field_has_a_name(form) -> None:
    html = form_html(form)
    parser = Balance()
    parser.feed(html)
    assert not parser.open
    inputs = sum(html.count(f"<{tag}") for tag in ("input", "select", "textarea"))
    assert inputs >= len(form.fields)
    assert "Not live here" in html and 'role="status"' in html
    assert html.count("<details>") == len(form.folds)
    assert html.count('<details class="tfb-group">') == len({f.group for f in form.fields if f.group})


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.id)
def test_the_first_state_is_what_call_answers(form) -> None:
    if form.name == "calculator":
        assert ask("calculator", form.id)["html"] == form.first


def test_answers_have_a_status_and_show_what_was_typed_as_text() -> None:
    assert ask("exercise", "mha-parameters", answer="1050624")["status"] == "correct"
    assert ask("exercise", "mha-parameters", answer="1")["status"] == "wrong"
    hostile = ask("exercise", "mha-parameters", answer="<img/src=x onerror=alert(1)>")
    assert hostile["status"] == "unreadable" and "<img" not in hostile["html"]
    symbols = ask("exercise", "gqa-parameters", answer="<b>d</b>")
    assert "<b>d" not in symbols["html"]


@pytest.mark.parametrize("bad", [*BAD_ANSWERS, "-5", "0", "1.5"])
@pytest.mark.parametrize("field", ["d_model", "n_heads", "n_kv_heads", "d_head", "batch", "length"])
def test_the_calculator_refuses_bad_input_with_a_sentence(field: str, bad: str) -> None:
    answer = ask("calculator", "attention", **{field: bad})
    if not bad and field in ("n_kv_heads", "d_head"):
        assert answer["status"] == "ok"  # blank means the usual value
        return
    assert answer["status"] == "error"
    assert len(answer["html"]) > 25 and "<img" not in answer["html"]


def test_the_calculator_counts() -> None:
    assert "2,362,368 parameters" in ask("calculator", "attention")["html"]
    assert "exactly 4d²" in ask("calculator", "attention", bias=False)["html"]
    assert (
        "6,291,456 parameters"
        in ask(
            "calculator", "attention", d_model="1024", n_heads="16", n_kv_heads="8", d_head="128", bias=False
        )["html"]
    )


MODEL = [id for id in CALCULATORS if id != "attention"]


@pytest.mark.parametrize("bad", [*BAD_ANSWERS, "-5", "0", "1.5", "80 Gb"])
@pytest.mark.parametrize("id", MODEL)
def test_the_calculators_of_models_refuse_bad_input_with_a_sentence(id: str, bad: str) -> None:
    blank_means_usual = ("config", "n_layers", "d_model", "n_heads", "n_kv_heads", "d_head", "d_ff", "vocab_size",
                         "group_size", "source_length", "reserve", "kv_dtype")  # fmt: skip
    for field in CALCULATORS[id].fields:
        answer = ask("calculator", id, **{field.name: bad})
        allowed = (not bad and field.name in blank_means_usual) or (field.name, bad) in (
            ("memory", "0"), ("reserve", "0"), ("memory", ""), ("source_length", bad),
        )  # fmt: skip
        assert "<img" not in answer["html"]
        if not allowed:
            assert answer["status"] == "error", (field.name, bad, answer)
            assert len(answer["html"]) > 25


@pytest.mark.parametrize("id", MODEL)
def test_a_pasted_config_stands_in_place_of_the_preset(id: str) -> None:
    text = json.dumps(PRESETS["qwen2-0.5b"].config)
    assert ask("calculator", id, config=text) == ask("calculator", id, preset="qwen2-0.5b")
    refused = ask("calculator", id, config=text[:-1] + ', "<script>": 1}')
    assert refused["status"] == "error" and "<script>" not in refused["html"]
    assert "not known for model_type=" in refused["html"]


@pytest.mark.parametrize("id", MODEL)
def test_every_preset_is_answered_and_sizes_can_be_changed(id: str) -> None:
    field = next(field for field in CALCULATORS[id].fields if field.name == "preset")
    answers = {name: ask("calculator", id, preset=name) for name, _ in field.options}
    assert all(answer["status"] == "ok" for answer in answers.values())
    assert len({answer["html"] for answer in answers.values()}) > len(answers) // 2
    assert ask("calculator", id, n_layers="1")["html"] != ask("calculator", id)["html"]
    assert "n_kv=5 does not divide H=32" in ask("calculator", id, n_kv_heads="5")["html"]


def test_calculators_take_their_first_values() -> None:
    assert (
        calculator("kv-cache", preset="gpt2", length=1024).first
        == ask("calculator", "kv-cache", preset="gpt2", length="1024")["html"]
    )
    with pytest.raises(KeyError, match="has no field 'model'; use one of preset"):
        calculator("kv-cache", model="gpt2")
    with pytest.raises(KeyError, match="calculator 'kv' does not exist"):
        calculator("kv")


def test_the_cache_of_the_page_is_that_of_the_accounts() -> None:
    html = ask(
        "calculator", "kv-cache", preset="falcon-40b", batch="3", length="5000", dtype="fp8", group_size="64"
    )["html"]
    size = kv_cache(preset("falcon-40b"), 3, 5000, "fp8", group_size=64)
    assert f"exactly {size.bytes:,} bytes" in html and "16 times as much" in html
    assert "MHA, n_kv = 128" in html and "MQA, n_kv = 1" in html and "MLA, latent of" in html


@pytest.mark.parametrize(
    "request_",
    [
        {},
        [],
        "x",
        {"name": "exercise"},
        {"name": "os", "arguments": {"id": "x", "values": {}}},
        {"name": "exercise", "arguments": {"id": "none", "values": {}}},
        {"name": "calculator", "arguments": {"id": "none", "values": {}}},
    ],
)
def test_a_request_that_is_none_is_answered(request_: object) -> None:
    assert json.loads(call(json.dumps(request_)))["status"] == "error"


def widgets_of(box: ipw.Widget) -> list[ipw.Widget]:
    inner = getattr(box, "children", ())
    return [box, *(w for child in inner for w in widgets_of(child))]


def test_the_widget_answers_like_the_page() -> None:
    parts = widgets_of(build_widget(exercise_form(exercise("mha-parameters"))))
    text = next(w for w in parts if isinstance(w, ipw.Text))
    button = next(w for w in parts if isinstance(w, ipw.Button))
    text.value = "1048576"
    button.click()
    expected = ask("exercise", "mha-parameters", answer="1048576")["html"]
    assert any(isinstance(w, ipw.HTMLMath) and w.value == expected for w in parts)


def test_the_widget_of_a_choice_and_of_several() -> None:
    parts = widgets_of(build_widget(exercise_form(exercise("mha-reduce-to-one"))))
    next(w for w in parts if isinstance(w, ipw.RadioButtons)).value = "b"
    next(w for w in parts if isinstance(w, ipw.Button)).click()
    assert any("Correct." in w.value for w in parts if isinstance(w, ipw.HTMLMath))
    parts = widgets_of(build_widget(exercise_form(exercise("mha-read-a-claim"))))
    for box in [w for w in parts if isinstance(w, ipw.Checkbox)]:
        box.value = box.description[0] in "abd"
    next(w for w in parts if isinstance(w, ipw.Button)).click()
    assert any("Correct." in w.value for w in parts if isinstance(w, ipw.HTMLMath))


def test_the_widget_of_the_calculator_follows_its_sliders() -> None:
    parts = widgets_of(build_widget(calculator("attention")))
    heads = next(w for w in parts if isinstance(w, ipw.SelectionSlider) and w.description.startswith("H"))
    heads.value = 64
    assert any("d_h = 12" in w.value for w in parts if isinstance(w, ipw.HTMLMath))


def test_in_a_kernel_a_form_is_html_and_widget_and_in_colab_widget_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    form = exercise_form(exercise("mha-parameters"))
    importlib.import_module("ipykernel")
    view = "application/vnd.jupyter.widget-view+json"
    assert form._repr_mimebundle_().keys() == {"text/plain", "text/html", view}
    monkeypatch.setenv("COLAB_RELEASE_TAG", "x")
    assert form._repr_mimebundle_().keys() == {"text/plain", view}


def test_the_widgets_of_a_model_calculator() -> None:
    parts = widgets_of(build_widget(calculator("kv-cache")))
    next(w for w in parts if isinstance(w, ipw.Dropdown) and w.description == "Model").value = "gpt2"
    expected = ask("calculator", "kv-cache", preset="gpt2")["html"]
    assert any(isinstance(w, ipw.HTMLMath) and w.value == expected for w in parts)
    next(w for w in parts if isinstance(w, ipw.Textarea)).value = json.dumps(PRESETS["falcon-7b"].config)
    expected = ask("calculator", "kv-cache", preset="falcon-7b")["html"]
    assert any(isinstance(w, ipw.HTMLMath) and w.value == expected for w in parts)


def test_our_markdown_keeps_html_out_and_mathematics_in() -> None:
    html = to_html("<script>x</script> $a < b$ **b**")
    assert "<script>" not in html and r"\(a &lt; b\)" in html and "<strong>b</strong>" in html


def test_the_bar_has_its_shares() -> None:
    bar = stacked_bar([("x", 3), ("empty", 0), ("<y>", 1)], "Parts")
    assert "x: 3 (75.0%)" in bar and "&lt;y&gt;: 1 (25.0%)" in bar and "empty" not in bar


def test_bars_are_in_proportion() -> None:
    drawn = bars([("<a>", 50), ("b", 100), ("none", 0)], "Sizes", lambda n: f"{n} bytes")
    widths = [float(w) for w in re.findall(r'<rect x="0" y="\d+" width="([\d.]+)"', drawn)]
    assert widths == [198.0, 396.0, 1.0]  # nothing is a line, so that it is seen
    assert "&lt;a&gt;: 50 bytes" in drawn and "<a>" not in drawn


def test_curves_are_straight_where_they_grow_in_proportion() -> None:
    line = [(2**n, 3.0 * 2**n) for n in range(11)]
    drawn = curves([("a", line), ("flat", [(1, 8), (1024, 8)])], "T", ("x", "y"), (str, str), (32, 96.0))
    points = [tuple(map(float, p.split(","))) for p in re.findall(r'points="([^"]+)"', drawn)[0].split()]
    steps = {(round(b[0] - a[0], 0), round(b[1] - a[1], 0)) for a, b in itertools.pairwise(points)}
    assert len(steps) == 1
    assert points[5] == tuple(float(v) for v in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', drawn)[0])
    assert 2 <= drawn.count('text-anchor="middle"') <= 6


@pytest.mark.parametrize("module", ["tfbook", "tfbook.accounting", "tfbook.exercises", "tfbook.interactive"])
def test_the_pure_half_imports_neither_torch_nor_numpy_nor_widgets(module: str) -> None:
    """It runs in the reader's browser, where there is none of them. Every form is built and answered."""
    code = f"""
import sys, json, {module}
if {module!r} == "tfbook.interactive":
    from tfbook.interactive import calculator, call, exercise_form
    from tfbook.interactive.html import form_html
    from tfbook.exercises import exercises
    from tfbook.interactive.calculators import CALCULATORS
    for form in [*map(calculator, CALCULATORS), *map(exercise_form, exercises())]:
        form_html(form)
        call(json.dumps(dict(name=form.name, arguments=dict(id=form.id, values={{"answer": "1"}}))))
heavy = {{"torch", "numpy", "matplotlib", "ipywidgets", "IPython", "tqdm"}} & sys.modules.keys()
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_other_numbers_are_asked_and_judged_by_their_seed() -> None:
    asked = exercise("kv-whole", 7)
    form = ask_raw({"name": "redraw", "arguments": {"id": "kv-whole", "values": {"seed": 7}}})["html"]
    assert '"seed": 7' in form.replace("&quot;", '"') and asked.prompt.split("B = ")[1][:3] in form
    assert ask("exercise", "kv-whole", answer=str(asked.truth), seed=7)["status"] == "correct"
    assert ask("exercise", "kv-whole", answer=str(asked.truth))["status"] == "wrong"
    for seed in (-1, 2**40, "7", 1.5, None, [], True):  # what is no seed means the numbers of the book
        truth = str(exercise("kv-whole").truth)
        assert ask("exercise", "kv-whole", answer=truth, seed=seed)["status"] == "correct"


def ask_raw(request: object) -> dict[str, str]:
    return json.loads(call(json.dumps(request)))


@pytest.mark.parametrize("asked", [e for e in exercises() if isinstance(e.kind, Blanks)], ids=lambda e: e.id)
def test_blanks_are_answered_one_by_one(asked) -> None:
    def filled(answer: tuple[object, ...]) -> dict[str, object]:
        return {
            f"answer.{i}": _typed(b.kind, part)
            for i, (b, part) in enumerate(zip(asked.kind.blanks, answer, strict=True))
        }

    assert ask("exercise", asked.id, **filled(asked.truth))["status"] == "correct"
    for mistake in asked.mistakes:
        told = ask("exercise", asked.id, **filled(example_answer(asked, mistake)))
        assert told["status"] == "wrong"
    assert ask("exercise", asked.id)["status"] == "unreadable"


def _typed(kind: object, part: object) -> object:
    """An answer as a form sends it."""
    if isinstance(part, frozenset):
        return ", ".join(sorted(part))
    return part if isinstance(part, str) else f"{float(part):.12g}" if isinstance(kind, Number) else str(part)


def test_a_mixed_test_covers_all_sections_and_is_the_same_for_a_seed() -> None:
    for seed in range(20):
        drawn = questions(seed)
        assert len({one.id for one in drawn}) == QUESTIONS
        assert {one.section for one in drawn} == set(SECTIONS) - {"self-test"}
        assert [one.prompt for one in questions(seed)] == [one.prompt for one in drawn]
    html = ask_raw({"name": "test", "arguments": {"id": "mixed", "values": {"seed": 3}}})["html"]
    assert html.count("<form") == QUESTIONS
    assert len({tuple(one.id for one in questions(seed)) for seed in range(20)}) > 15


def test_the_score_is_by_section_with_links_to_what_was_missed() -> None:
    answers = [["2.5.1", True], ["2.5.1", False], ["2.5.6", True], ["<b>", True], "x", ["2.5.6"]]
    html = ask_raw({"name": "score", "arguments": {"id": "mixed", "values": {"answers": answers}}})["html"]
    assert "2 of 3 right at the first answer" in html and "<b>x" not in html
    assert 'href="2-5-1-multi-head-attention.html"' in html and "2-5-6" not in html
    assert "0 of 0" in ask_raw({"name": "score", "arguments": {"id": "mixed", "values": {}}})["html"]
    for name in ("test", "score"):
        assert ask_raw({"name": name, "arguments": {"id": "other", "values": {}}})["status"] == "error"


def test_the_widgets_of_orders_blanks_and_other_numbers() -> None:
    asked = exercise("ffn-swiglu-order")
    parts = widgets_of(build_widget(exercise_form(asked)))
    next(w for w in parts if isinstance(w, ipw.Text)).value = ", ".join(asked.truth)
    next(w for w in parts if isinstance(w, ipw.Button)).click()
    assert any("Correct." in w.value for w in parts if isinstance(w, ipw.HTMLMath))
    box = build_widget(exercise_form(exercise("self-test-2")))
    before = box.children[0].value
    next(
        w for w in widgets_of(box) if isinstance(w, ipw.Button) and w.description == "Another like this"
    ).click()
    assert box.children[0].value != before
    texts = [w for w in widgets_of(box) if isinstance(w, ipw.Text)]
    for text, part in zip(texts, exercise("self-test-2", 1).truth, strict=True):
        text.value = str(part)
    next(w for w in widgets_of(box) if isinstance(w, ipw.Button) and w.description == "Check").click()
    assert any("Correct." in w.value for w in widgets_of(box) if isinstance(w, ipw.HTMLMath))


def test_the_widget_of_the_mixed_test_counts_first_answers() -> None:
    box = build_test_widget(MixedTest())
    buttons = {w.description: w for w in widgets_of(box) if isinstance(w, ipw.Button)}
    buttons["Start a test"].click()
    checks = [w for w in widgets_of(box) if isinstance(w, ipw.Button) and w.description == "Check"]
    assert len(checks) == QUESTIONS
    text = next(w for w in widgets_of(box) if isinstance(w, ipw.Text))
    text.value = "1"
    next(w for w in widgets_of(box) if isinstance(w, ipw.Button) and w.description == "Finish").click()
    assert any(f"0 of {QUESTIONS} right" in w.value for w in widgets_of(box) if isinstance(w, ipw.HTML))
    bundle = MixedTest()._repr_mimebundle_()
    assert "tfb-test" in bundle["text/html"]


def test_the_teachers_example_works() -> None:
    assert MINE.check("48 KiB").correct
    for asked in (MINE, *(MINE.again(seed) for seed in range(20))):
        assert asked.check(asked.truth).correct
        for mistake in asked.mistakes:
            assert asked.check(mistake.answer).mistake == mistake.name
    text = Path(tests.example_exercise.__file__).read_text("utf-8")
    body = text.split("def cache_of_a_token")[1].split("def numbers")[0].strip().splitlines()
    assert len(body) <= 20, "the page promises 20 lines"
