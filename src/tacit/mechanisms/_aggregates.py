"""The aggregate mechanisms: counts, sums and means of clipped values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import Number, count
from tacit.fixes import Set
from tacit.mechanisms._mechanism import Interval, confidence_level
from tacit.mechanisms._moments import Moments
from tacit.mechanisms._row_mechanism import Clipped, IntegerRange, Noised, counted

if TYPE_CHECKING:
    from tacit.accounting import Adjacency
    from tacit.mechanisms._discrete_gaussian import DiscreteGaussian
    from tacit.mechanisms._discrete_laplace import DiscreteLaplace


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Count(Noised):
    """The number of rows, plus integer noise.

    Guarantee: the sensitivity is 1 under add/remove. (Under replace the number of rows is public and needs
    no mechanism.)

    Parameters
    ----------
    epsilon
        Discrete Laplace noise; or with `delta`, or with `rho` instead, discrete Gaussian noise.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.Count(epsilon=1)
    >>> int(m.sensitivity), m.error(0.95)
    (1, 3.0)
    >>> abs(m.release(range(1000)) - 1000) < 60
    True
    """

    noise: DiscreteLaplace | DiscreteGaussian  # type: ignore[assignment]
    adjacency: Adjacency

    def __init__(
        self, *, epsilon: Number | None = None, delta: Number | None = None, rho: Number | None = None
    ) -> None:
        object.__setattr__(self, "noise", counting_noise(1, epsilon=epsilon, delta=delta, rho=rho, size=1))
        object.__setattr__(self, "adjacency", "add/remove")

    def exact(self, value: Any) -> int:
        """Return the number of rows: private."""
        return len(counted(value, None))

    def release(self, value: Any) -> int:
        """Return the number of rows plus noise."""
        return int(self.noise.release(self.exact(value)))

    @property
    def worst_pair(self) -> tuple[list[int], list[int]]:
        """Nobody, and one person."""
        return [], [0]

    def __repr__(self) -> str:
        return f"Count({self.noise!r})"


def counting_noise(
    sensitivity: Number,
    *,
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    adjacency: Adjacency = "add/remove",
    size: int | None = None,
) -> DiscreteLaplace | DiscreteGaussian:
    """Return integer noise for counts: discrete Laplace for a pure epsilon, else discrete Gaussian."""
    from tacit.mechanisms._discrete_gaussian import DiscreteGaussian
    from tacit.mechanisms._discrete_laplace import DiscreteLaplace

    if delta is None and rho is None:
        return DiscreteLaplace(epsilon=epsilon, sensitivity=int(sensitivity), adjacency=adjacency)
    return DiscreteGaussian(
        epsilon=epsilon, delta=delta, rho=rho, sensitivity=sensitivity, adjacency=adjacency, size=size
    )


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Sum(Clipped):
    """The sum of values clipped to public bounds, plus noise.

    Guarantee: values are clipped, put on an integer grid, clipped again and summed exactly. Under
    add/remove one row moves the sum by at most max(|low|, |high|), under replace (`n` public) by at most
    high - low.

    Parameters
    ----------
    epsilon
        Laplace noise; with `delta`, or with `rho` instead, Gaussian noise.
    bounds
        The public range (low, high) of a value. There is no default.
    n
        The number of rows where it is public; neighbours then replace a row.
    missing
        What NaN and None count as: by default the low bound.
    adjacency
        ``"add/remove"`` without `n`, ``"replace"`` with it.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.Sum(epsilon=0.5, bounds=(0, 30))
    >>> float(m.sensitivity), round(m.error(0.95), 1)
    (30.0, 179.7)
    >>> tc.mechanisms.Sum(epsilon=1, bounds=None)
    Traceback (most recent call last):
    tacit.errors.TacitError: the values have no bounds, so one person could move the answer by any amount
      why: the sensitivity is infinite; choose a range that is known without looking at the data
      fix: bounds=(0, 200000)
      code: missing-bounds
    """

    @staticmethod
    def _moved(span: IntegerRange, size: int | None) -> Fraction:
        return (span.width if size is not None else max(abs(span.bottom), abs(span.top))) * span.grid

    def exact(self, value: Any) -> Fraction:
        """Return the exact sum of the clipped, gridded values: private."""
        steps = self.range.above_bottom(counted(value, self.n))
        return (int(steps.sum()) + len(steps) * self.range.bottom) * self.range.grid

    def release(self, value: Any) -> float:
        """Return the clipped sum plus noise."""
        return float(self.noise.release(self.exact(value)))

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """A row with the largest effect is added, or the lowest value becomes the highest."""
        low, high = float(self.range.low), float(self.range.high)
        if self.n is None:
            return [], [high if abs(high) >= abs(low) else low]
        return [low] * self.n, [low] * (self.n - 1) + [high]


@dataclass(frozen=True, slots=True)
class MeanAndCount:
    """A private mean with the noisy number of rows behind it, and the two sums that were released."""

    value: float
    count: float
    above_low: float  # sum of (x - low) / (high - low), noisy
    below_high: float  # sum of (high - x) / (high - low), noisy

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Mean(Clipped):
    """The mean of values clipped to public bounds, with the number of rows public or private.

    Guarantee, `n` public (replace): the exact mean of the clipped values moves by at most (high - low) / n.
    Guarantee, `n` private (add/remove): two sums are released together, of (x - low) and of (high - x). One
    row adds exactly high - low to the two together, in L1, hence at most as much in L2; the mean and the
    number of rows are computed from the noisy sums at no further cost.

    Parameters
    ----------
    epsilon, delta, rho, bounds, n, missing, adjacency
        As for `Sum`.

    Examples
    --------
    >>> import tacit as tc
    >>> hours = tc.mechanisms.Mean(epsilon=0.12, bounds=(0, 8), n=500)
    >>> float(hours.sensitivity), round(float(hours.noise.scale), 4)
    (0.016, 0.1333)
    >>> stay = tc.mechanisms.Mean(epsilon=1, bounds=(0, 30)).release([3.0, 5.0, 31.0, None] * 1000)
    >>> 9 < float(stay) < 10, round(stay.count, -2)
    (True, 4000.0)
    """

    @staticmethod
    def _moved(span: IntegerRange, size: int | None) -> Fraction:
        return Fraction(1) if size is None else span.width * span.grid / size

    def exact(self, value: Any) -> Any:
        """Return what gets noise, exactly: the mean, or the two sums as fractions of the range (private)."""
        steps = self.range.above_bottom(counted(value, self.n))
        total = int(steps.sum())
        if self.n is not None:
            return (Fraction(total, self.n) + self.range.bottom) * self.range.grid
        width = self.range.width
        return np.array([Fraction(total, width), Fraction(width * len(steps) - total, width)], dtype=object)

    def release(self, value: Any) -> Any:
        """Return the mean plus noise: a float with `n` public, a `MeanAndCount` with `n` private."""
        noisy = self.noise.release(self.exact(value))
        return float(noisy) if self.n is not None else self._mean(float(noisy[0]), float(noisy[1]))

    def _mean(self, above: float, below: float) -> MeanAndCount:
        moments = Moments((below, above), 0, self.range.low, self.range.high)
        return MeanAndCount(moments.mean()[0], moments.count()[0], above, below)

    def error(self, confidence: Number, *, rows: int | None = None) -> float:
        """Return the half-width that the mean stays within; where `n` is private, for this many `rows`."""
        if self.n is not None:
            return self.noise.error(confidence)
        if rows is None:
            raise bad_parameter("rows", "given where n is private", rows, fix=Set(rows=1000))
        size = count("rows", rows, zero=False)
        half = self._half(confidence)
        width = float(self.range.high - self.range.low)
        return width * half / (size - 2 * half) if size > 4 * half else width

    def _half(self, confidence: Number) -> float:
        """Return the half-width that both sums stay within together."""
        return self.noise.error(confidence, size=2, together=True)

    def interval(self, released: Any, confidence: Number) -> Interval[float]:
        """Return the range that holds the mean of the clipped values with this confidence over the noise."""
        low, high = float(self.range.low), float(self.range.high)
        if self.n is not None:
            start, end = self.noise.interval(released, confidence)
        else:
            parts = (released.below_high, released.above_low)
            moments = Moments(parts, self._half(confidence), self.range.low, self.range.high)
            _, start, end = moments.mean()
        level = float(confidence_level(confidence))
        return Interval(max(low, math.nextafter(start, low)), min(high, math.nextafter(end, high)), level)

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """A row at the top is added, or the lowest value becomes the highest."""
        low, high = float(self.range.low), float(self.range.high)
        return ([], [high]) if self.n is None else ([low] * self.n, [low] * (self.n - 1) + [high])
