"""The content of cross tables: public axes and noisy integers, from which every table is rebuilt.

`CrossNoise` knows how tables are rebuilt from what was measured, and how far a cell may be off. There are two
ways to measure (docs/proofs/workloads.md). With Gaussian noise, the residuals of all subsets of the wanted
tables are measured. With Laplace noise, the largest wanted tables are. Each of them then says something about
the residual of every subset; what several tables say is averaged with weights by their variance, which is
least squares, because residuals are orthogonal. Both ways, all rebuilt tables agree.

The tables are shown in a terminal, in a notebook and as figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from tacit.core import AnswerTable, Cells, Content
from tacit.errors import TacitError
from tacit.exact import read_fraction
from tacit.fixes import Choose
from tacit.mechanisms import linear_half_width
from tacit.show import Figure, Matrix, visible
from tacit.strategies import nonnegative_counts, whole_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from fractions import Fraction

    import pandas as pd
    from numpy.typing import NDArray

    from tacit.core import JSON, Certificate, Value
    from tacit.strategies import ColumnSet
    from tacit.tables.workloads._axes import Axis


#: The columns of a table, in any order; one name for a table of one column.
TableName: TypeAlias = "str | tuple[str, ...] | list[str]"

_MAX_AXES = 32
_SHOWN: dict[str, str] = {
    "nonnegative": "no count is below 0: each table is moved to the nearest one with the same total; small "
    "cells are too large and large ones too small on average, and tables no longer agree",
    "whole": "whole numbers, none below 0: each table is moved to the nearest one with the same total, and "
    "rounded; small cells are too large and large ones too small on average, and tables no longer agree",
}
_LISTED = 40
_MAX_FIGURES = 12  # figures, if none is named


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
        index_of = {axis.name: i for i, axis in enumerate(self.axes)}
        for name in names:
            if name not in index_of:
                raise TacitError(
                    "unknown-column",
                    f"the release has no column {name!r}",
                    fix=Choose(tuple(index_of), given=str(name)),
                )
        columns = [index_of[name] for name in names]
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
        values = self._shown(tuple(sorted(columns)))
        return values.transpose([sorted(columns).index(i) for i in columns])

    def _shown(self, columns: ColumnSet) -> NDArray[np.float64]:
        estimates = self.noise.estimate(columns, self.noisy)
        if self.view == "measured":
            return estimates
        changed = nonnegative_counts(estimates.reshape(-1))
        return (changed if self.view == "nonnegative" else whole_counts(changed)).reshape(estimates.shape)

    def answer(self, table: TableName) -> AnswerTable:
        """Return a table with one line for each cell: the value ``n`` and its interval."""
        columns = self.columns_of(table)
        values = self._values(columns).reshape(-1)
        half_width = self.half_width(table)
        middle = (
            values if self.view == "measured" else replace(self, view="measured")._values(columns).reshape(-1)
        )
        low, high = middle - half_width, middle + half_width
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
        sentences = (*self.left_out, *self.notes)
        return AnswerTable(keys, {"n": cells}, self.confidence, counts=("n",), left_out=sentences)

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
        answer = self._as_one() if table is None else self.answer(table)
        return answer.to_csv(path, certificate=certificate)

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
        tables = tuple(tuple(one) for one in document["tables"])
        noisy = tuple(_whole_numbers(one) for one in document["noisy"])
        shapes = [tuple(noise.sizes[i] for i in one) for one in noise.sets]
        confidence, view = float(document["confidence"]), document["view"]
        sound = (
            noise.sizes == tuple(len(axis.places) for axis in axes)
            and [one.shape for one in noisy] == shapes
            and len({axis.name for axis in axes}) == len(axes)
            and all(list(one) == sorted(set(one)) and min(one, default=0) >= 0 for one in tables)
            and all(noise.covers(one) for one in tables)
            and view in {"measured", *_SHOWN}
            and 0 < confidence < 1
        )
        if not sound:
            raise ValueError("not cross tables")
        return cls(axes, tables, noise, noisy, confidence, view, tuple(map(str, document["left_out"])))

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the tables for a terminal: all of them by name with their error, and the first one whole."""
        return cross_text(self, marks)

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the tables for a notebook."""
        return cross_html(self, marks)

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the measured tables."""
        for names in self.tables:
            yield " x ".join(names) or "all rows", self.tables[names]

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the tables of one or two columns: intervals for one column, a matrix for two."""
        return cross_figures(self, what)

    def __repr__(self) -> str:
        return self.text()


def _whole_numbers(document: Any) -> NDArray[Any]:
    """Read an array of integers; raises ``ValueError`` for anything else."""
    numbers = np.array(document, dtype=object)
    if numbers.ndim > _MAX_AXES or any(type(one) is not int for one in numbers.flat):
        raise ValueError("not whole numbers")
    within = all(-(2**63) <= one < 2**63 for one in numbers.flat)
    return numbers.astype(np.int64) if within else numbers


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
        index_of = {axis.name: i for i, axis in enumerate(self._of.axes)}
        views = set(chain(*(combinations(one, k) for one in self._of.wanted for k in range(len(one) + 1))))
        return set(names) <= set(index_of) and tuple(sorted({index_of[str(name)] for name in names})) in views

    def __repr__(self) -> str:
        return "tables of " + "; ".join(" x ".join(one) or "all rows" for one in self)


def table_words(names: tuple[str, ...]) -> str:
    """Name a table for people.

    Examples
    --------
    >>> table_words(("age", "sex")), table_words(())
    ('age x sex', 'all rows')
    """
    return " x ".join(visible(name) for name in names) or "all rows"


def _listed(tables: CrossTables) -> list[str]:
    """Say for each table how many cells it has and how far off they may be."""
    lines = []
    for names in list(tables)[:_LISTED]:
        cells = tables.noise.cells(tables.columns_of(names))
        count = "1 cell" if cells == 1 else f"{cells:,} cells"
        lines.append(f"{table_words(names)}: {count}, each +/- {tables.half_width(names):,.4g}")
    more = len(tables) - _LISTED
    return [*lines, *([f"and {more:,} more tables"] if more > 0 else [])]


def how_many(tables: int) -> str:
    """Write a number of cross tables."""
    return "1 cross table" if tables == 1 else f"{tables:,} cross tables"


def _head(tables: CrossTables) -> str:
    return f"{how_many(len(tables))}, +/- at {tables.confidence * 100:g} % for the noise, one cell at a time"


def _caption(tables: CrossTables, marks: tuple[str, ...]) -> list[str]:
    agree = (
        [] if tables.view != "measured" else ["all tables agree: cells add up to the cells of smaller tables"]
    )
    name = next(iter(tables), ())
    quoted = ", ".join(f'"{one}"' for one in name) + ("," if len(name) == 1 else "")
    return [*agree, f"release.tables[({quoted})] shows one table", *tables.left_out, *marks]


def cross_text(tables: CrossTables, marks: tuple[str, ...]) -> str:
    """Write the list of tables."""
    return "\n".join([_head(tables), *(f"  {line}" for line in _listed(tables)), *_caption(tables, marks)])


def cross_html(tables: CrossTables, marks: tuple[str, ...]) -> str:
    """Write the list of tables, each of which opens."""
    from html import escape

    items = "".join(f"<li>{escape(line)}</li>" for line in _listed(tables))
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in _caption(tables, marks))
    first_table = next(iter(tables), None)
    first_html = "" if first_table is None else tables.answer(first_table).html()
    tables_in_html = (
        ""
        if first_table is None
        else f"<details><summary>{escape(table_words(first_table))}</summary>{first_html}</details>"
    )
    return f"<b>{escape(_head(tables))}</b><ul>{items}</ul>{tables_in_html}{paragraphs}"


def cross_figures(tables: CrossTables, table: TableName | None) -> tuple[Figure, ...]:
    """Return the tables of two columns as matrices, then those of one column; or the table of this name."""
    sets = {
        inner: None
        for size in (2, 1, 0)
        for one in tables
        for inner in combinations(tables.columns_of(one), size)
    }
    if table is not None:
        tables_by_words = {table_words(tuple(tables.axes[i].name for i in one)): one for one in sets}
        columns = tables_by_words.get(table) if isinstance(table, str) else None
        return (_figure(tables, list(columns) if columns else tables.columns_of(table)),)
    return tuple(_figure(tables, list(one)) for one in list(sets)[:_MAX_FIGURES] if one or len(sets) == 1)


def _figure(tables: CrossTables, columns: list[int]) -> Figure:
    names = tuple(tables.axes[i].name for i in columns)
    title = table_words(names)
    if len(columns) < 2:
        return replace(tables.answer(names).figures("n")[0], name=title)
    if len(columns) > 2:
        choices = tuple(table_words(one) for one in tables if len(one) <= 2)
        raise TacitError(
            "bad-parameter",
            "a picture shows one column, or two",
            fix=Choose(choices, given=title) if choices else "draw a table of two columns",
        )
    values, half_width = tables.values(names), tables.half_width(names)
    down, across = ([_place(one) for one in tables.axes[i].places] for i in columns)
    unclear = np.abs(values) <= half_width
    matrix = Matrix(values, tuple(down), tuple(across), names[0], names[1], "rows", unclear, "z,.0f")
    sure = f"each cell +/- {half_width:,.4g} at {tables.confidence * 100:g} % for the noise only"
    return Figure(title, (matrix,), (f"{sure}; hatched: not distinguishable from 0",), name=title)


def _place(place: object) -> str:
    return "(missing)" if place is None else f"{place:g}" if isinstance(place, float) else str(place)


_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class CrossNoise:
    """What was measured of cross tables, and with which noise.

    Parameters
    ----------
    sizes
        How many places each axis has.
    law
        ``gaussian`` noise on residuals, or ``laplace`` noise on tables.
    sets
        Which residuals, or which tables.
    scales
        The sigma or the scale of each, on its integers.

    Examples
    --------
    >>> from fractions import Fraction
    >>> noise = CrossNoise((2, 3), "laplace", ((0, 1),), (Fraction(2),))
    >>> noise.variance((0, 1)), noise.variance((0,)), round(noise.half_width((0, 1), 0.95), 2)
    (8.0, 24.0, 6.0)
    """

    sizes: tuple[int, ...]
    law: Literal["gaussian", "laplace"]
    sets: tuple[ColumnSet, ...]
    scales: tuple[Fraction, ...]
    _place: dict[ColumnSet, int] = field(init=False, repr=False, compare=False)
    _of_column: tuple[set[int], ...] = field(init=False, repr=False, compare=False)
    _known: dict[ColumnSet, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_place", {columns: at for at, columns in enumerate(self.sets)})
        object.__setattr__(self, "_known", {})
        object.__setattr__(self, "_of_column", tuple(set() for _ in self.sizes))
        for at, columns in enumerate(self.sets):
            for i in columns:
                self._of_column[i].add(at)

    def cells(self, columns: Sequence[int]) -> int:
        """Return how many cells a table has."""
        return math.prod(self.sizes[i] for i in columns)

    def covers(self, table: ColumnSet) -> bool:
        """Return whether a table can be rebuilt from what was measured."""
        if self.law == "laplace":
            return any(set(table) <= set(one) for one in self.sets)
        return self._core(table) in self._place

    def _core(self, table: ColumnSet) -> ColumnSet:
        """Return the columns that have more than one place; the others add nothing."""
        return tuple(i for i in table if self.sizes[i] > 1)

    def _subsets(self, table: ColumnSet) -> Iterator[ColumnSet]:
        core = self._core(table)
        return chain.from_iterable(combinations(core, k) for k in range(len(core) + 1))

    def _share(self, columns: ColumnSet) -> float:
        return math.prod(1 - 1 / self.sizes[i] for i in columns)

    def _precisions(self, columns: ColumnSet) -> dict[int, float]:
        """Return 1 / variance of what each measurement says about the numbers of a residual."""
        if self.law == "gaussian":
            at = self._place[columns]
            return {at: (self.cells(columns) / float(self.scales[at])) ** 2}
        cells = self.cells(columns)
        return {
            at: cells / (self.cells(self.sets[at]) * 2 * float(self.scales[at]) ** 2)
            for at in self._holders(columns)
        }

    def _precision(self, columns: ColumnSet) -> float:
        """Return 1 / variance of what all measurements together say; kept, because many tables need it."""
        if columns not in self._known:
            self._known[columns] = sum(self._precisions(columns).values())
        return self._known[columns]

    def _holders(self, columns: ColumnSet) -> Iterable[int]:
        """Return the measured tables that hold a set of columns."""
        if not columns:
            return range(len(self.sets))
        return sorted(set.intersection(*(self._of_column[i] for i in columns)))

    def variance(self, table: ColumnSet) -> float:
        """Return the variance of every cell of a table: an upper bound, and nearly exact."""
        return sum(
            self._share(one) / self._precision(one) / self.cells([j for j in table if j not in one]) ** 2
            for one in self._subsets(table)
        )

    def half_width(self, table: ColumnSet, confidence: float) -> float:
        """Return how far a cell of a table may be off with this confidence, one cell at a time.

        The noise of a cell is a weighted sum of many independent integers. Its law is that of the sum of
        the continuous noises, and half a step of the largest weight is added for the integers.
        """
        if self.law == "gaussian":
            from scipy.special import ndtri

            z = float(ndtri((1 + confidence) / 2))
            return z * math.sqrt(self.variance(table)) + self.step(table)
        scales, weights, times = map(np.array, zip(*self._laplace_terms(table), strict=True))
        each = scales * np.abs(weights)
        copies = None if (times == 1).all() else times
        half_width = linear_half_width(1 - confidence, each, times=copies)
        if np.allclose(np.abs(weights), 1):  # a sum of noisy integers is one
            return float(math.floor(float(half_width) + 0.5))
        return float(half_width) + self.step(table)

    def step(self, table: ColumnSet) -> float:
        """Return half a step of the largest weight with which one noisy integer enters a cell."""
        if self.law == "gaussian":
            return 0.5 / self.cells(table)
        return max(abs(weight) for _, weight, _ in self._laplace_terms(table)) / 2

    def _laplace_terms(self, table: ColumnSet) -> Iterator[tuple[float, float, float]]:
        """Return scale, weight and number of the noises in one cell of a table, without those of weight 0.

        The noise on a cell of a measured table counts by the common columns in which the two cells agree.
        """
        for at, common, many in self._kinds(table):
            variance = self.cells(self.sets[at]) * 2 * float(self.scales[at]) ** 2
            weights = np.empty([2] * len(common))  # by which of the common columns are in the set,
            for columns in self._subsets(common):
                term = self.cells(columns) / variance / self._precision(columns)
                rest = self.cells([j for j in table if j not in columns])
                weights[tuple(int(i in columns) for i in common)] = term / rest
            times = np.full([2] * len(common), float(many))
            for axis, i in enumerate(common):  # and then by those in which the two cells differ
                outside, within = np.split(weights, 2, axis=axis)
                share = 1 / self.sizes[i]
                weights = np.concatenate(
                    [outside + within * (1 - share), outside - within * share], axis=axis
                )
                times = times * np.array([1.0, self.sizes[i] - 1]).reshape(
                    -1, *[1] * (len(common) - axis - 1)
                )
            for weight, copies in zip(weights.reshape(-1).tolist(), times.reshape(-1).tolist(), strict=True):
                if abs(weight) > _TINY:
                    yield float(self.scales[at]), weight, copies

    def _kinds(self, table: ColumnSet) -> Iterator[tuple[int, ColumnSet, int]]:
        """Return one measured table of each kind, its columns in common, and the noises in one cell of those.

        Measured tables are alike that have the same columns in common with the table, the same scale, and
        equally many cells for each cell of those columns.
        """
        core = set(self._core(table))
        kinds: dict[tuple[ColumnSet, int, Fraction], list[int]] = {}
        for at, (columns, scale) in enumerate(zip(self.sets, self.scales, strict=True)):
            common = tuple(i for i in columns if i in core)
            beyond = self.cells([i for i in columns if i not in core])
            kinds.setdefault((common, beyond, scale), [at, 0])[1] += beyond
        for (common, _, _), (at, many) in kinds.items():
            yield at, common, many

    def estimate(self, table: ColumnSet, noisy: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Rebuild a table from the noisy integers: unbiased, and in agreement with all others."""
        estimate = np.zeros([self.sizes[i] for i in table])
        for columns in self._subsets(table):
            shape = [self.sizes[i] if i in columns else 1 for i in table]
            rest = self.cells([j for j in table if j not in columns])
            estimate += self._residual(columns, noisy).reshape(shape) / rest
        return np.round(estimate, 9) + 0.0  # cells of whole numbers stay whole

    def _residual(self, columns: ColumnSet, noisy: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Estimate the residual of a set, over prod n_i: what its table says beyond smaller ones."""
        precisions = self._precisions(columns)
        total = sum(precisions.values())
        residual = np.zeros([self.sizes[i] for i in columns])
        for at, precision in precisions.items():
            sums = np.asarray(noisy[at], np.float64)
            if self.law == "gaussian":
                sums = sums / self.cells(columns)
            else:
                sums = sums.sum(axis=tuple(k for k, i in enumerate(self.sets[at]) if i not in columns))
            residual += sums * (precision / total)
        for axis in range(residual.ndim):
            residual = residual - residual.mean(axis=axis, keepdims=True)
        return residual

    def to_json(self) -> JSON:
        """Return the noise as JSON, scales exactly."""
        measured_sets: JSON = [
            [list(one), str(scale)] for one, scale in zip(self.sets, self.scales, strict=True)
        ]
        return {"sizes": list(self.sizes), "law": self.law, "measured": measured_sets}

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the noise back; raises ``ValueError`` where it is not one."""
        law, sizes = document["law"], tuple(document["sizes"])
        sets = tuple(tuple(one) for one, _ in document["measured"])
        scales = tuple(read_fraction(scale) for _, scale in document["measured"])
        columns = set(range(len(sizes)))
        sorted_sets = all(list(one) == sorted(columns & set(one)) for one in sets) and len(set(sets)) == len(
            sets
        )
        positive = all(type(n) is int and n >= 1 for n in (*sizes, *(i + 1 for one in sets for i in one)))
        if (
            law not in {"gaussian", "laplace"}
            or not (sorted_sets and positive and sets)
            or not all(0 < float(scale) < math.inf for scale in scales)
        ):
            raise ValueError("not the noise of cross tables")
        return cls(sizes, law, sets, scales)
