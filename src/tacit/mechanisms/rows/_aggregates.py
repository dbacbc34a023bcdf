"""The aggregate mechanisms: counts, also per public cell, and sums, means and variances of clipped values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.exact import Number, count, rational
from tacit.fixes import Set
from tacit.mechanisms._mechanism import Interval, confidence_level, exactly_one, read_adjacency
from tacit.mechanisms._noise_laws import square_root_up
from tacit.mechanisms.additive._moments import Moments
from tacit.mechanisms.rows._input_rows import collected, rows_of
from tacit.mechanisms.rows._row_mechanism import Clipped, IntegerRange, Noised, counted
from tacit.parameters import Listed, Needed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency
    from tacit.mechanisms.additive._integer_noise import DiscreteGaussian, DiscreteLaplace


_CELLS = 2**20  # squares of steps, summed over 2^20 rows, still fit into 64 bits


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
    from tacit.mechanisms.additive._integer_noise import DiscreteGaussian, DiscreteLaplace

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
        needed: Needed[int] = Needed(1000, "where n is private")
        size = count("rows", needed.read("rows", rows), zero=False)
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


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Histogram(Noised):
    """The number of rows in each public cell, plus integer noise on every cell, empty ones included.

    Guarantee: one row is in at most one cell. Added or removed, it moves one count by 1: sensitivity 1 over
    the whole histogram. Replaced, it moves two: 2 in L1, sqrt(2) in L2. Cells are public. A row that fits
    none of them is not counted.

    Parameters
    ----------
    epsilon
        Discrete Laplace noise; with `delta`, or with `rho` instead, discrete Gaussian noise.
    categories
        The public values, one cell each; or give `edges`.
    edges
        Public increasing cut points e0 < e1 < ... < em: cells [e0, e1), ..., [e(m-1), em], the last one
        closed.
    adjacency
        ``"add/remove"`` or ``"replace"``.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.Histogram(epsilon=1, categories=["A", "B", "AB", "0"])
    >>> m.release(["A", "0", "0", "B", "unknown"]).shape
    (4,)
    >>> tc.mechanisms.Histogram(epsilon=1, edges=[0, 18, 65, 120], adjacency="replace").noise.sensitivity
    Fraction(2, 1)
    """

    categories: tuple[Any, ...] | None
    edges: tuple[Fraction, ...] | None
    adjacency: Adjacency
    noise: DiscreteLaplace | DiscreteGaussian  # type: ignore[assignment]

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        categories: Sequence[Any] | None = None,
        edges: Sequence[Number] | None = None,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        relation = read_adjacency(adjacency)
        labels, cuts = None, None
        if exactly_one(Set(categories=["A", "B"]), categories=categories, edges=edges) == "categories":
            labels = tuple(
                Listed("values", '["A", "B"]', different=True).read("categories", tuple(categories or ()))
            )
        else:
            example = Set(edges=[0, 18, 65, 120])
            cuts = tuple(
                rational("an edge", edge, zero=True, negative=True, fix=example) for edge in edges or ()
            )
            Listed("cut points", "[0, 18, 65, 120]", least=2, rising=True).read("edges", cuts)
        pure = delta is None and rho is None
        movement = 1 if relation == "add/remove" else 2 if pure else square_root_up(Fraction(2))
        noise = counting_noise(movement, epsilon=epsilon, delta=delta, rho=rho, adjacency=relation)
        for name, value in (
            ("categories", labels),
            ("edges", cuts),
            ("adjacency", relation),
            ("noise", noise),
        ):
            object.__setattr__(self, name, value)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return len(self.categories) if self.categories is not None else len(self.edges or ()) - 1

    def exact(self, value: Any) -> NDArray[np.int64]:
        """Return the exact counts: private."""
        if self.categories is not None:
            index = {label: cell for cell, label in enumerate(self.categories)}
            rows = value.tolist() if isinstance(value, np.ndarray) else collected(value)
            cells = np.array([_cell(index, one) for one in rows], dtype=np.int64)
        else:
            numbers = rows_of(value)
            cuts = np.array([float(edge) for edge in self.edges or ()])
            cells = np.searchsorted(cuts, numbers, side="right") - 1
            cells = np.where(numbers == cuts[-1], len(cuts) - 2, cells)
            cells = np.where(np.isnan(numbers) | (numbers > cuts[-1]), -1, cells)
        return np.bincount(cells[cells >= 0], minlength=self.cells).astype(np.int64)

    def release(self, value: Any) -> NDArray[np.int64]:
        """Return the noisy count of every cell; negative counts are not an error (see `truncate`)."""
        return np.asarray(self.noise.release(self.exact(value)))

    def error(self, confidence: Number, *, together: bool = False) -> float:
        """Return the half-width that the noise of one cell (or of all cells together) stays within."""
        return self.noise.error(confidence, size=self.cells, together=together)

    @property
    def worst_pair(self) -> tuple[list[Any], list[Any]]:
        """Nobody and one person; or one person in one cell and in another."""
        low, high = self._example(0), self._example(self.cells - 1)
        return ([], [low]) if self.adjacency == "add/remove" else ([low], [high])

    def _example(self, cell: int) -> Any:
        return self.categories[cell] if self.categories is not None else float((self.edges or ())[cell])

    def __repr__(self) -> str:
        return f"Histogram({self.cells} cells, {self.adjacency}; {self.noise!r})"


def _cell(index: dict[Any, int], row: Any) -> int:
    """Return the cell of a row, or -1: whatever a row raises when it is looked up, it is in no cell."""
    try:
        return index.get(row, -1)
    except Exception:  # noqa: BLE001 - nothing may raise on a row
        return -1
