"""The content of an alarm's release: for each day and group, whether the alarm rang."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core import Content, plain_table
from tacit.show import BLUE, RED, Chart, ChartAxis, ChartSeries, Figure, days_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tacit.core import JSON, AnswerTable, Value


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
            known = (None if number is None else float(number) for number in numbers)
            lines.append(WatchedDay(str(day), tuple(group), alarm, *known))
        return cls(lines, float(document["rate"]), str(document["threshold"]))

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the days, with the groups that were watched."""
        keys = {
            "day": [line.day for line in self.lines],
            "group": [", ".join(map(str, line.group)) for line in self.lines],
        }
        found = {name: [getattr(line, name) for line in self.lines] for name in ("alarm", "value", "excess")}
        yield "days", plain_table(keys, found)

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return the days as points: their noisy numbers where they are released, and which had an alarm."""
        del what
        watched = [line for line in self.lines if line.alarm is not None]
        values = any(line.value is not None for line in watched)
        series = []
        for rang, label, colour in ((False, "no alarm", BLUE), (True, "alarm", RED)):
            own = [line for line in watched if line.alarm is rang]
            days = [days_of(datetime.fromisoformat(line.day[:10])) for line in own]
            y = [line.value if values else float(rang) for line in own]
            series.append(ChartSeries("points", days, y, label=label, colour=colour))
        axis = ChartAxis("noisy number") if values else ChartAxis("alarm", ticks=((0.0, "no"), (1.0, "yes")))
        rate = f"false alarms: at most {self.rate * 100:.2g} % over the whole horizon, if every day is quiet"
        return (Figure("alarms", (Chart(tuple(series), ChartAxis(kind="dates"), axis),), (rate,)),)

    def __repr__(self) -> str:
        watched = len({line.day for line in self.lines if line.alarm is not None})
        days = "1 day was" if watched == 1 else f"{watched:,} days were"
        head = f"{days} watched; the alarm rings if {self.threshold}"
        rate = f"false alarms: at most {self.rate * 100:.2g} % over the whole horizon, if every day is quiet"
        shown = [self._line(line) for line in self.rang[-10:]] or ["no alarm"]
        more = len(self.rang) - len(shown)
        return "\n".join([head, rate, *([f"{more:,} alarms before these"] if more > 0 else []), *shown])

    @staticmethod
    def _line(line: WatchedDay) -> str:
        group = f", {', '.join(map(str, line.group))}" if line.group else ""
        value = "" if line.value is None else f": {line.value:.6g}"
        above = "" if line.excess is None else f", {line.excess:.6g} above the baseline"
        return f"alarm on {line.day}{group}{value}{above}"
