"""The code exercises of section 2.5.3 and the block of 2.5.7: references, slips and cases. Imports torch."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from tfbook.exercises.code import Case, CodeTask, slip


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    """x (..., d) normalized over its last axis."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, unbiased=False)
    return gain * (x - mean) / (variance + eps).sqrt() + bias


def _layer_norm_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(254)
    # eps of order one: a wrong place for it would not show at 1e-5.
    for batch, length, d, eps in ((1, 1, 2, 0.1), (1, 2, 3, 0.5), (2, 3, 4, 0.1)):
        sizes = ((batch, length, d), (d,), (d,))
        yield *(torch.randn(size, generator=draw) for size in sizes), eps


LAYER_NORM = CodeTask(
    layer_norm,
    (
        slip(
            "unbiased",
            layer_norm,
            (", unbiased=False", ""),
            diagnosis="`var` divides by d - 1 unless you say `unbiased=False`; LayerNorm divides by d.",
        ),
        slip(
            "eps-outside",
            layer_norm,
            ("(variance + eps).sqrt()", "(variance.sqrt() + eps)"),
            diagnosis="eps stands **under** the root, with the variance, not beside it.",
        ),
        slip(
            "no-eps",
            layer_norm,
            ("(variance + eps)", "(variance + 0 * eps)"),
            diagnosis="eps has no effect: it is missing, or you typed a number in place of the argument.",
        ),
        slip(
            "no-mean",
            layer_norm,
            ("(x - mean)", "x"),
            diagnosis="The mean is not subtracted; above the fraction bar stands x - mean.",
        ),
        slip(
            "divided-by-variance",
            layer_norm,
            (".sqrt()", ""),
            diagnosis="You divide by the variance; divide by its root.",
        ),
        slip(
            "wrong-axis",
            layer_norm,
            ("x.mean(dim=-1", "x.mean(dim=1"),
            ("x.var(dim=-1", "x.var(dim=1"),
            diagnosis="You average over positions. LayerNorm averages over the features of each position: the last axis.",
        ),
        slip(
            "gain-forgotten",
            layer_norm,
            ("gain * (x", "(1 + 0 * gain) * (x"),
            diagnosis="The gain is missing: the normalized features are multiplied by it.",
        ),
        slip(
            "bias-forgotten",
            layer_norm,
            ("+ bias", "+ 0 * bias"),
            diagnosis="The bias is missing: it is added at the end.",
        ),
        slip(
            "bias-scaled",
            layer_norm,
            (
                "gain * (x - mean) / (variance + eps).sqrt() + bias",
                "gain * ((x - mean) / (variance + eps).sqrt() + bias)",
            ),
            diagnosis="The bias is added after the gain, not multiplied by it.",
        ),
    ),
    _layer_norm_cases,
)


class RMSNorm(nn.Module):
    """x (..., d) over the root of its mean square, times a gain."""

    def __init__(self, d: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d)), eps

    def forward(self, x: Tensor) -> Tensor:
        """The normalized x."""
        return self.weight * x / (x.square().mean(dim=-1, keepdim=True) + self.eps).sqrt()


def _use_norm(module: Callable[..., nn.Module], x: Tensor, weight: Tensor, eps: float) -> object:
    """Build the reader's module, give it a gain, and run it."""
    norm = module(x.shape[-1], eps)
    if not isinstance(norm, nn.Module):
        raise TypeError("RMSNorm must be a torch.nn.Module: `class RMSNorm(nn.Module)`")
    found = {name: tuple(p.shape) for name, p in norm.named_parameters()}
    if found != {"weight": tuple(weight.shape)}:
        raise TypeError(
            f"the module should have one parameter, weight of shape {tuple(weight.shape)}, and has {found}"
        )
    if not torch.equal(norm.get_parameter("weight").detach(), torch.ones_like(weight)):
        raise ValueError("the gain should start at ones, so that the layer starts as a plain normalization")
    with torch.no_grad():
        norm.get_parameter("weight").copy_(weight)
    output = norm(x)
    if not isinstance(output, Tensor):
        return output  # the comparison says what is wrong with it
    if not output.requires_grad:
        raise ValueError(
            "no gradient reaches `weight` from the output: use the parameter itself, not its data"
        )
    return output.detach()


def _rms_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(255)
    for batch, length, d, eps in ((1, 1, 2, 0.1), (1, 2, 3, 0.5), (2, 3, 4, 0.1)):
        yield torch.randn(batch, length, d, generator=draw), torch.randn(d, generator=draw), eps


