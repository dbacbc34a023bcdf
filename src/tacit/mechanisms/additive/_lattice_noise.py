"""Lattice noise: what noise on the multiples of a grid has in common, for real and for whole numbers.

All figures are those of the law that is sampled, in steps of the grid.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import Number, count
from tacit.fixes import Code
from tacit.mechanisms._grid import to_steps
from tacit.mechanisms._input_values import exact, exact_float, read_numbers, wrong_input
from tacit.mechanisms._mechanism import Interval, Mechanism, confidence_level

if TYPE_CHECKING:
    from tacit.accounting import Adjacency, Cost
    from tacit.errors import TacitError
    from tacit.mechanisms._noise_laws import NoiseLaw


SMALLEST_SCALE, LARGEST_SCALE = Fraction(2) ** -900, Fraction(2) ** 900
_CHARGED = 1024  # steps of the lattice that is charged: any refinement of it is dominated by it


class LatticeNoise(Mechanism):
    """Noise from a law on the multiples of a grid, added to one number or to several."""

    __slots__ = ()

    sensitivity: Fraction
    grid: Fraction
    _law: NoiseLaw  # of one number, and of many on a grid of the user's own
    _rounding: ClassVar[Fraction]  # how far the value is rounded before the noise is added, in steps

    @abstractmethod
    def lattice(self, size: int = 1) -> tuple[Fraction, NoiseLaw]:
        """Return the grid and the law, in grid steps, for `size` numbers released together."""

    def _released_together(self, numbers: int) -> int:
        """Return how many of these numbers one release holds."""
        return numbers

    def _after_rounding(self, half: Fraction, grid: Fraction, level: Fraction) -> Fraction:
        """Return the half-width of what is shown, where noisy numbers are rounded once more."""
        del grid, level
        return half

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
        numbers = count("size", size, zero=False)
        grid, law = self.lattice(numbers)
        if together:
            level = 1 - (1 - level) / numbers
        half = (law.half_width(level) + self._rounding) * grid
        half = self._after_rounding(half, grid, level)
        return float(half) if self._rounding == 0 else math.nextafter(float(half), math.inf)

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
        half = self.error(confidence, size=self._released_together(max(1, values.size)))
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
        steps = _one(output) / grid
        return law.loss(float(steps - steps_a), float(steps - steps_b))

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


@lru_cache(maxsize=1024)
def laplace_cost(epsilon: Fraction, steps: int, adjacency: Adjacency) -> Cost:
    """Return the cost of discrete Laplace noise of scale steps/epsilon on integers moved by `steps` in L1.

    A lattice dominates its refinements (docs/proofs/mechanisms.md, lemma 2). So a fine lattice is charged as
    the coarsest lattice of at least 1024 steps that it refines: the difference is below a millionth.
    """
    from tacit.accounting import Cost

    charged = coarsest(steps)
    return Cost.discrete_laplace(scale=charged / epsilon, sensitivity=Fraction(charged), adjacency=adjacency)


def coarsest(steps: int) -> int:
    """Halve while at least 1024 steps are left.

    Examples
    --------
    >>> coarsest(3 * 2**20), coarsest(7)
    (1536, 7)
    """
    while steps % 2 == 0 and steps // 2 >= _CHARGED:
        steps //= 2
    return steps
