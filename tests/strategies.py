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
