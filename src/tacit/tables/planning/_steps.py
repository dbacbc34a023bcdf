"""The steps of a table plan: which mechanism answers for which statistic, and the split of its budget.

A step on a statistic with L1 sensitivity D1 and L2 sensitivity D2 is

* `AddNoise`: discrete Laplace noise of scale D1/epsilon on every integer, or discrete Gaussian noise of sigma
  with D2^2/(2 sigma^2) <= rho;
* `ChooseQuantile`, `ChooseQuantileEnds`, `ChooseTop`: choices by integer scores, each of bounded range, which
  add up to epsilon. Over groups the ranges of log-ratios add up, and a unit's rows are split over groups, so
  one range of width epsilon covers all groups together. Where only pure epsilon counts, a single choice is
  made by permute-and-flip;
* `SelectKeys`: a threshold on noisy numbers of units, (epsilon, delta) or rho and delta.

Steps compose by addition. The proofs stand with the mechanisms.

The split. A step that gets n times the epsilon, or n^2 times the rho, has an n-th of the error, whatever it
counts. So with equal weights every step gets the same epsilon, or the same rho: each loses the same factor
against being asked alone with the whole budget, and no other split has a smaller largest factor. A step of
weight w gets w times the epsilon, or w^2 times the rho.

Samples. Each unit is kept with probability p, in secret, and the plan costs less for it. The probability is
k/2^32: the first 32 bits of a keyed hash of the unit's name are compared with k. A unit is in the sample with
all its rows, in every statement of one release, or with none. So the release is the mechanism on the sample,
and its cost is the mechanism's cost, sampled (docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from tacit.accounting import Cost, largest_pure, pure_rho, rho_within
from tacit.algebra import document
from tacit.bisection import halved
from tacit.errors import TacitError
from tacit.fixes import Set
from tacit.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    KeySelection,
    PermuteAndFlip,
    QuantileBracket,
    QuantileChoice,
    TopK,
    sampling_secret,
)
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from tacit.algebra import Contribution, Statistic
    from tacit.core import JSON, Unit
    from tacit.exact import Number
    from tacit.mechanisms import IntegerMechanism


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
class _QuantileMethod(ABC):
    """Choices among candidates by how close their rank is to a level."""

    level: Fraction
    #: How many choices share epsilon evenly.
    choices: ClassVar[int] = 1

    @abstractmethod
    def pure(
        self, statistic: Statistic, who: Contribution, epsilon: Fraction, delta: Fraction
    ) -> IntegerMechanism:
        """Return choices of bounded range epsilon together."""

    def concentrated(self, statistic: Statistic, who: Contribution, rho: Fraction) -> IntegerMechanism:
        """Bounded range epsilon is epsilon^2/8-zCDP (Cesar and Rogers 2021); k choices take 1/k of it."""
        return self.pure(statistic, who, _down(math.sqrt(8 * self.choices * float(rho))), Fraction(0))


@dataclass(frozen=True, slots=True)
class ChooseQuantile(_QuantileMethod):
    """Choose the candidate whose rank is closest to a level."""

    def pure(
        self, statistic: Statistic, who: Contribution, epsilon: Fraction, delta: Fraction
    ) -> IntegerMechanism:
        """Return a choice of bounded range epsilon."""
        del delta
        rows, _ = statistic.sensitivity(who)
        return QuantileChoice(epsilon, level=self.level, rows=rows, adjacency=who.adjacency)

    def flipped(self, statistic: Statistic, who: Contribution, epsilon: Fraction) -> IntegerMechanism:
        """Return a choice by permute-and-flip, of pure epsilon."""
        rows, _ = statistic.sensitivity(who)
        return QuantileChoice(
            epsilon, level=self.level, rows=rows, adjacency=who.adjacency, method="permute-and-flip"
        )


@dataclass(frozen=True, slots=True)
class ChooseQuantileEnds(_QuantileMethod):
    """Choose a candidate on either side of a level, which enclose the quantile with 95 %."""

    choices: ClassVar[int] = 2

    def pure(
        self, statistic: Statistic, who: Contribution, epsilon: Fraction, delta: Fraction
    ) -> IntegerMechanism:
        """Return two choices of bounded range epsilon/2 each."""
        del delta
        rows, _ = statistic.sensitivity(who)
        return QuantileBracket(
            epsilon, level=self.level, rows=rows, candidates=statistic.size, adjacency=who.adjacency
        )


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

    def flipped(self, statistic: Statistic, who: Contribution, epsilon: Fraction) -> IntegerMechanism:
        """Return one choice by permute-and-flip, of pure epsilon; several are drawn together as before."""
        if self.k > 1:
            return self.pure(statistic, who, epsilon, Fraction(0))
        rows, _ = statistic.sensitivity(who)
        return PermuteAndFlip(
            epsilon, sensitivity=rows // who.times, grid=1, monotone=who.times == 1, adjacency=who.adjacency
        )

    def concentrated(self, statistic: Statistic, who: Contribution, rho: Fraction) -> IntegerMechanism:
        """K choices of epsilon/k each take 1/k of epsilon^2/8."""
        return self.pure(statistic, who, _down(math.sqrt(8 * float(rho) * self.k)), Fraction(0))


@dataclass(frozen=True, slots=True)
class SelectKeys:
    """Show the groups whose noisy number of units reaches a threshold."""

    def pure(
        self, statistic: Statistic, who: Contribution, epsilon: Fraction, delta: Fraction
    ) -> KeySelection:
        """Return the threshold for (epsilon, delta)."""
        del statistic
        return KeySelection(epsilon, delta=delta, groups=who.groups, adjacency=who.adjacency)

    def selecting(self, who: Contribution, rho: Fraction, delta: Fraction) -> KeySelection:
        """Return the threshold for rho and delta."""
        return KeySelection(rho=rho, delta=delta, groups=who.groups, adjacency=who.adjacency)


@dataclass(frozen=True, slots=True)
class SelectLargeKeys(SelectKeys):
    """Show the groups as `SelectKeys` does, but never one with fewer units than the curator's minimum."""

    minimum: int

    def pure(
        self, statistic: Statistic, who: Contribution, epsilon: Fraction, delta: Fraction
    ) -> KeySelection:
        """Return the threshold for (epsilon, delta)."""
        del statistic
        facts = {"groups": who.groups, "adjacency": who.adjacency}
        return KeySelection(epsilon, delta=delta, minimum=self.minimum, **facts)  # type: ignore[arg-type]

    def selecting(self, who: Contribution, rho: Fraction, delta: Fraction) -> KeySelection:
        """Return the threshold for rho and delta."""
        facts = {"groups": who.groups, "adjacency": who.adjacency}
        return KeySelection(rho=rho, delta=delta, minimum=self.minimum, **facts)  # type: ignore[arg-type]


