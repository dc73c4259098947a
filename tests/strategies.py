"""What several tests draw from: random small configurations, and what nobody should type."""

from hypothesis import strategies as st

from tfbook import TransformerConfig

# What a text box may receive. Each must get a sentence that helps.
BAD_ANSWERS = (
    "abc",
    "",
    "10 parsecs",
    "9**9**9",
    '__import__("os")',
    "1" * 10_000,
    "1e999",
    "nan",
    "<img src=x>",
    "(" * 150,
)


@st.composite
def attention_configs(draw: st.DrawFn, n_heads: int | None = None) -> TransformerConfig:
    """Any attention layer: grouped or not, H d_h equal to d or not, biases on or off."""
    group, n_kv = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    d_head = draw(st.integers(1, 5))
    square = draw(st.booleans())
    d_model = n_kv * group * d_head if square else draw(st.integers(1, 12))
    return TransformerConfig(
        d_model=d_model,
        n_heads=n_kv * group,
        n_kv_heads=n_kv,
        d_head=d_head,
        positions="none",
        qkv_bias=draw(st.booleans()),
        output_bias=draw(st.booleans()),
    )


@st.composite
def models(
    draw: st.DrawFn, layouts: tuple[str, ...] = ("decoder", "encoder", "encoder-decoder")
) -> TransformerConfig:
    """Any small model that can be built: layouts, norms, positions, biases, activations, tying."""
    n_kv, group = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    norm = draw(st.sampled_from(["layernorm", "rmsnorm"]))
    return TransformerConfig(
        layout=draw(st.sampled_from(layouts)),
        vocab_size=draw(st.integers(2, 30)),
        d_model=2 * draw(st.integers(1, 8)),
        n_layers=draw(st.integers(1, 3)),
        n_heads=n_kv * group,
        n_kv_heads=n_kv,
        d_head=2 * draw(st.integers(1, 4)),
        d_ff=draw(st.integers(1, 20)),
        activation=draw(st.sampled_from(["relu", "relu2", "gelu", "swiglu", "geglu_tanh"])),
        norm=norm,
        norm_position=draw(st.sampled_from(["pre", "post"])),
        final_norm=draw(st.booleans()),
        positions=draw(st.sampled_from(["none", "sinusoidal", "learned", "rope"])),
        max_length=16,
        **{name: draw(st.booleans()) for name in ("qkv_bias", "output_bias", "ffn_bias", "head_bias")},
        norm_bias=norm == "layernorm" and draw(st.booleans()),
        tie_embeddings=draw(st.booleans()),
        embedding_norm=draw(st.booleans()),
    )
