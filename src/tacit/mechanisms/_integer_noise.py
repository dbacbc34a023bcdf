"""Mechanisms with integer noise: the common part of those for whole numbers; no grid, no rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from tacit.mechanisms._grid import fits
from tacit.mechanisms._grid_noise import SMALLEST_SCALE, GridNoise, out_of_range
from tacit.mechanisms._input_values import in_64_bits, read_integers
from tacit.mechanisms._integer_mechanism import IntegerMechanism, half_width_of_sum
from tacit.mechanisms._mechanism import confidence_level
from tacit.mechanisms._noise_laws import check_width

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.exact import Number
    from tacit.mechanisms._noise_laws import GaussianLaw, LaplaceLaw


class IntegerNoise(GridNoise, IntegerMechanism):
    """Integer noise on integers."""

    __slots__ = ()

    additive: ClassVar[bool] = True
    grid = Fraction(1)
    _size = None
    _law: LaplaceLaw | GaussianLaw

    def release(self, value: object) -> Any:
        """Return the integers plus noise, in the same shape: an int for an int, an array for an array.

        An array of 64-bit integers gives an array of the same kind: a sum beyond 64 bits becomes the nearest
        number that fits, which is closer to the truth. Lists and arrays of objects give arrays of Python
        ints. So the type of the result does not depend on private values.
        """
        integers = read_integers(value)
        if isinstance(integers, int):
            return integers + self._law.draw()
        drawn = self.lattice(integers.size)[1].draws(integers.shape)
        return _sum(integers, drawn, in_64_bits=in_64_bits(value) and integers.dtype == np.int64)

    def release_many(self, value: object, count: int) -> NDArray[Any]:
        """Return `count` independent outputs on the same value, each at the full cost: for auditors only."""
        integers = np.asarray(read_integers(value))
        _, law = self.lattice(integers.size)
        shape = (count, *integers.shape)
        return _sum(np.broadcast_to(integers, shape), law.draws(shape), in_64_bits=integers.dtype == np.int64)

    def half_width(self, confidence: Number, *, copies: int = 1) -> int:
        """Return an m such that the sum of `copies` noises stays within m; the smallest for one noise."""
        return half_width_of_sum(self._law, confidence_level(confidence), copies)

    def _check_size(self, scale: Fraction) -> None:
        """Refuse noise that does not fit into 64 bits, or that is next to nothing."""
        check_width(scale, power=56)
        if scale < SMALLEST_SCALE:
            raise out_of_range(scale)

    @property
    def _rounding(self) -> Fraction:
        return Fraction(0)

    @property
    def worst_pair(self) -> tuple[int, int]:
        """Zero and the sensitivity."""
        return 0, int(self.sensitivity)


def _sum(integers: NDArray[Any], drawn: NDArray[np.int64], *, in_64_bits: bool) -> NDArray[Any]:
    """Add the noise; sums in 64 bits stop at the ends of their range, others are Python ints."""
    if integers.dtype == np.int64 and fits(integers, drawn):
        total = integers + drawn
        return np.asarray(total if in_64_bits else total.astype(object))
    if not in_64_bits:
        return cast("NDArray[np.object_]", integers.astype(object) + drawn.astype(object))
    return saturated_sum(integers, drawn)


def saturated_sum(integers: NDArray[np.int64], drawn: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add 64-bit integers; a sum beyond 64 bits becomes the nearest number that fits.

    Examples
    --------
    >>> saturated_sum(np.array([2**62, 5]), np.array([2**62, -7])).tolist() == [2**63 - 1, -2]
    True
    """
    with np.errstate(over="ignore"):
        total = integers + drawn
    wrapped = ((integers ^ total) & (drawn ^ total)) < 0  # both have one sign and the sum has the other
    ends = np.iinfo(np.int64)
    return np.where(wrapped, np.where(drawn < 0, ends.min, ends.max), total)