#: The choices that permute-and-flip can make.
Flippable: TypeAlias = ChooseQuantile | ChooseTop
Method: TypeAlias = AddNoise | ChooseQuantile | ChooseQuantileEnds | ChooseTop | SelectKeys


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """One mechanism on one statistic; every step is paid for."""

    statistic: Statistic
    method: Method

    @property
    def adds_noise(self) -> bool:
        """Whether noise is added to the integers themselves."""
        return isinstance(self.method, AddNoise)

    @property
    def document(self) -> JSON:
        """What the step measures, and how, in a plan's document."""
        return {"node": "Step", "statistic": document(self.statistic), "method": document(self.method)}


@dataclass(frozen=True, slots=True)
class Ask:
    """The total that a plan may cost.

    Epsilon, (epsilon, delta), rho, or (rho, delta) where keys are private. ``flip``: only epsilon counts, now
    and for the account that pays, so that choices may be made by permute-and-flip.
    """

    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    flip: bool = False
    #: Whether noise must be Laplace noise, whose cost can be sampled.
    laplace: bool = False


@dataclass(frozen=True, slots=True)
class PaidStep:
    """A step with its mechanism and its share of the budget, in epsilon or in rho."""

    step: MeasuredStep
    mechanism: IntegerMechanism
    epsilon: Fraction | None = None
    rho: Fraction | None = None


