"""The tables of a release of synthetic rows: measured ones with intervals, others from the model."""

from __future__ import annotations

import math
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

    from tacit.synth._fit import NoisyTable
    from tacit.synth._model import Columns
    from tacit.synth._synthetic_table import SyntheticTable

__all__ = ["MeasuredViews", "half_width", "source_of"]


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
            noisy, times = source
            values = summed(noisy.counts, noisy.columns, rising)
            width = half_width(noisy.sigma, noisy.counts.size // values.size, held.confidence, times)
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


def source_of(held: SyntheticTable, rising: Columns) -> tuple[NoisyTable, int] | None:
    """Return the measurement that covers a table, and how often its columns were measured; None if none does.

    A measurement of the table itself comes first, the last one where there are several; then the one whose
    sums have the least noise.
    """
    same = [table for table in held.measured if table.columns == rising]
    if same:
        return same[-1], len(same)
    wider = [table for table in held.measured if set(rising) < set(table.columns)]
    if not wider:
        return None
    cells = held.design.cells(rising)
    return min(wider, key=lambda t: t.sigma**2 * (t.counts.size // cells)), 1


def half_width(sigma: float, cells: int, confidence: float, times: int = 1) -> float:
    """Return the half-width of an interval for a sum of noisy cells.

    One cell: exactly that of the discrete Gaussian. A sum of several: that of the normal law, rounded up. A
    table that was measured several times shows its last measurement; whether there is another one depends on
    the noise of those before, so each interval then gets its part of the allowed error.
    """
    level = 1 - (1 - Fraction(confidence).limit_denominator(10**9)) / times
    if cells == 1:
        return float(DiscreteGaussian(sigma=Fraction(sigma), sensitivity=1).half_width(level))
    z = NormalDist().inv_cdf((1 + float(level)) / 2)
    return float(math.ceil(z * sigma * math.sqrt(cells)))
