"""The sampler of noise: one number by a scalar draw, an array by a table, many scales by either."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tacit.noise._parameters import ExactArray, does_not_fit, read_size, spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tacit.noise._parameters import DrawShape

_FEW = 128  # below this, single draws are quicker than building a table
_WORTH_A_TABLE = 1 << 12  # draws of one scale, among many scales, that pay for a table


@dataclass(frozen=True, slots=True)
class Sampler:
    """The samplers of one family of laws: three ways to draw from the same law."""

    name: str
    one: Callable[[Fraction], int]
    bulk: Callable[[Fraction, int], NDArray[np.int64]]
    many: Callable[[ExactArray], NDArray[np.int64]]

    def draw(self, parameter: str, value: Fraction | ExactArray, size: DrawShape) -> int | NDArray[np.int64]:
        """Draw a Python int (one parameter, no size), or an array of 64-bit integers."""
        shape = read_size(size)
        if not isinstance(value, Fraction):
            values, shape = spread(parameter, value, shape)
            return self._each(values).reshape(shape)
        if shape is None:
            return self.one(value)
        count = math.prod(shape)
        if count >= _FEW:
            return self.bulk(value, count).reshape(shape)
        try:
            return np.array([self.one(value) for _ in range(count)], dtype=np.int64).reshape(shape)
        except OverflowError:
            raise does_not_fit(self.name) from None

    def _each(self, values: ExactArray) -> NDArray[np.int64]:
        """Draw scales that occur often by their tables, and all others together, element by element."""
        _, first, label, counts = np.unique(
            values.labels, return_index=True, return_inverse=True, return_counts=True
        )
        often = counts >= _WORTH_A_TABLE
        out = np.empty(values.near.size, np.int64)
        for group in np.flatnonzero(often):
            out[label == group] = self.bulk(values.exact(int(first[group])), int(counts[group]))
        rest = np.flatnonzero(~often[label])
        if rest.size:
            out[rest] = self.many(values.at(rest))
        return out
