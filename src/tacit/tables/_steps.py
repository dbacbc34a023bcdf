"""The steps of a table plan: which mechanism answers for which statistic, and the split of its budget.

A step on a statistic with L1 sensitivity D1 and L2 sensitivity D2 is

* `AddNoise`: discrete Laplace noise of scale D1/epsilon on every integer, or discrete Gaussian noise of sigma
  with D2^2/(2 sigma^2) <= rho;
* `ChooseQuantile`, `ChooseTop`: a choice by integer scores, of bounded range epsilon. Over groups the ranges
  of log-ratios add up, and a unit's rows are split over groups, so one range of width epsilon covers all
  groups together;
* `SelectKeys`: a threshold on noisy numbers of units, (epsilon, delta).

Steps compose by addition. The proofs stand with the mechanisms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from tacit.accounting import largest_pure, pure_rho, rho_cap
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace, KeySelection, QuantileChoice, TopK
from tacit.tables._statistics import UnitCounts, UnitsWith

if TYPE_CHECKING:
    from tacit.mechanisms import IntegerMechanism
    from tacit.tables._contribution import Contribution
    from tacit.tables._statistics import Statistic

__all__ = [
    "AddNoise", "Ask", "ChooseQuantile", "ChooseTop", "PaidStep", "SelectKeys", "Step", "calibrate",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class AddNoise:
    """Add noise to every integer."""

    def pure(
        self, statistic: Statistic, who: Contribution, epsilon: Fraction, delta: Fraction
    ) -> IntegerMechanism:
        """Return Laplace noise for epsilon."""
        del delta
        l1, _ = statistic.sensitivity(who)
        return DiscreteLaplace(epsilon=epsilon, sensitivity=l1, adjacency=who.adjacency)

    def concentrated(self, statistic: Statistic, who: Contribution, rho: Fraction) -> IntegerMechanism:
        """Return Gaussian noise for rho."""
        _, squared = statistic.sensitivity(who)
        return DiscreteGaussian(rho=rho, sensitivity_squared=squared, adjacency=who.adjacency)


@dataclass(frozen=True, slots=True)
class ChooseQuantile:
    """Choose the candidate whose rank is closest to a level."""

    level: Fraction

    def pure(
        self, statistic: Statistic, who: Contribution, epsilon: Fraction, delta: Fraction
    ) -> IntegerMechanism:
        """Return a choice of bounded range epsilon."""
        del delta
        rows, _ = statistic.sensitivity(who)
        return QuantileChoice(epsilon, level=self.level, rows=rows, adjacency=who.adjacency)

    def concentrated(self, statistic: Statistic, who: Contribution, rho: Fraction) -> IntegerMechanism:
        """Bounded range epsilon is epsilon^2/8-zCDP (Cesar and Rogers 2021)."""
        return self.pure(statistic, who, _down(math.sqrt(8 * float(rho))), Fraction(0))


@dataclass(frozen=True, slots=True)
class ChooseTop:
    """Choose the k fullest cells, one after the other."""

    k: int

    def pure(
        self, statistic: Statistic, who: Contribution, epsilon: Fraction, delta: Fraction
    ) -> IntegerMechanism:
        """Return k choices of bounded range epsilon/k each.

        Counts only grow when a unit is added, which saves the factor 2; a unit that is replaced moves some
        counts up and others down, each by no more than its rows.
        """
        del delta
        rows, _ = statistic.sensitivity(who)
        return TopK(
            epsilon, k=self.k, sensitivity=rows // who.times, grid=1, monotone=who.times == 1,
            adjacency=who.adjacency,
        )  # fmt: skip

    def concentrated(self, statistic: Statistic, who: Contribution, rho: Fraction) -> IntegerMechanism:
        """K choices of epsilon/k each take 1/k of epsilon^2/8."""
        return self.pure(statistic, who, _down(math.sqrt(8 * float(rho) * self.k)), Fraction(0))


@dataclass(frozen=True, slots=True)
class SelectKeys:
    """Show the groups whose noisy number of units reaches a threshold."""

    def pure(
        self, statistic: Statistic, who: Contribution, epsilon: Fraction, delta: Fraction
    ) -> IntegerMechanism:
        """Return the threshold for (epsilon, delta)."""
        del statistic
        return KeySelection(epsilon, delta=delta, groups=who.groups, adjacency=who.adjacency)


Method: TypeAlias = AddNoise | ChooseQuantile | ChooseTop | SelectKeys


@dataclass(frozen=True, slots=True)
class Step:
    """One mechanism on one statistic; every step is paid for."""

    statistic: Statistic
    method: Method


@dataclass(frozen=True, slots=True)
class Ask:
    """The total that a plan may cost.

    Epsilon, (epsilon, delta), rho, or (rho, delta) where keys are private.
    """

    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None


@dataclass(frozen=True, slots=True)
class PaidStep:
    """A step with its mechanism and its share of the budget, in epsilon or in rho."""

    step: Step
    mechanism: IntegerMechanism
    epsilon: Fraction | None = None
    rho: Fraction | None = None


def calibrate(
    steps: tuple[Step, ...], who: Contribution, ask: Ask, weights: tuple[Fraction, ...]
) -> tuple[PaidStep, ...]:
    """Split the budget over the steps and choose their mechanisms.

    Of Laplace and Gaussian noise the plan takes the one with the smaller predicted error.
    """
    parts = [weight * _relative(step, who) for step, weight in zip(steps, weights, strict=True)]
    laplace = _laplace_family(steps, who, ask, parts)
    if ask.rho is None and not ask.delta:
        return laplace
    return min((laplace, _gaussian_family(steps, who, ask, parts)), key=_predicted)


def _relative(step: Step, who: Contribution) -> Fraction:
    """Return the sensitivity in units of what one row can carry: steps get budget in proportion to it."""
    return Fraction(
        who.units_l1 if isinstance(step.statistic, UnitCounts | UnitsWith) else who.times * who.total
    )


def _predicted(paid: tuple[PaidStep, ...]) -> float:
    """Add up the 95 % half-widths, each in units of what a row can carry; ties go to the first."""
    return sum(
        (1.96 if isinstance(one.mechanism, DiscreteGaussian) else 3.0)
        * float(one.mechanism.scale)
        / one.step.statistic.weight
        for one in paid
    )


def _laplace_family(
    steps: tuple[Step, ...], who: Contribution, ask: Ask, parts: list[Fraction]
) -> tuple[PaidStep, ...]:
    """Split epsilon in proportion to the parts."""
    whole = sum(parts)
    if ask.epsilon is not None:
        total = ask.epsilon
    else:
        total = _pure_for(ask.rho or Fraction(0), tuple(part / whole for part in parts))
    shares = [total * part / whole for part in parts]
    return tuple(
        PaidStep(step, step.method.pure(step.statistic, who, share, ask.delta), epsilon=share)
        for step, share in zip(steps, shares, strict=True)
    )


def _gaussian_family(
    steps: tuple[Step, ...], who: Contribution, ask: Ask, parts: list[Fraction]
) -> tuple[PaidStep, ...]:
    """Split rho in proportion to squares, so that errors relative to a row's bound come out equal.

    The selection of private keys takes its part of epsilon, and half of delta, before the rest becomes rho.
    """
    keys = next((i for i, step in enumerate(steps) if isinstance(step.method, SelectKeys)), None)
    key_epsilon, key_delta, rho = None, Fraction(0), ask.rho
    if keys is not None:
        key_delta = ask.delta / 2 if ask.rho is None else ask.delta
    if rho is None:
        total = ask.epsilon or Fraction(0)
        key_epsilon = total * parts[keys] / sum(parts) if keys is not None else None
        left = total - (key_epsilon or 0)
        rho = rho_cap(left, ask.delta - key_delta) * (1 - Fraction(1, 2**40)) if left > 0 else Fraction(0)
    paying = [i for i in range(len(steps)) if i != keys or key_epsilon is None]
    squares = sum(parts[i] ** 2 for i in paying)
    paid = []
    for i, step in enumerate(steps):
        own = rho * parts[i] ** 2 / squares if i in paying else Fraction(0)
        if isinstance(step.method, SelectKeys):
            epsilon = key_epsilon if key_epsilon is not None else _pure_for(own, (Fraction(1),))
            mechanism = step.method.pure(step.statistic, who, epsilon, key_delta)
            paid.append(PaidStep(step, mechanism, epsilon=epsilon))
        else:
            paid.append(PaidStep(step, step.method.concentrated(step.statistic, who, own), rho=own))
    return tuple(paid)


def _pure_for(rho: Fraction, parts: tuple[Fraction, ...]) -> Fraction:
    """Return an epsilon whose parts, as pure costs, stay within rho together; checked forward.

    Epsilon tanh(epsilon/2) is convex near zero and the parts add up to one, so the largest epsilon for rho
    alone fits too; the search then goes up to twelve digits.
    """

    def fits(epsilon: Fraction) -> bool:
        return sum((pure_rho(epsilon * part) for part in parts), Fraction(0)) <= rho

    low = largest_pure(rho)
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = Fraction(float((low + high) / 2))
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _down(x: float) -> Fraction:
    return Fraction(math.nextafter(x * (1 - 2**-40), 0.0))
