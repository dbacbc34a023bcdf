"""A toy stream: how many events each day, for a year, private for one person; one charge, a release a day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tacit import core
from tacit.ledger import open_ledger
from tacit.mechanisms import DiscreteLaplace
from tacit.parameters import Integer


@dataclass(frozen=True, slots=True)
class DayCount(core.Content):
    kind: ClassVar[str] = "toy-day"
    day: int
    value: int
    low: int
    high: int
    total: int


def draft(stream, goal, days):
    """One person changes each day's count by at most 1, so the days' costs add up.

    Of one visit, which has one day, only that day's count changes: the run costs what one day costs.
    """
    by_visit = stream.unit == core.Unit.row()
    each = goal.epsilon if by_visit else goal.epsilon / days
    noise = DiscreteLaplace(epsilon=each, sensitivity=1, adjacency=stream.adjacency)

    def read(number, noisy, confidence):
        [value], half = noisy[number], noise.half_width(confidence)
        return DayCount(number, value, value - half, value + half, sum(noisy[day][0] for day in noisy))

    steps = (core.Step(noise, lambda people, _: len(set(people))),)
    task = core.RunTask(
        document={"count": "events", "every": "day"}, instalments=days, steps_of=lambda _: steps,
        open=lambda before: stream._days[before.number - 1], reading=read,
        composition="largest" if by_visit else "sum",
    )  # fmt: skip
    forecast = core.Forecast("value", "events of a day", noise.describe(), noise.half_width(goal.confidence))
    return core.Draft(task=task, asked="daily counts", forecast=[forecast])


DAYS = core.Argument("days", Integer(1), default=365)
DAILY = core.QuestionKind(name="daily", words="Count each day", draft=draft, arguments=(DAYS,))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EventStream(core.Dataset):
    questions = (DAILY,)
    _days: Any


def event_stream(days, *, unit, budget, adjacency="add/remove", ledger=None):
    identity, store = core.read_identity(name="events", unit=unit, adjacency=adjacency), open_ledger(ledger)
    core.open_account(identity, budget, store)
    return EventStream(identity, store, days)
