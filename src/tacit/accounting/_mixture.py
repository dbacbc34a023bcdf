"""The mixture of Renyi orders in accounting: how a filter reads an (epsilon, delta) budget.

Orders, weights and readings depend on the budget alone, so they are public and fixed when an account is
opened. Stored filters rely on them: they never change. `docs/proofs/filters.md` has the proof. Decimal
arithmetic rounds in the same way everywhere, so every machine finds the same orders.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tacit.accounting.numeric import log_down, log_up, round_down

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.accounting._json import RenyiCurve


#: The share of a budget's delta that answers may spend themselves; the other half pays for adding them up.
ANSWERS = Fraction(1, 2)

_NEAR = Context(prec=28)
#: Orders less 1, as multiples of the one that suits zCDP best, and the weights of the mixture.
_ORDERS = (Decimal("0.65"), Decimal("0.84"), Decimal("1.04"), Decimal("4.5"))
_WEIGHTS = (Fraction(7, 100), Fraction(30, 100), Fraction(59, 100), Fraction(4, 100))

#: An average of the orders' sums: (place of the order, its share); the shares add up to 1.
Shares: TypeAlias = tuple[tuple[int, Fraction], ...]


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


def readings_of(epsilon: Fraction, delta: Fraction, sums: RenyiCurve) -> tuple[OrderReading, ...]:
    """Return the readings of a filter's sums, at the orders that it has had since it was opened."""
    usual = mixture(epsilon, delta)
    orders = tuple([order for order, _ in sums])
    return (usual if usual.orders == orders else mixture_of(orders, epsilon, delta)).readings


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
