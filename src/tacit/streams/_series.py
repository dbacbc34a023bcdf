"""The content of a stream's release: every day so far, 7-day sums and running totals, with intervals.

Its figure has one line over the days for each group, with the intervals as a band around it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tacit.core import AnswerTable, Cells, Content
from tacit.report import short_percent
from tacit.show import MOST_SERIES, Chart, ChartAxis, ChartSeries, Figure, chosen, days_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tacit.core import JSON, Value


#: What stands behind the name of a column: nothing for the day itself.
SUFFIXES = {"day": "", "week": "_7_days", "total": "_so_far"}


class Series(Content):
    """All days of a stream up to one of them: the day, the last 7 days and all days so far, by group.

    The three agree: the number of 7 days is the sum of their days. Of a column that is a mean, ``_7_days``
    and ``_so_far`` are means over these days. Values are estimates and need not be whole numbers.

    Examples
    --------
    >>> import tacit as tc
    >>> flu = tc.stream(
    ...     None, name="flu", level="event", start="2026-01-01", days=30, budget=tc.Budget(epsilon=1)
    ... )
    >>> flu.begin(flu.daily(cases=tc.count()).plan(epsilon=1))
    >>> flu.append("2026-01-01", [{"age": 40}, {"age": 7}])
    >>> series = flu.release("2026-01-01").content
    >>> list(series.columns), series.days
    (['cases', 'cases_7_days', 'cases_so_far'], 1)
    """

    kind: ClassVar[str] = "series"
    described: ClassVar[str] = "a series of a stream"
    __slots__ = ("_read", "_tables", "days", "rows")

    def __init__(
        self, days: int, read: Callable[[], Mapping[str, AnswerTable]], rows: Sequence[Any] = ()
    ) -> None:
        self.days = days
        self.rows = rows  # the noisy rows of each step, if the series was not read from a file
        self._read = read
        self._tables: Mapping[str, AnswerTable] | None = None

    def _table(self, window: str) -> AnswerTable:
        if self._tables is None:
            self._tables = dict(self._read())  # intervals of many days take a moment: only if somebody looks
        return self._tables[window]

    @property
    def daily(self) -> AnswerTable:
        """The table of each day alone."""
        return self._table("day")

    @property
    def weekly(self) -> AnswerTable:
        """The sum (or mean) of the 7 days up to each day; of fewer at the start."""
        return self._table("week")

    @property
    def totals(self) -> AnswerTable:
        """The running total (or mean) of all days up to each day."""
        return self._table("total")

    @property
    def history(self) -> AnswerTable:
        """All days, with the day, the last 7 days and all days so far beside each other."""
        columns: dict[str, Cells] = {}
        for name in self.daily.columns:
            for window, suffix in SUFFIXES.items():
                columns[name + suffix] = self._table(window).columns[name]
        return replace(self.daily, columns=columns, notes={}, counts=tuple(self._counts()))

    def _counts(self) -> Iterator[str]:
        return (name + suffix for name in self.daily.counts for suffix in SUFFIXES.values())

    @property
    def today(self) -> AnswerTable:
        """The last day, one line for each group: the day, its 7 days and all days so far."""
        history = self.history
        groups = len(history) // self.days
        return replace(
            history,
            keys={name: values[-groups:] for name, values in history.keys.items() if name != "day"},
            columns={
                name: Cells(cells.value[-groups:], cells.low[-groups:], cells.high[-groups:])
                for name, cells in history.columns.items()
            },
            dates=tuple(name for name in history.dates if name != "day"),
        )

    @property
    def day(self) -> str:
        """The last day, as ISO text."""
        return str(self.daily.keys["day"][-1])

    @property
    def keys(self) -> Mapping[str, tuple[Value, ...]]:
        """The groups, by name of the key column."""
        return self.today.keys

    @property
    def columns(self) -> Mapping[str, Cells]:
        """The columns of the last day."""
        return self.today.columns

    def __len__(self) -> int:
        return len(self.today)

    def __iter__(self) -> Iterator[dict[str, Value]]:
        """Iterate over all days and groups as dictionaries."""
        return iter(self.history)

    def __getitem__(self, column: str) -> Cells:
        return self.today[column]

    def to_json(self) -> JSON:
        """Return the series as JSON; one that was drawn beside its stream has no days, and no tables."""
        windows = SUFFIXES if self.days else ()
        return {"days": self.days, "tables": {window: self._table(window).to_json() for window in windows}}

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """Read the series back; raises ``ValueError`` where it is not one."""
        tables = {window: AnswerTable.from_json(document["tables"][window]) for window in SUFFIXES}
        days = int(document["days"])
        lengths = {len(table) for table in tables.values()}
        if days < 1 or len(lengths) != 1 or lengths.pop() % days or "day" not in tables["day"].keys:
            raise ValueError("not a series")
        return cls(days, lambda: tables)

    def text(self, marks: tuple[str, ...] = ()) -> str:
        """Write the last day for a terminal."""
        return f"{self.day}, day {self.days} of the stream\n{self.today.text(marks)}"

    def html(self, marks: tuple[str, ...] = ()) -> str:
        """Write the last day for a notebook."""
        return f"<p>{self.day}, day {self.days} of the stream</p>{self.today.html(marks)}"

    def answer_tables(self) -> Iterator[tuple[str, AnswerTable]]:
        """Yield the table of all days."""
        yield "", self.history

    def figures(self, what: Any = None) -> tuple[Figure, ...]:
        """Return each column over all days, with its intervals as a band."""
        return series_figures(self.history, what)


def series_figures(table: AnswerTable, column: str | None) -> tuple[Figure, ...]:
    """Return a figure for each column; at most 8 groups, the first ones."""
    if column is not None:
        table[column]  # refuses a column that is not there
    return chosen(column, {name: partial(_figure, table, name) for name in table.columns})


def _figure(table: AnswerTable, column: str) -> Figure:
    cells, others = table.columns[column], [name for name in table.keys if name != "day"]
    labels = [", ".join(str(table.keys[name][i]) for name in others) for i in range(len(table))]
    series = []
    for number, group in enumerate(list(dict.fromkeys(labels))[:MOST_SERIES]):
        at = [i for i, label in enumerate(labels) if label == group]
        days = [days_of(datetime.fromisoformat(str(table.keys["day"][i])[:10])) for i in at]
        ends = ((part[i] for i in at) for part in (cells.value, cells.low, cells.high))
        series.append(ChartSeries.of("line", days, ends, label=group, colour=number))
    words = f"the band is the {short_percent(table.confidence)} interval for the noise"
    chart = Chart(tuple(series), ChartAxis("", kind="dates"), ChartAxis(column), legend=", ".join(others))
    return Figure(column, (chart,), (words,))
