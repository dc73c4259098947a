"""The training loop that the experiments share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch inside the block and restore its state after, so that runs do not affect each other."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute with one thread inside the block.

    Models as small as these gain nothing by more, and lose much where other programs want the cores.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def train(
    model: nn.Module,
    loss_of_batch: Callable[[], Tensor],
    steps: int,
    rate: float,
    label: str,
    warm_up: int = 30,
    decay: bool = True,
    weight_decay: float = 0.01,
) -> list[float]:
    """Minimise with AdamW: linear warm-up, then a rate that falls to zero, or stays. The loss of each step.

    `loss_of_batch` draws a batch and returns its loss. `warm_up` 0 starts at the full rate;
    `weight_decay` 0 makes it Adam.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=weight_decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(1.0, (step + 1) / max(warm_up, 1)) * (1 - step / steps if decay else 1.0),
    )
    losses = []
    with one_thread():
        for _ in tqdm(range(steps), desc=label, leave=False):
            loss = loss_of_batch()
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
    return losses
