"""Results over seeds that are too slow to repeat in a chapter, kept as data with their origin.

`python -m tfbook.experiments.recorded` runs them again (some minutes; `--only without_ffn` for
one) and rewrites the files under `recorded/`. A test repeats single entries and compares.
"""

import json
from argparse import ArgumentParser
from importlib.resources import files
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
# What deep decoders are trained with; the first setting is the one in which warm-up decides.
SETTINGS: dict[str, dict[str, Any]] = {
    "8 blocks, rate 0.003": {"depth": 8},
    "6 blocks, rate 0.003": {"depth": 6},
    "6 blocks, rate 0.001": {"depth": 6, "rate": 1e-3},
    "12 blocks, rate 0.001": {"depth": 12, "rate": 1e-3},
    "8 blocks, rate 0.003, torch's initial weights": {"depth": 8, "recipe": "torch"},
    "12 blocks, rate 0.001, torch's initial weights": {"depth": 12, "rate": 1e-3, "recipe": "torch"},
}
WARM_UP: dict[str, dict[str, Any]] = {
    "Pre-LN, no warm-up": {"norm_position": "pre", "warm_up": 0},
    "Post-LN, no warm-up": {"norm_position": "post", "warm_up": 0},
    "Pre-LN, 150 steps": {"norm_position": "pre", "warm_up": 150},
    "Post-LN, 150 steps": {"norm_position": "post", "warm_up": 150},
}
# Settings in which a misplaced norm is compared with Pre-LN: stuck, not stuck, and deeper.
MISPLACED: dict[str, dict[str, Any]] = {
    "8 blocks, rate 0.003": {"depth": 8},
    "8 blocks, rate 0.001": {"depth": 8, "rate": 1e-3},
    "12 blocks, rate 0.001": {"depth": 12, "rate": 1e-3},
}
# Language models without their causal mask, and one with it: task, mask, positions.
MASKS: dict[str, dict[str, Any]] = {
    "dictionary, masked": {},
    "dictionary, no mask": {"mask": False},
    "dictionary, no mask, no positions": {"mask": False, "positions": "none"},
    "copying, masked": {"task": "copying"},
    "copying, no mask": {"task": "copying", "mask": False},
}


def recorded(name: str) -> dict[str, Any]:
    """The record of that name, as it was written."""
    path = files("tfbook.experiments").joinpath(f"recorded/{name}.json")
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return data


def recorded_accuracies(task: str, long: bool = False) -> dict[int, list[float]]:
    """Accuracy of each seed, by number of heads. `task` is one of TASKS; `long` for LONG_STEPS."""
    if task not in TASKS:
        raise ValueError(f"task={task!r} was not recorded; use one of {', '.join(TASKS)}")
    data = recorded("heads")
    return {int(heads): values for heads, values in data[f"{task}, long" if long else task].items()}


def recorded_without_ffn() -> dict[str, list[float]]:
    """Accuracy of each seed on the checkerboard, by what the stack is made of."""
    return recorded("without_ffn")


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


def record_deep_training() -> None:
    """Train every setting with every case of WARM_UP; 12 blocks with and without a final norm; over seeds.

    `losses` are means of the last ten steps; `curves` the means of each five steps, of seed 0 in the
    first setting; `final_norm` has the first loss, the last, and the trunk before and after training.
    """
    from tqdm.auto import tqdm

    from tfbook.experiments.deep_training import train_decoder

    losses: dict[str, dict[str, list[float]]] = {}
    curves: dict[str, list[float]] = {}
    for setting, shared in tqdm(SETTINGS.items(), desc="warm-up"):
        losses[setting] = {}
        for case, own in WARM_UP.items():
            runs = [train_decoder(**shared, **own, seed=seed) for seed in SEEDS]
            losses[setting][case] = [round(run.loss, 4) for run in runs]
            if len(losses) == 1:
                seen = runs[0].losses
                curves[case] = [round(mean(seen[i : i + 5]), 3) for i in range(0, len(seen), 5)]
    final: dict[str, Any] = {}
    for recipe in ("xavier", "torch"):
        for with_norm in (True, False):
            runs = [
                train_decoder(12, "pre", 30, 1e-3, recipe, final_norm=with_norm, seed=seed) for seed in SEEDS
            ]
            final[f"{recipe}, {'with' if with_norm else 'without'}"] = {
                "first": [round(run.losses[0], 3) for run in runs],
                "last": [round(run.loss, 4) for run in runs],
                "before": [[round(size, 3) for size in run.before] for run in runs],
                "after": [[round(size, 3) for size in run.after] for run in runs],
            }
    _write("deep_training", {"losses": losses, "curves": curves, "final_norm": final})


