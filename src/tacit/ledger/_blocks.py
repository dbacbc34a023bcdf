"""The ledger's blocks: a public partition of the data, whose parts are charged separately."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from tacit.errors import bad_parameter
from tacit.fixes import Set
from tacit.parameters import Integer, Listed

_MOST_PER_UNIT = 100


@dataclass(frozen=True, slots=True)
class Blocks:
    """A public partition of the data (days, months, cohorts, hospitals), whose parts are charged separately.

    Guarantee: if every unit is in at most ``per_unit`` blocks, then what is released about any one unit stays
    within the budget. A charge that names its blocks takes nothing from the others. The proof is in
    ``docs/proofs/filters.md``; it needs the adjacency add/remove.

    Parameters
    ----------
    by
        What the data is divided by: a word, or the name of a column.
    per_unit
        How many blocks one unit can be in. Whoever declares it promises it. Where the table shows it (the
        unit is a row, or the block is part of the unit), `tacit.protect` checks it.
    kind
        How the column is read, such as ``"date"``; empty if nothing was said about it. `tacit.protect` sets
        it: read in another way, the same row would be in a block of another name.

    Examples
    --------
    >>> import tacit as tc
    >>> ledger = tc.Ledger.memory()
    >>> days = tc.Blocks("day")
    >>> _ = ledger.create_account("visits", unit="row", budget=tc.Budget(epsilon=1), blocks=days)
    >>> for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
    ...     _ = ledger.charge("visits", tc.Cost.pure(0.8), blocks=(day,))
    >>> ledger.account("visits").spent.epsilon
    Fraction(4, 5)
    """

    by: str
    per_unit: int = 1
    kind: str = ""
    most: ClassVar[int] = 1_000  # names in one charge; whoever needs more charges all of the data

    def __post_init__(self) -> None:
        read_printable("by", self.by, "a word, or the name of a column, of at most 200 characters", "day")
        most = Integer(
            1,
            _MOST_PER_UNIT,
            why="if one unit can be in so many blocks, charging them separately saves almost nothing",
            instead=10,
        ).read("per_unit", self.per_unit)
        object.__setattr__(self, "per_unit", most)
        if self.kind != "":
            read_printable("kind", self.kind, "a word of at most 20 characters", "date", length=20)

    def __str__(self) -> str:
        at_most = "one block" if self.per_unit == 1 else f"at most {self.per_unit} blocks"
        read = f", read as {self.kind}" if self.kind else ""
        return f"by {self.by}{read}, each unit in {at_most}"

    def divides_like(self, other: Blocks | None) -> bool:
        """Whether this is the other partition, or says nothing about how its column is read."""
        return other is not None and self in {other, replace(other, kind="")}

    def to_json(self) -> dict[str, str | int]:
        """Return the partition as JSON."""
        kind: dict[str, str | int] = {"kind": self.kind} if self.kind else {}
        return {"by": self.by, "per_unit": self.per_unit, **kind}

    @classmethod
    def from_json(cls, data: object) -> Blocks:
        """Read what `to_json` wrote."""
        assert isinstance(data, dict)  # noqa: S101 - written by `to_json`
        return cls(str(data["by"]), int(data["per_unit"]), str(data.get("kind", "")))


def read_printable(
    parameter: str, text: object, words: str, example: str, *, length: int = 200, stripped: bool = False
) -> str:
    """Read text that can be printed on one line, exactly as given: not empty, of a largest length."""
    if isinstance(text, str) and 1 <= len(text) <= length and text.isprintable():
        if not stripped or text.strip() == text:
            return text
        words, example = f"{words} without spaces at its ends", text.strip()
    raise bad_parameter(parameter, words, text, fix=Set(**{parameter: example}))


def read_block(name: object) -> str:
    """Read the name of one block: 1 to 200 printable characters, exactly as given."""
    return read_printable("block", name, "text of 1 to 200 printable characters", "2026-01-03")


def read_block_names(given: object) -> tuple[str, ...]:
    """Read the blocks that a charge concerns, in order and each once; none stands for all of the data."""
    listed = Listed("names", '("2026-01-03",)', least=0).read("blocks", given)
    names = tuple(sorted({read_block(name) for name in listed}))
    why = "a charge that names no block concerns all of the data"
    Listed("names", "()", least=0, most=Blocks.most, why=why).read("blocks", names)
    return names
