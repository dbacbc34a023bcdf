"""The smallest budget that pays for given charges, by the filters that ledgers use."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting import Budget, Filter, Spend

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.accounting import Cost

_MOST = 2**20  # no budget beyond it


def charged_all(state: Filter, charges: Sequence[tuple[Cost, int]]) -> Filter:
    """Return a filter after all charges, each a number of times; ``within`` says whether they fit."""
    for cost, times in charges:
        spend = state.spend_of(cost)
        for _ in range(times):
            state = state.added(spend)
    return state


def needed_budget(state: Filter, charges: Sequence[tuple[Cost, int]]) -> Fraction | None:
    """Return the smallest epsilon (or rho) with which a budget pays for the charges; its delta stays.

    What was spent before counts too. None stands for "no epsilon is enough": the delta, or the kind of the
    budget, stands in the way. With a delta the number has four digits, rounded up and checked.

    Examples
    --------
    >>> from tacit.accounting import Cost
    >>> needed_budget(Filter.start(Budget(epsilon=1)), [(Cost.pure(0.3), 4)])
    Fraction(6, 5)
    """
    whole, budget = charged_all(state, charges), state.budget
    if budget.rho is not None:
        return whole.rho if whole.delta <= budget.delta else None
    if not budget.delta:
        return None if whole.delta else whole.epsilon
    if whole.epsilon == 0 and not whole.delta:
        return Fraction(0)

    def fits(epsilon: Fraction) -> bool:
        start = Filter.start(Budget(epsilon, budget.delta))
        before = start.added(Spend(state.epsilon, min(state.delta, Fraction(1)), state.rho))
        return charged_all(before, charges).within

    return _smallest(fits, budget.epsilon or Fraction(1))


def _smallest(fits: Callable[[Fraction], bool], start: Fraction) -> Fraction | None:
    """Find the smallest number of four digits that fits, to a tenth of a percent."""
    high = start
    while not fits(high):
        high *= 2
        if high > _MOST:
            return None
    low = high / 2
    while low > Fraction(1, 2**30) and fits(low):
        low, high = low / 2, low
    while high / low > Fraction(1001, 1000):
        middle = Fraction(math.sqrt(float(low) * float(high))).limit_denominator(10**9)
        low, high = (low, middle) if fits(middle) else (middle, high)
    short = rounded_up(high)
    return short if fits(short) else high


def rounded_up(value: Fraction) -> Fraction:
    """Return a number in four digits, rounded up.

    Examples
    --------
    >>> rounded_up(Fraction(2, 3))
    Fraction(6667, 10000)
    """
    if value <= 0:
        return value
    digits = 3 - math.floor(math.log10(value))
    step = Fraction(10) ** -digits
    return math.ceil(value / step) * step
