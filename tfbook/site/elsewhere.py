"""Run the chapters on another device and build them beside: `TFBOOK_DEVICE=cuda ... _build/gpu`.

The repository's notebooks stay as they are: a copy is run and built. What takes `tfbook.device()` runs
on the device; the rest, small models that gain nothing by it, stays on the CPU.
"""

import shutil
import sys
from pathlib import Path

from tqdm.auto import tqdm

from tfbook.hardware import device
from tfbook.site.build import ROOT, build
from tfbook.site.execute import execute

COPIED = ("chapters", "tests", "tfbook", "_config.yml", "_toc.yml", "genindex.md")


def main() -> None:
    """Copy, run, build. Exits with a sentence where the device is absent, before anything is written."""
    if len(sys.argv) != 2:
        sys.exit("say where to build: python -m tfbook.site.elsewhere _build/gpu")
    try:
        chosen = device()
    except (RuntimeError, ValueError) as error:
        sys.exit(f"tfbook: {error}")
    place = ROOT / sys.argv[1]
    copy_to(place)
    for path in tqdm(sorted((place / "chapters").glob("*.ipynb")), desc=str(chosen), unit="notebook"):
        execute(path)
    build(place)
    print(f"The chapters as run on {chosen} are in {place / '_build' / 'html' / 'index.html'}")


def copy_to(place: Path) -> None:
    """A fresh copy of what a build needs; the browser assets by a link."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, place / name)
    (place / "node_modules").symlink_to(ROOT / "node_modules")


if __name__ == "__main__":
    main()
