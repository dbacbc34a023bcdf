"""Shares of discrete Gaussian noise in accounting: how far their sum is from one discrete Gaussian.

Several parties add discrete Gaussian noise of the same sigma each. The sum is not a discrete Gaussian, but
its probabilities are at least (1 - leak) times those of one with the total variance. `docs/proofs/costs.md`
proves it, and that a discrete Gaussian holds nearly all of a rounded one.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tacit.accounting.numeric import exp_up, round_up

_TWO_PI_SQUARED = Fraction(19_739_208_802, 10**9)  # at or below 2 pi^2


def share_leak(sigma: Fraction, shares: int, dimension: int) -> Fraction:
    """Return a leak such that the sum of shares has at least (1 - leak) of each probability of one Gaussian.

    The share k + 1 joins k others. With x = exp(-2 pi^2 sigma^2 k / (k+1)), each probability of the sum is at
    least (1 - 2s) / (1 + 2s) >= 1 - 4s times that of one discrete Gaussian, s = x / (1 - x). Each number of
    the vector counts once.

    Examples
    --------
    >>> float(share_leak(Fraction(2), 10, 1)) < 1e-16
    True
    >>> share_leak(Fraction(20), 10, 10**6) == Fraction(1, 10**60)
    True
    """
    leak = Fraction(0)
    for k in range(1, shares):
        far = exp_up(-_TWO_PI_SQUARED * sigma**2 * Fraction(k, k + 1))
        leak += 4 * far / (1 - far)
    return min(Fraction(1), round_up(dimension * leak, digits=3)) if leak else leak


def rounded_within(sigma: Fraction, shares: int, dimension: int) -> tuple[Fraction, Fraction] | None:
    """Return a sigma and a leak: the sum of shares is rounded Gaussian noise of it, but for the leak.

    With v = sigma'^2, the quotient of a rounded Gaussian and a discrete Gaussian of variance w is, at every
    whole number, at most sqrt(w/v) (1 + 2x/(1-x)) (1 - 1/(24v) + 1/(640v^2)), x = exp(-2 pi^2 w), provided
    that v^2/(v - 1/12) <= w. None stands for noise that is too narrow.

    Examples
    --------
    >>> spread, leak = rounded_within(Fraction(2**20), 9, 1000)
    >>> round(float(spread / 2**20), 9), float(leak) < 1e-23
    (3.0, True)
    """
    total = shares * sigma**2
    if total < 1:
        return None
    least = total - Fraction(1, 12) - 1 / (72 * total)
    spread = Fraction(math.isqrt(math.floor(least * 2**128)), 2**64)
    v = spread**2
    if v <= Fraction(1, 2) or v * v > total * (v - Fraction(1, 12)):
        return None
    far = exp_up(-_TWO_PI_SQUARED * total)
    root = (1 + total / v) / 2  # at or above the square root
    most = root * (1 + 2 * far / (1 - far)) * (1 - 1 / (24 * v) + 1 / (640 * v * v))
    own = max(Fraction(0), dimension * (1 - 1 / most))
    leak = round_up(own, digits=3) + share_leak(sigma, shares, dimension)
    return None if leak >= 1 else (spread, leak)
