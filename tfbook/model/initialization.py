"""Initial weights by published recipes. Every layer is drawn for itself.

(`torch.nn.TransformerEncoder` clones one layer: all its layers start with the same weights.)

- `gpt2`: N(0, 0.02) everywhere, and the maps that write into the residual stream divided by
  sqrt(2 L). Radford et al. 2019, section 2.3.
- `xavier`: uniform with variance 2 / (fan_in + fan_out), embeddings N(0, 1). Glorot and Bengio
  2010, as in Xiong et al. 2020 (arXiv 2002.04745).
- `torch`: what `nn.Linear` and `nn.Embedding` do by themselves: uniform within 1 / sqrt(fan_in),
  biases too, and embeddings N(0, 1).
"""

import math

import torch
from torch import nn

from tfbook.model.normalization import RMSNorm
from tfbook.model.transformer import Decoder, Encoder, EncoderDecoder

RECIPES = ("gpt2", "xavier", "torch")


@torch.no_grad()
def initialize(
    model: Encoder | Decoder | EncoderDecoder, recipe: str = "gpt2", generator: torch.Generator | None = None
) -> None:
    """Draw all weights anew, in place. Norms get gain 1 and bias 0; biases are 0 but in `torch`.

    Raises ValueError for an unknown recipe.
    """
    if recipe not in RECIPES:
        raise ValueError(f"recipe={recipe!r} is unknown; use one of {', '.join(RECIPES)}")
    tied = getattr(model, "head", None) if model.config.tie_embeddings else None
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding):
            module.weight.normal_(0.0, 0.02 if recipe == "gpt2" else 1.0, generator=generator)
        elif isinstance(module, nn.Linear):
            if module is not tied:
                _draw_map(module, recipe, _deviation(name, model.config.n_layers), generator)
            if module.bias is not None:
                bound = module.in_features**-0.5 if recipe == "torch" else 0.0
                module.bias.uniform_(-bound, bound, generator=generator)
        elif isinstance(module, nn.LayerNorm | RMSNorm):
            module.weight.fill_(1.0)
            if isinstance(module, nn.LayerNorm) and module.bias is not None:
                module.bias.zero_()


def _draw_map(linear: nn.Linear, recipe: str, deviation: float, generator: torch.Generator | None) -> None:
    """The weight of one linear map."""
    if recipe == "gpt2":
        linear.weight.normal_(0.0, deviation, generator=generator)
    elif recipe == "xavier":
        nn.init.xavier_uniform_(linear.weight, generator=generator)
    else:
        bound = linear.in_features**-0.5
        linear.weight.uniform_(-bound, bound, generator=generator)


def _deviation(name: str, n_layers: int) -> float:
    """GPT-2's standard deviation: smaller for the maps that write into the residual stream."""
    writes = name.endswith(("attention.output", "feed_forward.down"))
    return 0.02 / math.sqrt(2 * n_layers) if writes else 0.02