RMSNORM = CodeTask(
    RMSNorm,
    (
        slip(
            "centred",
            RMSNorm,
            ("self.weight * x /", "self.weight * (x - x.mean(dim=-1, keepdim=True)) /"),
            diagnosis="RMSNorm subtracts no mean.",
        ),
        slip(
            "variance",
            RMSNorm,
            ("x.square().mean(dim=-1, keepdim=True)", "x.var(dim=-1, keepdim=True, unbiased=False)"),
            diagnosis="That is the variance, about the mean. RMSNorm takes the mean of the squares as they are.",
        ),
        slip(
            "sum-of-squares",
            RMSNorm,
            (".mean(dim=-1", ".sum(dim=-1"),
            diagnosis="You divide by the vector's length; it is the root of the **mean** square.",
        ),
        slip(
            "eps-outside",
            RMSNorm,
            ("+ self.eps).sqrt()", ").sqrt() + self.eps"),
            diagnosis="eps stands under the root.",
        ),
        slip(
            "no-eps",
            RMSNorm,
            ("+ self.eps)", "+ 0 * self.eps)"),
            diagnosis="eps has no effect: it is missing, or you typed a number in place of the argument.",
        ),
        slip("no-root", RMSNorm, (".sqrt()", ""), diagnosis="You divide by the mean square; take its root."),
        slip(
            "no-gain",
            RMSNorm,
            ("return self.weight * x", "return (1 + 0 * self.weight) * x"),
            diagnosis="The gain `weight` is not used in forward.",
        ),
        slip(
            "wrong-axis",
            RMSNorm,
            ("mean(dim=-1", "mean(dim=1"),
            diagnosis="The mean runs over the features of a position, the last axis.",
        ),
        slip(
            "not-a-parameter",
            RMSNorm,
            ("nn.Parameter(torch.ones(d))", "torch.ones(d)"),
            diagnosis="The module has no parameter. The gain `weight` must be an `nn.Parameter`, or no optimizer finds it.",
        ),
    ),
    _rms_cases,
    _use_norm,
)


@dataclass(frozen=True)
class Part:
    """A sublayer or norm of a case, with a name to print."""

    name: str
    function: Callable[[Tensor], Tensor]

    def __call__(self, x: Tensor) -> Tensor:
        """What the part computes."""
        return self.function(x)

    def __repr__(self) -> str:
        return self.name


def pre_ln_block(
    x: Tensor,
    attention: Callable[[Tensor], Tensor],
    feed_forward: Callable[[Tensor], Tensor],
    norm_1: Callable[[Tensor], Tensor],
    norm_2: Callable[[Tensor], Tensor],
) -> Tensor:
    """x (B, T, d) -> (B, T, d): norm, sublayer, sum; twice."""
    x = x + attention(norm_1(x))
    return x + feed_forward(norm_2(x))


def _bend(up: Tensor, z: Tensor) -> Tensor:
    return (z @ up).tanh()


def _block_cases() -> Iterator[Case]:
    draw = torch.Generator().manual_seed(256)
    for batch, length, d in ((1, 1, 2), (1, 3, 2), (2, 3, 4)):
        x = torch.randn(batch, length, d, generator=draw)
        mix, up = torch.randn(length, length, generator=draw), torch.randn(d, d, generator=draw)
        yield (
            x,
            Part("attention", partial(torch.matmul, mix)),
            Part("feed_forward", partial(_bend, up)),
            Part("norm_1", lambda z: z / (z.square().mean(-1, keepdim=True) + 0.1).sqrt()),
            Part("norm_2", lambda z: 2 * z / (z.square().mean(-1, keepdim=True) + 0.5).sqrt()),
        )


PRE_LN_BLOCK = CodeTask(
    pre_ln_block,
    (
        slip(
            "post-ln",
            pre_ln_block,
            ("x = x + attention(norm_1(x))", "x = norm_1(x + attention(x))"),
            ("return x + feed_forward(norm_2(x))", "return norm_2(x + feed_forward(x))"),
            diagnosis="That is Post-LN: the sum is normalized. In Pre-LN the norm stands before the sublayer, and the sum stays bare.",
        ),
        slip(
            "residual-normalized",
            pre_ln_block,
            ("x = x + attention(norm_1(x))", "x = norm_1(x); x = x + attention(x)"),
            ("return x + feed_forward(norm_2(x))", "x = norm_2(x); return x + feed_forward(x)"),
            diagnosis="You overwrite x with its norm, so the normalized x is added back. The residual path takes x as it came.",
        ),
        slip(
            "no-residual",
            pre_ln_block,
            ("x = x + attention", "x = attention"),
            ("return x + feed", "return feed"),
            diagnosis="The residual connections are missing: each sublayer's output is **added** to x.",
        ),
        slip(
            "first-residual-forgotten",
            pre_ln_block,
            ("x = x + attention", "x = attention"),
            diagnosis="The first sublayer's output is not added to x.",
        ),
        slip(
            "second-residual-forgotten",
            pre_ln_block,
            ("return x + feed", "return feed"),
            diagnosis="The second sublayer's output is not added to what the first left.",
        ),
        slip(
            "parallel",
            pre_ln_block,
            ("x = x + attention(norm_1(x))", "before, x = x, x + attention(norm_1(x))"),
            ("feed_forward(norm_2(x))", "feed_forward(norm_2(before))"),
            diagnosis="Your feed-forward layer reads the block's input, as in a parallel block. It should read what attention has left.",
        ),
        slip(
            "one-norm",
            pre_ln_block,
            ("norm_2(x)", "norm_1(x)"),
            diagnosis="The second sublayer has a norm of its own, norm_2.",
        ),
        slip(
            "no-norms",
            pre_ln_block,
            ("attention(norm_1(x))", "attention(x)"),
            ("feed_forward(norm_2(x))", "feed_forward(x)"),
            diagnosis="The norms are not used: each sublayer reads the normalized x.",
        ),
        slip(
            "exchanged",
            pre_ln_block,
            ("x = x + attention(norm_1(x))", "x = x + feed_forward(norm_2(x))"),
            ("return x + feed_forward(norm_2(x))", "return x + attention(norm_1(x))"),
            diagnosis="Attention comes first, then the feed-forward layer.",
        ),
    ),
    _block_cases,
)
