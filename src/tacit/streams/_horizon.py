"""The horizon of a stream: the public list of days for which rows may come in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.parameters import Day, Integer

_MAX_DAYS = 100_000


@dataclass(frozen=True, slots=True)
class Horizon:
    """So many days in a row from the first one on; days are numbered from 1."""

    start: date
    days: int

    def number(self, day: object) -> int:
        """Return the number of a day, or refuse one that is not a day of the horizon."""
        date_of_day = read_day(day)
        number = (date_of_day - self.start).days + 1
        if not 1 <= number <= self.days:
            side = "before the first" if number < 1 else "after the last"
            raise TacitError(
                "day-outside",
                f"{date_of_day} is {side} day of the stream, which runs from {self.start} to {self.last}",
                why="the noise and the cost were chosen for these days; nothing was charged or stored",
                fix=Say("declare another stream for other days"),
            )
        return number

    def day(self, number: int) -> date:
        """Return the day with a number."""
        return self.start + timedelta(days=number - 1)

    def name(self, number: int) -> str:
        """Return the name of a day: ``2026-01-31``."""
        return self.day(number).isoformat()

    @property
    def last(self) -> date:
        """The last day."""
        return self.day(self.days)


def read_day(day: object) -> date:
    """Read a day: a date, a moment or ISO text."""
    if isinstance(day, datetime):
        return day.date()
    if isinstance(day, date):
        return day
    return date.fromisoformat(Day().read("day", str(day)))


def read_horizon(start: object, days: object) -> Horizon:
    """Read the first day and the number of days."""
    horizon = Integer(1, _MAX_DAYS, instead=365).read("days", days)
    return Horizon(read_day(start), horizon)
