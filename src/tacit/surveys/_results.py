"""Results of a survey: shares, means, differences and cross-tables, each with intervals and figures.

The figures compare raw rates of reports with corrected shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.core import needs, visible
from tacit.errors import TacitError
from tacit.fixes import Choose, Say
from tacit.report import Report, Reportable, ReportTable, short_percent
from tacit.show import GREY, MOST_SERIES, Chart, ChartAxis, ChartSeries, Drawn, Figure, Matrix, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tacit.fixes import Fix
    from tacit.surveys._estimates import Covers


_MOST = 40  # bars in one figure; more cannot be read
_MOST_ROWS = 60


def shares_figure(table: ShareTable) -> Figure:
    """Return shares as bars with intervals, and the rate of reports behind each as a mark."""
    groups = list(dict.fromkeys(row.group for row in table.rows))[:MOST_SERIES]
    answers = _shown_answers(table)
    width = 0.8 / len(groups)
    series = []
    for number, group in enumerate(groups):
        rows = {row.answer: row for row in table.rows if row.group == group}
        bars = [(i, rows[answer]) for i, answer in enumerate(answers) if answer in rows]
        x = [i + width * (number - (len(groups) - 1) / 2) for i, _ in bars]
        ends = ((100 * getattr(row, end) for _, row in bars) for end in ("value", "low", "high"))
        label = group if table.by else "estimated"
        series.append(ChartSeries.of("bars", x, ends, label=label, colour=number, width=0.9 * width))
        raw = [100 * row.raw for _, row in bars]
        series.append(ChartSeries("bounds", x, raw, label="in the reports (raw)", colour=GREY))
    names = tuple(_name(answer) for answer in answers)
    chart = Chart(tuple(series), ChartAxis(table.question, names), ChartAxis("share in %"), legend=table.by)
    return Figure(f"{table.question}: epsilon {table.epsilon:g}", (chart,), (_covers(table),))


def _shown_answers(table: ShareTable) -> list[Any]:
    """Return the answers in their order, or the most common ones if there are too many."""
    answers = list(dict.fromkeys(row.answer for row in table.rows))
    if len(answers) <= _MOST:
        return answers
    best = sorted(table.rows, key=lambda row: -row.value)
    return list(dict.fromkeys(row.answer for row in best))[:_MOST]


def means_figure(table: MeanTable) -> Figure:
    """Return means with their intervals, one for each group."""
    rows = table.rows[:_MOST]
    ends = ((getattr(row, end) for row in rows) for end in ("value", "low", "high"))
    names = tuple(str(row.group or "all") for row in rows)
    chart = Chart(
        (ChartSeries.of("points", range(len(rows)), ends),), ChartAxis(table.by, names), ChartAxis("mean")
    )
    return Figure(f"{table.question}: epsilon {table.epsilon:g}", (chart,), (_covers(table),))


def cells_figure(table: CrossTable) -> Figure:
    """Return a cross-table as a matrix: one cell for each pair of answers, with its share and interval."""
    down = list(dict.fromkeys(cell.row for cell in table.rows))[:_MOST]
    across = list(dict.fromkeys(cell.column for cell in table.rows))[:_MOST]
    cells = {(cell.row, cell.column): cell for cell in table.rows}
    values = np.array([[cells[r, c].value for c in across] for r in down], np.float64)
    words = tuple(
        tuple(
            f"{100 * cell.value:z.1f} %\n[{100 * cell.low:.1f}, {100 * cell.high:.1f}]"
            for cell in (cells[r, c] for c in across)
        )
        for r in down
    )
    names = (tuple(map(_name, down)), tuple(map(_name, across)))
    top = 1.6 * max(values.max(), 0.01)  # dark text stays readable
    matrix = Matrix(np.maximum(values, 0), *names, *table.questions, words=words, top=top)
    return Figure(f"{' by '.join(table.questions)}: epsilon {table.epsilon:g}", (matrix,), (_covers(table),))


def _covers(table: ShareTable | MeanTable | CrossTable) -> str:
    covered = "coins and sampling" if table.of == "population" else "coins"
    return f"{short_percent(table.confidence)} intervals for {covered}"


def _name(answer: Any) -> str:
    return shortened(", ".join(map(str, answer)) if isinstance(answer, tuple) else str(answer))


class ShareRow(NamedTuple):
    """The estimated share of one answer, in one group or among all."""

    group: str
    answer: Any
    value: float
    low: float
    high: float
    raw: float
    respondents: int


class MeanRow(NamedTuple):
    """The estimated mean of one group, or of all."""

    group: str
    value: float
    low: float
    high: float
    respondents: int


class _Rows(Reportable):
    """A result with rows: they can be counted, listed and turned into a data frame."""

    __slots__ = ()
    rows: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame (extra ``pandas``)."""
        needs("to_pandas", "pandas", "tacit[pandas]")
        import pandas as pd

        fields = type(self.rows[0])._fields
        return pd.DataFrame([tuple(row) for row in self.rows], columns=list(fields))

    def _notes(self, *more: str) -> tuple[str, ...]:
        return (_covered(self), *(note for note in more if note))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, repr=False)
