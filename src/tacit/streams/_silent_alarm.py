"""The plan of a silent alarm: one answer a day, yes or no, by the sparse vector mechanism.

One unit changes each day's count by at most D, always upwards if it is added. So the counts are monotone
with sensitivity D, in however many days a unit is, and the whole sequence of answers up to the last yes
costs epsilon once. The noisy threshold is in the memory of the run, which the ledger keeps secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tacit.core import Draft, Forecast, Goal, Step
from tacit.errors import TacitError
from tacit.mechanisms import DiscreteLaplace, SparseVector
from tacit.streams._alarm import read_rate
from tacit.streams._alarm_days import AlarmDays, WatchedDay
from tacit.streams._planning import unseen_fact
from tacit.streams._stream_subject import StreamSubject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from tacit.core import JSON, Noisy
    from tacit.streams._day_question import DayQuestion
    from tacit.streams._stream import Stream
    from tacit.streams._stream_subject import NewDays


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmSubject(StreamSubject):
    """What a silent alarm measures, and how its answers are read."""

    vector: SparseVector
    rate: float
    threshold: str

    @property
    def more(self) -> dict[str, JSON]:
        """From which day on the alarm watches."""
        return {"alarm": {"since": self.since}}

    @property
    def steps(self) -> tuple[Step[NewDays], ...]:
        """The one step: the mechanism gets the counts of the new days."""
        return (Step(self.vector, lambda days, _: [day[0][0][0] for day in days.exact]),)

    def reading(self, number: int, noisy: Mapping[int, Sequence[Noisy]], confidence: Fraction) -> AlarmDays:
        """Read all days up to the last one of an instalment."""
        del confidence
        answers: list[Any] = [one for n in range(1, number + 1) if n in noisy for one in noisy[n][0]]
        unseen = [WatchedDay(self.horizon.name(day), (), None) for day in range(1, self.since)]
        said = {1: True, 0: False, -1: None}
        lines = [
            WatchedDay(self.horizon.name(self.since + n), (), said[answer])
            for n, answer in enumerate(answers)
        ]
        return AlarmDays([*unseen, *lines], self.rate, self.threshold)

    def up_to(self, content: AlarmDays, day: int, confidence: Fraction) -> AlarmDays:
        """Return the answers up to a day."""
        del confidence
        return AlarmDays(content.lines[:day], self.rate, self.threshold)


def draft_silent_alarm(
    stream: Stream, goal: Goal, *, figures: DayQuestion, baseline: Fraction, false_alarm: Fraction,
    alarms: int, since: str | None,
) -> Draft[AlarmDays]:  # fmt: skip
    """Draft the plan of an alarm from the question of one day's count."""
    accepted, first = read_rate(false_alarm), first_watched(stream, since)
    table = figures.table
    mechanism = table.mechanisms[0]
    if len(table.steps) != 1 or not isinstance(mechanism, DiscreteLaplace) or table.asked.by:
        raise TacitError(
            "not-allowed",
            "an alarm of this kind watches one count without groups",
            why="each group would need one more answer on every day",
            fix="plan an alarm for each group, and choose its rows with a condition",
        )
    assert goal.epsilon is not None  # noqa: S101 - the only total that this question takes
    vector = partial(
        SparseVector, goal.epsilon, c=alarms, sensitivity=int(mechanism.sensitivity), monotone=True, grid=1
    )
    days, level = stream.horizon.days - first + 1, f"{float(baseline):g}"
    gap, rate = _smallest_gap(partial(vector(threshold=0).false_yes, queries=days), accepted)
    subject = AlarmSubject(
        table=table, horizon=stream.horizon, facts=stream.facts, open_day=stream._open_day,  # noqa: SLF001
        marks=stream._marks, vector=vector(threshold=baseline + gap), since=first, rate=rate,  # noqa: SLF001
        threshold=f"the count is at least {gap:,} above the declared {level}, apart from the noise",
    )  # fmt: skip
    facts = [
        ("days", f"{days:,}, from {stream.horizon.name(first)} to {stream.horizon.last}"),
        ("protects", stream.promise),
        ("run", "all days are charged at once, when the plan is begun"),
        ("baseline", f"{level}, declared"),
        (
            "alarm",
            f"at {gap:,} above the baseline, apart from the noise; ends after "
            + ("the first yes" if alarms == 1 else f"{alarms} times yes"),
        ),
        (
            "false alarms",
            f"at most {rate * 100:.2g} % over all days together, if no day exceeds the baseline",
        ),
        ("found", f"a day {gap + 10:,} above the baseline with {subject.vector.true_yes(10) * 100:.3g} %"),
    ]
    return Draft(
        task=subject.task,
        asked=f"alarm, each day: {figures.words}",
        forecast=[Forecast("alarm", "yes or no each day", subject.vector.describe(), None, "yes or no")],
        facts=lambda: [*facts, *unseen_fact(stream, figures)],
        goal=Goal(epsilon=goal.epsilon),
    )


def first_watched(stream: Stream, since: str | None) -> int:
    """Return the number of the first day that is watched."""
    return 1 if since is None else stream.horizon.number(since)


def _smallest_gap(false_yes: Callable[[int], float], accepted: float) -> tuple[int, float]:
    """Return the smallest whole gap with few enough false alarms, and their chance."""
    low, high = 0, 1
    while false_yes(high) > accepted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if false_yes(middle) <= accepted else (middle, high)
    return high, false_yes(high)
