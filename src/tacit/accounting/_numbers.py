"""The numbers of accounting: what is exact already is kept, and everything else is read by `tacit.exact`.

Costs are made of exact numbers, from other costs and from stored ones, far more often than from what a user
writes. So an exact number is checked here, and not read again.
"""

from __future__ import annotations

from fractions import Fraction
from typing import SupportsIndex

from tacit.exact import Number, count, rational

_SHORT = 2**1000  # a fraction of shorter numbers has a size and a length that `rational` accepts


def exact_number(name: str, value: Number, *, zero: bool = False) -> Fraction:
    """Return an exact positive number, or zero where it is allowed; `rational` reads what is not exact.

    Examples
    --------
    >>> exact_number("epsilon", Fraction(1, 10)) == exact_number("epsilon", 0.1)
    True
    """
    if type(value) is Fraction and 0 <= value.numerator < _SHORT > value.denominator and (value or zero):
        return value
    return rational(name, value, zero=zero)


def whole_number(name: str, value: SupportsIndex, *, zero: bool = False) -> int:
    """Return a positive whole number, or zero where it is allowed; `count` reads what is not a plain int.

    Examples
    --------
    >>> whole_number("times", 3)
    3
    """
    return value if type(value) is int and value > 0 else count(name, value, zero=zero)
