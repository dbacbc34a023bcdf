"""Accounting in zCDP: certified rho of laws, and the largest rho that an (epsilon, delta) target allows.

The zCDP parameter of a pair is the supremum of D_a / a over orders a > 1 and both directions. For randomized
response, Laplace and discrete Laplace noise, it is the limit a -> 1, the KL divergence: with w = a - 1/2, the
logarithm of the moment function is concave in w^2 (`docs/proofs/costs.md`; Harrison and Manurangsi 2025).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from tacit.accounting.numeric import exp_down, exp_up, log_down, round_down, round_up

__all__ = ["discrete_laplace_rho", "laplace_rho", "largest_pure", "pure_rho", "rho_cap"]


@lru_cache(maxsize=1024)
def pure_rho(epsilon: Fraction) -> Fraction:
    """Return epsilon tanh(epsilon/2), rounded up: a rho of every epsilon-DP mechanism.

    Examples
    --------
    >>> round(float(pure_rho(Fraction(1))), 6)
    0.462117
    """
    r = exp_down(-epsilon)
    return round_up(min(epsilon * (1 - r) / (1 + r), epsilon * epsilon / 2))


@lru_cache(maxsize=1024)
def laplace_rho(epsilon: Fraction) -> Fraction:
    """Return epsilon - 1 + exp(-epsilon), rounded up, for one number with Laplace noise."""
    return round_up(min(epsilon - 1 + exp_up(-epsilon), epsilon * epsilon / 2))


@lru_cache(maxsize=1024)
def discrete_laplace_rho(scale: Fraction, move: Fraction) -> Fraction:
    """Return (move - 2 r (1 - r^move) / (1 - r^2)) / scale with r = exp(-1/scale), rounded up."""
    epsilon = move / scale
    if move == 1:
        return pure_rho(epsilon)
    r = exp_down(-1 / scale)
    kl = (move - 2 * r * (1 - exp_up(-epsilon)) / (1 - r * r)) / scale
    return min(round_up(kl), pure_rho(epsilon))


def largest_pure(rho: Fraction) -> Fraction:
    """Return an epsilon with ``pure_rho(epsilon) <= rho``, within one part in 10^12 of the largest.

    Examples
    --------
    >>> pure_rho(largest_pure(Fraction(1, 10))) <= Fraction(1, 10)
    True
    """
    rho = round_down(rho)  # because `pure_rho` rounds up to a multiple of the same step
    if rho <= 0:
        return Fraction(0)
    target = float(rho)
    low, high = 0.0, max(1.0, 2 * target + 2)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(middle / 2) <= target else (low, middle)
    epsilon = round_down(Fraction(low))
    while pure_rho(epsilon) > rho:
        epsilon = round_down(epsilon * (1 - Fraction(1, 10**13)))
    return epsilon


@lru_cache(maxsize=4096)
def rho_cap(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho for which rho-zCDP gives (epsilon, delta)-DP: at most the true cap, and close to it.

    Canonne, Kamath and Steinke 2020, Proposition 12: any order a > 1 with ``a rho + log((a-1)/a) - (log
    delta + log a)/(a-1) <= epsilon`` is enough. The search for the order is in floating point.
    Certified logarithms then bound the cap of this order from below: a poor order makes the cap smaller,
    never wrong.

    Examples
    --------
    >>> round(float(rho_cap(Fraction(1), Fraction(1, 10**6))), 5)
    0.02436
    """
    if delta <= 0:
        return Fraction(0)
    best = _best_order(float(epsilon), math.log(delta.numerator) - math.log(delta.denominator))
    a = 1 + Fraction(best)
    cap = (epsilon + log_down(a / (a - 1)) + (log_down(delta) + log_down(a)) / (a - 1)) / a
    return round_down(max(cap, Fraction(0)))


def _best_order(epsilon: float, log_delta: float) -> float:
    """Return the a - 1 that allows the most, by a coarse scan and a golden section search in log(a - 1)."""

    def allows(u: float) -> float:
        z = math.exp(u)
        return (epsilon + math.log1p(1 / z) + (log_delta + math.log1p(z)) / z) / (1 + z)

    centre = max((u / 2 for u in range(-80, 200)), key=allows)
    low, high = centre - 0.5, centre + 0.5
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(50):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if allows(left) >= allows(right) else (left, high)
    return math.exp((low + high) / 2)
