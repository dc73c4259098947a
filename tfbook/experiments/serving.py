"""How generation spends its time: on this machine, and on the places of a batch.

Times are of this machine at this moment; nothing here asserts them.
"""

import random
from dataclasses import dataclass
from functools import cache
from statistics import median
from time import perf_counter
from typing import Any

import torch

from tfbook.accounting import decode_bound
from tfbook.config import TransformerConfig
from tfbook.decoding import prefill
from tfbook.experiments.training import seeded
from tfbook.model import Decoder, KVCache

SMALL = TransformerConfig(vocab_size=1000, d_model=256, n_heads=8, n_layers=4, max_length=4096)
LARGE = TransformerConfig(vocab_size=8000, d_model=512, n_heads=8, n_layers=8, max_length=512)
TIMES = 5  # how often each thing is timed


@cache
def _model(config: TransformerConfig) -> Decoder:
    with seeded(0):
        return Decoder(config).eval()


def seconds_of(*functions: Any) -> list[list[float]]:
    """The times of each function without arguments, taken in turn, after one call of each to warm up."""
    times: list[list[float]] = [[] for _ in functions]
    for turn in range(TIMES + 1):
        for function, own in zip(functions, times, strict=True):
            start = perf_counter()
            function()
            if turn:
                own.append(perf_counter() - start)
    return times


@torch.inference_mode()
def step_seconds(length: int) -> dict[str, list[float]]:
    """Times of the step that makes one more token after `length`, without a cache and with one."""
    model = _model(SMALL)
    ids = torch.randint(SMALL.vocab_size, (1, length))
    store = KVCache(SMALL, 1, length + 1)
    prefill(model, ids, store)

    def again() -> None:
        model.head(model.states(ids)[:, -1])

    def cached() -> None:
        model(ids[:, -1:], store)
        store.crop(length)

    without, with_cache = seconds_of(again, cached)
    return {"without a cache": without, "with a cache": with_cache}


@torch.inference_mode()
def parallel_and_serial(length: int) -> tuple[float, float]:
    """Seconds of one pass over a text, and of writing it into a cache one token at a time; medians."""
    model = _model(SMALL)
    ids = torch.randint(SMALL.vocab_size, (1, length))

    def one_pass() -> None:
        model(ids)

    def steps() -> None:
        store = KVCache(SMALL, 1, length)
        for t in range(length):
            model(ids[:, t : t + 1], store)

    parallel, serial = map(median, seconds_of(one_pass, steps))
    return parallel, serial


@dataclass(frozen=True)
class MeasuredStep:
    """A decoding step of a model in float32, beside its bound by this machine's figures.

    `bandwidth` in bytes a second, as reading a large matrix shows it; `peak` in FLOPs a second, as a
    product of two matrices shows it.
    """

    bandwidth: int
    peak: int
    bound_seconds: float
    bound: str
    seconds: float


@torch.inference_mode()
def measured_step(model: Decoder | None = None, length: int = 256) -> MeasuredStep:
    """Measure reading, computing, and a step at batch 1 after `length` tokens; medians of some runs.

    The model is one of 29 million weights, unless another is given.
    """
    tall, vector, square = torch.randn(16_384, 4096), torch.randn(4096), torch.randn(1024, 1024)
    model = _model(LARGE) if model is None else model
    ids = torch.randint(model.config.vocab_size, (1, length))
    store = KVCache(model.config, 1, length + 1)
    prefill(model, ids, store)

    def step() -> None:
        model(ids[:, -1:], store)
        store.crop(length)

    reading, computing, stepping = map(
        median, seconds_of(lambda: tall @ vector, lambda: square @ square, step)
    )
    bandwidth, peak = int(4 * tall.numel() / reading), int(2 * 1024**3 / computing)
    bound = decode_bound(model.config, bandwidth, peak, 1, length, bytes=4)
    return MeasuredStep(bandwidth, peak, float(bound.seconds), bound.bound, stepping)


@dataclass(frozen=True)
class Schedule:
    """Who holds which place when: a row for each place, of (first step, steps) for each request."""

    rows: list[list[tuple[int, int]]]

    @property
    def steps(self) -> int:
        """When the last request is done."""
        return max(start + length for row in self.rows for start, length in row)

    @property
    def busy(self) -> float:
        """The share of places and steps that made a token."""
        return sum(length for row in self.rows for _, length in row) / (len(self.rows) * self.steps)


def random_lengths(requests: int, seed: int = 0) -> list[int]:
    """How many tokens each request will generate: 10 to 199, short ones more often."""
    draw = random.Random(seed)
    return [10 + int(190 * draw.random() ** 2) for _ in range(requests)]


def serve(lengths: list[int], places: int, continuous: bool) -> Schedule:
    """Give requests to places in order: each as soon as one is free, or whole batches at a time."""
    rows: list[list[tuple[int, int]]] = [[] for _ in range(places)]
    free = [0] * places  # when each place is free again
    for request, length in enumerate(lengths):
        if not continuous and request % places == 0:
            free = [max(free)] * places
        place = free.index(min(free)) if continuous else request % places
        rows[place].append((free[place], length))
        free[place] += length
    return Schedule(rows)
