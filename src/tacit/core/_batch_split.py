"""The split of a batch's budget over its questions, checked forward by the certified accounting."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget, rho_cap
from tacit.core._goal import PlanGoal
from tacit.core._plan import Plan
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Code, Set

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["DEFAULT_LEVEL", "BatchGoal", "planned", "split"]

_FINE = Fraction(1001, 1000)  # how much of the budget the search may leave over
DEFAULT_LEVEL = Fraction(95, 100)


@dataclass(frozen=True, slots=True)
class BatchGoal:
    """The total of a batch: epsilon, (epsilon, delta), rho, or (rho, delta); and the confidence."""

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    confidence: Fraction

    @classmethod
    def read(cls, epsilon: Number | None, delta: Number, rho: Number | None, level: Number) -> BatchGoal:
        """Read a goal, or refuse with what is wrong in it; with rho, a delta pays for private groups."""
        small = rational("delta", delta, zero=True)
        if small >= 1:
            raise bad_parameter("delta", "below 1", delta, fix=Set(delta=1e-6))
        goal = PlanGoal.read(
            epsilon=epsilon, delta=0 if rho is not None else small, rho=rho, confidence=level
        )
        return cls(goal.epsilon, small, goal.rho, goal.confidence)

    @property
    def promised(self) -> dict[str, Fraction]:
        """What the plan promises in total: the parts that are not zero."""
        given = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {name: value for name, value in given.items() if value}

    @property
    def budget(self) -> Budget:
        """The total as a budget."""
        return Budget(self.epsilon, self.delta, rho=self.rho)


def planned(question: Any, level: Fraction, **total: Fraction | None) -> Plan[Any]:
    """Plan a question, or call a function that does; what is None or zero is not given."""
    given: dict[str, Any] = {name: value for name, value in total.items() if value}
    ask = getattr(question, "plan", None)
    if ask is not None or level != DEFAULT_LEVEL:
        given["confidence"] = level
    plan: object = (question if ask is None else ask)(**given)
    if not isinstance(plan, Plan):
        raise bad_parameter(
            "a question of the batch",
            "one that makes a plan",
            plan,
            fix=Code("tc.batch(lambda **total: friends.edges(**total))"),
        )
    return plan


def split(questions: Sequence[Any], weights: Sequence[Fraction], goal: BatchGoal) -> list[Plan[Any]]:
    """Plan every question within its part of the total.

    Equal questions are planned once, with the largest of their weights. Of the ways to split a total in
    epsilon and delta (parts of epsilon, each with the noise that is best for it; parts of rho, all Gaussian),
    the one is taken in which the largest loss against being asked alone is smallest.
    """
    alone = [
        planned(one, goal.confidence, epsilon=goal.epsilon, delta=goal.delta, rho=goal.rho)
        for one in questions
    ]
    if any(len(plan._members) != 1 or plan.instalments for plan in alone):  # noqa: SLF001 - refused later
        return alone
    heaviest: dict[str, Fraction] = {}
    for plan, weight in zip(alone, weights, strict=True):
        heaviest[plan.hash] = max(heaviest.get(plan.hash, Fraction(0)), weight)
    if len(heaviest) == 1:
        return alone
    first = {plan.hash: place for place, plan in reversed(list(enumerate(alone)))}
    parts = _Parts(
        [questions[first[digest]] for digest in heaviest],
        [alone[first[digest]] for digest in heaviest],
        list(heaviest.values()),
        goal,
    )
    chosen = dict(zip(heaviest, parts.best(), strict=True))
    return [
        plan if first[one.hash] == place else _same(questions[place], plan, goal)
        for place, one in enumerate(alone)
        for plan in [chosen[one.hash]]
    ]


def _same(question: Any, plan: Plan[Any], goal: BatchGoal) -> Plan[Any]:
    """Plan a question as an equal one was planned, so that its own names and order are kept."""
    own = planned(question, goal.confidence, **dict(plan.promised))
    return own if own.hash == plan.hash else plan


@dataclass(frozen=True, slots=True)
class _Parts:
    """Different questions with their weights, and their plans at the whole total."""

    questions: list[Any]
    alone: list[Plan[Any]]
    weights: list[Fraction]
    goal: BatchGoal

    def best(self) -> list[Plan[Any]]:
        """Return the plans of the best split."""
        if self.goal.rho is not None:
            return self._filled(self._by_rho(self.goal.rho, self.goal.delta))
        families = [self._filled(self._by_epsilon)]
        if self.goal.delta:
            left = self.goal.delta / 2 if any(self._with_delta) else self.goal.delta
            cap = rho_cap(self.goal.epsilon or Fraction(0), left) * (1 - Fraction(1, 2**40))
            with suppress(TacitError):  # a question that cannot be planned in rho
                families.append(self._filled(self._by_rho(cap, self.goal.delta - left)))
        return min(families, key=self._loss)

    @property
    def _with_delta(self) -> list[bool]:
        """Which questions take a delta of their own: private groups."""
        return [bool(plan.cost.spend.delta) for plan in self.alone]

    def _by_epsilon(self, scale: Fraction) -> list[Plan[Any]]:
        """Split epsilon in proportion to the weights; a delta in proportion to their squares."""
        goal, whole = self.goal, sum(self.weights)
        squares = sum(weight**2 for weight in self.weights)
        delta = goal.delta / 2 if any(self._with_delta) else goal.delta
        return [
            planned(
                question, goal.confidence,
                epsilon=(goal.epsilon or 0) * scale * weight / whole, delta=delta * weight**2 / squares,
            )
            for question, weight in zip(self.questions, self.weights, strict=True)
        ]  # fmt: skip

    def _by_rho(self, rho: Fraction, delta: Fraction) -> Callable[[Fraction], list[Plan[Any]]]:
        """Split rho in proportion to the squares of the weights; a delta over the questions that need it."""
        squares = sum(weight**2 for weight in self.weights)
        needs = self._with_delta
        needed = sum(weight**2 for weight, need in zip(self.weights, needs, strict=True) if need)

        def parts(scale: Fraction) -> list[Plan[Any]]:
            return [
                planned(
                    question, self.goal.confidence, rho=rho * scale * weight**2 / squares,
                    delta=delta * weight**2 / needed if need else None,
                )
                for question, weight, need in zip(self.questions, self.weights, needs, strict=True)
            ]  # fmt: skip

        return parts

    def _filled(self, parts: Callable[[Fraction], list[Plan[Any]]]) -> list[Plan[Any]]:
        """Scale all parts up until their composition fills the budget; every step is checked forward."""
        budget = self.goal.budget

        def fitting(scale: Fraction, *, must: bool = False) -> list[Plan[Any]] | None:
            try:
                plans = parts(scale)
            except TacitError:
                if must:
                    raise
                return None
            return plans if reduce(add, [plan.cost for plan in plans]).fits(budget) else None

        low, kept = Fraction(1), fitting(Fraction(1), must=True)
        while kept is None:  # what was promised for the parts does not compose to the whole
            low = low * 99 / 100 if low > Fraction(1, 2) else low / 2
            kept = fitting(low, must=low < Fraction(1, 2**30))
        if (more := fitting(low * _FINE)) is None:
            return kept
        low, kept, high = low * _FINE, more, low * Fraction(5, 4)
        while (more := fitting(high)) is not None:
            low, kept, high = high, more, high * 2
            if high > 2**20:  # a plan whose cost does not grow
                return kept
        while high / low > _FINE:
            middle = Fraction(f"{float(low * high) ** 0.5:.6g}")
            more = fitting(middle)
            low, kept, high = (low, kept, middle) if more is None else (middle, more, high)
        return kept

    def _loss(self, plans: list[Plan[Any]]) -> float:
        """Return the largest weighted loss of a question against being asked alone with the whole total."""
        losses = [0.0]
        for plan, alone, weight in zip(plans, self.alone, self.weights, strict=True):
            for ours, whole in zip(plan.forecast, alone.forecast, strict=False):
                if ours.error and whole.error:
                    losses.append(float(weight) * ours.error / whole.error)
        return max(losses)
