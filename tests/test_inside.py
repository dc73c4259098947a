"""What looks into a model sees what the model does; and a norm in the trunk is told from Pre-LN."""

import pytest
import torch
from torch import Tensor

from tfbook import TransformerConfig
from tfbook.experiments import inside
from tfbook.experiments.deep_training import train_decoder
from tfbook.experiments.depth import blocks_of
from tfbook.experiments.misplaced_norm import MisplacedBlock, change_of_a_silent_block
from tfbook.experiments.recorded import MASKS, MISPLACED, SEEDS, recorded
from tfbook.model import Block, Decoder

CONFIG = TransformerConfig(
    vocab_size=20, d_model=24, n_heads=6, n_kv_heads=3, n_layers=3, positions="rope", norm="rmsnorm"
)


@pytest.fixture
def model() -> Decoder:
    torch.manual_seed(3)
    return Decoder(CONFIG).eval().requires_grad_(False)


@pytest.fixture
def ids() -> Tensor:
    return torch.randint(20, (1, 7), generator=torch.Generator().manual_seed(4))


def test_maps_are_the_weights_that_the_model_uses(model: Decoder, ids: Tensor) -> None:
    maps = inside.attention_maps(model, ids)
    assert maps.shape == (3, 6, 7, 7)
    assert torch.allclose(maps.sum(-1), torch.ones(3, 6, 7), atol=1e-6)
    assert not maps.triu(1).any()
    # The weights times the values, mixed by the output map, are what the layer returns.
    seen: dict[str, Tensor] = {}
    attention = blocks_of(model.stack)[1].attention
    attention.value.register_forward_hook(lambda *call: seen.update(values=call[2]))
    attention.register_forward_hook(lambda *call: seen.update(output=call[2]))
    model(ids)
    values = seen["values"].view(7, 3, 4).transpose(0, 1).repeat_interleave(2, dim=0)  # (H, S, d_h)
    mixed = (maps[1] @ values).transpose(0, 1).flatten(1)
    assert torch.allclose(attention.output(mixed), seen["output"][0], atol=1e-5)


def test_with_weights_knows_rotary_positions(model: Decoder, ids: Tensor) -> None:
    before = inside.attention_maps(model, ids)[0, :, -1]
    shifted = torch.cat((ids[:, :1], ids[:, :1], ids[:, 1:]), dim=1)  # the same tokens, one place on
    assert not torch.allclose(before[:, -1], inside.attention_maps(model, shifted)[0, :, -1, -1], atol=1e-4)


def test_heads_that_are_taken_away_add_nothing_and_come_back(model: Decoder, ids: Tensor) -> None:
    before = model(ids)
    with inside.without_heads(model, [(1, 2), (1, 5)]):
        without = model(ids)
    assert torch.equal(model(ids), before) and not torch.allclose(without, before, atol=1e-4)
    output = blocks_of(model.stack)[1].attention.output.weight
    output[:, 2 * 4 : 3 * 4] = output[:, 5 * 4 : 6 * 4] = 0  # the same, by the weights
    assert torch.allclose(model(ids), without, atol=1e-6)


def test_hooks_are_gone_after_an_error(model: Decoder, ids: Tensor) -> None:
    before = model(ids)
    with pytest.raises(ZeroDivisionError), inside.without_heads(model, [(0, 0)]):
        raise ZeroDivisionError
    assert torch.equal(model(ids), before)


def test_losses_and_the_trunk(model: Decoder, ids: Tensor) -> None:
    log_probabilities = model(ids).log_softmax(-1)
    assert inside.losses(model, ids)[2] == pytest.approx(-log_probabilities[0, 2, ids[0, 3]].item(), rel=1e-5)
    trunk = inside.states_by_block(model, ids)
    assert len(trunk) == 4 and torch.equal(trunk[0], model.stack.tokens(ids))
    final = model.stack.final_norm
    assert final is not None and torch.allclose(model.head(final(trunk[-1])), model(ids), atol=1e-6)


def test_readings_of_known_maps() -> None:
    one_back = torch.eye(6).roll(1, dims=0)  # row t reads t - 1; row 0 reads 5
    maps = torch.stack((torch.eye(6), one_back, torch.eye(6)[:1].expand(6, 6)))[None]  # (1, 3, 6, 6)
    read = inside.reading(maps, first=2)
    assert read["itself"].tolist() == [[1, 0, 0]]
    assert read["the token before"].tolist() == [[0, 1, 0]]
    assert read["the first token"].tolist() == [[0, 0, 1]]
    completes = torch.zeros(1, 1, 6, 6)
    completes[0, 0, [3, 4, 5], [1, 2, 3]] = torch.tensor([1.0, 1.0, 0.4])  # right after t - 3
    completes[0, 0, 2, 0] = 1.0  # the first half does not count
    assert inside.after_the_same(completes, 3).item() == pytest.approx(0.8)


def test_the_first_value_is_compared_by_head(model: Decoder, ids: Tensor) -> None:
    for block in blocks_of(model.stack):
        block.attention.value.weight[4:8] = 0  # key/value head 1: query heads 2 and 3
        block.attention.value.bias[4:8] = torch.arange(4.0)
    ratio = inside.first_value(model, ids)
    assert ratio.shape == (3, 6) and torch.allclose(ratio[:, 2:4], torch.ones(3, 2))


def test_a_silent_block_is_the_identity_in_pre_ln_alone() -> None:
    torch.manual_seed(5)
    x = 3 * torch.randn(2, 5, 24)
    blocks = {
        "pre": Block(CONFIG, 0),
        "post": Block(CONFIG.replace(norm_position="post"), 0),
        "misplaced": MisplacedBlock(CONFIG, 0),
    }
    for name, block in blocks.items():
        before = [parameter.clone() for parameter in block.parameters()]
        change = change_of_a_silent_block(block, x)
        assert change == 0 if name == "pre" else change > 0.3
        assert all(map(torch.equal, before, block.parameters()))  # the weights are back


def test_the_records_of_the_misconceptions_are_whole_and_repeat() -> None:
    stuck, masks = recorded("misplaced_norm"), recorded("forgotten_mask")
    assert stuck.keys() == MISPLACED.keys() and masks.keys() == MASKS.keys()
    assert all(len(losses) == len(SEEDS) for by_case in stuck.values() for losses in by_case.values())
    again = train_decoder(**MISPLACED["8 blocks, rate 0.003"], norm_position="misplaced", seed=1)
    assert again.loss == pytest.approx(stuck["8 blocks, rate 0.003"]["misplaced"][1], abs=0.02)
