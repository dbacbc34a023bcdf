"""The aggregates of two columns of a table together (covariance, correlation, line of least squares).

Their readings. Let the two columns be scaled to [0, 1]. For fixed centres a and b, the sums of (x-a)(y-b),
(x-a)^2 and (y-b)^2 are linear in the nine noisy integers, so the law of their noise is known. Each quantity
theta solves A = theta B, where A and B are such sums. A - theta B is flat in the centres and the other
plugged-in numbers at their true values: an error in them enters squared only. The interval holds every theta
for which A - theta B may be noise alone (Fieller), at the exact law of the noise with the weights at that
theta.

Where noise swamps the spread of a column, the interval is the whole range that clipped values allow.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias

import numpy as np

from tacit.algebra import PRODUCT_BITS, ProductSums, Scope, bounds_of, document, grid_for, resolve, words_of
from tacit.mechanisms import DiscreteGaussian, linear_tail
from tacit.tables.planning._steps import AddNoise, MeasuredStep
from tacit.tables.questions._aggregates import Aggregate, LoweringContext, bounds_missing
from tacit.tables.reading._readings import Cell, Reading

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.algebra import Node
    from tacit.tables.questions._aggregates import Range
    from tacit.tables.reading._readings import StepNoise


_Parts: TypeAlias = "NDArray[np.float64]"
#: A value of each group and the ends of its interval; a value is NaN where there is none.
_PairEnds: TypeAlias = tuple[_Parts, _Parts, _Parts]

_X = np.array([0.0, 0.5, 1.0])  # x is the second part's half and the third part
_ONE = np.ones(3)
_BELL = (10, 16, 10)  # the three parts, in 36ths, of values with mean 1/2 and variance 1/36
_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class PairNoise:
    """The noise on each of the nine integers, in rows: Laplace terms and one normal term."""

    laplace: tuple[float, ...]
    normal: float

    @classmethod
    def of(cls, noise: StepNoise) -> PairNoise:
        """Collect the noise of all members."""
        weight = float(noise.statistic.weight)
        gaussian = [float(m.scale) for m in noise.mechanisms if isinstance(m, DiscreteGaussian)]
        laplace = [float(m.scale) for m in noise.mechanisms if not isinstance(m, DiscreteGaussian)]
        return cls(tuple(b / weight for b in laplace), math.hypot(*gaussian) / weight)

    @property
    def variance(self) -> float:
        """The variance of one integer's noise."""
        return 2 * math.fsum(b * b for b in self.laplace) + self.normal**2

    def ratio(self, weights: _Parts, failing: float) -> _Parts:
        """Return the half-width of a weighted sum of noises, in its standard deviations."""
        norms = np.sqrt((weights**2).sum(axis=(1, 2)) * self.variance)
        unit = (weights / np.where(norms > 0, norms, 1)[:, None, None]).reshape(len(weights), 9)
        terms = np.concatenate([unit * b for b in self.laplace] or [unit[:, :0]], axis=1)
        normal = self.normal * np.sqrt((unit**2).sum(axis=1))

        def logarithm(at: _Parts) -> _Parts:
            return np.asarray(np.log(linear_tail(at, terms, normal) / failing))

        # the ratio lies between those of normal and of one Laplace noise, where this is nearly a line
        low_ratio = np.full(len(weights), NormalDist().inv_cdf(1 - failing / 2))
        second = np.full(len(weights), math.log(1 / failing) / math.sqrt(2) + 0.01)
        at_first, at_second = logarithm(low_ratio), logarithm(second)
        for _ in range(_ROUNDS):
            distance = at_second - at_first
            move = np.divide(
                at_second * (second - low_ratio), distance, out=np.zeros_like(distance), where=distance != 0
            )
            low_ratio, at_first, second = second, at_second, second - move
            at_second = logarithm(second)
        return second