def record_forgotten_mask() -> None:
    """Loss, share generated right, and leak of language models with and without their mask."""
    from tqdm.auto import tqdm

    from tfbook.experiments.forgotten_mask import trained

    data = {}
    for name, how in tqdm(MASKS.items(), desc="forgotten mask"):
        runs = [trained(**how, seed=seed) for seed in SEEDS]
        data[name] = {
            key: [round(getattr(run, key), 4) for run in runs] for key in ("loss", "accuracy", "leak")
        }
    _write("forgotten_mask", data)


def record_misplaced_norm() -> None:
    """Loss of decoders whose norm stands in the trunk, and of Pre-LN's; and of the misplaced with warm-up."""
    from tqdm.auto import tqdm

    from tfbook.experiments.deep_training import train_decoder

    cases: dict[str, dict[str, Any]] = {
        "Pre-LN": {"norm_position": "pre"},
        "misplaced": {"norm_position": "misplaced"},
        "misplaced, 150 steps of warm-up": {"norm_position": "misplaced", "warm_up": 150},
    }
    data = {
        setting: {
            case: [round(train_decoder(**shared, **own, seed=seed).loss, 4) for seed in SEEDS]
            for case, own in cases.items()
        }
        for setting, shared in tqdm(MISPLACED.items(), desc="misplaced norm")
    }
    _write("misplaced_norm", data)


def record_text() -> None:
    """Validation loss of each language model of characters, by its positions and what it is made of."""
    from tqdm.auto import tqdm

    from tfbook.experiments.text import STACKS, language_model

    data = {
        positions: {
            stack: [round(language_model(stack, seed, positions).loss, 4) for seed in SEEDS]
            for stack in tqdm(STACKS, desc=f"text, {positions}")
        }
        for positions in ("rope", "learned")
    }
    _write("text", data)


def record_layouts() -> None:
    """Accuracy of tagging with and without the mask; loss, accuracy and leak of each cross-attention."""
    from tqdm.auto import tqdm

    from tfbook.experiments.layouts import KINDS_OF_CROSS, reversal, tagging

    data: dict[str, Any] = {
        name: [round(tagging(causal, seed), 4) for seed in SEEDS]
        for name, causal in (("both directions", False), ("causal", True))
    }
    for kind in tqdm(KINDS_OF_CROSS, desc="layouts"):
        runs = [reversal(kind, seed) for seed in SEEDS]
        data[kind] = {
            name: [round(getattr(run, name), 4) for run in runs] for name in ("loss", "accuracy", "leak")
        }
    _write("layouts", data)


def record_cache_savings() -> None:
    """Validation loss of language models of characters by their number of key/value heads."""
    from tqdm.auto import tqdm

    from tfbook.experiments.text import language_model

    counts = tqdm((4, 2, 1), desc="key/value heads")
    data = {
        str(n): [round(language_model(n_kv_heads=n, seed=seed).loss, 4) for seed in SEEDS] for n in counts
    }
    _write("cache_savings", data)


def _write(name: str, data: object) -> None:
    path = Path(__file__).with_name("recorded") / f"{name}.json"
    path.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    recorders = {
        "heads": record,
        "without_ffn": record_without_ffn,
        "deep_training": record_deep_training,
        "forgotten_mask": record_forgotten_mask,
        "misplaced_norm": record_misplaced_norm,
        "text": record_text,
        "layouts": record_layouts,
        "cache_savings": record_cache_savings,
    }
    parser = ArgumentParser(description="Repeat the recorded experiments.")
    parser.add_argument("--only", choices=recorders, help="one record instead of all")
    only = parser.parse_args().only
    for chosen in [only] if only else recorders:
        recorders[chosen]()
