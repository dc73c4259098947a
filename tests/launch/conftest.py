"""Environments like those in which readers start, built anew from what is tracked.

The package comes from a git clone of the working tree, behind the address that the first cells name;
PyTorch and what it needs are installed with the tested pins.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from tfbook.site.environment import pinned

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "chapters").glob("*.ipynb"))


@dataclass(frozen=True)
class Place:
    """A virtual environment with a kernel, and the environment variables that it runs under."""

    folder: Path
    variables: dict[str, str]

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    def pip(self, *arguments: str, cwd: Path | None = None) -> None:
        command = [self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments]
        subprocess.run(command, check=True, cwd=cwd, env=os.environ | self.variables)

    def run(self, *command: str, cwd: Path | None = None) -> str:
        """What a command of this environment prints."""
        variables = os.environ | self.variables
        run = subprocess.run(
            [self.python, *command], stdout=subprocess.PIPE, cwd=cwd, env=variables, text=True, check=True
        )
        return run.stdout

    def execute(self, notebook: NotebookNode, folder: Path) -> NotebookNode:
        """Run a notebook in this environment's kernel."""
        client = NotebookClient(
            notebook, timeout=600, kernel_name=self.folder.name, resources={"metadata": {"path": str(folder)}}
        )
        client.execute(env=os.environ | self.variables)
        return notebook


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository of the working tree: what is tracked, as it stands."""
    folder = tmp_path_factory.mktemp("clone")
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listing.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-q", "-m", "as it stands"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="session")
def make_place(
    tmp_path_factory: pytest.TempPathFactory, clone: Path
) -> Iterator[Callable[[str, dict[str, str]], Place]]:
    """Makes a virtual environment with a kernel of the same name. Both are gone after the tests."""
    folder = tmp_path_factory.mktemp("places")
    before = os.environ.get("JUPYTER_PATH")
    os.environ["JUPYTER_PATH"] = str(folder)

    def make(name: str, variables: dict[str, str]) -> Place:
        place = Place(folder / name, _address_of(clone) | {"OMP_NUM_THREADS": "1"} | variables)
        subprocess.run([sys.executable, "-m", "venv", str(place.folder)], check=True)
        spec = {
            "argv": [place.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": name,
            "language": "python",
        }
        home = folder / "kernels" / name
        home.mkdir(parents=True)
        (home / "kernel.json").write_text(json.dumps(spec), "utf-8")
        place.pip(pinned("torch"))  # first, before anything can pick another
        return place

    yield make
    if before is None:
        del os.environ["JUPYTER_PATH"]
    else:
        os.environ["JUPYTER_PATH"] = before
    shutil.rmtree(folder)


def _address_of(clone: Path) -> dict[str, str]:
    """Lets git find the clone behind the address that the notebooks install from."""
    source = nbformat.read(NOTEBOOKS[0], as_version=4).cells[1].source
    address = source.partition("git+")[2].partition('"')[0]
    assert address.startswith("https://github.com/")
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{clone.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": address,
    }
