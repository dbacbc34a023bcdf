"""The function `explain`: what a cost means for one person, computed from public facts only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit.accounting import Budget, Cost, Filter
from tacit.core import Plan
from tacit.exact import Number, count
from tacit.explain._explanation import Explanation, FamilyReading, OddsLimit
from tacit.explain._odds import believe, best_test, epsilon_at, exceeded_with, pure_epsilon, read_share
from tacit.explain._question import ExplainedQuestion
from tacit.explain._subject import about, cost_of, counts_of, forecasts_of, promise_of
from tacit.explain._tradeoff import half_width

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.explain._subject import Explainable

_FALSE_ALARMS = (0.01, 0.05, 0.1, 0.2)


def explain(
    subject: Explainable,
    *,
    priors: Iterable[Number] = (0.01, 0.1, 0.5, 0.9),
    families: Iterable[int] = (1, 2, 5, 10),
    delta: Number = 1e-6,
    question: ExplainedQuestion | None = None,
    budget: Budget | Filter | None = None,
) -> Explanation:
    """Explain what a cost means: odds, bits, tests, families, errors, and published figures to compare with.

    Every figure is a bound that holds whatever the attacker knows. Nothing is computed from data.

    Parameters
    ----------
    subject
        A `Cost`, a `Budget`, anything with a ``cost`` (a mechanism, a plan), a release or its certificate.
    priors
        What attackers may have believed before.
    families
        Sizes of groups of people.
    delta
        If the cost is not pure: the delta at which epsilon is read.
    question
        What is asked, for the expected error; a count if not given.
    budget
        If given, report how many such costs it can pay, one after the other; a `Filter` is the rest of a
        budget.

    Examples
    --------
    >>> import tacit as tc
    >>> print(tc.explain(tc.Cost.pure(0.5)).sentence)
    An attacker who gave 50:50 odds that you are in the data can reach at most 62:38 (62.3 %).
    """
    cost = cost_of(subject)
    epsilon = pure_epsilon(cost)
    asked_delta = read_share("delta", delta, example=1e-6)
    read_at = 0.0 if epsilon is not None else asked_delta
    before = tuple(read_share("priors", prior, example=(0.1, 0.5)) for prior in priors)
    sizes = tuple(count("families", size, zero=False) for size in families)
    asked = ExplainedQuestion("count") if question is None else question
    forecasts, promise = forecasts_of(subject), promise_of(subject)
    has_errors = bool(forecasts) or (promise is not None and question is None)
    power = best_test(cost)
    return Explanation(
        cost=cost,
        epsilon=epsilon_at(cost, read_at),
        delta=read_at,
        advantage=cost.advantage,
        bits=None if epsilon is None else cost.bits,
        beliefs=() if epsilon is None else tuple(believe(prior, epsilon) for prior in before),
        limits=_limits(cost, epsilon, asked_delta),
        tests=tuple((rate, power(rate)) for rate in _FALSE_ALARMS),
        families=tuple(_family(cost, size, read_at) for size in sizes),
        errors=_errors(epsilon, asked) if epsilon and not has_errors else (),
        forecasts=forecasts,
        confidence=float(subject.confidence) if isinstance(subject, Plan) else 0.95,
        question=asked,
        fits=None if budget is None else _fits(cost, budget),
        about=about(subject),
        counts=() if promise is None else counts_of(promise),
    )


def _limits(cost: Cost, epsilon: float | None, delta: float) -> tuple[OddsLimit, ...]:
    """Return how far the odds move except in rare cases, where that is clearly less than a pure epsilon."""
    chances = sorted({1e-2, 1e-4, delta}, reverse=True)
    limits = tuple(OddsLimit(chance, exceeded_with(cost, chance)) for chance in chances)
    if epsilon is None:
        return limits
    return tuple(limit for limit in limits if limit.loss is not None and limit.loss < 0.95 * epsilon)


def _family(cost: Cost, size: int, delta: float) -> FamilyReading:
    together = cost.group(size)
    epsilon = epsilon_at(together, delta)
    if math.isinf(epsilon):  # delta grows with the group, so read epsilon at the group's own delta
        spend = together.spend
        if spend.epsilon is not None and spend.delta < 1:
            epsilon, delta = float(spend.epsilon), float(spend.delta)
    return FamilyReading(size, epsilon, delta, together.advantage)


def _errors(epsilon: float, question: ExplainedQuestion) -> tuple[tuple[float, float], ...]:
    return tuple((times * epsilon, half_width(question, times * epsilon)) for times in (0.25, 0.5, 1, 2, 4))


def _fits(cost: Cost, budget: Budget | Filter) -> int:
    """Count how many such costs, one after the other, a budget (or the rest of one) can pay."""
    return (budget if isinstance(budget, Filter) else Filter.start(budget)).how_many(cost)
