"""The dial of a stream: whole-number coefficients of (1 - x)^-a, by recurrence, dense or banded.

Coefficients c of a lower triangular Toeplitz matrix C. A day that is changed by d changes the released rows
by d times a column of C. At a = 0 the rows are the days themselves; at a = 1/2 (the square root of the matrix
of running totals) running totals have the smallest error; in between, days and totals share it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@lru_cache(maxsize=1024)
def dial_coefficients(
    days: int, power: float, scale: int, bands: int | None, inverse_bands: int | None
) -> tuple[int, ...]:
    """Return the whole-number coefficients, those that are zero at the end dropped.

    Parameters
    ----------
    days
        How many there are at most.
    power
        The exponent a, from 0 to 1.
    scale
        What the first coefficient is; the others are rounded to whole numbers.
    bands
        Keep only so many coefficients.
    inverse_bands
        Keep only so many coefficients of the inverse (1 - x)^a (for a = 1/2: Kalinin and Lampert 2025).

    Examples
    --------
    >>> dial_coefficients(5, 0.5, 16, None, None), dial_coefficients(5, 0.5, 16, 3, None)
    ((16, 8, 6, 5, 4), (16, 8, 6))
    >>> dial_coefficients(5, 0.5, 16, None, 2)
    (16, 8, 4, 2, 1)
    """
    real = np.ones(days)
    if inverse_bands is None:
        for k in range(1, days):
            real[k] = real[k - 1] * (k - 1 + power) / k
    else:
        shrinking = np.ones(min(inverse_bands, days))
        for k in range(1, len(shrinking)):
            shrinking[k] = shrinking[k - 1] * (k - 1 - power) / k
        for k in range(1, days):
            reach = min(k, len(shrinking) - 1)
            real[k] = -(shrinking[1 : reach + 1] @ real[k - reach : k][::-1])
    whole = [round(scale * one) for one in real[:bands].tolist()]
    while whole[-1] == 0:
        whole.pop()
    return tuple(whole)


@lru_cache(maxsize=1024)
def inverse_series(coefficients: tuple[int, ...], days: int) -> NDArray[np.float64]:
    """Return the first coefficients of 1/c(x): the day's estimate is this series over the released rows."""
    c = np.zeros(days)
    kept = min(days, len(coefficients))
    c[:kept] = coefficients[:kept]
    inverse = np.zeros(days)
    inverse[0] = 1 / c[0]
    for k in range(1, days):
        reach = min(k, kept - 1)
        inverse[k] = -(c[1 : reach + 1] @ inverse[k - reach : k][::-1]) / c[0]
    return inverse


def window_series(inverse: NDArray[np.float64], window: int | None) -> NDArray[np.float64]:
    """Return the series of a sum over the last ``window`` days, or of the running total if it is None."""
    sums = np.cumsum(inverse)
    if window is None or window >= len(inverse):
        return sums
    sums[window:] -= np.cumsum(inverse)[:-window]
    return sums
