"""Well-known models by name. The facts stand in presets.json, each with its source.

An entry holds the fields of the model's own config.json that its costs follow from, and where they
were taken from. To add one: put it there and its published number of parameters in the tests.
"""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tfbook.accounting.huggingface import read_huggingface_config
from tfbook.config import TransformerConfig
from tfbook.validation import listed, short


@dataclass(frozen=True)
class Preset:
    """A model's title, its config.json (as far as it matters) and where that was published."""

    title: str
    source: str
    config: dict[str, Any]


#: Published configurations by the names that `preset` takes.
PRESETS: dict[str, Preset] = {
    name: Preset(**entry)
    for name, entry in json.loads(files(__package__).joinpath("presets.json").read_text("utf-8")).items()
}


def preset(name: str) -> TransformerConfig:
    """The description of a well-known model. Raises KeyError for an unknown name, listing those there are."""
    if name not in PRESETS:
        raise KeyError(f"preset {short(name)} does not exist; use one of {listed(PRESETS)}")
    return read_huggingface_config(PRESETS[name].config)
