"""Greedy decoding against `transformers`: the same weights, the same tokens, timed in turn on one thread.

`python -m benchmarks.decoding` prints a table and writes `_build/bench/decoding.json`. Equal tokens are
asserted before anything is timed. Times are CPU times of this process; what counts are the ratios.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
import transformers
from torch import Tensor
from tqdm.auto import tqdm

from tfbook.accounting import kv_cache
from tfbook.decoding import generate
from tfbook.model import Decoder
from tfbook.pretrained import assemble

OUT = Path(__file__).resolve().parents[1] / "_build" / "bench" / "decoding.json"
PROMPT, NEW, ROUNDS, BATCHES = 128, 128, 5, (1, 8)
SMALL = {
    **{"hidden_size": 288, "intermediate_size": 768, "num_hidden_layers": 6, "num_attention_heads": 6},
    **{"num_key_value_heads": 6, "vocab_size": 32_000, "tie_word_embeddings": True},
}


def models() -> dict[str, Callable[[], tuple[Any, Decoder]]]:
    """Theirs and ours, with equal weights, by name."""

    def ours_of(theirs: Any) -> tuple[Any, Decoder]:
        ours = assemble(theirs.config.to_dict(), theirs.state_dict())
        assert isinstance(ours, Decoder)
        return theirs.eval().requires_grad_(False), ours

    def llama() -> tuple[Any, Decoder]:
        return ours_of(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)))

    def gpt2() -> tuple[Any, Decoder]:
        return ours_of(transformers.GPT2LMHeadModel(transformers.GPT2Config()))

    return {"Llama shape, 15 M": llama, "GPT-2 shape, 124 M": gpt2}


def ways(theirs: Any, ours: Decoder, ids: Tensor) -> dict[str, Callable[[], Tensor]]:
    """Each contender as a function without arguments that returns prompt and text (B, T + n)."""
    how = {
        **{"attention_mask": torch.ones_like(ids), "max_new_tokens": NEW, "min_new_tokens": NEW},
        **{"do_sample": False, "eos_token_id": None, "pad_token_id": 0},
    }
    return {
        "tfbook": lambda: generate(ours, ids, NEW, progress=False),
        "transformers, dynamic cache": lambda: theirs.generate(ids, **how),
        "transformers, static cache": lambda: theirs.generate(
            ids, cache_implementation="static", disable_compile=True, **how
        ),
    }


def bandwidth() -> float:
    """Bytes a second, as reading a large matrix for a product with a vector shows it."""
    tall, vector = torch.randn(16_384, 8192), torch.randn(8192)
    times = []
    for _ in range(7):
        begun = time.process_time()
        tall @ vector
        times.append(time.process_time() - begun)
    return 4 * tall.numel() / median(times)


@torch.inference_mode()
def main() -> None:
    """Measure, print, write."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = []
    for name, make in models().items():
        theirs, ours = make()
        weights = 4 * sum(p.numel() for p in ours.parameters())
        for batch in BATCHES:
            ids = torch.randint(ours.config.vocab_size, (batch, PROMPT))
            contenders = ways(theirs, ours, ids)
            texts = [run() for run in contenders.values()]  # warms up, too
            assert all(torch.equal(text, texts[0]) for text in texts), f"{name}: tokens differ"
            times: dict[str, list[float]] = {way: [] for way in contenders}
            for _ in tqdm(range(ROUNDS), desc=f"{name}, batch {batch}"):
                for way, run in contenders.items():
                    begun = time.process_time()
                    run()
                    times[way].append(time.process_time() - begun)
            read = weights + kv_cache(ours.config, batch, PROMPT + NEW // 2, dtype="fp32").bytes
            bound = read / bandwidth()  # seconds a step
            for way, taken in times.items():
                seconds = median(taken)
                ratio = median(t / o for t, o in zip(taken, times["tfbook"], strict=True))
                rows.append({"model": name, "batch": batch, "way": way, "seconds": seconds, "ratio": ratio})
                share = bound * NEW / seconds
                print(f"{name:<19} batch {batch}  {way:<28}{batch * NEW / seconds:>8.1f} tokens/s", end="")
                print(f"   {ratio:>5.2f} times tfbook's time   {share:.2f} of the bound")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(
        json.dumps({"threads": 1, "torch": torch.__version__, "rows": rows}, indent=1) + "\n", "utf-8"
    )


if __name__ == "__main__":
    main()
