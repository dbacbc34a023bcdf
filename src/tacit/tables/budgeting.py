"""Split a plan's budget over its steps and calibrate each: from public facts to noise scales and a cost.

A step on a statistic with L1 sensitivity D1 and L2 sensitivity D2 is

* discrete Laplace noise of scale D1/epsilon on every integer: epsilon-private, since log-ratios add up to
  at most D1/scale;
* discrete Gaussian noise of sigma with D2^2/(2 sigma^2) <= rho on every integer: rho-zCDP (Canonne, Kamath,
  Steinke 2020);
* selection by the exponential mechanism with integer scores: bounded range epsilon. Over groups the
  log-ratios' ranges add, and a unit's rows are split over groups, so one range of width epsilon covers all
  groups together;
* a threshold on noisy numbers of units: (epsilon, delta), delta by the exact tail of the integer noise.

Steps compose by addition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from tacit.accounting import Cost, largest_pure, pure_rho, rho_cap
from tacit.tables.threshold import threshold

if TYPE_CHECKING:
    from tacit.tables.lowering import Step
    from tacit.tables.stability import Contribution

__all__ = ["MOST_SCALE", "Ask", "Share", "calibrate", "sensitivity"]

Family = Literal["laplace", "gaussian"]
#: Noise of a larger scale would not fit into integers of 64 bits.
MOST_SCALE = 2**56


@dataclass(frozen=True, slots=True)
class Ask:
    """The total that a plan may cost.

    Epsilon, (epsilon, delta), rho, or (rho, delta) where keys are private.
    """

    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """A calibrated step: its law, its noise, its cost; a consortium adds up ``copies`` of the noise."""

    step: Step
    law: str
    scale: Fraction
    cost: Cost
    l1: int
    l2_squared: int
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction = Fraction(0)
    above: int = 0
    copies: int = 1


def sensitivity(step: Step, who: Contribution) -> tuple[int, int]:
    """Return the L1 sensitivity and the square of the L2 sensitivity of what a step measures."""
    statistic = step.statistic
    match statistic.kind:
        case "units":
            return who.units_l1, who.units_l1
        case "sum" if statistic.grid is not None and statistic.whole:
            return statistic.grid.width, statistic.grid.width**2
        case "sum" if statistic.grid is not None and not who.grouped:
            alone = who.scalar(statistic.grid.lo, statistic.grid.hi)
            return alone, alone**2
        case "rows" | "distinct" if not who.grouped:
            return who.scalar(0, 1), who.scalar(0, 1) ** 2
        case "sum":
            return who.l1(statistic.weight), who.l2_squared(statistic.weight, signed=True)
        case _:
            if step.mechanism == "select":
                q = step.level
                weight = max(q.numerator, q.denominator - q.numerator)
                return who.l1(weight), who.l2_squared(weight, signed=True)
            return who.l1(statistic.weight), who.l2_squared(statistic.weight)


def _relative(step: Step, who: Contribution) -> Fraction:
    """Return the sensitivity in units of what one row can carry: steps get budget in proportion to it."""
    return Fraction(who.units_l1 if step.statistic.kind == "units" else who.times * who.total)


def calibrate(
    steps: tuple[Step, ...], who: Contribution, ask: Ask, weights: tuple[Fraction, ...]
) -> tuple[Share, ...]:
    """Split and calibrate.

    Of Laplace and Gaussian noise the one with the smaller predicted error is taken.
    """
    if ask.rho is None and not ask.delta:
        return _family("laplace", steps, who, ask, weights)
    laplace = _family("laplace", steps, who, ask, weights)
    gaussian = _family("gaussian", steps, who, ask, weights)
    return min((laplace, gaussian), key=_predicted)


def _predicted(shares: tuple[Share, ...]) -> float:
    """Sum the 95 % half-widths, each in units of what a row can carry; ties go to the first."""
    total = 0.0
    for share in shares:
        width = {"laplace": 3.0, "threshold": 3.0, "gaussian": 1.96, "exponential": 3.0}[share.law]
        total += width * float(share.scale) / share.step.statistic.weight
    return total


def _family(
    family: Family, steps: tuple[Step, ...], who: Contribution, ask: Ask, weights: tuple[Fraction, ...]
) -> tuple[Share, ...]:
    parts = [w * _relative(s, who) for s, w in zip(steps, weights, strict=True)]
    private_keys = any(s.mechanism == "threshold" for s in steps)
    if family == "laplace":
        if ask.epsilon is not None:
            total = ask.epsilon
        else:
            total = _pure_for(ask.rho or Fraction(0), tuple(p / sum(parts) for p in parts))
        return tuple(
            _laplace(s, who, total * p / sum(parts), ask.delta) for s, p in zip(steps, parts, strict=True)
        )
    key_delta = (
        ask.delta / 2 if private_keys and ask.rho is None else ask.delta if private_keys else Fraction(0)
    )
    if ask.rho is not None:
        rho, key_epsilon = ask.rho, None
    else:
        total = ask.epsilon or Fraction(0)
        share = next(
            (p for s, p in zip(steps, parts, strict=True) if s.mechanism == "threshold"), Fraction(0)
        )
        key_epsilon = total * share / sum(parts) if private_keys else None
        left = total - (key_epsilon or 0)
        rho = rho_cap(left, ask.delta - key_delta) * (1 - Fraction(1, 2**40)) if left > 0 else Fraction(0)
    return _gaussian_family(steps, who, parts, rho, key_epsilon, key_delta)


def _gaussian_family(
    steps: tuple[Step, ...],
    who: Contribution,
    parts: list[Fraction],
    rho: Fraction,
    key_epsilon: Fraction | None,
    key_delta: Fraction,
) -> tuple[Share, ...]:
    """Split rho in proportion to squares, so that errors relative to a row's bound come out equal.

    Selection of bounded range epsilon is epsilon^2/8-zCDP (Cesar and Rogers 2021); k picks of epsilon/k
    each take 1/k of that.
    """
    paying = [s.mechanism != "threshold" or key_epsilon is None for s in steps]
    squares = [p * p if pays else Fraction(0) for p, pays in zip(parts, paying, strict=True)]
    shares = []
    for step, square, pays in zip(steps, squares, paying, strict=True):
        own = rho * square / sum(squares) if pays else Fraction(0)
        if step.mechanism == "threshold":
            epsilon = key_epsilon if key_epsilon is not None else _pure_for(own, (Fraction(1),))
            shares.append(_laplace(step, who, epsilon, key_delta))
        elif step.mechanism in {"select", "top"}:
            epsilon = _down(math.sqrt(8 * float(own) * max(step.picks, 1)))
            share = _laplace(step, who, epsilon, Fraction(0))
            shares.append(replace(share, cost=Cost.zcdp(own, adjacency=who.adjacency), epsilon=None, rho=own))
        else:
            shares.append(_gaussian(step, who, own))
    return tuple(shares)


def _laplace(step: Step, who: Contribution, epsilon: Fraction, delta: Fraction) -> Share:
    l1, l2 = sensitivity(step, who)
    adjacency = who.adjacency
    match step.mechanism:
        case "noise":
            scale = Fraction(l1) / epsilon
            made = Share(step, "laplace", scale, Cost.pure(epsilon, adjacency=adjacency), l1, l2, epsilon)
        case "select":
            made = Share(
                step,
                "exponential",
                2 * Fraction(l1) / epsilon,
                Cost.exponential(epsilon, adjacency=adjacency),
                l1,
                l2,
                epsilon,
            )
        case "top":
            cost = step.picks * Cost.exponential(epsilon / step.picks, adjacency=adjacency)
            made = Share(step, "exponential", step.picks * Fraction(l1) / epsilon, cost, l1, l2, epsilon)
        case _:
            above = threshold(epsilon / who.times, delta, who.groups, times=who.times)
            cost = Cost.approximate(epsilon, delta, adjacency=adjacency)
            made = Share(step, "threshold", Fraction(l1) / epsilon, cost, l1, l2, epsilon, None, delta, above)
    return made


def _gaussian(step: Step, who: Contribution, rho: Fraction) -> Share:
    l1, l2 = sensitivity(step, who)
    sigma = _up(math.sqrt(float(Fraction(l2) / (2 * rho))))
    while Fraction(l2) > 2 * rho * sigma * sigma:
        sigma *= 1 + Fraction(1, 2**40)
    actual = Fraction(l2) / (2 * sigma * sigma)
    return Share(step, "gaussian", sigma, Cost.zcdp(actual, adjacency=who.adjacency), l1, l2, None, actual)


def _pure_for(rho: Fraction, parts: tuple[Fraction, ...]) -> Fraction:
    """Return an epsilon whose parts, as pure costs, stay within rho together; checked forward.

    Epsilon tanh(epsilon/2) is convex near zero and the parts add up to one, so the largest epsilon for rho
    alone fits too; the search then goes up to twelve digits.
    """

    def fits(epsilon: Fraction) -> bool:
        return sum((pure_rho(epsilon * p) for p in parts), Fraction(0)) <= rho

    low = largest_pure(rho)
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = Fraction(float((low + high) / 2))
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _up(x: float) -> Fraction:
    return Fraction(math.nextafter(x * (1 + 2**-40), math.inf))


def _down(x: float) -> Fraction:
    return Fraction(math.nextafter(x * (1 - 2**-40), 0.0))
