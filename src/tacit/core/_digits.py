"""The digits of a released number that mean anything, in the core: the noise decides how many."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.core._answer_table import Cells, Value

_MOST = 12  # decimals; beyond, binary fractions show their noise


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
