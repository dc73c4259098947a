"""What depth does to the residual stream and to the gradients, before any training.

Stacks of ordinary blocks (ReLU, LayerNorm, no positions, as in the analysis of Xiong et al. 2020),
fed with random vectors. `norm_position` is "pre", "post" or "none", which takes the norms out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfbook.config import TransformerConfig
from tfbook.experiments.training import seeded
from tfbook.model import Block, Encoder, EncoderDecoder, initialize
from tfbook.model.transformer import Stack

WIDTH, LENGTH = 128, 32
LABELS = 100  # classes of the random targets


def random_stack(depth: int, norm_position: str, recipe: str = "xavier", d_model: int = WIDTH) -> Encoder:
    """An encoder drawn from torch's current random state."""
    config = TransformerConfig(
        layout="encoder",
        vocab_size=LABELS,
        d_model=d_model,
        n_heads=4,
        n_layers=depth,
        activation="relu",
        positions="none",
        norm_position="pre" if norm_position == "none" else norm_position,
    )
    model = Encoder(config)
    initialize(model, recipe)
    if norm_position == "none":
        for block in model.stack.blocks:
            block.attention_norm = block.feed_forward_norm = nn.Identity()
    return model


@torch.no_grad()
def trunk_sizes(
    depth: int,
    norm_position: str = "pre",
    recipe: str = "xavier",
    input_size: float = 1.0,
    shared: bool = False,
    gain: float = 1.0,
    seed: int = 0,
) -> list[float]:
    """Root mean square of the residual stream, at the input and after each block: depth + 1 numbers.

    `input_size` is the standard deviation of the input's coordinates. With `shared` all blocks have
    the same weights. `gain` multiplies all matrices.
    """
    with seeded(seed):
        blocks = random_stack(1 if shared else depth, norm_position, recipe).stack.blocks
        for matrix in _matrices(blocks):
            matrix.mul_(gain)
        x = input_size * torch.randn(1, LENGTH, WIDTH)
    sizes = [root_mean_square(x)]
    for layer in range(depth):
        x = blocks[0 if shared else layer](x)
        sizes.append(root_mean_square(x))
    return sizes


def blocks_of(stack: Stack) -> list[Block]:
    """The blocks of a stack, in order, as what they are."""
    return [block for block in stack.blocks if isinstance(block, Block)]


def _matrices(blocks: nn.Module) -> list[Tensor]:
    return [parameter for parameter in blocks.parameters() if parameter.dim() == 2]


def over_seeds(
    measure: Callable[..., float], depths: Sequence[int], *how: Any, seeds: int = 5, **more: Any
) -> dict[float, list[float]]:
    """A quantity by depth, measured for each of some seeds: what `figures.lines` draws."""
    return {depth: [measure(depth, *how, seed=seed, **more) for seed in range(seeds)] for depth in depths}


def root_mean_square(x: Tensor) -> float:
    """Of all coordinates."""
    return x.square().mean().sqrt().item()


