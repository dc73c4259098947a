"""The models: equal to themselves however they are run, equal to the accounts, and blind to the future."""

import copy
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tfbook import TransformerConfig
from tfbook.accounting import count_parameters
from tfbook.decoding import Sampler, generate, prefill, stream
from tfbook.model import (
    Decoder,
    Encoder,
    EncoderDecoder,
    KVCache,
    build,
    initialize,
    next_token_loss,
    padding_mask,
)

# float64: two orders of the same additions differ by rounding alone, far below this.
EXACT = {"rtol": 0.0, "atol": 1e-10}
V = 13


@st.composite
def configs(draw: st.DrawFn, layout: str = "decoder") -> TransformerConfig:
    group, n_kv, half = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return TransformerConfig(
        layout=layout,
        vocab_size=V,
        d_model=2 * draw(st.integers(2, 6)),
        n_layers=draw(st.integers(1, 3)),
        n_heads=n_kv * group,
        n_kv_heads=n_kv,
        d_head=2 * half,
        d_ff=draw(st.integers(3, 20)),
        activation=draw(st.sampled_from(["relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu"])),
        norm=(norm := draw(st.sampled_from(["layernorm", "rmsnorm"]))),
        norm_bias=draw(st.booleans()) if norm == "layernorm" else False,
        norm_position=draw(st.sampled_from(["pre", "post"])),
        final_norm=draw(st.booleans()),
        positions=draw(st.sampled_from(["none", "sinusoidal", "learned", "rope"])),
        max_length=32,
        qkv_bias=draw(st.booleans()),
        output_bias=draw(st.booleans()),
        ffn_bias=draw(st.booleans()),
        head_bias=draw(st.booleans()),
        tie_embeddings=draw(st.booleans()),
        embedding_norm=draw(st.booleans()),
        embedding_scale=draw(st.booleans()),
    )


def model_of(config: TransformerConfig, training: bool = False) -> Decoder | Encoder | EncoderDecoder:
    model = build(config).double().train(training)
    initialize(model, "xavier")
    return model


def ids_of(batch: int, length: int) -> Tensor:
    return torch.randint(V, (batch, length))


def cache_of(model: Decoder | EncoderDecoder, batch: int, length: int = 32) -> KVCache:
    return KVCache(model.config, batch, length, dtype=torch.float64)


def in_chunks(model: Decoder, ids: Tensor, cuts: list[int], padding: Tensor | None = None) -> Tensor:
    """Logits of all positions, computed chunk by chunk with a cache."""
    cache = cache_of(model, len(ids))
    bounds = [0, *cuts, ids.shape[1]]
    parts = [
        model(ids[:, a:b], cache, None if padding is None else padding[:, a:b])
        for a, b in pairwise(bounds)
        if b > a
    ]
    assert cache.length == ids.shape[1]
    return torch.cat(parts, dim=1)


@given(configs(), st.booleans(), st.lists(st.integers(1, 8), max_size=4))
def test_full_forward_equals_any_chunks_in_train_and_eval(
    config: TransformerConfig, training: bool, cuts: list[int]
) -> None:
    model, ids = model_of(config, training), ids_of(2, 9)
    whole = model(ids)
    for plan in (sorted(cuts), list(range(1, 9)), []):
        torch.testing.assert_close(in_chunks(model, ids, plan), whole, **EXACT)


@given(configs(), st.lists(st.integers(1, 8), max_size=4))
def test_in_float32_chunks_differ_by_rounding_alone(config: TransformerConfig, cuts: list[int]) -> None:
    """Relative to the largest logit: float32 has 7 digits, and a few layers lose one or two of them."""
    model, ids = model_of(config).float(), ids_of(2, 9)
    cache = KVCache(config, 2, 9)
    bounds = [0, *sorted(set(cuts)), 9]
    parts = [model(ids[:, a:b], cache) for a, b in pairwise(bounds)]
    whole = model(ids)
    assert (torch.cat(parts, dim=1) - whole).abs().max() <= 1e-5 * max(1.0, whole.abs().max().item())


