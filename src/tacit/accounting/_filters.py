"""Privacy filters in accounting: budgets that hold even if every query depends on all earlier answers.

Each charge is fixed before its query runs. A filter adds up the charges in exact arithmetic and admits a new
one while the sums stay within the budget. It never composes loss distributions, because those need all
queries declared in advance. The proof is `docs/proofs/filters.md`. Rules (sums include the new charge):

- ``Budget(epsilon)``: every delta is 0 and the sum of epsilon stays within the budget
- ``Budget(rho)``, ``Budget(rho, delta)``: the sums of rho and delta stay within the budget
- ``Budget(epsilon, delta)``: the sum of delta stays within delta/2, **and** the sum of epsilon stays within
  epsilon **or** one reading of the sums at a few fixed Renyi orders stays within its cap (the mixture)
- ``Budget(epsilon, delta)``, stored as version 1 by an earlier release: the sum of epsilon stays within
  epsilon and that of delta within delta/2, **or** the sum of rho, converted at the delta that remains of
  delta/2, stays within epsilon
- a charge before which nothing was charged may also take the whole budget: it is admitted if its cost, read
  as a whole, fits the budget. Later charges need the rule above for all sums, the first charge included.
- a charge of nothing (epsilon 0, delta 0) is always admitted

**The mixture** of Renyi orders is how a filter reads an (epsilon, delta) budget. Orders, weights and readings
depend on the budget alone, so they are public and fixed when an account is opened. Filters stored as version
2 rely on them: they never change. `docs/proofs/filters.md` has the proof. Decimal arithmetic rounds in the
same way everywhere, so every machine finds the same orders.

**What remains** of a filter's budget are the largest single charges that fit, and how many fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tacit.accounting._budget import Budget, Spend
from tacit.accounting._json import (
    VERSION,
    WITH_CURVE,
    Json,
    RenyiCurve,
    not_as_stored,
    read,
    read_curve,
    read_fields,
    write,
    write_curve,
)
from tacit.accounting._zcdp import largest_pure, rho_cap
from tacit.accounting.numeric import below, log_down, log_up, on_grid, room, round_down, round_up
from tacit.errors import TacitError
from tacit.fixes import Either, Fix, Say, Set
from tacit.parameters import Instance, Integer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.accounting._cost import Cost


#: The share of a budget's delta that answers may spend themselves; the other half pays for adding them up.
ANSWERS = Fraction(1, 2)

_NEAR = Context(prec=28)
#: Orders less 1, as multiples of the one that suits zCDP best, and the weights of the mixture.
_ORDERS = (Decimal("0.65"), Decimal("0.84"), Decimal("1.04"), Decimal("4.5"))
_WEIGHTS = (Fraction(7, 100), Fraction(30, 100), Fraction(59, 100), Fraction(4, 100))

#: An average of the orders' sums: (place of the order, its share); the shares add up to 1.
Shares: TypeAlias = tuple[tuple[int, Fraction], ...]
_ZERO = Fraction(0)
_MANY = 2**40  # more charges than anyone counts
_SHORT = 1000  # bits of a denominator that sums keep exactly
_LARGEST = Fraction(2) ** 1023  # larger than any budget


class OrderReading(NamedTuple):
    """The budget holds if this average of the orders' sums is at most the cap."""

    shares: Shares
    cap: Fraction

    def total(self, sums: RenyiCurve) -> Fraction | None:
        """Return the average of the sums, one for each order; None if it is not finite."""
        total = Fraction(0)
        for index, share in self.shares:
            divergence = sums[index][1]
            if divergence is None:
                return None
            if share == 1:
                return divergence
            total += share * divergence
        return total

    def admits(self, sums: RenyiCurve) -> bool:
        """Return whether the average is at most the cap."""
        total = self.total(sums)
        return total is not None and total <= self.cap


class Mixture(NamedTuple):
    """The orders of a budget, and the readings, each of which is enough."""

    orders: tuple[Fraction, ...]
    readings: tuple[OrderReading, ...]


