"""The build's parts: the repository the links follow, the page's Python, what is tracked."""

import re
import subprocess
import zipfile
from pathlib import Path

import pytest

from tfbook.site.assets import write_live_archive
from tfbook.site.environment import pinned
from tfbook.site.repository import find_repository

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def test_links_follow_the_workflow_then_the_remote_then_the_configuration(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placeholder, configured = "https://github.com/OWNER/tfbook", "https://github.com/someone/book"
    assert find_repository(checkout, placeholder) is None
    assert find_repository(checkout, "") is None
    assert find_repository(checkout, configured) == configured
    subprocess.run(
        ["git", "remote", "add", "origin", "git@github.com:fork/tfbook.git"], cwd=checkout, check=True
    )
    assert find_repository(checkout, configured) == "https://github.com/fork/tfbook"
    monkeypatch.setenv("GITHUB_REPOSITORY", "other/tfbook")
    assert find_repository(checkout, configured) == "https://github.com/other/tfbook"


def test_a_copy_inside_another_repository_does_not_link_to_it(checkout: Path) -> None:
    subprocess.run(
        ["git", "remote", "add", "origin", "https://github.com/x/unrelated"], cwd=checkout, check=True
    )
    (checkout / "copy").mkdir()
    assert find_repository(checkout / "copy", "https://github.com/OWNER/tfbook") is None


@pytest.mark.parametrize("remote", ["/somewhere/local", "https://example.org/x/y.git", "file:///x/y"])
def test_a_remote_that_is_not_public_gives_no_links(checkout: Path, remote: str) -> None:
    subprocess.run(["git", "remote", "add", "origin", remote], cwd=checkout, check=True)
    assert find_repository(checkout, "") is None


def test_the_pages_python_is_small_pure_and_the_same_every_time(tmp_path: Path) -> None:
    one, two = tmp_path / "one.zip", tmp_path / "two.zip"
    write_live_archive(one)
    write_live_archive(two)
    assert one.read_bytes() == two.read_bytes()
    names = zipfile.ZipFile(one).namelist()
    assert "tfbook/interactive/__init__.py" in names and "markdown_it/__init__.py" in names
    assert not any("/model/" in name or "/experiments/" in name or "__pycache__" in name for name in names)
    assert one.stat().st_size < 300_000


def test_the_readmes_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    assert blocks
    for block in blocks:
        exec(block, {})
    assert "109,632,000" in capsys.readouterr().out


def test_pins_are_found() -> None:
    assert re.fullmatch(r"torch==\d+\.\d+\.\d+", pinned("torch"))


def test_no_tracked_file_names_a_registry_or_a_path_of_one_machine() -> None:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    forbidden = re.compile(r"registry\.npmjs|pypi\.org|files\.pythonhosted|/(?:root|farm|work)/\w|file:///\w")
    for name in listing.stdout.split("\0"):
        path = ROOT / name
        if not name or not path.is_file() or path == Path(__file__) or path.suffix in (".png",):
            continue
        found = forbidden.search(path.read_text("utf-8", errors="replace"))
        assert not found, f"{name}: {found and found[0]}"
