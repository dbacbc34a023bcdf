"""Reading reports at the collector: from documents, data frames and files, with every report checked."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Release, needs
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Choose, Code, Either, Set
from tacit.mechanisms import LinearHashing
from tacit.surveys._answering import SurveyReport, seed_label
from tacit.surveys._reports import AnsweredQuestion, Reports

if TYPE_CHECKING:
    from tacit.surveys._survey import Survey
    from tacit.surveys._survey_questions import SurveyQuestion

__all__ = ["collect"]

_NUMBER = re.compile(r"[0-9./]{1,400}([eE][-+]?[0-9]{1,3})?")  # an epsilon that a report may state
_KINDS = Choose(("a file .jsonl, .csv or .parquet", "a data frame", "a list of reports"))


@dataclass(slots=True)
class _Columns:
    """Reports as columns, each with one value for each respondent; None stands for none."""

    total: int
    facts: dict[str, list[Any]] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    public: dict[str, list[Any]] = field(default_factory=dict)


def collect(survey: Survey, source: Any, *, repeated: str = "refuse") -> Reports:
    """Read reports of a survey; see `tacit.surveys.Survey.collect`."""
    if repeated not in {"refuse", "first"}:
        raise bad_parameter(
            "repeated", "refuse or first", repeated, fix=Choose(("refuse", "first"), repeated)
        )
    columns = _read(survey, source)
    _check_survey(survey, columns)
    kept = _one_each(columns, repeated)
    invitations = columns.facts.get("invitation")
    numbers = None if invitations is None else [invitations[i] for i in kept]
    answered = {
        question.name: _answered(survey, question, columns.answers.get(question.name), kept, numbers)
        for question in survey.questions
    }
    if survey.strategy == "one":
        _check_one(answered, len(kept))
    public = {name: _array([values[i] for i in kept]) for name, values in columns.public.items()}
    known = None if numbers is None or None in numbers else tuple(map(str, numbers))
    return Reports(survey, len(kept), answered, public, known)


def _read(survey: Survey, source: Any) -> _Columns:
    if isinstance(source, str | Path):
        path = Path(source)
        if not path.is_file():
            raise bad_parameter("source", "a file that exists", str(source), fix=_KINDS)
        match path.suffix.lower():
            case ".jsonl" | ".ndjson" | ".json":
                return _from_documents(survey, _json_lines(path))
            case ".csv":
                return _from_table(survey, _csv_columns(path))
            case ".parquet":
                return _from_table(survey, _parquet_columns(path))
        raise bad_parameter("source", "a file of JSON lines, CSV or Parquet", path.name, fix=_KINDS)
    if isinstance(source, Reports):
        from tacit.surveys._report_files import documents_of

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


def _json_lines(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix.lower() == ".json":
            whole = json.loads(text)
            return whole if isinstance(whole, list) else [whole]
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError):
        raise _bad("a line of the file is not JSON") from None


def _csv_columns(path: Path) -> dict[str, list[Any]]:
    try:
        with path.open(newline="", encoding="utf-8") as lines:
            rows = list(csv.reader(lines))
    except (ValueError, csv.Error):  # not UTF-8, or a cell of more than 131,072 letters
        raise _bad("the file cannot be read as CSV") from None
    head = rows[0] if rows else []
    if len(set(head)) != len(head) or any(len(row) != len(head) for row in rows):
        raise _bad("the rows of the file do not all have the columns of its first line, each once")
    return {name: [row[place] for row in rows[1:]] for place, name in enumerate(head)}


def _parquet_columns(path: Path) -> dict[str, list[Any]]:
    needs("collect", "pyarrow", "tacit[pandas]")
    from pyarrow import ArrowException, parquet

    try:
        table = parquet.read_table(path)
    except (ArrowException, OSError):
        raise _bad("the file cannot be read as Parquet") from None
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


def _from_documents(survey: Survey, documents: Iterable[Any]) -> _Columns:
    found = [_document(one) for one in documents]
    names = {question.name for question in survey.questions}
    columns = _Columns(len(found))
    columns.facts = {
        "survey": [one.survey for one in found],
        "epsilon": [one.epsilon or None for one in found],
        "invitation": [one.invitation for one in found],
    }
    digest = survey.digest
    for one in found:
        if one.survey == digest and (unknown := [name for name in one.answers if name not in names]):
            raise _bad(f"a report answers {unknown[0]!r}, which the survey does not ask")
    columns.answers = {name: [one.answers.get(name) for one in found] for name in names}
    public = dict.fromkeys(name for one in found for name in (one.public or {}))
    columns.public = {name: [(one.public or {}).get(name) for one in found] for name in public}
    return columns


def _document(one: Any) -> SurveyReport:
    if isinstance(one, Release):
        one = one.content
    return one if isinstance(one, SurveyReport) else SurveyReport.from_json(one)


def _from_table(survey: Survey, table: Mapping[str, Any]) -> _Columns:
    names = {question.name for question in survey.questions}
    if not names & set(table):
        raise TacitError(
            "bad-report",
            "the table has no column with the name of a question",
            why="a table of reports has one column for each question, one for invitations, and public ones",
            fix=Choose(tuple(sorted(names))),
        )
    columns = _Columns(len(next(iter(table.values()))))
    for name, values in table.items():
        if name in names:
            plain = isinstance(values, np.ndarray) and values.dtype.kind in "iu"
            columns.answers[name] = values if plain else [_cell(value) for value in values]
        elif name in {"survey", "invitation", "epsilon"}:
            columns.facts[name] = [None if _is_missing(value) else str(value) for value in values]
        else:
            columns.public[name] = values
    return columns


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and value != value)


def _cell(value: Any) -> Any:
    """Read a cell of a table: a whole number, a list, or their text as JSON."""
    if _is_missing(value):
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise _bad("a cell is neither a whole number nor a list of them") from None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.tolist() if hasattr(value, "tolist") else value


def _check_survey(survey: Survey, columns: _Columns) -> None:
    """Refuse reports of another survey, and those that were randomized with another epsilon."""
    digest, epsilon = survey.digest, str(survey.epsilon)
    epsilons = columns.facts.get("epsilon", [None] * columns.total)
    surveys = columns.facts.get("survey", [None] * columns.total)
    for own, stated in zip(surveys, epsilons, strict=True):
        if stated is not None and not _same(stated, epsilon):
            raise TacitError(
                "mixed-epsilons",
                f"a report was randomized with epsilon {stated[:20]}, and the survey has {epsilon}",
                why="reports with different odds cannot be counted together",
                fix=Code("tc.surveys.pool(one.collect(...), other.collect(...))"),
            )
        if own is not None and own != digest:
            raise TacitError(
                "other-survey",
                "a report belongs to another survey",
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


def _one_each(columns: _Columns, repeated: str) -> list[int]:
    """Return the rows to keep: one for each invitation."""
    invitations = columns.facts.get("invitation")
    if invitations is None:
        return list(range(columns.total))
    seen: dict[str, int] = {}
    kept = [row for row, one in enumerate(invitations) if one is None or seen.setdefault(one, row) == row]
    if len(kept) < columns.total and repeated == "refuse":
        raise TacitError(
            "invitation-reused",
            f"{columns.total - len(kept):,} reports have an invitation that was used before",
            why="a second report gives away as much again about its respondent, and counts the person twice",
            fix=Either(Set(repeated="first")),
        )
    return kept


def _answered(
    survey: Survey,
    question: SurveyQuestion,
    values: Any,
    kept: list[int],
    numbers: list[Any] | None,
) -> AnsweredQuestion:
    randomizer: Any = question.law
    given: Any = []
    rows = np.arange(0)
    if isinstance(values, np.ndarray):  # a column of whole numbers: nobody left it out
        rows, given = np.arange(len(kept)), values[kept]
    elif values:
        found = [row for row, i in enumerate(kept) if values[i] is not None]
        rows, given = np.array(found, dtype=np.int64), [values[kept[row]] for row in found]
    try:
        reports = randomizer.read_reports(given)
    except (ValueError, TypeError, OverflowError):  # lists of different depths, numbers without end
        raise _bad(f"{question.name}: a report does not have the form of this question") from None
    except TacitError as refused:
        raise TacitError(
            refused.code, f"{question.name}: {refused.what}", why=refused.why, fix=refused.fix
        ) from None
    if numbers is not None and isinstance(randomizer, LinearHashing):
        invited = np.array([numbers[row] is not None for row in rows], dtype=bool)
        label = seed_label(survey.digest, question.name)
        seeds = randomizer.seeds_for([numbers[row] for row in rows[invited]], label=label)
        if not np.array_equal(seeds, reports["seed"][invited]):
            raise _bad(f"{question.name}: a report has a seed that does not belong to its invitation")
    return AnsweredQuestion(rows, reports)


def _check_one(answered: Mapping[str, AnsweredQuestion], total: int) -> None:
    times = np.zeros(total, dtype=np.int64)
    for one in answered.values():
        times[one.rows] += 1
    if (times > 1).any():
        raise _bad("a report answers several questions, and the survey asks each respondent one")


def _array(values: list[Any]) -> Any:
    """Return a public column as numbers where all values are numbers, else as texts."""
    try:
        found = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        return np.array(["" if value is None else str(value) for value in values], dtype=object)
    whole = np.array_equal(found, np.rint(found)) and bool(np.all(np.abs(found) < 2**53))
    return found.astype(np.int64) if whole else found


def _bad(what: str) -> TacitError:
    return TacitError(
        "bad-report",
        what,
        why="a report that the survey cannot have produced could move the estimates by any amount",
        fix="drop the report, or collect it with the survey that it was made for",
    )
