"""A block that is called Pre-LN and is not: its norm stands in the trunk.

    Pre-LN      x + sublayer(norm(x))
    misplaced   norm(x) + sublayer(norm(x))

One line of code too early, `x = norm(x)`, and the residual path goes through every norm. It was
reported of a change to PyTorch's own layer (pytorch/pytorch#61165).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tfbook.config import TransformerConfig
from tfbook.model import Block
from tfbook.model.transformer import Stack


class MisplacedBlock(Block):
    """Normalizes the residual stream itself, and not only what its sublayers read."""

    def _sublayer(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        x = norm(x)  # the mistake: from here on the trunk is the normalized one
        return x + self._drop(sublayer(x))


def misplace_norms(stack: Stack, config: TransformerConfig) -> None:
    """Give a decoder's stack misplaced blocks, freshly drawn, in place of its own."""
    stack.blocks = nn.ModuleList(MisplacedBlock(config, layer) for layer in range(config.n_layers))


@torch.no_grad()
def change_of_a_silent_block(block: Block, x: Tensor) -> float:
    """How much a block changes its input (B, T, d) when its sublayers add nothing, relative to the input.

    The last maps are set to zero for the call. In a Pre-LN block the answer is 0: the trunk is untouched.
    """
    last = [*block.attention.output.parameters(), *block.feed_forward.down.parameters()]
    kept = [parameter.clone() for parameter in last]
    for parameter in last:
        parameter.zero_()
    changed = (block(x) - x).norm() / x.norm()
    for parameter, value in zip(last, kept, strict=True):
        parameter.copy_(value)
    return changed.item()
