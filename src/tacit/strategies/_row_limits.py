"""Limits: how many rows of one unit should count, read from a noisy histogram of the rows that units have.

The unit of this histogram is one row: a unit adds 1 to the cell of its number of rows, whatever this number
is. So its sensitivity is 1 when a unit is added or removed, and 2 when one is replaced; the limit has no
part in it. The limit is post-processing of the noisy counts.

A larger limit means more noise, a smaller one cuts more rows. The rule takes the candidate for which the
square of the noise and the square of the cut, as far as the noisy counts show it, have the smallest sum.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tacit.strategies._octaves import CellNoise, checked_counts, far_tail, sure_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: The share of a plan's cost that the histogram of rows per unit gets; the answer gets the rest.
LIMIT_SHARE = Fraction(1, 5)

_FALSE_CELL = 0.0005  # the chance that noise alone fills any cell, however far away
_FINE, _COARSE = (12, 15, 20, 30, 40, 50, 70), (1, 1.5, 2, 3, 5, 7)


def round_numbers(max_number: int) -> tuple[int, ...]:
    """Return the candidates for limits: all numbers to 10, then round ones, so that few share the noise.

    They are also the cells: a number of rows belongs to the first candidate that is not smaller, and numbers
    beyond the last one belong to the last one.

    Examples
    --------
    >>> round_numbers(25)[9:]
    (10, 12, 15, 20, 25)
    """
    numbers = {*range(1, 11), *_FINE}
    numbers |= {int(digit * 10**power) for power in range(2, len(str(max_number))) for digit in _COARSE}
    return tuple(sorted({n for n in numbers if n < max_number} | {max_number}))


def choose_limit(
    counts: Sequence[float] | NDArray[np.float64], noise: CellNoise,
    candidates: Sequence[int], deviation: float,
) -> int:  # fmt: skip
    """Choose the limit that makes the noise and the cut of a count small together.

    Guarantee: post-processing of the noisy counts. Their sensitivity is 1 under add/remove and 2 under
    replace.

    Cells count from the first one to the outermost that noise alone seldom fills, by the rule for octaves
    (`find_bounds`); the chance of a false cell is ten times smaller here, because the square of the noise is
    what a false cell costs. A cell of numbers from a to b is taken to hold units with (a + b)/2 rows each.

    Parameters
    ----------
    counts
        The noisy number of units in each cell.
    noise
        The law of the noise.
    candidates
        The largest number of rows in each cell: `round_numbers`.
    deviation
        The standard deviation that the noise of the answer would have with a limit of 1.

    Examples
    --------
    >>> candidates = round_numbers(1000)
    >>> counts = [900, 500, 300, 100, 40, *[0] * (len(candidates) - 5)]
    >>> [choose_limit(counts, CellNoise(5), candidates, deviation) for deviation in (1.8, 90, 900)]
    [5, 3, 1]
    """
    largest = np.asarray(candidates, dtype=np.float64)
    numbers = checked_counts(counts, len(largest))
    end = _outermost(numbers, noise, largest)
    middles = (np.concatenate(([1.0], largest[:-1] + 1)) + largest) / 2
    units = np.maximum(numbers[: end + 1], 0.0)
    beyond = np.maximum(middles[None, : end + 1] - largest[: end + 1, None], 0.0)
    errors = (deviation * largest[: end + 1]) ** 2 + (beyond @ units) ** 2
    return int(candidates[int(errors.argmin())])


def _outermost(numbers: NDArray[np.float64], noise: CellNoise, largest: NDArray[np.float64]) -> int:
    """Return the outermost cell that noise alone seldom fills; the first cell always counts."""
    sure = np.flatnonzero(sure_cells(numbers, noise, len(numbers)))
    end = int(sure[-1]) if len(sure) else 0
    while True:
        thresholds = [
            noise.upper(far_tail(math.log2(number / largest[end]), _FALSE_CELL / len(numbers)))
            for number in largest[end + 1 :].tolist()
        ]
        beyond = np.flatnonzero(numbers[end + 1 :] > np.array(thresholds))
        if not len(beyond):
            return end
        end += 1 + int(beyond[0])