@given(configs(), st.booleans())
def test_no_logit_depends_on_a_later_token(config: TransformerConfig, training: bool) -> None:
    model, ids = model_of(config, training), ids_of(2, 8)
    changed = ids.clone()
    changed[:, 5:] = (ids[:, 5:] + 1) % V
    torch.testing.assert_close(model(ids)[:, :5], model(changed)[:, :5], **EXACT)


@given(configs(), st.lists(st.integers(1, 6), max_size=3))
def test_left_padding_changes_nothing_with_or_without_a_cache(
    config: TransformerConfig, cuts: list[int]
) -> None:
    model = model_of(config)
    short, long = ids_of(1, 4), ids_of(1, 7)
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.long), short], dim=1)
    ids, real = torch.cat([padded, long]), torch.ones(2, 7, dtype=torch.bool)
    real[0, :3] = False
    for logits in (model(ids, padding_mask=real), in_chunks(model, ids, sorted(cuts), real)):
        assert logits.isfinite().all()
        torch.testing.assert_close(logits[:1, 3:], model(short), **EXACT)
        torch.testing.assert_close(logits[1:], model(long), **EXACT)


@given(configs())
def test_right_padding_changes_nothing(config: TransformerConfig) -> None:
    model, ids = model_of(config), ids_of(1, 7)
    real = torch.tensor([[True] * 4 + [False] * 3])
    torch.testing.assert_close(model(ids, padding_mask=real)[:, :4], model(ids[:, :4]), **EXACT)
    encoder = model_of(config.replace(layout="encoder"))
    torch.testing.assert_close(encoder(ids, real)[:, :4], encoder(ids[:, :4]), **EXACT)


@given(configs("encoder-decoder"))
def test_an_encoder_decoder_decodes_step_by_step_as_in_one_pass(config: TransformerConfig) -> None:
    model = model_of(config)
    source, target = ids_of(2, 5), ids_of(2, 6)
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    whole = model(source, target, real)
    cache = cache_of(model, 2)
    steps = [model(source, target[:, t : t + 1], real, cache) for t in range(6)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, **EXACT)
    assert all(
        pair is not None and pair[0].shape[2] == 5 for pair in cache.cross
    )  # projected once, never grown
    torch.testing.assert_close(whole[1:], model(source[1:, :3], target[1:]), **EXACT)
    changed = (target + torch.tensor([0, 0, 0, 1, 1, 1])) % V
    torch.testing.assert_close(model(source, changed, real)[:, :3], whole[:, :3], **EXACT)


@given(st.sampled_from(["decoder", "encoder", "encoder-decoder"]).flatmap(configs))
def test_the_account_equals_the_model_part_by_part(config: TransformerConfig) -> None:
    model, account = build(config), count_parameters(config)
    assert account.total == sum(p.numel() for p in model.parameters())
    stacks = {"encoder": ["encoder"], "decoder": ["decoder"], "encoder-decoder": ["encoder", "decoder"]}
    for name in stacks[config.layout]:
        stack = model.stack if config.layout != "encoder-decoder" else getattr(model, name)
        parts = {part.name: part.total for part in account.part(name).part("block").parts}
        for part, count in parts.items():
            modules = [getattr(block, part) for block in stack.blocks]
            assert sum(p.numel() for m in modules for p in m.parameters()) == config.n_layers * count


def test_a_padding_mask_from_a_pad_token() -> None:
    assert padding_mask(torch.tensor([[0, 0, 3], [1, 2, 3]]), pad_id=0).tolist() == [
        [False, False, True],
        [True] * 3,
    ]


