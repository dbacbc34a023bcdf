"""The ranges of table functions: from public bounds of the arguments to public bounds of the result.

Values are clipped to the bounds that are derived here, so a rounding error of a float at an end costs
accuracy at most, never privacy. A function without a range here has no derived bounds.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

#: The lower and the upper end of a range.
Ends: TypeAlias = tuple[Fraction, Fraction]


def _whole(low: int, high: int) -> Ends:
    return Fraction(low), Fraction(high)


#: The parts of a date that have a natural range.
DATE_PARTS: dict[str, Ends] = {
    "quarter": _whole(1, 4), "month": _whole(1, 12), "week": _whole(1, 53), "day": _whole(1, 31),
    "dayofyear": _whole(1, 366), "weekday": _whole(0, 6), "isodow": _whole(1, 7), "hour": _whole(0, 23),
    "minute": _whole(0, 59), "second": _whole(0, 59),
}  # fmt: skip


def _absolute(a: Ends) -> Ends:
    return max(a[0], -a[1], Fraction(0)), max(abs(a[0]), abs(a[1]))


def _corners(a: Ends, b: Ends) -> Ends:
    products = [x * y for x in a for y in b]
    return min(products), max(products)


def _increasing(
    function: Callable[[float], float], least: float, most: float
) -> Callable[[Ends], Ends | None]:
    """Return the range of an increasing function that is defined between ``least`` and ``most``."""

    def ends(a: Ends) -> Ends | None:
        if a[0] < least or a[1] > most:
            return None
        return Fraction(function(float(a[0]))), Fraction(function(float(a[1])))

    return ends


def _root(a: Ends) -> Ends | None:
    """Return the range of a root; below zero it is NULL."""
    if a[1] < 0:
        return None
    return Fraction(math.sqrt(max(a[0], Fraction(0)))), Fraction(math.sqrt(a[1]))


def _divided(a: Ends, b: Ends) -> Ends | None:
    return None if b[0] <= 0 <= b[1] else _corners(a, (1 / b[1], 1 / b[0]))


def _remainder(a: Ends, b: Ends) -> Ends:
    """Return the range of a remainder: it has the sign of the first number, and is smaller than either."""
    most = min(max(abs(b[0]), abs(b[1])), max(abs(a[0]), abs(a[1])))
    return (Fraction(0) if a[0] >= 0 else -most), (Fraction(0) if a[1] <= 0 else most)


def _rounded(a: Ends, digits: Ends) -> Ends | None:
    if digits[0] != digits[1] or abs(digits[0]) > 15:
        return None
    half = Fraction(10) ** -int(digits[0]) / 2
    return a[0] - half, a[1] + half


def _power(a: Ends, exponent: Ends) -> Ends | None:
    """Return the range of a power with a constant exponent; small whole exponents only."""
    n = exponent[0]
    if n != exponent[1] or n != int(n) or not 0 < n <= 20:
        return None
    low, high = _absolute(a) if n % 2 == 0 else a
    return low ** int(n), high ** int(n)


_ANY, _POSITIVE = -math.inf, 5e-324
OF_ONE: dict[str, Callable[[Ends], Ends | None]] = {
    "neg": lambda a: (-a[1], -a[0]),
    "abs": _absolute,
    "floor": lambda a: (Fraction(math.floor(a[0])), Fraction(math.floor(a[1]))),
    "ceil": lambda a: (Fraction(math.ceil(a[0])), Fraction(math.ceil(a[1]))),
    "trunc": lambda a: (Fraction(math.trunc(a[0])), Fraction(math.trunc(a[1]))),
    "to_whole": lambda a: (Fraction(round(a[0])), Fraction(round(a[1]))),
    "to_number": lambda a: a,
    "sign": lambda a: (Fraction((a[0] > 0) - (a[0] < 0)), Fraction((a[1] > 0) - (a[1] < 0))),
    "sqrt": _root,
    "exp": _increasing(math.exp, _ANY, 200),
    "ln": _increasing(math.log, _POSITIVE, math.inf),
    "log2": _increasing(math.log2, _POSITIVE, math.inf),
    "log10": _increasing(math.log10, _POSITIVE, math.inf),
}
OF_TWO: dict[str, Callable[[Ends, Ends], Ends | None]] = {
    "least": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "greatest": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _corners,
    "div": _divided,
    "mod": _remainder,
    "round": _rounded,
    "power": _power,
}
