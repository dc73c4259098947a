"""Random valid configurations, small enough to build."""

from hypothesis import strategies as st

from tfbook import TransformerConfig


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