def test_cropping_and_reordering_the_cache() -> None:
    model, ids = (
        model_of(TransformerConfig(vocab_size=V, d_model=12, n_heads=3, n_layers=2, positions="rope")),
        ids_of(3, 8),
    )
    cache = cache_of(model, 3)
    model(ids, cache)
    cache.crop(5)
    torch.testing.assert_close(model(ids[:, 5:], cache), model(ids)[:, 5:], **EXACT)
    cache.crop(5)
    rows = torch.tensor([2, 0, 0])
    cache.reorder(rows)
    mixed = torch.cat([ids[rows, :5], ids[:, 5:]], dim=1)
    torch.testing.assert_close(model(ids[:, 5:], cache), model(mixed)[:, 5:], **EXACT)


def test_the_cache_at_its_capacity_and_beyond() -> None:
    config = TransformerConfig(vocab_size=V, d_model=12, n_heads=3, n_layers=2, n_kv_heads=1)
    model, ids = model_of(config), ids_of(2, 6)
    cache = cache_of(model, 2, 6)
    assert cache.nbytes == 2 * 2 * 2 * 1 * 6 * 4 * 8  # K and V, layers, batch, heads, length, width, bytes
    model(ids[:, :5], cache)
    model(ids[:, 5:], cache)
    before = cache.keys[0].clone()
    with pytest.raises(ValueError, match="holds 6 positions, 6 are filled and 1 more are given"):
        model(ids[:, :1], cache)
    assert cache.length == 6 and torch.equal(before, cache.keys[0])
    with pytest.raises(ValueError, match="ids have batch 1 but the cache was made for 2"):
        model(ids[:1], cache)
    with pytest.raises(ValueError, match="crop to 9, but 6 positions are filled"):
        cache.crop(9)
    with pytest.raises(ValueError, match="give dtype"):
        model(ids, KVCache(config, 2, 6, dtype=torch.float32))


def test_a_cache_serves_another_source_after_crop_to_zero_and_keeps_its_mask() -> None:
    config = TransformerConfig(layout="encoder-decoder", vocab_size=V, d_model=12, n_heads=3, n_layers=2)
    model, source, target = model_of(config), ids_of(2, 5), ids_of(2, 6)
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    cache = cache_of(model, 2)
    model(source, target[:, :4], real, cache)
    torch.testing.assert_close(
        model(source, target[:, 4:], None, cache), model(source, target, real)[:, 4:], **EXACT
    )
    cache.crop(4)
    cache.reorder(torch.tensor([1, 0]))  # the mask of the source moves with its row
    expected = model(source.flip(0), target.flip(0), real.flip(0))[:, 4:]
    torch.testing.assert_close(model(source.flip(0), target.flip(0)[:, 4:], None, cache), expected, **EXACT)
    with pytest.raises(ValueError, match="source has length 3 but the cache has one of 5"):
        model(source[:, :3], target[:, :1], None, cache)
    cache.crop(0)
    other = ids_of(2, 3)
    torch.testing.assert_close(model(other, target, None, cache), model(other, target), **EXACT)


def test_a_pass_that_failed_half_way_can_be_tried_again() -> None:
    config = TransformerConfig(layout="encoder-decoder", vocab_size=V, d_model=12, n_heads=3, n_layers=2)
    model, source, other, target = model_of(config), ids_of(2, 5), ids_of(2, 5), ids_of(2, 6)
    cache = cache_of(model, 2)

    def fail(*_: object) -> None:
        raise MemoryError

    hook = model.decoder.blocks[1].register_forward_pre_hook(fail)
    with pytest.raises(MemoryError):
        model(source, target, None, cache)
    hook.remove()
    torch.testing.assert_close(model(other, target, None, cache), model(other, target), **EXACT)


def test_a_cache_keeps_no_graph() -> None:
    model, ids = model_of(TransformerConfig(vocab_size=V, d_model=12, n_heads=3, n_layers=1)), ids_of(1, 6)
    cache = cache_of(model, 1)
    for t in range(6):
        model(ids[:, t : t + 1], cache)  # with gradients on
    assert not any(buffer.requires_grad for buffer in cache.keys + cache.values)
    assert copy.deepcopy(cache).length == 6


