"""The demonstrations of sections 2.5.6 and 2.5.7, with the margins that the chapters state."""

import ast
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
import torch

from tfbook.experiments import by_hand
from tfbook.experiments.cache_savings import Savings, rounded
from tfbook.experiments.faults import FAULTS, failed_tests, faulty
from tfbook.experiments.recorded import SEEDS, recorded
from tfbook.experiments.serving import (
    measured_step,
    parallel_and_serial,
    random_lengths,
    serve,
    step_seconds,
)
from tfbook.experiments.text import documentation, excerpts, language_model
from tfbook.model import next_token_loss

CHAPTER = Path(__file__).resolve().parents[1] / "chapters" / "2-5-7-build-and-verify.ipynb"


def test_every_request_is_served_once_and_places_are_not_shared() -> None:
    lengths = random_lengths(40)
    assert all(10 <= length <= 200 for length in lengths)
    for continuous in (True, False):
        schedule = serve(lengths, 8, continuous)
        assert sorted(length for row in schedule.rows for _, length in row) == sorted(lengths)
        for row in schedule.rows:
            assert all(a + n <= b for (a, n), (b, _) in pairwise(row))
        assert schedule.busy == pytest.approx(sum(lengths) / 8 / schedule.steps)


@pytest.mark.parametrize("seed", SEEDS)
def test_continuous_batching_fills_the_bubbles(seed: int) -> None:
    lengths = random_lengths(40, seed)
    batched, continuous = serve(lengths, 8, False), serve(lengths, 8, True)
    assert batched.steps == sum(max(lengths[i : i + 8]) for i in range(0, 40, 8))
    assert continuous.busy > batched.busy + 0.2


def test_a_step_is_timed_with_and_without_a_cache() -> None:
    """No time is asserted: only that the measurement runs and has a number for each."""
    assert all(len(times) == 5 and min(times) > 0 for times in step_seconds(32).values())
    assert min(parallel_and_serial(8)) > 0
    measured = measured_step(length=16)
    assert measured.seconds > 0 and measured.bound == "memory"


def test_rounding_keeps_the_largest_and_has_so_many_levels() -> None:
    x = torch.randn(3, 100)
    for bits in (2, 4, 8):
        near = rounded(x, bits)
        assert len(near[0].unique()) <= 2**bits - 1
        step = x.abs().amax(dim=-1, keepdim=True) / (2 ** (bits - 1) - 1)
        assert bool(((near - x).abs() <= step / 2 + 1e-6).all())
    assert torch.equal(rounded(torch.zeros(2, 4), 8), torch.zeros(2, 4))


def test_savings_cost_nothing_where_nothing_is_saved_and_more_the_more_is() -> None:
    reader = language_model(steps=60)
    savings = Savings(reader.model, excerpts(documentation().validation, 50))
    with torch.no_grad():
        plain = next_token_loss(reader.model(savings.ids), savings.ids).item()
    assert savings.loss() == pytest.approx(plain, abs=1e-5)
    assert savings.loss(window=64) == pytest.approx(plain, abs=1e-5)
    fine, coarse = (abs(savings.loss(bits=bits) - plain) for bits in (8, 2))
    assert 0 < fine < 0.005 and coarse > 5 * fine
    assert savings.loss() == pytest.approx(plain, abs=1e-5)  # the hooks are gone


def test_the_record_of_key_value_heads_is_whole() -> None:
    record = recorded("cache_savings")
    assert list(record) == ["4", "2", "1"] and all(len(values) == len(SEEDS) for values in record.values())
    assert record["4"] == recorded("text")["rope"]["two full blocks"]  # the same runs
    means = [sum(values) / len(values) for values in record.values()]
    assert means[0] < means[1] < means[2] < means[0] + 0.1


def test_the_chapters_block_is_the_one_in_which_faults_are_planted() -> None:
    """What the cells of 2.5.7 define is what by_hand.py has, word for word."""

    def defined(source: str) -> dict[str, str]:
        kinds = (ast.ClassDef, ast.FunctionDef)
        return {node.name: ast.dump(node) for node in ast.parse(source).body if isinstance(node, kinds)}

    cells = [cell for cell in nbformat.read(CHAPTER, as_version=4).cells if cell.cell_type == "code"]
    shown: dict[str, str] = {}
    for cell in cells:
        if "%pip" not in cell.source:
            shown |= defined(cell.source)
    kept = defined(Path(by_hand.__file__).read_text("utf-8"))
    assert len(kept) == 6 and {name: shown[name] for name in kept} == kept


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_seen_by_some_test(fault: str) -> None:
    seen = failed_tests(fault)
    assert any(seen.values())
    alone = seen["parity"] and not (seen["step by step"] or seen["in chunks"] or seen["causality"])
    assert alone == (list(FAULTS).index(fault) >= list(FAULTS).index("features dealt to other heads"))


def test_without_a_fault_every_test_passes_and_a_stale_fault_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not any(failed_tests(None).values())
    monkeypatch.setitem(FAULTS, "stale", ("not in the text", ""))
    with pytest.raises(ValueError, match="finds nothing to change"):
        faulty("stale")
