"""What the core shows of a released number: whether the noise hides it, and how many digits mean anything.

The noise hides numbers that were divided by a number of rows that may be noise alone. A mean, a ratio, a
variance, a quantile or a share is divided by a noisy number of rows n. It is hidden where n is at most four
standard deviations of the noise in it: 8 scales of Laplace noise where n is the sum of two noisy integers,
9.8 where it is the sum of three. Then its value is missing, and its interval stays. The rule reads released
integers and the public law of their noise, so it is free (docs/proofs/tables.md, "Hidden by the noise").

The noise also decides how many digits of the others are shown.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

from tacit.errors import TacitError
from tacit.fixes import Code, Either, Say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from tacit.core._answer_table import Cells, Value


#: What is shown in place of a hidden value.
HIDDEN: Final = "hidden by the noise"
_DEVIATIONS = 4


def is_hidden(divisor: float, variance: float | Fraction) -> bool:
    """Return whether a noisy divisor is at most four standard deviations of its noise.

    Examples
    --------
    >>> # two integers with Laplace noise of scale 10
    >>> is_hidden(80, 2 * 2 * 10**2), is_hidden(81, 2 * 2 * 10**2)
    (True, False)
    """
    return divisor <= 0 or divisor * divisor <= _DEVIATIONS**2 * variance


def least_shown(variance: float | Fraction) -> int:
    """Return the smallest whole number that is not hidden.

    Examples
    --------
    >>> least_shown(2 * 2 * 10**2)
    81
    """
    return math.isqrt(math.floor(_DEVIATIONS**2 * variance)) + 1


def swamped(divisor: float, half_width: float, confidence: float) -> bool:
    """Apply the rule where only the half-width of the divisor's interval is known, as if it were normal.

    Examples
    --------
    >>> swamped(39, 19.6, 0.95), swamped(41, 19.6, 0.95)
    (True, False)
    """
    deviation = half_width / NormalDist().inv_cdf((1 + confidence) / 2)
    return is_hidden(divisor, deviation * deviation)


def without_hidden(cells: Cells, hidden: Sequence[bool]) -> Cells:
    """Return a column without its hidden values; their intervals stay."""
    if not any(hidden):
        return cells
    value = tuple(None if gone else one for one, gone in zip(cells.value, hidden, strict=True))
    return replace(cells, value=value)


def hidden_values(cells: Cells) -> list[bool]:
    """Return of each line whether its value is hidden: it is missing, but its interval is not."""
    return [value is None and low is not None for value, low in zip(cells.value, cells.low, strict=True)]


def refuse_hidden(name: str, cells: Cells) -> None:
    """Refuse to use the one value of a column as a number where it is hidden."""
    if not any(hidden_values(cells)):
        return
    raise TacitError(
        "too-noisy",
        f"{name} is {HIDDEN}: it has the interval [{cells.low[0]:.6g}, {cells.high[0]:.6g}] and no value",
        why="the noisy number of rows behind it may be noise alone, so a value would describe the noise and "
        "not the data",
        fix=Either(Code("release.low, release.high"), Say("ask with a larger epsilon, or for larger groups")),
    )


_MAX_DECIMALS = 12  # decimals; beyond, binary fractions show their noise


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
    places = min(max(3 - math.floor(math.log10(narrow)), 0), _MAX_DECIMALS) if narrow else _MAX_DECIMALS
    return (
        [_rounded(v, places, ROUND_HALF_EVEN) for v in cells.value],
        [_rounded(v, places, ROUND_FLOOR) for v in cells.low],
        [_rounded(v, places, ROUND_CEILING) for v in cells.high],
    )


def _rounded(value: Value, places: int, rounding: str) -> Value:
    if not isinstance(value, float) or not math.isfinite(value) or abs(value) >= 2**53:
        return value
    rounded = Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), rounding=rounding)
    return int(rounded) if rounded == rounded.to_integral_value() and places == 0 else float(rounded)
