"""The seam to the numerical engines. For now: safe upper values by Renyi divergence; the tight engines replace it."""

from __future__ import annotations

import math
from typing import NamedTuple

from tacit.accounting.laws import (
    GDP,
    ZCDP,
    Approximate,
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Law,
    Parts,
    Pure,
    RandomizedResponse,
    Renyi,
    Sampled,
    Shuffled,
)

__all__ = ["Bracket", "delta_bounds", "epsilon_bounds", "loss_exceeds", "renyi_divergence"]

_ROUND = 1 + 1e-12


class Bracket(NamedTuple):
    """A certified lower and upper value."""

    lower: float
    upper: float
    method: str = "renyi"


def renyi_divergence(parts: Parts, order: float) -> float:
    """Return an upper value of the Renyi divergence of this order, both directions (infinite with mass at infinity)."""
    return math.fsum(times * _divergence(law, order) for law, times in parts) * _ROUND


def delta_bounds(parts: Parts, epsilon: float) -> Bracket:
    """Return certified bounds on delta at epsilon, the larger of both directions."""
    mass = sum(times * float(law.delta) for law, times in parts if isinstance(law, Approximate))
    best = 1.0
    for order in _orders():
        a = order
        d = math.fsum(t * _divergence(_finite(law), a) for law, t in parts)
        exponent = (a - 1) * (d - epsilon + math.log1p(-1 / a)) - math.log(a)
        best = min(best, math.exp(min(exponent, 0.0)))
    return Bracket(0.0, min(1.0, mass + best * (1 + 1e-9)))


def epsilon_bounds(parts: Parts, delta: float) -> Bracket:
    """Return certified bounds on epsilon at delta, the larger of both directions."""
    if delta_bounds(parts, 0.0).upper <= delta:
        return Bracket(0.0, 0.0)
    low, high = 0.0, 1.0
    while delta_bounds(parts, high).upper > delta:
        low, high = high, 2 * high
        if high > 1e300:
            return Bracket(0.0, math.inf)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_bounds(parts, middle).upper <= delta else (middle, high)
    return Bracket(0.0, high)


def loss_exceeds(parts: Parts, t: float) -> float:
    """Return an upper value of the probability that the privacy loss exceeds t, the larger of both directions."""
    mass = sum(times * float(law.delta) for law, times in parts if isinstance(law, Approximate))
    tails = (
        (a - 1) * (math.fsum(times * _divergence(_finite(law), a) for law, times in parts) - t)
        for a in _orders()
    )
    return min(1.0, mass + math.exp(min(0.0, *tails)) * (1 + 1e-9))


def _orders() -> list[float]:
    return [1 + math.exp(x / 20) for x in range(-120, 240)]


def _finite(law: Law) -> Law:
    return Pure(law.epsilon) if isinstance(law, Approximate) and law.epsilon else law


def _divergence(law: Law, a: float) -> float:
    match law:
        case Gaussian(sigma, s):
            return a * float(s / sigma) ** 2 / 2
        case GDP(mu):
            return a * float(mu) ** 2 / 2
        case DiscreteGaussian(sigma, s):
            return a * float(s / sigma) ** 2 / 2
        case ZCDP(rho):
            return a * float(rho)
        case Laplace(scale, s) | DiscreteLaplace(scale, s):
            return _response(float(s / scale), a)
        case Pure(epsilon) | RandomizedResponse(epsilon) | Shuffled(_, epsilon):
            return _response(float(epsilon), a)
        case BoundedRange(epsilon):
            return min(a * float(epsilon) ** 2 / 8, _response(float(epsilon), a))
        case Renyi(curve):
            return min((float(d) for order, d in curve if float(order) >= a), default=math.inf)
        case Approximate(epsilon, _):
            return math.inf if epsilon else 0.0
        case Sampled(_, parts):
            return math.fsum(times * _divergence(part, a) for part, times in parts)
        case _:
            raise NotImplementedError(type(law).__name__)


def _response(e: float, a: float) -> float:
    z = a - 1
    return (z * e - math.log1p(math.exp(-e)) + math.log1p(math.exp(-(2 * z + 1) * e))) / z