class ShareTable(Drawn, _Rows):
    """Estimated shares of the answers to one question; estimates are unbiased and may lie outside [0, 1].

    Parameters
    ----------
    question
        Its name.
    by
        The public column that makes the groups, or an empty text.
    rows
        One for each group and answer. ``raw`` is the rate of reports that support the answer.
    confidence, of
        How often an interval covers its share, and what it covers: a population, or these respondents.
    epsilon
        What the survey promised its respondents.
    liars
        How far 1 % dishonest respondents can move a share.
    marks
        What was done to the estimates.
    caution
        A warning if the reports do not fit the randomizer, else an empty text.
    """

    question: str
    by: str
    rows: tuple[ShareRow, ...]
    confidence: float
    of: Covers
    epsilon: float
    liars: float
    marks: tuple[str, ...] = ()
    caution: str = ""

    def __getitem__(self, key: Any) -> ShareRow:
        """Return the row of an answer; with groups, of ``group, answer``."""
        for row in self.rows:
            if key == ((row.group, row.answer) if self.by else row.answer):
                return row
        names = tuple(
            dict.fromkeys(f"{row.group}, {row.answer}" if self.by else str(row.answer) for row in self.rows)
        )
        raise TacitError(
            "unknown-category", f"the table has no row {key!r}", fix=Choose(names, given=str(key))
        )

    def report(self) -> Report:
        """Return the table, what the intervals cover, and what liars could do."""
        level = f"{short_percent(self.confidence)} interval"
        head = ((self.by,) if self.by else ()) + ("answer", "share", level, "in the reports", "respondents")
        lines = tuple(
            ((_label(row.group),) if self.by else ())
            + (_label(row.answer), _points(row.value), f"{_points(row.low)} to {_points(row.high)}")
            + (_points(row.raw), f"{row.respondents:,}")
            for row in self._shown_rows()
        )
        many = len(self.rows) > _MOST_ROWS
        lead = (
            f"The {_MOST_ROWS} largest of {len(self.rows):,} shares; the largest of many estimates are too "
        )
        lie = f"1 % dishonest respondents can move a share by up to {100 * self.liars:.3g} points."
        return Report(
            f"{self.question}: estimated shares, epsilon {self.epsilon:g}",
            _lead(self.caution),
            (ReportTable("", head, lines),),
            self._notes(
                lie,
                "" if self.marks or self.caution else _outside(self.rows),
                *self.marks,
                lead + "large on average." if many else "",
            ),
        )

    def _shown_rows(self) -> Sequence[ShareRow]:
        if len(self.rows) <= _MOST_ROWS:
            return self.rows
        return sorted(self.rows, key=lambda row: -row.value)[:_MOST_ROWS]

    def figures(self) -> tuple[Figure, ...]:
        """Return the shares as bars with their intervals, and the raw rates of reports beside them."""
        return (shares_figure(self),)


