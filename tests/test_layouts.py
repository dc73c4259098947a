"""The demonstrations of section 2.5.4, with the margins that the chapter states."""

import pytest
import torch

from tfbook import TransformerConfig
from tfbook.experiments.layouts import (
    CONFIG,
    KINDS,
    KINDS_OF_CROSS,
    SwappedBlock,
    best_without_future,
    comes_again,
    cross_weights,
    reversal,
    shifted,
    sources,
    tagging,
    who_reads,
)
from tfbook.experiments.recorded import SEEDS, recorded
from tfbook.experiments.text import STACKS, documentation, excerpts, language_model, pairs_loss
from tfbook.model import build, causal_mask


def test_tags_say_whether_the_token_comes_again() -> None:
    ids = torch.tensor([[1, 2, 1, 3, 2, 1]])
    assert comes_again(ids).tolist() == [[True, True, True, False, False, False]]


def test_the_best_tagger_without_the_future_is_what_chance_allows() -> None:
    """The ceiling, by counting over many sequences: at each position the likelier answer."""
    generator = torch.Generator().manual_seed(0)
    again = comes_again(torch.randint(KINDS, (40_000, 12), generator=generator)).float().mean(dim=0)
    assert torch.maximum(again, 1 - again).mean().item() == pytest.approx(best_without_future(), abs=0.005)


def test_the_mask_alone_decides_whether_tags_can_be_learned() -> None:
    assert tagging(causal=False, seed=1) > 0.97
    assert abs(tagging(causal=True, seed=1) - best_without_future()) < 0.03


def test_who_reads_whom_is_found_by_changing_tokens() -> None:
    torch.manual_seed(0)
    config = TransformerConfig(vocab_size=7, d_model=8, n_heads=2, n_layers=2)
    ids = torch.randint(7, (1, 6))
    with torch.no_grad():
        assert torch.equal(who_reads(build(config), ids, 7), causal_mask(6))
        encoder = build(config.replace(layout="encoder", head="none"))
        assert who_reads(encoder, ids, 7).all()


def test_cross_attention_the_right_way_aligns_and_the_wrong_way_leaks() -> None:
    right, wrong = reversal(seed=1), reversal("swapped", seed=1)
    assert right.loss < 0.02 and wrong.loss < 0.02
    assert right.accuracy > 0.98 and wrong.accuracy < 0.5
    assert right.leak < 1e-4 and wrong.leak > 1
    source = sources(1)
    weights = cross_weights(right.model, source, shifted(source.flip(1)))
    assert weights.shape == (2, 4, 8, 8)
    assert weights[0].mean(dim=0).flip(1).diagonal().mean() > 0.8


def test_swapped_cross_attention_is_caught_by_shapes_only_at_times() -> None:
    block, memory = SwappedBlock(CONFIG, layer=0), torch.randn(1, 8, CONFIG.d_model)
    for length in (1, 8):
        assert block(torch.randn(1, length, CONFIG.d_model), memory=memory).shape == (1, 8, CONFIG.d_model)
    assert block(torch.randn(1, 5, CONFIG.d_model), memory=memory[:, :1]).shape == (1, 5, CONFIG.d_model)
    with pytest.raises(RuntimeError, match="must match"):
        block(torch.randn(1, 5, CONFIG.d_model), memory=memory)


def test_a_swapped_model_gets_by_the_source_only_what_its_input_lacks() -> None:
    """The last answer is not in the shifted input: that one place it learns from the source."""
    wrong = reversal("swapped", seed=2)
    assert max(wrong.by_position[:6]) < 0.3 and wrong.by_position[7] > 0.9


def test_the_record_of_the_layouts_is_whole_and_says_what_the_chapter_says() -> None:
    record = recorded("layouts")
    right, swapped, causal = (record[kind] for kind in KINDS_OF_CROSS)
    assert all(len(values) == len(SEEDS) for kind in (right, swapped, causal) for values in kind.values())
    assert min(right["accuracy"]) > 0.98 and max(right["leak"] + causal["leak"]) < 1e-3
    assert max(right["loss"] + swapped["loss"]) < 0.02 < min(causal["loss"])
    assert max(swapped["accuracy"]) < 0.5 < min(causal["accuracy"]) and min(swapped["leak"]) > 1
    assert min(record["both directions"]) > 0.97
    assert all(abs(value - best_without_future()) < 0.03 for value in record["causal"])
    with pytest.raises(ValueError, match="use one of right, swapped"):
        reversal("left")


def test_the_corpus_comes_back_from_its_ids_and_counting_is_what_it_says() -> None:
    corpus = documentation()
    assert corpus.decode(corpus.encode("The value")) == "The value"
    assert len(corpus.training) > 8 * len(corpus.validation) > 100_000
    seen = corpus.training.bincount(minlength=len(corpus.symbols)) + 1.0
    logs = (seen / seen.sum()).log()
    assert pairs_loss(1) == pytest.approx(-logs[corpus.validation].mean().item(), abs=1e-4)
    assert pairs_loss(1) > pairs_loss(2) > 2
    rows = excerpts(corpus.training, 3)
    assert rows.shape == (3, 64) and corpus.decode(rows[1:2]) in corpus.decode(corpus.training[None])


def test_the_record_of_the_text_is_whole_and_repeats() -> None:
    record = recorded("text")
    for by_stack in record.values():
        assert by_stack.keys() == STACKS.keys()
        assert all(len(losses) == len(SEEDS) for losses in by_stack.values())
    again = language_model("two full blocks", seed=2)
    assert again.loss == pytest.approx(record["rope"]["two full blocks"][2], abs=0.05)
