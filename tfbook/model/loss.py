"""The training loss of a language model."""

import torch
from torch import Tensor
from torch.nn import functional as F


def next_token_loss(logits: Tensor, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
    """Mean cross-entropy of each next token given those before it, in nats a token.

    logits (B, T, V) are the model's on ids (B, T). The target of position t is the id at t + 1,
    so T ids give T - 1 targets; targets that are padding do not count. Raises ValueError when
    no target is left, or when the shapes do not belong together.
    """
    if logits.shape[:-1] != ids.shape or ids.dim() != 2:
        raise ValueError(
            f"logits {tuple(logits.shape)} and ids {tuple(ids.shape)}; give (B, T, V) and (B, T)"
        )
    # Footgun: the logits at t are scored against the id at t + 1; unshifted, a model learns to copy.
    # The labels are moved rather than the logits cut: cutting would copy B T V numbers.
    ignored = -100
    labels = torch.full(ids.shape, ignored, dtype=torch.long, device=ids.device)
    labels[:, :-1] = ids[:, 1:]
    if padding_mask is not None:
        labels[:, :-1].masked_fill_(~(padding_mask[:, 1:] & padding_mask[:, :-1]), ignored)
    if not bool((labels != ignored).any()):
        raise ValueError(f"ids of shape {tuple(ids.shape)} leave no target; give two real tokens in a row")
    scored = logits.float() if logits.dtype.itemsize < 4 else logits
    return F.cross_entropy(scored.flatten(0, 1), labels.flatten(), ignore_index=ignored)
