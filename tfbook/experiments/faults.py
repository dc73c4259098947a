"""Faults planted in the block of section 2.5.7, and which test sees which.

A fault is a change in the text of `by_hand.py`; the faulty text is run as a module of its own. Four tests
are applied to each: step by step and in chunks against the whole, causality, and parity with
`tfbook.model`.
"""

import inspect
from collections.abc import Callable
from functools import partial
from types import ModuleType

import torch
from torch import Tensor, nn

from tfbook.config import TransformerConfig
from tfbook.experiments import by_hand
from tfbook.experiments.training import seeded
from tfbook.model import Block, causal_mask

WIDTH, HEADS, LENGTH = 12, 3, 10
SPLIT = "x.unflatten(-1, (n_heads, -1)).transpose(1, 2)"
# By name: an old text and a new one, in turn.
FAULTS: dict[str, tuple[str, ...]] = {
    "no mask": (".tril(diagonal=s - t)", ""),
    "mask only without a cache": (".tril(diagonal=s - t)", ".tril(diagonal=0 if s == t else s)"),
    "mask aligned to the first key": ("diagonal=s - t", "diagonal=0"),
    "mask lets one key of the future in": ("diagonal=s - t", "diagonal=s - t + 1"),
    "softmax over the queries": (".softmax(dim=-1)", ".softmax(dim=-2)"),
    "heads split without moving axes": (
        SPLIT,
        "x.reshape(x.shape[0], n_heads, x.shape[1], -1)",
    ),
    "heads merged without moving axes": (
        "causal_attention(query, key, value).transpose(1, 2)",
        "causal_attention(query, key, value).reshape(*x.shape[:2], self.n_heads, -1)",
    ),
    "new keys put before the old": ('(cache["key"], key)', '(key, cache["key"])'),
    "norm over the positions": ("mean(dim=-1", "mean(dim=1"),
    "features dealt to other heads": (
        SPLIT,
        "x.unflatten(-1, (-1, n_heads)).permute(0, 3, 1, 2)",
    ),
    "mask too narrow": (".tril(diagonal=s - t)", ".tril(diagonal=s - t).triu(diagonal=s - t - 2)"),
    "no scale": (" / math.sqrt(query.shape[-1])", ""),
    "scores divided by d_h": ("math.sqrt(query.shape[-1])", "query.shape[-1]"),
    "values made like keys": ("split(self.value(x), self.n_heads)", "split(self.key(x), self.n_heads)"),
    "no W^O": ("self.output(heads.flatten(2))", "heads.flatten(2)"),
    "norm without the root": (").sqrt()", ")"),
    "LayerNorm in place of RMSNorm": (
        "mean_square = x.square()",
        "x = x - x.mean(dim=-1, keepdim=True); mean_square = x.square()",
    ),
    "gain not used": ("self.weight * x", "x"),
    "Post-LN": (
        "x = x + self.attention(self.norm_1(x), cache)",
        "x = self.norm_1(x + self.attention(x, cache))",
        "self.up(self.norm_2(x))",
        "self.up(x)",
        "x + self.down(hidden)",
        "self.norm_2(x + self.down(hidden))",
    ),
    "attention's residual normalized": (
        "x = x + self.attention(self",
        "x = self.norm_1(x) + self.attention(self",
    ),
    "no residual around attention": ("x = x + self.attention", "x = self.attention"),
    "no feed-forward layer": ("x + self.down(hidden)", "x + 0 * self.down(hidden)"),
    "no nonlinearity": ("F.silu(", "("),
    "another nonlinearity": ("F.silu(", "F.gelu("),
}


def faulty(name: str | None) -> ModuleType:
    """The block's module with a fault planted, or as it is for None."""
    source = inspect.getsource(by_hand)
    if name is not None:
        texts = FAULTS[name]
        for old, new in zip(texts[::2], texts[1::2], strict=True):
            if old not in source:
                raise ValueError(
                    f"the fault {name!r} finds nothing to change; its text must stand in by_hand.py"
                )
            source = source.replace(old, new)
    module = ModuleType("faulty")
    exec(compile(source, f"by_hand with {name}", "exec"), module.__dict__)
    return module


def reference() -> tuple[Block, TransformerConfig]:
    """The package's own block of the same kind, with gains that are not 1."""
    config = TransformerConfig(
        d_model=WIDTH,
        n_heads=HEADS,
        activation="silu",
        norm="rmsnorm",
        qkv_bias=False,
        output_bias=False,
        positions="none",
    )
    block = Block(config, layer=0)
    for norm in (block.attention_norm, block.feed_forward_norm):
        for gain in norm.parameters():
            nn.init.uniform_(gain, 0.5, 1.5)
    return block.double(), config


def with_weights_of(block: Block, mine: nn.Module) -> nn.Module:
    """Put the package's weights into a block by hand."""
    theirs = block.state_dict()
    names = {
        "norm_1.weight": "attention_norm.weight",
        "norm_2.weight": "feed_forward_norm.weight",
        **{f"attention.{n}.weight": f"attention.{n}.weight" for n in ("query", "key", "value", "output")},
        **{f"{n}.{kind}": f"feed_forward.{n}.{kind}" for n in ("up", "down") for kind in ("weight", "bias")},
    }
    mine.load_state_dict({own: theirs[other] for own, other in names.items()})
    return mine


def in_chunks(block: Callable[..., Tensor], x: Tensor, size: int) -> Tensor:
    """The block's output (B, T, d) when x comes `size` positions at a time, through a cache."""
    cache: dict[str, Tensor] = {}
    return torch.cat([block(part, cache) for part in x.split(size, dim=1)], dim=1)


@torch.no_grad()
def failed_tests(name: str | None = None, block: Callable[..., nn.Module] | None = None) -> dict[str, bool]:
    """Whether each test fails on the block with that fault: True where the fault is seen.

    `block` is a class to test in place of the one by hand, made as block(d, n_heads).
    """
    made = faulty(name).Block if block is None else block
    with seeded(0):
        theirs, _ = reference()
        mine = with_weights_of(theirs, made(WIDTH, HEADS).double())
        x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
        later = x.clone()
        later[:, LENGTH // 2 :] += torch.randn(2, LENGTH - LENGTH // 2, WIDTH, dtype=torch.float64)
    whole, half = mine(x), LENGTH // 2
    equal = partial(torch.allclose, rtol=0.0, atol=1e-9)
    return {
        "step by step": not equal(in_chunks(mine, x, 1), whole),
        "in chunks": not equal(in_chunks(mine, x, 4), whole),
        "causality": not equal(mine(later)[:, :half], whole[:, :half]),
        "parity": not equal(whole, theirs(x, causal_mask(LENGTH))),
    }
