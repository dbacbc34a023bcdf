"""The fit of a graphical model to noisy tables: mirror descent over its marginals.

It minimises the sum of squared distances from the noisy tables, each in units of its noise (McKenna and
others 2019). It is total: whatever the noise, it returns a model without negative counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.synth._model import GraphicalModel, junction_tree, model_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tacit.synth._model import Columns

LONG = 500  # the steps of a last fit; more of them fit the noise
_TINY = 1e-7  # a fall of the loss by less, of its size, ends a fit


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTable:
    """A measured table: its columns, its noisy counts and the standard deviation of their noise."""

    columns: Columns
    counts: NDArray[np.float64]
    sigma: float


@dataclass(frozen=True, slots=True, eq=False)
class FittedModel:
    """A model with the potentials behind it, from which a later fit goes on."""

    model: GraphicalModel
    potentials: Mapping[Columns, NDArray[np.float64]]


def total_of(tables: Sequence[NoisyTable]) -> float:
    """Return the number of rows that the noisy tables say: the mean of their sums by precision.

    Examples
    --------
    >>> total_of([NoisyTable((0,), np.array([40.0, 60.0]), 1.0), NoisyTable((1,), np.full(8, 15.0), 1.0)])
    104.0
    """
    precision = [1 / (table.sigma**2 * table.counts.size) for table in tables]
    sums = [float(table.counts.sum()) for table in tables]
    return float(np.dot(precision, sums) / np.sum(precision))


def together(tables: Sequence[NoisyTable]) -> dict[Columns, NoisyTable]:
    """Return one noisy table for each set of columns: several of one set are averaged by precision."""
    merged: dict[Columns, NoisyTable] = {}
    for table in tables:
        if (earlier := merged.get(table.columns)) is None:
            merged[table.columns] = table
            continue
        a, b = earlier.sigma**-2, table.sigma**-2
        counts = (a * earlier.counts + b * table.counts) / (a + b)
        merged[table.columns] = NoisyTable(table.columns, counts, (a + b) ** -0.5)
    return merged


def fit(
    tables: Sequence[NoisyTable],
    sizes: Sequence[int],
    zeros: Mapping[Columns, NDArray[np.bool_]] | None = None,
    *,
    start: FittedModel | None = None,
    steps: int = LONG,
    total: float | None = None,
) -> FittedModel:
    """Fit a model to noisy tables, and go on from an earlier fit where one is given.

    The step grows by 1.4 after a success, and is halved until the loss falls by half of what its slope
    promises. A fit in which nothing moves any more ends early.

    Parameters
    ----------
    tables
        The noisy tables, at least one.
    sizes
        How many places each column has.
    zeros
        Where nothing can be; something must be left.
    start
        An earlier fit to fewer tables.
    steps
        The largest number of steps.
    total
        The number of rows; by default what the tables say, and at least 1.
    """
    merged = together(tables)
    zeros = zeros or {}
    rows = max(total_of(tables) if total is None else total, 1.0)
    tree = junction_tree([*merged, *zeros], sizes)
    earlier = start.potentials if start is not None else {}
    potentials = {c: earlier.get(c, np.zeros(t.counts.shape)) for c, t in merged.items()}
    model = model_of(potentials, zeros, sizes, rows, tree)
    if model is None:  # an earlier fit that leaves nothing here: start anew
        potentials = {c: np.zeros(t.counts.shape) for c, t in merged.items()}
        model = model_of(potentials, zeros, sizes, rows, tree)
    assert model is not None  # noqa: S101 - what can never be was checked to leave something
    point = _point(model, potentials, merged)
    size = min(t.sigma for t in merged.values()) ** 2 / rows
    for _ in range(steps):
        stepped = _step(point, merged, zeros, size)
        if stepped is None:
            break
        size, following = stepped
        fallen = point.loss - following.loss
        point = following
        if fallen <= _TINY * point.loss:
            break
        size *= 1.4
    return FittedModel(point.model, point.potentials)


@dataclass(frozen=True, slots=True, eq=False)
class _FitPoint:
    """Where a fit stands: the loss, and the table and the slope of each measurement."""

    model: GraphicalModel
    potentials: Mapping[Columns, NDArray[np.float64]]
    loss: float
    tables: Mapping[Columns, NDArray[np.float64]]
    slopes: Mapping[Columns, NDArray[np.float64]]


def _point(
    model: GraphicalModel,
    potentials: Mapping[Columns, NDArray[np.float64]],
    noisy_tables: Mapping[Columns, NoisyTable],
) -> _FitPoint:
    loss, tables, slopes = 0.0, model.tables(noisy_tables), {}
    for columns, noisy in noisy_tables.items():
        away = (tables[columns] - noisy.counts) / noisy.sigma
        loss += float(np.vdot(away, away)) / 2
        slopes[columns] = away / noisy.sigma
    return _FitPoint(model, potentials, loss, tables, slopes)


def _step(
    at: _FitPoint,
    noisy_tables: Mapping[Columns, NoisyTable],
    zeros: Mapping[Columns, NDArray[np.bool_]],
    size: float,
) -> tuple[float, _FitPoint] | None:
    """Take one step downhill, halved as often as it takes; None where no step helps.

    Tables with more noise move further than the slope alone says, in proportion to their noise: they would
    lag behind. Where that does not help, all move by the slope, which does unless the fit has ended.
    """
    smallest_sigma = min(table.sigma for table in noisy_tables.values())
    for power, halvings in ((1, 20), (0, 40)):
        now = size
        for _ in range(halvings):
            potentials = {
                c: at.potentials[c] - now * (noisy_tables[c].sigma / smallest_sigma) ** power * slope
                for c, slope in at.slopes.items()
            }
            model = model_of(potentials, zeros, at.model.sizes, at.model.total, at.model.tree)
            if model is not None:
                point = _point(model, potentials, noisy_tables)
                promised = sum(
                    float(np.vdot(slope, point.tables[c] - at.tables[c])) for c, slope in at.slopes.items()
                )
                if promised <= 0 and point.loss <= at.loss + promised / 2:
                    return now, point
            now /= 2
    return None
