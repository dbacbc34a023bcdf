"""Totals of a table's groups that are planned together: GROUPING SETS, CUBE and ROLLUP of counts.

Where the noise may be Gaussian and the keys are all combinations of their values, the levels are cross
tables. They are measured by their residuals if that is better than sums of the finest groups: the widest
level is narrower, and so are the levels on average (in the geometric mean of their variances).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tacit.accounting import rho_cap
from tacit.algebra import RowCounts
from tacit.core import AnswerTable, Cells, Forecast
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace
from tacit.tables._cross_workload import CrossWorkload, PaidNoise
from tacit.tables._levels import lines_of
from tacit.tables._readings import NumberReading

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from fractions import Fraction

    from tacit.algebra import Statistic, TableQuestion
    from tacit.core import JSON
    from tacit.engines import Engine
    from tacit.errors import TacitError
    from tacit.mechanisms import ResidualNoise
    from tacit.tables._cross_noise import CrossNoise
    from tacit.tables._lowering import ReleasedColumn
    from tacit.tables._pricing import Pricing
    from tacit.tables._steps import Ask, PaidStep
    from tacit.tables._task import TableTask

__all__ = ["LevelTask", "forecast_of_levels", "levels_together"]

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


@dataclass(frozen=True, slots=True)
class LevelTask:
    """The task of levels that are planned together.

    Parameters
    ----------
    table
        The task that measures the finest groups alone: the same statement runs.
    mechanisms
        The one that measures residuals.
    noise
        What it leaves on each level.
    """

    table: TableTask
    mechanisms: tuple[ResidualNoise, ...] | tuple[DiscreteLaplace, ...]
    noise: CrossNoise

    @property
    def question(self) -> JSON:
        """The question of the finest groups, and that their levels are measured together."""
        asked: Mapping[str, JSON] = self.table.question  # type: ignore[assignment]
        return {**asked, "levels": [list(one) for one in self.noise.sets]}

    @property
    def asked(self) -> TableQuestion:
        """The question of the finest groups."""
        return self.table.asked

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics whose exact integers it needs."""
        return self.table.statistics

    def on(self, engine: Engine) -> Self:
        """Return the same task on other data, for an attack on invented rows."""
        return replace(self, table=self.table.on(engine))

    @property
    def labels(self) -> tuple[dict[str, JSON], ...]:
        """What the integers are."""
        return ({"statistic": "residuals of cross tables"},)

    @property
    def sql(self) -> tuple[str, ...]:
        """The statement that will run."""
        return self.table.sql

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks of the data that the question reads."""
        return self.table.blocks

    def unavailable(self) -> TacitError | None:
        """Return why nothing can be drawn."""
        return self.table.unavailable()

    def integers(self) -> Generator[Any, Any, None]:
        """Yield the exact tables of all measured sets, as sums of the finest groups."""
        keys = self.table.asked.keys or ()
        [lines] = list(self.table.integers())
        finest = np.zeros(self.noise.sizes, np.int64)
        places = _values(keys)
        for key, (count,) in zip(keys, lines, strict=True):
            finest[tuple(at[value] for at, value in zip(places, key, strict=True))] = count
        columns = range(len(places))
        yield [finest.sum(axis=tuple(i for i in columns if i not in one)) for one in self.noise.sets]

    def read(self, noisy: Sequence[Any], confidence: Fraction) -> AnswerTable:
        """Read each level off the noisy residuals."""
        drawn = [np.array(one) for one in noisy[0]]
        keys = self.table.asked.keys or ()
        places = _values(keys)
        shown: list[list[object]] = []
        value: list[float] = []
        wide: list[float] = []
        for level in self.table.asked.levels:
            found = self.noise.estimate(level, drawn)
            half = self.noise.half_width(level, float(confidence))
            lines, _ = lines_of(keys, (level,))
            shown += lines
            value += [float(found[tuple(places[i][line[i]] for i in level)]) for line in lines]
            wide += [half] * len(lines)
        low, high = np.array(value) - wide, np.array(value) + wide
        cells = Cells(tuple(value), tuple(low.tolist()), tuple(high.tolist()))
        return self.table.answer(shown, {column.name: cells for column in self.table.columns}, confidence)
