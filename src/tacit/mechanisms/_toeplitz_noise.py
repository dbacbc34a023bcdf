"""The Toeplitz mechanism for streams: each row is a sum of past days with coefficients that fall off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set
from tacit.mechanisms._discrete_gaussian import DiscreteGaussian
from tacit.mechanisms._discrete_laplace import DiscreteLaplace
from tacit.mechanisms._mechanism import exactly_one, figure
from tacit.mechanisms._stream_noise import StreamNoise, read_days
from tacit.parameters import Integer, Probability
from tacit.strategies import dial_coefficients, inverse_series, window_series

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.exact import Number

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
        horizon, most, gap = read_days(days, most_days, apart)
        dial = Probability(instead=0.35).read("power", power)
        for name, number in (("bands", bands), ("inverse_bands", inverse_bands)):
            if number is not None:
                Integer(1).read(name, number)
        first = count("coefficient", coefficient or (_SCALE if dial else 1), zero=False)
        coefficients = dial_coefficients(horizon, float(dial), first, bands, inverse_bands)
        gaussian = exactly_one(rho=rho, epsilon=epsilon) == "rho"
        made: DiscreteGaussian | DiscreteLaplace
        if gaussian:
            move = count("sensitivity_squared", sensitivity_squared, zero=False)  # type: ignore[arg-type]
            together = move * column_norm_squared(coefficients, horizon, most, gap)
            made = DiscreteGaussian(rho=rho, sensitivity_squared=together)
        else:
            move = count("sensitivity", sensitivity, zero=False)  # type: ignore[arg-type]
            made = DiscreteLaplace(epsilon=epsilon, sensitivity=move * most * sum(coefficients))
        for name, value in (
            ("days", horizon), ("power", dial), ("most_days", most), ("apart", gap), ("bands", bands),
            ("inverse_bands", inverse_bands), ("coefficients", coefficients), ("noise", made),
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
        kept = past[-(reach - 1) :] if reach > 1 else []
        return rows, [one.tolist() for one in kept]

    def estimate(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return C^-1 y, one day after another."""
        c = np.array(self.coefficients, dtype=np.float64)
        days = np.zeros_like(rows, dtype=np.float64)
        for t in range(len(rows)):
            reach = min(t, len(c) - 1)
            known = np.tensordot(c[1 : reach + 1], days[t - reach : t][::-1], axes=1) if reach else 0.0
            days[t] = (rows[t] - known) / c[0]
        return days

    def weights(self, window: int | None, day: int, through: int) -> NDArray[np.float64]:
        """Return the coefficients of the inverse, added up over the window; later rows add nothing."""
        series = window_series(inverse_series(self.coefficients, self.days), window)
        return np.concatenate([series[:day][::-1], np.zeros(through - day)])

    def spread(self, window: int | None) -> float:
        """Return the root mean square error of a sum over a window, over all days of the horizon."""
        series = window_series(inverse_series(self.coefficients, self.days), window)
        return self._deviation() * math.sqrt(float(np.cumsum(series**2).mean()))

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
        kept = f", {self.bands} bands" if self.bands else ""
        kept += f", {self.inverse_bands} bands of the inverse" if self.inverse_bands else ""
        return f"Toeplitz dial {float(self.power):g}{kept}, discrete {law} noise"

    def __repr__(self) -> str:
        return f"ToeplitzNoise({self.describe()}; {self.days} days)"


def column_norm_squared(coefficients: tuple[int, ...], days: int, most_days: int, apart: int) -> int:
    """Return the squared norm of the sum of the columns 0, b, 2b, ... of C, k of them: an exact integer.

    For non-negative coefficients that never rise it is the largest over all choices of k columns, b apart.

    Examples
    --------
    >>> column_norm_squared((2, 1), 4, 1, 1), column_norm_squared((2, 1), 4, 2, 1)
    (5, 14)
    """
    rises = any(later > earlier for earlier, later in pairwise(coefficients))
    if most_days > 1 and rises:
        raise bad_parameter("coefficients", "numbers that never rise", "some that rise", fix=Set(bands=1))
    if most_days == 1:
        return sum(c * c for c in coefficients)
    together = np.zeros(days + len(coefficients), dtype=object)
    for day in range(0, min(days, most_days * apart), apart):
        together[day : day + len(coefficients)] += np.array(coefficients, dtype=object)
    return int((together[:days] ** 2).sum())
