"""The book without a server: a zip opened from a folder, and on paper."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pypdf
import pytest
from playwright.sync_api import Browser

from tests.site.conftest import HTML, ROOT
from tfbook.site.paper import printed_pages


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> pypdf.PdfReader:
    out = tmp_path_factory.mktemp("paper") / "book.pdf"
    # In a process of its own: this one may have a browser open, and Playwright takes one loop a process.
    subprocess.run([sys.executable, "-m", "tfbook.site.paper", str(out)], cwd=ROOT, check=True)
    assert not (HTML / "paper.html").exists()
    return pypdf.PdfReader(out)


def test_the_printed_book_has_its_chapters_in_its_outline(paper: pypdf.PdfReader) -> None:
    assert len(paper.pages) > 150 and paper.metadata and paper.metadata.title == "The Transformer, executable"
    titles = [entry.title for entry in paper.outline if not isinstance(entry, list)]
    assert len([title for title in titles if title.startswith("2.5.")]) == 7
    assert titles[-1] == "Hints and answers"
    assert len(printed_pages()) == 15


def test_the_printed_book_is_set_and_has_no_buttons(paper: pypdf.PdfReader) -> None:
    text = "\n".join(page.extract_text() for page in paper.pages)
    assert r"\mathbf" not in text and r"\operatorname" not in text
    for screen in ("Not live here", "Another like this", "Show code cell", "Check\n"):
        assert screen not in text, screen
    before, _, answers = text.rpartition("Hints and answers")
    assert "Exercise: The shape of the queries" in before and "The shape of the queries" in answers
    assert "(8, 12, 512, 64)" in answers


def test_the_zip_reads_from_a_folder(browser: Browser, tmp_path: Path) -> None:
    archive = tmp_path / "book.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in HTML.rglob("*"):
            packed.write(path, path.relative_to(HTML))
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(tmp_path / "book")
    page = browser.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto((tmp_path / "book" / "index.html").as_uri())
    page.wait_for_url("**/chapters/index.html")
    page.get_by_role("link", name="2.5.1 Multi-head attention").first.click()
    page.locator("mjx-container").first.wait_for()
    assert page.locator("mjx-container").count() > 50 and page.locator("mjx-merror").count() == 0
    page.locator("#exercise-mha-parameters input[name=answer]").fill("5")
    page.locator("#exercise-mha-parameters .tfb-note").get_by_text("make serve").wait_for()
    page.close()
    assert not faults
