"""What is left of a language model without its causal mask, with margins that hold over seeds."""

import pytest
import torch

from tfbook.experiments.dictionary import EQUALS
from tfbook.experiments.forgotten_mask import FLOORS, copies, trained


def test_copies_repeat_their_word() -> None:
    ids = copies(50)
    assert ids.shape == (50, 17) and bool((ids[:, 8] == EQUALS).all())
    assert torch.equal(ids[:, :8], ids[:, 9:])


def test_without_its_mask_a_model_has_an_impossible_loss_and_cannot_generate() -> None:
    right, wrong = trained(seed=1), trained(mask=False, seed=1)
    assert FLOORS["dictionary"] - 0.01 < right.loss < 0.9 and right.accuracy > 0.95 and right.leak < 1e-3
    assert wrong.loss < 0.05 < FLOORS["dictionary"] and wrong.accuracy < 0.6 and wrong.leak > 1


def test_what_stands_in_the_prefix_can_be_generated_even_so() -> None:
    wrong = trained("copying", mask=False, seed=1)
    assert wrong.loss < 0.05 and wrong.accuracy > 0.7 and wrong.leak > 1
    with pytest.raises(ValueError, match="use one of dictionary, copying"):
        trained("nothing")
