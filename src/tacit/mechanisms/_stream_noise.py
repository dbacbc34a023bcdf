"""The class `StreamNoise`: one mechanism for all days of a stream, which releases rows as days come in.

A row is a sum of days with public whole-number weights. All rows get independent integer noise. The cost is
that of all rows together, for one unit that is in at most ``most_days`` days, at least ``apart`` days apart.
The proof is in docs/proofs/streams.md.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.mechanisms._discrete_gaussian import DiscreteGaussian
from tacit.mechanisms._linear_noise import LinearNoise
from tacit.mechanisms._mechanism import Mechanism
from tacit.mechanisms._memory_width import fixed_width
from tacit.parameters import Listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.mechanisms._discrete_laplace import DiscreteLaplace

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
        held: dict[str, Any] = json.loads(memory) if memory else {"days": 0, "past": None}
        new = [np.asarray(one, dtype=object) for one in _DAYS.read("value", value)]
        if held["days"] + len(new) > self.days:
            raise bad_parameter(
                "value", f"the days that are left of {self.days}", f"{len(new)} days", fix=Set(days=self.days)
            )
        rows, past = self.sums(new, held["past"])
        memory = fixed_width({"days": held["days"] + len(new), "past": past})
        return (self.noise.release(whole(rows)).tolist() if rows else []), memory

    def noise_on(self, window: int | None, day: int, through: int) -> LinearNoise:
        """Return the law of the noise on the sum over a window of days, as it is estimated."""
        w = np.sort(np.abs(self.weights(window, day, through)))[::-1]
        if isinstance(self.noise, DiscreteGaussian):
            return LinearNoise(normal=float(self.scale) * float(np.sqrt((w**2).sum())))
        scale = float(self.scale)
        own, rest = w[:_LARGEST], w[_LARGEST:]
        return LinearNoise(
            tuple(scale * one for one in own.tolist() if one > 0),
            scale * math.sqrt(2 * float((rest**2).sum())),
        )

    def _deviation(self) -> float:
        """Return the standard deviation of the noise on one row."""
        return math.sqrt(self.noise.variance)

    @property
    def worst_pair(self) -> tuple[list[int], list[int]]:
        """No days with anything in them, and one unit in its first days, as close as it may come."""
        days = min(self.days, (self.most_days - 1) * self.apart + 1)
        moved = [self._one_day if day % self.apart == 0 else 0 for day in range(days)]
        rest = [0] * (self.days - days)
        return [0] * self.days, moved + rest

    @property
    @abstractmethod
    def _one_day(self) -> int:
        """The most that one unit can change one number of one day, rounded down."""


def whole(rows: list[Any]) -> NDArray[Any]:
    """Return exact rows as an array of 64-bit integers where they fit, else of Python integers."""
    made = np.array(rows, dtype=object)
    if made.size == 0 or max(abs(int(made.max())), abs(int(made.min()))) < _ROOM:
        return made.astype(np.int64)
    return made


def read_days(days: object, most_days: object, apart: object) -> tuple[int, int, int]:
    """Read the horizon, and in how many of its days one unit can be; no more than fit into it."""
    horizon = count("days", days, zero=False)  # type: ignore[arg-type]
    gap = count("apart", apart, zero=False)  # type: ignore[arg-type]
    most = count("most_days", most_days, zero=False)  # type: ignore[arg-type]
    return horizon, min(most, -(-horizon // gap)), gap
