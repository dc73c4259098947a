"""A tree of named whole numbers whose sums are only ever made of the items below.

Parameters, bytes and FLOPs are all told in this form, so that they print alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfbook.accounting.tables import html_table, markdown_table, text_table


@dataclass(frozen=True)
class Account:
    """A named part: either one item (`own`) or the sum of its parts.

    `times` says how often the part occurs, each time anew; `used` how many of those one token
    uses, where that is another number (two of eight experts). `multiplied` is how many numbers
    a matrix product takes from the item: a `table` that is only looked up has none, a tied output
    layer has them all though it owns nothing. `formula` is how the number comes about, in the
    book's symbols; `note` is a remark for the reader; `unit` is what is counted.
    """

    name: str
    own: int = 0
    formula: str = ""
    parts: tuple["Account", ...] = ()
    times: int = 1
    used: int | None = None
    multiplied: int = 0
    table: bool = False
    note: str = ""
    unit: str = "parameters"

    @property
    def total(self) -> int:
        """All of this part, over all its occurrences."""
        return self.times * (self.own + sum(part.total for part in self.parts))

    @property
    def active(self) -> int:
        """What one token uses: all but the experts that its router does not pick."""
        used = self.times if self.used is None else min(self.used, self.times)
        return used * (self.own + sum(part.active for part in self.parts))

    @property
    def matmul(self) -> int:
        """The weights that one token's pass multiplies in matrix products; each costs it 2 FLOPs."""
        used = self.times if self.used is None else self.used
        return used * (self.multiplied + sum(part.matmul for part in self.parts))

    @property
    def bytes(self) -> int:
        """The total of an account of bytes. Raises AttributeError for one of another unit."""
        if self.unit != "bytes":
            raise AttributeError(f"this account is of {self.unit}, not of bytes; use total")
        return self.total

    def items(self) -> list[tuple[str, int]]:
        """The single items as (path, number), over all occurrences; they sum to `total`."""
        return [(path, count) for path, count, _ in self.leaves()]

    def leaves(self, prefix: str = "", times: int = 1) -> Iterator[tuple[str, int, "Account"]]:
        """(path, number over all occurrences, account) of each single item, in order."""
        times *= self.times
        if not self.parts:
            yield prefix + self.name, times * self.own, self
        for part in self.parts:
            yield from part.leaves(f"{prefix}{self.name}.", times)

    def part(self, name: str) -> "Account":
        """The direct part of that name. Raises KeyError, listing the names there are."""
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(
            f"{self.name} has no part {name!r}; use one of {', '.join(p.name for p in self.parts)}"
        )

    def rows(self, depth: int = 0, times: int = 1) -> Iterator[tuple[int, int, "Account"]]:
        """(depth, number over all occurrences, account) of this part and all below it."""
        yield depth, times * self.total, self
        for part in self.parts:
            yield from part.rows(depth + 1, times * self.times)

    @property
    def remark(self) -> str:
        """The formula and the note in one phrase, for a table's last column."""
        return f"{self.formula} ({self.note})" if self.formula and self.note else self.formula or self.note

    @property
    def label(self) -> str:
        """The name, and how often it occurs."""
        return self.name + (f" (x {self.times})" if self.times > 1 else "")

    def __str__(self) -> str:
        return text_table(("", "", "", ""), self._told("  "), numeric=(1, 2))

    def to_markdown(self) -> str:
        """The same as a Markdown table."""
        return markdown_table(self._heads, self._told("\u2003"), numeric=(1, 2))

    def to_html(self) -> str:
        """The same as an HTML table. Parts are indented by their depth."""
        return html_table(f"{self.name}: {self.unit}", self._heads, self._told("\u2003"), numeric=(1, 2))

    def _repr_html_(self) -> str:
        return self.to_html()

    @property
    def _heads(self) -> tuple[str, ...]:
        return ("part", self.unit, "share", "formula")

    def _told(self, indent: str) -> list[tuple[str, ...]]:
        return [
            (indent * depth + part.label, f"{count:,}", self._share(count), part.remark)
            for depth, count, part in self.rows()
        ]

    def _share(self, count: int) -> str:
        return f"{count / max(self.total, 1):.3%}"
