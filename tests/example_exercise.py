import random

from tfbook.accounting import kv_cache
from tfbook.config import TransformerConfig
from tfbook.exercises.authoring import ask
from tfbook.exercises.compound import Bytes
from tfbook.exercises.engine import Exercise, drawn


def cache_of_a_token(n_layers: int, n_kv_heads: int) -> Exercise:
    config = TransformerConfig(d_model=2048, n_layers=n_layers, n_heads=16, n_kv_heads=n_kv_heads)
    truth = kv_cache(config, dtype="fp16").bytes_per_token
    return ask(
        "2.5.6",
        Bytes(),
        truth,
        ("keys-alone", truth // 2, "Keys **and** values are kept."),
        ("one-layer", truth // n_layers, "Every layer keeps its own."),
        id="my-cache",
        title="The cache of a token",
        prompt=f"L = {n_layers}, n_kv = {n_kv_heads}, $d_h$ = 128, FP16: how much does one token cost?",
        hints=("Two vectors for each key/value head and layer.",),
        solution=f"$2 \\cdot {n_layers} \\cdot {n_kv_heads} \\cdot 128 \\cdot 2$ = {truth:,} bytes.",
    )


def numbers(draw: random.Random) -> dict[str, int]:
    return {"n_layers": draw.randint(10, 40), "n_kv_heads": draw.choice([1, 2, 4, 8])}


MINE = drawn(cache_of_a_token, numbers, n_layers=24, n_kv_heads=4)
