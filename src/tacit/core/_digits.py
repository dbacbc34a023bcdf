"""The digits of a released number that mean anything, in the core: the noise decides how many."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.core._answer_table import Cells, Value

_MOST = 12  # decimals; beyond, binary fractions show their noise
_SHOWN = 6  # decimals that people read; smaller numbers are shown in four digits


def decimals(low: float | None, high: float | None) -> int | None:
    """Return how many decimals an interval supports: two digits of half its width; None if it is no guide.

    Examples
    --------
    >>> decimals(28.44, 30.48), decimals(-1115.0, 457.3), decimals(5.0, 5.0)
    (1, 0, None)
    """
    half = 0.0 if low is None or high is None else (high - low) / 2
    if not 0 < half < math.inf or max(abs(low or 0), abs(high or 0)) >= 1e15:
        return None
    places = max(1 - math.floor(math.log10(half)), 0)
    return places if places <= _SHOWN else None


def rounded_end(end: float, places: int, rounding: str) -> str:
    """Write a number with so many decimals; ends of intervals are rounded outwards."""
    return f"{Decimal(repr(end)).quantize(Decimal(1).scaleb(-places), rounding=rounding):z,f}"


def meaningful(cells: Cells) -> tuple[list[Value], list[Value], list[Value]]:
    """Return values, lows and highs without digits finer than a thousandth of the narrowest interval.

    Lows are rounded down and highs up, so the interval covers what it covered. Whole numbers stay.

    Examples
    --------
    >>> from tacit.core._answer_table import Cells
    >>> meaningful(Cells((5.123456789012345,), (4.1,), (6.14690123,)))
    ([5.123], [4.1], [6.147])
    """
    widths = [
        high - low
        for low, high in zip(cells.low, cells.high, strict=True)
        if low is not None and high is not None
    ]
    narrow = min((w / 2 for w in widths if 0 < w < math.inf), default=0.0)
    places = min(max(3 - math.floor(math.log10(narrow)), 0), _MOST) if narrow else _MOST
    return (
        [_at(v, places, ROUND_HALF_EVEN) for v in cells.value],
        [_at(v, places, ROUND_FLOOR) for v in cells.low],
        [_at(v, places, ROUND_CEILING) for v in cells.high],
    )


def _at(value: Value, places: int, rounding: str) -> Value:
    if not isinstance(value, float) or not math.isfinite(value) or abs(value) >= 2**53:
        return value
    rounded = Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), rounding=rounding)
    return int(rounded) if rounded == rounded.to_integral_value() and places == 0 else float(rounded)
