"""Mechanisms with grid noise: the common part of the Laplace and Gaussian mechanisms for real numbers."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import Number, count
from tacit.fixes import Code, Set
from tacit.mechanisms._grid import Array, add, from_steps, to_steps
from tacit.mechanisms._input_values import exact, exact_float, in_floats, read_numbers, wrong_input
from tacit.mechanisms._mechanism import Interval, Mechanism, confidence_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.errors import TacitError
    from tacit.mechanisms._noise_laws import NoiseLaw

SMALLEST_SCALE, _LARGEST = Fraction(2) ** -900, Fraction(2) ** 900


class GridNoise(Mechanism):
    """Round to a public grid, add integer noise, return floats. All figures are those of the lattice law."""

    __slots__ = ()

    sensitivity: Fraction
    grid: Fraction
    _cost: Cost
    _own_grid: bool
    _size: int | None
    _law: NoiseLaw  # of one number, and of many on a grid of the user's own

    @property
    def cost(self) -> Cost:
        """The cost of the lattice law that is sampled."""
        return self._cost

    @abstractmethod
    def lattice(self, size: int = 1) -> tuple[Fraction, NoiseLaw]:
        """Return the grid and the law, in grid steps, for `size` numbers released together."""

    def on_own_grid(self, size: int) -> bool:
        """Return whether `size` numbers are rounded to `grid` before the noise is added.

        One number is, and as many as were stated. Rounding more of them to a coarse grid would add to the
        sensitivity: they are put on a fine grid, as by default, and the noisy numbers are rounded to `grid`.
        The choice depends on the number of entries, never on whether they lie on the grid.
        """
        if self._own_grid and self._size == 1 and size > 1:
            raise bad_parameter(
                "size",
                "at least the number of entries that are released together",
                1,
                why="rounding many numbers to a coarse grid adds to the sensitivity",
                fix=Set(size=size),
            )
        return size <= max(1, (self._size or 1) if self._own_grid else 1)

    def release(self, value: object) -> Any:
        """Return the value plus noise: a float for a number, an array of floats for an array.

        Rounds to the grid by floor(x/g + 1/2) first. The number of entries of an array is public. NaN and
        infinities are refused: give them a meaning with `clip` before. What lies beyond the largest float is
        released as the largest float.
        """
        numbers = read_numbers(value)
        if not isinstance(numbers, np.ndarray):
            grid, law = self.lattice()
            return from_steps(to_steps(numbers, grid) + law.draw(), grid)
        grid, law = self.lattice(numbers.size)
        steps = to_steps(numbers, grid, many=not self.on_own_grid(numbers.size), stored=in_floats(value))
        return self._shown(add(steps, law.draws(numbers.shape)), grid)

    def _shown(self, noisy: Array, grid: Fraction) -> NDArray[np.float64]:
        """Return noisy steps as floats, rounded to the grid that the user chose: this costs nothing."""
        if grid != self.grid and self._own_grid:
            noisy, grid = to_steps(noisy, self.grid / grid), self.grid
        return np.asarray(from_steps(noisy, grid))

    def release_many(self, value: object, count: int) -> NDArray[np.float64]:
        """Return `count` independent outputs on the same value, each at the full cost: for auditors only."""
        numbers = read_numbers(value)
        if isinstance(numbers, np.ndarray):
            grid, law = self.lattice(numbers.size)
            steps = to_steps(numbers, grid, many=not self.on_own_grid(numbers.size), stored=in_floats(value))
        else:
            grid, law = self.lattice()
            steps = np.asarray(to_steps(numbers, grid))
        shape = (count, *steps.shape)
        return self._shown(add(np.broadcast_to(steps, shape), law.draws(shape)), grid)

    def _check_size(self, scale: Fraction) -> None:
        """Refuse noise that floats cannot show."""
        if not SMALLEST_SCALE <= scale <= _LARGEST:
            raise out_of_range(scale)

    def error(self, confidence: Number, *, size: int = 1, together: bool = False) -> float:
        """Return the half-width that the released number stays within, with at least this confidence.

        Exact from the lattice law: the smallest number of grid steps with enough coverage, and half a step
        for each rounding to a grid.

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
        if grid != self.grid and self._own_grid:  # rounded to it afterwards, or many single numbers
            alone = self.lattice()[1].half_width(level) + self._rounding
            half = max(half + self.grid / 2, alone * self.grid)
        return float(half) if self._rounding == 0 else math.nextafter(float(half), math.inf)

    @property
    def _rounding(self) -> Fraction:
        return Fraction(1, 2)

    def exceeds(self, distance: Number) -> float:
        """Return the probability that the noise is larger than `distance` in size."""
        grid, law = self.lattice()
        return law.exceeds(math.floor(exact("distance", distance, zero=True) / grid))

    @property
    def variance(self) -> float:
        """The variance of the noise on one number."""
        grid, law = self.lattice()
        return law.variance * float(grid) ** 2

    def interval(self, released: object, confidence: Number) -> Interval[Any]:
        """Return the range that holds the true value with at least this confidence over the noise."""
        values = np.asarray(released, dtype=np.float64)
        together = 1 if self._size == 1 else max(1, values.size)  # with size=1 these are many single releases
        half = self.error(confidence, size=together)
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


def out_of_range(scale: Fraction) -> TacitError:
    """Build the refusal of a noise scale that floats cannot show."""
    about = scale.numerator.bit_length() - scale.denominator.bit_length()
    return bad_parameter(
        "the noise scale",
        "between 2^-900 and 2^900",
        f"about 2^{about}",
        fix="state the value in other units",
    )


def _one(value: object) -> Fraction:
    number = read_numbers(value)
    if isinstance(number, np.ndarray):
        raise wrong_input(
            "single numbers", number, name="output, a and b", fix=Code("privacy_loss(38.2, 38, 39)")
        )
    return Fraction(exact_float(number) if isinstance(number, float) else number)
