"""What a configuration can describe and this package does not build. Refused by name, never left out."""

from tfbook.config import TransformerConfig
from tfbook.validation import listed, short

# The fields of real models, with the values that the classes here can honour.
_BUILT: dict[str, tuple[object, ...]] = {
    "norm_position": ("pre", "post"),
    "positions": ("none", "sinusoidal", "learned", "rope"),
    "window": (0,),
    "experts": (None,),
    "latent": (None,),
    "linear": (None,),
    "audio": (None,),
    "head": ("none", "tokens"),
    "norm_gain": (True,),
    "qk_norm": ("none",),
    "attention_gate": (False,),
    "attention_sinks": (False,),
    "parallel": (False,),
    "shared_layers": (False,),
    "position_offset": (0,),
    "stored_positions": (False,),
    "relative_buckets": (0,),
    "n_token_types": (0,),
    "beyond": ((),),
}
_FOLLOWING = {
    "key_bias": "qkv_bias",
    "d_embedding": "d_model",
    "n_encoder_layers": "n_layers",
    "encoder_d_ff": "d_ff",
}


def refuse_unbuilt(config: TransformerConfig, *layouts: str) -> None:
    """Raise ValueError for a configuration of which only the accounts know, naming the field.

    `layouts` are those that fit where it is to be used; any, when none is given.
    """
    if layouts and config.layout not in layouts:
        raise ValueError(f"layout={config.layout!r} does not fit here; use {' or '.join(map(repr, layouts))}")
    for name, values in _BUILT.items():
        value = getattr(config, name)
        if value not in values:
            raise ValueError(
                f"{name}={short(value)} is described for the accounts alone, and not built; "
                f"what is built has {name} {listed(map(repr, values))}"
            )
    for name, other in _FOLLOWING.items():
        if getattr(config, name) != getattr(config, other):
            raise ValueError(
                f"{name}={getattr(config, name)} differs from {other}={getattr(config, other)}; "
                "such a model is described for the accounts alone, and not built"
            )
    if (config.head == "none") != (config.layout == "encoder"):
        told = f"head={config.head!r} with layout={config.layout!r}"
        raise ValueError(f"{told} is described for the accounts alone, and not built")
