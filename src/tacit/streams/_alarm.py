"""Alarms: on noisy days, which costs nothing, and silent alarms, which answer yes or no each day.

The alarm on noisy days is a threshold on what a plan releases anyway. Day t is judged once, by its estimate
from the rows that were released up to day t. A later estimate does not change the verdict. On quiet days the
estimate exceeds the true number by noise alone, so the chance that it reaches the threshold is that of the
noise. The chances of all days and groups are added up (independent days: multiplied). The sum bounds the
chance of any false alarm over the horizon.

The silent alarm gives one answer a day, yes or no, by the sparse vector mechanism. One unit changes each
day's count by at most D, always upwards if it is added. So the counts are monotone with sensitivity D, in
however many days a unit is, and the whole sequence of answers up to the last yes costs epsilon once. The
noisy threshold is in the memory of the run, which the ledger keeps secret.

The release of both says for each day and group whether the alarm rang.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from tacit.bisection import first_integer
from tacit.core import Content, Draft, Forecast, Goal, Step, plain_table
from tacit.errors import TacitError
from tacit.exact import Number, rational
from tacit.fixes import Choose, Either, Set
from tacit.mechanisms import DiscreteLaplace, SparseVector, chance_above
from tacit.parameters import Choice, Integer, RealNumber, exactly_one
from tacit.report import short_percent
from tacit.show import BLUE, RED, Chart, ChartAxis, ChartSeries, Figure, days_of
from tacit.streams._noise_choice import WINDOWS
from tacit.streams._planning import unseen_fact
from tacit.streams._series import SUFFIXES
from tacit.streams._stream_run import StreamSubject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.core import JSON, AnswerTable, Noisy, Value
    from tacit.mechanisms import StreamNoise
    from tacit.streams._planning import DayQuestion
    from tacit.streams._stream import Stream
    from tacit.streams._stream_run import BegunPlan, NewDays


@dataclass(frozen=True, slots=True)
class WatchedDay:
    """One day of one group under an alarm.

    Parameters
    ----------
    day
        As ISO text.
    group
        The group's keys; empty without groups.
    alarm
        Whether the alarm rang; None on a day that was not watched.
    value
        The noisy number of the day, or of its 7 days; None if only the answer is released.
    excess
        By how much the noisy number is above the baseline; None where there is no value.
    """

    day: str
    group: tuple[Value, ...]
    alarm: bool | None
    value: float | None = None
    excess: float | None = None


class AlarmDays(Content):
    """Whether an alarm rang, for all days so far.

    Attributes
    ----------
    lines
        One `WatchedDay` for each day and group.
    rate
        The largest chance of a false alarm over the whole horizon: of any alarm, if every day is quiet.
    threshold
        In words.
    """

    kind: ClassVar[str] = "alarm"
    described: ClassVar[str] = "the days of an alarm"
    __slots__ = ("lines", "rate", "threshold")

    def __init__(self, lines: Sequence[WatchedDay], rate: float, threshold: str) -> None:
        self.lines = tuple(lines)
        self.rate = rate
        self.threshold = threshold

    @property
    def days(self) -> int:
        """How many days came in."""
        return len({line.day for line in self.lines})

    @property
    def rang(self) -> tuple[WatchedDay, ...]:
        """The days and groups with an alarm."""
        return tuple(line for line in self.lines if line.alarm)

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[WatchedDay]:
        return iter(self.lines)

    def to_json(self) -> JSON:
        """Return the content as JSON."""
        return {
            "rate": self.rate,
            "threshold": self.threshold,
            "lines": [
                [
                    line.day,
                    list(line.group),
                    line.alarm,
                    line.value,
                    *([line.excess] if line.value is not None else []),
                ]
                for line in self.lines
            ],
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the content back; raises ``ValueError`` where it is not one."""
        lines = []
        for day, group, alarm, *numbers in document["lines"]:  # at first there was no excess
            if alarm not in {True, False, None} or len(numbers) not in {1, 2}:
                raise ValueError("not an alarm")
            finite = (None if number is None else float(number) for number in numbers)
            lines.append(WatchedDay(str(day), tuple(group), alarm, *finite))
        return cls(lines, float(document["rate"]), str(document["threshold"]))

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the days, with the groups that were watched."""
        keys = {"day": [line.day for line in self.lines]}
        if any(line.group for line in self.lines):
            keys["group"] = [", ".join(map(str, line.group)) for line in self.lines]
        columns = {
            name: [getattr(line, name) for line in self.lines] for name in ("alarm", "value", "excess")
        }
        yield "days", plain_table(keys, columns)

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the days as points: their noisy numbers where they are released, and which had an alarm."""
        del what
        watched = [line for line in self.lines if line.alarm is not None]
        values = any(line.value is not None for line in watched)
        series = []
        for rang, label, colour in ((False, "no alarm", BLUE), (True, "alarm", RED)):
            days_drawn = [line for line in watched if line.alarm is rang]
            days = [days_of(datetime.fromisoformat(line.day[:10])) for line in days_drawn]
            y = [line.value if values else float(rang) for line in days_drawn]
            series.append(ChartSeries("points", days, y, label=label, colour=colour))
        axis = ChartAxis("noisy number") if values else ChartAxis("alarm", ticks=((0.0, "no"), (1.0, "yes")))
        rate = f"false alarms: {_rate_words(self.rate)}"
        return (Figure("alarms", (Chart(tuple(series), ChartAxis(kind="dates"), axis),), (rate,)),)

    def __repr__(self) -> str:
        watched = len({line.day for line in self.lines if line.alarm is not None})
        days = "1 day was" if watched == 1 else f"{watched:,} days were"
        head = f"{days} watched; the alarm rings if {self.threshold}"
        rate = f"false alarms: {_rate_words(self.rate)}"
        lines = [self._line(line) for line in self.rang[-10:]] or ["no alarm"]
        more = len(self.rang) - len(lines)
        return "\n".join([head, rate, *([f"{more:,} alarms before these"] if more > 0 else []), *lines])

    @staticmethod
    def _line(line: WatchedDay) -> str:
        group = f", {', '.join(map(str, line.group))}" if line.group else ""
        value = "" if line.value is None else f": {line.value:.6g}"
        above = "" if line.excess is None else f", {line.excess:.6g} above the baseline"
        return f"alarm on {line.day}{group}{value}{above}"


