"""Binder: repo2docker takes the specification, and every chapter runs in what it asks for."""

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from tests.launch.conftest import NOTEBOOKS, Place


def test_repo2docker_takes_it(clone: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "repo2docker",
        "--no-build",
        "--debug",
        "--user-id",
        "1000",
        "--user-name",
        "jovyan",
    ]
    run = subprocess.run([*command, str(clone)], capture_output=True, text=True, check=False)
    told = run.stdout + run.stderr
    assert run.returncode == 0, told[-2000:]
    assert "Building conda environment for python=3.11" in told
    assert 'pip install --no-cache-dir -r "binder/requirements.txt"' in told
    assert "RUN ./binder/postBuild" in told


def answers(index: str) -> bool:
    try:
        with urllib.request.urlopen(index, timeout=5):
            return True
    except (urllib.error.URLError, TimeoutError):
        return False


@pytest.fixture(scope="module")
def binder(make_place: Callable[[str, dict[str, str]], Place], clone: Path) -> Place:
    """The packages of binder/requirements.txt, in a copy of the repository, and binder/postBuild."""
    place = make_place("binder", {})
    wanted = clone / "binder" / "requirements.txt"
    lines = wanted.read_text("utf-8").splitlines(keepends=True)
    if not answers(
        lines[1].split()[1]
    ):  # only where PyTorch's own index is out of reach: pip would ask it for all
        assert lines[1].startswith("--extra-index-url ")
        wanted.write_text("".join(line for line in lines if line != lines[1]), "utf-8")
    place.pip("-r", "binder/requirements.txt", cwd=clone)
    path = os.pathsep.join((str(place.folder / "bin"), os.environ["PATH"]))
    subprocess.run(["bash", "binder/postBuild"], cwd=clone, env=os.environ | {"PATH": path}, check=True)
    return place


def test_jupyterlab_opens_on_the_opening_page_and_renders_myst(binder: Place) -> None:
    settings = json.loads((binder.folder / "etc" / "jupyter" / "jupyter_lab_config.json").read_text("utf-8"))
    assert settings["LabApp"]["default_url"] == "/lab/tree/chapters/index.md"
    shown = binder.run(
        "-c",
        "from jupyterlab.labapp import LabApp; app = LabApp(); app.load_config_file(); print(app.default_url)",
    )
    assert shown.strip().endswith("/lab/tree/chapters/index.md")
    extensions = subprocess.run(
        [binder.python, "-m", "jupyter", "labextension", "list"], capture_output=True, text=True, check=True
    )
    assert "jupyterlab-myst" in extensions.stdout + extensions.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_chapter_runs_in_binder(binder: Place, clone: Path, path: Path, tmp_path: Path) -> None:
    chapters = clone / "chapters"
    before = sorted(chapters.iterdir())
    notebook = nbformat.read(shutil.copy(path, tmp_path), as_version=4)
    binder.execute(notebook, chapters)
    assert sorted(chapters.iterdir()) == before
