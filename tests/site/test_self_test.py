"""Orders, blanks, redrawn numbers, the mixed test, and progress that can be carried away."""

import json
import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.site.conftest import Visit
from tfbook.exercises import exercise, exercises
from tfbook.exercises.code import Code
from tfbook.interactive.mixed_test import QUESTIONS

EXERCISES, SELF_TEST = "chapters/exercises", "chapters/self-test"
PATIENCE = 60_000  # ms: the first touch starts Python


def card(page: Page, id: str) -> Locator:
    return page.locator(f"form#exercise-{id}")


def check(form: Locator) -> Locator:
    form.get_by_role("button", name="Check").click()
    result = form.locator(".tfb-result")
    expect(result).not_to_be_empty(timeout=PATIENCE)
    return result


def test_items_are_ordered_by_buttons_and_by_keyboard(visit: Visit) -> None:
    page = visit.open(EXERCISES)
    asked = exercise("ffn-swiglu-order")
    form = card(page, asked.id)
    expect(check(form)).to_contain_text("in their place", timeout=PATIENCE)
    wanted = list(asked.truth)
    for place, key in enumerate(wanted):
        button = form.get_by_label(f"move {key} up")
        while form.locator("li").nth(place).get_attribute("data-key") != key:
            button.focus()
            button.press("Enter")
    expect(check(form)).to_contain_text("Correct.", timeout=PATIENCE)


def test_items_are_ordered_by_dragging(visit: Visit) -> None:
    page = visit.open(EXERCISES)
    form = card(page, "account-order")
    items = form.locator("li")
    first = items.nth(0).get_attribute("data-key")
    items.nth(0).scroll_into_view_if_needed()
    items.nth(0).locator("span").drag_to(items.nth(3), target_position={"x": 20, "y": 33})
    expect(items.nth(3)).to_have_attribute("data-key", first or "")
    keys = ", ".join(item.get_attribute("data-key") or "" for item in items.all())
    expect(form.locator("input[type=hidden]")).to_have_value(keys)


def test_blanks_are_diagnosed_one_by_one(visit: Visit) -> None:
    page = visit.open(SELF_TEST)
    form = card(page, "self-test-4")
    boxes = form.locator("input[type=text]")
    for box, text in zip(boxes.all(), ["0.75 GiB", "0.75 GiB", "1.125 GiB"], strict=True):
        box.fill(text)
    expect(check(form)).to_contain_text("only n_kv heads are kept", timeout=PATIENCE)
    boxes.nth(1).fill("192 MiB")
    expect(check(form)).to_contain_text("Those are parameters", timeout=PATIENCE)
    boxes.nth(2).fill("2.25 GiB")
    expect(check(form)).to_contain_text("Correct.", timeout=PATIENCE)
    form = card(page, "self-test-3")
    form.locator('input[name="answer.0"][value=b]').check()
    form.locator('input[name="answer.1"][value=a]').check()
    form.locator('input[name="answer.2"][value=b]').check()
    expect(check(form)).to_contain_text("not about final quality", timeout=PATIENCE)


def test_another_like_this_has_other_numbers_and_is_judged_by_them(visit: Visit) -> None:
    page = visit.open(EXERCISES)
    asked = exercise("kv-whole")
    form = card(page, asked.id)
    before = form.locator(".tfb-intro").inner_text()
    form.get_by_role("button", name="Another like this").click()
    expect(form.locator(".tfb-intro")).not_to_have_text(before, timeout=PATIENCE)
    other = exercise(asked.id, 1)
    assert other.truth != asked.truth
    form.locator("input[type=text]").fill(str(asked.truth))
    expect(check(form)).to_contain_text("Not yet.", timeout=PATIENCE)
    form.locator("input[type=text]").fill(str(other.truth))
    expect(check(form)).to_contain_text("Correct.", timeout=PATIENCE)
    expect(form.locator(".tfb-mark")).to_contain_text("answered")


def test_the_mixed_test_scores_first_answers_by_section(visit: Visit) -> None:
    page = visit.open(SELF_TEST)
    box = page.locator(".tfb-test")
    box.get_by_role("button", name="Start a test").click()
    forms = box.locator("form")
    expect(forms).to_have_count(QUESTIONS, timeout=PATIENCE)
    expect(box.locator(".tfb-clock")).to_contain_text(re.compile(r"(20:00|19:\d\d) left"))
    right = 0
    for form in forms.all():
        asks = json.loads(form.get_attribute("data-asks") or "{}")
        asked = exercise(asks["arguments"]["id"], asks["seed"])
        if form.locator("fieldset").count() or form.locator("input[type=text]").count() != 1:
            continue
        shown = ", ".join(map(str, asked.truth)) if isinstance(asked.truth, tuple) else str(asked.truth)
        form.locator("input[type=text]").fill(shown)
        expect(check(form)).to_contain_text("Correct.", timeout=PATIENCE)
        right += 1
    box.get_by_role("button", name="Finish").click()
    score = box.locator(".tfb-score")
    expect(score).to_contain_text(f"{right} of {QUESTIONS} right at the first answer", timeout=PATIENCE)
    for link in score.locator("a").all():
        target = link.get_attribute("href") or ""
        assert page.request.get(f"{visit.address}chapters/{target}").ok


def test_progress_is_saved_to_a_file_loaded_and_reset(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("chapters/index")
    place = page.locator("[data-tfb-progress]").first
    total = sum(not isinstance(e.kind, Code) for e in exercises())
    expect(place).to_contain_text(f"0 of {total} self-tests answered in the book")
    file = tmp_path / "tfbook-progress.json"
    file.write_text(
        json.dumps({"format": "tfbook-progress-1", "answered": ["kv-whole", "ffn-share", "no-such-id"]})
    )
    page.get_by_label("Load a file").set_input_files(file)
    expect(place).to_contain_text(f"2 of {total} self-tests answered")
    expect(place).to_contain_text("2.5.6: 1 of")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save to a file").click()
    saved = json.loads(Path(download.value.path()).read_text())
    assert saved == {"format": "tfbook-progress-1", "answered": ["ffn-share", "kv-whole", "no-such-id"]}
    for wrong in ("[]", "{", '{"format": "tfbook-progress-1", "answered": [1]}', '{"answered": ["x"]}'):
        file.write_text(wrong)
        page.get_by_label("Load a file").set_input_files(file)
        expect(place).to_contain_text("no progress file of the book")
        expect(place).to_contain_text(f"2 of {total} self-tests answered")
    page.get_by_role("button", name="Start over").click()
    expect(place).to_contain_text(f"0 of {total} self-tests answered")
