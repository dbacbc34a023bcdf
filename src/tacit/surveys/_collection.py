"""The collection of reports: documents, data frames and files become columns, one value for each respondent.

Every report is checked, and a bad one is refused with its number.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Release, needs
from tacit.errors import TacitError, bad_parameter, missing_file
from tacit.fixes import Choose, Code, Either, Set
from tacit.mechanisms import LinearHashing
from tacit.parameters import Choice
from tacit.surveys._answering import SurveyReport, seed_label
from tacit.surveys._reports import AnsweredQuestion, Reports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.surveys._survey import Survey
    from tacit.surveys._survey_questions import SurveyQuestion


_KINDS = Choose(("a file .jsonl, .csv or .parquet", "a data frame", "a list of reports"))
_FACTS = ("survey", "invitation", "epsilon")
_NUMBER = re.compile(r"[0-9./]{1,400}([eE][-+]?[0-9]{1,3})?")  # an epsilon that a report may state


@dataclass(slots=True)
class ReportColumns:
    """Reports as columns, each with one value for each respondent; None stands for none.

    Parameters
    ----------
    total
        How many reports there are.
    facts, answers, public
        The survey, epsilon and invitation of each; the randomized answers by question; public columns.
    file, lines
        The name of the file and the line of each report in it, if there is one.
    """

    total: int
    facts: dict[str, list[Any]] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    public: dict[str, list[Any]] = field(default_factory=dict)
    file: str = ""
    lines: Sequence[int] = ()

    def place(self, row: int) -> str:
        """Return where a report stands; its number and its line are public, what it says is not repeated."""
        line = f" (line {self.lines[row]:,} of {self.file})" if self.lines else ""
        return f"report {row + 1:,}{line}"


def read_source(survey: Survey, source: Any) -> ReportColumns:
    """Read reports of a survey from wherever they are; see `tacit.surveys.Survey.collect`."""
    if isinstance(source, str | Path):
        return _from_file(survey, Path(source))
    if isinstance(source, Reports):
        from tacit.surveys._reports import documents_of

        return _from_documents(survey, documents_of(source))
    if isinstance(source, SurveyReport | Release) or (isinstance(source, Mapping) and "schema" in source):
        return _from_documents(survey, [source])
    if hasattr(source, "columns"):
        return _from_table(survey, {str(name): _values(source[name]) for name in source.columns})
    if isinstance(source, Mapping):
        return _from_table(survey, {str(name): _values(values) for name, values in source.items()})
    if isinstance(source, Iterable):
        return _from_documents(survey, source)
    raise bad_parameter("source", "reports, a data frame or a file", source, fix=_KINDS)


def _from_file(survey: Survey, path: Path) -> ReportColumns:
    if not path.is_file():
        raise missing_file(path)
    match path.suffix.lower():
        case ".jsonl" | ".ndjson" | ".json" | "":  # a browser can save a report without an ending
            lines, documents = _json_lines(path)
            return _from_documents(survey, documents, file=path.name, lines=lines)
        case ".csv":
            lines, table = _csv_columns(survey, path)
            return _from_table(survey, table, file=path.name, lines=lines)
        case ".parquet":
            return _from_table(survey, _parquet_columns(path))
    raise bad_parameter("source", "a file of JSON lines, CSV or Parquet", path.name, fix=_KINDS)


def _json_lines(path: Path) -> tuple[list[int], list[Any]]:
    """Return the documents of a file and the line of each; a whole file of JSON has no lines."""
    number = 0
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() == ".json" or (not path.suffix and _is_json(text)):
            document = json.loads(text)
            return [], document if isinstance(document, list) else [document]
        lines, documents = [], []
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                lines.append(number)
                documents.append(json.loads(line))
    except (ValueError, RecursionError):
        where = f"line {number:,} of the file" if number else "the file"
        raise bad_report_at(f"{where} is not JSON") from None
    return lines, documents


def _is_json(text: str) -> bool:
    """Whether a text is one document, and not a document on each line."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _csv_columns(survey: Survey, path: Path) -> tuple[list[int], dict[str, list[Any]]]:
    """Return the columns of a file and the line of each row; an empty row is not a report."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # spreadsheets write a mark before the first name
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(survey, text), strict=True)
        head = [name.strip() for name in next(rows, [])]
        numbered_rows = [(rows.line_num, row) for row in rows if any(row)]
    except (ValueError, csv.Error):  # not UTF-8, or a cell of more than 131,072 letters
        raise bad_report_at("the file cannot be read as CSV in UTF-8") from None
    if len(set(head)) != len(head):
        raise bad_report_at("the first line of the file names a column twice")
    if other := [line for line, row in numbered_rows if len(row) != len(head)]:
        raise bad_report_at(
            f"line {other[0]:,} of the file does not have the {len(head):,} columns of its first line"
        )
    table = {name: [row[place] for _, row in numbered_rows] for place, name in enumerate(head)}
    return [line for line, _ in numbered_rows], table


def _delimiter(survey: Survey, text: str) -> str:
    """Return the sign between cells: a comma, or where that finds no question, a semicolon or a tab."""
    names = {question.name.casefold() for question in survey.questions}
    for sign in ",;\t":
        head = next(csv.reader(io.StringIO(text, newline=""), delimiter=sign), [])
        if names & {name.strip().casefold() for name in head}:
            return sign
    return ","


def _parquet_columns(path: Path) -> dict[str, list[Any]]:
    needs("collect", "pyarrow", "tacit[pandas]")
    from pyarrow import ArrowException, parquet

    try:
        table = parquet.read_table(path)
    except (ArrowException, OSError):
        raise bad_report_at("the file cannot be read as Parquet") from None
    return {name: table[name].to_pylist() for name in table.column_names}


def _values(column: Any) -> Any:
    """Return a column as a list; whole numbers stay an array."""
    if hasattr(column, "to_numpy"):
        array = column.to_numpy()
        if array.dtype.kind in "iu":
            return array
    for way in ("tolist", "to_list"):
        if hasattr(column, way):
            return list(getattr(column, way)())
    return list(column)


def _from_documents(
    survey: Survey, documents: Iterable[Any], *, file: str = "", lines: Sequence[int] = ()
) -> ReportColumns:
    contents = list(documents)
    columns = ReportColumns(len(contents), file=file, lines=lines)
    reports = [_document(report, columns, row) for row, report in enumerate(contents)]
    names = [question.name for question in survey.questions]
    columns.facts = {
        "survey": [report.survey for report in reports],
        "epsilon": [report.epsilon or None for report in reports],
        "invitation": [report.invitation for report in reports],
    }
    digest = survey.digest
    for row, report in enumerate(reports):
        if report.survey == digest and any(name not in names for name in report.answers):
            raise bad_report_at("it answers a question that the survey does not ask", columns.place(row))
    columns.answers = {name: [report.answers.get(name) for report in reports] for name in names}
    public = dict.fromkeys(name for report in reports for name in (report.public or {}))
    columns.public = {name: [(report.public or {}).get(name) for report in reports] for name in public}
    return columns


def _document(content: Any, columns: ReportColumns, row: int) -> SurveyReport:
    if isinstance(content, Release):
        content = content.content
    if isinstance(content, SurveyReport):
        return content
    try:
        return SurveyReport.from_json(content)
    except TacitError as refused:
        sentence = f"{columns.place(row)}: {refused.what}"
        raise refused.but(what=sentence) from None


def _from_table(
    survey: Survey, table: Mapping[str, Any], *, file: str = "", lines: Sequence[int] = ()
) -> ReportColumns:
    names = {question.name for question in survey.questions}
    _check_names(names, table)
    columns = ReportColumns(len(next(iter(table.values()))), file=file, lines=lines)
    for name, values in table.items():
        if name in names:
            plain = isinstance(values, np.ndarray) and values.dtype.kind in "iu"
            columns.answers[name] = values if plain else _cells(columns, values)
        elif name in _FACTS:
            columns.facts[name] = [None if _is_missing(value) else str(value) for value in values]
        else:
            columns.public[name] = values
    return columns


def _check_names(names: set[str], table: Mapping[str, Any]) -> None:
    """Refuse a table without a question, and a public column whose name is almost that of another column."""
    meant = {name.casefold(): name for name in (*_FACTS, *names)}
    for name in table:
        close = meant.get(name.strip().casefold())
        if close is not None and name not in names and name not in _FACTS:
            raise TacitError(
                "bad-report",
                f"the column {name!r} is not the question {close!r}",
                why="Tacit would read it as a public column, with true answers",
                fix=Choose(tuple(sorted(names)), given=name, close=close),
            )
    if not names & set(table):
        raise TacitError(
            "bad-report",
            "the table has no column with the name of a question",
            why="a table of reports has one column for each question, one for invitations, and public ones",
            fix=Choose(tuple(sorted(names))),
        )


def _cells(columns: ReportColumns, values: Any) -> list[Any]:
    row = 0
    cells = []
    try:
        for row, value in enumerate(values):  # noqa: B007 - the row of the cell that fails
            cells.append(_cell(value))
    except (ValueError, RecursionError):
        sentence = "a cell is neither a whole number nor a list of them"
        raise bad_report_at(sentence, columns.place(row)) from None
    return cells


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and value != value)


def _cell(value: Any) -> Any:
    """Read a cell of a table: a whole number, a list, or their text as JSON."""
    if _is_missing(value):
        return None
    if isinstance(value, str):
        value = json.loads(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.tolist() if hasattr(value, "tolist") else value


def bad_report_at(sentence: str, position: str = "") -> TacitError:
    """Refuse a report; ``position`` says which one."""
    return TacitError(
        "bad-report",
        f"{position}: {sentence}" if position else sentence,
        why="a report that the survey cannot have produced could move the estimates by any amount",
        fix="drop the report, or collect it with the survey that it was made for",
    )


def collect(
    survey: Survey,
    source: Any,
    *,
    repeated: str = "refuse",
    invitations: Iterable[object] | None = None,
) -> Reports:
    """Read reports of a survey; see `tacit.surveys.Survey.collect`."""
    Choice(("refuse", "first")).read("repeated", repeated)
    columns = read_source(survey, source)
    _check_survey(survey, columns)
    if invitations is not None:
        _check_invited(columns, invitations)
    row_indices = _one_each(columns, repeated)
    invitation_column = columns.facts.get("invitation")
    numbers = None if invitation_column is None else [invitation_column[i] for i in row_indices]
    answered = {
        question.name: _answered(survey, question, columns, row_indices, numbers)
        for question in survey.questions
    }
    _check_answers(answered, columns, row_indices, single_question=survey.strategy == "one")
    public = {name: _array([values[i] for i in row_indices]) for name, values in columns.public.items()}
    invited = None if numbers is None or None in numbers else tuple(map(str, numbers))
    return Reports(survey, len(row_indices), answered, public, invited)


def _check_survey(survey: Survey, columns: ReportColumns) -> None:
    """Refuse reports of another survey, and those that were randomized with another epsilon."""
    digest, epsilon = survey.digest, str(survey.epsilon)
    epsilons = columns.facts.get("epsilon", [None] * columns.total)
    surveys = columns.facts.get("survey", [None] * columns.total)
    for row, (survey_digest, stated) in enumerate(zip(surveys, epsilons, strict=True)):
        if stated is not None and not _same(stated, epsilon):
            raise TacitError(
                "mixed-epsilons",
                f"{columns.place(row)} was randomized with another epsilon, and the survey has {epsilon}",
                why="reports with different odds cannot be counted together",
                fix=Code("tc.surveys.pool(one.collect(...), other.collect(...))"),
            )
        if survey_digest is not None and survey_digest != digest:
            raise TacitError(
                "other-survey",
                f"{columns.place(row)} belongs to another survey",
                why="its questions, answers or randomizers are not those of this survey",
                fix="collect it with the survey that it was made for",
            )


def _same(stated: str, epsilon: str) -> bool:
    from fractions import Fraction

    if not _NUMBER.fullmatch(stated):  # a respondent wrote it: "1e999999999" has a billion digits
        return False
    try:
        return Fraction(stated) == Fraction(epsilon)
    except (ValueError, ZeroDivisionError):
        return False


def _one_each(columns: ReportColumns, repeated: str) -> list[int]:
    """Return the rows to keep: one for each invitation."""
    invitations = columns.facts.get("invitation")
    if invitations is None:
        return list(range(columns.total))
    first_rows: dict[str, int] = {}
    row_indices = [
        row for row, one in enumerate(invitations) if one is None or first_rows.setdefault(one, row) == row
    ]
    if (more := columns.total - len(row_indices)) and repeated == "refuse":
        few = "1 report has" if more == 1 else f"{more:,} reports have"
        raise TacitError(
            "invitation-reused",
            f"{few} an invitation that was used before",
            why="a second report gives away as much again about its respondent, and counts the person twice",
            fix=Either(Set(repeated="first")),
        )
    return row_indices


def _check_invited(columns: ReportColumns, invitations: Iterable[object]) -> None:
    """Refuse reports that nobody was invited to send."""
    sent = {str(one) for one in invitations}
    for row, invitation in enumerate(columns.facts.get("invitation", [None] * columns.total)):
        if invitation not in sent:
            raise bad_report_at("its invitation is missing, or was not sent", columns.place(row))


def _answered(
    survey: Survey,
    question: SurveyQuestion,
    columns: ReportColumns,
    row_indices: list[int],
    numbers: list[Any] | None,
) -> AnsweredQuestion:
    randomizer: Any = question.law
    values = columns.answers.get(question.name)
    answered_values: Any = []
    rows = np.arange(0)
    if isinstance(values, np.ndarray):  # a column of whole numbers: nobody left it out
        rows, answered_values = np.arange(len(row_indices)), values[row_indices]
    elif values:
        answered_rows = [row for row, i in enumerate(row_indices) if values[i] is not None]
        rows, answered_values = (
            np.array(answered_rows, dtype=np.int64),
            [values[row_indices[row]] for row in answered_rows],
        )
    try:
        reports = _read_reports(question, answered_values)
    except TacitError as refused:
        row = _first_bad(question, answered_values)
        position = "" if row is None else f"{columns.place(row_indices[rows[row]])}, "
        raise refused.but(what=f"{position}{question.name}: {refused.what}", question=question.name) from None
    if numbers is not None and isinstance(randomizer, LinearHashing):
        invited = np.array([numbers[row] is not None for row in rows], dtype=bool)
        label = seed_label(survey.digest, question.name)
        seeds = randomizer.seeds_for([numbers[row] for row in rows[invited]], label=label)
        others = np.nonzero((seeds != reports["seed"][invited]).any(axis=-1))[0]
        if len(others):
            position = columns.place(row_indices[rows[invited][others[0]]])
            raise bad_report_at(f"{question.name}: its seed does not belong to its invitation", position)
    return AnsweredQuestion(rows, reports)


def _read_reports(question: SurveyQuestion, reports: Any) -> Any:
    randomizer: Any = question.law
    if not isinstance(reports, np.ndarray) and _has_boolean(reports):
        raise bad_report_at("a report says true or false, and places of answers are whole numbers")
    try:
        return randomizer.read_reports(reports)
    except (ValueError, TypeError, OverflowError):  # lists of different depths, numbers without end
        raise bad_report_at("a report does not have the form of this question") from None


def _has_boolean(reports: Any) -> bool:
    """Whether a report, or a part of one, is true or false; Python would read them as 1 and 0."""
    types = set(map(type, reports))
    if bool in types:
        return True
    if not types & {list, dict}:
        return False
    nested = (
        one.values() if isinstance(one, dict) else one for one in reports if isinstance(one, list | dict)
    )
    return any(bool in map(type, parts) for parts in nested)


def _first_bad(question: SurveyQuestion, reports: Any) -> int | None:
    """Return the first report that is refused by itself, by halving; None where only all together are."""
    low, high = 0, len(reports)
    while high - low > 1:
        middle = (low + high) // 2
        if _is_bad(question, reports[low:middle]):
            high = middle
        else:
            low = middle
    return low if _is_bad(question, reports[low:high]) else None


def _is_bad(question: SurveyQuestion, report: Any) -> bool:
    try:
        _read_reports(question, report)
    except TacitError:
        return True
    return False


def _check_answers(
    answered: Mapping[str, AnsweredQuestion],
    columns: ReportColumns,
    row_indices: list[int],
    *,
    single_question: bool,
) -> None:
    """Refuse a report without an answer, and one with several where each respondent is asked one question."""
    times = np.zeros(len(row_indices), dtype=np.int64)
    for answered_question in answered.values():
        times[answered_question.rows] += 1
    if len(silent := np.nonzero(times == 0)[0]):
        raise bad_report_at("it answers no question", columns.place(row_indices[silent[0]]))
    if single_question and len(many := np.nonzero(times > 1)[0]):
        sentence = "it answers several questions, and the survey asks each respondent one"
        raise bad_report_at(sentence, columns.place(row_indices[many[0]]))


def _array(values: list[Any]) -> Any:
    """Return a public column as numbers where all values are numbers, else as texts."""
    try:
        numbers = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        return np.array(["" if value is None else str(value) for value in values], dtype=object)
    integral = np.array_equal(numbers, np.rint(numbers)) and bool(np.all(np.abs(numbers) < 2**53))
    return numbers.astype(np.int64) if integral else numbers
