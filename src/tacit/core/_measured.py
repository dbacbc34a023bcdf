"""The noisy integers behind the columns of an answer, with what they count and the law of their noise.

These integers are what the mechanisms put out, and the ledger stores them. The privacy guarantee is stated
for exactly them, and every number of a release is computed from them alone. So a release may carry them:
whoever sees them learns nothing that the certificate does not cover.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from tacit.core._hidden import is_hidden, without_hidden
from tacit.exact import read_fraction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core._answer_table import Cells
    from tacit.core._protocols import JSON

_LAWS = ("laplace", "gaussian")
#: What is divided by the sum of a line's integers, but for these columns.
_DIVIDED = frozenset({"moments", "squares", "products"})
_TOTALS = frozenset({"count", "sum"})


@dataclass(frozen=True, slots=True)
class MeasuredIntegers:
    """The noisy integers of one step, for each line of the answer.

    Parameters
    ----------
    statistic
        What they count, in a word: ``rows``, ``units``, ``cells``, ``moments``, ``squares``.
    columns
        The columns that are read off them: of each its aggregate (``mean``) and the place of its integer.
    integers
        The integers of each line.
    noise
        The law of the noise on each integer: its name and its scale (of a Gaussian, its sigma), one for each
        member that added noise.
    weight
        What one row adds to the integers of a line, all together.
    ranges
        The ends of the grid of each value that enters, in the column's own units.
    cells
        The public values or lower edges of cells.
    rows_per_unit
        How many rows of one unit count at most; None where the rows of different units may belong together.
    yes_no
        Whether the value can only be 0 or 1.
    """

    statistic: str
    columns: Mapping[str, tuple[str, int]]
    integers: tuple[tuple[int, ...], ...]
    noise: tuple[tuple[str, Fraction], ...]
    weight: int = 1
    ranges: tuple[tuple[float, float], ...] = ()
    cells: tuple[float | str | bool, ...] = ()
    rows_per_unit: int | None = 1
    yes_no: bool = False

    def shown(self, names: Mapping[str, Sequence[str]], lines: Sequence[int]) -> MeasuredIntegers | None:
        """Return what is left where columns are renamed (old name to new ones) and lines reordered."""
        columns = {new: self.columns[old] for old in self.columns for new in names.get(old, ())}
        kept = tuple(self.integers[i] for i in lines)
        return replace(self, columns=columns, integers=kept) if columns else None

    def without_hidden(self, columns: Mapping[str, Cells]) -> dict[str, Cells]:
        """Return the columns that are read off these integers without the values that the noise hides."""
        read = {name: columns[name] for name, (word, _) in self.columns.items() if word not in _TOTALS}
        if self.statistic not in _DIVIDED or not read:
            return {}
        return {name: without_hidden(cells, self.hidden) for name, cells in read.items()}

    @property
    def hidden(self) -> list[bool]:
        """Return of each line whether the noise hides what is divided by the sum of its integers."""
        each = sum((scale**2 * (1 if law == "gaussian" else 2) for law, scale in self.noise), Fraction(0))
        return [is_hidden(sum(line), len(line) * each) for line in self.integers]

    def to_json(self) -> dict[str, JSON]:
        """Return the integers and what they are as JSON."""
        return {
            "statistic": self.statistic,
            "columns": {name: list(what) for name, what in self.columns.items()},
            "integers": [list(line) for line in self.integers],
            "noise": [[law, str(scale)] for law, scale in self.noise],
            "weight": self.weight,
            "ranges": [list(ends) for ends in self.ranges],
            "cells": list(self.cells),
            "rows_per_unit": self.rows_per_unit,
            "yes_no": self.yes_no,
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the integers back; raises ``ValueError`` where they are not ones."""
        rows = document["rows_per_unit"]
        read = cls(
            str(document["statistic"]),
            {str(name): (str(word), int(place)) for name, (word, place) in document["columns"].items()},
            tuple(tuple(line) for line in document["integers"]),
            tuple((str(law), read_fraction(scale)) for law, scale in document["noise"]),
            int(document["weight"]),
            tuple((float(low), float(high)) for low, high in document["ranges"]),
            tuple(document["cells"]),
            None if rows is None else int(rows),
            document["yes_no"] is True,
        )
        whole = all(type(n) is int for line in read.integers for n in line)
        laws = all(law in _LAWS and scale > 0 for law, scale in read.noise)
        sizes = {len(line) for line in read.integers}
        size = max(sizes, default=0)
        placed = all(0 <= place < max(size, 1) for _, place in read.columns.values())
        if not (whole and laws and placed) or len(sizes) > 1 or read.weight < 1:
            raise ValueError("not the integers of an answer")
        return read
