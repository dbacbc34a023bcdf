"""The variance mechanism: the variance of clipped values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.mechanisms._mechanism import Interval, confidence_level
from tacit.mechanisms._moments import Moments
from tacit.mechanisms._row_mechanism import Clipped, IntegerRange, counted

if TYPE_CHECKING:
    from tacit.exact import Number

_CELLS = 2**20  # squares of steps, summed over 2^20 rows, still fit into 64 bits


@dataclass(frozen=True, slots=True)
class VarianceAndCount:
    """A private variance with the mean and number of rows, and the three sums that were released."""

    value: float
    mean: float
    count: float
    sums: tuple[float, float, float]

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Variance(Clipped):
    """The population variance of values clipped to public bounds, with the number of rows public or private.

    Guarantee, `n` public (replace): n^2 times the variance is the sum of (x_i - x_j)^2 over pairs; one row
    is in n - 1 pairs, each worth at most (high - low)^2, so the variance moves by at most (n - 1) (high -
    low)^2 / n^2. Guarantee, `n` private (add/remove): with t = (x - low) / (high - low) the sums of t^2,
    2t(1-t) and (1-t)^2 are released together. They are never negative and add up to 1 for each row, so the
    L1 (and L2) sensitivity is 1; number of rows, mean and variance are computed from the noisy sums, for
    free.

    Parameters
    ----------
    epsilon, delta, rho, bounds, n, missing, adjacency
        As for `Sum`.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.Variance(epsilon=1, bounds=(0, 10), n=1000)
    >>> float(m.sensitivity)
    0.0999
    """

    @staticmethod
    def _span(bounds: tuple[Number, Number] | None, missing: Number | None) -> IntegerRange:
        return IntegerRange.of(bounds, missing, cells=_CELLS)

    @staticmethod
    def _moved(span: IntegerRange, size: int | None) -> Fraction:
        if size is None:
            return Fraction(1)
        # one row alone has no pair, and nothing to hide: charge it like two
        return max(1, size - 1) * (span.width * span.grid) ** 2 / size**2

    def exact(self, value: Any) -> Any:
        """Return what gets noise, exactly: the variance, or the three sums (private)."""
        steps = self.range.above_bottom(counted(value, self.n))
        total, squares = 0, 0
        for part in np.array_split(steps, max(1, len(steps) >> 18)):
            total += int(part.sum())
            squares += int((part * part).sum())
        if self.n is not None:
            return Fraction(self.n * squares - total**2, self.n**2) * self.range.grid**2
        width = self.range.width
        rows = len(steps)
        sums = (squares, 2 * (width * total - squares), width * width * rows - 2 * width * total + squares)
        return np.array([Fraction(one, width * width) for one in sums], dtype=object)

    def release(self, value: Any) -> Any:
        """Return the variance plus noise: a float, or a `VarianceAndCount` with `n` private."""
        noisy = self.noise.release(self.exact(value))
        if self.n is not None:
            return float(noisy)
        return self._moments(float(noisy[0]), float(noisy[1]), float(noisy[2]))

    def _moments(self, high: float, middle: float, low: float) -> VarianceAndCount:
        moments = Moments((low, middle, high), 0, self.range.low, self.range.high)
        rows, mean, spread = (reading[0] for reading in (moments.count(), moments.mean(), moments.variance()))
        if rows <= 0:
            spread = float(self.range.high - self.range.low) ** 2 / 12
        return VarianceAndCount(spread, mean, rows, (high, middle, low))

    def error(self, confidence: Number) -> float:
        """Return the half-width of the noise: on the variance, or on all three sums together."""
        if self.n is not None:
            return self.noise.error(confidence)
        return self.noise.error(confidence, size=3, together=True)

    def interval(self, released: Any, confidence: Number) -> Interval[float]:
        """Return the range that holds the variance of the clipped values, over the noise."""
        level = float(confidence_level(confidence))
        width = float(self.range.high - self.range.low)
        if self.n is not None:
            low, high = self.noise.interval(released, confidence)
            return Interval(max(0.0, low), min(width**2 / 4, high), level)
        parts = tuple(reversed(released.sums))
        moments = Moments(parts, self.error(confidence), self.range.low, self.range.high)
        _, low, high = moments.variance()
        return Interval(low * (1 - 1e-12), min(width**2 / 4, high * (1 + 1e-12)), level)

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """All alike, and one of them at the other end."""
        low, high = float(self.range.low), float(self.range.high)
        return ([], [high]) if self.n is None else ([low] * self.n, [low] * (self.n - 1) + [high])
