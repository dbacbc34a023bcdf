"""Privacy filters in accounting: budgets that hold even if every query depends on all earlier answers.

Each charge is fixed before its query runs. A filter adds up the charges in exact arithmetic and admits a new
one while the sums stay within the budget. It never composes loss distributions, because those need all
queries declared in advance. The proof is `docs/proofs/filters.md`. Rules (sums include the new charge):

- ``Budget(epsilon)``: every delta is 0 and the sum of epsilon stays within the budget
- ``Budget(rho)``, ``Budget(rho, delta)``: the sums of rho and delta stay within the budget
- ``Budget(epsilon, delta)``: the union of two filters, each for (epsilon, delta/2). One adds up the promised
  pairs of epsilon and delta; the other has the rule of version 2
- ``Budget(epsilon, delta)``, version 2: the sum of delta stays within delta/2, **and** the sum of epsilon
  stays within epsilon **or** one reading of the sums at a few fixed Renyi orders stays within its cap
  (`_mixture`)
- ``Budget(epsilon, delta)``, version 1: the sum of epsilon stays within epsilon and that of delta within
  delta/2, **or** the sum of rho, converted at the delta that remains of delta/2, stays within epsilon
- a charge before which nothing was charged may also take the whole budget: it is admitted if its cost, read
  as a whole, fits the budget. Later charges need the rule above for all sums, the first charge included.
- a charge of nothing (epsilon 0, delta 0) is always admitted

Accounts that earlier releases opened keep version 1 or 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tacit.accounting._budget import Budget, Spend
from tacit.accounting._json import (
    VERSION,
    WITH_CURVE,
    WITH_PROMISE,
    Json,
    RenyiCurve,
    not_as_stored,
    read,
    read_curve,
    read_fields,
    write,
    write_curve,
)
from tacit.accounting._mixture import ANSWERS, are_orders, mixture, readings_of
from tacit.accounting._remaining import (
    Left,
    Remaining,
    count_of,
    count_of_pairs,
    remaining_of,
    rounded_down,
)
from tacit.accounting._zcdp import rho_cap
from tacit.accounting.numeric import on_grid, room
from tacit.errors import TacitError
from tacit.fixes import Either, Fix, Say, Set
from tacit.parameters import Instance, Integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.accounting._cost import Cost


#: The share of a budget's delta that each filter of a union has; the shares add up to 1.
SHARES = (Fraction(1, 2), Fraction(1, 2))

_ZERO = Fraction(0)
_LARGEST = Fraction(2) ** 1023  # larger than any budget
_SPEND = Instance(Spend, "filter.admits(cost.spend)")


@dataclass(frozen=True, slots=True)
class PromisedPairs:
    """The filter that adds up promised pairs: plain sums of epsilon and delta, within its share of a budget.

    Examples
    --------
    >>> pairs = PromisedPairs(Budget(1, 5e-7), Fraction(1, 2), Fraction(0))
    >>> pairs.within, pairs.remaining.epsilon, pairs.count(Spend(rho=0.1, promise=Budget(0.25, 1e-7)))
    (True, Fraction(1, 2), 2)
    """

    budget: Budget
    epsilon: Fraction | None
    delta: Fraction

    @property
    def within(self) -> bool:
        """Whether the sums stay within the share; once False it stays False."""
        cap = self.budget.epsilon
        return cap is not None and _pair_within((self.epsilon, self.delta), cap, self.budget.delta)

    @property
    def remaining(self) -> Remaining:
        """The largest promise that still fits."""
        cap = self.budget.epsilon
        if not self.within or cap is None or self.epsilon is None:
            return Remaining(_ZERO, _ZERO, None, self.budget)
        return Remaining(room(cap, self.epsilon), room(self.budget.delta, self.delta), None, self.budget)

    def count(self, spend: Spend) -> int:
        """Return how many charges with this promise still fit, at most 2^40."""
        return count_of_pairs(self, spend)


def _pair_within(spent: tuple[Fraction | None, Fraction], cap: Fraction, cap_delta: Fraction) -> bool:
    """Return whether sums of epsilon and delta stay within their caps."""
    epsilon, delta = spent
    return epsilon is not None and epsilon <= cap and delta <= cap_delta


@lru_cache(maxsize=1024)
def _share(budget: Budget, which: int) -> Budget:
    """Return the part of a budget that one filter of a union has."""
    return Budget(budget.epsilon, budget.delta * SHARES[which])


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
    promised: tuple[Fraction | None, Fraction] | None = None

    @classmethod
    def start(cls, budget: Budget, *, version: int = WITH_PROMISE) -> Filter:
        """Return the filter of an untouched budget; versions 1 and 2 have the rules of older accounts.

        Examples
        --------
        >>> Filter.start(Budget(epsilon=3, delta=1e-6), version=1).orders
        ()
        """
        budget = Instance(Budget, "Filter.start(Budget(epsilon=1))").read("budget", budget)
        version = Integer(VERSION, WITH_PROMISE, instead=WITH_PROMISE).read("version", version)
        if version == VERSION or budget.epsilon is None or not budget.delta:
            return cls(budget, _ZERO, _ZERO, _ZERO)
        share = budget if version == WITH_CURVE else _share(budget, 1)
        curve = tuple((order, _ZERO) for order in mixture(budget.epsilon, share.delta).orders)
        return cls(budget, _ZERO, _ZERO, _ZERO, curve, None if version == WITH_CURVE else (_ZERO, _ZERO))

    @property
    def version(self) -> int:
        """The version of the rule for a budget in epsilon and delta; 1 where there is only one rule.

        Examples
        --------
        >>> Filter.start(Budget(epsilon=3)).version, Filter.start(Budget(epsilon=3, delta=1e-6)).version
        (1, 3)
        """
        return VERSION if not self.curve else WITH_CURVE if self.promised is None else WITH_PROMISE

    @property
    def members(self) -> tuple[PromisedPairs | Filter, ...]:
        """The filters of a union, each with its share of delta; the filter itself where there is one rule.

        A charge is admitted if one of them admits all charges so far and this one. Each holds by itself for
        its share, and each can only turn from open to closed (`docs/proofs/filters.md`).
        """
        if self.promised is None:
            return (self,)
        pairs = PromisedPairs(_share(self.budget, 0), *self.promised)
        return (pairs, replace(self, budget=_share(self.budget, 1), promised=None))

    @property
    def orders(self) -> tuple[Fraction, ...]:
        """The Renyi orders at which charges add up; none for budgets without delta, in rho or of version 1.

        Examples
        --------
        >>> [int(order) for order in Filter.start(Budget(epsilon=3, delta=1e-6), version=2).orders]
        [6, 8, 10, 39]
        """
        return tuple(order for order, _ in self.curve)

    def spend_of(self, cost: Cost, promise: Budget | None = None) -> Spend:
        """Return what a cost takes from this filter: its spend, with its curve at the filter's orders.

        ``promise`` is the epsilon and delta that was promised; a cost that does not keep it is refused.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> training = Cost.gaussian(sigma=1, sensitivity=1).sampled(0.01)
        >>> left = Filter.start(Budget(epsilon=3, delta=1e-6))
        >>> left.how_many(training) > 1_170
        True
        """
        return cost.spend_at(self.orders, promise)

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
                facts={"charge": spend, "left": remaining, "promise": _number(self._largest_promise(spend))},
            )
        return charged

    def _largest_promise(self, spend: Spend) -> Fraction:
        """Return the largest epsilon that fits if it is promised with the delta of this charge (0: none)."""
        if self.promised is None or spend.promise is None:
            return _ZERO
        left = self.members[0].remaining
        return (left.epsilon or _ZERO) if spend.promise.delta <= left.delta else _ZERO

    @property
    def spent(self) -> Spend:
        """The sums of all charges so far."""
        epsilon, delta = self.promised or (None, _ZERO)
        promise = Budget(epsilon, delta) if epsilon and delta < 1 else None
        return Spend(self.epsilon, min(self.delta, Fraction(1)), self.rho, self.curve, promise)

    @property
    def remaining(self) -> Remaining:
        """The largest single charge of each kind that fits by the rule for sums, rounded down.

        A first charge may take more of delta: all of the budget at once, and then nothing is left.
        """
        return remaining_of(self)

    def count(self, spend: Spend) -> int:
        """Return how many such charges, one by one, fit by the rule for sums (at most 2^40)."""
        return count_of(self, spend)

    def left(self, cost: Cost | None = None, promise: Budget | None = None) -> Left:
        """Return what is left in questions: one more of a size, or how many more like a given one.

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Filter.start(Budget(epsilon=1)).left(Cost.pure(0.3))
        one more question of up to epsilon 1; or 3 more like this one
        """
        return Left(self.remaining, None if cost is None else self.how_many(cost, promise))

    def how_many(self, cost: Cost, promise: Budget | None = None) -> int:
        """Return how many further charges of this cost, one by one, still fit (at most 2^40).

        Examples
        --------
        >>> from tacit.accounting import Cost
        >>> Filter.start(Budget(epsilon=1)).how_many(Cost.pure(0.3))
        3
        """
        spend = self.spend_of(cost, promise)
        return count_of(self, spend) or int(self.admits(spend, cost.fits))

    def to_json(self) -> Json:
        """Return the filter as JSON data, exact and readable by every later version."""
        stored: Json = {
            "version": self.version,
            "budget": self.budget.to_json(),
            "epsilon": write(self.epsilon),
            "delta": write(self.delta),
            "rho": write(self.rho),
        }
        if self.curve:
            stored["curve"] = write_curve(self.curve)
        if self.promised is not None:
            stored["promised"] = [write(part) for part in self.promised]
        return stored

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
        if isinstance(data, Mapping) and "promised" in data:
            stored = read_fields("filter", data, {*fields, "curve", "promised"}, version=WITH_PROMISE)
        elif isinstance(data, Mapping) and "curve" in data:
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
        return cls(budget, epsilon, delta, rho, curve, _read_promised(stored.get("promised")))

    def added(self, spend: Spend) -> Filter:
        """Return the filter with the charge added, without asking whether it fits (`within` answers that)."""
        spend = _SPEND.read("spend", spend)
        return Filter(
            self.budget,
            _add(self.epsilon, spend.epsilon),
            on_grid(self.delta + spend.delta),
            _add(self.rho, spend.rho),
            self._curve_with(spend) if self.curve else (),
            None if self.promised is None else self._promised_with(self.promised, spend),
        )

    def _promised_with(
        self, promised: tuple[Fraction | None, Fraction], spend: Spend
    ) -> tuple[Fraction | None, Fraction]:
        """Add the promised pair of a charge."""
        epsilon, delta = spend.promised
        return _add(promised[0], epsilon), on_grid(promised[1] + delta)

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
        if self.promised is None:
            return self._within(budget.epsilon, budget.delta)
        pairs, orders = (budget.delta * share for share in SHARES)
        return _pair_within(self.promised, budget.epsilon, pairs) or self._within(budget.epsilon, orders)

    def _within(self, cap: Fraction, cap_delta: Fraction) -> bool:
        """Whether epsilon, delta and the orders stay within a pair of caps, promises aside."""
        if self.delta and self.delta > cap_delta * ANSWERS:
            return False
        if self.epsilon is not None and self.epsilon <= cap:
            return True
        if self.curve:
            return any(reading.admits(self.curve) for reading in readings_of(cap, cap_delta, self.curve))
        delta_left = cap_delta / 2 - self.delta
        return delta_left > 0 and self.rho is not None and self.rho <= rho_cap(cap, delta_left)

    def _without_delta(self, spend: Spend) -> str:
        """Say that a budget has no delta where a charge needs one."""
        return "; this budget has no delta" if spend.delta and not self.budget.delta else ""

    def _reason(self, spend: Spend, remaining: Remaining) -> str:
        """Say why a charge is refused; delta has a limit of its own that needs a word."""
        why = "every answer adds to what is known about one unit, and answers cannot be taken back"
        if self.budget.rho is None and self.budget.delta and spend.delta > remaining.delta:
            why += "; at least half of the budget's delta is reserved for adding up answers"
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
        if spend.promise is not None and remaining.rho is None and (epsilon := self._largest_promise(spend)):
            return Either(Set.at_most(epsilon=_number(epsilon)), larger)
        if any(
            value is not None and (not spend.rho or value < order * spend.rho) for order, value in spend.curve
        ):
            return Either(Say("take fewer steps or add more noise"), larger)
        if spend.rho is not None and remaining.rho is not None:
            return Either(Set.at_most(rho=_number(remaining.rho)), larger)
        wants = "rho" if of.delta or of.rho else "epsilon"
        return Either(Say(f"this budget admits only costs with a finite {wants}: use {wants}"), larger)


def _read_promised(stored: object) -> tuple[Fraction | None, Fraction] | None:
    """Read the sums of promised pairs; None where a filter has none."""
    if stored is None:
        return None
    if not isinstance(stored, list | tuple) or len(stored) != 2:
        raise not_as_stored("promised", "a list of two sums, epsilon and delta", stored)
    epsilon, delta = stored
    return None if epsilon is None else read("promised epsilon", epsilon), read("promised delta", delta)


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
