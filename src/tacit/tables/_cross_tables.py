"""The content of cross tables: public axes and noisy integers, from which every table is rebuilt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from tacit.core import AnswerTable, Cells, Content
from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.strategies import nonnegative_counts, whole_counts
from tacit.tables._cross_noise import CrossNoise

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from tacit.core import JSON, Certificate, Value
    from tacit.show import Figure
    from tacit.strategies import ColumnSet
    from tacit.tables._axes import Axis

#: The columns of a table, in any order; one name for a table of one column.
TableName: TypeAlias = "str | tuple[str, ...] | list[str]"

_MOST_AXES = 32
_SHOWN: dict[str, str] = {
    "nonnegative": "no count is below 0: each table is moved to the nearest one with the same total; small "
    "cells are too large and large ones too small on average, and tables no longer agree",
    "whole": "whole numbers, none below 0: each table is moved to the nearest one with the same total, and "
    "rounded; small cells are too large and large ones too small on average, and tables no longer agree",
}


@dataclass(frozen=True, slots=True)
class PlacedAxis:
    """One column of released tables: its name and its public places."""

    name: str
    places: tuple[Value, ...]
    cuts: tuple[float | str, ...] = ()
    other: bool = False

    @classmethod
    def of(cls, axis: Axis) -> PlacedAxis:
        """Keep of an axis what a release shows."""
        return cls(axis.name, axis.shown, axis.cuts, axis.other)

    def to_json(self) -> JSON:
        """Return the axis as JSON."""
        return {"name": self.name, "places": list(self.places), "cuts": list(self.cuts), "other": self.other}

    @classmethod
    def from_json(cls, document: Any) -> PlacedAxis:
        """Read the axis back."""
        name, places, cuts = document["name"], tuple(document["places"]), tuple(document["cuts"])
        plain = all(one is None or isinstance(one, str | int | float) for one in (*places, *cuts))
        if not isinstance(name, str) or not places or not plain:
            raise ValueError("not an axis")
        return cls(name, places, cuts, document["other"] is True)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CrossTables(Content):
    """Cross tables that were measured together: each cell with its interval, and all tables agree.

    ``tables[("age", "sex")]`` is a table in any order of its columns; tables of fewer columns, and the
    total ``tables[()]``, are there too. An interval covers the noise on its cell, one cell at a time; it
    says nothing about rows that limits dropped, or about a population.

    Parameters
    ----------
    axes
        The columns with their public places.
    wanted
        The tables that were asked for.
    noise
        What was measured, with which noise.
    noisy
        The noisy integers of each measurement.
    confidence
        How often each interval covers.
    view
        Whether tables are shown as they are, or changed afterwards.
    left_out
        Which rows are not counted.
    """

    kind: ClassVar[str] = "cross-tables"
    described: ClassVar[str] = "cross tables that agree with each other"
    changes: ClassVar[frozenset[str]] = frozenset({"nonnegative", "whole"})

    axes: tuple[PlacedAxis, ...]
    wanted: tuple[ColumnSet, ...]
    noise: CrossNoise
    noisy: tuple[NDArray[Any], ...]
    confidence: float
    view: Literal["measured", "nonnegative", "whole"] = "measured"
    left_out: tuple[str, ...] = ()

    @property
    def tables(self) -> TableViews:
        """The tables by their columns."""
        return TableViews(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the tables."""
        return (_SHOWN[self.view],) if self.view in _SHOWN else ()

    @property
    def total(self) -> AnswerTable:
        """The number of counted rows."""
        return self.tables[()]

    def __len__(self) -> int:
        return len(self.wanted)

    def __getitem__(self, table: TableName) -> AnswerTable:
        return self.tables[table]

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.tables)

    def half_width(self, table: TableName) -> float:
        """Return how far a cell of a table may be off, one cell at a time."""
        return self.noise.half_width(tuple(sorted(self.columns_of(table))), self.confidence)

    def columns_of(self, table: TableName) -> list[int]:
        """Return the numbers of a table's columns in the order given, or refuse a table that is not there."""
        names = [table] if isinstance(table, str) else list(table)
        known = {axis.name: i for i, axis in enumerate(self.axes)}
        for name in names:
            if name not in known:
                raise TacitError(
                    "unknown-column",
                    f"the release has no column {name!r}",
                    fix=Choose(tuple(known), given=str(name)),
                )
        columns = [known[name] for name in names]
        if len(set(columns)) != len(columns) or not self.noise.covers(tuple(sorted(columns))):
            raise TacitError(
                "unknown-table",
                f"the table of {', '.join(names)} was not measured",
                why="the release holds only the tables that were asked for, and tables of fewer of their "
                "columns",
                fix="ask for this table in a new plan",
            )
        return columns

    def values(self, table: TableName) -> NDArray[np.float64]:
        """Return a table as an array, one axis for each column in the order given."""
        return self._values(self.columns_of(table))

    def _values(self, columns: list[int]) -> NDArray[np.float64]:
        made = self._shown(tuple(sorted(columns)))
        return made.transpose([sorted(columns).index(i) for i in columns])

    def _shown(self, columns: ColumnSet) -> NDArray[np.float64]:
        made = self.noise.estimate(columns, self.noisy)
        if self.view == "measured":
            return made
        changed = nonnegative_counts(made.reshape(-1))
        return (changed if self.view == "nonnegative" else whole_counts(changed)).reshape(made.shape)

    def answer(self, table: TableName) -> AnswerTable:
        """Return a table with one line for each cell: the value ``n`` and its interval."""
        columns = self.columns_of(table)
        values = self._values(columns).reshape(-1)
        wide = self.half_width(table)
        middle = (
            values if self.view == "measured" else replace(self, view="measured")._values(columns).reshape(-1)
        )
        low, high = middle - wide, middle + wide
        if self.view != "measured":  # intervals rest on what was measured, and a value lies in its interval
            low, high = np.maximum(low, 0), np.maximum(high, 0)
            low, high = np.minimum(low, values), np.maximum(high, values)
        axes = [self.axes[i] for i in columns]
        places = np.indices([len(axis.places) for axis in axes]).reshape(len(axes), values.size)
        keys = {
            axis.name: tuple(axis.places[i] for i in at)
            for axis, at in zip(axes, places.tolist(), strict=True)
        }
        cells = Cells(*(tuple(part.tolist()) for part in (values, low, high)))
        said = (*self.left_out, *self.notes)
        return AnswerTable(keys, {"n": cells}, self.confidence, counts=("n",), left_out=said)

    def nonnegative(self) -> Self:
        """Return the tables with no cell below 0: the nearest with the same total. It is biased; see `notes`.

        Intervals still rest on what was measured, cut off at 0.
        """
        return replace(self, view="nonnegative")

    def whole(self) -> Self:
        """Return the tables in whole numbers, none below 0. It is biased, and tables may disagree."""
        return replace(self, view="whole")

    def to_pandas(self, table: TableName | None = None) -> pd.DataFrame:
        """Return one table, or all of them as one, as a pandas data frame (extra ``pandas``)."""
        return (self._as_one() if table is None else self.answer(table)).to_pandas()

    def to_csv(  # type: ignore[override]
        self,
        table: TableName | None = None,
        path: str | Path | None = None,
        *,
        certificate: Certificate | None = None,
    ) -> str:
        """Return one table, or all of them as one, as CSV text, and write it to a file if a path is given.

        The path of all tables may stand alone: ``to_csv("book.csv")``.
        """
        if path is None and isinstance(table, str | Path) and Path(table).suffix == ".csv":
            table, path = None, table
        one = self._as_one() if table is None else self.answer(table)
        return one.to_csv(path, certificate=certificate)

    def to_json(self) -> JSON:
        """Return axes and noisy integers as JSON."""
        return {
            "axes": [axis.to_json() for axis in self.axes],
            "tables": [list(one) for one in self.wanted],
            "noise": self.noise.to_json(),
            "noisy": [one.tolist() for one in self.noisy],
            "confidence": self.confidence,
            "view": self.view,
            "left_out": list(self.left_out),
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the tables back; raises ``ValueError`` where they are none."""
        axes = tuple(PlacedAxis.from_json(one) for one in document["axes"])
        noise = CrossNoise.from_json(document["noise"])
        wanted = tuple(tuple(one) for one in document["tables"])
        noisy = tuple(_whole_numbers(one) for one in document["noisy"])
        shapes = [tuple(noise.sizes[i] for i in one) for one in noise.sets]
        confidence, view = float(document["confidence"]), document["view"]
        sound = (
            noise.sizes == tuple(len(axis.places) for axis in axes)
            and [one.shape for one in noisy] == shapes
            and len({axis.name for axis in axes}) == len(axes)
            and all(list(one) == sorted(set(one)) and min(one, default=0) >= 0 for one in wanted)
            and all(noise.covers(one) for one in wanted)
            and view in {"measured", *_SHOWN}
            and 0 < confidence < 1
        )
        if not sound:
            raise ValueError("not cross tables")
        return cls(axes, wanted, noise, noisy, confidence, view, tuple(map(str, document["left_out"])))

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the tables for a terminal: all of them by name with their error, and the first one whole."""
        from tacit.tables._cross_display import cross_text

        return cross_text(self, marks)

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the tables for a notebook."""
        from tacit.tables._cross_display import cross_html

        return cross_html(self, marks)

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the measured tables."""
        for names in self.tables:
            yield " x ".join(names) or "all rows", self.tables[names]

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the tables of one or two columns: intervals for one column, a matrix for two."""
        from tacit.tables._cross_display import cross_figures

        return cross_figures(self, what)

    def __repr__(self) -> str:
        return self.text()


def _whole_numbers(document: Any) -> NDArray[Any]:
    """Read an array of whole numbers; raises ``ValueError`` where something else is in it."""
    made = np.array(document, dtype=object)
    if made.ndim > _MOST_AXES or any(type(one) is not int for one in made.flat):
        raise ValueError("not whole numbers")
    within = all(-(2**63) <= one < 2**63 for one in made.flat)
    return made.astype(np.int64) if within else made


@dataclass(frozen=True, slots=True, repr=False)
class TableViews(Mapping[TableName, AnswerTable]):
    """The tables of a release by their columns: those asked for, and any table of fewer of their columns."""

    _of: CrossTables

    def __getitem__(self, table: TableName) -> AnswerTable:
        return self._of.answer(table)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """Iterate over the tables that were asked for."""
        return (tuple(self._of.axes[i].name for i in one) for one in self._of.wanted)

    def __len__(self) -> int:
        return len(self._of.wanted)

    def __contains__(self, table: object) -> bool:
        names = [table] if isinstance(table, str) else list(table) if isinstance(table, tuple | list) else [0]
        known = {axis.name: i for i, axis in enumerate(self._of.axes)}
        held = set(chain(*(combinations(one, k) for one in self._of.wanted for k in range(len(one) + 1))))
        return set(names) <= set(known) and tuple(sorted({known[str(name)] for name in names})) in held

    def __repr__(self) -> str:
        return "tables of " + "; ".join(" x ".join(one) or "all rows" for one in self)
