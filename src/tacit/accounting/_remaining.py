"""What remains of a filter's budget in accounting: the largest single charges that fit, and how many fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting._budget import Budget, Spend
from tacit.accounting._mixture import ANSWERS, OrderReading, readings_of
from tacit.accounting._zcdp import largest_pure, rho_cap
from tacit.accounting.numeric import below, room, round_down, round_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting._filters import Filter

_ZERO = Fraction(0)
_MANY = 2**40  # more charges than anyone counts
_SHORT = 1000  # bits of a denominator that sums keep exactly


@dataclass(frozen=True, slots=True)
class Remaining:
    """The largest single charge of each kind that still fits: a pure epsilon, a delta, a rho (None: none).

    These are charges that others may follow. The first charge of all may take the whole budget instead.
    The text form uses the terms of the budget and rounds down, so that the amount shown still fits.

    Examples
    --------
    >>> from tacit.accounting import Filter
    >>> print(Filter.start(Budget(epsilon=3, delta=1e-6)).after(Spend(epsilon=1)).remaining)
    epsilon 2 of 3; delta up to 5e-07 of 1e-06
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
            known = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
            return (
                ", ".join(f"{name} {rounded_down(value)}" for name, value in known.items() if value)
                or "nothing"
            )
        name, left, whole = (
            ("epsilon", self.epsilon, self.of.epsilon)
            if self.of.rho is None
            else ("rho", self.rho, self.of.rho)
        )
        if not left:  # a delta alone pays for no answer
            return f"nothing of {name} {rounded_down(whole or _ZERO)}"
        text = f"{name} {rounded_down(left)} of {rounded_down(whole or _ZERO)}"
        if not self.of.delta:
            return text
        return f"{text}; delta up to {rounded_down(self.delta)} of {rounded_down(self.of.delta)}"


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
    if budget.rho is not None:
        left, epsilon = _of_rho(state, budget.rho)
        return Remaining(epsilon, room(budget.delta, state.delta), left or _ZERO, budget)
    assert budget.epsilon is not None  # noqa: S101 - a budget has one of the two
    plain = _ZERO if state.epsilon is None else room(budget.epsilon, state.epsilon)
    if not budget.delta:
        return Remaining(plain, _ZERO, None, budget)
    return _by_orders(state, plain) if state.curve else _by_rho(state, plain, budget.epsilon)


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
    rho = _fitting(state, rho, lambda x: Spend(rho=x))
    if largest := _largest_epsilon(slack, orders, float(plain)):
        plain = max(plain, _fitting(state, Fraction(largest), Spend))
    return Remaining(plain, delta, rho, state.budget)


def _slack(state: Filter) -> list[tuple[OrderReading, Fraction]]:
    """Return the readings that hold, and what is left of the cap of each."""
    if state.delta > state.budget.delta * ANSWERS:
        return []
    readings = readings_of(state.budget, state.curve)
    totals = ((reading, reading.total(state.curve)) for reading in readings)
    return [
        (reading, reading.cap - total)
        for reading, total in totals
        if total is not None and total <= reading.cap
    ]


def _fitting(state: Filter, value: Fraction, charge: Callable[[Fraction], Spend]) -> Fraction:
    """Return the value if its charge fits, else the value less the digits that rounding may add."""
    for digits in (None, 26, 13, 9, 6):
        less = value if digits is None else round_down(value - value / 10**digits)
        if less.denominator.bit_length() <= _SHORT and state.admits(charge(less)):
            return less
    return _ZERO


def _largest_epsilon(
    slack: list[tuple[OrderReading, Fraction]], orders: list[Fraction], least: float
) -> float:
    """Return about the largest pure epsilon above ``least`` that fits one of the readings (0: none).

    It is in floating point: the caller checks it. The slope of a divergence varies little, so false position
    (with the Illinois rule) takes few steps.
    """
    if orders[-1] > 2**1000:
        return 0.0
    steps = [float(order - 1) for order in orders]
    rooms = [([(place, float(share)) for place, share in of.shares], float(left)) for of, left in slack]

    def left_after(e: float) -> float:
        near = math.log1p(math.exp(-e))
        curve = [e + (math.log1p(math.exp(-(2 * z + 1) * e)) - near) / z for z in steps]
        return max(left - sum(share * curve[place] for place, share in shares) for shares, left in rooms)

    low, high = least, max(left + 0.7 / min(steps[place] for place, _ in shares) for shares, left in rooms)
    above, under = left_after(low), left_after(high)
    if above <= 0:
        return 0.0
    for _ in range(60):
        if high - low <= 1e-12 * high:
            break
        middle = low + (high - low) * above / (above - under)
        found = left_after(middle)
        if not found:  # a large epsilon meets the cap to the last digit
            return middle
        if found > 0:
            low, above, under = middle, found, under / 2
        else:
            high, under, above = middle, found, above / 2
    return low


