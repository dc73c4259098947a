"""Build the book with warnings as errors, quietly: `python -m tfbook.site.build`.

Shows the warnings and errors when the build fails, and only the book's own remarks when it does not.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Run Jupyter Book; exit 1 with what went wrong if there was an error or a warning."""
    print("Building the book ...", flush=True)
    # Jupyter Book 1 has no `python -m` form, and its script need not be on the path.
    script = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", script, "build", "--all", "-W", "-n", "--keep-going", "."]
    run = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    log = re.sub(r"\x1b\[[0-9;]*m", "", run.stdout)  # Sphinx colours its log even into a pipe
    lines = log.splitlines()
    if run.returncode:
        path = ROOT / "_build" / "build.log"
        path.parent.mkdir(exist_ok=True)
        path.write_text(log, "utf-8")
        told = [line for line in lines if re.search(r"WARNING|ERROR|Error", line)] or lines[-20:]
        sys.exit("\n".join([*told, f"tfbook: the book did not build; the whole log is in {path}"]))
    for line in lines:
        if line.startswith("tfbook: "):
            print(line.removeprefix("tfbook: "))


if __name__ == "__main__":
    main()
