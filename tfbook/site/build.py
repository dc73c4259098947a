"""Build the book with warnings as errors, quietly, if anything has changed: `python tfbook/site/build.py`.

Shows the warnings and errors when the build fails, and only the book's own remarks when it does not.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


STAMP = ROOT / "_build" / "html" / ".built"
SOURCES = ("chapters", "tfbook", "_config.yml", "_toc.yml", ".venv/.packages", "node_modules/.assets")


def main() -> None:
    """Run Jupyter Book if a source is newer than the last build; exit 1 with what went wrong, if anything."""
    if STAMP.exists() and newest_source() < STAMP.stat().st_mtime:
        return
    STAMP.unlink(missing_ok=True)  # a build that fails leaves none behind
    build()
    STAMP.touch()


def newest_source() -> float:
    """When the last of the files that a page depends on was changed (folders count: files come and go)."""
    places = [ROOT / source for source in SOURCES]
    inside = [path for place in places if place.is_dir() for path in place.rglob("*")]
    skipped = {"__pycache__", ".ipynb_checkpoints"}
    return max(path.stat().st_mtime for path in places + inside if not skipped & set(path.parts))


def build(root: Path = ROOT) -> None:
    """Build every page of a folder: Sphinx misses some changes (titles, scripts), and it takes seconds."""
    print("Building the book ...", flush=True)
    # Jupyter Book 1 has no `python -m` form, and its script need not be on the path.
    script = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", script, "build", "--all", "-W", "-n", "--keep-going", "."]
    run = subprocess.run(
        command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    log = re.sub(r"\x1b\[[0-9;]*m", "", run.stdout)  # Sphinx colours its log even into a pipe
    lines = log.splitlines()
    if run.returncode:
        path = root / "_build" / "build.log"
        path.parent.mkdir(exist_ok=True)
        path.write_text(log, "utf-8")
        told = [line for line in lines if re.search(r"WARNING|ERROR|Error", line)] or lines[-20:]
        sys.exit("\n".join([*told, f"tfbook: the book did not build; the whole log is in {path}"]))
    for line in lines:
        if line.startswith("tfbook: "):
            print(line.removeprefix("tfbook: "))


if __name__ == "__main__":
    main()
