"""The model on a GPU says what it says on the CPU, within the tolerances of its arithmetic: `make test-gpu`.

Not part of `make test`: where there is no GPU every test here is skipped, and says so.
"""

import pytest
import torch
from torch import Tensor

from tfbook import TransformerConfig
from tfbook.decoding import generate, prefill
from tfbook.experiments.heads import previous_tokens
from tfbook.model import Decoder, EncoderDecoder, KVCache, attend, attend_with_weights

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")

CONFIG = TransformerConfig(
    vocab_size=100, d_model=128, n_heads=8, n_kv_heads=2, n_layers=6, positions="rope", norm="rmsnorm"
)
# Absolute, for logits of order one. float32 products may round to TF32 nowhere: it is off by default.
TOLERANCES = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1.5e-1}


@pytest.fixture
def model() -> Decoder:
    torch.manual_seed(7)
    return Decoder(CONFIG).eval().requires_grad_(False)


@pytest.fixture
def ids() -> Tensor:
    return torch.randint(100, (3, 40), generator=torch.Generator().manual_seed(8))


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_a_pass_agrees_with_the_cpu(model: Decoder, ids: Tensor, dtype: torch.dtype) -> None:
    expected = model(ids)
    found = model.to("cuda", dtype)(ids.cuda()).float().cpu()
    torch.testing.assert_close(found, expected, rtol=0, atol=TOLERANCES[dtype])


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_step_by_step_equals_all_at_once(model: Decoder, ids: Tensor, dtype: torch.dtype) -> None:
    model, ids = model.to("cuda", dtype), ids.cuda()
    cache = KVCache(CONFIG, 3, 40, dtype, "cuda")
    steps = torch.cat(
        [model(ids[:, :17], cache), *(model(ids[:, t : t + 1], cache) for t in range(17, 40))], 1
    )
    torch.testing.assert_close(steps.float(), model(ids).float(), rtol=0, atol=2 * TOLERANCES[dtype])


def test_a_chunked_prompt_and_left_padding(model: Decoder, ids: Tensor) -> None:
    model, ids = model.cuda(), ids.cuda()
    whole = model(ids)[:, -1]
    cache = KVCache(CONFIG, 3, 40, device="cuda")
    torch.testing.assert_close(prefill(model, ids, cache, chunk=7), whole, rtol=0, atol=1e-4)
    padded = torch.cat((torch.zeros_like(ids[:, :5]), ids), dim=1)
    real = torch.ones_like(padded, dtype=torch.bool)
    real[:, :5] = False
    torch.testing.assert_close(model(padded, padding_mask=real)[:, -1], whole, rtol=0, atol=1e-4)


def test_greedy_text_is_the_cpus(model: Decoder, ids: Tensor) -> None:
    assert torch.equal(generate(model.double(), ids, 20), generate(model.cuda(), ids.cuda(), 20).cpu())


def test_both_paths_of_attention_agree_and_masked_rows_are_zero() -> None:
    query, key = torch.randn(2, 4, 9, 16, device="cuda"), torch.randn(2, 2, 11, 16, device="cuda")
    mask = torch.rand(9, 11, device="cuda") > 0.4
    mask[3] = False
    fused = attend(query, key, key, mask)
    torch.testing.assert_close(fused, attend_with_weights(query, key, key, mask)[0], rtol=0, atol=1e-4)
    assert not fused[:, :, 3].any()


def test_an_encoder_decoder_keeps_its_source() -> None:
    config = CONFIG.replace(layout="encoder-decoder", positions="sinusoidal")
    torch.manual_seed(9)
    model = EncoderDecoder(config).eval().requires_grad_(False).cuda()
    source, target = torch.randint(100, (2, 2, 12), device="cuda")
    cache = KVCache(config, 2, 12, device="cuda")
    steps = torch.cat([model(source, target[:, t : t + 1], cache=cache) for t in range(12)], dim=1)
    torch.testing.assert_close(steps, model(source, target), rtol=0, atol=1e-4)


def test_an_experiment_runs_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFBOOK_DEVICE", "cuda")
    assert previous_tokens(8, steps=400).accuracy > 0.93
