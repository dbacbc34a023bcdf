"""What remains of a filter's budget in accounting: the largest single charges that fit, and how many fit.

Every number comes from the sums by which the filter admits the next charge. Of a union of filters, each
number is the largest over the filters, so two of them may come from different filters and do not add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting._budget import Budget, Spend
from tacit.accounting._mixture import ANSWERS, readings_of
from tacit.accounting._zcdp import largest_pure, rho_cap
from tacit.accounting.numeric import below, room, round_down, round_up

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.accounting._filters import Filter, PromisedPairs
    from tacit.accounting._mixture import OrderReading


_ZERO = Fraction(0)
_MANY = 2**40  # more charges than anyone counts
_SHORT = 1000  # bits of a denominator that sums keep exactly


@dataclass(frozen=True, slots=True)
class Remaining:
    """The largest single charge of each kind that still fits: a pure epsilon, a delta, a rho (None: none).

    These are charges that others may follow. The first charge of all may take the whole budget instead.
    The text form uses the terms of the budget and rounds down, so that the amount shown still fits. Under a
    budget in epsilon and delta, an epsilon that is left does not add up: it is for one more question.

    Examples
    --------
    >>> from tacit.accounting import Filter
    >>> print(Filter.start(Budget(epsilon=3, delta=1e-6)).after(Spend(epsilon=1)).remaining)
    one more question of up to epsilon 2
    >>> print(Filter.start(Budget(rho=0.1)).after(Spend(rho=0.1)).remaining)
    nothing of rho 0.1
    """

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    of: Budget | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if self.of is None:
            numbers = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
            return (
                ", ".join(f"{name} {rounded_down(value)}" for name, value in numbers.items() if value)
                or "nothing"
            )
        name, remaining, total = self._main(self.of)
        if not remaining:  # a delta alone pays for no answer
            return f"nothing of {name} {rounded_down(total)}"
        if self.of.epsilon is not None and self.of.delta:
            return self._one_question
        text = f"{name} {rounded_down(remaining)} of {rounded_down(total)}"
        if not self.of.delta:
            return text
        return f"{text}; delta up to {rounded_down(self.delta)} of {rounded_down(self.of.delta)}"

    def _main(self, of: Budget) -> tuple[str, Fraction, Fraction]:
        """Return the number in which the budget is counted: its name, what is left, and the total."""
        if of.rho is None:
            return "epsilon", self.epsilon or _ZERO, of.epsilon or _ZERO
        return "rho", self.rho or _ZERO, of.rho

    @property
    def _one_question(self) -> str:
        name, remaining, _ = self._main(self.of or Budget(1))
        return f"one more question of up to {name} {rounded_down(remaining)}" if remaining else ""


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a budget, in questions: one more of a size, *or* some more like a given question.

    Both numbers come from the same sums, and each is the largest. They do not add up.

    Parameters
    ----------
    remaining
        The largest single charges.
    more
        How many questions like the given one fit, one after another; None without such a question.

    Examples
    --------
    >>> from tacit.accounting import Cost, Filter
    >>> cost, promise = Cost.gaussian(sigma=8.9957, sensitivity=1), Budget(0.5, 1e-7)
    >>> state = Filter.start(Budget(epsilon=1, delta=1e-6))
    >>> print(state.after(state.spend_of(cost, promise)).left(cost, promise))
    one more question of up to epsilon 0.5; or 2 more like this one
    """

    remaining: Remaining
    more: int | None = None

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return self.in_words()

    def in_words(self, like: str = "this one") -> str:
        """Return the words of `str`; ``like`` names the question that "more" are like."""
        first = self.remaining._one_question or str(self.remaining)  # noqa: SLF001 - two classes in one part
        if self.more is None:
            return str(self.remaining)
        if not self.more:
            return f"{first}; none like {like}" if self.remaining._one_question else first  # noqa: SLF001
        many = f"{self.more:,}" if self.more < _MANY else "any number of"
        return f"{first}; or {many} more like {like}"