@dataclass(frozen=True, slots=True, repr=False)
class Alarm:
    """A threshold on the noisy days of a plan; made by `Stream.alarm`.

    Guarantee: free post-processing. If no true number exceeds its baseline on any day of the horizon, the
    chance that the alarm ever rings is at most `rate`.

    Parameters
    ----------
    column
        The column that is watched.
    window
        ``"day"`` or ``"week"``, the sum of 7 days.
    baseline
        The quiet level of each group; empty if it is the mean of earlier released days.
    days_before
        The number of these days; 0 for a declared baseline.
    gap
        By how much the noisy number must exceed the baseline, at least.
    rate
        A certified bound on the chance of a false alarm over the horizon, all groups together.
    """

    column: str
    window: str
    baseline: tuple[float, ...]
    days_before: int
    gap: int
    rate: float
    _begun: BegunPlan

    @property
    def threshold(self) -> str:
        """The rule by which the alarm rings, in words."""
        words = self.column if self.window == "day" else f"{self.column} of 7 days"
        if self.days_before:
            level = f"the mean of the {self.days_before} released days before"
        elif len(set(self.baseline)) == 1:
            level = f"the declared {self.baseline[0]:g}"
        else:
            level = "the declared level of its group"
        return f"{words} is at least {self.gap:,} above {level}"

    def check(self) -> AlarmDays:
        """Judge all days that are released; free."""
        subject = self._begun.subject
        rows, through = self._begun.rows()
        column = next(one for one in subject.table.columns if one.name == self.column)
        noise = subject.noises[column.step]
        keys: Any = subject.table.asked.keys if subject.table.asked.by else None
        groups = [tuple(key) for key in keys] if keys else [()]
        lines = []
        for day in range(1, through + 1):
            weights = _weights(noise, self.window, day, self.days_before)
            name = subject.horizon.name(day)
            if weights is None:
                lines += [WatchedDay(name, group, None) for group in groups]
                continue
            released = rows[column.step][: len(weights), :, 0]
            values = noise.weights(WINDOWS[self.window] or 1, day, day) @ released
            above = weights @ released - np.array(self.baseline or (0.0,) * len(groups))
            for group, value, excess in zip(groups, values.tolist(), above.tolist(), strict=True):
                lines.append(WatchedDay(name, group, excess >= self.gap, value, excess))
        return AlarmDays(lines, self.rate, self.threshold)

    def __repr__(self) -> str:
        rate = _rate_words(self.rate)
        return f"the alarm rings if {self.threshold}\nfalse alarms: {rate}"


