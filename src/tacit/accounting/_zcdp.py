"""Accounting in zCDP: certified rho of laws, and the largest rho that an (epsilon, delta) target allows.

The zCDP parameter of a pair is the supremum of D_a / a over orders a > 1 and both directions. For randomized
response, Laplace and discrete Laplace noise, it is the limit a -> 1, the KL divergence: with w = a - 1/2, the
logarithm of the moment function is concave in w^2 (`docs/proofs/costs.md`; Harrison and Manurangsi 2025).

Renyi divergences of laws with a closed form are exact upper values, for both directions. With z = order - 1,
the divergence is log E_P[exp(z L)] / z. The pairs here are symmetric, so both directions agree.
`docs/proofs/costs.md` has the formulae.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tacit.accounting.numeric import exp_down, exp_up, log_down, log_up, round_down, round_up
from tacit.bisection import halved

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    Reals = NDArray[np.floating[Any]]


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


@lru_cache(maxsize=1024)
def categorical_rho(epsilon: Fraction, categories: int) -> Fraction:
    """Return a rho of randomized response with several categories, at most 2e-6 above the smallest.

    Up to 2 + 2 e^(epsilon/2) categories it is the Kullback-Leibler divergence, epsilon (e^epsilon - 1) /
    (e^epsilon + k - 1). With more, the largest D_a / a is at a higher order and is bounded numerically.

    Examples
    --------
    >>> round(float(categorical_rho(Fraction(1), 3)), 6)
    0.364175
    """
    try:
        e = exp_up(epsilon)
    except OverflowError:
        return pure_rho(epsilon)
    if (categories - 2) ** 2 <= 4 * exp_down(epsilon):
        return min(pure_rho(epsilon), round_up(epsilon * (e - 1) / (e + categories - 1)))
    if not Fraction(1, 10**6) < epsilon < 300 or categories > 10**15:
        return pure_rho(epsilon)
    return min(pure_rho(epsilon), round_up(Fraction(_largest_ratio(float(epsilon), categories)), digits=15))


def _largest_ratio(epsilon: float, categories: int) -> float:
    """Return an upper value of K(z) / (z (z+1)) over z > 0, K(z) = log M(z) of several categories.

    K(z)/z rises in z, so the ratio is at most K(v)/v / (1+u) on [u, v]. Intervals that may hold the largest
    value are halved until the bound is close to a value. K(z)/z is at most epsilon, which covers all large z.
    """
    import numpy as np

    high = 1 / (1 + (categories - 1) * math.exp(-epsilon))

    def ratio(z: Reals) -> Reals:  # K(z) / z, with a relative error below 1e-12
        rises = np.minimum(z * epsilon, 30.0)
        gains = high * (np.expm1(rises) + math.exp(-epsilon) * np.expm1(-rises))
        far = z * epsilon + np.log(high * (1 + (categories - 2) * np.exp(-(z + 1) * epsilon)) + 1e-13)
        ratios: Reals = np.where(rises < 30, np.log1p(gains), far) / z
        return ratios

    ends = np.exp(np.linspace(math.log(1e-4), math.log(1e7), 400)) / epsilon
    low, top = np.append(0.0, ends[:-1]), ends
    sure = epsilon / (1 + float(ends[-1]))  # the bound of intervals that need no further halving
    for _ in range(40):
        values = ratio(top)
        bounds = values / (1 + low)
        close = bounds <= max(sure, float((values / (1 + top)).max())) * (1 + 1e-6)
        sure = max(sure, float(bounds[close].max(initial=0.0)))
        low, top = low[~close], top[~close]
        if not len(low):
            return sure * (1 + 1e-9)
        middle = (low + top) / 2
        low, top = np.concatenate([low, middle]), np.concatenate([middle, top])
    return max(sure, float((ratio(top) / (1 + low)).max())) * (1 + 1e-9)


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
    high = max(1.0, 2 * target + 2)
    low, _ = halved(lambda epsilon: epsilon * math.tanh(epsilon / 2) > target, 0.0, high, times=200)
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
        lower, upper = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, upper) if allows(lower) >= allows(upper) else (lower, high)
    return math.exp((low + high) / 2)


_TINY = Fraction(1, 10**25)  # below it, log(1 + x) is x


@lru_cache(maxsize=4096)
def pure_divergence(epsilon: Fraction, order: Fraction) -> Fraction:
    """Return the divergence of randomized response, which dominates every epsilon-DP mechanism.

    Examples
    --------
    >>> round(float(pure_divergence(Fraction(1), Fraction(2))), 6)
    0.735326
    """
    if not epsilon:
        return epsilon
    far = exp_up(-(2 * order - 1) * epsilon)
    log = (far if far < _TINY else log_up(1 + far)) - _log_sum_down(epsilon)
    return _least_bound(epsilon, order, log, pure_rho(epsilon))


@lru_cache(maxsize=1024)
def _log_sum_down(epsilon: Fraction) -> Fraction:
    """Return log(1 + exp(-epsilon)), rounded down."""
    return log_down(1 + exp_down(-epsilon))


@lru_cache(maxsize=4096)
def categorical_divergence(epsilon: Fraction, categories: int, order: Fraction) -> Fraction:
    """Return the divergence of randomized response with several categories.

    Examples
    --------
    >>> round(float(categorical_divergence(Fraction(1), 2, Fraction(2))), 6)
    0.735326
    >>> categorical_divergence(Fraction(1), 10, Fraction(2)) < pure_divergence(Fraction(1), Fraction(2))
    True
    """
    far = 1 + exp_up(-(2 * order - 1) * epsilon) + (categories - 2) * exp_up(-order * epsilon)
    total_odds = 1 + (categories - 1) * exp_down(-epsilon)
    return _least_bound(epsilon, order, log_up(far / total_odds), pure_rho(epsilon))


@lru_cache(maxsize=4096)
def laplace_divergence(epsilon: Fraction, order: Fraction) -> Fraction:
    """Return the divergence of one number with Laplace noise."""
    far = (order + (order - 1) * exp_up(-(2 * order - 1) * epsilon)) / (2 * order - 1)
    return _least_bound(epsilon, order, log_up(far), laplace_rho(epsilon))


@lru_cache(maxsize=4096)
def discrete_laplace_divergence(scale: Fraction, move: Fraction, order: Fraction) -> Fraction:
    """Return the divergence of one whole number with discrete Laplace noise.

    With r = exp(-1/scale) and s = r^(2 order - 1), the far factor is ``(1 + s^move + (1 - r) (s + s^2 + ... +
    s^(move-1))) / (1 + r)``.
    """
    epsilon = move / scale
    if move == 1:
        return pure_divergence(epsilon, order)
    r, s = exp_down(-1 / scale), exp_up(-(2 * order - 1) / scale)
    if s >= 1:  # the noise is so wide that 60 digits do not see the difference
        return round_up(order * discrete_laplace_rho(scale, move))
    exponent = -(2 * order - 1) * epsilon
    far = (1 + exp_up(exponent) + (1 - r) * (s - exp_down(exponent)) / (1 - s)) / (1 + r)
    return _least_bound(epsilon, order, log_up(far), discrete_laplace_rho(scale, move))


@lru_cache(maxsize=4096)
def bounded_range_divergence(epsilon: Fraction, order: Fraction) -> Fraction:
    """Return the largest divergence of losses within an interval of length epsilon.

    Two losses u and u - epsilon are the worst case, because the moment is convex. With r = exp(-epsilon), the
    best exp(u) is ``(a-1)/a (1 - r^a) / (r - r^a)``, and the moment there ``exp(u (a-1)) (1 - r^a) / (a (1 -
    r))``.

    Examples
    --------
    >>> round(float(bounded_range_divergence(Fraction(1), Fraction(2))), 6)
    0.240229
    """
    bound = min(order * epsilon**2 / 8, pure_divergence(epsilon, order))
    try:
        low, high = exp_down(-epsilon), exp_up(-epsilon)
        far_low, far_high = exp_down(-order * epsilon), exp_up(-order * epsilon)
        best = log_up((order - 1) / order * (1 - far_low) / (low - far_high))
        return round_up(
            min(bound, max(Fraction(0), best + log_up((1 - far_low) / (order * (1 - high))) / (order - 1)))
        )
    except (ArithmeticError, ValueError):  # 60 digits do not tell the two losses apart
        return round_up(bound)


def _least_bound(epsilon: Fraction, order: Fraction, log: Fraction, rho: Fraction) -> Fraction:
    """Return epsilon + log / (order - 1), or epsilon or order rho if that is smaller; rounded up."""
    return round_up(max(Fraction(0), min(epsilon, epsilon + log / (order - 1), order * rho)))