@lru_cache(maxsize=1024)
def mixture(epsilon: Fraction, delta: Fraction) -> Mixture:
    """Return the mixture for an (epsilon, delta) budget, delta > 0: each order alone, and one average.

    Examples
    --------
    >>> [int(order) for order in mixture(Fraction(3), Fraction(1, 10**6)).orders]
    [6, 8, 10, 39]
    """
    tail = delta * (1 - ANSWERS)
    return mixture_of(_orders(_decimal(epsilon), _NEAR.ln(_decimal(tail))), epsilon, delta)


@lru_cache(maxsize=1024)
def mixture_of(orders: tuple[Fraction, ...], epsilon: Fraction, delta: Fraction) -> Mixture:
    """Return the mixture of given orders for a budget: an account keeps its orders when its budget grows."""
    tail = delta * (1 - ANSWERS)
    averages: list[Shares] = [
        ((place, Fraction(1)),) for place in (2, 3, 1, 0)
    ]  # the quickest and likeliest first
    averages.append(_gaussian_shares(orders, _decimal(epsilon), _NEAR.ln(_decimal(tail))))
    readings = [_reading(shares, orders, epsilon, tail) for shares in dict.fromkeys(averages)]
    return Mixture(orders, tuple(reading for reading in readings if reading.cap > 0))


def readings_of(budget: Budget, sums: RenyiCurve) -> tuple[OrderReading, ...]:
    """Return the readings of a filter's sums, at the orders that it has had since it was opened."""
    assert budget.epsilon is not None  # noqa: S101 - only budgets in epsilon and delta have orders
    usual = mixture(budget.epsilon, budget.delta)
    orders = tuple([order for order, _ in sums])
    return (usual if usual.orders == orders else mixture_of(orders, budget.epsilon, budget.delta)).readings


def are_orders(orders: Sequence[Fraction]) -> bool:
    """Return whether these may be the orders of a stored filter: as many as weights, above 1, ascending."""
    return len(orders) == len(_WEIGHTS) and all(low < high for low, high in pairwise([Fraction(1), *orders]))


def _reading(shares: Shares, orders: Sequence[Fraction], epsilon: Fraction, tail: Fraction) -> OrderReading:
    """Return the reading of an average, its cap rounded down (`docs/proofs/filters.md`, the lemma).

    With t = 1 / (1 + sum of c/(a-1)) and t_a = t c/(a-1) for the shares c, the cap is
    ``epsilon - (sum of t_a log(t_a / (tail w_a)) + t log t) / t``.
    """
    rest = 1 / sum((share / (orders[index] - 1) for index, share in shares), Fraction(1))
    price = -log_down(1 / rest)
    for index, share in shares:
        part = share / (orders[index] - 1)
        price += part * log_up(rest * part / (tail * _WEIGHTS[index]))
    cap = epsilon - price
    return OrderReading(shares, round_down(cap) if cap > 0 else Fraction(0))


def _orders(epsilon: Decimal, log_tail: Decimal) -> tuple[Fraction, ...]:
    """Return the orders: whole numbers if they differ, because sampled laws are exact there, else halves...

    They are multiples of 1/2, 1/4, 1/8, ... as fine as they need to be to differ from each other and from 1.
    """
    best = _best_step(epsilon, log_tail)
    orders_wanted = [1 + Fraction(_NEAR.multiply(multiple, best)) for multiple in _ORDERS]
    grid = 1
    while True:
        orders = [Fraction(1), *(Fraction(round(order * grid), grid) for order in orders_wanted)]
        if all(low < high for low, high in pairwise(orders)):
            return tuple(orders[1:])
        grid *= 2


