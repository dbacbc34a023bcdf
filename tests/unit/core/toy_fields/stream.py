"""A toy stream: how many events each day, for a year, private for one person; one charge, a release a day."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from tacit.core import Content, Dataset, Forecast, Plan, Unit, open_account, read_identity
from tacit.exact import rational
from tacit.ledger import open_ledger
from tacit.mechanisms import DiscreteLaplace


@dataclass(frozen=True, slots=True)
class DayCount(Content):
    """The count of one day with its interval, and the total of the days up to it that are stored."""

    kind: ClassVar[str] = "toy-day"
    day: int
    value: int
    low: int
    high: int
    total: int

    def to_json(self):
        return [self.day, self.value, self.low, self.high, self.total]

    @classmethod
    def from_json(cls, document):
        return cls(*document)


@dataclass(frozen=True, slots=True)
class DailyCountTask:
    """One person changes each day's count by at most 1, so the days' costs add up.

    Of one visit, which has one day, only that day's count changes: the run costs what one day costs.
    """

    days: Any
    instalments: int
    noise: DiscreteLaplace
    composition: str

    @property
    def question(self):
        return {"count": "events", "every": "day"}

    def mechanisms_of(self, number):
        return (self.noise,)

    def integers_of(self, number, noisy, state):
        yield len(set(self.days[number - 1]))

    def read_of(self, number, noisy, confidence):
        [value] = noisy[number]
        half = self.noise.half_width(confidence)
        return DayCount(number, value, value - half, value + half, sum(noisy[day][0] for day in noisy))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EventStream(Dataset):
    """Who was there on which day; the days may still be coming in."""

    _days: Any

    def daily(self, *, epsilon, days=365):
        total = rational("epsilon", epsilon)
        by_visit = self.unit == Unit.row()
        noise = DiscreteLaplace(
            epsilon=total if by_visit else total / days, sensitivity=1, adjacency=self.adjacency
        )
        half = noise.half_width(Fraction(95, 100))
        return Plan.of(
            self,
            DailyCountTask(self._days, days, noise, "largest" if by_visit else "sum"),
            promised={"epsilon": total},
            forecast=[Forecast("value", "events of a day", noise.describe(), half)],
            asked="daily counts",
            request=lambda: {"epsilon": str(total), "days": days},
        )

    def _rebuild(self, request):
        return self.daily(epsilon=Fraction(request["epsilon"]), days=request["days"])


def event_stream(days, *, unit, budget, adjacency=None, ledger=None):
    facts = {} if adjacency is None else {"adjacency": adjacency}
    identity = read_identity(name="events", unit=unit, **facts)
    store = open_ledger(ledger)
    open_account(identity, budget, store)
    return EventStream(identity, store, days)
