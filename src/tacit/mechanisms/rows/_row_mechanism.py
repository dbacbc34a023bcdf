"""Row mechanisms, which take rows, one per person: integer values and noise for the promise.

The subsampled mechanism amplifies privacy by Poisson sampling; the sample is really drawn.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Code, Either, Set
from tacit.mechanisms._grid import fine_grid, to_steps
from tacit.mechanisms._mechanism import Interval, Mechanism, show
from tacit.mechanisms.additive._grid_noise import Gaussian, Laplace
from tacit.mechanisms.rows._input_rows import brought_within, collected, read_bounds, rows_of, taken
from tacit.parameters import Instance, Needed, Omitted, RealNumber, Share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost


class RowMechanism(Mechanism):
    """A mechanism on a collection of rows, each of one person."""

    __slots__ = ()

    @property
    @abstractmethod
    def adjacency(self) -> Adjacency:
        """What makes two collections of rows neighbours."""


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """Values clipped to public bounds, rounded to a public grid, and clipped again as integers."""

    low: Fraction
    high: Fraction
    missing: Fraction
    grid: Fraction
    bottom: int  # of the integer range
    top: int

    @classmethod
    def of(
        cls, bounds: tuple[Number, Number] | None, missing: Number | None, *, cells: int = 2**30
    ) -> IntegerRange:
        """Lay at least `cells` grid steps over the bounds."""
        low, high = read_bounds(bounds)
        stand_in = low if missing is None else rational("missing", missing, zero=True, negative=True)
        why = "missing values are put within the bounds"
        RealNumber(least=low, most=high, why=why, instead=float(low)).read("missing", stand_in)
        grid = fine_grid(high - low, max(1, cells >> 20))
        bottom, top = (math.floor(end / grid + Fraction(1, 2)) for end in (low, high))
        return cls(low, high, stand_in, grid, bottom, top)

    @property
    def width(self) -> int:
        """The integer range's width in steps: the most that one value can move."""
        return self.top - self.bottom

    def above_bottom(self, values: object) -> NDArray[np.int64]:
        """Return each value's steps above the bottom, from 0 to `width`."""
        numbers = brought_within(rows_of(values), self.low, self.high, missing=self.missing)
        steps = np.asarray(to_steps(numbers, self.grid))
        if max(abs(self.bottom), abs(self.top)) >= 2**61:  # public: the bounds lie far from zero
            steps = steps.astype(object)
        inside: NDArray[np.int64] = np.clip(steps - self.bottom, 0, self.width).astype(np.int64)
        return inside


def public_size(n: int | None, adjacency: str | None) -> tuple[int | None, Adjacency]:
    """Read whether the number of rows is public: neighbours then replace a row, else add or remove one."""
    if n is None:
        if adjacency == "replace":
            Needed(500, "under replace, where the number of rows is public").read("n", n)
        return None, "add/remove"
    if adjacency == "add/remove":
        Omitted(
            'when the adjacency is "add/remove"',
            "if people can be added or removed, their number is private",
            fix=Either(Set(n=None), Set(adjacency="replace")),
        ).read("n", n)
    return count("n", n, zero=False), "replace"


def counted(values: Any, n: int | None) -> Any:
    """Return the collection of rows; refuse one whose size is not the declared one: both are public."""
    rows = collected(values)
    if n is not None and len(rows) != n:
        raise TacitError(
            "bad-parameter",
            f"the collection does not have the declared number of rows, which is {n}",
            why="the sensitivity is stated for this number of rows",
            fix=Code("n=len(values)"),
        )
    return rows


def noise_for(
    *,
    sensitivity: Fraction,
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    adjacency: Adjacency,
) -> Laplace | Gaussian:
    """Return Laplace noise for a pure epsilon, Gaussian noise for (epsilon, delta) or rho."""
    if delta is None and rho is None:
        return Laplace(epsilon=epsilon, sensitivity=sensitivity, adjacency=adjacency)
    return Gaussian(epsilon=epsilon, delta=delta, rho=rho, sensitivity=sensitivity, adjacency=adjacency)


