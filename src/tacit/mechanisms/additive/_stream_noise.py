"""Stream noise: one mechanism for all days of a stream, which releases rows as days come in.

A row is a sum of days with public whole-number weights. All rows get independent integer noise. The cost is
that of all rows together, for one unit that is in at most ``most_days`` days, at least ``apart`` days apart.
The proof is in docs/proofs/streams.md.

The tree mechanism has pure epsilon: noisy sums over blocks of days, blocks of blocks, and so on. In the
Toeplitz mechanism each row is a sum of past days with coefficients that fall off.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.mechanisms._mechanism import Mechanism, exactly_one, figure, fixed_width
from tacit.mechanisms.additive._integer_noise import DiscreteGaussian, DiscreteLaplace
from tacit.mechanisms.additive._linear_noise import LinearNoise
from tacit.parameters import Integer, Listed, Probability
from tacit.strategies import (
    column_norm_squared,
    dial_coefficients,
    inverse_series,
    sums_error,
    window_series,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.exact import Number


_LARGEST = 12  # Laplace terms that keep their own law; the others join the normal
_ROOM = 2**62
_DAYS = Listed("numbers, those of a day together", "[3, 5]", least=0)


class StreamNoise(Mechanism):
    """Noise for a stream of days, in rows that are released as the days come in.

    Guarantee: all rows together cost `cost`, also where a day's numbers depend on rows that were released
    before. Each row is released once.

    Examples
    --------
    >>> import tacit as tc
    >>> noise = tc.mechanisms.ToeplitzNoise(days=3, power=0, rho=2, sensitivity_squared=1)
    >>> first, memory = noise.release_next([[40, 7]], b"")
    >>> second, memory = noise.release_next([[38, 9], [41, 6]], memory)
    >>> np.shape(first), np.shape(second)
    ((1, 2), (2, 2))
    """

    __slots__ = ()

    days: int
    most_days: int
    apart: int
    noise: DiscreteGaussian | DiscreteLaplace

    @property
    def cost(self) -> Cost:
        """What all rows together take from a budget."""
        return self.noise.cost

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on each row."""
        return self.noise.scale

    @abstractmethod
    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words; `unit` is what one whole step is worth."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the mechanism's name, its exact parameters and its cost as JSON data."""

    @abstractmethod
    def rows(self, days: int) -> int:
        """Return how many rows are released when so many days have come in."""

    @abstractmethod
    def sums(self, values: list[Any], memory: Any) -> tuple[list[Any], Any]:
        """Return the exact rows that new days complete, and what later rows need; None at first."""

    @abstractmethod
    def estimate(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the days, by least squares over all rows that were released."""

    @abstractmethod
    def weights(self, window: int | None, day: int, through: int) -> NDArray[np.float64]:
        """Return what each row adds to the estimate of a sum over the last ``window`` days up to a day.

        ``None`` stands for the running total; ``through`` is the number of days that have come in.
        """

    @abstractmethod
    def spread(self, window: int | None) -> float:
        """Return the root mean square error of a sum over a window, over all days of the horizon."""

    def release(self, value: object) -> Any:
        """Return all rows of the days that are given, the first axis, from the first day on."""
        rows, _ = self.sums(list(value), None)  # type: ignore[call-overload]
        return self.noise.release(whole(rows))

    def release_many(self, value: object, count: int) -> NDArray[Any]:
        """Return `count` independent outputs on the same value, each at the full cost: for auditors only."""
        rows, _ = self.sums(list(value), None)  # type: ignore[call-overload]
        return self.noise.release_many(whole(rows), count)

    def release_next(self, value: Any, memory: bytes) -> tuple[Any, bytes]:
        """Return the rows that new days complete, and the memory for the next call; it is secret.

        Parameters
        ----------
        value
            The whole numbers of the new days; the first axis is the day, and it may be empty.
        memory
            What the last call returned; empty at first. It holds true numbers of past days.
        """
        state: dict[str, Any] = json.loads(memory) if memory else {"days": 0, "past": None}
        new = [np.asarray(one, dtype=object) for one in _DAYS.read("value", value)]
        if state["days"] + len(new) > self.days:
            raise bad_parameter(
                "value", f"the days that are left of {self.days}", f"{len(new)} days", fix=Set(days=self.days)
            )
        rows, past = self.sums(new, state["past"])
        memory = fixed_width({"days": state["days"] + len(new), "past": past})
        return (self.noise.release(whole(rows)).tolist() if rows else []), memory

    def noise_on(self, window: int | None, day: int, through: int) -> LinearNoise:
        """Return the law of the noise on the sum over a window of days, as it is estimated."""
        w = np.sort(np.abs(self.weights(window, day, through)))[::-1]
        if isinstance(self.noise, DiscreteGaussian):
            return LinearNoise(normal=float(self.scale) * float(np.sqrt((w**2).sum())))
        scale = float(self.scale)
        largest, rest = w[:_LARGEST], w[_LARGEST:]
        return LinearNoise(
            tuple(scale * one for one in largest.tolist() if one > 0),
            scale * math.sqrt(2 * float((rest**2).sum())),
        )

    def _deviation(self) -> float:
        """Return the standard deviation of the noise on one row."""
        return math.sqrt(self.noise.variance)

    @property
    def worst_pair(self) -> tuple[list[int], list[int]]:
        """No days with anything in them, and one unit in its first days, as close as it may come."""
        days = min(self.days, (self.most_days - 1) * self.apart + 1)
        neighbour = [self._one_day if day % self.apart == 0 else 0 for day in range(days)]
        rest = [0] * (self.days - days)
        return [0] * self.days, neighbour + rest

    @property
    @abstractmethod
    def _one_day(self) -> int:
        """The most that one unit can change one number of one day, rounded down."""


def whole(rows: list[Any]) -> NDArray[Any]:
    """Return exact rows as an array of 64-bit integers where they fit, else of Python integers."""
    array = np.array(rows, dtype=object)
    if array.size == 0 or max(abs(int(array.max())), abs(int(array.min()))) < _ROOM:
        return array.astype(np.int64)
    return array


def read_days(days: object, most_days: object, apart: object) -> tuple[int, int, int]:
    """Read the horizon, and in how many of its days one unit can be; no more than fit into it."""
    horizon = count("days", days, zero=False)  # type: ignore[arg-type]
    gap = count("apart", apart, zero=False)  # type: ignore[arg-type]
    max_days = count("most_days", most_days, zero=False)  # type: ignore[arg-type]
    return horizon, min(max_days, -(-horizon // gap)), gap


@dataclass(frozen=True, init=False, repr=False)
class TreeNoise(StreamNoise):
    """Release noisy sums of single days, of blocks of days, of blocks of blocks, with Laplace noise.

    Guarantee: a day is in one block of each level, so a unit that changes one day by at most D (L1) changes
    all rows by at most D times the number of levels, and a unit in k days by k times as much. Days, and sums
    of days, are read by least squares over all rows, so that they agree.

    Parameters
    ----------
    days
        The horizon: at most so many days come in.
    branching
        How many blocks make a block of the next level.
    epsilon, sensitivity
        The cost, and the most that a unit moves one day, in L1.
    levels
        How many levels there are; by default as many as fit into the horizon.
    most_days, apart
        In how many days one unit can be, and how many days apart at least.

    Examples
    --------
    >>> import tacit as tc
    >>> noise = tc.mechanisms.TreeNoise(days=365, branching=8, epsilon=1, sensitivity=1)
    >>> noise.levels, noise.rows(64), round(noise.spread(None), 1)
    (3, 73, 12.4)
    """

    days: int
    branching: int
    levels: int
    most_days: int
    apart: int
    noise: DiscreteLaplace
    _move: int

    def __init__(
        self,
        *,
        days: int,
        branching: int,
        epsilon: Number,
        sensitivity: int,
        levels: int | None = None,
        most_days: int = 1,
        apart: int = 1,
    ) -> None:
        horizon, max_days, gap = read_days(days, most_days, apart)
        base = Integer(2, instead=8).read("branching", branching)
        height, width = 1, base
        while width <= horizon:
            height, width = height + 1, width * base
        height = height if levels is None else min(height, count("levels", levels, zero=False))
        move = count("sensitivity", sensitivity, zero=False)
        noise = DiscreteLaplace(epsilon=epsilon, sensitivity=move * max_days * height)
        for name, value in (
            ("days", horizon), ("branching", base), ("levels", height), ("most_days", max_days),
            ("apart", gap), ("noise", noise), ("_move", move),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    def rows(self, days: int) -> int:
        """Return how many blocks of all levels are complete."""
        return sum(days // self.branching**level for level in range(self.levels))

    def sums(self, values: list[Any], memory: Any) -> tuple[list[Any], Any]:
        """Return the blocks that the new days complete; the memory is the sums of incomplete blocks."""
        day, open_sums = (0, [0] * self.levels) if memory is None else memory
        blocks = [np.asarray(one, dtype=object) for one in open_sums]
        rows = []
        for value in values:
            day += 1
            blocks = [one + np.asarray(value, dtype=object) for one in blocks]
            for level in range(self.levels):
                if day % self.branching**level == 0:
                    rows.append(blocks[level])
                    blocks[level] = blocks[level] * 0
        return rows, [day, [np.asarray(one, dtype=object).tolist() for one in blocks]]

    def estimate(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the days, by least squares over all complete blocks."""
        days = next(n for n in range(self.days + 1) if self.rows(n) == len(rows))
        estimates, at = [], 0
        for inverse in self._inverses(days):
            part = rows[at : at + inverse.shape[1]]
            estimates.append(np.tensordot(inverse, part, axes=1))
            at += inverse.shape[1]
        return np.concatenate(estimates) if estimates else rows[:0]

    def weights(self, window: int | None, day: int, through: int) -> NDArray[np.float64]:
        """Return what each complete block adds to the sum of a window of days."""
        window_days = np.zeros(through)
        window_days[0 if window is None else max(0, day - window) : day] = 1.0
        weights, at = [], 0
        for inverse in self._inverses(through):
            weights.append(window_days[at : at + inverse.shape[0]] @ inverse)
            at += inverse.shape[0]
        return np.concatenate(weights)

    def _inverses(self, days: int) -> list[NDArray[np.float64]]:
        """Return the least-squares inverse of each block of the highest level, the last one incomplete."""
        largest = self.branching ** (self.levels - 1)
        full, rest = divmod(days, largest)
        parts = [largest] * full + ([rest] if rest else [])
        return [tree_inverse(self.branching, self.levels, part) for part in parts]

    def spread(self, window: int | None) -> float:
        """Return the root mean square error on the day of its release, over the horizon.

        The complete blocks of a prefix are a forest of trees without common noise. So the variance of a
        window is a sum: of whole trees, v' = 1/(1 + 1/(B v)), and of the end of the tree in which it begins.
        """
        if window is not None:
            Integer(1).read("window", window)
        variances = [1.0]
        for _ in range(1, self.levels):
            variances.append(1 / (1 + 1 / (self.branching * variances[-1])))
        t = np.arange(1, self.days + 1)
        rest = t.copy() if window is None else np.minimum(window, t)
        total = 0.0
        for level, variance in enumerate(variances):
            size = self.branching**level
            blocks = t // size if level + 1 == self.levels else t // size % self.branching
            complete = np.minimum(blocks, rest // size)
            rest -= complete * size
            total += variance * float(complete.sum())
            cut = np.where(blocks > complete, rest, 0)  # what is left ends a tree of this level
            for days, often in enumerate(np.bincount(cut)[1:], start=1):
                total += float(often) * self._end(level, days, variances)[0] if often else 0.0
            rest -= cut
        return self._deviation() * math.sqrt(total / self.days)

    def _end(self, level: int, days: int, variances: list[float]) -> tuple[float, float]:
        """Return the variance of the last days of a complete tree, and their covariance with its total."""
        if level == 0 or days == self.branching**level:
            return variances[level], variances[level]
        below = variances[level - 1]
        complete, rest = divmod(days, self.branching ** (level - 1))
        part, shared = self._end(level - 1, rest, variances) if rest else (0.0, 0.0)
        total = complete * below + shared  # with the sum of the parts; then the tree's own noise is used
        scale = self.branching * below + 1
        return complete * below + part - total**2 / scale, total / scale

    @property
    def _one_day(self) -> int:
        return self._move

    def to_json(self) -> dict[str, Any]:
        """Return the exact parameters and the cost."""
        return {
            "mechanism": "tree-noise",
            "days": self.days,
            "branching": self.branching,
            "levels": self.levels,
            "most_days": self.most_days,
            "apart": self.apart,
            "noise": self.noise.to_json(),
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        size = figure(self.scale * unit)
        return f"tree of {self.levels} levels, {self.branching} a block, discrete Laplace noise, scale {size}"

    def __repr__(self) -> str:
        return f"TreeNoise({self.describe()}; {self.days} days)"


@lru_cache(maxsize=64)
def tree_inverse(branching: int, levels: int, days: int) -> NDArray[np.float64]:
    """Return the matrix that reads days off the complete blocks of one block of the highest level."""
    lines = []
    for day in range(1, days + 1):
        for level in range(levels):
            width = branching**level
            if day % width == 0:
                line = np.zeros(days)
                line[day - width : day] = 1.0
                lines.append(line)
    blocks = np.array(lines)
    return np.asarray(np.linalg.solve(blocks.T @ blocks, blocks.T))


_SCALE = 256


@dataclass(frozen=True, init=False, repr=False)
class ToeplitzNoise(StreamNoise):
    """Release y = C x + z over the days x of a stream, where C has whole-number coefficients.

    Guarantee: a unit that changes one day by at most D changes y by at most D times the norm of a column of
    C. A unit in at most k days, b apart, changes it by at most D times the norm of the sum of the columns
    0, b, 2b, ... This is the sensitivity of the discrete Gaussian (L2) or Laplace noise (L1) on y. Days are
    C^-1 y, and sums of days are sums of these estimates, so that they agree.

    Parameters
    ----------
    days
        The horizon: at most so many days come in.
    power
        The dial, from 0 (each row is a day) to 1/2 (running totals are as exact as they get) to 1.
    rho, sensitivity_squared
        Gaussian noise: the cost, and the square of the most that a unit moves one day, in L2.
    epsilon, sensitivity
        Laplace noise: the cost, and the most that a unit moves one day, in L1.
    most_days, apart
        In how many days one unit can be, and how many days apart at least.
    bands, inverse_bands
        Keep so many coefficients of C, or of its inverse; all by default.
    coefficient
        What the first coefficient is; the others are rounded to whole numbers. 1 for days themselves.

    Examples
    --------
    >>> import tacit as tc
    >>> noise = tc.mechanisms.ToeplitzNoise(days=365, power=0.35, rho=0.5, sensitivity_squared=1)
    >>> [round(noise.spread(window), 2) for window in (1, 7, None)]
    [1.3, 2.12, 3.25]
    >>> noise.cost.rho <= 0.5, noise.coefficients[:4]
    (True, (256, 90, 60, 47))
    """

    days: int
    power: Fraction
    most_days: int
    apart: int
    bands: int | None
    inverse_bands: int | None
    coefficients: tuple[int, ...]
    noise: DiscreteGaussian | DiscreteLaplace
    _move: int

    def __init__(
        self,
        *,
        days: int,
        power: Number,
        rho: Number | None = None,
        epsilon: Number | None = None,
        sensitivity: int | None = None,
        sensitivity_squared: int | None = None,
        most_days: int = 1,
        apart: int = 1,
        bands: int | None = None,
        inverse_bands: int | None = None,
        coefficient: int | None = None,
    ) -> None:
        horizon, max_days, gap = read_days(days, most_days, apart)
        exponent = Probability(instead=0.35).read("power", power)
        for name, number in (("bands", bands), ("inverse_bands", inverse_bands)):
            if number is not None:
                Integer(1).read(name, number)
        scale = count("coefficient", coefficient or (_SCALE if exponent else 1), zero=False)
        coefficients = dial_coefficients(horizon, float(exponent), scale, bands, inverse_bands)
        gaussian = exactly_one(rho=rho, epsilon=epsilon) == "rho"
        noise: DiscreteGaussian | DiscreteLaplace
        if gaussian:
            move = count("sensitivity_squared", sensitivity_squared, zero=False)  # type: ignore[arg-type]
            norm_squared = move * column_norm_squared(coefficients, horizon, max_days, gap)
            noise = DiscreteGaussian(rho=rho, sensitivity_squared=norm_squared)
        else:
            move = count("sensitivity", sensitivity, zero=False)  # type: ignore[arg-type]
            noise = DiscreteLaplace(epsilon=epsilon, sensitivity=move * max_days * sum(coefficients))
        for name, value in (
            ("days", horizon), ("power", exponent), ("most_days", max_days), ("apart", gap), ("bands", bands),
            ("inverse_bands", inverse_bands), ("coefficients", coefficients), ("noise", noise),
            ("_move", move),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    def rows(self, days: int) -> int:
        """Return one row for each day."""
        return days

    def sums(self, values: list[Any], memory: Any) -> tuple[list[Any], Any]:
        """Return the rows of the new days; the memory is as many past days as there are coefficients."""
        past = [np.asarray(one, dtype=object) for one in memory or []]
        rows, reach = [], len(self.coefficients)
        for value in values:
            past = [*past, np.asarray(value, dtype=object)][-reach:]
            rows.append(sum(c * x for c, x in zip(self.coefficients, reversed(past), strict=False)))
        tail = past[-(reach - 1) :] if reach > 1 else []
        return rows, [one.tolist() for one in tail]

    def estimate(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return C^-1 y, one day after another."""
        c = np.array(self.coefficients, dtype=np.float64)
        days = np.zeros_like(rows, dtype=np.float64)
        for t in range(len(rows)):
            reach = min(t, len(c) - 1)
            earlier = np.tensordot(c[1 : reach + 1], days[t - reach : t][::-1], axes=1) if reach else 0.0
            days[t] = (rows[t] - earlier) / c[0]
        return days

    def weights(self, window: int | None, day: int, through: int) -> NDArray[np.float64]:
        """Return the coefficients of the inverse, added up over the window; later rows add nothing."""
        series = window_series(inverse_series(self.coefficients, self.days), window)
        return np.concatenate([series[:day][::-1], np.zeros(through - day)])

    def spread(self, window: int | None) -> float:
        """Return the root mean square error of a sum over a window, over all days of the horizon."""
        return self._deviation() * sums_error(inverse_series(self.coefficients, self.days), window)

    @property
    def _one_day(self) -> int:
        return math.isqrt(self._move) if isinstance(self.noise, DiscreteGaussian) else self._move

    def to_json(self) -> dict[str, Any]:
        """Return the exact parameters; the coefficients follow from them."""
        return {
            "mechanism": "toeplitz-noise",
            "days": self.days,
            "power": str(self.power),
            "coefficient": self.coefficients[0],
            "bands": self.bands,
            "inverse_bands": self.inverse_bands,
            "most_days": self.most_days,
            "apart": self.apart,
            "noise": self.noise.to_json(),
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        law = "Gaussian" if isinstance(self.noise, DiscreteGaussian) else "Laplace"
        if len(self.coefficients) == 1:
            word = "sigma" if law == "Gaussian" else "scale"
            size = figure(self.scale / self.coefficients[0] * unit)
            return f"discrete {law} noise on each day, {word} {size}"
        bands = f", {self.bands} bands" if self.bands else ""
        bands += f", {self.inverse_bands} bands of the inverse" if self.inverse_bands else ""
        return f"Toeplitz dial {float(self.power):g}{bands}, discrete {law} noise"

    def __repr__(self) -> str:
        return f"ToeplitzNoise({self.describe()}; {self.days} days)"
