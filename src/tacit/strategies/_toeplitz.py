"""Toeplitz strategies: whole-number coefficients with which sums of many days, or steps, have little error.

Coefficients c of a lower triangular Toeplitz matrix C. Rows C x + z are released, and the estimates of x are
C^-1 of them. A day that is changed by d changes the rows by d times a column of C, so the norm of a column
is what is paid for. The noise of the estimates is C^-1 z, and running totals have the noise A C^-1 z, where A
is all ones on and below the diagonal. What counts is the error of the sums at equal privacy: the norm of c,
times the root mean square over the rows of A C^-1.

Streams take the dial (1 - x)^-a, by recurrence, dense or banded. At a = 0 the rows are the days themselves;
at a = 1/2 (the square root of the matrix of running totals) running totals have the smallest error; in
between, days and totals share it. Training takes the b bands with which running totals have the least error.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import count
from tacit.fixes import Set

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
    return _rounded(real[:bands], scale)


def _rounded(real: NDArray[np.float64], scale: int) -> tuple[int, ...]:
    """Return whole-number coefficients, those that are zero at the end dropped."""
    coefficients = [round(scale * c) for c in real.tolist()]
    while coefficients[-1] == 0:
        coefficients.pop()
    return tuple(coefficients)


@lru_cache(maxsize=1024)
def inverse_series(coefficients: tuple[int, ...], days: int) -> NDArray[np.float64]:
    """Return the first coefficients of 1/c(x): the day's estimate is this series over the released rows."""
    c = np.zeros(days)
    terms = min(days, len(coefficients))
    c[:terms] = coefficients[:terms]
    inverse = np.zeros(days)
    inverse[0] = 1 / c[0]
    for k in range(1, days):
        reach = min(k, terms - 1)
        inverse[k] = -(c[1 : reach + 1] @ inverse[k - reach : k][::-1]) / c[0]
    return inverse


def window_series(inverse: NDArray[np.float64], window: int | None) -> NDArray[np.float64]:
    """Return the series of a sum over the last ``window`` days, or of the running total if it is None."""
    sums = np.cumsum(inverse)
    if window is None or window >= len(inverse):
        return sums
    sums[window:] -= np.cumsum(inverse)[:-window]
    return sums


def sums_error(inverse: NDArray[np.float64], window: int | None) -> float:
    """Return the root mean square error of sums over a window, for noise of deviation one on each row.

    The mean is over all days of the series.

    Examples
    --------
    >>> sums_error(inverse_series((1,), 4), 1), round(sums_error(inverse_series((1,), 4), None), 4)
    (1.0, 1.5811)
    """
    return math.sqrt(float(np.cumsum(window_series(inverse, window) ** 2).mean()))


def column_norm_squared(
    coefficients: tuple[int, ...], days: int | None = None, most_days: int = 1, apart: int = 1
) -> int:
    """Return the squared norm of the sum of the columns 0, b, 2b, ... of C, k of them: an exact integer.

    For non-negative coefficients that never rise it is the largest over all choices of k columns, b apart.

    Examples
    --------
    >>> column_norm_squared((2, 1)), column_norm_squared((2, 1), 4, 2, 1)
    (5, 14)
    """
    rises = any(later > earlier for earlier, later in pairwise(coefficients))
    if most_days > 1 and rises:
        raise bad_parameter("coefficients", "numbers that never rise", "some that rise", fix=Set(bands=1))
    if days is None or most_days == 1:
        return sum(c * c for c in coefficients)
    column_sum = np.zeros(days + len(coefficients), dtype=object)
    for day in range(0, min(days, most_days * apart), apart):
        column_sum[day : day + len(coefficients)] += np.array(coefficients, dtype=object)
    return int((column_sum[:days] ** 2).sum())


_SCALE = 1 << 12  # the first coefficient
_ITERATIONS = 25  # iterations of the search; the error is then within a part in 10^4 of the smallest


@lru_cache(maxsize=256)
def band_coefficients(steps: int, bands: int) -> tuple[int, ...]:
    """Return b whole-number coefficients with which the totals of so many steps have the least error.

    They affect only the error. What is charged is their norm, as whole numbers.

    Examples
    --------
    >>> band_coefficients(64, 1)
    (1,)
    >>> c = band_coefficients(1024, 16)
    >>> len(c), round(column_norm_squared(c) ** 0.5 / c[0], 3), round(totals_error(c, 1024) * c[0], 3)
    (16, 2.114, 3.0)
    """
    n, b = count("steps", steps, zero=False), count("bands", bands, zero=False)
    b = min(b, n)
    if b == 1:
        return (1,)
    from scipy.optimize import minimize

    start = np.array([(k - 0.5) / k for k in range(1, b)])  # the ratios of (1 - x)^(-1/2)
    optimum = minimize(
        _loss,
        start,
        args=(n,),
        jac=True,
        method="L-BFGS-B",
        bounds=[(1e-6, 1.0)] * (b - 1),
        options={"maxiter": _ITERATIONS},
    )
    return _rounded(np.cumprod([1.0, *optimum.x]), _SCALE)


def _loss(ratios: NDArray[np.float64], n: int) -> tuple[float, NDArray[np.float64]]:
    """Return the logarithm of the squared error of totals at equal privacy, and its gradient by the ratios.

    The ratios of coefficients that follow one another are at most 1: then no zero of c(x) lies inside the
    unit circle (Enestrom and Kakeya), and the noise of totals cannot explode.

    With d the series of 1/c and B its running totals, the mean squared row is the sum of w_s B_s^2, w_s =
    (n - s)/n. A change of c changes d by -d * d * change (products of series), all by Fourier transforms.
    """
    from scipy import fft

    c: NDArray[np.float64] = np.cumprod(np.concatenate(([1.0], ratios)), dtype=np.float64)
    size = fft.next_fast_len(2 * n, real=True)
    d = _inverse(c, n)
    totals = np.cumsum(d)
    weights = (n - np.arange(n)) / n
    norm, rows = float(c @ c), float(weights @ totals**2)
    by_d = np.cumsum((2 * weights * totals)[::-1])[::-1]
    transformed = fft.rfft(d, size)
    square = fft.irfft(transformed * transformed, size)[:n]
    by_c = -fft.irfft(fft.rfft(by_d, size) * np.conj(fft.rfft(square, size)), size)[: len(c)]
    by_later = np.cumsum(((2 * c / norm + by_c / rows) * c)[:0:-1])[::-1]
    return math.log(norm * rows), by_later / ratios


def _inverse(c: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Return the first n coefficients of 1/c(x), twice as many in each round (Newton)."""
    from scipy import fft

    d = np.array([1 / c[0]])
    while len(d) < n:
        k = min(2 * len(d), n)
        size = fft.next_fast_len(3 * k, real=True)
        transform = fft.rfft(d, size)
        error = -fft.irfft(fft.rfft(c[:k], size) * transform, size)[:k]
        error[0] += 2
        d = fft.irfft(fft.rfft(error, size) * transform, size)[:k]
    return d


def totals_error(coefficients: tuple[int, ...], steps: int) -> float:
    """Return the root mean square error of all running totals, for noise of deviation one on each row.

    Examples
    --------
    >>> round(totals_error((1,), 1024), 4)
    22.6385
    """
    d = _inverse(np.array(coefficients, dtype=np.float64) / coefficients[0], steps) / coefficients[0]
    return sums_error(d, None)