def test_reorder_and_crop_take_integers_alone() -> None:
    model, ids = model_of(TransformerConfig(vocab_size=V, d_model=12, n_heads=3, n_layers=1)), ids_of(2, 3)
    cache = cache_of(model, 2)
    model(ids, cache)
    with pytest.raises(ValueError, match="rows has shape"):
        cache.reorder(torch.tensor([True, False]))
    with pytest.raises(TypeError):
        cache.crop(2.0)


def test_gradients_stay_finite_where_a_row_has_nothing_to_read() -> None:
    model, ids = model_of(TransformerConfig(vocab_size=V, d_model=12, n_heads=3, n_layers=2)), ids_of(2, 5)
    real = torch.tensor([[False, False, True, True, True], [False] * 5])
    model(ids, padding_mask=real)[real].sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_bad_input_is_refused_by_name() -> None:
    model = model_of(TransformerConfig(vocab_size=V, d_model=12, n_heads=3, n_layers=1, max_length=4))
    for call, told in (
        (lambda: model(ids_of(1, 5)), "length 5 exceeds max_length=4"),
        (lambda: model(torch.tensor([[V]])), f"id {V} is not in the vocabulary; ids run from 0 to {V - 1}"),
        (lambda: model(torch.tensor([[-1]])), "id -1 is not in the vocabulary"),
        (lambda: model(torch.tensor([0])), "give int64 ids of shape"),
        (lambda: model(torch.tensor([[0.5]])), "give int64 ids of shape"),
        (
            lambda: model(ids_of(1, 3), padding_mask=torch.ones(1, 2, dtype=torch.bool)),
            "padding_mask has shape",
        ),
        (lambda: generate(model, ids_of(1, 3), 5), "ask for at most 2"),
        (lambda: generate(model, ids_of(1, 3), 0), "max_new_tokens=0"),
        (lambda: generate(model, ids_of(1, 0), 1), "at least one token"),
        (lambda: generate(model, ids_of(1, 2), 1, source_ids=ids_of(1, 2)), "source_ids belong to"),
        (
            lambda: generate(model, ids_of(1, 2), 1, padding_mask=torch.tensor([[True, False]])),
            "pad prompts on the left",
        ),
        (lambda: prefill(model, ids_of(1, 2), cache_of(model, 1), chunk=0), "chunk=0 is not positive"),
    ):
        with pytest.raises(ValueError, match=told):
            call()
    with pytest.raises(TypeError, match="Encoder does not generate"):
        generate(model_of(model.config.replace(layout="encoder")), ids_of(1, 2), 1)


@given(configs(), st.sampled_from([None, 1, 3]))
def test_greedy_is_the_same_with_and_without_cache_and_in_a_padded_batch(
    config: TransformerConfig, chunk: int | None
) -> None:
    model = model_of(config)
    short, long = ids_of(1, 3), ids_of(1, 5)
    apart = [generate(model, ids, 6, use_cache=False)[:, -6:] for ids in (short, long)]
    ids = torch.cat([torch.cat([torch.zeros(1, 2, dtype=torch.long), short], 1), long])
    real = torch.ones(2, 5, dtype=torch.bool)
    real[0, :2] = False
    for use_cache in (True, False):
        together = generate(model, ids, 6, padding_mask=real, use_cache=use_cache, chunk=chunk)[:, -6:]
        assert torch.equal(together, torch.cat(apart))


