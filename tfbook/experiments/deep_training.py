"""Training deep language models on the dictionary: with and without warm-up, with and without a final norm.

Decoders with d = 48, H = 4, ReLU, LayerNorm and learned positions, an output layer of their own, Adam at
a rate that is constant after a linear warm-up, batches of 32.
"""

from dataclasses import dataclass

from torch import Tensor

from tfbook.config import DERIVED, TransformerConfig
from tfbook.experiments.depth import root_mean_square
from tfbook.experiments.dictionary import LENGTH, VOCABULARY, entries
from tfbook.experiments.inside import states_by_block
from tfbook.experiments.misplaced_norm import misplace_norms
from tfbook.experiments.training import seeded, train
from tfbook.model import Decoder, initialize, next_token_loss

STEPS, BATCH, LAST = 300, 32, 10


@dataclass(frozen=True)
class Trained:
    """The loss of each step, and the root mean square of the trunk at the input and after each block."""

    losses: list[float]
    before: list[float]
    after: list[float]

    @property
    def loss(self) -> float:
        """Mean loss of the last ten steps."""
        return sum(self.losses[-LAST:]) / LAST


def train_decoder(
    depth: int = 8,
    norm_position: str = "pre",
    warm_up: int = 0,
    rate: float = 3e-3,
    recipe: str = "xavier",
    final_norm: bool = DERIVED,
    seed: int = 0,
    steps: int = STEPS,
) -> Trained:
    """Train one decoder; `final_norm` is where it belongs, behind a Pre-LN stack, unless given.

    `norm_position` is "pre", "post" or "misplaced" (see `tfbook.experiments.misplaced_norm`).
    """
    with seeded(seed):
        config = TransformerConfig(
            vocab_size=VOCABULARY,
            d_model=48,
            n_heads=4,
            n_layers=depth,
            activation="relu",
            positions="learned",
            max_length=LENGTH,
            norm_position="pre" if norm_position == "misplaced" else norm_position,
            final_norm=final_norm,
            tie_embeddings=False,
        )
        model = Decoder(config)
        if norm_position == "misplaced":
            misplace_norms(model.stack, config)
        initialize(model, recipe)

        def loss() -> Tensor:
            ids = entries(BATCH)
            return next_token_loss(model(ids), ids)

        before = trunk_sizes(model, entries(BATCH))
        label = f"{norm_position}, L={depth}, warm-up {warm_up}"
        losses = train(model, loss, steps, rate, label, warm_up, decay=False, weight_decay=0.0)
        return Trained(losses, before, trunk_sizes(model, entries(BATCH)))


def trunk_sizes(model: Decoder, ids: Tensor) -> list[float]:
    """Root mean square of the residual stream on some ids: at the input and after each block."""
    return [root_mean_square(x) for x in states_by_block(model, ids)]
