"""The apparatus holds together: every statement has a place, every term an entry, every link an end."""

import re
from dataclasses import fields
from functools import cache
from html import unescape
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser

import tfbook
from tests.site.conftest import HTML, ROOT, Visit, new_context
from tfbook import TransformerConfig, accounting, decoding, model
from tfbook.config import __doc__ as config_doc

CHAPTERS = ROOT / "chapters"
STATEMENTS = dict(re.findall(r"^(C-\S+) (!?)", (ROOT / "tests" / "coverage.txt").read_text("utf-8"), re.M))
TOC = [
    entry["file"]
    for part in yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))["parts"]
    for entry in part["chapters"]
]


@cache
def built(page: str) -> str:
    return (HTML / f"{page}.html").read_text("utf-8")


def text_of(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


def article(page: str) -> str:
    return built(page).partition("<article")[2].partition("</article>")[0]


@cache
def anchored() -> dict[str, list[str]]:
    """The pages in which each statement has its place."""
    places: dict[str, list[str]] = {}
    for page in ("chapters/index", *TOC):
        for id in re.findall(r'<span id="(C-[\w.-]+)"', built(page)):
            places.setdefault(id, []).append(page)
    return places


def test_there_are_a_hundred_and_two_statements() -> None:
    assert len(STATEMENTS) == 102  # as many as the course's list: none was lost on the way


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_statement_has_a_place_in_the_built_book(statement: str) -> None:
    assert statement in anchored()


def test_the_book_marks_nothing_that_is_not_on_the_list() -> None:
    assert set(anchored()) == set(STATEMENTS)


@pytest.mark.parametrize("statement", [id for id, corrects in STATEMENTS.items() if corrects])
def test_every_correction_is_among_the_errata(statement: str) -> None:
    assert f'.html#{statement}"' in article("chapters/errata")


def test_every_number_among_the_errata_stands_on_a_page_that_it_links_to() -> None:
    entries = article("chapters/errata").split("<h3>")[1:]
    seen = 0
    for entry in entries:
        linked = re.findall(r'href="([\w.-]+)\.html#C-', entry)
        assert linked, text_of(entry)[:60]
        there = " ".join(text_of(article(f"chapters/{page}")) for page in linked).replace(",", "")
        for number in re.findall(r"\d+\.\d+(?![.\d])|\d{1,3}(?:,\d{3})+", text_of(entry.partition("→")[0])):
            assert number.replace(",", "") in there, (number, text_of(entry)[:60])
            seen += 1
    assert len(entries) > 30 and seen > 5


def test_links_to_statements_lead_to_their_spans() -> None:
    for page in ("errata", "glossary"):
        for target, id in re.findall(r'href="([\w.-]+)\.html#(C-[\w.-]+)"', article(f"chapters/{page}")):
            assert f"chapters/{target}" in anchored()[id]


def test_symbols_are_those_of_the_configuration() -> None:
    glossary = (CHAPTERS / "glossary.md").read_text("utf-8")
    own = dict(re.findall(r"^\| (\w+)\s+\| `(\w+)`", config_doc or "", re.M))
    assert len(own) == 7
    for symbol, field in own.items():
        tex = {"n_kv": "n_{kv}", "d_ff": "d_{ff}"}.get(symbol, symbol)
        assert f"| ${tex}$ | `{field}` |" in glossary
    names = {field.name for field in fields(TransformerConfig)}
    told = set(re.findall(r"[Ff]ields? ((?:`\w+`(?:, )?)+)", glossary))
    assert told and {name for some in told for name in re.findall(r"\w+", some)} <= names


def test_bold_terms_lead_to_the_glossary_and_the_index_leads_back() -> None:
    index = built("genindex")
    for page, term in (
        ("2-5-4-three-layouts", "prefix-lm"),
        ("2-5-6-training-and-inference", "arithmetic-intensity"),
        ("a-real-model", "attention-sink"),
    ):
        assert f'id="term-{term}"' in article(f"chapters/{page}")
        assert f'glossary.html#term-{term}"' in article(f"chapters/{page}").lower()
        assert f'chapters/{page}.html#term-{term}"' in index


def test_every_entry_of_the_index_leads_to_something() -> None:
    links = re.findall(r'<a href="(chapters/[\w.-]+\.html)#([^"]+)"', article("genindex"))
    assert len(links) > 150
    for page, id in links:
        assert f'id="{unescape(id)}"' in (HTML / page).read_text("utf-8"), (page, id)


def test_every_figure_is_told_in_words() -> None:
    listed, seen = article("chapters/figures"), 0
    for page in ("chapters/index", *TOC):
        for figure in re.findall(r'<figure class="align.*?</figure>', built(page), re.S):
            id = re.search(r'id="([^"]+)"', figure)
            alt = re.search(r'alt="([^"]+)"', figure)
            assert id and alt, figure[:300]
            assert f'{Path(page).name}.html#{id[1]}"' in listed
            assert text_of(unescape(alt[1])) in text_of(unescape(listed))
            seen += 1
    assert seen > 20


def test_the_reference_has_every_public_name() -> None:
    reference = article("chapters/api")
    homes = {"tfbook.accounting": accounting, "tfbook.model": model}
    for home, module in homes.items():
        for name in module.__all__:
            assert re.search(rf'id="{home}\.(presets\.)?{name}"', reference), name
    for name in ("generate", "prefill", "stream", "Sampler"):
        assert hasattr(decoding, name) and f'id="tfbook.decoding.{name}"' in reference
    assert "(B, T, V)" in reference and "(B, n_kv, S, d_h)" in reference  # shapes are readable


def test_references_can_be_found_and_are_cited() -> None:
    entries = re.findall(
        r"^@\w+\{(\w+),(.*?)^\}", (CHAPTERS / "references.bib").read_text("utf-8"), re.M | re.S
    )
    pages = " ".join(path.read_text("utf-8") for path in [*CHAPTERS.glob("*.md"), *CHAPTERS.glob("*.ipynb")])
    cited = {key for some in re.findall(r"\{cite:[pt]\}`([^`]+)`", pages) for key in some.split(",")}
    assert {key for key, _ in entries} == cited
    listed = article("chapters/bibliography")
    for key, entry in entries:
        assert re.search(r"eprint = \{\d{4}\.\d{4,5}\}|doi = |url = |booktitle|institution", entry), key
        assert "author" in entry and re.search(r"year = \{\d{4}\}", entry), key
        for number in re.findall(r"eprint = \{(.*?)\}", entry):
            assert f"https://arxiv.org/abs/{number}" in listed


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    about = text_of(article("chapters/about"))
    assert citation["version"] == tfbook.__version__
    assert f"version {tfbook.__version__}" in about
    assert f"({citation['date-released'].year})" in about
    assert f"{citation['date-released']:%-d %B %Y}" in about


@pytest.mark.parametrize("place", range(len(TOC)))
def test_pages_lead_to_the_previous_and_the_next(place: int) -> None:
    if TOC[place] == "genindex":
        return  # Sphinx writes this page itself, and it is the last
    for kind, neighbour in (("left-prev", place - 1), ("right-next", place + 1)):
        if neighbour == len(TOC):
            continue
        other = TOC[neighbour] if neighbour >= 0 else "chapters/index"
        link = re.search(rf'class="{kind}"\s+href="([^"]+)"', built(TOC[place]))
        assert (
            link
            and (HTML / TOC[place]).parent.joinpath(link[1]).resolve() == (HTML / f"{other}.html").resolve()
        )


def test_search_finds_a_term(visit: Visit) -> None:
    page = visit.page
    page.goto(f"{visit.address}search.html?q=induction+heads")
    page.locator("#search-results li a", has_text="A real model").first.wait_for(timeout=20_000)


def test_a_missing_page_gets_the_books_own_from_anywhere(browser: Browser, address: str) -> None:
    context = new_context(browser, address, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    answer = page.goto(f"{address}chapters/deep/er/nothing.html")
    assert answer and answer.status == 404
    page.get_by_role("heading", name="This page is not here").wait_for()
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.bd-sidebar-primary')).display") != "inline"
    )
    page.get_by_role("link", name="the opening").click()
    assert page.url == f"{address}chapters/index.html" and not faults
    context.close()