@dataclass(frozen=True, slots=True)
class PairSums:
    """What is linear in the noisy products of each group: the weights of sums, with the centres plugged in.

    Arrays have one entry for each group; weights are of shape (groups, 3, 3), the parts of x first.
    """

    cells: _Parts
    noise: PairNoise
    failing: float

    @property
    def count(self) -> _Parts:
        """The noisy number of rows."""
        return np.asarray(self.cells.sum(axis=(1, 2)))

    def mean(self, axis: int) -> _Parts:
        """Return the noisy mean of x (0) or y (1), in [0, 1]."""
        total, sums = self.count, self.cells.sum(axis=2 - axis) @ _X
        means: _Parts = np.divide(sums, total, out=np.full_like(total, 0.5), where=total > 0)
        return np.clip(means, 0, 1)

    def sum(self, weights: _Parts) -> _Parts:
        """Return a weighted sum of the noisy products."""
        return np.asarray((weights * self.cells).sum(axis=(1, 2)))

    def products(self) -> _Parts:
        """Return the weights of the sum of (x - mean)(y - mean)."""
        return _outer(_X - self.mean(0)[:, None], _X - self.mean(1)[:, None])

    def squares(self, axis: int) -> _Parts:
        """Return the weights of the sum of squared deviations of x (0) or y (1)."""
        parts = _squared(self.mean(axis)[:, None])
        return _outer(parts, _all(parts)) if axis == 0 else _outer(_all(parts), parts)

    def ratio(self, above: _Parts, below: _Parts) -> _PairEnds:
        """Return A/B and every theta for which A - theta B may be noise alone; infinite without an end."""
        a, b = self.sum(above), self.sum(below)
        value = np.divide(a, b, out=np.full_like(a, np.nan), where=b > 0)
        ends = [np.full_like(a, -np.inf), np.full_like(a, np.inf)]
        for k, sign in ((0, -1.0), (1, 1.0)):
            reach = np.full_like(a, 2.0)
            for _ in range(_ROUNDS):
                ends[k] = self._end(above, below, (a, b), reach, sign)
                at = np.where(np.isfinite(ends[k]), ends[k], 0.0)
                reach = self.noise.ratio(above - at[:, None, None] * below, self.failing)
            ends[k] = self._end(above, below, (a, b), reach, sign)
        bounded = np.isfinite(ends[0]) & np.isfinite(ends[1])
        return value, np.where(bounded, ends[0], -np.inf), np.where(bounded, ends[1], np.inf)

    def _end(
        self, above: _Parts, below: _Parts, sums: tuple[_Parts, _Parts], reach: _Parts, sign: float
    ) -> _Parts:
        """Solve (A - theta B)^2 = reach^2 variance(theta), a quadratic equation, for one of its ends."""
        a, b = sums
        spread = reach**2 * self.noise.variance
        square = b * b - spread * (below * below).sum(axis=(1, 2))
        half = a * b - spread * (above * below).sum(axis=(1, 2))
        rest = a * a - spread * (above * above).sum(axis=(1, 2))
        root = np.sqrt(np.maximum(half * half - square * rest, 0))
        clear = (square > 0) & (b > 0)
        ends: _Parts = np.divide(half + sign * root, square, out=np.full_like(a, sign * np.inf), where=clear)
        return ends


def _outer(x: _Parts, y: _Parts) -> _Parts:
    return np.asarray(x[:, :, None] * y[:, None, :])


def _all(like: _Parts) -> _Parts:
    return np.broadcast_to(_ONE, like.shape)


def _squared(centre: _Parts) -> _Parts:
    """Return the weights of (x - centre)^2 on the three parts of x."""
    return np.asarray(np.concatenate([centre**2, centre**2 - centre, (1 - centre) ** 2], axis=1))


