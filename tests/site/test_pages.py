"""Every page: quiet, complete, readable on a phone and by everyone, with or without scripts."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.site.conftest import CHAPTER, HTML, PAGES, ROOT, Visit, new_context

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"


@pytest.mark.parametrize("name", PAGES)
def test_page_is_quiet_and_its_mathematics_is_set(visit: Visit, name: str) -> None:
    page = visit.open(name)
    assert page.locator("mjx-merror").count() == 0
    if name in PAGES[:2]:
        assert page.locator("mjx-container").count() > 5
    # A word of its own: the icons' random ids can hold these letters.
    assert not re.search(r"unpkg|\bcdn(js)?\b", page.content().lower())


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_scrolls_sideways(browser: Browser, address: str, name: str, width: int) -> None:
    context = new_context(browser, address, viewport={"width": width, "height": 800})
    page = Visit(context.new_page(), address).open(name)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, address: str, name: str, scheme: str) -> None:
    context = new_context(browser, address, viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page = Visit(context.new_page(), address).open(name)
    for fold in page.locator("details").all():
        fold.evaluate("fold => { fold.open = true }")
    page.add_script_tag(path=AXE)
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    serious = {
        violation["id"]: [node["html"][:160] for node in violation["nodes"]][:4]
        for violation in found
        if violation["impact"] in ("serious", "critical")
    }
    context.close()
    assert not serious, json.dumps(serious, indent=1)


def test_every_picture_has_words(visit: Visit) -> None:
    page = visit.open(CHAPTER)
    alternatives = [image.get_attribute("alt") or "" for image in page.locator("main img").all()]
    assert len(alternatives) >= 4
    assert all(len(alternative) > 40 for alternative in alternatives), alternatives


def test_every_local_link_leads_somewhere(visit: Visit) -> None:
    for name in PAGES[:3]:
        page = visit.open(name)
        for link in page.locator("a[href]").all():
            href = link.evaluate("link => link.href")
            if not href.startswith(visit.address):
                assert not href.startswith("http") or "OWNER" not in href
                continue
            path, _, anchor = href.removeprefix(visit.address).partition("#")
            target = HTML / path
            assert target.exists(), href
            if anchor and target.suffix == ".html":
                assert f'id="{anchor}"' in Path(target).read_text("utf-8"), href
