"""Build the book with warnings as errors, quietly: `python -m tfbook.site.build`.

The whole log is shown when the build fails, and only the book's own remarks when it does not.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Run Jupyter Book; exit 1 with its log if there was an error or a warning."""
    print("Building the book ...", flush=True)
    command = [
        sys.executable,
        "-m",
        "jupyter_book.cli.main",
        "build",
        "--all",
        "-W",
        "-n",
        "--keep-going",
        ".",
    ]
    run = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if run.returncode:
        sys.exit(f"{run.stdout}\ntfbook: the book did not build; the warnings and errors above say where")
    for line in run.stdout.splitlines():
        plain = re.sub(r"\x1b\[[0-9;]*m", "", line)  # Sphinx colours its log even into a pipe
        if plain.startswith("tfbook: "):
            print(plain.removeprefix("tfbook: "))


if __name__ == "__main__":
    main()