def least_left(levels: Sequence[Left]) -> Left:
    """Return what is left for questions that several accounts pay: the least, of the first one's measure.

    Examples
    --------
    >>> from tacit.accounting import Filter
    >>> least_left([Filter.start(Budget(3)).left(), Filter.start(Budget(2)).left()])
    epsilon 2 of 2
    """
    first = levels[0].remaining
    measure = "rho" if first.of is not None and first.of.rho is not None else "epsilon"
    alike = [
        one.remaining for one in levels if one.remaining.of is None or getattr(one.remaining.of, measure)
    ]
    least = min(alike, key=lambda one: getattr(one, measure) or _ZERO, default=first)
    counts = [one.more for one in levels if one.more is not None]
    return Left(least, min(counts, default=None))


def rounded_down(value: Fraction) -> str:
    """Show six digits, rounded down: a request for the amount shown must not fail because of rounding.

    Examples
    --------
    >>> rounded_down(Fraction(2, 3))
    '0.666666'
    """
    with localcontext() as context:
        context.prec, context.rounding = 6, ROUND_FLOOR
        return f"{float(Decimal(value.numerator) / Decimal(value.denominator)):g}"


def remaining_of(state: Filter) -> Remaining:
    """Return the largest single charge of each kind that still fits, rounded down."""
    budget = state.budget
    if not state.within:  # a first charge took the whole budget
        return Remaining(_ZERO, _ZERO, None if budget.rho is None else _ZERO, budget)
    if state.promised is not None:
        return _of_union(state)
    if budget.rho is not None:
        rho_left, epsilon = _of_rho(state, budget.rho)
        return Remaining(epsilon, room(budget.delta, state.delta), rho_left or _ZERO, budget)
    assert budget.epsilon is not None  # noqa: S101 - a budget has one of the two
    plain = _ZERO if state.epsilon is None else room(budget.epsilon, state.epsilon)
    if not budget.delta:
        return Remaining(plain, _ZERO, None, budget)
    return _by_orders(state, plain) if state.curve else _by_rho(state, plain, budget.epsilon)


def _of_union(state: Filter) -> Remaining:
    """Return the largest charge of each kind that one of the filters of a union admits."""
    each = [member.remaining for member in state.members]
    rhos = [one.rho for one in each if one.rho is not None]
    return Remaining(
        max(one.epsilon or _ZERO for one in each),
        max(one.delta for one in each),
        max(rhos, default=None),
        state.budget,
    )


def _of_rho(state: Filter, cap: Fraction) -> tuple[Fraction | None, Fraction]:
    """Return the rho (None: none) and the pure epsilon that still fit under a cap on the sum of rho."""
    if state.rho is None or state.rho > cap:
        return None, _ZERO
    return room(cap, state.rho), largest_pure(below(cap) - state.rho)


# -- version 1 of (epsilon, delta) budgets: one sum of rho


def _by_rho(state: Filter, plain: Fraction, cap: Fraction) -> Remaining:
    budget = state.budget
    half = budget.delta / 2 - state.delta
    rho, epsilon = _of_rho(state, rho_cap(cap, half)) if half > 0 else (None, _ZERO)
    is_open = state.epsilon is not None and state.epsilon <= cap
    delta = room(budget.delta / 2, state.delta) if is_open else _largest_delta(state, max(_ZERO, half))
    return Remaining(max(plain, epsilon), delta, rho, budget)


def _largest_delta(state: Filter, half: Fraction) -> Fraction:
    """Return a delta that fits if only the rule for rho is left, by bisection from below."""
    low, high = _ZERO, half
    for _ in range(40):
        middle = round_down((low + high) / 2)
        low, high = (middle, high) if state.admits(Spend(0, middle, 0)) else (low, middle)
    return low


# -- version 2: a mixture of Renyi orders


