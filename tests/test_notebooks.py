"""The committed notebooks: whole, normalised, readable anywhere. That they run elsewhere is in `tests/launch`."""

import copy
import re
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from tfbook.exercises import exercises
from tfbook.site.execute import normalize

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "chapters").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> NotebookNode:
    return nbformat.read(request.param, as_version=4)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


def test_it_is_valid_executed_in_order_and_normalised(notebook: NotebookNode) -> None:
    nbformat.validate(notebook)
    assert [cell.execution_count for cell in code_cells(notebook)] == list(
        range(1, len(code_cells(notebook)) + 1)
    )
    again = copy.deepcopy(notebook)
    normalize(again)
    assert again == notebook, "run `make execute`"
    text = nbformat.writes(notebook)
    assert "widget-view" not in text and "/home/" not in text and "Traceback" not in text


def test_the_first_code_cell_installs_in_colab_and_is_folded(notebook: NotebookNode) -> None:
    first = code_cells(notebook)[0]
    assert "find_spec" in first.source and "%pip install" in first.source
    assert "hide-input" in first.metadata.tags and not first.outputs


def test_every_figure_has_a_caption_a_name_and_words(notebook: NotebookNode) -> None:
    for cell in code_cells(notebook):
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            about = cell.metadata.mystnb
            assert len(about.image.alt) > 60 and about.figure.caption and about.figure.name.startswith("fig-")


def test_every_exercise_of_the_section_is_shown_once(notebook: NotebookNode) -> None:
    shown = re.findall(r'^exercise\("([^"]+)"\)$', "\n".join(c.source for c in code_cells(notebook)), re.M)
    title = notebook.cells[0].source.removeprefix("# ")
    section = {"A real model": "real-model"}.get(title, title.split()[0].lower())  # "2.5.1", "self-test"
    assert shown == [e.id for e in exercises(section)]


def test_markdown_uses_colon_fences_and_cells_stay_short(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            assert "```{" not in cell.source
        else:
            assert len(cell.source.splitlines()) <= 22
            assert "import *" not in cell.source
