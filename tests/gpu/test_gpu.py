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
# Relative to the largest logit. float32 products round to TF32 nowhere: that is off by default.
TOLERANCES = {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}


def close(found: Tensor, expected: Tensor, dtype: torch.dtype = torch.float32) -> bool:
    gap = (found.double().cpu() - expected.double().cpu()).abs().max()
    return bool(gap <= TOLERANCES[dtype] * expected.double().abs().max().cpu())


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
    assert close(found, expected, dtype)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_step_by_step_equals_all_at_once(model: Decoder, ids: Tensor, dtype: torch.dtype) -> None:
    model, ids = model.to("cuda", dtype), ids.cuda()
    cache = KVCache(CONFIG, 3, 40, dtype, "cuda")
    steps = torch.cat(
        [model(ids[:, :17], cache), *(model(ids[:, t : t + 1], cache) for t in range(17, 40))], 1
    )
    assert close(steps, model(ids), dtype)


def test_a_chunked_prompt_and_left_padding(model: Decoder, ids: Tensor) -> None:
    model, ids = model.cuda(), ids.cuda()
    whole = model(ids)[:, -1]
    cache = KVCache(CONFIG, 3, 40, device="cuda")
    assert close(prefill(model, ids, cache, chunk=7), whole)
    padded = torch.cat((torch.zeros_like(ids[:, :5]), ids), dim=1)
    real = torch.ones_like(padded, dtype=torch.bool)
    real[:, :5] = False
    assert close(model(padded, padding_mask=real)[:, -1], whole)


def test_greedy_text_is_the_cpus(model: Decoder, ids: Tensor) -> None:
    assert torch.equal(generate(model.double(), ids, 20), generate(model.cuda(), ids.cuda(), 20).cpu())


def test_both_paths_of_attention_agree_and_masked_rows_are_zero() -> None:
    query, key = torch.randn(2, 4, 9, 16, device="cuda"), torch.randn(2, 2, 11, 16, device="cuda")
    mask = torch.rand(9, 11, device="cuda") > 0.4
    mask[3] = False
    fused = attend(query, key, key, mask)
    assert close(fused, attend_with_weights(query, key, key, mask)[0])
    assert not fused[:, :, 3].any()


def test_an_encoder_decoder_keeps_its_source() -> None:
    config = CONFIG.replace(layout="encoder-decoder", positions="sinusoidal")
    torch.manual_seed(9)
    model = EncoderDecoder(config).eval().requires_grad_(False).cuda()
    source, target = torch.randint(100, (2, 2, 12), device="cuda")
    cache = KVCache(config, 2, 12, device="cuda")
    steps = torch.cat([model(source, target[:, t : t + 1], cache=cache) for t in range(12)], dim=1)
    assert close(steps, model(source, target))


def test_an_experiment_runs_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFBOOK_DEVICE", "cuda")
    assert previous_tokens(8, steps=400).accuracy > 0.93
