"""Numbers plus integer noise on a public grid: what Laplace and Gaussian mechanisms share."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import Number, count, rational
from tacit.mechanisms._grid import Array, add, from_steps, read_numbers, to_steps
from tacit.mechanisms._mechanism import Interval, Mechanism, confidence_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.mechanisms._noise_laws import NoiseLaw

__all__ = ["GridNoise"]

_SMALLEST, _LARGEST = Fraction(2) ** -900, Fraction(2) ** 900


class GridNoise(Mechanism):
    """Round to a public grid, add integer noise, return floats; all figures are read off the lattice law."""

    __slots__ = ()

    sensitivity: Fraction
    _cost: Cost
    _own_grid: bool
    _size: int | None

    @property
    def cost(self) -> Cost:
        """The cost of the lattice law that is sampled."""
        return self._cost

    @abstractmethod
    def lattice(self, size: int = 1) -> tuple[Fraction, NoiseLaw]:
        """Return the grid and the law, in grid steps, for `size` numbers released together."""

    def release(self, value: object) -> Any:
        """Return the value plus noise: a float for a number, an array of floats for an array.

        Rounds to the grid by floor(x/g + 1/2) first. The number of entries of an array is public. NaN and
        infinities are refused: give them a meaning with `clip` before.
        """
        numbers = read_numbers(value)
        if not isinstance(numbers, np.ndarray):
            grid, law = self.lattice()
            return from_steps(to_steps(numbers, grid) + law.draw(), grid)
        grid, law = self.lattice(numbers.size)
        return from_steps(add(self._steps_of(numbers, grid), law.draws(numbers.shape)), grid)

    def _steps_of(self, numbers: NDArray[Any], grid: Fraction) -> Array:
        """Round to the grid; on a grid of the user's own, undeclared arrays must lie on it already."""
        steps = to_steps(numbers, grid)
        if not self._own_grid or numbers.size <= (self._size or 1):
            return steps
        pairs = zip(numbers.ravel().tolist(), steps.ravel().tolist(), strict=True)
        if self._size == 1 or any(Fraction(x) != k * grid for x, k in pairs):
            raise bad_parameter(
                "value",
                f"at most {self._size or 1} numbers, or numbers on the grid",
                "an array",
                why="rounding many numbers to a coarse grid adds to the sensitivity",
                fix=f"{type(self).__name__}(..., grid=..., size={numbers.size})",
            )
        return steps

    def release_many(self, value: object, count: int) -> NDArray[np.float64]:
        """Return `count` independent outputs on the same value, each at the full cost: for auditors only."""
        numbers = read_numbers(value)
        if isinstance(numbers, np.ndarray):
            grid, law = self.lattice(numbers.size)
            steps = np.asarray(self._steps_of(numbers, grid))
        else:
            grid, law = self.lattice()
            steps = np.asarray(to_steps(numbers, grid))
        shape = (count, *steps.shape)
        return np.asarray(from_steps(add(np.broadcast_to(steps, shape), law.draws(shape)), grid))

    def _check_size(self, scale: Fraction) -> None:
        """Refuse noise that does not fit into 64 bits, or that floats cannot show."""
        self.lattice()
        if not _SMALLEST <= scale <= _LARGEST:
            about = scale.numerator.bit_length() - scale.denominator.bit_length()
            raise bad_parameter(
                "the noise scale",
                "between 2^-900 and 2^900",
                f"about 2^{about}",
                fix="other units for the value",
            )

    def error(self, confidence: Number, *, size: int = 1, together: bool = False) -> float:
        """Return the half-width that the released number stays within, with at least this confidence.

        Exact from the lattice law: the smallest number of grid steps with enough coverage, and half a step
        for the rounding to the grid.

        Parameters
        ----------
        confidence
            Between 0 and 1.
        size
            How many numbers are released together (the rounding of many costs a millionth more noise).
        together
            Whether all `size` errors stay within the half-width at once.
        """
        level = confidence_level(confidence)
        wanted = count("size", size, zero=False)
        grid, law = self.lattice(wanted)
        if together:
            level = 1 - (1 - level) / wanted
        half = (law.half_width(level) + self._rounding) * grid
        return float(half) if self._rounding == 0 else math.nextafter(float(half), math.inf)

    @property
    def _rounding(self) -> Fraction:
        return Fraction(1, 2)

    def exceeds(self, distance: Number) -> float:
        """Return the probability that the noise is larger than `distance` in size."""
        grid, law = self.lattice()
        return law.exceeds(math.floor(rational("distance", distance, zero=True) / grid))

    @property
    def variance(self) -> float:
        """The variance of the noise on one number."""
        grid, law = self.lattice()
        return law.variance * float(grid) ** 2

    def interval(self, released: object, confidence: Number) -> Interval[Any]:
        """Return the range that holds the true value with at least this confidence over the noise."""
        values = np.asarray(released, dtype=np.float64)
        half = self.error(confidence, size=max(1, values.size))
        # floats round: the released number once, the end once; whole numbers below 2^53 never
        rounded = 2 * np.spacing(np.abs(values) + half) * ((self._rounding != 0) | (np.abs(values) >= 2**52))
        low, high = values - half - rounded, values + half + rounded
        if values.ndim == 0:
            return Interval(float(low), float(high), float(confidence))
        return Interval(low, high, float(confidence))

    def privacy_loss(self, output: float, a: Number, b: Number) -> float:
        """Return what one output reveals: ln P(output | a) / P(output | b), for numbers a and b.

        Exact for outputs on the grid, which all releases are.
        """
        grid, law = self.lattice()
        steps_a, steps_b = to_steps(_one(a), grid), to_steps(_one(b), grid)
        seen = _one(output) / grid
        return law.loss(float(seen - steps_a), float(seen - steps_b))

    @property
    def worst_pair(self) -> tuple[float, float]:
        """Zero and the sensitivity."""
        return 0.0, float(self.sensitivity)


def _one(value: object) -> Fraction:
    number = read_numbers(value)
    if isinstance(number, np.ndarray):
        raise bad_parameter("output, a and b", "single numbers", "an array", fix="privacy_loss(38.2, 38, 39)")
    return Fraction(number)
