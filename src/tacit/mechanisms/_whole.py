"""Whole numbers plus integer noise: no grid, no rounding, whole numbers out."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tacit.errors import TacitError
from tacit.mechanisms._additive import Additive
from tacit.mechanisms._grid import Array, Steps, add, read_numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Whole", "read_whole"]


def read_whole(value: object) -> Steps:
    """Read a whole number or an array of them; the refusal never shows the value, which is private."""
    numbers = read_numbers(value)
    if isinstance(numbers, int):
        return numbers
    if isinstance(numbers, np.ndarray):
        whole = numbers.dtype == object and all(isinstance(one, int) for one in numbers.ravel().tolist())
        if whole or numbers.dtype == np.int64:
            return cast("Array", numbers)
    raise TacitError(
        "not-finite",
        "the value to be released is not a whole number or an array of them",
        why="this mechanism adds whole noise to whole numbers, and protects moves by whole numbers only",
        fix="tc.mechanisms.Laplace(...) puts real numbers on a public grid",
    )


class Whole(Additive):
    """Integer noise on integers."""

    __slots__ = ()

    def release(self, value: object) -> Any:
        """Return the value plus noise: an int for a number, an array of 64-bit integers for an array."""
        steps = read_whole(value)
        if isinstance(steps, int):
            return steps + self.lattice()[1].draw()
        return add(steps, self.lattice(steps.size)[1].draws(steps.shape))

    def release_many(self, value: object, count: int) -> NDArray[Any]:
        """Return `count` independent outputs on the same value, each at the full cost: for auditors only."""
        steps = np.asarray(read_whole(value))
        _, law = self.lattice(math.prod(steps.shape))
        shape = (count, *steps.shape)
        return np.asarray(add(np.broadcast_to(steps, shape), law.draws(shape)))

    @property
    def _rounding(self) -> Fraction:
        return Fraction(0)

    @property
    def worst_pair(self) -> tuple[int, int]:
        """Zero and the sensitivity."""
        return 0, int(self.sensitivity)
