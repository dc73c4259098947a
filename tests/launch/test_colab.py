"""Every chapter runs in an environment like Colab's: torch is there, the book is not, nor its folder."""

import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from tests.launch.conftest import NOTEBOOKS, ROOT, Place

WIDGET = "application/vnd.jupyter.widget-view+json"
ANSWERED = """
import ipywidgets as ipw
from tfbook.exercises import exercise
from tfbook.interactive import exercise_form
from tfbook.interactive.widgets import build_widget

def parts(widget):
    yield widget
    for child in getattr(widget, "children", ()):
        yield from parts(child)

form = build_widget(exercise_form(exercise("belief-passes")))
box = next(part for part in parts(form) if isinstance(part, ipw.Text))
check = next(part for part in parts(form) if isinstance(part, ipw.Button))
for answer in ("150", "50"):
    box.value = answer
    check.click()
    print([part.value for part in parts(form) if isinstance(part, ipw.HTMLMath)])
"""


@pytest.fixture(scope="module")
def colab(make_place: Callable[[str, dict[str, str]], Place]) -> Place:
    place = make_place("colab", {"COLAB_RELEASE_TAG": "test"})
    there = ("numpy", "matplotlib", "ipywidgets", "ipykernel")  # what Colab brings, and the chapters use
    place.pip("-c", str(ROOT / "constraints.txt"), *there)
    return place


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_chapter_runs_in_colab(colab: Place, path: Path, tmp_path: Path) -> None:
    torch = colab.run("-m", "pip", "list", "--format", "freeze").partition("torch==")[2].split("\n")[0]
    colab.run(
        "-m", "pip", "uninstall", "-y", "-q", "tfbook"
    )  # Colab gives each notebook a machine of its own
    notebook = nbformat.read(shutil.copy(path, tmp_path), as_version=4)
    colab.execute(notebook, tmp_path)
    after = colab.run("-m", "pip", "list", "--format", "freeze")
    assert f"torch=={torch}\n" in after and "tfbook==" in after
    assert "jupyter-book==" not in after  # what builds the book is not what runs it
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name]  # nothing is left behind
    shown = [cell for cell in notebook.cells if "exercise(" in cell.source and cell.cell_type == "code"]
    outputs = [output.get("data", {}) for cell in shown for output in cell.outputs]
    forms = [data for data in outputs if WIDGET in data]
    assert forms and not any("text/html" in data for data in forms)  # Colab would show the HTML instead


def test_exercises_answer_by_ipywidgets_alone(colab: Place, tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(ANSWERED)])
    colab.execute(notebook, tmp_path)
    wrong, right = notebook.cells[0].outputs[0]["text"].splitlines()
    assert "Not yet" in wrong and "one pass reads it as a whole" in wrong
    assert "Correct" in right