# -- many charges


def count_of(state: Filter, spend: Spend) -> int:
    """Return how many such charges, one by one, still fit; at most 2^40."""
    if spend.epsilon == 0 and not spend.delta:  # charges of nothing
        return _MANY
    one = _without_rounding(state, spend)
    if (exactly := _of_sums(state, one)) is not None:
        return min(exactly, _MANY)

    def fits(times: int) -> bool:
        return state.added(_times(one, times)).within

    low, high = 0, min(_about(state, one) + 1, _MANY + 1)  # most often, the first guess is right
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


def _of_sums(state: Filter, one: Spend) -> int | None:
    """Return how many fit where only epsilons add up, and exactly; None where the rule is another."""
    cap, total, more = state.budget.epsilon, state.epsilon, one.epsilon
    if cap is None or state.budget.delta or one.delta or total is None or not more:
        return None
    if math.lcm(total.denominator, more.denominator).bit_length() > _SHORT:
        return None
    return max(0, math.floor((cap - total) / more))


def _about(state: Filter, one: Spend) -> int:
    """Return about how many such charges fit: every rule bounds a sum, so the room divides by one charge.

    It is in floating point and only says where to look.
    """
    budget = state.budget

    def times(total: Fraction | None, more: Fraction | None, cap: Fraction | None) -> float:
        if total is None or more is None or cap is None:
            return 0.0
        return float(max(cap - total, _ZERO)) / float(more) if more else math.inf

    if budget.rho is not None:
        most = times(state.rho, one.rho, budget.rho)
    else:
        most = times(state.epsilon, one.epsilon, budget.epsilon)
        charge = [value for _, value in one.curve]
        for reading, left in _slack(state) if state.curve else ():
            parts = [(share, charge[place]) for place, share in reading.shares]
            if all(value is not None for _, value in parts):
                most = max(most, times(_ZERO, sum((share * (v or 0) for share, v in parts), _ZERO), left))
    if one.delta:
        cap = budget.delta if budget.rho is not None else budget.delta * ANSWERS
        most = min(most, times(state.delta, one.delta, cap))
    return int(min(most * (1 + 1e-12), float(_MANY)))


def _without_rounding(state: Filter, spend: Spend) -> Spend:
    """Return a charge of which many add up to at least what they add up to one by one.

    Sums with short denominators are exact. Any other sum is rounded up by less than 10^-28 of itself, and a
    sum that matters is below 1000 times its cap.
    """
    budget = state.budget
    whole = (budget.epsilon if budget.rho is None else budget.rho) or _ZERO

    def safe(total: Fraction | None, more: Fraction | None, cap: Fraction) -> Fraction | None:
        if total is None or more is None:
            return None
        short = math.lcm(total.denominator, more.denominator).bit_length() <= _SHORT
        return more if short else round_up(more + cap / 10**24)

    curve = [(order, safe(total, spend.divergence(order), whole)) for order, total in state.curve]
    delta = safe(state.delta, spend.delta, budget.delta) or _ZERO
    epsilon, rho = safe(state.epsilon, spend.epsilon, whole), safe(state.rho, spend.rho, whole)
    return Spend(epsilon, min(delta, Fraction(1)), rho, curve)


def _times(spend: Spend, times: int) -> Spend:
    """Return what many equal charges take together."""

    def many(value: Fraction | None) -> Fraction | None:
        return None if value is None or times * value > 2**1000 else times * value

    curve = [(order, many(value)) for order, value in spend.curve]
    return Spend(many(spend.epsilon), min(Fraction(1), times * spend.delta), many(spend.rho), curve)
