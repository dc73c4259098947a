"""For all tests: random examples without a clock, and no skip where it would go unseen."""

import os
from collections.abc import Generator

# Before torch is imported: many threads make small tensors slower, and two workers share the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

IN_CI = bool(os.environ.get("CI"))

# A busy machine is no fault of the code; and CI should say the same thing twice.
EXAMPLES = int(os.environ.get("TFBOOK_EXAMPLES", "30"))
settings.register_profile("tfbook", deadline=None, derandomize=IN_CI or EXAMPLES < 10, max_examples=EXAMPLES)
settings.load_profile("tfbook")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test is a failed one."""
    report = yield
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first, so that the two workers end together."""
    items.sort(key=lambda item: "test_mutations" not in item.nodeid)
