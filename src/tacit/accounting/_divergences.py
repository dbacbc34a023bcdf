"""Renyi divergences in accounting of laws with a closed form: exact upper values, for both directions.

With z = order - 1, the divergence is log E_P[exp(z L)] / z. The pairs here are symmetric, so both directions
agree. `docs/proofs/costs.md` has the formulae.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from tacit.accounting._zcdp import discrete_laplace_rho, laplace_rho, pure_rho
from tacit.accounting.numeric import exp_down, exp_up, log_down, log_up, round_up

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
    log = (far if far < _TINY else log_up(1 + far)) - _near(epsilon)
    return _least(epsilon, order, log, pure_rho(epsilon))


@lru_cache(maxsize=1024)
def _near(epsilon: Fraction) -> Fraction:
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
    near = 1 + (categories - 1) * exp_down(-epsilon)
    return _least(epsilon, order, log_up(far / near), pure_rho(epsilon))


@lru_cache(maxsize=4096)
def laplace_divergence(epsilon: Fraction, order: Fraction) -> Fraction:
    """Return the divergence of one number with Laplace noise."""
    far = (order + (order - 1) * exp_up(-(2 * order - 1) * epsilon)) / (2 * order - 1)
    return _least(epsilon, order, log_up(far), laplace_rho(epsilon))


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
    last = -(2 * order - 1) * epsilon
    far = (1 + exp_up(last) + (1 - r) * (s - exp_down(last)) / (1 - s)) / (1 + r)
    return _least(epsilon, order, log_up(far), discrete_laplace_rho(scale, move))


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
    known = min(order * epsilon**2 / 8, pure_divergence(epsilon, order))
    try:
        low, high = exp_down(-epsilon), exp_up(-epsilon)
        far_low, far_high = exp_down(-order * epsilon), exp_up(-order * epsilon)
        best = log_up((order - 1) / order * (1 - far_low) / (low - far_high))
        return round_up(
            min(known, max(Fraction(0), best + log_up((1 - far_low) / (order * (1 - high))) / (order - 1)))
        )
    except (ArithmeticError, ValueError):  # 60 digits do not tell the two losses apart
        return round_up(known)


def _least(epsilon: Fraction, order: Fraction, log: Fraction, rho: Fraction) -> Fraction:
    """Return epsilon + log / (order - 1), or epsilon or order rho if that is smaller; rounded up."""
    return round_up(max(Fraction(0), min(epsilon, epsilon + log / (order - 1), order * rho)))
