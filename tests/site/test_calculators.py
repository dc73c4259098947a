"""The page of calculators: presets, pasted files, links that bring a state back."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, expect

from tests.site.conftest import Visit
from tfbook.accounting import PRESETS
from tfbook.interactive import call
from tfbook.interactive.calculators import CALCULATORS

PAGE = "chapters/calculators"
PATIENCE = 60_000  # ms: the first touch starts Python


def card(visit: Visit, id: str) -> Locator:
    return visit.open(PAGE).locator(f"form#calculator-{id}")


def test_every_calculator_stands_there_with_its_first_result(visit: Visit) -> None:
    page = visit.open(PAGE)
    for id in CALCULATORS.keys() - {"attention"}:
        expect(page.locator(f"form#calculator-{id} .tfb-result")).not_to_be_empty()
    expect(page.locator("#calculator-kv-cache .tfb-result")).to_contain_text("exactly 1,073,741,824 bytes")


def test_a_preset_and_a_changed_size_are_answered(visit: Visit) -> None:
    form = card(visit, "parameters")
    result = form.locator(".tfb-result")
    form.get_by_label("Model", exact=True).select_option("mixtral-8x7b")
    expect(result).to_contain_text("46,702,792,704 parameters", timeout=PATIENCE)
    expect(result).to_contain_text("12,879,925,248")
    form.get_by_text("Change a size").click()
    form.get_by_label("L, layers").fill("1")
    expect(result).to_contain_text("1,713,")


def test_a_pasted_config_is_counted_or_refused_by_name(visit: Visit) -> None:
    form = card(visit, "kv-cache")
    result = form.locator(".tfb-result")
    form.get_by_text("A model of your own").click()
    box = form.get_by_label("or paste a config.json")
    box.fill(json.dumps(PRESETS["falcon-40b"].config))
    expect(result).to_contain_text("exactly 1,006,632,960 bytes", timeout=PATIENCE)
    expect(result).to_contain_text("16 times as much")
    box.fill(json.dumps(PRESETS["falcon-40b"].config | {"<b>x": 1}))
    expect(result).to_contain_text("'<b>x': not known for model_type='falcon'")
    box.fill("{")
    expect(result).to_contain_text("this is no JSON")


@pytest.mark.parametrize("id", ["kv-cache", "decode-bound"])
def test_the_link_brings_the_values_back(visit: Visit, id: str) -> None:
    form = card(visit, id)
    form.get_by_label("Model", exact=True).select_option("gpt2")
    form.get_by_label("T, tokens", exact=True).fill("777")
    result = form.locator(".tfb-result")
    expect(result).to_contain_text("T = 777", timeout=PATIENCE)
    link = form.get_by_role("link", name="Link to these values").get_attribute("href")
    assert link is not None
    assert parse_qs(urlsplit(link).query) == {
        f"calculator-{id}.preset": ["gpt2"],
        f"calculator-{id}.length": ["777"],
    }
    told = result.inner_html()
    page = visit.page
    page.goto(visit.address + link.lstrip("/"), wait_until="load")
    again = page.locator(f"form#calculator-{id}")
    expect(again.locator(".tfb-result")).to_contain_text("T = 777", timeout=PATIENCE)
    assert again.locator(".tfb-result").inner_html() == told
    expect(again.get_by_label("Model", exact=True)).to_have_value("gpt2")


def test_the_page_answers_what_python_answers(visit: Visit) -> None:
    """Every preset in every calculator: the same HTML in the page's Python as in this one."""
    page = visit.open(PAGE)
    asked = [
        {"name": "calculator", "arguments": {"id": id, "values": {"preset": name}}}
        for id in CALCULATORS.keys() - {"attention"}
        for name in PRESETS
    ]
    found = page.evaluate(
        """async ([root, asked]) => {
          const worker = new Worker(root + "_live/worker.mjs", { type: "module" });
          const answers = [];
          return await new Promise((settle, fail) => {
            worker.onmessage = ({ data }) => {
              if (data.kind === "fatal") fail(new Error(data.reason));
              if (data.kind === "answer") answers.push(data.response);
              if (answers.length === asked.length) settle(answers);
            };
            asked.forEach((request, ticket) => worker.postMessage({ ticket, request: JSON.stringify(request) }));
          });
        }""",
        [visit.address, asked],
    )
    assert found == [json.loads(call(json.dumps(request))) for request in asked]