class Noised(RowMechanism):
    """Rows, an exact statistic of them, and additive noise."""

    __slots__ = ()

    noise: Laplace | Gaussian

    @property
    def cost(self) -> Cost:
        """The cost of the noise."""
        return self.noise.cost

    @property
    def sensitivity(self) -> Fraction:
        """The most that one row can move the exact statistic."""
        return self.noise.sensitivity

    def exact(self, value: Any) -> Any:
        """Return the exact statistic that gets noise: private, for neighbour searches only."""
        raise NotImplementedError

    def release_many(self, value: Any, count: int) -> NDArray[Any]:
        """Return `count` independent outputs on the same rows, each at the full cost: for auditors only.

        Where a release is computed from several noisy numbers, those numbers.
        """
        return self.noise.release_many(self.exact(value), count)

    def error(self, confidence: Number) -> float:
        """Return the half-width that the noise stays within; what clipping cuts off is not included."""
        return self.noise.error(confidence)

    @property
    def variance(self) -> float:
        """The variance of the noise on each number that gets noise."""
        return self.noise.variance

    def interval(self, released: object, confidence: Number) -> Interval[Any]:
        """Return the range that holds the exact statistic with this confidence over the noise."""
        return self.noise.interval(released, confidence)


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Clipped(Noised):
    """A statistic of values clipped to public bounds, the number of rows public (`n`) or private."""

    range: IntegerRange
    n: int | None
    adjacency: Adjacency
    noise: Laplace | Gaussian

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        bounds: tuple[Number, Number] | None = None,
        n: int | None = None,
        missing: Number | None = None,
        adjacency: Adjacency | None = None,
    ) -> None:
        span = self._span(bounds, missing)
        size, relation = public_size(n, adjacency)
        movement = self._moved(span, size)
        noise = noise_for(sensitivity=movement, epsilon=epsilon, delta=delta, rho=rho, adjacency=relation)
        for name, value in (("range", span), ("n", size), ("adjacency", relation), ("noise", noise)):
            object.__setattr__(self, name, value)

    @staticmethod
    def _span(bounds: tuple[Number, Number] | None, missing: Number | None) -> IntegerRange:
        return IntegerRange.of(bounds, missing)

    @staticmethod
    @abstractmethod
    def _moved(span: IntegerRange, size: int | None) -> Fraction:
        """Return the most that one row can move the statistic, in L1 and so in L2."""

    def __repr__(self) -> str:
        rows = "n private" if self.n is None else f"n={self.n}"
        bounds = f"({show(self.range.low)}, {show(self.range.high)})"
        return f"{type(self).__name__}(bounds={bounds}, {rows}; {self.noise!r})"


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Subsampled(RowMechanism):
    """Keep each row with probability q, independently and in secret, then run a mechanism on the rows kept.

    Guarantee: the cost of the mechanism, sampled: for a pure epsilon ln(1 + q (exp(epsilon) - 1)).

    Argument: under add/remove a row is in the sample with probability q whatever the others do, so the
    output on the larger data is the mixture (1-q) M(without) + q M(with) (Balle, Barthe, Gaboardi 2018). It
    holds for Poisson samples whose members stay secret, of rows that each belong to one person. It does not
    hold for shuffled batches or batches of a fixed size.

    Parameters
    ----------
    mechanism
        One that takes rows, under add/remove: a count, sum, mean, histogram, quantile.
    q
        The probability that a row is kept, in (0, 1].

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.Subsampled(tc.mechanisms.Count(epsilon=1), q=0.05)
    >>> round(m.cost.epsilon(delta=0), 4)
    0.0824
    >>> 0 <= m.release(range(100_000)) / 0.05 <= 200_000
    True
    """

    mechanism: RowMechanism
    q: Fraction

    def __init__(self, mechanism: RowMechanism, *, q: Number) -> None:
        Instance(
            RowMechanism,
            "Subsampled(Count(epsilon=1), q=0.05)",
            "one that takes rows, such as Count, Sum, Mean or Histogram",
            "a sample must be drawn before rows are added up",
        ).read("mechanism", mechanism)
        if mechanism.adjacency != "add/remove":
            raise bad_parameter(
                "mechanism",
                "one under add/remove",
                mechanism,
                why="amplification is proven for rows that come or go, not for rows that are replaced",
                fix=Set(n=None),
            )
        share = Share(instead=0.05).read("q", q)
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "q", share)

    @property
    def adjacency(self) -> Any:
        """Rows come or go."""
        return "add/remove"

    @property
    def cost(self) -> Cost:
        """The mechanism's cost, sampled."""
        return self.mechanism.cost.sampled(self.q)

    def release(self, value: Any) -> Any:
        """Draw the sample and release the mechanism's output on it (divide sums by q yourself)."""
        rows = collected(value)
        sample = np.flatnonzero(np.asarray(noise.bernoulli(self.q, len(rows))))
        return self.mechanism.release(taken(rows, sample))

    @property
    def worst_pair(self) -> tuple[object, object]:
        """The mechanism's own."""
        return self.mechanism.worst_pair

    def __repr__(self) -> str:
        return f"Subsampled(q={show(self.q)}, {self.mechanism!r})"
