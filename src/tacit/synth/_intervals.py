"""Intervals for the noise on cells of measured tables, and on sums of cells; docs/proofs/synth.md."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tacit.mechanisms import DiscreteGaussian, GaussianLaw

_FIRST = Fraction(19, 20)  # of the allowed error, for the first measurement of a table


def interval_level(
    method: str, confidence: float | Fraction, order: int = 1, *, last: bool = False
) -> Fraction:
    """Return the level of the interval of the first, second ... measurement that holds a table.

    Whether AIM measures a table again depends on the noise before. So the allowed error is shared out: 19/20
    to the first measurement, half of the rest to the second, and so on. The measurement of the last round
    takes all that is left: nothing follows, and this is known before its noise is drawn. All these intervals
    hold together with the stated confidence, and any of them may be shown. The other methods measure once.

    Examples
    --------
    >>> interval_level("mst", 0.95), interval_level("aim", 0.95), interval_level("aim", 0.95, 2)
    (Fraction(19, 20), Fraction(381, 400), Fraction(799, 800))
    >>> interval_level("aim", 0.95, last=True), interval_level("aim", 0.95, 2, last=True)
    (Fraction(19, 20), Fraction(399, 400))
    """
    exact = Fraction(confidence).limit_denominator(10**9)
    if method != "aim":
        return exact
    left = Fraction(1) if order == 1 else (1 - _FIRST) / 2 ** (order - 2)
    share = left if last else (_FIRST if order == 1 else left / 2)
    return 1 - (1 - exact) * share


def half_width(sigma: float, cells: int, level: float | Fraction) -> int:
    """Return the half-width of an interval for a sum of noisy cells of one measurement.

    One cell: the smallest that the law of the noise allows. Several: the smallest for the discrete Gaussian
    with the variance of the sum, at a level that makes up for the difference between the two laws; or a bound
    on the tail, which is smaller where the noise is hardly ever more than 1.

    Examples
    --------
    >>> half_width(10, 1, 0.95), half_width(10, 4, 0.95), half_width(1, 1, 0.95)
    (20, 39, 2)
    """
    exact = Fraction(level).limit_denominator(10**12)
    ratio = _ratio(sigma, cells)
    bound = DiscreteGaussian(sigma=Fraction(sigma), sensitivity=1).half_width(exact, copies=cells)
    if cells == 1 or ratio == math.inf:
        return bound
    return min(bound, _law(sigma, cells).reaches((1 - exact) / Fraction(ratio)))


def covering(sigma: float, cells: int, level: float | Fraction) -> float:
    """Return how often the interval of `half_width` covers: at least so often, and hardly more.

    It is above the level asked for, because half-widths are whole numbers.

    Examples
    --------
    >>> round(covering(1, 1, 0.95), 4), round(covering(10, 4, 0.95), 4)
    (0.9909, 0.9518)
    """
    width, ratio = half_width(sigma, cells, level), _ratio(sigma, cells)
    known = 0.0 if ratio == math.inf else 1 - _law(sigma, cells).exceeds(width) * ratio
    return max(float(level), known)


def _law(sigma: float, cells: int) -> GaussianLaw:
    """Return the discrete Gaussian with the variance of a sum; a little wider, against rounding."""
    return GaussianLaw(Fraction(sigma) if cells == 1 else Fraction(sigma * math.sqrt(cells) * (1 + 1e-12)))


def _ratio(sigma: float, cells: int) -> float:
    """Return how far the law of a sum of discrete Gaussians is from a discrete Gaussian, at most.

    It is the product, for i = 2 ... cells, of (1 + t)/(1 - t), with t = 2x/(1 - x) and
    x = exp(-2 pi^2 sigma^2 (i - 1)/i): no probability, of a number or of a set, differs by a larger factor.
    """
    if cells == 1:
        return 1.0
    i = np.arange(2, cells + 1, dtype=np.float64)
    x = np.exp(-2 * math.pi**2 * sigma**2 * (i - 1) / i)
    t = 2 * x / (1 - x)
    if t.max() >= 0.5:
        return math.inf
    return math.exp(float((np.log1p(t) - np.log1p(-t)).sum()) * (1 + 1e-9))
