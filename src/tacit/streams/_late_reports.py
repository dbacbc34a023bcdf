"""Late reports: rows about a day that come in on a later day.

The reporting triangle says what is known by now about the day on which things happened. Each row enters one
cell (day of the report, delay), on the day of its report. So cells are disjoint, each is released once, and a
total over the delays of an event day is post-processing.

The book of reports keeps rows that come in late until the day on which they happened closes. A day closes a
public number of days later, whatever has come in. Then all its rows go to the stream at once. Rows that come
later are refused, or go to a stream of their own. Each file is whole or not there at all, and a report that
was interrupted can be given again.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.core import AnswerTable, Cells
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count, rational
from tacit.fixes import Choose, Code, Say, Set
from tacit.mechanisms import LinearNoise
from tacit.parameters import Mapped
from tacit.streams._alarm import counted_column
from tacit.streams._folder import REPORTS, StreamFolder, rows_as_source
from tacit.streams._horizon import read_day

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from tacit.core import Plan, Value
    from tacit.mechanisms import StreamNoise
    from tacit.streams._series import Series
    from tacit.streams._stream import Stream
_BY_DAY = Mapped("rows by the day on which they happened", 'rows={"2026-01-31": [{"patient_id": 7}]}')


def event_days(
    stream: Stream,
    column: str | None = None,
    *,
    delay: str = "delay",
    confidence: float = 0.95,
    plan: Plan[Series] | None = None,
) -> AnswerTable:
    """Add up a count over the delays of each event day, as far as reports have come in. Free.

    Guarantee: post-processing of what the plan has released.

    Parameters
    ----------
    stream
        A stream whose days are days of reports.
    column
        A count of the plan; not needed if it has one count.
    delay
        The column of the plan's groups that holds the delay of a report in days: 0, 1, 2, ...
    confidence
        How often each interval covers the noise.
    plan
        Which plan, if several were begun.

    Returns
    -------
    AnswerTable
        One line for each event day and other group: the count, and ``delays``, the number of delays in it.

    Examples
    --------
    >>> import tacit as tc
    >>> flu = tc.stream(
    ...     None, name="flu", level="event", start="2026-01-01", days=30, keys={"delay": [0, 1, 2]},
    ...     budget=tc.Budget(epsilon=1),
    ... )
    >>> flu.begin(flu.daily(cases=tc.count(), by="delay").plan(epsilon=1))
    >>> flu.append("2026-01-01", [{"delay": 0}, {"delay": 0}])
    >>> flu.append("2026-01-02", [{"delay": 1}, {"delay": 0}])
    >>> _ = flu.release("2026-01-02")
    >>> known = event_days(flu)
    >>> known.keys["day"], known["delays"].value
    (('2026-01-01', '2026-01-02'), (2, 1))
    """
    begun = stream._begun(plan)  # noqa: SLF001 - a part of the stream
    subject = begun.subject
    question = subject.table.asked
    names = [name for name, _ in question.by]
    delays = {key[names.index(delay)] for key in question.keys or ()} if delay in names else set()
    if not delays or not all(_is_delay(one) for one in delays):
        raise TacitError(
            "bad-parameter",
            f"the plan has no groups with a delay in the column {delay!r}",
            why="delays are public keys: whole numbers of days from 0 on",
            fix=Choose(tuple(names), given=delay)
            if names
            else Code('stream.daily(n=tc.count(), by="delay")'),
        )
    column_found = counted_column(subject, column)
    rows, through = begun.rows()
    noise, at = subject.noises[column_found.step], names.index(delay)
    days = noise.estimate(rows[column_found.step])[:, :, 0] if through else []
    keys: list[tuple[Any, ...]] = [tuple(key) for key in question.keys or ()]
    others = list(dict.fromkeys(key[:at] + key[at + 1 :] for key in keys))
    level = float(1 - rational("confidence", confidence))
    lines: list[tuple[Value, ...]] = []
    for event in range(1, through + 1):
        for other in others:
            key_rows = [n for n, key in enumerate(keys) if key[:at] + key[at + 1 :] == other]
            cells = [(day, n) for n in key_rows if (day := event + int(keys[n][at])) <= through]
            value = float(sum(days[day - 1][n] for day, n in cells))
            half = _half_width(noise, [day for day, _ in cells], through, level)
            lines.append((subject.horizon.name(event), *other, value, value - half, value + half, len(cells)))
    return _table(column_found.name, [name for name in names if name != delay], lines, confidence)


def _is_delay(value: Any) -> bool:
    return isinstance(value, int | float) and value >= 0 and value == int(value)


def _half_width(noise: StreamNoise, days: Sequence[int], through: int, failing: float) -> float:
    """Return the half-width of a sum over cells of different groups, whose noises are independent.

    It is rounded up: between two whole numbers, whole noise has heavier tails than the continuous law.
    """
    laws = [noise.noise_on(1, day, through) for day in days]
    if not laws:
        return 0.0
    terms = tuple(sorted(scale for law in laws for scale in law.laplace))
    summed = LinearNoise(terms, math.hypot(*(law.normal for law in laws)))
    return float(math.ceil(summed.half_width(failing, [1.0]).item()))


def _table(column: str, others: list[str], lines: list[tuple[Value, ...]], confidence: float) -> AnswerTable:
    parts = list(zip(*lines, strict=True)) or [()] * (len(others) + 5)
    keys = dict(zip(["day", *others], parts, strict=False))
    value, low, high, is_known = parts[-4:]
    nothing = (None,) * len(lines)
    columns = {column: Cells(value, low, high), "delays": Cells(is_known, nothing, nothing)}
    return AnswerTable(keys, columns, float(confidence), counts=(column,), dates=("day",))


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
        stored = json.loads(facts.read_text(encoding="utf-8"))
        declared, self._before = stored["lag"], frozenset(stored.get("before", ()))
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
        self._folder.append(when.isoformat(), None, _accept_columns)  # the report is complete
        return closed

    def _number(self, when: date) -> int:
        horizon = self.stream.horizon
        number = (when - horizon.start).days + 1
        if not 1 <= number <= horizon.days + self.lag:
            horizon.number(when)  # refuses it
        return number

    def _sorted(self, when: date, rows: Mapping[object, object]) -> tuple[dict[str, object], list[object]]:
        """Return the rows of open days, and those of closed ones; refuse what has no place."""
        untrusted: object = rows
        _BY_DAY.read("rows", dict.fromkeys(map(str, rows)) if isinstance(untrusted, Mapping) else untrusted)
        on_time: dict[str, object] = {}
        late: list[object] = []
        for event, event_rows in rows.items():
            day = read_day(event)
            name = self.stream.horizon.name(self.stream.horizon.number(day))
            if day > when:
                raise bad_parameter("rows", f"of days up to {when}", name, fix=Say("check the days"))
            if (when - day).days <= self.lag and name not in self._before:
                on_time[name] = event_rows
            elif self.late is None or when > self.late.horizon.last or not isinstance(event_rows, list):
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
                late += event_rows
        return on_time, late

    def _parts(self, event: str) -> StreamFolder:
        return StreamFolder(self._place / event)

    def _store(self, when: date, rows: Mapping[str, object]) -> None:
        """Store the rows of open days; their columns are checked before the first of them is stored."""
        check = self.stream._check_columns  # noqa: SLF001 - the same columns as the stream
        with tempfile.TemporaryDirectory() as scratch:
            sources = {}
            for event, event_rows in rows.items():
                folder = Path(scratch) / event
                folder.mkdir()
                sources[event] = rows_as_source(event_rows, folder)
            reports = {event: source for event, source in sources.items() if source is not None}
            for event, source in reports.items():
                check(source.columns() or [name for name, _ in source.schema(event) or ()])
            for event, source in reports.items():
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
            closed_rows: object = days / "*.parquet" if self._parts(name).days() else []
            self.stream._append_day(name, closed_rows, booked=True)  # noqa: SLF001
        return (name,)


def _accept_columns(names: object) -> None:
    """Accept all columns."""
    del names
