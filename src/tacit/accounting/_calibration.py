"""Calibration in accounting: the least noise, or the most queries, within a target; results are checked."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

from tacit.accounting._budget import Budget
from tacit.accounting._charge import charge
from tacit.accounting._cost import Cost
from tacit.accounting._zcdp import rho_cap
from tacit.bisection import first_integer
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count
from tacit.fixes import Code
from tacit.parameters import Instance, Omitted

if TYPE_CHECKING:
    from collections.abc import Callable

_FINE = 1e-6  # relative width of the noise at which the search ends
_MAX_NOISE = 1e30  # no noise beyond it


def calibrate(
    cost_of: Callable[[float], Cost],
    target: Budget | None = None,
    *,
    epsilon: Number | None = None,
    delta: Number = 0,
    rho: Number | None = None,
) -> float:
    """Return the smallest noise whose cost stays within the target, to six digits; more noise must cost less.

    Guarantee
    ---------
    ``cost_of(noise).fits(target)``, checked with the certified reading at the number that is returned.

    Parameters
    ----------
    cost_of
        The whole cost at a given noise, declared in advance: one plan, one training run.
    target
        The budget for the cost. Or give its ``epsilon`` and ``delta``, or its ``rho``.

    Examples
    --------
    >>> sigma = calibrate(lambda s: 100 * Cost.gaussian(sigma=s, sensitivity=1), Budget(rho=0.5))
    >>> round(sigma, 3)
    10.0
    """
    if target is None:
        target = Budget(epsilon, delta, rho=rho)
    else:
        for name, value in (("epsilon", epsilon), ("delta", delta or None), ("rho", rho)):
            Omitted("with a target").read(name, value)
    target = Instance(Budget, "Budget(epsilon=1, delta=1e-6)").read("target", target)

    goal = _protection(target)
    low: tuple[float, float] | None = None  # (noise, protection) that does not fit
    high: tuple[float, float] | None = None  # (noise, protection) that fits
    noise = 1.0
    for turn in range(200):
        cost = cost_of(noise)
        at = (noise, _protection(_reading_for(cost, target)))
        low, high = (low, at) if cost.fits(target) else (at, high)
        if high is None:
            if noise > _MAX_NOISE:
                raise _never()
            noise *= min(max(goal / at[1], 1.02**2 ** min(turn, 9)), 16.0) if at[1] else 16.0
        elif low is None:
            if noise < 1 / _MAX_NOISE:
                return noise
            noise *= max(min(goal / at[1], 0.98**2 ** min(turn, 9)), 1 / 16)
        elif high[0] - low[0] <= _FINE * high[0]:
            break
        else:
            noise = _between(low, high, goal, turn)
    assert high is not None  # noqa: S101 - the loop ends only with a noise that fits
    return _check_at_delta(cost_of, target, high[0])


def sigma_for(target: Budget, *, sensitivity: Number, queries: SupportsIndex = 1, q: Number = 1) -> float:
    """Return the smallest sigma of Gaussian noise for some queries, each on a Poisson sample of rate q.

    Examples
    --------
    >>> sigma = sigma_for(Budget(epsilon=1, delta=1e-6), sensitivity=1)
    >>> Cost.gaussian(sigma=sigma, sensitivity=1).epsilon(delta=1e-6) <= 1
    True
    """
    k = count("queries", queries, zero=False)
    return calibrate(lambda sigma: k * Cost.gaussian(sigma=sigma, sensitivity=sensitivity).sampled(q), target)


def scale_for(target: Budget, *, sensitivity: Number, queries: SupportsIndex = 1) -> float:
    """Return the smallest scale of discrete Laplace noise for some queries, in grid steps.

    Examples
    --------
    >>> round(scale_for(Budget(epsilon=0.5), sensitivity=1), 6)
    2.0
    """
    k = count("queries", queries, zero=False)
    return calibrate(lambda scale: k * Cost.discrete_laplace(scale=scale, sensitivity=sensitivity), target)


def queries_within(target: Budget, cost: Cost) -> int:
    """Return the largest k for which ``k * cost``, declared in advance, stays within the target.

    Guarantee
    ---------
    ``(k * cost).fits(target)``, checked with the certified reading.

    Examples
    --------
    >>> queries_within(Budget(epsilon=1), Cost.pure(0.1))
    10
    """
    high = 1
    while cost.parts and high <= 2**60 and (high * cost).fits(target):
        high *= 2
    if not cost.parts or high > 2**60:
        raise bad_parameter("cost", "one that fits fewer than 2^60 times", cost, fix=Code("Cost.pure(0.1)"))
    return first_integer(lambda k: not (k * cost).fits(target), high // 2, high) - 1


class _Reached(NamedTuple):
    """What a cost takes, in the terms of a target."""

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None


def _reading_for(cost: Cost, target: Budget) -> _Reached:
    """Return what the cost takes in the terms of the target: delta at its epsilon, epsilon, or rho."""
    upper = charge(cost.parts)
    if target.rho is not None:
        return _Reached(None, target.delta, upper.rho)
    if target.delta == 0:
        return _Reached(upper.epsilon, upper.delta, None)
    return _Reached(target.epsilon, Fraction(cost.delta(epsilon=target.epsilon or 0)), None)


def _protection(reading: _Reached | Budget) -> float:
    """Return a measure that grows about linearly with the noise, so that the search needs few steps."""
    if reading.rho is not None:
        return 1 / math.sqrt(reading.rho) if reading.rho else math.inf
    if reading.epsilon is None:
        return 0.0
    if reading.delta:
        return math.sqrt(max(0.0, -2 * math.log(reading.delta)))
    return float(1 / reading.epsilon) if reading.epsilon else math.inf


def _between(low: tuple[float, float], high: tuple[float, float], goal: float, turn: int) -> float:
    """Return the next noise to try: by turns on either side of the straight line, sometimes the middle."""
    (a, at_a), (b, at_b) = low, high
    if turn % 5 == 4 or not (math.isfinite(at_b) and at_a < at_b):
        return math.sqrt(a) * math.sqrt(b) if a > 0 else b / 2
    share = min(max((goal - at_a) / (at_b - at_a), 0.0), 1.0)
    beside = _FINE / 3 if turn % 2 else -_FINE / 3
    return min(max((a + share * (b - a)) * (1 + beside), a * (1 + _FINE / 4)), b * (1 - _FINE / 4))


def _check_at_delta(cost_of: Callable[[float], Cost], target: Budget, noise: float) -> float:
    """Check epsilon at delta too, perhaps by another accountant; add noise until it holds."""
    if target.epsilon is None or target.delta == 0:
        return noise
    for _ in range(60):
        reached = Fraction(cost_of(noise).epsilon(delta=target.delta))
        if reached <= target.epsilon:
            return noise
        noise *= 1 + max(float(reached / target.epsilon) - 1, 1e-9)
    raise _never()


def _never() -> TacitError:
    return TacitError(
        "no-guarantee",
        "no amount of noise brings this cost within the target",
        why="a part of the cost does not shrink with the noise, or the target needs a delta",
        fix="choose a target with a delta",
    )


def rho_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a rho that (epsilon, delta) allows; a little less than the most, for the rounding of shares.

    The certified accounting rounds up, and must read the promise too; where it does not, some more is left.

    Examples
    --------
    >>> rho = rho_within(Fraction(1), Fraction(1, 10**6))
    >>> Cost.zcdp(rho).fits(Budget(epsilon=1, delta=1e-6))
    True
    """
    cap = rho_cap(epsilon, delta)
    rho = cap * (1 - Fraction(1, 2**40))
    fits = not rho or Cost.zcdp(rho).fits(Budget(epsilon, delta))
    return rho if fits else cap * (1 - Fraction(1, 2**20))
