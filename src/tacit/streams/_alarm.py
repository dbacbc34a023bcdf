"""The alarm on noisy days: a threshold on what a plan releases anyway, so that it costs nothing.

Day t is judged once, by its estimate from the rows that were released up to day t. A later estimate does not
change the verdict. On quiet days the estimate exceeds the true number by noise alone, so the chance that it
reaches the threshold is that of the noise. The chances of all days and groups are added up (independent
days: multiplied). The sum bounds the chance of any false alarm over the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.exact import Number, rational
from tacit.fixes import Choose, Either, Set
from tacit.mechanisms import chance_above
from tacit.parameters import Choice, Integer, RealNumber, exactly_one
from tacit.streams._alarm_days import AlarmDays, WatchedDay
from tacit.streams._choice import WINDOWS
from tacit.streams._series import SUFFIXES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.mechanisms import StreamNoise
    from tacit.streams._progress import BegunPlan
    from tacit.streams._stream_subject import StreamSubject


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
        """When the alarm rings, in words."""
        what = self.column if self.window == "day" else f"{self.column} of 7 days"
        if self.days_before:
            level = f"the mean of the {self.days_before} released days before"
        elif len(set(self.baseline)) == 1:
            level = f"the declared {self.baseline[0]:g}"
        else:
            level = "the declared level of its group"
        return f"{what} is at least {self.gap:,} above {level}"

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
            known = rows[column.step][: len(weights), :, 0]
            values = noise.weights(WINDOWS[self.window] or 1, day, day) @ known
            above = weights @ known - np.array(self.baseline or (0.0,) * len(groups))
            for group, value, excess in zip(groups, values.tolist(), above.tolist(), strict=True):
                lines.append(WatchedDay(name, group, excess >= self.gap, value, excess))
        return AlarmDays(lines, self.rate, self.threshold)

    def __repr__(self) -> str:
        rate = f"at most {self.rate * 100:.2g} % over the whole horizon, if every day is quiet"
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
    wanted = read_rate(false_alarm)
    Choice(("day", "week")).read("window", window)
    found = counted_column(subject, column)
    noise = subject.noises[found.step]
    groups = max(1, len(subject.table.asked.keys or ())) if subject.table.asked.by else 1
    levels, before = _read_baseline(baseline, days_before, subject, groups)
    laws = [_weights(noise, str(window), day, before) for day in range(1, subject.horizon.days + 1)]
    watched = [w for w in laws if w is not None]
    gap, rate = _smallest_gap(noise, watched, groups, wanted)
    return Alarm(found.name, str(window), levels, before, gap, rate, begun)


def read_rate(false_alarm: Number) -> float:
    """Read the chance of a false alarm that is accepted over the horizon."""
    wanted = RealNumber(above=0, below=1, instead=0.05).read("false_alarm", false_alarm)
    return float(wanted)


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
    named = {key if isinstance(key, tuple) else (key,): level for key, level in baseline.items()}
    if set(named) != set(keys):
        lacking = [key for key in keys if key not in named]
        other = [key for key in named if key not in keys]
        group = ", ".join(map(str, (lacking or other)[0]))
        raise TacitError(
            "bad-parameter",
            "a baseline has one number for each group: "
            + (f"{group} is missing" if lacking else f"{group} is not a group of the plan"),
            fix=Set(baseline={**baseline, ", ".join(map(str, lacking[0])): 40} if lacking else 40),
        )
    return tuple(float(rational("baseline", named[key], zero=True)) for key in keys), 0


def _weights(noise: StreamNoise, window: str, day: int, before: int) -> NDArray[np.float64] | None:
    """Return what each row adds to what is judged on a day; None if the day has no baseline yet."""
    size = WINDOWS[window] or 1
    own = noise.weights(size, day, day)
    if not before:
        return own
    if day - size < before:
        return None
    level = noise.weights(before, day - size, day)
    return own - size / before * level


def _smallest_gap(
    noise: StreamNoise, laws: list[NDArray[np.float64]], groups: int, wanted: float
) -> tuple[int, float]:
    """Return the smallest whole gap with few enough false alarms, and the bound on their chance."""
    shapes = {np.sort(np.abs(w[w != 0])).tobytes(): w for w in laws}
    often = dict.fromkeys(shapes, 0)
    for w in laws:
        often[np.sort(np.abs(w[w != 0])).tobytes()] += groups
    apart = all(np.count_nonzero(w) == 1 for w in laws)  # each day has noise of its own

    def rate(gap: int) -> float:
        chances = [(chance_above(noise.noise, w, gap), often[key]) for key, w in shapes.items()]
        if apart:
            calm = sum(times * math.log1p(-chance) if chance < 1 else -math.inf for chance, times in chances)
            return -math.expm1(calm) * (1 + 1e-9)
        return sum(chance * times for chance, times in chances)

    low, high = 0, 1
    while rate(high) > wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rate(middle) <= wanted else (middle, high)
    return high, rate(high)
