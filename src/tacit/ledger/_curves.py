"""The ledger's spends at Renyi orders: computed once, and never while the store is locked.

A filter of an (epsilon, delta) budget adds up what a cost takes at a few Renyi orders of its own, and reads
the cost of a first charge as a whole. The first computation of such a curve can be slow. So a transaction
only looks it up. Where it is not known yet, the transaction signals `CurveNeeded`; the caller computes it
outside and asks again.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting import Cost, Filter, Spend
from tacit.ledger._chain import spend_to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tacit.accounting import Budget

_KNOWN: dict[tuple[Cost, tuple[Fraction, ...]], Spend] = {}
#: By the identity of a spend: the spend itself, some orders, what it is at them, and its text.
_RECORDED: dict[int, tuple[Spend, tuple[Fraction, ...], Spend, str]] = {}
_FITS: dict[tuple[Cost, Budget], bool] = {}
_MOST = 4096


class CurveNeeded(Exception):  # noqa: N818 - a signal between a transaction and its caller
    """A transaction needs what a cost takes at some orders; compute it without the lock, then ask again."""

    def __init__(self, cost: Cost, orders: tuple[Fraction, ...]) -> None:
        super().__init__()
        self.cost = cost
        self.orders = orders

    def compute(self) -> None:
        """Compute the spend and keep it."""
        spend = self.cost.spend_at(self.orders)
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        _KNOWN[self.cost, self.orders] = spend


class FitNeeded(CurveNeeded):
    """A transaction needs to know whether a whole cost fits a budget, which is as slow to compute."""

    def __init__(self, cost: Cost, budget: Budget) -> None:
        super().__init__(cost, ())
        self.budget = budget

    def compute(self) -> None:
        """Compute whether the cost fits, and keep it."""
        fits = self.cost.fits(self.budget)
        if len(_FITS) >= _MOST:
            _FITS.clear()
        _FITS[self.cost, self.budget] = fits


def fits_alone(cost: object) -> Callable[[Budget], bool]:
    """Return how to tell whether a cost (or its stored form), read as a whole, stays within a budget."""

    def fits(budget: Budget) -> bool:
        law = cost if isinstance(cost, Cost) else Cost.from_json(cost)
        known = _FITS.get((law, budget))
        if known is None:
            raise FitNeeded(law, budget)
        return known

    return fits


def orders_of(filters: Iterable[Filter]) -> tuple[Fraction, ...]:
    """Return the orders of some filters together, ascending."""
    each = [filter_.orders for filter_ in filters if filter_.curve]
    if not each or all(orders == each[0] for orders in each[1:]):
        return each[0] if each else ()
    return tuple(sorted({order for orders in each for order in orders}))


def recorded(spend: Spend, cost: object, orders: tuple[Fraction, ...]) -> tuple[Spend, str]:
    """Return what a charge takes at some orders (see `at_orders`), and the log's text of it.

    Requests of equal costs share one spend, so it is found again by its identity, which is quick to compare.
    """
    known = _RECORDED.get(id(spend))
    if known is not None and known[0] is spend and known[1] == orders:
        return known[2:]
    there = at_orders(spend, cost, orders)
    if len(_RECORDED) >= _MOST:
        _RECORDED.clear()
    text = spend_to_text(there)
    _RECORDED[id(spend)] = (spend, orders, there, text)
    return there, text


def at_orders(spend: Spend, cost: object, orders: tuple[Fraction, ...]) -> Spend:
    """Return what a recorded or a new charge takes at some orders, or signal that it must be computed.

    ``spend`` is what was recorded, ``cost`` the cost in its stored form. What is missing in the recorded
    curve is computed from the cost; nothing becomes less than what was recorded.
    """
    curve = dict(spend.curve)
    if all(order in curve for order in orders):
        return Spend(spend.epsilon, spend.delta, spend.rho, [(order, curve[order]) for order in orders])
    law = cost if isinstance(cost, Cost) else Cost.from_json(cost)
    found = _KNOWN.get((law, orders))
    if found is None:
        raise CurveNeeded(law, orders)
    if (found.epsilon, found.delta, found.rho) == (spend.epsilon, spend.delta, spend.rho):
        return found
    return Spend(
        _larger(found.epsilon, spend.epsilon),
        max(found.delta, spend.delta),
        _larger(found.rho, spend.rho),
        [(order, _larger(value, curve.get(order, Fraction(0)))) for order, value in found.curve],
    )


def fits_limit(limit: Budget, spend: Spend, cost: object) -> bool:
    """Whether a charge is within the largest single charge: by epsilon and rho, by curve or as a whole."""
    start = Filter.start(limit)
    if Filter(limit, start.epsilon, start.delta, start.rho).admits(spend):
        return True
    return bool(start.orders) and start.admits(at_orders(spend, cost, start.orders), fits_alone(cost))


def _larger(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if one is None or other is None else max(one, other)