def exponent(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The p for which ys grow like xs^p: the slope of the straight line through their logarithms."""
    logs = [math.log(x) for x in xs], [math.log(y) for y in ys]
    mean_x, mean_y = (sum(values) / len(values) for values in logs)
    above = sum((x - mean_x) * (y - mean_y) for x, y in zip(*logs, strict=True))
    return above / sum((x - mean_x) ** 2 for x in logs[0])


def encoder_gradients(depth: int, norm_position: str, seed: int = 0) -> list[float]:
    """Norm of the gradient of W_2, block by block, in an encoder with random inputs and targets."""
    with seeded(seed):
        model = random_stack(depth, norm_position)
        head = nn.init.xavier_uniform_(torch.empty(LABELS, WIDTH))
        ids, targets = torch.randint(LABELS, (2, 4, LENGTH))
    loss = F.cross_entropy((model(ids) @ head.T).flatten(0, 1), targets.flatten())
    torch.autograd.backward(loss)
    return _gradients(model.stack)


@torch.no_grad()
def differences(depth: int, norm_position: str, seed: int = 0) -> float:
    """How large the differences of an encoder's states between positions are, relative to the states."""
    with seeded(seed):
        states = random_stack(depth, norm_position)(torch.randint(LABELS, (4, LENGTH)))
    return ((states - states.mean(dim=1, keepdim=True)).norm() / states.norm()).item()


def decoder_gradients(
    depth: int, norm_position: str, seed: int = 0, distinct_memory: bool = False
) -> list[float]:
    """The same in the decoder of an encoder-decoder, whose blocks also read the encoder's states.

    With `distinct_memory` they read random vectors instead, a different one at each position.
    """
    with seeded(seed):
        config = TransformerConfig(
            layout="encoder-decoder",
            vocab_size=LABELS,
            d_model=WIDTH,
            n_heads=4,
            n_layers=depth,
            activation="relu",
            norm_position=norm_position,
            tie_embeddings=False,
        )
        model = EncoderDecoder(config)
        initialize(model, "xavier")
        source, ids, targets = torch.randint(LABELS, (3, 4, LENGTH))
        memory = torch.randn(4, LENGTH, WIDTH) if distinct_memory else model.encoder(source)
    logits = model.head(model.decoder(ids, memory=memory))
    torch.autograd.backward(F.cross_entropy(logits.flatten(0, 1), targets.flatten()))
    return _gradients(model.decoder)


def last_over_first(
    depth: int, gradients: Callable[[int, str, int], list[float]], norm_position: str, seed: int = 0
) -> float:
    """The last block's gradient over the first's: 1 where both are of one size."""
    by_block = gradients(depth, norm_position, seed)
    return by_block[-1] / by_block[0]


def _gradients(stack: Stack) -> list[float]:
    grads = [block.feed_forward.down.weight.grad for block in blocks_of(stack)]
    return [grad.norm().item() for grad in grads if grad is not None]


@dataclass(frozen=True)
class CarriedBack:
    """What a stack makes of a random gradient that goes back through it.

    `size` is its norm at the input relative to that at the output. `identity` is its component along
    the gradient sent in: with J the stack's Jacobian, an estimate of the mean diagonal entry of J.
    """

    size: float
    identity: float


def carried_back(depth: int, norm_position: str, residual: bool = True, seed: int = 0) -> CarriedBack:
    """Send a random gradient back through a stack with Xavier's initial weights."""
    with seeded(seed):
        blocks = blocks_of(random_stack(depth, norm_position).stack)
        x = torch.randn(1, LENGTH, WIDTH, requires_grad=True)
        sent = torch.randn(1, LENGTH, WIDTH)
    y = x
    for block in blocks:
        y = block(y) if residual else without_residual(block, y)
    (arrived,) = torch.autograd.grad(y, x, sent)
    length = sent.square().sum()
    return CarriedBack((arrived.norm() / sent.norm()).item(), ((arrived * sent).sum() / length).item())


def without_residual(block: Block, x: Tensor) -> Tensor:
    """The block's two sublayers behind their norms, one after the other, nothing added back."""
    x = block.attention(block.attention_norm(x))
    y: Tensor = block.feed_forward(block.feed_forward_norm(x))
    return y


def last_gradient(
    depth: int,
    norm_position: str,
    seed: int = 0,
    recipe: str = "xavier",
    d_model: int = WIDTH,
    sequences: int = 16,
) -> float:
    """Norm of the gradient of the last W_2, for the loss of **one** position, mean over sequences.

    This is what the theorem of Xiong et al. bounds. The output layer gives logits of unit variance.
    """
    with seeded(seed):
        model = random_stack(depth, norm_position, recipe, d_model)
        head = torch.randn(LABELS, d_model) / d_model**0.5
        ids, targets = torch.randint(LABELS, (sequences, LENGTH)), torch.randint(LABELS, (sequences,))
    weight = blocks_of(model.stack)[-1].feed_forward.down.weight
    norms = []
    for row, target in zip(ids, targets, strict=True):
        loss = F.cross_entropy(model(row[None])[:, 0] @ head.T, target[None])
        norms.append(torch.autograd.grad(loss, weight)[0].norm().item())
    return sum(norms) / sequences


@torch.no_grad()
def amplification(depth: int, norm_position: str, seed: int = 0, noise: float = 0.01) -> float:
    """How much the output moves when each weight moves by `noise` of its size, both squared and relative.

    Every matrix gets independent Gaussian noise whose norm is about `noise` times its own.
    """
    with seeded(seed):
        model = random_stack(depth, norm_position)
        ids = torch.randint(LABELS, (4, LENGTH))
        before = model(ids)
        for matrix in _matrices(model.stack.blocks):
            matrix.add_(noise * root_mean_square(matrix) * torch.randn_like(matrix))
        after = model(ids)
    return ((after - before).square().sum() / before.square().sum() / noise**2).item()


@torch.no_grad()
def logit_deviation(depth: int, final_norm: bool, seed: int = 0, recipe: str = "xavier") -> float:
    """Standard deviation of the logits of a Pre-LN encoder, with or without its final norm."""
    with seeded(seed):
        model = random_stack(depth, "pre", recipe)
        head = torch.randn(LABELS, WIDTH) / WIDTH**0.5
        ids = torch.randint(LABELS, (4, LENGTH))
    if not final_norm:
        model.stack.final_norm = None
    return (model(ids) @ head.T).std().item()
