"""The code exercises about accounts, sections 2.5.5 and 2.5.6: references, slips and cases."""

from collections.abc import Iterator

from tfbook.exercises.code import Case, CodeTask, slip


def decoder_parameters(vocab: int, d: int, n_layers: int, d_ff: int, d_kv: int, tied: bool) -> int:
    """Parameters of a bias-free Pre-LN decoder with RMSNorm."""
    attention = 2 * d * d + 2 * d * d_kv
    block = attention + 2 * d * d_ff + 2 * d
    head = 0 if tied else vocab * d
    return vocab * d + n_layers * block + d + head


def _parameter_cases() -> Iterator[Case]:
    yield from (
        (1, 1, 1, 1, 1, True),
        (11, 4, 1, 8, 4, True),
        (11, 4, 3, 7, 2, False),
        (50_257, 768, 12, 3072, 256, True),
    )


DECODER_PARAMETERS = CodeTask(
    decoder_parameters,
    (
        slip(
            "tied-twice",
            decoder_parameters,
            ("0 if tied else vocab * d", "vocab * d"),
            diagnosis="Tied embeddings are one table: count it once.",
        ),
        slip(
            "never-a-head",
            decoder_parameters,
            ("0 if tied else vocab * d", "0"),
            diagnosis="An untied output map has V d weights of its own.",
        ),
        slip(
            "tying-inverted",
            decoder_parameters,
            ("0 if tied else vocab * d", "vocab * d if tied else 0"),
            diagnosis="It is the other way round: tied shares the table, untied has a second one.",
        ),
        slip(
            "all-heads",
            decoder_parameters,
            ("2 * d * d + 2 * d * d_kv", "4 * d * d"),
            diagnosis="You counted 4 d² for attention. Keys and values are only d_kv wide.",
        ),
        slip(
            "keys-without-values",
            decoder_parameters,
            ("+ 2 * d * d_kv", "+ d * d_kv"),
            diagnosis="Keys **and** values: d d_kv twice.",
        ),
        slip(
            "no-output-map",
            decoder_parameters,
            ("2 * d * d +", "d * d +"),
            diagnosis="The output map of attention is missing: d² more.",
        ),
        slip(
            "one-layer",
            decoder_parameters,
            ("n_layers * block", "block"),
            diagnosis="You counted one block. There are n_layers.",
        ),
        slip(
            "one-norm",
            decoder_parameters,
            ("+ 2 * d\n", "+ d\n"),
            diagnosis="A block has two norms, one for each sublayer.",
        ),
        slip(
            "no-final-norm",
            decoder_parameters,
            ("* block + d +", "* block +"),
            diagnosis="The final norm's gain is missing: d.",
        ),
        slip(
            "layernorm",
            decoder_parameters,
            ("+ 2 * d\n", "+ 4 * d\n"),
            ("* block + d +", "* block + 2 * d +"),
            diagnosis="You gave the norms a bias. RMSNorm has a gain alone.",
        ),
        slip(
            "one-matrix",
            decoder_parameters,
            ("2 * d * d_ff", "d * d_ff"),
            diagnosis="The feed-forward layer has two matrices, up and down.",
        ),
    ),
    _parameter_cases,
)


def pass_flops(batch: int, length: int, d: int, n_layers: int, vocab: int) -> int:
    """Matmul FLOPs of a decoder's full pass."""
    weights = n_layers * 12 * d * d + vocab * d
    pairs = n_layers * 2 * length * d
    return 2 * batch * length * (weights + pairs)


def _flop_cases() -> Iterator[Case]:
    yield from ((1, 1, 1, 1, 1), (1, 3, 2, 1, 5), (2, 5, 4, 3, 7), (8, 512, 768, 12, 32_000))


PASS_FLOPS = CodeTask(
    pass_flops,
    (
        slip(
            "one-flop",
            pass_flops,
            ("return 2 * batch", "return batch"),
            diagnosis="A multiply-add counts as 2: you are off by a factor of two.",
        ),
        slip(
            "no-scores",
            pass_flops,
            ("(weights + pairs)", "weights"),
            diagnosis="The products of queries with keys and of weights with values are missing: they have no weights, and cost all the same.",
        ),
        slip(
            "one-product",
            pass_flops,
            ("2 * length * d", "length * d"),
            diagnosis="There are two products over the pairs: the scores, and the averages of the values.",
        ),
        slip(
            "no-head",
            pass_flops,
            (" + vocab * d", ""),
            diagnosis="The output map is missing: 2 V d FLOPs a token.",
        ),
        slip(
            "look-up-counted",
            pass_flops,
            ("vocab * d\n", "2 * vocab * d\n"),
            diagnosis="You counted the embedding as well. It is looked up, not multiplied.",
        ),
        slip(
            "head-per-layer",
            pass_flops,
            ("n_layers * 12 * d * d + vocab * d", "n_layers * (12 * d * d + vocab * d)"),
            diagnosis="The output map stands once, not in every block.",
        ),
        slip(
            "pairs-once",
            pass_flops,
            ("n_layers * 2 * length * d", "2 * length * d"),
            diagnosis="Every block compares the pairs: n_layers times.",
        ),
        slip(
            "one-sequence",
            pass_flops,
            ("2 * batch * length", "2 * length"),
            diagnosis="The batch is missing.",
        ),
        slip(
            "attention-alone",
            pass_flops,
            ("12 * d * d", "4 * d * d"),
            diagnosis="The feed-forward layer is missing: 8 d² weights more in each block.",
        ),
    ),
    _flop_cases,
)


def kv_bytes(
    batch: int, length: int, n_layers: int, n_kv_heads: int, d_head: int, bytes_per_number: int
) -> int:
    """Bytes of the key/value cache of a batch."""
    per_token_per_layer = 2 * n_kv_heads * d_head * bytes_per_number
    return batch * length * n_layers * per_token_per_layer


def _kv_cases() -> Iterator[Case]:
    yield from (
        (1, 1, 1, 1, 1, 1),
        (1, 1, 1, 2, 3, 2),
        (3, 5, 7, 2, 4, 2),
        (1, 8192, 32, 8, 128, 2),
        (4, 100, 2, 1, 64, 1),
    )


KV_BYTES = CodeTask(
    kv_bytes,
    (
        slip(
            "keys-alone",
            kv_bytes,
            ("2 * n_kv_heads", "n_kv_heads"),
            diagnosis="Keys **and** values are kept: a factor of 2.",
        ),
        slip(
            "one-layer",
            kv_bytes,
            ("length * n_layers", "length"),
            diagnosis="Every layer keeps its own keys and values.",
        ),
        slip("one-sequence", kv_bytes, ("batch * length", "length"), diagnosis="The batch is missing."),
        slip(
            "one-token",
            kv_bytes,
            ("batch * length *", "batch *"),
            diagnosis="That is one token. The cache holds all `length` of them.",
        ),
        slip("numbers", kv_bytes, (" * bytes_per_number", ""), diagnosis="Those are numbers, not bytes."),
        slip(
            "two-bytes-always",
            kv_bytes,
            ("* bytes_per_number", "* 2"),
            diagnosis="You took 2 bytes for granted. Take `bytes_per_number`: an 8-bit cache has 1.",
        ),
        slip(
            "squared-width",
            kv_bytes,
            ("d_head *", "d_head * d_head *"),
            diagnosis="The head width enters once: a key is a vector.",
        ),
        slip(
            "per-pair",
            kv_bytes,
            ("batch * length *", "batch * length * length *"),
            diagnosis="The cache grows with T, not with T²: the scores are not kept.",
        ),
    ),
    _kv_cases,
)
