"""What a cost means for one person, computed from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Protocol

from tacit.accounting import Budget, Cost, Filter, Spend
from tacit.core import Certificate, Plan, Release
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count
from tacit.explain.explanation import Explanation, Family, Limit
from tacit.explain.odds import believe, best_test, epsilon_at, exceeded_with, pure_epsilon, read_share
from tacit.explain.question import Question
from tacit.explain.tradeoff import half_width
from tacit.mechanisms import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Priced", "explain"]


_COUNTED: Final = {"rows": "number of rows", "units": "number of people (units)"}


class Priced(Protocol):
    """Whatever has a cost: a mechanism, a plan, a release."""

    @property
    def cost(self) -> Cost:
        """What it takes from a budget."""


def explain(
    subject: Cost | Budget | Priced | Release | Certificate,
    *,
    priors: Iterable[Number] = (0.01, 0.1, 0.5, 0.9),
    families: Iterable[int] = (1, 2, 5, 10),
    delta: Number = 1e-6,
    question: Question | None = None,
    budget: Budget | Filter | None = None,
) -> Explanation:
    """Say what a cost means: odds, bits, tests, families, error, and how it compares.

    Every figure is a bound that holds whatever the attacker knows. Nothing is computed from data.

    Parameters
    ----------
    subject
        A `Cost`, a `Budget`, whatever has a ``cost`` (a mechanism, a plan), a release or its certificate.
    priors
        What attackers may have believed before.
    families
        Sizes of groups.
    delta
        Where the cost is not pure: the delta at which epsilon is read.
    question
        What is asked, for the expected error; a count if not given.
    budget
        Say how many such costs it can pay, asked one after the other; a `Filter` is what is left of a budget.

    Examples
    --------
    >>> import tacit as tc
    >>> print(tc.explain(tc.Cost.pure(0.5)).sentence)
    An attacker who gave 50:50 that you are in the data can reach at most 62:38 (62.3 %).
    """
    cost = _cost_of(subject)
    epsilon = pure_epsilon(cost)
    read_at = 0.0 if epsilon is not None else read_share("delta", delta)
    before = tuple(read_share("priors", prior) for prior in priors)
    asked = Question("count") if question is None else question
    forecasts = subject.columns if isinstance(subject, Plan) else ()
    promise = subject.certificate if isinstance(subject, Release) else subject
    unasked = isinstance(promise, Certificate) and question is None  # a release has errors of its own
    power = best_test(cost)
    sizes = tuple(count("families", size, zero=False) for size in families)
    return Explanation(
        cost=cost,
        epsilon=epsilon_at(cost, read_at),
        delta=read_at,
        advantage=cost.advantage,
        bits=None if epsilon is None else cost.bits,
        beliefs=() if epsilon is None else tuple(believe(prior, epsilon) for prior in before),
        limits=_limits(cost, epsilon, read_share("delta", delta)),
        tests=tuple((rate, power(rate)) for rate in (0.01, 0.05, 0.1, 0.2)),
        families=tuple(_family(cost, size, read_at) for size in sizes),
        errors=_errors(epsilon, asked) if epsilon and not forecasts and not unasked else (),
        forecasts=forecasts,
        confidence=float(subject.confidence) if isinstance(subject, Plan) else 0.95,
        question=asked,
        fits=None if budget is None else _fits(cost, budget),
        about=_about(subject),
        counts=_counts(promise) if isinstance(promise, Certificate) else (),
    )


def _about(subject: object) -> str:
    """Say of which dataset a plan, a release or a certificate is, and who is protected."""
    if isinstance(subject, Release):
        subject = subject.certificate
    facts: object = subject.identity.document() if isinstance(subject, Plan) else None
    if isinstance(subject, Certificate):
        facts = subject.fields["dataset"]
    if not isinstance(facts, Mapping):
        return ""
    unit = facts.get("unit")
    whom = f"everything of one {unit} together" if unit and unit != "row" else "each row by itself"
    what = "plan" if isinstance(subject, Plan) else "release"
    return f"A {what} of the dataset {facts.get('name')}, which protects {whom}."


def _counts(certificate: Certificate) -> tuple[tuple[str, float], ...]:
    """Within what the counts of a release stay with 95 %, by the noise that its certificate names."""
    found = []
    stated = certificate.fields["mechanisms"]
    for one in stated if isinstance(stated, list | tuple) else ():
        what = _COUNTED.get(str(one.get("statistic"))) if isinstance(one, Mapping) else None
        if what is None or one.get("law") != "laplace" or one.get("grid") is not None:
            continue
        try:
            scale = Fraction(str(one.get("scale")))
            found.append((what, DiscreteLaplace(epsilon=1 / scale, sensitivity=1).error(Fraction(19, 20))))
        except (
            ArithmeticError,
            ValueError,
            TacitError,
        ):  # written by another hand: say nothing rather than guess
            continue
    return tuple(found)


def _cost_of(subject: Cost | Budget | Priced | Release | Certificate) -> Cost:
    if isinstance(subject, Cost):
        return subject
    if isinstance(subject, Release):
        subject = subject.certificate
    if isinstance(subject, Certificate):
        return Cost.from_json(subject.fields["cost"])
    if isinstance(subject, Budget):
        return _whole(subject)
    cost = getattr(subject, "cost", None)
    if isinstance(cost, Cost):
        return cost
    raise bad_parameter(
        "subject",
        "a cost, a budget, or something that has a cost",
        type(subject).__name__,
        fix="tc.Cost.pure(0.5)",
    )


def _whole(budget: Budget) -> Cost:
    """Return the cost of spending a whole budget."""
    if budget.rho is not None:
        inner = Cost.zcdp(budget.rho)
        return inner + Cost.approximate(0, budget.delta) if budget.delta else inner
    return Cost.approximate(budget.epsilon or 0, budget.delta)


def _limits(cost: Cost, epsilon: float | None, delta: float) -> tuple[Limit, ...]:
    """Say how far the odds move but for rare cases, where that is clearly less than a pure epsilon says."""
    chances = sorted({1e-2, 1e-4, delta}, reverse=True)
    limits = tuple(Limit(chance, exceeded_with(cost, chance)) for chance in chances)
    if epsilon is None:
        return limits
    return tuple(limit for limit in limits if limit.loss is not None and limit.loss < 0.95 * epsilon)


def _family(cost: Cost, size: int, delta: float) -> Family:
    together = cost.group(size)
    epsilon = epsilon_at(together, delta)
    if math.isinf(epsilon):  # delta grows with the group, so read where the group's own delta lies
        spend = together.spend
        if spend.epsilon is not None and spend.delta < 1:
            epsilon, delta = float(spend.epsilon), float(spend.delta)
    return Family(size, epsilon, delta, together.advantage)


def _errors(epsilon: float, question: Question) -> tuple[tuple[float, float], ...]:
    return tuple((times * epsilon, half_width(question, times * epsilon)) for times in (0.25, 0.5, 1, 2, 4))


def _fits(cost: Cost, budget: Budget | Filter) -> int:
    """Count how many such costs, one after the other, a budget (or what is left of it) admits."""
    left = budget if isinstance(budget, Filter) else Filter.start(budget)
    one = cost.spend

    def admits(times: int) -> bool:
        sums = [None if part is None else times * part for part in (one.epsilon, one.rho)]
        return times * one.delta <= 1 and left.admits(Spend(sums[0], times * one.delta, sums[1]))

    if not admits(1):
        return 0
    low, high = 1, 2
    while high < 2**40 and admits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if admits(middle) else (low, middle)
    return low
