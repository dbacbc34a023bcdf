"""The split of a batch's budget over its questions, checked forward by the certified accounting."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget, rho_cap
from tacit.core._goal import DELTA, Goal
from tacit.core._plan import Plan
from tacit.core._question import Question
from tacit.errors import TacitError
from tacit.parameters import Instance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FINE = 1.001  # how much of the budget the search may leave over
_TURNS = 60  # tries of the search
DEFAULT_LEVEL = Fraction(95, 100)


def planned(question: Any, level: Fraction, **total: Fraction | None) -> Plan[Any]:
    """Plan a question, or call a function that does; what is None or zero is not given."""
    price: dict[str, Any] = {name: value for name, value in total.items() if value}
    if isinstance(question, Question) and DELTA not in question.kind.takes:
        price.pop("delta", None)
    ask = getattr(question, "plan", None)
    if ask is not None or level != DEFAULT_LEVEL:
        price["confidence"] = level
    plan: object = (question if ask is None else ask)(**price)
    return Instance(Plan, "tc.batch(friends.edges())", "one that makes a plan").read(
        "a question of the batch", plan
    )


def split(questions: Sequence[Any], weights: Sequence[Fraction], goal: Goal) -> list[Plan[Any]]:
    """Plan every question within its part of the total.

    Equal questions are planned once, with the largest of their weights. Of the ways to split a total in
    epsilon and delta (parts of epsilon, each with the noise that is best for it; parts of rho, all Gaussian),
    the one is taken in which the largest loss against being asked alone is smallest.
    """
    plans_alone = [_plan_alone(one, goal) for one in questions]
    if any(len(plan._members) != 1 or plan.instalments for plan in plans_alone):  # noqa: SLF001 - refused later
        return plans_alone
    heaviest: dict[str, Fraction] = {}
    for plan, weight in zip(plans_alone, weights, strict=True):
        heaviest[plan.hash] = max(heaviest.get(plan.hash, Fraction(0)), weight)
    if len(heaviest) == 1:
        return plans_alone
    first_positions = {plan.hash: place for place, plan in reversed(list(enumerate(plans_alone)))}
    parts = _BatchParts(
        [questions[first_positions[digest]] for digest in heaviest],
        [plans_alone[first_positions[digest]] for digest in heaviest],
        list(heaviest.values()),
        goal,
    )
    chosen = dict(zip(heaviest, parts.best(), strict=True))
    return [
        plan if first_positions[one.hash] == place else _plan_again(questions[place], plan, goal)
        for place, one in enumerate(plans_alone)
        for plan in [chosen[one.hash]]
    ]


def _plan_alone(question: Any, goal: Goal) -> Plan[Any]:
    """Plan a question with the whole total; beside rho, many questions take no delta."""
    total = {"epsilon": goal.epsilon, "rho": goal.rho}
    try:
        return planned(question, goal.confidence, delta=goal.delta, **total)
    except TacitError as refusal:
        if goal.rho is None or not goal.delta:
            raise
        with suppress(TacitError):
            return planned(question, goal.confidence, **total)
        raise refusal from None


def _plan_again(question: Any, plan: Plan[Any], goal: Goal) -> Plan[Any]:
    """Plan a question as an equal one was planned, so that its own names and order are kept."""
    own_plan = planned(question, goal.confidence, **dict(plan.promised))
    return own_plan if own_plan.hash == plan.hash else plan


@dataclass(frozen=True, slots=True)
class _BatchParts:
    """Different questions with their weights, and their plans at the whole total."""

    questions: list[Any]
    alone: list[Plan[Any]]
    weights: list[Fraction]
    goal: Goal

    def best(self) -> list[Plan[Any]]:
        """Return the plans of the best split."""
        if self.goal.rho is not None:
            return self._filled(self._by_rho(self.goal.rho, self.goal.delta))
        families = [self._filled(self._by_epsilon)]
        if self.goal.delta:
            delta_left = self.goal.delta / 2 if any(self._with_delta) else self.goal.delta
            cap = rho_cap(self.goal.epsilon or Fraction(0), delta_left) * Fraction(9997, 10_000)
            with suppress(TacitError):  # a question that cannot be planned in rho
                families.append(self._filled(self._by_rho(cap, self.goal.delta - delta_left)))
        return min(families, key=self._loss)

    @property
    def _with_delta(self) -> list[bool]:
        """Which questions take a delta of their own: private groups."""
        return [bool(plan.cost.spend.delta) for plan in self.alone]

    def _by_epsilon(self, scale: Fraction) -> list[Plan[Any]]:
        """Split epsilon in proportion to the weights; a delta in proportion to their squares."""
        goal, total_weight = self.goal, sum(self.weights)
        squares = sum(weight**2 for weight in self.weights)
        delta = goal.delta / 2 if any(self._with_delta) else goal.delta
        return [
            planned(
                question, goal.confidence,
                epsilon=(goal.epsilon or 0) * scale * weight / total_weight,
                delta=delta * weight**2 / squares,
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
        """Scale all parts until their composition just fills the budget; what is returned was checked.

        The search follows the straight line through the last two points, in logarithms, and halves the
        bracket where the line leads out of it.
        """
        low = high = None  # the largest scale that fits, the smallest that does not; with what they use
        scale, best_plans = Fraction(1), None
        for _ in range(_TURNS):
            plans = self._tried(parts, scale, must=best_plans is None and scale <= 1)
            used = math.inf if plans is None else self._used(plans)
            if plans is not None and used <= 1:
                low, best_plans = (scale, used), plans
            else:
                high = (scale, used)
            if low is not None and (used * _FINE >= 1 >= used or (high and high[0] <= low[0] * _FINE)):
                break
            scale = _next_scale(low, high)
        if best_plans is None:
            raise TacitError(
                "no-guarantee",
                "the questions do not fit into the total together, however small their parts are",
                why="a part of their cost does not shrink with epsilon",
                fix="choose a larger delta, or public groups",
            )
        return best_plans

    def _tried(
        self, parts: Callable[[Fraction], list[Plan[Any]]], scale: Fraction, *, must: bool
    ) -> list[Plan[Any]] | None:
        """Return the plans at a scale; None where a question refuses its part, unless it must not."""
        try:
            return parts(scale)
        except TacitError:
            if must:
                raise
            return None

    def _used(self, plans: list[Plan[Any]]) -> float:
        """Return which part of the total the plans use together; at most 1 exactly if they fit."""
        goal = self.goal
        cost = reduce(add, [plan.cost for plan in plans])
        budget = Budget(goal.epsilon, goal.delta, rho=goal.rho)
        spend = cost.spend
        if budget.rho is not None:
            used = math.inf if spend.rho is None else float(spend.rho / budget.rho)
        elif not budget.delta:
            used = math.inf if spend.epsilon is None else float(spend.epsilon / (budget.epsilon or 1))
        else:
            try:
                used = cost.epsilon(delta=budget.delta) / float(budget.epsilon or 1)
            except TacitError:  # more delta than there is
                used = math.inf
        return min(used, 1.0) if cost.fits(budget) else max(used, 1.0 + 2.0**-40)

    def _loss(self, plans: list[Plan[Any]]) -> float:
        """Return the largest weighted loss of a question against being asked alone with the whole total."""
        losses = [0.0]
        for plan, plan_alone, weight in zip(plans, self.alone, self.weights, strict=True):
            for ours, forecast in zip(plan.forecast, plan_alone.forecast, strict=False):
                if ours.error and forecast.error:
                    losses.append(float(weight) * ours.error / forecast.error)
        return max(losses)


def _next_scale(low: tuple[Fraction, float] | None, high: tuple[Fraction, float] | None) -> Fraction:
    """Return the scale to try next, from the best that fits and the worst that does not."""
    if low is None or high is None:
        [(scale, used)] = [one for one in (low, high) if one is not None]
        target = 0.9998 / used if math.isfinite(used) and used > 0 else 0.5
        factor = min(max(target, 0.25), 4.0)  # to the power 1: most costs grow at least in proportion
        return _rounded(float(scale) * (min(factor, 0.99) if low is None else max(factor, 1.002)))
    (lower, at_lower), (upper, at_upper) = low, high
    middle = math.sqrt(float(lower) * float(upper))
    if math.isfinite(at_upper) and 0 < at_lower < at_upper:
        slope = math.log(at_upper / at_lower) / math.log(float(upper / lower))
        guess = float(lower) * (0.9997 / at_lower) ** (1 / slope)
        if float(lower) * 1.0002 < guess < float(upper) * 0.9998:
            middle = guess
    return _rounded(middle)


def _rounded(scale: float) -> Fraction:
    return Fraction(f"{scale:.8g}")
