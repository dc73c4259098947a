"""Puts browser code into the built book: ours, MathJax, Pyodide and the pure half of the package."""

import shutil
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

# The part of the package that answers forms, and the Markdown library that it uses.
LIVE_PACKAGES = {
    "tfbook": (
        *("__init__.py", "config.py", "special_layers.py", "validation.py"),
        *("accounting", "exercises", "interactive"),
    ),
    "markdown_it": (".",),
    "mdurl": (".",),
    "mdit_py_plugins": ("__init__.py", "utils.py", "dollarmath"),
}
MATHJAX = ("tex-mml-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions", "a11y")
PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")


def copy_assets(app: Sphinx, error: Exception | None) -> None:
    """At the end of a build, fill `_static/` and `_live/` of the output folder.

    Raises ExtensionError when node_modules lacks a package, with the command that brings it.
    """
    if error or app.builder.format != "html":
        return
    modules, out, own = Path(app.srcdir) / "node_modules", Path(app.outdir), Path(__file__).parent / "static"
    _copy(modules / "mathjax" / "es5", MATHJAX, out / "_static" / "vendor" / "mathjax")
    _copy(own, ("forms.js", "forms.css"), out / "_static" / "tfbook")
    _copy(modules / "pyodide", PYODIDE, out / "_live" / "pyodide")
    _copy(own, ("worker.mjs",), out / "_live")
    write_live_archive(out / "_live" / "tfbook.zip")


def write_live_archive(path: Path) -> None:
    """Write the Python that runs in the browser as one zip, the same bytes for the same files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(_live_files()):
            entry = zipfile.ZipInfo(name)  # a fixed date: the archive depends on contents alone
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())


def _live_files() -> Iterator[tuple[str, Path]]:
    """(name in the archive, file) of every Python file that runs in the browser."""
    for package, parts in LIVE_PACKAGES.items():
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            raise ExtensionError(f"the Python package {package} is missing; run `make book`")
        folder = Path(spec.origin).parent
        for place in (folder / part for part in parts):
            for file in [place] if place.is_file() else place.rglob("*"):
                if file.suffix in (".py", ".json"):
                    yield file.relative_to(folder.parent).as_posix(), file


def _copy(source: Path, names: tuple[str, ...], target: Path) -> None:
    for name in names:
        place = source / name
        if not place.exists():
            raise ExtensionError(f"{place} is missing; run `npm ci` (or `make book`, which does)")
        if place.is_dir():
            shutil.copytree(place, target / name, dirs_exist_ok=True)
        else:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(place, target / name)
