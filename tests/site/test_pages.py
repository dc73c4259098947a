"""Every page: quiet, complete, readable on a phone and by everyone, with or without scripts."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser

from tests.site.conftest import CHAPTER, HTML, PAGES, ROOT, Visit, new_context
from tfbook.site.links import dead_local_links, external_links

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")], ids=["desk", "phone"])
def test_page_is_quiet_fits_and_can_be_read_by_everyone(
    browser: Browser, address: str, name: str, width: int, scheme: str
) -> None:
    context = new_context(browser, address, viewport={"width": width, "height": 900}, color_scheme=scheme)
    visit = Visit(context.new_page(), address)
    visit.watch()
    page = visit.open(name)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("mjx-merror").count() == 0
    if name in PAGES[:2]:
        assert page.locator("mjx-container").count() > 5
    # A word of its own: the icons' random ids can hold these letters.
    assert not re.search(r"unpkg|\bcdn(js)?\b", page.content().lower())
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    serious = {
        violation["id"]: [node["html"][:160] for node in violation["nodes"]][:4]
        for violation in found
        if violation["impact"] in ("serious", "critical")
    }
    context.close()
    assert not serious, json.dumps(serious, indent=1)
    assert not visit.faults


def test_every_picture_has_words(visit: Visit) -> None:
    page = visit.open(CHAPTER)
    alternatives = [image.get_attribute("alt") or "" for image in page.locator("main img").all()]
    assert len(alternatives) >= 4
    assert all(len(alternative) > 40 for alternative in alternatives), alternatives


def test_every_local_link_leads_somewhere() -> None:
    assert dead_local_links(HTML) == []


def test_external_links_are_few_and_well_formed() -> None:
    external = external_links(HTML)
    assert len(external) > 40 and not any("OWNER" in link for link in external)
    hosts = {urlsplit(link).hostname for link in external}
    assert hosts <= {"arxiv.org", "doi.org", "creativecommons.org", "github.com", "www.lesswrong.com"}


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text(
        '<a href="two.html#here">x</a><a href="two.html#gone">x</a><img src="no.png">'
    )
    (tmp_path / "two.html").write_text('<p id="here"></p><a href="https://example.org/">x</a>')
    told = dead_local_links(tmp_path)
    assert len(told) == 2 and "two.html#gone: no such place" in told[0] and "no.png: no such file" in told[1]
    assert external_links(tmp_path) == ["https://example.org/"]
