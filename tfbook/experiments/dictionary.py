"""A language with a dictionary in it: the task of several training runs.

A fixed random permutation f of 16 symbols is the dictionary. A sequence is eight entries
"a = f(a)", 24 tokens. The first symbol of each entry is random, so that no model can have a loss
below FLOOR; the rest is to be learned.
"""

import math

import torch
from torch import Tensor

from tfbook.experiments.training import seeded

SYMBOLS, ENTRIES = 16, 8
EQUALS, VOCABULARY, LENGTH = SYMBOLS, SYMBOLS + 1, 3 * ENTRIES
# 23 tokens are predicted, 7 of them the random first symbols of entries, ln 16 nats each.
FLOOR = (ENTRIES - 1) * math.log(SYMBOLS) / (LENGTH - 1)


def translations() -> Tensor:
    """The dictionary f: (16,), the same in every run."""
    with seeded(16):
        return torch.randperm(SYMBOLS)


def entries(batch: int) -> Tensor:
    """Random sequences of eight entries: ids (batch, 24)."""
    asked = torch.randint(SYMBOLS, (batch, ENTRIES))
    equals = torch.full_like(asked, EQUALS)
    return torch.stack((asked, equals, translations()[asked]), dim=-1).flatten(1)