@dataclass(frozen=True, slots=True, repr=False)
class MeanTable(Drawn, _Rows):
    """Estimated means of a number or a scale, with intervals; one row for each group.

    Parameters
    ----------
    question, by, rows, confidence, of, epsilon, liars, marks, caution
        As in `ShareTable`; ``liars`` is in the units of the question.
    """

    question: str
    by: str
    rows: tuple[MeanRow, ...]
    confidence: float
    of: Covers
    epsilon: float
    liars: float
    marks: tuple[str, ...] = ()
    caution: str = ""

    def __getitem__(self, group: str) -> MeanRow:
        """Return the row of a group."""
        for row in self.rows:
            if row.group == group:
                return row
        fix: Fix = (
            Choose(self._groups(), given=group) if self.by else Say("ask for the mean by a public column")
        )
        raise TacitError("unknown-category", f"the table has no group {group!r}", fix=fix)

    @property
    def value(self) -> float:
        """The mean, where there is one row."""
        return self._only().value

    @property
    def low(self) -> float:
        """The lower end of the interval, where there is one row."""
        return self._only().low

    @property
    def high(self) -> float:
        """The upper end of the interval, where there is one row."""
        return self._only().high

    def _only(self) -> MeanRow:
        if len(self.rows) == 1:
            return self.rows[0]
        raise TacitError("bad-parameter", "the table has a mean for each group", fix=Choose(self._groups()))

    def _groups(self) -> tuple[str, ...]:
        return tuple(row.group for row in self.rows)

    def report(self) -> Report:
        """Return the means and what the intervals cover."""
        level = f"{short_percent(self.confidence)} interval"
        head = ((self.by,) if self.by else ()) + ("mean", level, "respondents")
        lines = tuple(
            ((_label(row.group),) if self.by else ())
            + (f"{row.value:.4g}", f"{row.low:.4g} to {row.high:.4g}", f"{row.respondents:,}")
            for row in self.rows
        )
        lie = f"1 % dishonest respondents can move the mean by up to {self.liars:.3g}."
        title = f"{self.question}: estimated mean, epsilon {self.epsilon:g}"
        notes = self._notes(lie, *self.marks)
        return Report(title, _lead(self.caution), (ReportTable("", head, lines),), notes)

    def figures(self) -> tuple[Figure, ...]:
        """Return the means with their intervals."""
        return (means_figure(self),)


class DifferenceRow(NamedTuple):
    """How much larger a share or mean is in one group than in another."""

    group: str
    other: str
    answer: Any
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, repr=False)
class DifferenceTable(_Rows):
    """Differences between groups, with intervals: each group against the first.

    Parameters
    ----------
    question, by, rows, confidence, of, epsilon
        As in `ShareTable`.
    """

    question: str
    by: str
    rows: tuple[DifferenceRow, ...]
    confidence: float
    of: Covers
    epsilon: float

    def __getitem__(self, key: Any) -> DifferenceRow:
        """Return the row of ``group, answer``, or of a mean, of the group."""
        for row in self.rows:
            if key == (row.group if row.answer is None else (row.group, row.answer)):
                return row
        raise TacitError(
            "unknown-category", f"the table has no row {key!r}", fix="name the group and the answer"
        )

    def report(self) -> Report:
        """Return the differences and what the intervals cover."""
        level = f"{short_percent(self.confidence)} interval"
        is_mean = self.rows[0].answer is None

        def number(value: float) -> str:
            return f"{value:+.4g}" if is_mean else f"{100 * value:+.1f} points"

        lines = tuple(
            (_label(f"{row.group} minus {row.other}"),)
            + (() if is_mean else (_label(row.answer),))
            + (number(row.value), f"{number(row.low)} to {number(row.high)}")
            for row in self.rows
        )
        head = (self.by, *(() if is_mean else ("answer",)), "difference", level)
        title = f"{self.question}: differences by {self.by}, epsilon {self.epsilon:g}"
        return Report(title, (), (ReportTable("", head, lines),), self._notes())


