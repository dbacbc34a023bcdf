"""The tables of a release of synthetic rows: measured ones with intervals, others from the model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from tacit.core import AnswerTable, Cells
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Set
from tacit.mechanisms import DiscreteGaussian
from tacit.synth._model import summed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tacit.synth._model import Columns
    from tacit.synth._synthetic_table import SyntheticTable

__all__ = ["CoveredTable", "MeasuredViews", "half_width", "interval_level", "source_of"]

_FIRST = Fraction(19, 20)  # of the allowed error, for the first measurement of a table


class MeasuredViews:
    """Tables by their columns, in any order: ``tables["age"]``, ``tables[("age", "sex")]``.

    A measured table, and every sum of one, has an interval for the noise on each cell, one cell at a time.
    Any other table comes from the model and has none.
    """

    def __init__(self, held: SyntheticTable) -> None:
        self._held = held

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """Iterate over the names of the measured tables, each once."""
        names = [column.name for column in self._held.columns]
        found = dict.fromkeys(table.columns for table in self._held.measured)
        return iter([tuple(names[i] for i in columns) for columns in found])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, table: object) -> bool:
        """Return whether a table is covered: measured, or a sum of a measured one."""
        try:
            return source_of(self._held, tuple(sorted(self._columns(table)))) is not None  # type: ignore[arg-type]
        except TacitError:
            return False

    def __getitem__(self, table: str | Sequence[str]) -> AnswerTable:
        held = self._held
        given = self._columns(table)
        rising = tuple(sorted(given))
        order = [rising.index(c) for c in given]
        source = source_of(held, rising)
        ends: tuple[tuple[float | None, ...], tuple[float | None, ...]]
        if source is None:
            values = self._expected(rising)
            ends = ((None,) * values.size,) * 2
            note = "not covered: this table was not measured; its numbers come from the model"
        else:
            values, width = source.counts, source.width
            ends = _flat(values - width, order), _flat(values + width, order)
            note = f"{held.confidence * 100:.4g} % intervals for the noise, one cell at a time"
        keys = list(zip(*product(*(held.columns[c].places for c in given)), strict=True))
        return AnswerTable(
            {held.columns[c].name: tuple(keys[i]) for i, c in enumerate(given)},
            {"rows": Cells(_flat(values, order), *ends)},
            held.confidence,
            notes={"rows": note},
            left_out=held.left_out,
            counts=("rows",),
        )

    def _expected(self, rising: Columns) -> NDArray[np.float64]:
        """Return a table of the model; of rows that were drawn where there is no model."""
        held = self._held
        if held.model is not None:
            return held.model.table(rising)
        codes = held.codes()
        shape = [held.design.sizes[c] for c in rising]
        at = np.ravel_multi_index(tuple(codes[:, c] for c in rising), shape)
        return np.bincount(at, minlength=math.prod(shape)).reshape(shape).astype(np.float64)

    def _columns(self, table: str | Sequence[str]) -> list[int]:
        names = [column.name for column in self._held.columns]
        given = [table] if isinstance(table, str) else list(table)
        for name in given:
            if name not in names:
                raise TacitError(
                    "unknown-column",
                    f"the release has no column {name!r}",
                    fix=Choose(tuple(names), given=str(name)),
                )
        if not given or len(set(given)) != len(given):
            raise bad_parameter("table", "different columns", table, fix=Set(table=names[:2]))
        return [names.index(name) for name in given]


def _flat(values: NDArray[np.float64], order: list[int]) -> tuple[float, ...]:
    return tuple(np.transpose(values, order).ravel().tolist())


@dataclass(frozen=True, slots=True, eq=False)
class CoveredTable:
    """A measured table, or a sum of one: its noisy counts, their standard deviation and half-width."""

    counts: NDArray[np.float64]
    sigma: float
    width: float


def source_of(held: SyntheticTable, rising: Columns) -> CoveredTable | None:
    """Return what covers a table; None if nothing does.

    Of several measurements that hold the table, AIM shows the one with the narrowest interval. Otherwise the
    table's own comes first, then the one whose sums have the least noise.
    """
    if held.together is not None:
        if not held.together.covers(rising):
            return None
        counts = held.together.estimate(rising, held.numbers)
        wide = held.together.half_width(rising, held.confidence)
        return CoveredTable(counts, math.sqrt(held.together.variance(rising)), wide)
    cells = held.design.cells(rising)
    found = [table for table in held.measured if set(rising) <= set(table.columns)]
    if not found:
        return None
    levels = [interval_level(held.design.method, held.confidence, i) for i in range(1, len(found) + 1)]
    if held.design.method == "aim":
        about = [
            NormalDist().inv_cdf((1 + float(level)) / 2) * table.sigma * math.sqrt(table.counts.size / cells)
            for table, level in zip(found, levels, strict=True)
        ]
        best = int(np.argmin(about))
    else:
        best = min(
            range(len(found)),
            key=lambda i: (found[i].columns != rising, found[i].sigma ** 2 * found[i].counts.size),
        )
    table, many = found[best], found[best].counts.size // cells
    counts = summed(table.counts, table.columns, rising)
    return CoveredTable(counts, table.sigma * math.sqrt(many), half_width(table.sigma, many, levels[best]))


def interval_level(method: str, confidence: float | Fraction, order: int = 1) -> Fraction:
    """Return the level of the interval of the first, second ... measurement that holds a table.

    Whether AIM measures a table again depends on the noise before. So the allowed error is shared out: 19/20
    to the first measurement, half of the rest to the second, and so on. All these intervals hold together
    with the stated confidence, and any of them may be shown. The other methods measure once.

    Examples
    --------
    >>> interval_level("mst", 0.95), interval_level("aim", 0.95), interval_level("aim", 0.95, 2)
    (Fraction(19, 20), Fraction(381, 400), Fraction(799, 800))
    """
    exact = Fraction(confidence).limit_denominator(10**9)
    if method != "aim":
        return exact
    share = _FIRST if order == 1 else (1 - _FIRST) / 2 ** (order - 1)
    return 1 - (1 - exact) * share


def half_width(sigma: float, cells: int, confidence: float | Fraction) -> float:
    """Return the half-width of an interval for a sum of noisy cells of one measurement.

    One cell: exactly that of the discrete Gaussian. A sum of several: that of the normal law, rounded up.
    """
    level = Fraction(confidence).limit_denominator(10**12)
    if cells == 1:
        return float(DiscreteGaussian(sigma=Fraction(sigma), sensitivity=1).half_width(level))
    z = NormalDist().inv_cdf((1 + float(level)) / 2)
    return float(math.ceil(z * sigma * math.sqrt(cells)))
