"""Renyi moments of whole orders in numeric accounting: binomial sums whose terms are all rounded up."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_UP = Context(prec=40, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def mixture_log_moment(q: Fraction, order: int, logs: Sequence[Fraction]) -> Fraction:
    """Return an upper value of log E_Q[((1-q) + q P/Q)^order], given upper values of log E_Q[(P/Q)^k].

    ``logs[k]`` is for the whole number k, up to the order. By the binomial theorem, the moment is the sum of
    ``C(order, k) (1-q)^(order-k) q^k exp(logs[k])``. Every operation rounds up. Decimal's exp and ln round
    correctly to the nearest digit, so the next larger number is a bound.

    Examples
    --------
    >>> round(float(mixture_log_moment(Fraction(1, 2), 2, [Fraction(0), Fraction(0), Fraction(1)])), 6)
    0.357374
    """
    odds = _up(q / (1 - q))
    weight, total = Decimal(1), Decimal(0)
    for k in range(order + 1):
        moment = _up(logs[k]).exp(_UP).next_plus(_UP) if logs[k] else Decimal(1)
        total = _UP.add(total, _UP.multiply(weight, moment))
        weight = _UP.divide(_UP.multiply(weight, _UP.multiply(odds, Decimal(order - k))), Decimal(k + 1))
    rest = order * Fraction(_up(1 - q).ln(_UP).next_plus(_UP))
    return max(Fraction(0), Fraction(total.ln(_UP).next_plus(_UP)) + rest)


def _up(x: Fraction) -> Decimal:
    return _UP.divide(Decimal(x.numerator), Decimal(x.denominator))