def _best_step(epsilon: Decimal, log_tail: Decimal) -> Decimal:
    """Return about the a - 1 that lets the largest rho pass, by climbing in ever smaller steps."""

    def allows(z: Decimal) -> Decimal:
        a = _NEAR.add(z, Decimal(1))
        logs = _NEAR.divide(_NEAR.add(log_tail, _NEAR.ln(a)), z)
        return _NEAR.divide(_NEAR.add(_NEAR.add(epsilon, _NEAR.ln(_NEAR.divide(a, z))), logs), a)

    z, factor = _NEAR.divide(-log_tail, epsilon), Decimal(4)
    at = allows(z)
    while factor > Decimal("1.0001"):
        for move in (factor, _NEAR.divide(Decimal(1), factor)):
            while (value := allows(_NEAR.multiply(z, move))) > at:
                z, at = _NEAR.multiply(z, move), value
        factor = _NEAR.sqrt(factor)
    return z


def _gaussian_shares(orders: Sequence[Fraction], epsilon: Decimal, log_tail: Decimal) -> Shares:
    """Return the shares that let about the most zCDP pass: for sums in proportion to the orders.

    At the boundary, the terms ``t_a = tail w_a exp((a-1) (epsilon + x - a rho))`` and ``exp(-x)`` add up to 1
    where their sum is smallest in x. Newton's method finds rho and x; the shares are ``t_a (a - 1)``. Any
    shares are valid, so no error bound is needed.
    """
    with localcontext(_NEAR):
        steps = [_decimal(order - 1) for order in orders]
        logs = [log_tail + _decimal(weight).ln() for weight in _WEIGHTS]
        z = steps[2]  # start from this order alone
        x = ((z + 1) / z).ln()
        rho = (epsilon + x + (logs[2] + (z + 1).ln()) / z) / (z + 1)
        parts = [Decimal(0)] * len(steps)
        for _ in range(8):
            reach = epsilon + x
            terms = [(log + z * (reach - (z + 1) * rho)).exp() for log, z in zip(logs, steps, strict=True)]
            parts = [z * term for z, term in zip(steps, terms, strict=True)]
            mean_step = sum((z * part for z, part in zip(steps, parts, strict=True)), Decimal(0))
            second = sum((z * (z + 1) * part for z, part in zip(steps, parts, strict=True)), Decimal(0))
            back = (-x).exp()
            more = (sum(terms) + back).ln() / sum(
                (1 + z) * part for z, part in zip(steps, parts, strict=True)
            )
            rho += more
            x = max(Decimal(0), x - (sum(parts) - back - second * more) / (mean_step + back))
        thousandths = [round(1000 * part / sum(parts)) for part in parts]
    return tuple((place, Fraction(one, sum(thousandths))) for place, one in enumerate(thousandths) if one)


def _decimal(x: Fraction) -> Decimal:
    return _NEAR.divide(Decimal(x.numerator), Decimal(x.denominator))


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
            numbers = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
            return (
                ", ".join(f"{name} {rounded_down(value)}" for name, value in numbers.items() if value)
                or "nothing"
            )
        name, remaining, total = (
            ("epsilon", self.epsilon, self.of.epsilon)
            if self.of.rho is None
            else ("rho", self.rho, self.of.rho)
        )
        if not remaining:  # a delta alone pays for no answer
            return f"nothing of {name} {rounded_down(total or _ZERO)}"
        text = f"{name} {rounded_down(remaining)} of {rounded_down(total or _ZERO)}"
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
        rho_left, epsilon = _of_rho(state, budget.rho)
        return Remaining(epsilon, room(budget.delta, state.delta), rho_left or _ZERO, budget)
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
    rho = _fit_or_shorten(state, rho, lambda x: Spend(rho=x))
    if largest := _largest_epsilon(slack, orders, float(plain)):
        plain = max(plain, _fit_or_shorten(state, Fraction(largest), Spend))
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


