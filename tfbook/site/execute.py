"""Run notebooks top to bottom and keep their outputs, so that a re-run without change is no change.

`python -m tfbook.site.execute chapters/*.ipynb`
"""

import argparse
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from tqdm.auto import tqdm

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
TIMEOUT = 600  # seconds a cell


def execute(path: Path) -> None:
    """Run one notebook in a fresh kernel, in its own folder, and rewrite it.

    A failing cell raises, and the file stays as it was.
    """
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=TIMEOUT, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    keep(notebook, path)


def keep(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook in its normal form, at once or not at all."""
    normalize(notebook)
    partial = path.with_suffix(".partial")
    nbformat.write(notebook, partial)
    partial.replace(path)


def normalize(notebook: NotebookNode) -> None:
    """Drop what differs between runs or machines: widgets, progress bars, timings, versions."""
    notebook.metadata = NotebookNode(
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if _kept(output)]


def _kept(output: NotebookNode) -> bool:
    """Whether an output stays. Of a form its HTML stays; a bare widget is a progress bar and goes."""
    if output.output_type == "stream":
        return bool(output.name == "stdout")
    data = output.get("data")
    if data is None:
        return True
    had_widget = data.pop(WIDGET_VIEW, None) is not None
    return not had_widget or "text/html" in data


def main() -> None:
    """Execute the notebooks named on the command line, with a progress bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--only-normalize", action="store_true", help="run nothing; drop what varies")
    given = parser.parse_args()
    for path in tqdm(given.notebooks, unit="notebook"):
        if given.only_normalize:
            keep(nbformat.read(path, as_version=4), path)
        else:
            execute(path)


if __name__ == "__main__":
    main()
