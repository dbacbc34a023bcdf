"""Calibration: the least noise, or the most queries, that keep a promise; every answer is checked forward."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, SupportsIndex

from tacit.accounting._algebra import charge
from tacit.accounting.budget import Budget
from tacit.accounting.cost import Cost
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["calibrate", "queries_within", "scale_for", "sigma_for"]

_FINE = 1e-7  # relative width of the noise at which the search ends


def calibrate(cost_of: Callable[[float], Cost], target: Budget) -> float:
    """Return the smallest noise whose cost keeps the target, to seven digits; more noise must cost less.

    Guarantee
    ---------
    ``cost_of(noise).fits(target)``, checked with the certified reading at the very number that is returned.

    Parameters
    ----------
    cost_of
        The whole cost at a given noise, declared up front: one plan, one training run.
    target
        What the cost must keep.

    Examples
    --------
    >>> sigma = calibrate(lambda s: 100 * Cost.gaussian(sigma=s, sensitivity=1), Budget(rho=0.5))
    >>> round(sigma, 3)
    10.0
    """
    if not isinstance(target, Budget):
        raise bad_parameter("target", "a Budget", target, fix="Budget(epsilon=1, delta=1e-6)")

    def excess(noise: float) -> float:
        return _excess(cost_of(noise), target)

    low = high = 1.0
    at_low = at_high = excess(1.0)
    step = 2.0
    while at_high > 0:
        low, at_low = high, at_high
        high, step = high * step, step * step
        if high > 1e150:
            raise _never()
        at_high = excess(high)
    step = 2.0
    while at_low <= 0:
        high, at_high = low, at_low
        low, step = low / step, step * step
        if low < 1e-150:
            return high
        at_low = excess(low)
    return _narrow(excess, low, at_low, high, at_high)


def sigma_for(target: Budget, *, sensitivity: Number, queries: SupportsIndex = 1, q: Number = 1) -> float:
    """Return the smallest sigma of Gaussian noise for so many queries, each on a Poisson sample of rate q.

    Examples
    --------
    >>> sigma = sigma_for(Budget(epsilon=1, delta=1e-6), sensitivity=1)
    >>> Cost.gaussian(sigma=sigma, sensitivity=1).epsilon(delta=1e-6) <= 1
    True
    """
    k = count("queries", queries, zero=False)
    return calibrate(lambda sigma: k * Cost.gaussian(sigma=sigma, sensitivity=sensitivity).sampled(q), target)


def scale_for(target: Budget, *, sensitivity: Number, queries: SupportsIndex = 1) -> float:
    """Return the smallest scale of discrete Laplace noise for so many queries, in grid steps.

    Examples
    --------
    >>> round(scale_for(Budget(epsilon=0.5), sensitivity=1), 6)
    2.0
    """
    k = count("queries", queries, zero=False)
    return calibrate(lambda scale: k * Cost.discrete_laplace(scale=scale, sensitivity=sensitivity), target)


def queries_within(target: Budget, cost: Cost) -> int:
    """Return the largest k for which ``k * cost``, declared up front, keeps the target.

    Guarantee
    ---------
    ``(k * cost).fits(target)``, checked with the certified reading.

    Examples
    --------
    >>> queries_within(Budget(epsilon=1), Cost.pure(0.1))
    10
    """
    if not cost.parts:
        raise bad_parameter("cost", "one that reveals something", cost, fix="Cost.pure(0.1)")
    low, high = 0, 1
    while (high * cost).fits(target):
        low, high = high, 2 * high
        if high > 2**60:
            raise bad_parameter("cost", "one of which fewer than 2^60 fit", cost)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if (middle * cost).fits(target) else (low, middle)
    return low


def _excess(cost: Cost, target: Budget) -> float:
    """Return a smooth measure of how far the cost is beyond the target: at most 0 exactly where it fits."""
    whole = charge(cost.parts)
    if target.rho is not None:
        if whole.rho is None or whole.delta > target.delta:
            return math.inf
        return _sign(whole.rho <= target.rho, math.log(whole.rho / target.rho) if whole.rho else -math.inf)
    assert target.epsilon is not None  # noqa: S101 - a budget has one of the two
    if target.delta == 0:
        if whole.epsilon is None or whole.delta:
            return math.inf
        fits = whole.epsilon <= target.epsilon
        return _sign(fits, math.log(whole.epsilon / target.epsilon) if whole.epsilon else -math.inf)
    delta = cost.delta(epsilon=target.epsilon)
    return _sign(
        Fraction(delta) <= target.delta, math.log(delta / float(target.delta)) if delta else -math.inf
    )


def _sign(fits: bool, value: float) -> float:  # noqa: FBT001 - two values of one thought
    """Make a float agree with the exact comparison."""
    return min(value, 0.0) if fits else max(value, 5e-324)


def _narrow(
    excess: Callable[[float], float], low: float, at_low: float, high: float, at_high: float
) -> float:
    """Close in on the border by the Illinois rule in log-noise, with bisection where the curve is not finite."""
    a, b = math.log(low), math.log(high)
    side = 0
    for _ in range(200):
        if b - a <= _FINE:
            break
        if math.isfinite(at_low) and math.isfinite(at_high) and abs(side) < 3:
            share = at_low / (at_low - at_high)
            middle = a + min(max(share, 0.01), 0.99) * (b - a) if b - a > 0.1 else a + share * (b - a)
            middle = min(max(middle, a + _FINE / 3), b - _FINE / 3)
        else:
            middle, side = (a + b) / 2, 0
        there = excess(math.exp(middle))
        if there <= 0:
            b, high, at_high = middle, math.exp(middle), there
            at_low, side = (at_low / 2, side + 1) if side > 0 else (at_low, 1)
        else:
            a, at_low = middle, there
            at_high, side = (at_high / 2, side - 1) if side < 0 else (at_high, -1)
    return high


def _never() -> TacitError:
    return TacitError(
        "no-guarantee",
        "no amount of noise brings this cost within the target",
        why="a part of it does not shrink with the noise, or the target allows no probability for its tail",
        fix="a target with a delta: Budget(epsilon=1, delta=1e-6)",
    )