class CrossRow(NamedTuple):
    """The estimated share of one cell of a cross-table, among all respondents."""

    row: Any
    column: Any
    value: float
    low: float
    high: float
    raw: float


@dataclass(frozen=True, slots=True, repr=False)
class CrossTable(Drawn, _Rows):
    """Estimated shares of all pairs of answers to two questions that were asked together.

    Parameters
    ----------
    questions
        The names of both: down, and across.
    rows
        One for each cell.
    confidence, of, epsilon, liars, caution
        As in `ShareTable`.
    respondents
        How many reports there are.
    """

    questions: tuple[str, str]
    rows: tuple[CrossRow, ...]
    confidence: float
    of: Covers
    epsilon: float
    liars: float
    respondents: int
    caution: str = ""

    def __getitem__(self, key: tuple[Any, Any]) -> CrossRow:
        """Return the cell of a pair of answers."""
        for row in self.rows:
            if key == (row.row, row.column):
                return row
        raise TacitError(
            "unknown-category", f"the table has no cell {key!r}", fix="name an answer to each question"
        )

    def report(self) -> Report:
        """Return the cells, one column for each answer across."""
        across = list(dict.fromkeys(cell.column for cell in self.rows))
        down = list(dict.fromkeys(cell.row for cell in self.rows))
        cells = {(cell.row, cell.column): cell for cell in self.rows}

        def shown(cell: CrossRow) -> str:
            return f"{_points(cell.value)} [{_points(cell.low)}, {_points(cell.high)}]"

        table = ReportTable(
            "",
            (f"{self.questions[0]} / {self.questions[1]}", *map(_label, across[:8])),
            tuple((_label(r), *(shown(cells[r, c]) for c in across[:8])) for r in down[:_MOST_ROWS]),
        )
        left_out = len(across) > 8 or len(down) > _MOST_ROWS
        lie = f"1 % dishonest respondents can move a cell by up to {100 * self.liars:.3g} points."
        more = "Not all cells are shown; the result has them all." if left_out else ""
        title = f"{' by '.join(self.questions)}: estimated shares of all, epsilon {self.epsilon:g}"
        odd = "" if self.caution else _outside(self.rows)
        lead = (*_lead(self.caution), f"{people(self.respondents)}.")
        return Report(title, lead, (table,), self._notes(lie, odd, more))

    def figures(self) -> tuple[Figure, ...]:
        """Return the cells as a matrix, each with its share."""
        return (cells_figure(self),)


def cut(end: float) -> float:
    """Cut the end of an interval to the shares that are possible."""
    return min(max(float(end), 0.0), 1.0)


def _covered(result: ShareTable | MeanTable | DifferenceTable | CrossTable) -> str:
    level = f"{short_percent(result.confidence)} intervals"
    if result.of == "population":
        return (
            f"{level} for the population, if the respondents are a random sample of it; they allow for the "
            "coins and for sampling."
        )
    return f"{level} for these respondents; they allow for the coins alone, not for sampling."


def _outside(rows: Sequence[ShareRow | CrossRow]) -> str:
    """Return the note about estimates that no share can have: intervals are cut, estimates are not."""
    if all(0 <= row.value <= 1 for row in rows):
        return ""
    return "Estimates below 0 % or above 100 % are due to the coins; if you set them to 0, totals are biased."


def _lead(caution: str) -> tuple[str, ...]:
    return (caution,) if caution else ()


def people(respondents: int) -> str:
    """Say how many respondents there are."""
    return "1 respondent" if respondents == 1 else f"{respondents:,} respondents"


def _points(share: float) -> str:
    return f"{100 * share:z.1f} %"  # z: a share of -0.0003 is 0.0 %


def _label(answer: Any) -> str:
    return visible(", ".join(map(str, answer)) if isinstance(answer, tuple) else str(answer))