def calibrate(
    steps: tuple[MeasuredStep, ...], contribution: Contribution, ask: Ask, weights: tuple[Fraction, ...]
) -> tuple[PaidStep, ...]:
    """Split the budget over the steps and choose their mechanisms.

    Of Laplace and Gaussian noise, on numbers and for the selection of keys, the plan takes what keeps the
    largest loss against being asked alone smallest; ties go to the first.
    """
    families = [_laplace_family(steps, contribution, ask, weights)]
    if not ask.laplace and (ask.rho is not None or ask.delta):
        keys = any(isinstance(step.method, SelectKeys) for step in steps)
        if len(steps) > keys:  # a selection of keys alone has no other step to share rho with
            families.append(_gaussian_family(steps, contribution, ask, weights))
        if keys:
            families.append(_concentrated_family(steps, contribution, ask, weights))
    if len(families) == 1:
        return families[0]
    own_losses = [_alone(step, contribution, ask) for step in steps]

    def worst(paid_steps: tuple[PaidStep, ...]) -> float:
        losses = [_error(one.mechanism) / best for one, best in zip(paid_steps, own_losses, strict=True)]
        return max(float(w) * loss for w, loss in zip(weights, losses, strict=True))

    return min(families, key=worst)


def _error(mechanism: IntegerMechanism) -> float:
    """Return the 95 % half-width, up to a factor that all mechanisms of one step share."""
    if isinstance(mechanism, KeySelection):
        return float(mechanism.threshold)
    return (1.96 if isinstance(mechanism, DiscreteGaussian) else 3.0) * float(mechanism.scale)


def _alone(step: MeasuredStep, contribution: Contribution, ask: Ask) -> float:
    """Return the error of a step that gets the whole budget."""
    steps, full_share = (step,), (Fraction(1),)
    families = [_laplace_family(steps, contribution, ask, full_share)]
    if ask.rho is not None or ask.delta:
        families.append(_concentrated_family(steps, contribution, ask, full_share))
    return min(_error(paid.mechanism) for (paid,) in families)


def _laplace_family(
    steps: tuple[MeasuredStep, ...], contribution: Contribution, ask: Ask, weights: tuple[Fraction, ...]
) -> tuple[PaidStep, ...]:
    """Split epsilon in proportion to the weights."""
    weight_total = sum(weights)
    if ask.epsilon is not None:
        total = ask.epsilon
    else:
        total = _pure_for(ask.rho or Fraction(0), tuple(weight / weight_total for weight in weights))
    shares = [total * weight / weight_total for weight in weights]
    return tuple(
        PaidStep(step, _pure(step, contribution, share, ask), epsilon=share)
        for step, share in zip(steps, shares, strict=True)
    )


def _pure(step: MeasuredStep, contribution: Contribution, share: Fraction, ask: Ask) -> IntegerMechanism:
    """Return a step's mechanism for its share of epsilon."""
    if ask.flip and isinstance(step.method, Flippable):
        return step.method.flipped(step.statistic, contribution, share)
    return step.method.pure(step.statistic, contribution, share, ask.delta)


def _gaussian_family(
    steps: tuple[MeasuredStep, ...], contribution: Contribution, ask: Ask, weights: tuple[Fraction, ...]
) -> tuple[PaidStep, ...]:
    """Split rho in proportion to the squares of the weights; the selection of keys pays in epsilon.

    The selection takes its part of epsilon, and half of delta, before the rest becomes rho. N times the
    epsilon gives about n^2 times the rho, so a part x for the selection costs it the factor 1/x and the
    others sqrt(squares)/(1 - x), which are equal at x = weight / (weight + sqrt(squares)).
    """
    keys = next((i for i, step in enumerate(steps) if isinstance(step.method, SelectKeys)), None)
    if keys is None:
        return _concentrated_family(steps, contribution, ask, weights)
    others = [i for i in range(len(steps)) if i != keys]
    squares = sum(weights[i] ** 2 for i in others)
    if ask.rho is None:
        total, key_delta = ask.epsilon or Fraction(0), ask.delta / 2
        root = _down(math.sqrt(float(squares)))
        key_epsilon = total * weights[keys] / (weights[keys] + root)
        rho = rho_within(total - key_epsilon, ask.delta - key_delta)
    else:
        key_delta, square_total = ask.delta, squares + weights[keys] ** 2
        key_epsilon = _pure_for(ask.rho * weights[keys] ** 2 / square_total, (Fraction(1),))
        rho = ask.rho * squares / square_total
    paid_steps = []
    for i, step in enumerate(steps):
        if isinstance(step.method, SelectKeys):
            mechanism: IntegerMechanism = step.method.pure(
                step.statistic, contribution, key_epsilon, key_delta
            )
            paid_steps.append(PaidStep(step, mechanism, epsilon=key_epsilon))
        else:
            step_rho = rho * weights[i] ** 2 / squares
            paid_steps.append(
                PaidStep(step, step.method.concentrated(step.statistic, contribution, step_rho), rho=step_rho)
            )
    return tuple(paid_steps)


