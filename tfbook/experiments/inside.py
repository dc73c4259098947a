"""Looking into a trained language model: which heads read what, and what each part of it holds."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfbook.experiments.depth import blocks_of
from tfbook.experiments.hooks import hooked
from tfbook.model import Decoder, MultiHeadAttention


@torch.no_grad()
def attention_maps(model: Decoder, ids: Tensor) -> Tensor:
    """The weights of every head on one text, ids (1, T): (L, H, T, T)."""
    maps: list[Tensor] = []

    def look(layer: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        assert isinstance(layer, MultiHeadAttention)
        weights = layer.with_weights(given[0], mask=named["mask"], rotation=named["rotation"])[1]
        maps.append(weights[0])

    attentions = [block.attention for block in blocks_of(model.stack)]
    with hooked(layer.register_forward_pre_hook(look, with_kwargs=True) for layer in attentions):
        model.states(ids)
    return torch.stack(maps)


@contextmanager
def without_heads(model: Decoder, heads: Iterable[tuple[int, int]]) -> Iterator[None]:
    """Inside the block, these heads, (layer, head) counted from 0, add nothing: their outputs are zero."""
    blocks, hooks = blocks_of(model.stack), []
    for layer, head in heads:
        attention = blocks[layer].attention
        part = slice(head * attention.d_head, (head + 1) * attention.d_head)

        def silence(_: nn.Module, given: tuple[Tensor], part: slice = part) -> Tensor:
            merged = given[0].clone()  # (B, T, H d_h)
            merged[..., part] = 0
            return merged

        hooks.append(attention.output.register_forward_pre_hook(silence))
    with hooked(hooks):
        yield


@torch.no_grad()
def losses(model: Decoder, ids: Tensor) -> Tensor:
    """Minus the log-probability of each next token, ids (1, T): (T - 1,)."""
    return F.cross_entropy(model(ids)[0, :-1], ids[0, 1:], reduction="none")


@torch.no_grad()
def states_by_block(model: Decoder, ids: Tensor) -> list[Tensor]:
    """The trunk (1, T, d) of one text at the input and after each block: L + 1 tensors."""
    trunk: list[Tensor] = []
    blocks = blocks_of(model.stack)
    hooks = [blocks[0].register_forward_pre_hook(lambda _, given: trunk.append(given[0]))]
    hooks += [block.register_forward_hook(lambda *call: trunk.append(call[2])) for block in blocks]
    with hooked(hooks):
        model.states(ids)
    return trunk


@torch.no_grad()
def first_value(model: Decoder, ids: Tensor) -> Tensor:
    """The length of the first token's value vector over the mean of the others', by head: (L, H)."""
    attentions = [block.attention for block in blocks_of(model.stack)]
    values: list[Tensor] = []  # (T, n_kv d_h) each
    hooks = (
        layer.value.register_forward_hook(lambda *call: values.append(call[2][0])) for layer in attentions
    )
    with hooked(hooks):
        model.states(ids)
    one = attentions[0]
    lengths = torch.stack(values).unflatten(-1, (one.n_kv_heads, one.d_head)).norm(dim=-1)  # (L, T, n_kv)
    ratio = lengths[:, 0] / lengths[:, 1:].mean(dim=1)
    return ratio.repeat_interleave(one.n_heads // one.n_kv_heads, dim=1)


def reading(maps: Tensor, first: int = 1) -> dict[str, Tensor]:
    """Mean weight, over queries from `first` on, that each head gives to the first token, to the one
    before the query, and to the query itself: (L, H) each, from maps (L, H, T, T).
    """
    diagonals = {"the token before": -1, "itself": 0}
    read = {"the first token": maps[:, :, first:, 0].mean(dim=-1)}
    for name, offset in diagonals.items():
        read[name] = maps.diagonal(offset, dim1=-2, dim2=-1)[..., -(maps.shape[-1] - first) :].mean(dim=-1)
    return read


def after_the_same(maps: Tensor, period: int) -> Tensor:
    """In a text that repeats itself after `period` tokens: the mean weight that the second half gives to
    the token right after the earlier occurrence of the query's own. (L, H, T, T) -> (L, H).
    """
    # The diagonal begins with the last query of the first half, whose token is new.
    return maps.diagonal(1 - period, dim1=-2, dim2=-1)[..., 1:].mean(dim=-1)
