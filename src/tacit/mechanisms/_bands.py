"""The bands of correlated noise: whole-number coefficients with which running totals have the least error.

C is lower triangular, Toeplitz, with b bands c. The noise of the released sums is C^-1 z, and running totals
of them have the noise A C^-1 z, where A is all ones on and below the diagonal. What counts is the error of
these totals at equal privacy: the norm of c, times the root mean square over the rows of A C^-1.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tacit.exact import count

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SCALE = 1 << 12  # the first coefficient
_OFTEN = 25  # iterations of the search; the error is then within a part in 10^4 of the smallest


@lru_cache(maxsize=256)
def band_coefficients(steps: int, bands: int) -> tuple[int, ...]:
    """Return b whole-number coefficients with which the totals of so many steps have the least error.

    They affect only the error. What is charged is their norm, as whole numbers.

    Examples
    --------
    >>> band_coefficients(64, 1)
    (1,)
    >>> c = band_coefficients(1024, 16)
    >>> len(c), round(coefficient_norm(c) / c[0], 3), round(totals_error(c, 1024) * c[0], 3)
    (16, 2.114, 3.0)
    """
    n, b = count("steps", steps, zero=False), count("bands", bands, zero=False)
    b = min(b, n)
    if b == 1:
        return (1,)
    from scipy.optimize import minimize

    start = np.array([(k - 0.5) / k for k in range(1, b)])  # the ratios of (1 - x)^(-1/2)
    found = minimize(
        _loss,
        start,
        args=(n,),
        jac=True,
        method="L-BFGS-B",
        bounds=[(1e-6, 1.0)] * (b - 1),
        options={"maxiter": _OFTEN},
    )
    whole = [round(_SCALE * float(one)) for one in np.cumprod([1.0, *found.x])]
    while whole[-1] == 0:
        whole.pop()
    return tuple(whole)


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
        known = fft.rfft(d, size)
        error = -fft.irfft(fft.rfft(c[:k], size) * known, size)[:k]
        error[0] += 2
        d = fft.irfft(fft.rfft(error, size) * known, size)[:k]
    return d


def coefficient_norm(coefficients: tuple[int, ...]) -> float:
    """Return the norm of a column of C.

    Examples
    --------
    >>> coefficient_norm((3, 4))
    5.0
    """
    return math.sqrt(sum(c * c for c in coefficients))


def totals_error(coefficients: tuple[int, ...], steps: int) -> float:
    """Return the root mean square error of all running totals, for noise of deviation one on each row.

    Examples
    --------
    >>> round(totals_error((1,), 1024), 4)
    22.6385
    """
    d = _inverse(np.array(coefficients, dtype=np.float64) / coefficients[0], steps) / coefficients[0]
    return math.sqrt(float(np.cumsum(np.cumsum(d) ** 2).mean()))
