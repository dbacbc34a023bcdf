"""Privacy filters in accounting: budgets that hold even if every query depends on all earlier answers.

Each charge is fixed before its query runs. A filter adds up the charges in exact arithmetic and admits a new
one while the sums stay within the budget. It never composes loss distributions, because those need all
queries declared in advance. The proof is `docs/proofs/filters.md`. Rules (sums include the new charge):

- ``Budget(epsilon)``: every delta is 0 and the sum of epsilon stays within the budget
- ``Budget(rho)``, ``Budget(rho, delta)``: the sums of rho and delta stay within the budget
- ``Budget(epsilon, delta)``: the sum of epsilon stays within epsilon and that of delta within delta/2,
  **or** the sum of rho, converted at the delta that remains of delta/2, stays within epsilon
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from tacit.accounting._budget import Budget, Spend
from tacit.accounting._json import VERSION, Json, read, read_fields, write
from tacit.accounting._zcdp import largest_pure, rho_cap
from tacit.accounting.numeric import below, on_grid, room, round_down
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Either, Fix, Say, Set

__all__ = ["Filter", "Remaining"]

_ZERO = Fraction(0)
_LARGEST = Fraction(2) ** 1023  # larger than any budget


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

    @classmethod
    def start(cls, budget: Budget) -> Filter:
        """Return the filter of an untouched budget."""
        if not isinstance(budget, Budget):
            raise bad_parameter("budget", "a Budget", budget, fix=Code("Filter.start(Budget(epsilon=1))"))
        return cls(budget, _ZERO, _ZERO, _ZERO)

    def admits(self, spend: Spend) -> bool:
        """Return whether the charge fits."""
        return _holds(self._plus(spend))

    def after(self, spend: Spend) -> Filter:
        """Return the filter after the charge, or refuse and name what is left and what would fit."""
        charged = self._plus(spend)
        if not _holds(charged):
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
        return Spend(self.epsilon, min(self.delta, Fraction(1)), self.rho)

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

    def to_json(self) -> Json:
        """Return the filter as JSON data, exact and readable by every later release."""
        return {
            "version": VERSION,
            "budget": self.budget.to_json(),
            "epsilon": write(self.epsilon),
            "delta": write(self.delta),
            "rho": write(self.rho),
        }

    @classmethod
    def from_json(cls, data: object) -> Filter:
        """Read what `to_json` wrote.

        Examples
        --------
        >>> f = Filter.start(Budget(rho=0.1)).after(Spend(rho=0.04))
        >>> Filter.from_json(f.to_json()) == f
        True
        """
        stored = read_fields("filter", data, {"budget", "epsilon", "delta", "rho"})
        sums = {
            name: None if stored[name] is None else read(name, stored[name]) for name in ("epsilon", "rho")
        }
        return cls(
            Budget.from_json(stored["budget"]), sums["epsilon"], read("delta", stored["delta"]), sums["rho"]
        )

    def _plus(self, spend: Spend) -> Filter:
        if not isinstance(spend, Spend):
            raise bad_parameter("spend", "a Spend", spend, fix=Code("filter.admits(cost.spend)"))
        return replace(
            self,
            epsilon=_add(self.epsilon, spend.epsilon),
            delta=on_grid(self.delta + spend.delta),
            rho=_add(self.rho, spend.rho),
        )

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


def _holds(state: Filter) -> bool:
    """Return whether the sums stay within the budget; once False it stays False, because sums only grow."""
    budget = state.budget
    if budget.rho is not None:
        return state.rho is not None and state.rho <= budget.rho and state.delta <= budget.delta
    assert budget.epsilon is not None  # noqa: S101 - a budget has one of the two
    if state.epsilon is not None and state.epsilon <= budget.epsilon and state.delta <= budget.delta / 2:
        return True
    left = budget.delta / 2 - state.delta
    return left > 0 and state.rho is not None and state.rho <= rho_cap(budget.epsilon, left)
