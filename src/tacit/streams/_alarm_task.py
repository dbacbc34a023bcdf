"""The plan of a silent alarm: one answer a day, yes or no, by the sparse vector mechanism.

One unit changes each day's count by at most D, always upwards if it is added. So the counts are monotone
with sensitivity D, in however many days a unit is, and the whole sequence of answers up to the last yes
costs epsilon once. The noisy threshold is in the memory of the run, which the ledger keeps secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.core import Forecast, Plan, members_of
from tacit.engines import KEPT
from tacit.errors import TacitError
from tacit.exact import Number, count, rational
from tacit.mechanisms import DiscreteLaplace, SparseVector
from tacit.streams._alarm import read_rate
from tacit.streams._alarm_days import AlarmDays, WatchedDay
from tacit.streams._planning import unseen_fact
from tacit.streams._task import DaysWanted, StreamTask

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from tacit.core import JSON
    from tacit.streams._stream import Stream

__all__ = ["AlarmGoal", "AlarmTask", "make_alarm_plan"]


@dataclass(frozen=True, slots=True)
class AlarmGoal:
    """What a user gives to ``alarm_plan``."""

    baseline: Fraction
    epsilon: Fraction
    false_alarm: Fraction
    alarms: int
    since: int

    @classmethod
    def read(
        cls, *, baseline: Number, epsilon: Number, false_alarm: Number, alarms: object, since: int
    ) -> AlarmGoal:
        """Read a goal, or refuse with what is wrong in it."""
        read_rate(false_alarm)
        return cls(
            rational("baseline", baseline, zero=True),
            rational("epsilon", epsilon),
            rational("false_alarm", false_alarm),
            count("alarms", alarms, zero=False),  # type: ignore[arg-type]
            since,
        )

    def to_json(self) -> dict[str, JSON]:
        """Return the goal as JSON, numbers exactly."""
        exact = {name: str(getattr(self, name)) for name in ("baseline", "epsilon", "false_alarm")}
        return {**exact, "alarms": self.alarms, "since": self.since}

    @classmethod
    def from_json(cls, document: Any) -> AlarmGoal:
        """Read a goal back."""
        exact = {name: Fraction(document[name]) for name in ("baseline", "epsilon", "false_alarm")}
        return cls.read(**exact, alarms=document["alarms"], since=document["since"])


@dataclass(frozen=True, slots=True)
class AlarmTask(StreamTask):
    """The task of an alarm plan; ``since`` is the number of the first day that is watched."""

    vector: SparseVector
    since: int
    rate: float
    threshold: str

    @property
    def question(self) -> JSON:
        """What is counted each day, of which days, and from which day on."""
        about: Any = StreamTask.question.fget(self)  # type: ignore[attr-defined]
        return {**about, "alarm": {"since": self.since}}

    def mechanisms_of(self, number: int) -> Sequence[Any]:
        """Return the mechanism, which is the same for all instalments."""
        del number
        return (self.vector,)

    def integers_of(
        self, number: int, noisy: Mapping[int, Sequence[Any]], state: bytes
    ) -> Generator[Any, Any, bytes | None]:
        """Yield the exact counts of the new days that are watched; return how far the days go now."""
        del number, noisy
        before, left = self.states(state)
        new = range(max(before + 1, self.since), self.wanted.through + 1)
        yield [self._integers(day)[0][0][0] for day in new]
        return left

    def read_of(self, number: int, noisy: Mapping[int, Sequence[Any]], confidence: Fraction) -> AlarmDays:  # type: ignore[override]
        """Read all days up to the last one of an instalment."""
        del confidence
        answers = [one for n in range(1, number + 1) if n in noisy for one in noisy[n][0]]
        unseen = [WatchedDay(self.horizon.name(day), (), None) for day in range(1, self.since)]
        said = {1: True, 0: False, -1: None}
        lines = [
            WatchedDay(self.horizon.name(self.since + n), (), said[answer])
            for n, answer in enumerate(answers)
        ]
        return AlarmDays([*unseen, *lines], self.rate, self.threshold)

    def up_to(self, content: AlarmDays, day: int, confidence: Fraction) -> AlarmDays:  # type: ignore[override]
        """Return the answers up to a day."""
        del confidence
        return AlarmDays(content.lines[:day], self.rate, self.threshold)


def make_alarm_plan(stream: Stream, one: Plan[Any], request: JSON, goal: AlarmGoal) -> Plan[AlarmDays]:
    """Make the plan of an alarm from the plan of one day's count, which is never released itself."""
    table: Any = members_of(one)[0].task.subject
    mechanism = table.mechanisms[0]
    if len(table.steps) != 1 or not isinstance(mechanism, DiscreteLaplace) or table.asked.by:
        raise TacitError(
            "not-allowed",
            "an alarm of this kind watches one count without groups",
            why="each group would need one more answer on every day",
            fix="plan an alarm for each group, and choose its rows with a condition",
        )
    moved = int(mechanism.sensitivity)
    days = stream.horizon.days - goal.since + 1
    gap, rate = _smallest_gap(goal, moved, days)
    vector = _vector(goal, moved, goal.baseline + gap)
    words = f"the count is at least {gap:,} above the declared {float(goal.baseline):g}, apart from the noise"
    task = AlarmTask(
        table, (), stream.horizon, stream.facts, False, (), stream._open_day, stream._marks,  # noqa: FBT003, SLF001
        DaysWanted(), vector, goal.since, rate, words,
    )  # fmt: skip
    facts = [
        ("days", f"{days:,}, from {stream.horizon.name(goal.since)} to {stream.horizon.last}"),
        ("protects", stream.promise),
        ("run", "all days are charged at once, when the plan is begun"),
        ("baseline", f"{float(goal.baseline):g}, declared"),
        (
            "alarm",
            f"at {gap:,} above the baseline, apart from the noise; ends after "
            + ("the first yes" if goal.alarms == 1 else f"{goal.alarms} times yes"),
        ),
        (
            "false alarms",
            f"at most {rate * 100:.2g} % over all days together, if no day exceeds the baseline",
        ),
        ("found", f"a day {gap + 10:,} above the baseline with {vector.true_yes(10) * 100:.3g} %"),
    ]
    return Plan.of(
        stream,
        task,
        promised={"epsilon": goal.epsilon},
        forecast=[Forecast("alarm", "yes or no each day", vector.describe(), None, "yes or no")],
        facts=lambda: [*facts, *unseen_fact(stream, request)],
        asked=f"alarm, each day: {one.asked.replace(f', where {KEPT}', '')}",
        request=lambda: request,
    )


def _vector(goal: AlarmGoal, moved: int, threshold: Number) -> SparseVector:
    return SparseVector(
        goal.epsilon, threshold=threshold, c=goal.alarms, sensitivity=moved, monotone=True, grid=1
    )


def _smallest_gap(goal: AlarmGoal, moved: int, days: int) -> tuple[int, float]:
    """Return the smallest whole gap with few enough false alarms, and their chance."""
    vector, wanted = _vector(goal, moved, 0), float(goal.false_alarm)
    low, high = 0, 1
    while vector.false_yes(high, queries=days) > wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = vector.false_yes(middle, queries=days) <= wanted
        low, high = (low, middle) if fits else (middle, high)
    return high, vector.false_yes(high, queries=days)
