"""The suite is worth what it kills: every planted fault makes a test fail, none by a crash."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutations import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[1]
FAILED, PASSED = 1, 0  # pytest's exit codes; others mean that the tests did not run
QUICK = ["tests/test_attention.py", "tests/test_model.py"]
THOROUGH = ["tests/test_parity.py", "-k", "transformers and not smollm2 and not minilm"]


def run(folder: Path, tests: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {
        "TFBOOK_EXAMPLES": "6",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).returncode


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package and its tests, in a folder of its own."""
    for name in ("tfbook", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "site"))
    return tmp_path


def test_the_copy_itself_passes(copy: Path) -> None:
    assert run(copy, QUICK) == PASSED
    assert run(copy, THOROUGH) == PASSED


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.name)
def test_a_planted_fault_is_killed(mutation: Mutation, copy: Path) -> None:
    path = copy / "tfbook" / mutation.file
    source = path.read_text("utf-8")
    assert source.count(mutation.old) == 1, f"the fragment stands {source.count(mutation.old)} times"
    path.write_text(source.replace(mutation.old, mutation.new), "utf-8")
    result = run(copy, QUICK)
    if result == PASSED:
        result = run(copy, THOROUGH)
    assert result == FAILED, "the fault survived" if result == PASSED else "the tests did not run"