class _PairReading(Reading):
    """A quantity of two columns."""

    __slots__ = ()
    divided: ClassVar[bool] = True
    unknown: ClassVar[str] = "depends on the number of rows: give a size to estimate it"
    #: Whether x, which explains, is the first column of the statistic.
    x_first: bool

    @abstractmethod
    def ends(self, sums: PairSums, x: tuple[float, float], y: tuple[float, float]) -> _PairEnds:
        """Return values and intervals, in the units of the columns; x and y are (low, width)."""

    @abstractmethod
    def whole(self, x: tuple[float, float], y: tuple[float, float], steps: int) -> tuple[float, float]:
        """Return the range in which the quantity of clipped values lies, whatever they are."""

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the quantity of every group."""
        statistic: ProductSums = noise.statistic  # type: ignore[assignment]
        weight = statistic.weight
        cells = np.array([[n / weight for n in line] for line in lines], dtype=float).reshape(-1, 3, 3)
        grids = [statistic.grid, statistic.other_grid]
        if not self.x_first:
            cells, grids = cells.swapaxes(1, 2), grids[::-1]
        x, y = ((float(g.lo * g.step), float(g.width * g.step)) for g in grids)
        sums = PairSums(cells, PairNoise.of(noise), float(1 - confidence))
        lowest, highest = self.whole(x, y, grids[0].width)
        inside = (np.clip(end, lowest, highest).tolist() for end in self.ends(sums, x, y))
        return [Cell(None if math.isnan(v) else v, a, b) for v, a, b in zip(*inside, strict=True)]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width to expect with ``size`` rows.

        It is that of unrelated values with the mean in the middle of the range and a standard deviation of
        a sixth of it.
        """
        if size is None:
            return None
        rows = noise.statistic.weight * size
        (cell,) = self.read(noise, [[rows * a * b // 36**2 for a in _BELL for b in _BELL]], confidence)
        return ((cell.high or 0.0) - (cell.low or 0.0)) / 2


@dataclass(frozen=True, slots=True)
class PairCovariance(_PairReading):
    """The covariance, of the rows themselves or (``sample``) of what they are a sample of."""

    x_first: bool = True
    sample: bool = True

    def ends(self, sums: PairSums, x: tuple[float, float], y: tuple[float, float]) -> _PairEnds:
        """Divide the centred products by the number of rows."""
        fewest = np.maximum(sums.count, 2)
        unit = x[1] * y[1] * (fewest / (fewest - 1) if self.sample else np.ones_like(fewest))
        value, low, high = sums.ratio(sums.products(), np.ones_like(sums.cells))
        return value * unit, low * unit, high * unit

    def whole(self, x: tuple[float, float], y: tuple[float, float], steps: int) -> tuple[float, float]:
        """Return the covariance of rows at two opposite corners; of two rows, where a sample is meant."""
        del steps
        bound = x[1] * y[1] * (0.5 if self.sample else 0.25)
        return -bound, bound


@dataclass(frozen=True, slots=True)
class PairCorrelation(_PairReading):
    """Pearson's correlation.

    With s the ratio of the two spreads, it is the sum of products over half the sum of s (x - mean)^2 +
    (y - mean)^2 / s, which is flat in s.
    """

    x_first: bool = True

    def ends(self, sums: PairSums, x: tuple[float, float], y: tuple[float, float]) -> _PairEnds:
        """Divide by the geometric mean of the two spreads."""
        del x, y
        x_square, y_square = sums.squares(0), sums.squares(1)
        a, b = sums.sum(x_square), sums.sum(y_square)
        positive = (a > 0) & (b > 0)
        s = np.sqrt(np.divide(b, a, out=np.ones_like(a), where=positive))[:, None, None]
        value, low, high = sums.ratio(sums.products(), (s * x_square + y_square / s) / 2)
        return (
            np.where(positive, value, np.nan),
            np.where(positive, low, -1.0),
            np.where(positive, high, 1.0),
        )

    def whole(self, x: tuple[float, float], y: tuple[float, float], steps: int) -> tuple[float, float]:
        """Return -1 and 1."""
        del x, y, steps
        return -1.0, 1.0


@dataclass(frozen=True, slots=True)
class PairDetermination(PairCorrelation):
    """R squared: the square of the correlation."""

    def ends(self, sums: PairSums, x: tuple[float, float], y: tuple[float, float]) -> _PairEnds:
        """Square the correlation and its interval."""
        value, low, high = super(PairDetermination, self).ends(sums, x, y)
        low, high = np.clip(low, -1, 1), np.clip(high, -1, 1)
        lowest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(low**2, high**2))
        return np.clip(value, -1, 1) ** 2, lowest, np.maximum(low**2, high**2)

    def whole(self, x: tuple[float, float], y: tuple[float, float], steps: int) -> tuple[float, float]:
        """Return 0 and 1."""
        del x, y, steps
        return 0.0, 1.0

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the most that the square of a correlation with its own error can be off."""
        correlation_error = PairCorrelation(self.x_first).expected(noise, confidence, size)
        return None if correlation_error is None else min(2 * correlation_error, 1.0)


@dataclass(frozen=True, slots=True)
class PairSlope(_PairReading):
    """The slope of the line of least squares."""

    x_first: bool = True

    def ends(self, sums: PairSums, x: tuple[float, float], y: tuple[float, float]) -> _PairEnds:
        """Divide the centred products by the centred squares of x."""
        value, low, high = (end * (y[1] / x[1]) for end in sums.ratio(sums.products(), sums.squares(0)))
        return value, low, high

    def whole(self, x: tuple[float, float], y: tuple[float, float], steps: int) -> tuple[float, float]:
        """Return the steepest slope: it is an average of slopes between rows whose x differ by a step."""
        bound = steps * y[1] / x[1]
        return -bound, bound


@dataclass(frozen=True, slots=True)
class PairIntercept(_PairReading):
    """The height of the line of least squares at x = 0.

    With u the distance from x = 0 and k = sum(u)/sum(u^2), the height solves sum (1 - k u)(y - slope u) =
    height sum (1 - k u), which is flat in k and in the slope.
    """

    x_first: bool = True

    def ends(self, sums: PairSums, x: tuple[float, float], y: tuple[float, float]) -> _PairEnds:
        """Put the slope in and solve for the height."""
        zero = np.full(len(sums.cells), -x[0] / x[1])[:, None]
        away, square = np.asarray(_X - zero), _squared(zero)
        ones = _all(away)
        a, b = sums.sum(_outer(away, ones)), sums.sum(_outer(square, ones))
        k = np.divide(a, b, out=np.zeros_like(a), where=b > 0)[:, None]
        slope, _, _ = sums.ratio(sums.products(), sums.squares(0))
        finite = np.isfinite(slope)
        put = np.where(finite, slope, 0.0)[:, None]
        above = _outer(ones - k * away, np.broadcast_to(_X, away.shape)) - _outer(
            put * (away - k * square), ones
        )
        value, low, high = sums.ratio(above, _outer(ones - k * away, ones))
        low, high = np.where(finite, low, -np.inf), np.where(finite, high, np.inf)
        return tuple(y[0] + y[1] * end for end in (np.where(finite, value, np.nan), low, high))  # type: ignore[return-value]

    def whole(self, x: tuple[float, float], y: tuple[float, float], steps: int) -> tuple[float, float]:
        """Return the heights of the steepest lines from the furthest x."""
        bound = steps * y[1] / x[1] * max(abs(x[0]), abs(x[0] + x[1]))
        return y[0] - bound, y[0] + y[1] + bound


@dataclass(frozen=True, slots=True)
class PairOf(Aggregate):
    """A quantity of two columns, of the rows in which both have a value, clipped to public bounds.

    ``argument`` is the column that comes first in SQL; where a line is fitted, it is the one that the
    ``other`` explains. All quantities of two columns are read off one statistic.
    """

    argument: Node
    other: Node
    bounds: Range | None = None
    other_bounds: Range | None = None
    word: ClassVar[str] = ""

    @property
    def arguments(self) -> tuple[Node, ...]:
        """Both columns."""
        return self.argument, self.other

    def resolved(self, facts: Scope) -> Self:
        """Read both columns as numbers, with the bounds that their form and the facts show."""
        resolved_columns = []
        for column, declared in ((self.argument, self.bounds), (self.other, self.other_bounds)):
            node = resolve(column, facts, "number")
            range_of_column = declared or bounds_of(node, facts)
            resolved_columns.append(
                (
                    node,
                    range_of_column
                    if range_of_column is not None and range_of_column[0] < range_of_column[1]
                    else None,
                )
            )
        (argument, bounds), (other, other_bounds) = resolved_columns
        return replace(self, argument=argument, other=other, bounds=bounds, other_bounds=other_bounds)

    def reading(self, *, x_first: bool) -> Reading:
        """Return how the quantity is read; ``x_first``: the column that explains comes first."""
        raise NotImplementedError

    def stands_for(self, reading: Reading) -> str:
        """Say when there is no value."""
        del reading
        return "missing if the noise is too large to see the spread of the values"

    def lowered(self, name: str, context: LoweringContext) -> list[tuple[str, MeasuredStep, Reading]]:
        """Read the answer off the products of both columns, whichever of them was named first."""
        del context
        sides = []
        for node, bounds in ((self.argument, self.bounds), (self.other, self.other_bounds)):
            if bounds is None:
                raise bounds_missing(self.word, node, search=True)
            sides.append((node, grid_for(bounds, PRODUCT_BITS)))
        ordered = sorted(sides, key=lambda side: json.dumps(document(side), sort_keys=True))
        (x, grid), (y, other_grid) = ordered
        statistic = ProductSums(x, grid, y, other_grid)
        return [(name, MeasuredStep(statistic, AddNoise()), self.reading(x_first=ordered[0] == sides[1]))]


@dataclass(frozen=True, slots=True)
class CorrelationOf(PairOf):
    """Pearson's correlation."""

    word: ClassVar[str] = "correlation"

    def reading(self, *, x_first: bool) -> Reading:
        """Read it off the products; the order of the columns does not matter."""
        del x_first
        return PairCorrelation()


@dataclass(frozen=True, slots=True)
class CovarianceOf(PairOf):
    """The covariance: of a sample, or of the rows themselves (``population``)."""

    population: bool = False
    word: ClassVar[str] = "covariance"

    def reading(self, *, x_first: bool) -> Reading:
        """Read it off the products; the order of the columns does not matter."""
        del x_first
        return PairCovariance(sample=not self.population)

    def stands_for(self, reading: Reading) -> str:
        """Say nothing: there is always a value."""
        del reading
        return ""


@dataclass(frozen=True, slots=True)
class SlopeOf(PairOf):
    """The slope of the line of least squares."""

    word: ClassVar[str] = "slope"

    def reading(self, *, x_first: bool) -> Reading:
        """Read it off the products."""
        return PairSlope(x_first)

    def stands_for(self, reading: Reading) -> str:
        """Say which column explains which."""
        del reading
        return f"the change of {words_of(self.argument)} when {words_of(self.other)} grows by 1"


@dataclass(frozen=True, slots=True)
class InterceptOf(PairOf):
    """The height of the line of least squares where the column that explains is 0."""

    word: ClassVar[str] = "intercept"

    def reading(self, *, x_first: bool) -> Reading:
        """Read it off the products."""
        return PairIntercept(x_first)

    def stands_for(self, reading: Reading) -> str:
        """Say which column explains which."""
        del reading
        return f"{words_of(self.argument)} at {words_of(self.other)} = 0 on the fitted straight line"


@dataclass(frozen=True, slots=True)
class DeterminationOf(PairOf):
    """R squared, the part of the variance that a straight line explains."""

    word: ClassVar[str] = "r_squared"

    def reading(self, *, x_first: bool) -> Reading:
        """Read it off the products; the order of the columns does not matter."""
        del x_first
        return PairDetermination()