def test_generation_of_an_encoder_decoder_and_its_stops() -> None:
    config = TransformerConfig(layout="encoder-decoder", vocab_size=V, d_model=12, n_heads=3, n_layers=2)
    start = torch.zeros(2, 1, dtype=torch.long)
    for seed in range(50):  # until one row stops at once and the other goes on
        torch.manual_seed(seed)
        model, source = model_of(config), ids_of(2, 5)
        free = generate(model, start, 6, source_ids=source)
        stop = int(free[0, 1])
        if stop not in free[1].tolist():
            break
    assert stop not in free[1].tolist()
    assert torch.equal(free, generate(model, start, 6, source_ids=source, use_cache=False))
    stopped = generate(model, start, 6, source_ids=source, stop=[stop], pad_id=7)
    assert stopped[0].tolist() == [0, stop, *[7] * 5]
    assert torch.equal(stopped[1], free[1])
    assert generate(model, start[:1], 6, source_ids=source[:1], stop=[stop]).tolist() == [[0, stop]]


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned", "rope"])
def test_what_enters_the_first_block(positions: str) -> None:
    config = TransformerConfig(
        vocab_size=V, d_model=8, n_heads=2, n_layers=1, positions=positions, embedding_scale=True
    )
    model, ids = model_of(config), ids_of(1, 4)
    expected = model.stack.tokens(ids) * 8**0.5
    where = torch.arange(4)
    if positions == "sinusoidal":
        angle = where[:, None] / 10_000 ** (torch.arange(0, 8, 2) / 8)
        expected[..., 0::2] += angle.sin()
        expected[..., 1::2] += angle.cos()
    if positions == "learned":
        expected = expected + model.stack.positions.weight[:4]
    torch.testing.assert_close(model.stack.embed(ids, where[None]), expected, rtol=0, atol=1e-6)


def test_sampling_is_reproducible_and_streams() -> None:
    model, ids = model_of(TransformerConfig(vocab_size=V, d_model=12, n_heads=3, n_layers=1)), ids_of(2, 3)
    one, two = (
        generate(model, ids, 8, temperature=1.0, generator=torch.Generator().manual_seed(5)) for _ in range(2)
    )
    assert torch.equal(one, two)
    assert [token.shape for token in stream(model, ids, 3)] == [(2,)] * 3


LOGITS = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()


@pytest.mark.parametrize(
    ("settings_", "kept"),
    [
        ({}, [0, 1, 2, 3]),
        ({"top_k": 1}, [0]),
        ({"top_k": 9}, [0, 1, 2, 3]),
        ({"top_p": 0.0}, [0]),
        ({"top_p": 0.5}, [0]),  # at equality no extra token
        ({"top_p": 0.51}, [0, 1]),
        ({"top_p": 0.75}, [0, 1]),
        ({"top_p": 1.0}, [0, 1, 2, 3]),
        ({"min_p": 0.5}, [0, 1]),
        ({"min_p": 0.0}, [0, 1, 2, 3]),
        ({"min_p": 1.0}, [0]),
        ({"top_k": 2, "top_p": 0.6}, [0]),
    ],
)
def test_filters_at_their_edges(settings_: dict[str, float], kept: list[int]) -> None:
    filtered = Sampler(temperature=1.0, **settings_).filtered(LOGITS)
    assert filtered.isfinite().nonzero()[:, 1].tolist() == kept


@pytest.mark.parametrize(
    "bad", [{"temperature": -1}, {"temperature": float("nan")}, {"top_k": 0}, {"top_p": 1.1}, {"min_p": -0.1}]
)
def test_settings_out_of_range_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Sampler(**bad)


def test_the_loss_is_that_of_the_next_token_and_ignores_padding() -> None:
    logits, ids = torch.randn(2, 5, V), ids_of(2, 5)
    each = -logits.log_softmax(-1)[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]
    torch.testing.assert_close(next_token_loss(logits, ids), each.mean())
    real = torch.tensor([[False, False, True, True, True], [True, True, True, True, False]])
    torch.testing.assert_close(
        next_token_loss(logits, ids, real), torch.cat([each[0, 2:], each[1, :3]]).mean()
    )
    with pytest.raises(ValueError, match="leave no target"):
        next_token_loss(logits[:, :1], ids[:, :1])


