"""Totals of a table's groups that are planned together: GROUPING SETS, CUBE and ROLLUP of counts.

Where the noise may be Gaussian and the keys are all combinations of their values, the levels are cross
tables. They are measured by their residuals if that is better than sums of the finest groups: the widest
level is narrower, and so are the levels on average (in the geometric mean of their variances).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting import rho_cap
from tacit.algebra import RowCounts
from tacit.core import Cells, Forecast, Step
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace
from tacit.tables._cross_workload import CrossWorkload, PaidNoise
from tacit.tables._levels import lines_of
from tacit.tables._readings import NumberReading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    from tacit.algebra import TableQuestion
    from tacit.tables._cross_noise import CrossNoise
    from tacit.tables._exact_integers import ExactIntegers
    from tacit.tables._lowering import ReleasedColumn
    from tacit.tables._pricing import Pricing
    from tacit.tables._steps import Ask, PaidStep

_BETTER = 0.95  # of the variance: less than that is not worth another plan


def levels_together(pricing: Pricing, ask: Ask, paid: tuple[PaidStep, ...]) -> PaidNoise | None:
    """Return the noise of levels that are planned together; None where sums of the finest groups do."""
    question, columns = pricing.question, pricing.columns
    if not question.levels or question.sample is not None or not question.keys or len(paid) != 1:
        return None
    counted = pricing.steps[0].statistic == RowCounts()
    if not counted or any(not isinstance(column.reading, NumberReading) for column in columns):
        return None
    rho = ask.rho
    if rho is None and ask.epsilon is not None:
        rho = rho_cap(ask.epsilon, ask.delta)  # 0 without a delta
    sizes = tuple(len(values) for values in _values(question.keys))
    if not rho or math.prod(sizes) != len(question.keys):
        return None
    alone = paid[0].mechanism
    if not isinstance(alone, DiscreteGaussian | DiscreteLaplace):
        return None
    parts = [math.prod(n for i, n in enumerate(sizes) if i not in one) for one in question.levels]
    sums = alone.variance * np.array(parts, np.float64)
    work = CrossWorkload(sizes, question.levels, (1.0,) * len(question.levels), "largest", pricing.who)
    promised = {k: v for k, v in (("epsilon", ask.epsilon), ("delta", ask.delta), ("rho", ask.rho)) if v}
    found = work.gaussian_variances(rho)
    narrower = found.max() < sums.max() and np.log(found).mean() < np.log(_BETTER * sums).mean()
    return work.gaussian(rho, promised) if narrower else None


def forecast_of_levels(
    question: TableQuestion, columns: Sequence[ReleasedColumn], paid: PaidNoise, level: Fraction
) -> list[Forecast]:
    """Say what to expect of each column: the widest level, and which levels there are."""
    widths = [(paid.noise.half_width(one, float(level)), one) for one in question.levels]
    names = [name for name, _ in question.by]
    said = ", ".join(
        f"+/- {wide:,.4g} {'by ' + ' and '.join(names[i] for i in one) if one else 'in all'}"
        for wide, one in widths[:8]
    )
    law = paid.mechanisms[0].describe()
    widest = max(widths)[0]
    return [Forecast(c.name, c.aggregate.words, law, widest, caution=said) for c in columns]


def _values(keys: Sequence[Sequence[object]]) -> list[dict[object, int]]:
    """Return the place of each value of each key column, in the order in which they come."""
    found: list[dict[object, int]] = [{} for _ in keys[0]]
    for key in keys:
        for places, value in zip(found, key, strict=True):
            places.setdefault(value, len(places))
    return found


def level_step(
    question: TableQuestion, paid: PaidNoise, counts: Callable[[ExactIntegers], Any]
) -> Step[ExactIntegers]:
    """Return the step that measures the tables of all levels together, as sums of the finest groups.

    Parameters
    ----------
    question
        The question of the finest groups.
    paid
        The mechanism that measures residuals, and what it leaves on each level.
    counts
        Returns the exact count of each of the finest groups, in the order of the keys.
    """
    keys, noise = question.keys or (), paid.noise
    [mechanism] = paid.mechanisms

    def tables(exact: ExactIntegers, _: object) -> list[Any]:
        finest, places = np.zeros(noise.sizes, np.int64), _values(keys)
        for key, (count,) in zip(keys, counts(exact), strict=True):
            finest[tuple(at[value] for at, value in zip(places, key, strict=True))] = count
        columns = range(len(places))
        return [finest.sum(axis=tuple(i for i in columns if i not in one)) for one in noise.sets]

    return Step(mechanism, tables, {"statistic": "residuals of cross tables"})


def read_level_tables(
    question: TableQuestion, noise: CrossNoise, residuals: Sequence[Any], confidence: Fraction
) -> tuple[list[list[object]], Cells]:
    """Read the lines of all levels and their cells off the noisy residuals."""
    drawn = [np.array(one) for one in residuals]
    keys = question.keys or ()
    places = _values(keys)
    shown: list[list[object]] = []
    value: list[float] = []
    wide: list[float] = []
    for level in question.levels:
        found = noise.estimate(level, drawn)
        half = noise.half_width(level, float(confidence))
        lines, _ = lines_of(keys, (level,))
        shown += lines
        value += [float(found[tuple(places[i][line[i]] for i in level)]) for line in lines]
        wide += [half] * len(lines)
    low, high = np.array(value) - wide, np.array(value) + wide
    return shown, Cells(tuple(value), tuple(low.tolist()), tuple(high.tolist()))
