"""Reading a config.json field by field, so that nothing in it is overlooked.

A `ConfigReader` remembers which fields were read. Every reader names the field, what it holds and
what to do when it cannot be used. Null counts as absent, as it does in these files.
"""

from collections.abc import Mapping
from typing import Any

from tfbook.validation import as_count, as_real, listed, short

REQUIRED: Any = object()


class ConfigReader:
    """The fields of one object of a config.json. A key such as "a|b" is one field of two names."""

    def __init__(self, fields: Mapping[str, Any], where: str = "") -> None:
        self.fields, self.where = fields, where
        self.used: set[str] = set()
        self.inside: list[ConfigReader] = []

    def get(self, keys: str, default: Any = REQUIRED) -> Any:
        """The raw value. Raises ValueError where it is missing and required, or told twice differently."""
        names = keys.split("|")
        self.used.update(names)
        found = {name: self.fields[name] for name in names if self.fields.get(name) is not None}
        values = list(found.values())
        if values and values[0] != values[0]:
            raise ValueError(f"{self.name(keys)} is not a number (nan); give one")
        if any(value != values[0] for value in values):
            told = ", ".join(f"{self.name(name)}={short(value)}" for name, value in found.items())
            raise ValueError(f"{told} say the same thing differently; keep one")
        if values:
            return values[0]
        if default is REQUIRED:
            raise ValueError(
                f"{self.name(names[0])} is missing; give it, as the model's own config.json does"
            )
        return default

    def present(self, key: str) -> bool:
        """Whether the field is more than null. It must be there: what its absence means differs."""
        if key not in self.fields:
            told = f"{self.name(key)} is missing, and what that means differs between versions"
            raise ValueError(f"{told}; give it, null for none")
        return self.get(key, None) is not None

    def count(self, keys: str, default: Any = REQUIRED) -> Any:
        """A positive integer, or the default as it stands."""
        value = self.get(keys, default)
        if value is default:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{self.name(keys)}={short(value)} is no integer; give a positive one")
        return as_count(self.name(keys), value)

    def count_or_zero(self, keys: str, default: Any = REQUIRED) -> Any:
        """An integer of at least 0, or the default as it stands."""
        value = self.get(keys, default)
        return 0 if type(value) is int and value == 0 else self.count(keys, default)

    def flag(self, keys: str, default: Any = REQUIRED) -> Any:
        """True or False, or the default as it stands."""
        value = self.get(keys, default)
        if (
            default is True
            and value is True
            and any(self.fields.get(k, True) is None for k in keys.split("|"))
        ):
            raise ValueError(f"{self.name(keys)} is null; say true or false")
        if value is not default and not isinstance(value, bool):
            raise ValueError(f"{self.name(keys)}={short(value)} is no truth value; give true or false")
        return value

    def real(self, keys: str, default: float, low: float = 0.0, below: float = float("inf")) -> float:
        """A number in a range, or the default."""
        value = self.get(keys, default)
        if value is default:
            return float(default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{self.name(keys)}={short(value)} is no number; give one")
        return as_real(self.name(keys), value, low, below)

    def strings(self, keys: str) -> list[str] | None:
        """A list of strings, or None where there is none."""
        return self._list(keys, str, "strings")

    def integers(self, keys: str) -> list[int] | None:
        """A list of integers, or None where there is none."""
        return self._list(keys, int, "integers")

    def inner(self, key: str) -> "ConfigReader":
        """The reader of an object inside this one; empty where there is none."""
        value = self.get(key, {})
        if not isinstance(value, Mapping):
            raise ValueError(f"{self.name(key)}={short(value)} is no object; give one in braces")
        reader = ConfigReader(value, f"{self.name(key)}.")
        reader.only("is_encoder_decoder", (False,))  # libraries write their own fields into every object
        self.inside.append(reader)
        return reader

    def only(self, key: str, allowed: tuple[Any, ...]) -> None:
        """Refuse any value but these, or none: another one is another architecture."""
        value = self.get(key, None)
        if value is not None and not any(type(value) is type(a) and value == a for a in allowed):
            told = f"{self.name(key)}={short(value)} is not supported"
            raise ValueError(
                f"{told}; only {listed(map(repr, allowed))} is, and a guess would be a wrong number"
            )

    def name(self, keys: str) -> str:
        """The field as messages call it: by the name that the file uses, with the object it stands in."""
        names = keys.split("|")
        return self.where + next((name for name in names if name in self.fields), names[0])

    def _list(self, keys: str, kind: type, plural: str) -> list[Any] | None:
        value = self.get(keys, None)
        if value is not None and not (
            isinstance(value, list) and all(type(entry) is kind for entry in value)
        ):
            raise ValueError(f"{self.name(keys)}={short(value)} is no list of {plural}; give one")
        return value