@pytest.mark.parametrize("recipe", ["gpt2", "xavier", "torch"])
def test_every_layer_is_drawn_for_itself_and_reproducibly(recipe: str) -> None:
    model = build(TransformerConfig(vocab_size=V, d_model=64, n_heads=4, n_layers=3))
    torch.manual_seed(0)
    initialize(model, recipe, torch.Generator().manual_seed(1))
    weights = [block.feed_forward.down.weight.detach().clone() for block in model.stack.blocks]
    assert not torch.equal(weights[0], weights[1])
    assert model.head.weight is model.stack.tokens.weight
    torch.manual_seed(0)
    initialize(model, recipe, torch.Generator().manual_seed(1))
    assert torch.equal(model.stack.blocks[0].feed_forward.down.weight, weights[0])
    expected = {"gpt2": 0.02 / 6**0.5, "xavier": (2 / (64 + 256)) ** 0.5, "torch": (1 / (3 * 256)) ** 0.5}[
        recipe
    ]
    assert weights[0].std().item() == pytest.approx(expected, rel=0.05)
    with pytest.raises(ValueError, match="recipe='he' is unknown"):
        initialize(model, "he")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_follows_float32(dtype: torch.dtype) -> None:
    model = build(
        TransformerConfig(
            vocab_size=V, d_model=32, n_heads=4, n_layers=2, positions="rope", norm="rmsnorm", d_ff=64
        )
    )
    initialize(model, "gpt2")
    ids = ids_of(2, 9)
    expected = model(ids)
    model.to(dtype)
    torch.testing.assert_close(model(ids).float(), expected, rtol=0.05, atol=0.02)
    cache = KVCache(model.config, 2, 9, dtype=dtype)
    assert prefill(model, ids, cache, chunk=4).dtype == dtype


@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e-45, 5e-324])
def test_a_tiny_temperature_is_greedy(temperature: float) -> None:
    logits = torch.tensor([[1e4, 5e3, 1.0]])
    assert Sampler(temperature).choose(logits).tolist() == [0]


def test_the_loss_takes_any_float_and_integer_type_and_refuses_other_shapes() -> None:
    logits, ids = torch.randn(2, 5, V, dtype=torch.float64), ids_of(2, 5)
    expected = next_token_loss(logits, ids)
    assert expected.dtype == torch.float64
    for kind in (torch.int32, torch.uint8):
        torch.testing.assert_close(next_token_loss(logits, ids.to(kind)), expected)
    assert next_token_loss(logits.bfloat16(), ids).dtype == torch.float32
    with pytest.raises(ValueError, match=r"give \(B, T, V\) and \(B, T\)"):
        next_token_loss(logits, ids.T)


@pytest.mark.parametrize("recipe", ["gpt2", "xavier", "torch"])
@pytest.mark.parametrize("norm", ["layernorm", "rmsnorm"])
def test_initialize_leaves_nothing_as_it_was(recipe: str, norm: str) -> None:
    config = TransformerConfig(
        layout="encoder-decoder", vocab_size=V, d_model=12, n_heads=3, n_layers=1, norm=norm, head_bias=True
    )
    one, two = build(config), build(config)
    for model in (one, two):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(7.0)
        initialize(model, recipe, torch.Generator().manual_seed(3))
    for (name, a), (_, b) in zip(one.named_parameters(), two.named_parameters(), strict=True):
        assert not (a == 7.0).any() and torch.equal(a, b), name


def test_generation_under_autocast_and_a_wrong_pad() -> None:
    model = build(TransformerConfig(vocab_size=V, d_model=12, n_heads=3, n_layers=1)).eval()
    with torch.autocast("cpu", torch.bfloat16):
        assert generate(model, ids_of(1, 3), 4).shape == (1, 7)
    with pytest.raises(ValueError, match="pad_id=99 is not in the vocabulary"):
        generate(model, ids_of(1, 3), 4, stop=[1], pad_id=99)