def make_alarm(
    begun: BegunPlan,
    column: str | None,
    *,
    baseline: object,
    days_before: object,
    false_alarm: Number,
    window: object,
) -> Alarm:
    """Find the smallest gap whose chance of a false alarm is small enough; reads no data."""
    subject = begun.subject
    accepted = read_rate(false_alarm)
    Choice(("day", "week")).read("window", window)
    watched_column = counted_column(subject, column)
    noise = subject.noises[watched_column.step]
    groups = max(1, len(subject.table.asked.keys or ())) if subject.table.asked.by else 1
    levels, before = _read_baseline(baseline, days_before, subject, groups)
    laws = [_weights(noise, str(window), day, before) for day in range(1, subject.horizon.days + 1)]
    watched = [w for w in laws if w is not None]
    gap, rate = _smallest_gap(noise, watched, groups, accepted)
    return Alarm(watched_column.name, str(window), levels, before, gap, rate, begun)


def read_rate(false_alarm: Number) -> float:
    """Read the chance of a false alarm that is accepted over the horizon."""
    rate = RealNumber(above=0, below=1, instead=0.05).read("false_alarm", false_alarm)
    return float(rate)


def _rate_words(rate: float) -> str:
    return f"at most {short_percent(rate, 2)} over the whole horizon, if every day is quiet"


def counted_column(subject: StreamSubject, column: str | None) -> Any:
    """Return the column that is watched: a count that the plan releases every day."""
    if not subject.noises:
        raise TacitError(
            "bad-parameter",
            "this plan releases only yes or no each day, and no noisy counts",
            fix="name a plan that releases a count",
        )
    counts = {
        one.name: one
        for one in subject.table.columns
        if subject.table.steps[one.step].statistic.size == 1
        and subject.table.steps[one.step].statistic.step == 1
    }
    if column is None and len(counts) == 1:
        return next(iter(counts.values()))
    if column not in counts:
        base = str(column).removesuffix(SUFFIXES["week"])
        if base != column and base in counts:
            raise TacitError(
                "bad-parameter",
                f"to watch {base} over 7 days, set the window instead of the column",
                fix=Set(column=base, window="week"),
            )
        raise TacitError(
            "bad-parameter",
            "an alarm watches one count of the plan" + ("" if column is None else f", not {column!r}"),
            why="its false alarms are computed from the noise on whole numbers",
            fix=Choose(tuple(counts), given=str(column)) if counts else "plan a count as well",
        )
    return counts[column]


