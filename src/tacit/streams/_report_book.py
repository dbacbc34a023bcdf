"""The book of reports: rows that come in late wait until the day on which they happened closes.

A day closes a public number of days later, whatever has come in. Then all its rows go to the stream at once.
Rows that come later are refused, or go to a stream of their own. Each file is whole or not there at all, and
a report that was interrupted can be given again.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Say, Set
from tacit.streams._folder import REPORTS, StreamFolder, rows_as_source
from tacit.streams._horizon import read_day

if TYPE_CHECKING:
    from datetime import date

    from tacit.streams._stream import Stream


class ReportBook:
    """Reports by the day on which they came in, for a stream whose days are the days of the events.

    Guarantee: nothing is charged here. Each row goes to the stream once, on its event day, and a day is
    complete when it goes there. Only the days of the reports decide when a day closes. From the
    first book on, `Stream.append` is refused, so that no row of the book is lost.

    Parameters
    ----------
    stream
        The stream, declared with a folder.
    lag
        After how many days a day closes; public, and the same for all days.
    late
        Where rows go whose day has closed: a stream with the same days, on the day of their report. Without
        it they are refused.

    Examples
    --------
    >>> import tempfile
    >>> import tacit as tc
    >>> folder = tempfile.TemporaryDirectory()
    >>> flu = tc.stream(
    ...     folder.name, name="flu", level="event", start="2026-01-01", days=30, budget=tc.Budget(epsilon=1),
    ...     ledger=tc.Ledger.memory(),
    ... )
    >>> book = ReportBook(flu, lag=1)
    >>> book.report("2026-01-01", {"2026-01-01": [{"age": 40}]})
    ()
    >>> book.report("2026-01-02", {"2026-01-01": [{"age": 7}], "2026-01-02": [{"age": 51}]})
    ('2026-01-01',)
    >>> flu.status().appended
    ('2026-01-01',)
    >>> folder.cleanup()
    """

    def __init__(self, stream: Stream, *, lag: int, late: Stream | None = None) -> None:
        self.stream = stream
        self.late = late
        self.lag = count("lag", lag)
        self._place: Path = stream._folder.place / REPORTS  # noqa: SLF001 - a part of the stream
        self._folder = StreamFolder(self._place)
        self._declare()

    def _declare(self) -> None:
        """Read the lag and the days that came in before there was a book; write them the first time."""
        facts = self._place / "lag.json"
        with self.stream._lock():  # noqa: SLF001 - from now on, days come in through the book alone
            if not facts.exists():
                self._place.mkdir(parents=True, exist_ok=True)
                before = {"lag": self.lag, "before": self.stream._folder.days()}  # noqa: SLF001
                facts.write_text(json.dumps(before), encoding="utf-8")
        found = json.loads(facts.read_text(encoding="utf-8"))
        declared, self._before = found["lag"], frozenset(found.get("before", ()))
        if declared != self.lag:
            raise TacitError(
                "stream-differs",
                f"the reports of this stream were declared with a lag of {declared} days",
                why="the number of days until a day closes is public and the same for all days",
                fix=Set(lag=declared),
            )

    def report(self, day: object, rows: Mapping[object, object]) -> tuple[str, ...]:
        """Take what was reported on a day; return the days that are closed now and have gone to the stream.

        Parameters
        ----------
        day
            The day of the report. Each comes in once, in order, up to ``lag`` days after the last day of the
            stream. A day without reports comes in with an empty dictionary.
        rows
            The rows by the day on which they happened; rows as in `Stream.append`.
        """
        when = read_day(day)
        number = self._number(when)
        if self._folder.has(when.isoformat()):
            raise TacitError(
                "day-twice", f"the reports of {when} were given before", why="nothing was stored or charged",
                fix=Say("keep the rows for the report of the next day"),
            )  # fmt: skip
        if number > 1 and not self._folder.has((when - timedelta(days=1)).isoformat()):
            raise TacitError(
                "day-missing", f"the reports of {when - timedelta(days=1)} have not come in",
                why="the reports of each day must come in before those of the next day",
                fix=Say("report the earlier day first, with no rows if there were none"),
            )  # fmt: skip
        on_time, late = self._sorted(when, rows)
        self._store(when, on_time)
        self._append_late(when, late)
        closed = self._close(number - self.lag)
        self._folder.append(when.isoformat(), None, _anything)  # the report is complete
        return closed

    def _number(self, when: date) -> int:
        horizon = self.stream.horizon
        number = (when - horizon.start).days + 1
        if not 1 <= number <= horizon.days + self.lag:
            horizon.number(when)  # refuses it
        return number

    def _sorted(self, when: date, rows: Mapping[object, object]) -> tuple[dict[str, object], list[object]]:
        """Return the rows of open days, and those of closed ones; refuse what has no place."""
        if not isinstance(rows, Mapping):
            raise bad_parameter("rows", "rows by the day on which they happened", "something else",
                                fix=Say("give a dictionary of days and their rows"))  # fmt: skip
        on_time: dict[str, object] = {}
        late: list[object] = []
        for event, own in rows.items():
            day = read_day(event)
            name = self.stream.horizon.name(self.stream.horizon.number(day))
            if day > when:
                raise bad_parameter("rows", f"of days up to {when}", name, fix=Say("check the days"))
            if (when - day).days <= self.lag and name not in self._before:
                on_time[name] = own
            elif self.late is None or when > self.late.horizon.last or not isinstance(own, list):
                raise TacitError(
                    "day-closed",
                    f"{name} came in before the book of reports was begun"
                    if name in self._before
                    else f"{name} closed {self.lag} days later, but some of its rows came in on {when}",
                    why="a day is complete when it goes to the stream; nothing was stored or charged",
                    fix=Say(
                        "drop the late rows, or declare a stream for them and give lists of dictionaries"
                    ),
                )
            else:
                late += own
        return on_time, late

    def _parts(self, event: str) -> StreamFolder:
        return StreamFolder(self._place / event)

    def _store(self, when: date, rows: Mapping[str, object]) -> None:
        """Store the rows of open days; their columns are checked before the first of them is stored."""
        check = self.stream._check_columns  # noqa: SLF001 - the same columns as the stream
        with tempfile.TemporaryDirectory() as scratch:
            sources = {}
            for event, own in rows.items():
                place = Path(scratch) / event
                place.mkdir()
                sources[event] = rows_as_source(own, place)
            found = {event: source for event, source in sources.items() if source is not None}
            for event, source in found.items():
                check(source.columns() or [name for name, _ in source.schema(event) or ()])
            for event, source in found.items():
                self._parts(event).append(when.isoformat(), source, check)

    def _append_late(self, when: date, rows: list[object]) -> None:
        """Give the late rows of a report to their stream."""
        if self.late is None:
            return
        inside = when <= self.late.horizon.last
        if (rows or inside) and not self.late._folder.has(when.isoformat()):  # noqa: SLF001
            self.late.append(when, rows)

    def _close(self, number: int) -> tuple[str, ...]:
        """Give the stream the rows of a day that closes now."""
        if not 1 <= number <= self.stream.horizon.days:
            return ()
        name = self.stream.horizon.name(number)
        if not self.stream._folder.has(name):  # noqa: SLF001
            days = self._place / name / "days"
            held: object = days / "*.parquet" if self._parts(name).days() else []
            self.stream._append_day(name, held, booked=True)  # noqa: SLF001
        return (name,)


def _anything(names: object) -> None:
    """Accept all columns."""
    del names
