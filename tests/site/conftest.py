"""The built book behind a local server, opened in headless Chromium."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    Playwright,
    Request,
    Response,
    sync_playwright,
)

from tfbook.site import serve

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
CHAPTER = "chapters/2-5-1-multi-head-attention"
PAGES = [
    "chapters/index",
    CHAPTER,
    "chapters/2-5-2-feed-forward",
    "chapters/2-5-3-residual-and-normalization",
    "chapters/2-5-4-three-layouts",
    "chapters/2-5-5-shapes-and-parameters",
    "chapters/2-5-6-training-and-inference",
    "chapters/2-5-7-build-and-verify",
    "chapters/misconceptions",
    "chapters/a-real-model",
    "chapters/exercises",
    "chapters/self-test",
    "chapters/calculators",
    "chapters/errata",
    "chapters/glossary",
    "chapters/api",
    "chapters/figures",
    "chapters/for-teachers",
    "chapters/bibliography",
    "chapters/about",
    "search",
    "genindex",
    "404",
]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@contextmanager
def serving() -> Iterator[str]:
    """The address of a local server of the built book."""
    assert (HTML / ".built").exists(), "the book is not built; run `make book`"
    with serve.serving(HTML) as address:
        yield address


def chromium(playwright: Playwright) -> Browser:
    """Debian's Chromium, else the one that `playwright install chromium` brings."""
    return playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where the built book is served."""
    with serving() as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser. Missing, it fails in CI and is skipped loudly elsewhere."""
    with sync_playwright() as playwright:
        try:
            found = chromium(playwright)
        except Error as error:
            reason = f"no Chromium: install Debian's, or run `playwright install chromium` ({error})"
            if os.environ.get("CI"):
                pytest.fail(reason)
            pytest.skip(reason)  # on a reader's machine; CI fails above
        yield found
        found.close()


@dataclass
class Visit:
    """One browser tab that writes down everything that should not happen."""

    page: Page
    address: str
    faults: list[str] = field(default_factory=list)

    def open(self, name: str) -> Page:
        """Open a page of the book and wait until its mathematics is set."""
        self.page.goto(f"{self.address}{name}.html", wait_until="load")
        self.page.evaluate("window.MathJax?.startup?.promise")
        return self.page

    def watch(self) -> None:
        """Write down requests to other hosts, missing files and page errors."""
        self.page.on("request", self._request)
        self.page.on("response", self._response)
        self.page.on("pageerror", lambda error: self.faults.append(f"page error: {error}"))

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.faults.append(f"request to another host: {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.faults.append(f"{response.status}: {response.url}")


def new_context(browser: Browser, address: str, **options: object) -> BrowserContext:
    """A fresh profile that can reach the book's server and nothing else."""
    context = browser.new_context(**options)
    context.route(lambda url: not url.startswith(address), lambda route: route.abort())
    return context


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Visit]:
    """A tab at desktop width; the test fails if anything went wrong in it."""
    context = new_context(browser, address, viewport={"width": 1280, "height": 900})
    visit = Visit(context.new_page(), address)
    visit.watch()
    yield visit
    context.close()
    assert not visit.faults
