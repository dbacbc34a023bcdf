"""The noisy integers that a release of tables carries for inference, with what they are.

Only numbers that got additive noise are carried, and only where a reading of inference exists: counts, parts
of moments and products, and the cells of histograms. They are post-processing of what the ledger stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.algebra import BinCounts, MomentSums, ProductSums, RowCounts, UnitCounts, UnitsWith
from tacit.core import MeasuredIntegers
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace
from tacit.tables._aggregates import is_yes_no
from tacit.tables._readings import CellReading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.algebra import Statistic, ValueGrid
    from tacit.tables._lowering import ReleasedColumn
    from tacit.tables._readings import StepNoise

_CARRIED = (RowCounts, UnitCounts, UnitsWith, MomentSums, ProductSums)


def measured_steps(
    columns: Sequence[ReleasedColumn],
    noises: Sequence[StepNoise],
    noisy: Sequence[Any],
    rows_per_unit: int | None,
) -> tuple[MeasuredIntegers, ...]:
    """Return the integers of each step that inference can read, for every group."""
    found: dict[int, dict[str, tuple[str, int]]] = {}
    for column in columns:
        place = column.reading.at if isinstance(column.reading, CellReading) else 0
        statistic = noises[column.step].statistic
        if isinstance(column.reading, CellReading) or isinstance(statistic, _CARRIED):
            found.setdefault(column.step, {})[column.name] = (column.aggregate.word, place)
    made = []
    for step, names in found.items():
        laws = noises[step].mechanisms
        if all(isinstance(law, DiscreteLaplace | DiscreteGaussian) for law in laws):
            lines = tuple(
                tuple(int(n) for n in (line if isinstance(line, list) else [line])) for line in noisy[step]
            )
            noise = tuple(
                ("gaussian" if isinstance(law, DiscreteGaussian) else "laplace", law.scale) for law in laws
            )
            made.append(_described(noises[step].statistic, names, lines, noise, rows_per_unit))
    return tuple(made)


def _described(
    statistic: Statistic,
    names: dict[str, tuple[str, int]],
    lines: tuple[tuple[int, ...], ...],
    noise: Any,
    rows_per_unit: int | None,
) -> MeasuredIntegers:
    grids = [statistic.grid, getattr(statistic, "other_grid", None)]
    return MeasuredIntegers(
        statistic.word,
        names,
        lines,
        noise,
        statistic.weight,
        tuple(_ends(grid) for grid in grids if grid is not None),
        statistic.bins.values if isinstance(statistic, BinCounts) else (),
        rows_per_unit,
        is_yes_no(statistic.argument),
    )


def _ends(grid: ValueGrid) -> tuple[float, float]:
    return float(grid.lo * grid.step), float(grid.hi * grid.step)