def _by_orders(state: Filter, plain: Fraction) -> Remaining:
    """Return what remains by the mixture of orders; ``plain`` is what remains by adding epsilons."""
    delta = room(state.budget.delta * ANSWERS, state.delta) if state.within else _ZERO
    slack = _slack(state)
    if not slack:
        return Remaining(plain, delta, None, state.budget)
    orders = [order for order, _ in state.curve]
    rho = max(left / sum(share * orders[place] for place, share in of.shares) for of, left in slack)
    rho = _fit_or_shorten(state, rho, lambda x: Spend(rho=x))
    if largest := _largest_epsilon(slack, orders, float(plain)):
        plain = max(plain, _fit_or_shorten(state, Fraction(largest), Spend))
    return Remaining(plain, delta, rho, state.budget)


def _slack(state: Filter) -> list[tuple[OrderReading, Fraction]]:
    """Return the readings that hold, and what is left of the cap of each."""
    if state.delta > state.budget.delta * ANSWERS:
        return []
    assert state.budget.epsilon is not None  # noqa: S101 - only budgets in epsilon and delta have orders
    readings = readings_of(state.budget.epsilon, state.budget.delta, state.curve)
    totals = ((reading, reading.total(state.curve)) for reading in readings)
    return [
        (reading, reading.cap - total)
        for reading, total in totals
        if total is not None and total <= reading.cap
    ]


def _fit_or_shorten(state: Filter, value: Fraction, charge: Callable[[Fraction], Spend]) -> Fraction:
    """Return the value if its charge fits, else the value less the digits that rounding may add."""
    for digits in (None, 26, 13, 9, 6):
        less = value if digits is None else round_down(value - value / 10**digits)
        if less.denominator.bit_length() <= _SHORT and state.admits(charge(less)):
            return less
    return _ZERO


def _largest_epsilon(
    slack: list[tuple[OrderReading, Fraction]], orders: list[Fraction], lower: float
) -> float:
    """Return about the largest pure epsilon above ``lower`` that fits one of the readings (0: none).

    It is in floating point: the caller checks it. The slope of a divergence varies little, so false position
    (with the Illinois rule) takes few steps.
    """
    if orders[-1] > 2**1000:
        return 0.0
    steps = [float(order - 1) for order in orders]
    rooms = [([(place, float(share)) for place, share in of.shares], float(left)) for of, left in slack]

    def left_after(e: float) -> float:
        log_sum = math.log1p(math.exp(-e))
        curve = [e + (math.log1p(math.exp(-(2 * z + 1) * e)) - log_sum) / z for z in steps]
        return max(left - sum(share * curve[place] for place, share in shares) for shares, left in rooms)

    low, high = lower, max(left + 0.7 / min(steps[place] for place, _ in shares) for shares, left in rooms)
    above, under = left_after(low), left_after(high)
    if above <= 0:
        return 0.0
    for _ in range(60):
        if high - low <= 1e-12 * high:
            break
        middle = low + (high - low) * above / (above - under)
        slack_left = left_after(middle)
        if not slack_left:  # a large epsilon meets the cap to the last digit
            return middle
        if slack_left > 0:
            low, above, under = middle, slack_left, under / 2
        else:
            high, under, above = middle, slack_left, above / 2
    return low


# -- many charges


def count_of_pairs(pairs: PromisedPairs, spend: Spend) -> int:
    """Return how many charges with the same promise fit by adding up promised pairs; at most 2^40."""
    epsilon, delta = spend.promised
    assert pairs.budget.epsilon is not None  # noqa: S101 - a share of a budget in epsilon and delta
    if epsilon is None or not pairs.within or pairs.epsilon is None:
        return 0
    counts = [_MANY]
    for cap, total, more in (
        (pairs.budget.epsilon, pairs.epsilon, epsilon),
        (pairs.budget.delta, pairs.delta, delta),
    ):
        if more:
            counts.append(math.floor((cap - total) / _safe(total, more, cap)))
    return min(counts)


