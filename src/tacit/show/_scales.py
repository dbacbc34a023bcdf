"""Scales and colours of figures.

Scales lead from values to positions on the page, with round numbers, powers or days along the axis. Each
colour is clearly visible on white and on dark paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tacit.show._figures import ChartAxis


_FEW: Final = 5
_NEARLY: Final = 0.015
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Scale1D:
    """A map from values to places; `ticks` are values with their words."""

    low: float
    high: float
    start: float = 0.0
    end: float = 1.0
    ticks: tuple[tuple[float, str], ...] = ()
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Return the place of a value; values beyond an end lie at the end."""
        value, low, high = min(max(value, self.low), self.high), self.low, self.high
        if self.logarithmic:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def scale_of(
    axis: ChartAxis, values: Sequence[float], start: float, end: float, *, zero: bool = False
) -> Scale1D:
    """Return the scale of an axis for these values; with ``zero``, zero is on it unless it is far away."""
    finite = [value for value in values if math.isfinite(value) and abs(value) < 1e300]
    finite += [value for value in axis.ends if value is not None]
    if axis.kind == "dates":
        scale = days_scale(finite or [0.0], start, end)
    elif axis.kind == "logarithmic":
        scale = _powers_scale([value for value in finite if value > 0] or [1.0], start, end)
    else:
        shown_values = with_zero(finite) if zero else finite
        if zero and shown_values and 0 < -min(shown_values) < _NEARLY * max(shown_values):
            shown_values = [max(0.0, value) for value in shown_values]  # a hair below zero needs no room
        scale = number_scale(shown_values, start, end, share=axis.kind == "shares")
    low, high = (made_end if fixed is None else fixed for fixed, made_end in
                 zip(axis.ends, (scale.low, scale.high), strict=True))  # fmt: skip
    scale = replace(scale, low=low, high=high) if low < high else scale
    ticks = axis.ticks or scale.ticks
    return replace(scale, ticks=tuple((at, words) for at, words in ticks if scale.low <= at <= scale.high))


def number_scale(values: Sequence[float], start: float, end: float, *, share: bool = False) -> Scale1D:
    """Return a scale from a round number at or below all values to one at or above them.

    Examples
    --------
    >>> [words for _, words in number_scale([0, 9.2], 0, 100).ticks]
    ['0', '2', '4', '6', '8', '10']
    """
    low, high = (min(values), max(values)) if values else (0.0, 0.0)
    if low == high:
        low, high = (low - abs(low) / 2, high + abs(high) / 2) if low else (0.0, 1.0)
    raw = max((high - low) / _FEW, 1e-300)
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(one for one in (1, 2, 2.5, 5, 10) if one * power >= raw * (1 - 1e-9))
    if step in {0.1, 0.2, 0.25, 0.5, 2.5} and all(float(value).is_integer() for value in values):
        step = float(math.ceil(step))  # whole numbers have whole ticks
    start_step, end_step = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    places = [float(f"{place * step:.12g}") for place in range(start_step, end_step + 1)]
    words = (f"{100 * at:.4g} %" if share else short_number(at) for at in places)
    return Scale1D(start_step * step, end_step * step, start, end, tuple(zip(places, words, strict=True)))


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


def _powers_scale(values: Sequence[float], start: float, end: float) -> Scale1D:
    low, high = min(values) / 1.2, max(values) * 1.2
    steps = (1, 2, 5) if high / low < 100 else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = max(1, len(powers) // 6) if len(steps) == 1 else 1
    places = [float(f"{one}e{power}") for power in powers[::every] for one in steps]
    ticks = tuple((at, f"{at:g}") for at in places if low <= at <= high)
    return Scale1D(low, high, start, end, ticks, logarithmic=True)


def days_scale(days: Sequence[float], start: float, end: float) -> Scale1D:
    """Return a scale of time, in days since 1970, with at most five days or times in words.

    Examples
    --------
    >>> [words for _, words in days_scale([0, 30], 0, 100).ticks]
    ['1 Jan 1970', '8 Jan', '16 Jan', '23 Jan', '31 Jan']
    """
    low, high = min(days), max(days)
    if low == high:
        high = low + 1
    clock = ", %H:%M" if high - low < 3 else ""
    few = 3 if clock else _FEW
    marks: dict[str, float] = {}
    year = 0
    for index in range(few):
        at = low + index / (few - 1) * (high - low)
        when = _START + timedelta(days=at)
        form = f"{when.day} %b" + (" %Y" if when.year != year else "") + clock
        year = when.year
        marks.setdefault(when.strftime(form), at)
    return Scale1D(low, high, start, end, tuple((at, words) for words, at in marks.items()))


def are_between(xs: Iterable[float]) -> bool:
    """Whether all places lie halfway between whole numbers: the edges of steps around them.

    Examples
    --------
    >>> are_between([-0.5, 0.5, 1.5]), are_between([0, 1])
    (True, False)
    """
    return all((float(x) - 0.5).is_integer() for x in xs)


def day_words(at: float) -> str:
    """Write a day, or a time within one, that is given in days since 1970.

    Examples
    --------
    >>> day_words(30.0), day_words(30.5)
    ('31 Jan 1970', '31 Jan 1970, 12:00')
    """
    when = _START + timedelta(days=at)
    return when.strftime(f"{when.day} %b %Y" + ("" if float(at).is_integer() else ", %H:%M"))


def days_of(moment: datetime) -> float:
    """Return a moment as days since 1970; a moment without a zone is read as it is written."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _START).total_seconds() / 86_400


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


PALETTE: Final = (
    "#12859b", "#d1690a", "#2b9459", "#d8453b", "#7d5fe0", "#7b8287", "#cf4079", "#a3790c",
)  # fmt: skip


def colour(index: int) -> str:
    """Return a colour of the palette; after the last one, the first follows."""
    return PALETTE[index % len(PALETTE)]
