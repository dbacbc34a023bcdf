"""A sequence that falls, fitted to noisy numbers, with an interval for each entry."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.mechanisms import DiscreteGaussian, LinearNoise

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.mechanisms import DiscreteLaplace

FallingFit = tuple["NDArray[np.float64]", "NDArray[np.float64]", "NDArray[np.float64]"]


def fit_falling(
    noisy: NDArray[np.float64], mechanism: DiscreteLaplace | DiscreteGaussian, confidence: Fraction, top: int
) -> FallingFit:
    """Fit a sequence of whole numbers in [0, top] that never rises to noisy ones; return value, low, high.

    Guarantee: each interval covers its entry with at least the confidence.

    Argument: where a sequence falls, an entry is at least the mean of itself and the m - 1 entries after it,
    and at most the mean of itself and the m - 1 entries before it. The mean of m noisy numbers has less noise
    than one of them. Every m = 1, 2, 4, ... gives a bound, the chance to fail is split over all of them, and
    the best bound counts. The value is the nearest falling sequence (Hay and others 2009); an interval is
    widened where it does not hold the value.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from tacit.mechanisms import DiscreteLaplace
    >>> noise = DiscreteLaplace(epsilon=2, sensitivity=2)
    >>> value, low, high = fit_falling(np.array([9.0, 4, 5, 4, 3, 5, 4, 4]), noise, Fraction(19, 20), 10)
    >>> value.round(2).tolist()
    [9.0, 4.5, 4.5, 4.0, 4.0, 4.0, 4.0, 4.0]
    >>> low.tolist()[:4], high.tolist()[:4]
    ([5.0, 3.0, 3.0, 3.0], [10.0, 8.0, 7.0, 7.0])
    """
    from scipy.optimize import isotonic_regression

    n = len(noisy)
    if not n:
        empty = np.zeros(0)
        return empty, empty, empty
    noise = _noise_of(mechanism)
    windows = [2**j for j in range(n.bit_length()) if 2**j <= n]
    failing = float(1 - confidence) / len(windows)
    sums = np.concatenate([[0.0], np.cumsum(noisy)])
    low, high = np.full(n, 0.0), np.full(n, float(top))
    for m in windows:
        mean = (sums[m:] - sums[:-m]) / m
        half = float(noise.half_width(failing, np.ones(1), times=np.full(1, float(m)))) / m
        low[: n - m + 1] = np.maximum(low[: n - m + 1], mean - half)
        high[m - 1 :] = np.minimum(high[m - 1 :], mean + half)
    value = np.clip(isotonic_regression(noisy, increasing=False).x, 0, top)
    low, high = np.ceil(low - 1e-9) + 0.0, np.floor(high + 1e-9)
    return value, np.clip(np.minimum(low, value), 0, top) + 0.0, np.clip(np.maximum(high, value), 0, top)


def half_width_of_difference(mechanism: DiscreteLaplace | DiscreteGaussian, confidence: Fraction) -> int:
    """Return how far the difference of two noisy numbers may lie from the true one.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from tacit.mechanisms import DiscreteLaplace
    >>> half_width_of_difference(DiscreteLaplace(epsilon=1, sensitivity=2), Fraction(19, 20))
    9
    """
    return math.ceil(float(_noise_of(mechanism).half_width(float(1 - confidence), np.ones(2))))


def _noise_of(mechanism: DiscreteLaplace | DiscreteGaussian) -> LinearNoise:
    if isinstance(mechanism, DiscreteGaussian):
        return LinearNoise(normal=float(mechanism.sigma))
    return LinearNoise(laplace=(float(mechanism.scale),))
