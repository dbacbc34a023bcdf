"""Privacy filters in accounting: budgets that hold even if every query depends on all earlier answers.

Each charge is fixed before its query runs. A filter adds up the charges in exact arithmetic and admits a new
one while the sums stay within the budget. It never composes loss distributions, because those need all
queries declared in advance. The proof is `docs/proofs/filters.md`. Rules (sums include the new charge):

- ``Budget(epsilon)``: every delta is 0 and the sum of epsilon stays within the budget
- ``Budget(rho)``, ``Budget(rho, delta)``: the sums of rho and delta stay within the budget
- ``Budget(epsilon, delta)``: the sum of delta stays within delta/2, **and** the sum of epsilon stays within
  epsilon **or** one reading of the sums at a few fixed Renyi orders stays within its cap (`_mixture.py`)
- ``Budget(epsilon, delta)``, stored as version 1 by an earlier release: the sum of epsilon stays within
  epsilon and that of delta within delta/2, **or** the sum of rho, converted at the delta that remains of
  delta/2, stays within epsilon
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting._budget import Budget, Spend
from tacit.accounting._json import (
    VERSION,
    WITH_CURVE,
    Curve,
    Json,
    read,
    read_curve,
    read_fields,
    write,
    write_curve,
)
from tacit.accounting._mixture import ANSWERS, Reading, mixture
from tacit.accounting._zcdp import largest_pure, rho_cap
from tacit.accounting.numeric import below, on_grid, room, round_down
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Either, Fix, Say, Set

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting._readings import Readings

__all__ = ["Filter", "Remaining"]

_ZERO = Fraction(0)
_LARGEST = Fraction(2) ** 1023  # larger than any budget
_MANY = 2**40  # more charges than anyone counts


@dataclass(frozen=True, slots=True)
class Remaining:
    """The largest single charge of each kind that still fits: a pure epsilon, a delta, a rho (None: none).

    The text form uses the terms of the budget and rounds down, so that the amount shown still fits.

    Examples
    --------
    >>> print(Filter.start(Budget(epsilon=3, delta=1e-6)).after(Spend(epsilon=1)).remaining)
    epsilon 2 of 3; delta up to 5e-07 of 1e-06
    >>> print(Filter.start(Budget(rho=0.1)).after(Spend(rho=0.1)).remaining)
    nothing of rho 0.1
    """

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None
    of: Budget | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.of is None:
            known = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}
            return ", ".join(f"{name} {_shown(value)}" for name, value in known.items() if value) or "nothing"
        name, left, whole = (
            ("epsilon", self.epsilon, self.of.epsilon)
            if self.of.rho is None
            else ("rho", self.rho, self.of.rho)
        )
        if not left:  # a delta alone pays for no answer
            return f"nothing of {name} {_shown(whole or _ZERO)}"
        text = f"{name} {_shown(left)} of {_shown(whole or _ZERO)}"
        if not self.of.delta:
            return text
        return f"{text}; delta up to {_shown(self.delta)} of {_shown(self.of.delta)}"


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
    curve: Curve = ()

    @classmethod
    def start(cls, budget: Budget) -> Filter:
        """Return the filter of an untouched budget."""
        if not isinstance(budget, Budget):
            raise bad_parameter("budget", "a Budget", budget, fix=Code("Filter.start(Budget(epsilon=1))"))
        if budget.epsilon is None or not budget.delta:
            return cls(budget, _ZERO, _ZERO, _ZERO)
        orders = mixture(budget.epsilon, budget.delta).orders
        return cls(budget, _ZERO, _ZERO, _ZERO, tuple((order, _ZERO) for order in orders))

    @property
    def orders(self) -> tuple[Fraction, ...]:
        """The Renyi orders at which charges add up; none for budgets without delta, in rho or of version 1.

        Examples
        --------
        >>> [int(order) for order in Filter.start(Budget(epsilon=3, delta=1e-6)).orders]
        [6, 8, 10, 37]
        """
        return tuple(order for order, _ in self.curve)

    def spend_of(self, cost: Readings) -> Spend:
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

    def admits(self, spend: Spend) -> bool:
        """Return whether the charge fits."""
        return self.added(spend).within

    def after(self, spend: Spend) -> Filter:
        """Return the filter after the charge, or refuse and name what is left and what would fit."""
        charged = self.added(spend)
        if not charged.within:
            left = self.remaining
            raise TacitError(
                "budget-exceeded",
                f"a charge of {spend} does not fit into what is left: {left}",
                why=self._reason(spend, left),
                fix=self._advice(spend, left),
            )
        return charged

    @property
    def spent(self) -> Spend:
        """The sums of all charges so far."""
        return Spend(self.epsilon, min(self.delta, Fraction(1)), self.rho, self.curve)

    @property
    def remaining(self) -> Remaining:
        """The largest single charge of each kind that still fits, rounded down."""
        return replace(self._largest(), of=self.budget)

    def _largest(self) -> Remaining:
        """Return the largest single charge of each kind that still fits, rounded down."""
        budget = self.budget
        if budget.rho is not None:
            left, epsilon = self._of_rho(budget.rho)
            return Remaining(epsilon, room(budget.delta, self.delta), left or _ZERO)
        assert budget.epsilon is not None  # noqa: S101 - a budget has one of the two
        plain = _ZERO if self.epsilon is None else room(budget.epsilon, self.epsilon)
        if budget.delta == 0:
            return Remaining(plain, _ZERO, None)
        if self.curve:
            return self._largest_by_orders(plain)
        half = budget.delta / 2 - self.delta
        rho, epsilon = self._of_rho(rho_cap(budget.epsilon, half)) if half > 0 else (None, _ZERO)
        open_ = self.epsilon is not None and self.epsilon <= budget.epsilon
        delta = room(budget.delta / 2, self.delta) if open_ else self._largest_delta(max(_ZERO, half))
        return Remaining(max(plain, epsilon), delta, rho)

    def _of_rho(self, cap: Fraction) -> tuple[Fraction | None, Fraction]:
        """Return the rho (None: none) and the pure epsilon that still fit under a cap on the sum of rho."""
        if self.rho is None or self.rho > cap:
            return None, _ZERO
        return room(cap, self.rho), largest_pure(below(cap) - self.rho)

    def _largest_by_orders(self, plain: Fraction) -> Remaining:
        """Return what remains by the mixture of orders; ``plain`` is what remains by adding epsilons."""
        delta = room(self.budget.delta * ANSWERS, self.delta) if self.within else _ZERO
        slack = [(reading, left) for reading, left in self._slack() if left >= 0]
        if self.delta > self.budget.delta * ANSWERS or not slack:
            return Remaining(plain, delta, None)
        rho = max(
            left / sum(share * self.curve[place][0] for place, share in of.shares) for of, left in slack
        )
        rho = self._fitting(rho, lambda x: Spend(rho=x))
        if not self.admits(Spend(epsilon=plain + plain / 10**12)) or not rho:
            return Remaining(plain, delta, rho)
        return Remaining(max(plain, self._fitting(_largest_epsilon(slack, self.orders), Spend)), delta, rho)

    def _slack(self) -> list[tuple[Reading, Fraction]]:
        """Return the readings with finite sums, and what is left of the cap of each."""
        assert self.budget.epsilon is not None  # noqa: S101 - only such budgets have orders
        sums = [total for _, total in self.curve]
        found = [
            (reading, reading.total(sums))
            for reading in mixture(self.budget.epsilon, self.budget.delta).readings
        ]
        return [(reading, reading.cap - total) for reading, total in found if total is not None]

    def _fitting(self, value: Fraction, charge: Callable[[Fraction], Spend]) -> Fraction:
        """Return the value if its charge fits, else the value less the digits that rounding may add."""
        for digits in (None, 26, 20, 13, 12, 9, 6):
            least = value if digits is None else round_down(value - value / 10**digits)
            if max(least.denominator.bit_length(), 1) <= 1000 and self.admits(charge(least)):
                return least
        return _ZERO

    def to_json(self) -> Json:
        """Return the filter as JSON data, exact and readable by every later release."""
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
        found = cls(budget, epsilon, delta, rho, read_curve(stored["curve"]) if "curve" in stored else ())
        if "curve" in stored and found.orders != cls.start(budget).orders:
            raise bad_parameter(
                "stored filter",
                "a filter with the Renyi orders of its budget",
                [float(order) for order in found.orders],
                fix="read the stored value exactly as Tacit wrote it",
            )
        return found

    def added(self, spend: Spend) -> Filter:
        """Return the filter with the charge added, without asking whether it fits (`within` answers that)."""
        if not isinstance(spend, Spend):
            raise bad_parameter("spend", "a Spend", spend, fix=Code("filter.admits(cost.spend)"))
        return Filter(
            self.budget,
            _add(self.epsilon, spend.epsilon),
            on_grid(self.delta + spend.delta),
            _add(self.rho, spend.rho),
            self._curve_with(spend) if self.curve else (),
        )

    def _curve_with(self, spend: Spend) -> Curve:
        """Add the charge at each order of the filter."""
        if len(spend.curve) == len(self.curve):
            both = zip(self.curve, spend.curve, strict=True)
            if all(
                mine[0] == theirs[0] and theirs[1] is not None
                for mine, theirs in zip(self.curve, spend.curve, strict=True)
            ):
                return tuple((order, _add(total, more)) for (order, total), (_, more) in both)
        return tuple((order, _add(total, spend.divergence(order))) for order, total in self.curve)

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
        if self.delta <= budget.delta * ANSWERS:
            if self.epsilon is not None and self.epsilon <= budget.epsilon:
                return True
            if self.curve:
                sums = [total for _, total in self.curve]
                return any(
                    (total := reading.total(sums)) is not None and total <= reading.cap
                    for reading in mixture(budget.epsilon, budget.delta).readings
                )
        left = budget.delta / 2 - self.delta
        return (
            not self.curve and left > 0 and self.rho is not None and self.rho <= rho_cap(budget.epsilon, left)
        )

    def how_many(self, cost: Readings) -> int:
        """Return how many further charges of this cost, one by one, still fit.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Filter.start(Budget(epsilon=1)).how_many(Cost.pure(0.3))
        3
        """
        one = self.spend_of(cost)

        def fits(times: int) -> bool:
            return self.added(_times(one, times)).within

        low, high = 0, 1
        while high <= _MANY and fits(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def _largest_delta(self, half: Fraction) -> Fraction:
        """Return a delta that fits if only the rule for rho is left, by bisection from below."""
        low, high = _ZERO, half
        for _ in range(40):
            middle = round_down((low + high) / 2)
            low, high = (middle, high) if self.admits(Spend(0, middle, 0)) else (low, middle)
        return low

    def _reason(self, spend: Spend, left: Remaining) -> str:
        """Say why a charge is refused; delta has a limit of its own that needs a word."""
        why = "every answer adds to what is known about one unit, and answers cannot be taken back"
        if self.budget.rho is None and self.budget.delta and spend.delta > left.delta:
            why += "; half of the budget's delta is reserved for adding up answers"
        return why

    def _advice(self, spend: Spend, left: Remaining) -> Fix:
        """Return what would fit; if nothing does, return what else can be done."""
        larger = Say("ask the curator for a larger budget")
        of = self.budget
        if not (left.rho if of.rho is not None else left.epsilon):
            again = Say("repeat a question that was already answered, which is free")
            return Either(again, larger, Say("use data about other people"))
        if spend.delta and not of.delta:
            return Either(Say("a question without delta, over groups that are public"), larger)
        if spend.delta > left.delta:
            return Either(Set.at_most(delta=_number(left.delta)), larger)
        if spend.epsilon is not None and left.epsilon is not None:
            return Either(Set.at_most(epsilon=_number(left.epsilon)), larger)
        if spend.rho is not None and left.rho is not None:
            return Either(Set.at_most(rho=_number(left.rho)), larger)
        wants = "rho" if of.delta or of.rho else "epsilon"
        return Either(Say(f"this budget admits only costs with a finite {wants}: use {wants}"), larger)


def _number(value: Fraction) -> int | float:
    """Return six digits of a number, rounded down, as a value to set."""
    near = float(_shown(value))
    return int(near) if near.is_integer() else near


def _shown(value: Fraction) -> str:
    """Show six digits, rounded down: a request for the amount shown must not fail because of rounding."""
    with localcontext() as context:
        context.prec, context.rounding = 6, ROUND_FLOOR
        return f"{float(Decimal(value.numerator) / Decimal(value.denominator)):g}"


def _add(total: Fraction | None, more: Fraction | None) -> Fraction | None:
    """Add exactly while the denominator is short, else round up; None if there is no finite value."""
    if total is None or more is None:
        return None
    return None if (both := on_grid(total + more)) > _LARGEST else both


def _times(spend: Spend, times: int) -> Spend:
    """Return what many equal charges take together."""

    def many(value: Fraction | None) -> Fraction | None:
        return None if value is None or times * value > _LARGEST else times * value

    return Spend(
        many(spend.epsilon),
        min(Fraction(1), times * spend.delta),
        many(spend.rho),
        [(order, many(value)) for order, value in spend.curve],
    )


def _largest_epsilon(slack: list[tuple[Reading, Fraction]], orders: tuple[Fraction, ...]) -> Fraction:
    """Return about the largest pure epsilon that fits one of the readings, in floating point."""
    steps = [float(order) - 1 for order in orders]
    rooms = [([(place, float(share)) for place, share in of.shares], float(left)) for of, left in slack]

    def fits(e: float) -> bool:
        curve = [e + (math.log1p(math.exp(-(2 * z + 1) * e)) - math.log1p(math.exp(-e))) / z for z in steps]
        return any(sum(share * curve[place] for place, share in shares) <= left for shares, left in rooms)

    low, high = 0.0, max(left for _, left in rooms) + 0.7 / min(steps)
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return Fraction(low)
