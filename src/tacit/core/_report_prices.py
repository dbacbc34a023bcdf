"""The price of a report in a schedule: the plan that keeps its error and takes least of the budget."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting import Filter
from tacit.core._batch_split import planned
from tacit.core._budget_need import charged_all, rounded_up
from tacit.core._goal import WITHIN
from tacit.core._question import Question
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Set

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.accounting import Cost
    from tacit.core._budget_schedule import AskedReport
    from tacit.core._plan import Plan

_LOWEST, _HIGHEST = Fraction(1, 2**30), Fraction(2**12)


def plans_of(asked: AskedReport, state: Filter) -> list[Plan[Any]]:
    """Return plans of one release: at the price that was given, or such that just keep the error.

    A budget with a delta or in rho may pay less for Gaussian noise (the last plan) than for noise of a pure
    epsilon (the first). The plan of which it pays for more releases is in the middle.
    """
    if asked.within is None:
        return [_priced(asked, epsilon=asked.epsilon, rho=asked.rho)]
    budget = state.budget
    plans = []
    if budget.rho is None or not asked.delta:
        plans.append(_within_by_epsilon(asked))
    if budget.rho is not None or budget.delta:
        try:
            plans.append(_searched(asked, "rho"))
        except TacitError:
            if not plans:
                raise
    whole = Filter.start(budget)

    def rank(plan: Plan[Any]) -> tuple[int, float]:
        rho = plan.cost.spend.rho
        return -whole.how_many(plan.cost), math.inf if rho is None else float(rho)

    return [plans[0], min(plans, key=rank), plans[-1]] if len(plans) > 1 else plans


def _priced(asked: AskedReport, **price: Fraction | None) -> Plan[Any]:
    size = None if asked.size is None else Fraction(asked.size)
    if size is not None and hasattr(asked.question, "plan"):
        return _sized(asked, price)
    return planned(asked.question, asked.confidence, delta=asked.delta, **price)


def _sized(asked: AskedReport, price: dict[str, Fraction | None]) -> Plan[Any]:
    """Plan a question with its public guess of the number of rows."""

    def with_size(**given: Any) -> Any:
        return asked.question.plan(size=asked.size, **given)

    return planned(with_size, asked.confidence, delta=asked.delta, **price)


def _within_by_epsilon(asked: AskedReport) -> Plan[Any]:
    """Let the question find its epsilon, if it can; else search it."""
    question = asked.question
    if isinstance(question, Question) and WITHIN in question.kind.takes:
        return _priced(asked, within=asked.within)
    return _searched(asked, "epsilon")


def _searched(asked: AskedReport, kind: str) -> Plan[Any]:
    """Find the smallest epsilon or rho at which every column stays within the error; checked forward."""
    assert asked.within is not None  # noqa: S101 - the caller knows
    within = float(asked.within)

    def keeping(price: Fraction) -> Plan[Any] | None:
        plan = _priced(asked, **{kind: price})
        return plan if largest_error(plan) <= within else None

    high, low = Fraction(1), Fraction(1, 2)
    kept = keeping(high)
    while kept is None:
        low, high = high, high * 4
        if high > _HIGHEST:
            raise bad_parameter(
                f"within of {asked.name}", "an error that can be reached", within, fix=Set(within=10 * within)
            )
        kept = keeping(high)
    while low > _LOWEST and (more := keeping(low)) is not None:
        low, high, kept = low / 4, low, more
    while high / low > Fraction(1001, 1000):
        middle = _between(low, high)
        more = keeping(middle)
        low, high, kept = (middle, high, kept) if more is None else (low, middle, more)
    return keeping(rounded_up(high)) or kept


def largest_error(plan: Plan[Any]) -> float:
    """Return the largest expected error of a plan's columns, or refuse where one cannot be known."""
    errors = [(one.column, one.error, one.note) for one in plan.forecast]
    for column, error, note in errors:
        if error is None:
            raise TacitError(
                "bad-parameter",
                f"the error of {column} is not known from public facts",
                why=note,
                fix=Set(size=1000),
            )
    if not errors:
        raise TacitError(
            "bad-parameter", "a plan without columns has no error to stay within", fix=Set(epsilon=0.5)
        )
    return max(float(error or 0) for _, error, _ in errors)


def most_that_fits(
    asked: AskedReport, plan: Plan[Any], states: Sequence[Filter], others: Sequence[tuple[Cost, int]]
) -> Plan[Any] | None:
    """Return the plan of the largest price at which all releases of a report fit beside others; None: none.

    Parameters
    ----------
    asked, plan
        The report, and the plan of one release that does not fit as often as it is wanted.
    states, others
        The budgets, all of which pay, and what else they pay for.
    """
    rooms = [charged_all(state, others) for state in states]
    if not all(room.within for room in rooms):
        return None
    kind = "rho" if "rho" in plan.promised else "epsilon"

    def fitting(price: Fraction) -> Plan[Any] | None:
        tried = _priced(asked, **{kind: price})
        kept = all(charged_all(room, [(tried.cost, asked.times)]).within for room in rooms)
        return tried if kept else None

    high = plan.promised[kind]
    return _largest(fitting, high)


def _largest(fitting: Callable[[Fraction], Plan[Any] | None], high: Fraction) -> Plan[Any] | None:
    """Find the plan of the largest price below one that does not fit, in three digits."""
    low, kept = high, None
    while kept is None:
        low = _three_digits(low / 2)
        if low < _LOWEST:
            return None
        try:
            kept = fitting(low)
        except TacitError:  # noise beyond what can be drawn
            return None
    high = min(high, 2 * low)
    while high / low > Fraction(101, 100):
        middle = _three_digits(_between(low, high))
        if not low < middle < high:
            break
        more = fitting(middle)
        low, high, kept = (low, middle, kept) if more is None else (middle, high, more)
    return kept


def _between(low: Fraction, high: Fraction) -> Fraction:
    return Fraction(f"{math.sqrt(float(low) * float(high)):.6g}")


def _three_digits(value: Fraction) -> Fraction:
    return Fraction(f"{float(value):.3g}")
