"""The content of ranges and prefixes: noisy sums of ordered cells, from which any range is read.

Quantiles are read off the running totals: they are the cells in which the true quantile may lie. Figures show
the running totals or the cells, with the noise as a band.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.core import AnswerTable, Cells, Content
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose
from tacit.mechanisms import LinearNoise, linear_half_width, weighted_half_widths
from tacit.parameters import Listed, RealNumber
from tacit.show import MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure, chosen
from tacit.strategies import RangeStrategy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tacit.core import JSON, Value


_MONOTONE = (
    "running totals were made to rise (isotonic regression): no cell is below 0, but small cells are too "
    "large on average, and large ones too small"
)


_LARGEST = 2.0**64  # no noise is larger


@dataclass(frozen=True, eq=False, repr=False)
class OrderedCounts(Content):
    """Counts of ordered cells, and of every range of them, each with an interval.

    All numbers are read off the same measurements by least squares, so they agree: ranges add up. The
    intervals hold one at a time, for the noise alone.

    Parameters
    ----------
    column
        The column whose cells are counted.
    places
        The cells as people read them, in order.
    cuts
        Of a number or a date: cell i reaches from cut i to below cut i + 1; empty for listed values.
    by, groups
        The column that divides the rows into groups, and its values; an empty name where there is one group.
    strategy, measured
        Which sums were measured, and the noisy sums: one line for each group.
    law
        The noise on each sum.
    confidence
        How often each interval covers.
    left_out
        Which rows are not counted.
    notes
        What was done to the counts.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id",
    ...                     bounds={"length_of_stay": (0, 30)}, budget=tc.Budget(epsilon=2, delta=1e-6))
    >>> release = visits.prefixes("length_of_stay", bins=30).plan(epsilon=1, delta=1e-6).release()
    >>> answer = release.range(0, 10)
    >>> answer.low <= answer.value <= answer.high
    True
    >>> [line["q"] for line in release.quantile([0.25, 0.5, 0.75])]
    [0.25, 0.5, 0.75]
    """

    kind: ClassVar[str] = "ordered-counts"
    described: ClassVar[str] = "counts along one column"
    changes: ClassVar[frozenset[str]] = frozenset({"monotone"})

    column: str
    places: tuple[Value, ...]
    cuts: tuple[float | str, ...]
    by: str
    groups: tuple[Value, ...]
    strategy: RangeStrategy
    measured: tuple[tuple[int, ...], ...]
    law: LinearNoise
    confidence: float
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, column: str) -> Cells:
        return self.counts[column]

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """Iterate over the cells as dictionaries."""
        return iter(self.counts)

    @cached_property
    def running(self) -> NDArray[np.float64]:
        """The running totals as they were measured: one line for each group, from 0 cells to all of them."""
        return np.array([np.array(one, dtype=np.float64) for one in self.measured]) @ self.strategy.sums.T

    @cached_property
    def rising(self) -> NDArray[np.float64]:
        """The running totals, made to rise from 0: a view that is biased."""
        from scipy.optimize import isotonic_regression

        totals = np.maximum([isotonic_regression(one[1:]).x for one in self.running], 0.0)
        return np.concatenate([np.zeros((len(totals), 1)), totals], axis=1)

    @property
    def counts(self) -> AnswerTable:
        """Every cell: its count and its interval."""
        at = np.arange(len(self))
        return self._table(at, at + 1, {self.column: self.places})

    @property
    def distribution(self) -> AnswerTable:
        """The running totals: how many rows lie in each cell or before it, with intervals."""
        n = len(self)
        ends = self.places if not self.cuts else self.cuts[1:]
        name = self.column if not self.cuts else f"{self.column}_below"
        return self._table(np.zeros(n, np.int64), np.arange(1, n + 1), {name: ends})

    @property
    def total(self) -> AnswerTable:
        """The number of rows in all cells of each group."""
        return self._table(np.array([0]), np.array([len(self)]), {})

    def range(self, low: object, high: object) -> AnswerTable:
        """Return how many rows lie in one range, with its interval.

        Parameters
        ----------
        low, high
            Cuts: from ``low`` to below ``high``. Of listed values: the first and the last one.
        """
        return self.ranges([(low, high)])

    def ranges(self, ranges: Sequence[tuple[object, object]]) -> AnswerTable:
        """Return how many rows lie in each of several ranges, with intervals; see `range`."""
        ends = [self.cells_of(low, high) for low, high in ranges]
        names = {
            "from": tuple(_plain(low) for low, _ in ranges),
            "to": tuple(_plain(high) for _, high in ranges),
        }
        starts, end = (np.array(side) for side in zip(*ends, strict=True))
        return self._table(starts, end, names)

    def quantile(self, q: float | Sequence[float] = 0.5, *, population: bool = False) -> AnswerTable:
        """Return quantiles with intervals that cover the noise; with ``population`` sampling as well.

        A cell is kept if the data may have its quantile there: the running total up to its end is not clearly
        below the share q of all rows, and the one before it is not clearly above. The interval reaches from
        the first to the last cell that is kept. The true quantile is kept with the stated confidence.

        Parameters
        ----------
        q
            Between 0 and 1: 0.5 is the median. One, or several.
        population
            Whether the rows are a random sample of a population, and its quantile is wanted.
        """
        levels = Listed("levels", "[0.25, 0.5]", each=RealNumber(above=0, below=1))
        shares = [float(level) for level in levels.read("q", q if isinstance(q, list | tuple) else [q])]
        return quantile_table(self, shares, population=population)

    def cells_of(self, low: object, high: object) -> tuple[int, int]:
        """Return the first cell of a range, and the one after its last."""
        ends_known: list[object] = list(self.cuts or self.places)
        ends = []
        for end in (low, high):
            at = next((i for i, one in enumerate(ends_known) if one == end or str(one) == str(end)), None)
            if at is None:
                raise TacitError(
                    "bad-parameter",
                    f"{end!r} is not a cut of {self.column}"
                    if self.cuts
                    else f"{end!r} is not one of its values",
                    why="rows between two cuts are counted together",
                    fix=Choose(tuple(str(one) for one in ends_known), given=str(end)),
                )
            ends.append(at)
        start, end_cell = ends[0], ends[1] + (not self.cuts)
        if not start < end_cell:
            raise bad_parameter("low", "before high", low, fix="swap the two ends")
        return start, end_cell

    def monotone(self) -> Self:
        """Return the counts with running totals that never fall, so that no cell is below 0.

        Intervals still rest on the counts as they were measured, so they hold as before.
        """
        return self if self.notes else replace(self, notes=(_MONOTONE,))

    def half_widths(self, first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how far the counts of ranges of cells may lie from the truth, each by itself."""
        return weighted_half_widths(self.law, self.strategy.weights(first, end), 1 - self.confidence)

    def _table(
        self, starts: NDArray[np.int64], end: NDArray[np.int64], names: dict[str, tuple[Value, ...]]
    ) -> AnswerTable:
        raw = self.running[:, end] - self.running[:, starts]
        counts = self.rising[:, end] - self.rising[:, starts] if self.notes else raw
        half_widths = self.half_widths(starts, end)
        low, high = raw - half_widths, raw + half_widths
        if self.notes:
            low, high = np.maximum(np.minimum(low, counts), 0), np.maximum(high, counts)
        keys: dict[str, tuple[Value, ...]] = {}
        if self.by:
            keys[self.by] = tuple(group for group in self.groups for _ in starts)
        keys |= {name: tuple(values) * len(self.groups) for name, values in names.items()}
        cells = Cells(*(tuple(part.reshape(-1).tolist()) for part in (counts, low, high)))
        notes = {"n": self.notes[0]} if self.notes else {}
        return AnswerTable(keys, {"n": cells}, self.confidence, notes, self.left_out, ("n",))

    def to_json(self) -> JSON:
        """Return the counts as JSON: the noisy sums, and what is needed to read them."""
        return {
            "column": self.column,
            "places": list(self.places),
            "cuts": list(self.cuts),
            "by": self.by,
            "groups": list(self.groups),
            "strategy": self.strategy.to_json(),
            "measured": [list(one) for one in self.measured],
            "noise": {"laplace": list(self.law.laplace), "normal": self.law.normal},
            "confidence": self.confidence,
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the counts back; raises ``ValueError`` where they are not such counts."""
        strategy = RangeStrategy.from_json(document["strategy"])
        counts = tuple(tuple(one) for one in document["measured"])
        places, groups = tuple(document["places"]), tuple(document["groups"])
        law = LinearNoise(
            tuple(float(one) for one in document["noise"]["laplace"]), float(document["noise"]["normal"])
        )
        confidence, cuts = float(document["confidence"]), tuple(document["cuts"])
        integers = all(type(n) is int for one in counts for n in one)
        sizes = {len(one) for one in counts} == {len(strategy.matrix)} and len(counts) == len(groups)
        if (
            not (integers and sizes and len(places) == strategy.cells and 0 < confidence < 1)
            or len(cuts) not in (0, len(places) + 1)
            or len(law.laplace) > 1
            or not all(0 <= size < _LARGEST for size in (*law.laplace, law.normal))
            or not all(one is None or isinstance(one, str | int | float) for one in (*places, *groups, *cuts))
        ):
            raise ValueError("not ordered counts")
        texts = [tuple(str(one) for one in document[name]) for name in ("left_out", "notes")]
        return cls(
            str(document["column"]), places, cuts, str(document["by"]), groups, strategy, counts, law,
            confidence, *texts,
        )  # fmt: skip

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the cells for a terminal."""
        more = ".range(low, high), .distribution and .quantile(0.5) read more, at no cost"
        return f"{self.counts.text(marks)}\n{more}"

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the cells for a notebook."""
        return self.counts.html(marks)

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the cells and the running totals."""
        yield "each cell", self.counts
        yield "running totals", self.distribution

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the ``distribution`` and the ``histogram``, with the noise as a band."""
        return ordered_figures(self, what)

    def __repr__(self) -> str:
        return self.text()


def _plain(value: object) -> Value:
    return value if isinstance(value, str | int | float) or value is None else str(value)


def ordered_figures(counts: OrderedCounts, what: str | None) -> tuple[Figure, ...]:
    """Return one line or one row of steps for each group; at most 8 groups, the first ones."""
    return chosen(what, {name: partial(_figure, counts, name) for name in ("distribution", "histogram")})


def _figure(counts: OrderedCounts, name: str) -> Figure:
    n, totals = len(counts), name == "distribution"
    cells = (counts.distribution if totals else counts.counts).columns["n"]
    numeric = bool(counts.cuts) and all(isinstance(cut, float) for cut in counts.cuts)
    edges = [float(cut) for cut in counts.cuts] if numeric else [i - 0.5 for i in range(n + 1)]
    series = []
    for i, group in enumerate(counts.groups[:MOST_SERIES]):
        start = (0.0,) if totals else ()
        ends = ((*start, *part[i * n : (i + 1) * n]) for part in (cells.value, cells.low, cells.high))
        label = str(group) if counts.by else ""
        series.append(ChartSeries.of("line" if totals else "steps", edges, ends, label=label, colour=i))
    every = -(-n // 12)  # names on the axis
    ticks = () if numeric else tuple((float(i), str(counts.places[i])) for i in range(0, n, every))
    caption = f"rows {'below' if totals else 'by'} {counts.column}"
    words = f"the band is the {counts.confidence * 100:g} % interval for the noise, one place at a time"
    chart = Chart(
        tuple(series), ChartAxis(counts.column, ticks=ticks), ChartAxis("rows"), legend=counts.by or ""
    )
    return Figure(caption, (chart,), (words, *counts.notes))


def kept_cells(running: NDArray[np.float64], q: float, widths: NDArray[np.float64]) -> tuple[int, int]:
    """Return the first and the last cell in which the quantile may lie.

    Cell j holds the quantile if F(j) >= q n and F(j - 1) <= q n. It is kept unless F(j) < q n - c or
    F(j - 1) > q n + c, where c is the half-width of F - q n at that place. Of the true cell either happens
    with at most half of the missing confidence. If no cell is kept, the nearest one is.

    Parameters
    ----------
    running
        F before the first cell, after the first, ..., after the last, which is n.
    q
        The share.
    widths
        The half-width of F - q n at each place.

    Examples
    --------
    >>> kept_cells(np.array([0.0, 10, 40, 60, 100]), 0.5, np.full(5, 5.0))
    (2, 2)
    >>> kept_cells(np.array([0.0, 10, 47, 60, 100]), 0.5, np.full(5, 5.0))
    (1, 2)
    """
    away = running - q * running[-1]
    below = away[1:] < -widths[1:]
    above = away[:-1] > widths[:-1]
    cells = np.flatnonzero(~(below | above))
    if len(cells):
        return int(cells[0]), int(cells[-1])
    miss = np.maximum(-away[1:] - widths[1:], away[:-1] - widths[:-1])
    nearest = int(miss.argmin())
    return nearest, nearest


def quantile_table(counts: OrderedCounts, levels: Sequence[float], *, population: bool) -> AnswerTable:
    """Return the quantiles of each group, with the ends of the cells in which they may lie."""
    sums, rare = counts.strategy.sums, 1 - counts.confidence
    z = float(linear_half_width(rare, np.zeros((1, 1)), np.ones(1))[0])
    lines: list[tuple[Value, float, Value, Value, Value]] = []
    for q in levels:
        noise = weighted_half_widths(counts.law, sums - q * sums[-1], rare)
        for group, running, rising in zip(counts.groups, counts.running, counts.rising, strict=True):
            sampling = z * np.sqrt(max(running[-1], 1.0) * q * (1 - q)) if population else 0.0
            low_cell, high_cell = kept_cells(running, q, np.hypot(noise, sampling))
            value = _value(counts, rising, q, low_cell, high_cell)
            lines.append(
                (group, q, value, _edge(counts, low_cell, after=False), _edge(counts, high_cell, after=True))
            )
    groups, shares, values, lows, highs = (tuple(part) for part in zip(*lines, strict=True))
    keys: dict[str, tuple[Value, ...]] = {counts.by: groups} if counts.by else {}
    keys["q"] = shares
    covers = "noise and sampling" if population else "noise"
    note = (
        f"the interval covers the {covers}, in whole cells; a value inside a cell assumes that its rows are "
        "spread evenly"
    )
    none = (None,) * len(lines)
    if all(isinstance(one, int | float) for part in (values, lows, highs) for one in part):
        columns = {counts.column: Cells(values, lows, highs)}
    else:
        parts = (("", values), ("_from", lows), ("_to", highs))
        columns = {counts.column + end: Cells(part, none, none) for end, part in parts}
    return AnswerTable(keys, columns, counts.confidence, {counts.column: note}, counts.left_out)


def _edge(counts: OrderedCounts, cell: int, *, after: bool) -> Value:
    """Return an end of a cell: a cut, or the value itself."""
    return counts.cuts[cell + after] if counts.cuts else counts.places[cell]


def _value(
    counts: OrderedCounts, rising: NDArray[np.float64], q: float, low_cell: int, high_cell: int
) -> Value:
    """Return the quantile of the rising running totals, inside the cells that are kept."""
    target = q * rising[-1]
    cell = min(max(int(np.searchsorted(rising[1:], target)), low_cell), high_cell)
    low, high = _edge(counts, cell, after=False), _edge(counts, cell, after=True)
    if not counts.cuts or not isinstance(low, float) or not isinstance(high, float):
        return low
    inside = rising[cell + 1] - rising[cell]
    share = (target - rising[cell]) / inside if inside > 0 else 0.5
    return low + (high - low) * float(min(max(share, 0.0), 1.0))
