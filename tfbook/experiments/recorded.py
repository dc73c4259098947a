"""Results over seeds that are too slow to repeat in a chapter, kept as data with their origin.

`python -m tfbook.experiments.recorded` runs them again (some minutes; `--only without_ffn` for
one) and rewrites the files under `recorded/`. A test repeats single entries and compares.
"""

import json
from argparse import ArgumentParser
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from statistics import mean
from typing import Any

SEEDS = range(5)
TASKS = ("previous_tokens", "nearest_key")
HEAD_COUNTS = (1, 2, 4, 8, 16, 32, 64)
# The same tasks trained five times as long, at three numbers of heads and with fewer seeds.
LONG_STEPS = {"previous_tokens": 2000, "nearest_key": 2500}
LONG_HEAD_COUNTS, LONG_SEEDS = (1, 8, 64), range(3)
# The stacks of the checkerboard, by name, with their settings.
STACKS: dict[str, dict[str, Any]] = {
    "attention and feed-forward": {"kinds": "afaf"},
    "feed-forward alone": {"kinds": "fff"},
    "attention alone": {"kinds": "aaaaaa"},
    "attention alone, with norms": {"kinds": "aaaaaa", "normalized": True},
    "attention alone, 8 points at once": {"kinds": "aaaaaa", "length": 8},
}


def recorded_accuracies(task: str, long: bool = False) -> dict[int, list[float]]:
    """Accuracy of each seed, by number of heads. `task` is one of TASKS; `long` for LONG_STEPS."""
    if task not in TASKS:
        raise ValueError(f"task={task!r} was not recorded; use one of {', '.join(TASKS)}")
    data = json.loads(_file("heads").read_text("utf-8"))
    return {int(heads): values for heads, values in data[f"{task}, long" if long else task].items()}


def recorded_without_ffn() -> dict[str, list[float]]:
    """Accuracy of each seed on the checkerboard, by what the stack is made of."""
    data: dict[str, list[float]] = json.loads(_file("without_ffn").read_text("utf-8"))
    return data


def spread(values: list[float]) -> str:
    """Mean and range of some accuracies, for print: "0.40 (0.38 to 0.42)"."""
    return f"{mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def record() -> None:
    """Run every task, head count and seed, and write the file."""
    from tqdm.auto import tqdm  # reading the record needs neither tqdm nor torch

    from tfbook.experiments import heads

    data: dict[str, dict[str, list[float]]] = {}
    for task in TASKS:
        run = getattr(heads, task)
        counts = tqdm(HEAD_COUNTS, desc=task)
        data[task] = {str(n): [round(run(n, seed).accuracy, 4) for seed in SEEDS] for n in counts}
        data[f"{task}, long"] = {
            str(n): [round(run(n, seed, LONG_STEPS[task]).accuracy, 4) for seed in LONG_SEEDS]
            for n in tqdm(LONG_HEAD_COUNTS, desc=f"{task}, long")
        }
    _write("heads", data)


def record_without_ffn() -> None:
    """Run every stack and seed of the checkerboard, and write the file."""
    from tqdm.auto import tqdm

    from tfbook.experiments.without_ffn import checkerboard

    _write(
        "without_ffn",
        {
            name: [round(checkerboard(seed=seed, **settings).accuracy, 4) for seed in SEEDS]
            for name, settings in tqdm(STACKS.items())
        },
    )


def _file(name: str) -> Traversable:
    return files("tfbook.experiments").joinpath(f"recorded/{name}.json")


def _write(name: str, data: object) -> None:
    path = Path(__file__).with_name("recorded") / f"{name}.json"
    path.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    recorders = {"heads": record, "without_ffn": record_without_ffn}
    parser = ArgumentParser(description="Repeat the recorded experiments.")
    parser.add_argument("--only", choices=recorders, help="one record instead of all")
    only = parser.parse_args().only
    for chosen in [only] if only else recorders:
        recorders[chosen]()