def count_of(state: Filter, spend: Spend) -> int:
    """Return how many such charges, one by one, still fit; at most 2^40."""
    if spend.epsilon == 0 and not spend.delta:  # charges of nothing
        return _MANY
    if state.promised is not None:
        return max(member.count(spend) for member in state.members)
    exact_spend = _without_rounding(state, spend)
    if (exactly := _of_sums(state, exact_spend)) is not None:
        return min(exactly, _MANY)

    def fits(times: int) -> bool:
        return state.added(_multiple(exact_spend, times)).within

    low, high = (
        0,
        min(_estimated_count(state, exact_spend) + 1, _MANY + 1),
    )  # most often, the first guess is right
    if high > 1 and fits(high - 1):
        low = high - 1
    elif high > 1:
        low, high = 0, 1
    step = 1
    while high <= _MANY and fits(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1 and low < _MANY:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return min(low, _MANY)


def _of_sums(state: Filter, spend: Spend) -> int | None:
    """Return how many fit where only epsilons add up, and exactly; None where the rule is another."""
    cap, total, more = state.budget.epsilon, state.epsilon, spend.epsilon
    if cap is None or state.budget.delta or spend.delta or total is None or not more:
        return None
    if math.lcm(total.denominator, more.denominator).bit_length() > _SHORT:
        return None
    return max(0, math.floor((cap - total) / more))


def _estimated_count(state: Filter, spend: Spend) -> int:
    """Return about how many such charges fit: every rule bounds a sum, so the room divides by one charge.

    It is in floating point and only says where to look.
    """
    budget = state.budget

    def times(total: Fraction | None, more: Fraction | None, cap: Fraction | None) -> float:
        if total is None or more is None or cap is None:
            return 0.0
        return float(max(cap - total, _ZERO)) / float(more) if more else math.inf

    if budget.rho is not None:
        times_fitting = times(state.rho, spend.rho, budget.rho)
    else:
        times_fitting = times(state.epsilon, spend.epsilon, budget.epsilon)
        charge = [value for _, value in spend.curve]
        for reading, slack in _slack(state) if state.curve else ():
            parts = [(share, charge[place]) for place, share in reading.shares]
            if all(value is not None for _, value in parts):
                times_fitting = max(
                    times_fitting, times(_ZERO, sum((share * (v or 0) for share, v in parts), _ZERO), slack)
                )
    if spend.delta:
        cap = budget.delta if budget.rho is not None else budget.delta * ANSWERS
        times_fitting = min(times_fitting, times(state.delta, spend.delta, cap))
    return int(min(times_fitting * (1 + 1e-12), float(_MANY)))


def _without_rounding(state: Filter, spend: Spend) -> Spend:
    """Return a charge of which many add up to at least what they add up to one by one.

    Sums with short denominators are exact. Any other sum is rounded up by less than 10^-28 of itself, and a
    sum that matters is below 1000 times its cap.
    """
    budget = state.budget
    budget_total = (budget.epsilon if budget.rho is None else budget.rho) or _ZERO

    def safe(total: Fraction | None, more: Fraction | None, cap: Fraction) -> Fraction | None:
        return None if total is None or more is None else _safe(total, more, cap)

    curve = [(order, safe(total, spend.divergence(order), budget_total)) for order, total in state.curve]
    delta = safe(state.delta, spend.delta, budget.delta) or _ZERO
    epsilon, rho = safe(state.epsilon, spend.epsilon, budget_total), safe(state.rho, spend.rho, budget_total)
    return Spend(epsilon, min(delta, Fraction(1)), rho, curve)


def _safe(total: Fraction, more: Fraction, cap: Fraction) -> Fraction:
    short = math.lcm(total.denominator, more.denominator).bit_length() <= _SHORT
    return more if short else round_up(more + cap / 10**24)


def _multiple(spend: Spend, times: int) -> Spend:
    """Return what many equal charges take together."""

    def many(value: Fraction | None) -> Fraction | None:
        return None if value is None or times * value > 2**1000 else times * value

    curve = [(order, many(value)) for order, value in spend.curve]
    return Spend(many(spend.epsilon), min(Fraction(1), times * spend.delta), many(spend.rho), curve)
