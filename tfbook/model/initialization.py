"""Initial weights by published recipes. Every layer is drawn for itself.

(`torch.nn.TransformerEncoder` clones one layer: all its layers start with the same weights.)

- `gpt2`: N(0, 0.02) everywhere, and the maps that write into the residual stream divided by
  sqrt(2 L). Radford et al. 2019, section 2.3.
- `xavier`: uniform with variance 2 / (fan_in + fan_out), embeddings N(0, 1). Glorot and Bengio
  2010, as in Xiong et al. 2020 (arXiv 2002.04745).
- `torch`: what `nn.Linear` and `nn.Embedding` do by themselves.
"""

import math

import torch
from torch import nn

from tfbook.model.transformer import Decoder, Encoder, EncoderDecoder

RECIPES = ("gpt2", "xavier", "torch")


@torch.no_grad()
def initialize(
    model: Encoder | Decoder | EncoderDecoder, recipe: str = "gpt2", generator: torch.Generator | None = None
) -> None:
    """Draw all weights anew, in place. Norms start at gain 1 and bias 0, all other biases at 0.

    Raises ValueError for an unknown recipe.
    """
    if recipe not in RECIPES:
        raise ValueError(f"recipe={recipe!r} is unknown; use one of {', '.join(RECIPES)}")
    tied = getattr(model, "head", None) if model.config.tie_embeddings else None
    for name, module in model.named_modules():
        if recipe == "torch" and isinstance(module, nn.Linear | nn.Embedding) and module is not tied:
            module.reset_parameters()
        elif isinstance(module, nn.Embedding):
            module.weight.normal_(0.0, 0.02 if recipe == "gpt2" else 1.0, generator=generator)
        elif isinstance(module, nn.Linear):
            if module is not tied and recipe == "gpt2":
                writes = name.endswith(("attention.output", "feed_forward.down"))
                deviation = 0.02 / math.sqrt(2 * model.config.n_layers) if writes else 0.02
                module.weight.normal_(0.0, deviation, generator=generator)
            elif module is not tied and recipe == "xavier":
                nn.init.xavier_uniform_(module.weight, generator=generator)
            if module.bias is not None and recipe != "torch":
                module.bias.zero_()