def count_of(state: Filter, spend: Spend) -> int:
    """Return how many such charges, one by one, still fit; at most 2^40."""
    if spend.epsilon == 0 and not spend.delta:  # charges of nothing
        return _MANY
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
        if total is None or more is None:
            return None
        short = math.lcm(total.denominator, more.denominator).bit_length() <= _SHORT
        return more if short else round_up(more + cap / 10**24)

    curve = [(order, safe(total, spend.divergence(order), budget_total)) for order, total in state.curve]
    delta = safe(state.delta, spend.delta, budget.delta) or _ZERO
    epsilon, rho = safe(state.epsilon, spend.epsilon, budget_total), safe(state.rho, spend.rho, budget_total)
    return Spend(epsilon, min(delta, Fraction(1)), rho, curve)


def _multiple(spend: Spend, times: int) -> Spend:
    """Return what many equal charges take together."""

    def many(value: Fraction | None) -> Fraction | None:
        return None if value is None or times * value > 2**1000 else times * value

    curve = [(order, many(value)) for order, value in spend.curve]
    return Spend(many(spend.epsilon), min(Fraction(1), times * spend.delta), many(spend.rho), curve)


@dataclass(frozen=True, slots=True)
class Filter:
    """A budget and the exact sums of what was spent from it: plain data that can be stored and resumed.

    Guarantee
    ---------
    All answers together stay within the budget, whatever rule picks the next query from the answers so far
    and whenever it stops, if the `Spend` of each charge holds for its query given those answers.

    Examples
    --------
    >>> f = Filter.start(Budget(epsilon=1)).after(Spend(epsilon=0.7))
    >>> f.admits(Spend(epsilon=0.3)), f.admits(Spend(epsilon=0.3000001))
    (True, False)
    """

    budget: Budget
    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    curve: RenyiCurve = ()

    @classmethod
    def start(cls, budget: Budget, *, version: int = WITH_CURVE) -> Filter:
        """Return the filter of an untouched budget; version 1 has the rule of accounts of earlier versions.

        Examples
        --------
        >>> Filter.start(Budget(epsilon=3, delta=1e-6), version=1).orders
        ()
        """
        budget = Instance(Budget, "Filter.start(Budget(epsilon=1))").read("budget", budget)
        version = Integer(VERSION, WITH_CURVE, instead=WITH_CURVE).read("version", version)
        if version == VERSION or budget.epsilon is None or not budget.delta:
            return cls(budget, _ZERO, _ZERO, _ZERO)
        orders = mixture(budget.epsilon, budget.delta).orders
        return cls(budget, _ZERO, _ZERO, _ZERO, tuple((order, _ZERO) for order in orders))

    @property
    def orders(self) -> tuple[Fraction, ...]:
        """The Renyi orders at which charges add up; none for budgets without delta, in rho or of version 1.

        Examples
        --------
        >>> [int(order) for order in Filter.start(Budget(epsilon=3, delta=1e-6)).orders]
        [6, 8, 10, 39]
        """
        return tuple(order for order, _ in self.curve)

    def spend_of(self, cost: Cost) -> Spend:
        """Return what a cost takes from this filter: its spend, with its curve at the filter's orders.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> training = Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)
        >>> left = Filter.start(Budget(epsilon=3, delta=1e-6))
        >>> left.how_many(training) > 1_290
        True
        """
        return cost.spend_at(self.orders)

    def admits(self, spend: Spend, fits: Callable[[Budget], bool] | None = None) -> bool:
        """Return whether the charge fits; see `charged`."""
        return self.charged(spend, fits) is not None

    def charged(self, spend: Spend, fits: Callable[[Budget], bool] | None = None) -> Filter | None:
        """Return the filter after the charge, or None if it does not fit; `after` says why, which is slow.

        ``fits`` says whether the charge's whole cost stays within a budget (`Cost.fits`). With it, a charge
        before which nothing was charged may take the whole budget; then nothing is left.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Filter.start(Budget(epsilon=1)).charged(Spend(epsilon=2)) is None
        True
        >>> start, cost = Filter.start(Budget(epsilon=1, delta=1e-6)), Cost.approximate(1, 1e-6)
        >>> start.charged(cost.spend) is None
        True
        >>> print(start.charged(cost.spend, cost.fits).remaining)
        nothing of epsilon 1
        """
        after = self.added(spend)
        admitted = after.within or _is_nothing(spend) or (fits is not None and self.admits_first(fits))
        return after if admitted else None

    def admits_first(self, fits: Callable[[Budget], bool]) -> bool:
        """Return whether nothing was charged yet and the whole cost of a charge stays within the budget.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> cost = Cost.approximate(1, 1e-6)
        >>> start = Filter.start(Budget(epsilon=1, delta=1e-6))
        >>> start.admits_first(cost.fits), start.after(Spend(0.001)).admits_first(cost.fits)
        (True, False)
        """
        return _is_nothing(self) and fits(self.budget)

    def after(self, spend: Spend, fits: Callable[[Budget], bool] | None = None) -> Filter:
        """Return the filter after the charge, or refuse and name what is left and what would fit."""
        charged = self.charged(spend, fits)
        if charged is None:
            remaining = self.remaining
            raise TacitError(
                "budget-exceeded",
                f"a charge of {spend} does not fit into what is left: {remaining}"
                f"{self._without_delta(spend)}",
                why=self._reason(spend, remaining),
                fix=self._advice(spend, remaining),
                facts={"charge": spend, "left": remaining},
            )
        return charged

    @property
    def spent(self) -> Spend:
        """The sums of all charges so far."""
        return Spend(self.epsilon, min(self.delta, Fraction(1)), self.rho, self.curve)

    @property
    def remaining(self) -> Remaining:
        """The largest single charge of each kind that fits by the rule for sums, rounded down.

        A first charge may take more of delta: all of the budget at once, and then nothing is left.
        """
        return remaining_of(self)

    def how_many(self, cost: Cost) -> int:
        """Return how many further charges of this cost, one by one, still fit (at most 2^40).

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Filter.start(Budget(epsilon=1)).how_many(Cost.pure(0.3))
        3
        """
        spend = self.spend_of(cost)
        return count_of(self, spend) or int(self.admits(spend, cost.fits))

    def to_json(self) -> Json:
        """Return the filter as JSON data, exact and readable by every later version."""
        stored: Json = {
            "version": WITH_CURVE if self.curve else VERSION,
            "budget": self.budget.to_json(),
            "epsilon": write(self.epsilon),
            "delta": write(self.delta),
            "rho": write(self.rho),
        }
        return {**stored, "curve": write_curve(self.curve)} if self.curve else stored

    @classmethod
    def from_json(cls, data: object) -> Filter:
        """Read what `to_json` wrote.

        Examples
        --------
        >>> f = Filter.start(Budget(rho=0.1)).after(Spend(rho=0.04))
        >>> Filter.from_json(f.to_json()) == f
        True
        """
        fields = {"budget", "epsilon", "delta", "rho"}
        if isinstance(data, Mapping) and "curve" in data:
            stored = read_fields("filter", data, {*fields, "curve"}, version=WITH_CURVE)
        else:
            stored = read_fields("filter", data, fields)
        epsilon, rho = (
            None if stored[name] is None else read(name, stored[name]) for name in ("epsilon", "rho")
        )
        budget, delta = Budget.from_json(stored["budget"]), read("delta", stored["delta"])
        if "curve" not in stored:
            return cls(budget, epsilon, delta, rho)
        curve = read_curve(stored["curve"])
        if budget.epsilon is None or not budget.delta or not are_orders([order for order, _ in curve]):
            must_be = "a budget in epsilon and delta with its Renyi orders"
            raise not_as_stored("stored filter", must_be, (budget, [float(order) for order, _ in curve]))
        return cls(budget, epsilon, delta, rho, curve)

    def added(self, spend: Spend) -> Filter:
        """Return the filter with the charge added, without asking whether it fits (`within` answers that)."""
        spend = Instance(Spend, "filter.admits(cost.spend)").read("spend", spend)
        return Filter(
            self.budget,
            _add(self.epsilon, spend.epsilon),
            on_grid(self.delta + spend.delta),
            _add(self.rho, spend.rho),
            self._curve_with(spend) if self.curve else (),
        )

    def _curve_with(self, spend: Spend) -> RenyiCurve:
        """Add the charge at each order of the filter."""
        if [order for order, _ in spend.curve] != [order for order, _ in self.curve]:
            return tuple((order, _add(total, spend.divergence(order))) for order, total in self.curve)
        return tuple(
            (order, _add(total, spend.divergence(order) if more is None else more))
            for (order, total), (_, more) in zip(self.curve, spend.curve, strict=True)
        )

    @property
    def within(self) -> bool:
        """Whether the sums stay within the budget; once False it stays False, because sums only grow.

        Examples
        --------
        >>> Filter.start(Budget(epsilon=1)).added(Spend(epsilon=2)).within
        False
        """
        budget = self.budget
        if budget.rho is not None:
            return self.rho is not None and self.rho <= budget.rho and self.delta <= budget.delta
        assert budget.epsilon is not None  # noqa: S101 - a budget has one of the two
        if self.delta and self.delta > budget.delta * ANSWERS:
            return False
        if self.epsilon is not None and self.epsilon <= budget.epsilon:
            return True
        if self.curve:
            return any(reading.admits(self.curve) for reading in readings_of(budget, self.curve))
        delta_left = budget.delta / 2 - self.delta
        return delta_left > 0 and self.rho is not None and self.rho <= rho_cap(budget.epsilon, delta_left)

    def _without_delta(self, spend: Spend) -> str:
        """Say that a budget has no delta where a charge needs one."""
        return "; this budget has no delta" if spend.delta and not self.budget.delta else ""

    def _reason(self, spend: Spend, remaining: Remaining) -> str:
        """Say why a charge is refused; delta has a limit of its own that needs a word."""
        why = "every answer adds to what is known about one unit, and answers cannot be taken back"
        if self.budget.rho is None and self.budget.delta and spend.delta > remaining.delta:
            why += "; half of the budget's delta is reserved for adding up answers"
        return why

    def _advice(self, spend: Spend, remaining: Remaining) -> Fix:
        """Return what would fit; if nothing does, return what else can be done."""
        larger = Say("ask the curator for a larger budget")
        of = self.budget
        if not (remaining.rho if of.rho is not None else remaining.epsilon):
            again = Say("repeat a question that was already answered, which is free")
            return Either(again, larger, Say("use data about other people"))
        if spend.delta and not of.delta:
            with_delta = Say("ask the curator for a budget with a delta")
            return Either(Say("ask a question that needs no delta, over groups that are public"), with_delta)
        if spend.delta > remaining.delta:
            return Either(Set.at_most(delta=_number(remaining.delta)), larger)
        if spend.epsilon is not None and remaining.epsilon is not None:
            return Either(Set.at_most(epsilon=_number(remaining.epsilon)), larger)
        if any(
            value is not None and (not spend.rho or value < order * spend.rho) for order, value in spend.curve
        ):
            return Either(Say("take fewer steps or add more noise"), larger)
        if spend.rho is not None and remaining.rho is not None:
            return Either(Set.at_most(rho=_number(remaining.rho)), larger)
        wants = "rho" if of.delta or of.rho else "epsilon"
        return Either(Say(f"this budget admits only costs with a finite {wants}: use {wants}"), larger)


def _is_nothing(charges: Spend | Filter) -> bool:
    """Return whether a charge, or the sum of all, says nothing about anyone: epsilon 0 and delta 0."""
    return charges.epsilon == 0 and not charges.delta


def _number(value: Fraction) -> int | float:
    """Return six digits of a number, rounded down, as a value to set."""
    number = float(rounded_down(value))
    return int(number) if number.is_integer() else number


def _add(total: Fraction | None, more: Fraction | None) -> Fraction | None:
    """Add exactly while the denominator is short, else round up; None if there is no finite value."""
    if total is None or more is None:
        return None
    sums = on_grid(total + more)
    return None if sums.numerator.bit_length() > 1023 and sums > _LARGEST else sums