def _read_baseline(
    baseline: object, days_before: object, subject: StreamSubject, groups: int
) -> tuple[tuple[float, ...], int]:
    exactly_one(
        "an alarm", baseline=baseline, days_before=days_before,
        why="an alarm compares with a declared number, or with the mean of the released days before; a "
        "baseline taken from the rows would be a release that nobody paid for",
        fix=Either(Set(baseline=40), Set(days_before=14)),
    )  # fmt: skip
    if baseline is None:
        before = Integer(1, subject.horizon.days - 1, instead=14).read("days_before", days_before)
        return (), before
    if not isinstance(baseline, Mapping):
        return (float(rational("baseline", baseline, zero=True)),) * groups, 0  # type: ignore[arg-type]
    keys = [tuple(key) for key in subject.table.asked.keys or ()]
    levels = {key if isinstance(key, tuple) else (key,): level for key, level in baseline.items()}
    if set(levels) != set(keys):
        lacking = [key for key in keys if key not in levels]
        other = [key for key in levels if key not in keys]
        group = ", ".join(map(str, (lacking or other)[0]))
        raise TacitError(
            "bad-parameter",
            "a baseline has one number for each group: "
            + (f"{group} is missing" if lacking else f"{group} is not a group of the plan"),
            fix=Set(baseline={**baseline, ", ".join(map(str, lacking[0])): 40} if lacking else 40),
        )
    return tuple(float(rational("baseline", levels[key], zero=True)) for key in keys), 0


def _weights(noise: StreamNoise, window: str, day: int, before: int) -> NDArray[np.float64] | None:
    """Return what each row adds to what is judged on a day; None if the day has no baseline yet."""
    size = WINDOWS[window] or 1
    day_weights = noise.weights(size, day, day)
    if not before:
        return day_weights
    if day - size < before:
        return None
    level = noise.weights(before, day - size, day)
    return day_weights - size / before * level


def _smallest_gap(
    noise: StreamNoise, laws: list[NDArray[np.float64]], groups: int, accepted: float
) -> tuple[int, float]:
    """Return the smallest whole gap with few enough false alarms, and the bound on their chance."""
    shapes = {np.sort(np.abs(w[w != 0])).tobytes(): w for w in laws}
    often = dict.fromkeys(shapes, 0)
    for w in laws:
        often[np.sort(np.abs(w[w != 0])).tobytes()] += groups
    is_independent = all(np.count_nonzero(w) == 1 for w in laws)  # each day has noise of its own

    def rate(gap: int) -> float:
        chances = [(chance_above(noise.noise, w, gap), often[key]) for key, w in shapes.items()]
        if is_independent:
            calm = sum(times * math.log1p(-chance) if chance < 1 else -math.inf for chance, times in chances)
            return -math.expm1(calm) * (1 + 1e-9)
        return sum(chance * times for chance, times in chances)

    smallest = first_integer(lambda gap: rate(gap) <= accepted, 0, 1, growing=True)
    return smallest, rate(smallest)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmSubject(StreamSubject):
    """What a silent alarm measures, and how its answers are read."""

    vector: SparseVector
    rate: float
    threshold: str

    @property
    def more(self) -> dict[str, JSON]:
        """The day from which the alarm watches."""
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
        verdicts = {1: True, 0: False, -1: None}
        lines = [
            WatchedDay(self.horizon.name(self.since + n), (), verdicts[answer])
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
    accepted, first_day = read_rate(false_alarm), first_watched(stream, since)
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
    days, level = stream.horizon.days - first_day + 1, f"{float(baseline):g}"
    gap, rate = _smallest_threshold_gap(partial(vector(threshold=0).false_yes, queries=days), accepted)
    subject = AlarmSubject(
        table=table, horizon=stream.horizon, facts=stream.facts, open_day=stream._open_day,  # noqa: SLF001
        marks=stream._marks, vector=vector(threshold=baseline + gap), since=first_day, rate=rate,  # noqa: SLF001
        threshold=f"the count is at least {gap:,} above the declared {level}, apart from the noise",
    )  # fmt: skip
    facts = [
        ("days", f"{days:,}, from {stream.horizon.name(first_day)} to {stream.horizon.last}"),
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
            f"at most {short_percent(rate, 2)} over all days together, if no day exceeds the baseline",
        ),
        (
            "found",
            f"a day {gap + 10:,} above the baseline with {short_percent(subject.vector.true_yes(10), 3)}",
        ),
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


def _smallest_threshold_gap(false_yes: Callable[[int], float], accepted: float) -> tuple[int, float]:
    """Return the smallest whole gap with few enough false alarms, and their chance."""
    smallest = first_integer(lambda gap: false_yes(gap) <= accepted, 0, 1, growing=True)
    return smallest, false_yes(smallest)
