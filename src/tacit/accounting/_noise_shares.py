"""Shares of discrete Gaussian noise in accounting: how far their sum is from one discrete Gaussian.

Several parties add discrete Gaussian noise of the same sigma each. The sum is not a discrete Gaussian, but
its probabilities are at least (1 - leak) times those of one with the total variance. `docs/proofs/costs.md`
proves it.
"""

from __future__ import annotations

from fractions import Fraction

from tacit.accounting.numeric import exp_up, round_up

__all__ = ["share_leak"]

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
