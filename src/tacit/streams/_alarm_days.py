"""The content of an alarm's release: for each day and group, whether the alarm rang."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core import Content

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tacit.core import JSON, Value

__all__ = ["AlarmDays", "WatchedDay"]


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
        The noisy number that was compared; None if only the answer is released.
    """

    day: str
    group: tuple[Value, ...]
    alarm: bool | None
    value: float | None = None


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
            "lines": [[line.day, list(line.group), line.alarm, line.value] for line in self.lines],
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the content back; raises ``ValueError`` where it is not one."""
        lines = []
        for day, group, alarm, value in document["lines"]:
            if alarm not in {True, False, None}:
                raise ValueError("not an alarm")
            lines.append(WatchedDay(str(day), tuple(group), alarm, None if value is None else float(value)))
        return cls(lines, float(document["rate"]), str(document["threshold"]))

    def __repr__(self) -> str:
        watched = len({line.day for line in self.lines if line.alarm is not None})
        days = "1 day was" if watched == 1 else f"{watched:,} days were"
        head = f"{days} watched; an alarm stands for {self.threshold}"
        rate = f"false alarms: at most {self.rate * 100:.2g} % over the whole horizon, if every day is quiet"
        shown = [self._line(line) for line in self.rang[-10:]] or ["no alarm"]
        more = len(self.rang) - len(shown)
        return "\n".join([head, rate, *([f"{more:,} alarms before these"] if more > 0 else []), *shown])

    @staticmethod
    def _line(line: WatchedDay) -> str:
        group = f", {', '.join(map(str, line.group))}" if line.group else ""
        value = "" if line.value is None else f": {line.value:.6g}"
        return f"alarm on {line.day}{group}{value}"