def _concentrated_family(
    steps: tuple[MeasuredStep, ...], contribution: Contribution, ask: Ask, weights: tuple[Fraction, ...]
) -> tuple[PaidStep, ...]:
    """Split rho in proportion to the squares of the weights, the selection of keys included.

    The selection then adds Gaussian noise and takes half of delta (all of it where rho is asked for).
    """
    keys = any(isinstance(step.method, SelectKeys) for step in steps)
    key_delta = Fraction(0) if not keys else ask.delta / 2 if ask.rho is None else ask.delta
    rho = rho_within(ask.epsilon or Fraction(0), ask.delta - key_delta) if ask.rho is None else ask.rho
    squares = sum(weight**2 for weight in weights)
    paid_steps = []
    for step, weight in zip(steps, weights, strict=True):
        step_rho = rho * weight**2 / squares
        mechanism = (
            step.method.selecting(contribution, step_rho, key_delta)
            if isinstance(step.method, SelectKeys)
            else step.method.concentrated(step.statistic, contribution, step_rho)
        )
        paid_steps.append(PaidStep(step, mechanism, rho=step_rho))
    return tuple(paid_steps)


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

    def middle(low: Fraction, high: Fraction) -> Fraction:
        return Fraction(float((low + high) / 2))

    return halved(lambda epsilon: not fits(epsilon), low, high, times=40, middle=middle)[0]


def _down(x: float) -> Fraction:
    return Fraction(math.nextafter(x * (1 - 2**-40), 0.0))


MAX_SAMPLED = 2**32


def read_sample(share: Number) -> int:
    """Round a probability to a whole number of 2^-32.

    Examples
    --------
    >>> read_sample(0.25) == 2**30
    True
    """
    p = RealNumber(above=0, below=1, instead=0.05, why="0.05 stands for 5 percent").read("share", share)
    half = Fraction(1, 2 * MAX_SAMPLED)
    return round(RealNumber(above=half, below=1 - half, instead=0.05).read("share", p) * MAX_SAMPLED)


def share_of_sample(sample: int) -> Fraction:
    """Return the exact probability that a unit is kept."""
    return Fraction(sample, MAX_SAMPLED)


def check_sample(unit: Unit, adjacency: str) -> None:
    """Refuse samples for which the cost is not proven, or which cannot be drawn."""
    if adjacency != "add/remove":
        raise TacitError(
            "not-allowed",
            "a sample needs the adjacency add/remove",
            why="the lower cost of a sample is proven for a unit that is added or removed, not replaced",
            fix="ask without the sample, or declare the adjacency add/remove",
        )
    if unit.is_row:
        raise TacitError(
            "not-allowed",
            "a sample is drawn by the name of the unit, but here each row is a unit and has no name",
            why="the same rows must be in the sample for every number of the answer",
            fix="ask without the sample, or declare the column that names the unit",
        )


def drawn_sample() -> tuple[tuple[str], ...]:
    """Draw the secret of one sample, as the small table that the statements read."""
    return ((sampling_secret(),),)


def inner_ask(ask: Ask, sample: int) -> Ask:
    """Return what the mechanisms on the sample may cost, so that the whole costs what was asked for.

    For (epsilon, delta) with probability q they may cost (ln(1 + (exp(epsilon) - 1)/q), delta/q).
    """
    q = share_of_sample(sample)
    if ask.epsilon is None:
        raise TacitError(
            "not-allowed",
            "Tacit knows the cost of a sample in epsilon, but not in rho",
            why="how much a sample lowers the cost depends on more than rho alone",
            fix=Set(epsilon=0.5),
        )
    guess = Fraction(math.log1p(math.expm1(float(ask.epsilon)) / float(q)))
    while Cost.pure(guess).sampled(q).epsilon(delta=0) > ask.epsilon:
        guess *= 1 - Fraction(1, 2**40)
    below_share = RealNumber(least=0, below=q, why="the sample has this share", instead=1e-6)
    return Ask(guess, below_share.read("delta", ask.delta) / q, laplace=True)


def amplified_ask(inner: Ask, sample: int) -> Ask:
    """Return the total cost of mechanisms that cost this much on the sample."""
    q = share_of_sample(sample)
    amplified = Cost.pure(inner.epsilon or 0).sampled(q).epsilon(delta=0)
    return Ask(Fraction(amplified), inner.delta * q)
