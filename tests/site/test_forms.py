"""The live forms: Python in the page answers, diagnoses, remembers, and says when it cannot."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.site.conftest import CHAPTER, HTML, Visit, new_context
from tests.strategies import BAD_ANSWERS
from tfbook.exercises import exercise, exercises
from tfbook.exercises.code import Code
from tfbook.exercises.kinds import Choice
from tfbook.interactive import call

PATIENCE = 60_000  # ms: the first touch starts Python, on a machine that may be busy


def form(page: Page, id: str) -> Locator:
    return page.locator(f"form#{id}")


def answer(page: Page, id: str, text: str) -> Locator:
    """Type an answer, press Check, and return the result once Python has answered."""
    card = form(page, f"exercise-{id}")
    card.locator("input[type=text]").fill(text)
    card.get_by_role("button", name="Check").click()
    result = card.locator(".tfb-result")
    expect(card).not_to_have_class("tfb-busy", timeout=PATIENCE)
    expect(result).not_to_be_empty(timeout=PATIENCE)
    page.wait_for_function(
        "id => !document.getElementById(id).matches('.tfb-busy')", arg=f"exercise-{id}", timeout=PATIENCE
    )
    return result


def test_the_calculator_answers_and_follows_its_sliders(visit: Visit) -> None:
    page = visit.open(CHAPTER)
    card = form(page, "calculator-attention")
    result = card.locator(".tfb-result")
    expect(result).to_contain_text("2,362,368 parameters")  # before any Python: the notebook's result
    card.get_by_label("H, query heads", exact=True).fill("48")
    expect(result).to_contain_text("100,663,296", timeout=PATIENCE)
    expect(result).to_contain_text("2,362,368 parameters")
    slider = card.get_by_label("H, query heads, slider")
    slider.focus()
    slider.press("Home")
    expect(card.get_by_label("H, query heads", exact=True)).to_have_value("1")
    expect(result).to_contain_text("2,097,152 numbers", timeout=PATIENCE)
    card.get_by_label("H, query heads", exact=True).fill("7")
    expect(result).to_contain_text("H=7 does not divide d=768", timeout=PATIENCE)


def test_answers_are_diagnosed_accepted_and_remembered(visit: Visit) -> None:
    page = visit.open(CHAPTER)
    asked = exercise("mha-parameters")
    forgotten = next(mistake for mistake in asked.mistakes if mistake.name == "biases-forgotten")
    result = answer(page, asked.id, str(forgotten.answer))
    expect(result).to_contain_text("Each of the four maps also has a bias")
    result = answer(page, asked.id, "4*512^2 + 4*512")
    expect(result).to_contain_text("Correct.")
    expect(page.locator("[data-tfb-progress]")).to_contain_text("1 of 10 self-tests answered in this section")
    page.reload()
    expect(form(page, "exercise-mha-parameters").locator(".tfb-mark")).to_contain_text("answered")
    visit.open("chapters/index")
    total = sum(not isinstance(e.kind, Code) for e in exercises())
    expect(page.locator("[data-tfb-progress]")).to_contain_text(
        f"1 of {total} self-tests answered in the book"
    )
    page.get_by_role("button", name="Start over").click()
    expect(page.locator("[data-tfb-progress]")).to_contain_text("0 of 10")


def test_choices_and_enter_key(visit: Visit) -> None:
    page = visit.open(CHAPTER)
    card = form(page, "exercise-mha-reduce-to-one")
    card.get_by_label("a all heads have the same W_V").check()
    card.get_by_label("a all heads have the same W_V").press("Enter")
    expect(card.locator(".tfb-result")).to_contain_text("average", timeout=PATIENCE)
    expect(card.locator(".tfb-result mjx-container")).to_have_count(1)  # mathematics in an answer is set
    several = form(page, "exercise-mha-read-a-claim")
    for letter in "abd":
        several.locator(f"input[value={letter}]").check()
    several.get_by_role("button", name="Check").click()
    expect(several.locator(".tfb-result")).to_contain_text("Correct.", timeout=PATIENCE)


@pytest.mark.parametrize("id", ["mha-parameters", "gqa-parameters", "mha-shape-path"])
def test_bad_input_gets_a_sentence(visit: Visit, id: str) -> None:
    page = visit.open(CHAPTER)
    for text in BAD_ANSWERS:
        result = answer(page, id, text)
        told = result.inner_text()
        assert len(told) > 15, (text[:20], told)
        assert "Correct" not in told
        assert result.locator("img").count() == 0
    truth = exercise(id).truth
    right = ", ".join(map(str, truth)) if isinstance(truth, tuple) else str(truth)
    expect(answer(page, id, right)).to_contain_text("Correct.")  # and it still works afterwards


def test_the_page_says_what_the_package_says(visit: Visit) -> None:
    """Every mistake of every exercise, asked of the Python in the page: the same HTML, to the letter."""
    page = visit.open(CHAPTER)
    requests = list(every_known_answer())
    assert len(requests) > 40
    seen = page.evaluate(
        """async requests => {
            const worker = new Worker("../_live/worker.mjs", {type: "module"});
            const answers = {};
            return await new Promise((resolve, reject) => {
                worker.onmessage = ({data}) => {
                    if (data.kind === "fatal") reject(data.reason);
                    if (data.kind === "answer") answers[data.ticket] = data.response;
                    if (Object.keys(answers).length === requests.length) resolve(Object.values(answers));
                };
                requests.forEach((request, ticket) => worker.postMessage({ticket, request}));
            });
        }""",
        requests,
    )
    assert seen == [json.loads(call(request)) for request in requests]


def every_known_answer() -> Iterator[str]:
    for asked in exercises():
        if isinstance(asked.kind, Code):
            continue
        for given in (asked.truth, *(mistake.answer for mistake in asked.mistakes)):
            value = sorted(given) if isinstance(asked.kind, Choice) else str(given)
            request = {"name": "exercise", "arguments": {"id": asked.id, "values": {"answer": value}}}
            yield json.dumps(request)


def test_without_javascript_the_page_reads_and_says_what_is_off(browser: Browser, address: str) -> None:
    context = new_context(browser, address, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}{CHAPTER}.html")
    card = form(page, "exercise-mha-parameters")
    expect(card.get_by_text("JavaScript brings this form to life")).to_be_visible()
    expect(card.get_by_role("button", name="Check")).to_be_disabled()
    card.get_by_text("Answer and how to get there").click()
    expect(card.get_by_text("1,050,624")).to_be_visible()
    expect(form(page, "calculator-attention")).to_contain_text("2,362,368 parameters")
    context.close()


@pytest.mark.parametrize("missing", ["pyodide.asm.wasm", "worker.mjs", "tfbook.zip"])
def test_with_a_runtime_file_missing_the_page_says_so(browser: Browser, address: str, missing: str) -> None:
    context = new_context(browser, address)
    context.route(f"**/{missing}", lambda route: route.fulfill(status=404, body="gone"))
    page = Visit(context.new_page(), address).open(CHAPTER)
    card = form(page, "exercise-mha-parameters")
    card.locator("input").fill("1")
    expect(card.get_by_role("status")).to_contain_text("Python does not run here", timeout=PATIENCE)
    expect(card.get_by_role("button", name="Check")).to_be_disabled()
    card.get_by_text("Hint 1").click()
    expect(card.get_by_text("One head has three matrices")).to_be_visible()
    context.close()


def test_opened_as_a_file_the_page_says_how_to_serve_it(browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto((HTML / f"{CHAPTER}.html").as_uri())
    card = form(page, "exercise-mha-parameters")
    card.locator("input").focus()
    expect(card.get_by_role("status")).to_contain_text("make serve")
    expect(page.locator("mjx-container").first).to_be_visible()
    context.close()


def test_a_verdict_goes_when_the_answer_changes(visit: Visit) -> None:
    page = visit.open(CHAPTER)
    result = answer(page, "mha-parameters", "1")
    expect(result).not_to_be_empty()
    form(page, "exercise-mha-parameters").locator("input").fill("12")
    expect(result).to_be_empty()


def test_progress_survives_a_browser_without_storage_and_other_tabs(browser: Browser, address: str) -> None:
    context = new_context(browser, address)
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('off') }})"
    )
    page = Visit(context.new_page(), address).open(CHAPTER)
    answer(page, "mha-parameters", str(exercise("mha-parameters").truth))
    answer(page, "mha-score-count", str(exercise("mha-score-count").truth))
    expect(page.locator("[data-tfb-progress]")).to_contain_text("2 of 10")
    context.close()
    context = new_context(browser, address)
    first, second = (Visit(context.new_page(), address).open(CHAPTER) for _ in range(2))
    first.evaluate("localStorage.setItem('tfbook:answered', '[\"mha-parameters\", \"of-another-section\"]')")
    expect(second.locator("[data-tfb-progress]")).to_contain_text("1 of 10")
    second.get_by_role("button", name="Start over").click()
    assert second.evaluate("localStorage.getItem('tfbook:answered')") == '["of-another-section"]'
    context.close()


def test_a_failed_start_can_be_tried_again(browser: Browser, address: str) -> None:
    context = new_context(browser, address)
    context.route("**/tfbook.zip", lambda route: route.fulfill(status=503, body="busy"))
    page = Visit(context.new_page(), address).open(CHAPTER)
    card = form(page, "exercise-mha-parameters")
    card.locator("input").fill("1")
    expect(card.get_by_role("status")).to_contain_text("503", timeout=PATIENCE)
    context.unroute("**/tfbook.zip")
    card.get_by_role("button", name="Try again").click()
    expect(answer(page, "mha-parameters", "1")).to_contain_text("Not yet", timeout=PATIENCE)
    context.close()
