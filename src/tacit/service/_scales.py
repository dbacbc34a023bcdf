"""Scales of charts: from values to places on the page, with round numbers or days along the axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEW: Final = 5
_DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Scale1D:
    """A straight map from values to places; `marks` are moments with their words, on an axis of time."""

    low: float
    high: float
    start: float
    end: float
    step: float = 0.0
    marks: tuple[tuple[float, str], ...] = ()

    def at(self, value: float) -> float:
        """Return the place of a value; values beyond an end lie at the end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return the round numbers of the axis."""
        first, last = math.ceil(self.low / self.step - 1e-9), math.floor(self.high / self.step + 1e-9)
        return [float(f"{place * self.step:.12g}") for place in range(first, last + 1)]


def number_scale(values: Sequence[float], start: float, end: float) -> Scale1D:
    """Return a scale from a round number at or below all values to one at or above them.

    Examples
    --------
    >>> number_scale([0, 9.2], 0, 100).ticks()
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    known = [value for value in values if math.isfinite(value) and abs(value) < 1e300] or [0.0]
    low, high = min(known), max(known)
    if low == high:
        low, high = (low - abs(low) / 2, high + abs(high) / 2) if low else (0.0, 1.0)
    raw = max((high - low) / _FEW, 1e-300)
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(one for one in (1, 2, 2.5, 5, 10) if one * power >= raw * (1 - 1e-9))
    return Scale1D(
        math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, start, end, step
    )  # fmt: skip


def with_zero(values: Sequence[float]) -> list[float]:
    """Return the values and zero; if they are close together, room instead of zero.

    Examples
    --------
    >>> with_zero([3, 9]), with_zero([12030, 12050])
    ([0.0, 3, 9], [12028.0, 12030, 12050, 12052.0])
    """
    across = max(values) - min(values) if values else 0.0
    if not values or across >= max(abs(value) for value in values) / 4:
        return [0.0, *values]
    return [min(values) - across / 10, *values, max(values) + across / 10]


def days_scale(moments: Sequence[float], start: float, end: float) -> Scale1D:
    """Return a scale of time, in seconds since 1970, with at most five days or times in words.

    Examples
    --------
    >>> [words for _, words in days_scale([0, 30 * 86400.0], 0, 100).marks]
    ['1 Jan 1970', '8 Jan', '16 Jan', '23 Jan', '31 Jan']
    """
    low, high = min(moments), max(moments)
    if low == high:
        high = low + _DAY
    clock = ", %H:%M" if high - low < 3 * _DAY else ""
    few = 3 if clock else _FEW
    places = [low + share * (high - low) / (few - 1) for share in range(few)]
    marks: dict[str, float] = {}
    year = 0
    for moment in places:
        when = datetime.fromtimestamp(moment, UTC)
        form = f"{when.day} %b" + (" %Y" if when.year != year else "") + clock
        year = when.year
        marks.setdefault(when.strftime(form), moment)
    return Scale1D(low, high, start, end, 0.0, tuple((moment, words) for words, moment in marks.items()))


def shown(value: float) -> str:
    """Write a number for people: whole numbers in full with commas, others with four digits.

    Examples
    --------
    >>> shown(12345.0), shown(0.123456), shown(2.50), shown(1e-9), shown(1234.5)
    ('12,345', '0.1235', '2.5', '1e-09', '1,234.5')
    """
    if not math.isfinite(value):
        return "no limit" if value > 0 else f"{value}"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def short_number(value: float) -> str:
    """Write a number beside an axis: millions and billions by their letter.

    Examples
    --------
    >>> short_number(2_500_000), short_number(-4e9), short_number(12_500), short_number(0.25)
    ('2.5 M', '-4 B', '12,500', '0.25')
    """
    for power, letter in ((1e9, "B"), (1e6, "M")):
        if power <= abs(value) < 1000 * power:
            return f"{value / power:g} {letter}"
    return shown(value)


def read_moment(moment: object) -> datetime:
    """Read a moment: ISO text, or seconds since 1970; a text without a zone is UTC."""
    if isinstance(moment, int | float):
        return datetime.fromtimestamp(moment, UTC)
    read = datetime.fromisoformat(str(moment))
    return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)


def shown_moment(moment: object) -> str:
    """Write a moment for people, in UTC; a day stays a day.

    Examples
    --------
    >>> shown_moment("2026-03-01"), shown_moment(0)
    ('1 Mar 2026', '1 Jan 1970, 00:00 UTC')
    """
    when = read_moment(moment)
    only_a_day = isinstance(moment, str) and len(moment) == len("2026-01-31")
    return f"{when.day} " + when.strftime("%b %Y" if only_a_day else "%b %Y, %H:%M UTC")
