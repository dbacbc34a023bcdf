"""Collecting reports: every report is checked, and a bad one is refused with its number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Code, Either, Set
from tacit.mechanisms import LinearHashing
from tacit.parameters import Choice
from tacit.surveys._answering import seed_label
from tacit.surveys._report_sources import ReportColumns, bad_report_at, read_source
from tacit.surveys._reports import AnsweredQuestion, Reports

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tacit.surveys._survey import Survey
    from tacit.surveys._survey_questions import SurveyQuestion

_NUMBER = re.compile(r"[0-9./]{1,400}([eE][-+]?[0-9]{1,3})?")  # an epsilon that a report may state


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
    kept = _one_each(columns, repeated)
    given = columns.facts.get("invitation")
    numbers = None if given is None else [given[i] for i in kept]
    answered = {
        question.name: _answered(survey, question, columns, kept, numbers) for question in survey.questions
    }
    _check_answers(answered, columns, kept, one=survey.strategy == "one")
    public = {name: _array([values[i] for i in kept]) for name, values in columns.public.items()}
    known = None if numbers is None or None in numbers else tuple(map(str, numbers))
    return Reports(survey, len(kept), answered, public, known)


def _check_survey(survey: Survey, columns: ReportColumns) -> None:
    """Refuse reports of another survey, and those that were randomized with another epsilon."""
    digest, epsilon = survey.digest, str(survey.epsilon)
    epsilons = columns.facts.get("epsilon", [None] * columns.total)
    surveys = columns.facts.get("survey", [None] * columns.total)
    for row, (own, stated) in enumerate(zip(surveys, epsilons, strict=True)):
        if stated is not None and not _same(stated, epsilon):
            raise TacitError(
                "mixed-epsilons",
                f"{columns.place(row)} was randomized with another epsilon, and the survey has {epsilon}",
                why="reports with different odds cannot be counted together",
                fix=Code("tc.surveys.pool(one.collect(...), other.collect(...))"),
            )
        if own is not None and own != digest:
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
    seen: dict[str, int] = {}
    kept = [row for row, one in enumerate(invitations) if one is None or seen.setdefault(one, row) == row]
    if (more := columns.total - len(kept)) and repeated == "refuse":
        few = "1 report has" if more == 1 else f"{more:,} reports have"
        raise TacitError(
            "invitation-reused",
            f"{few} an invitation that was used before",
            why="a second report gives away as much again about its respondent, and counts the person twice",
            fix=Either(Set(repeated="first")),
        )
    return kept


def _check_invited(columns: ReportColumns, invitations: Iterable[object]) -> None:
    """Refuse reports that nobody was invited to send."""
    sent = {str(one) for one in invitations}
    for row, own in enumerate(columns.facts.get("invitation", [None] * columns.total)):
        if own not in sent:
            raise bad_report_at("its invitation is missing, or was not sent", columns.place(row))


def _answered(
    survey: Survey,
    question: SurveyQuestion,
    columns: ReportColumns,
    kept: list[int],
    numbers: list[Any] | None,
) -> AnsweredQuestion:
    randomizer: Any = question.law
    values = columns.answers.get(question.name)
    given: Any = []
    rows = np.arange(0)
    if isinstance(values, np.ndarray):  # a column of whole numbers: nobody left it out
        rows, given = np.arange(len(kept)), values[kept]
    elif values:
        found = [row for row, i in enumerate(kept) if values[i] is not None]
        rows, given = np.array(found, dtype=np.int64), [values[kept[row]] for row in found]
    try:
        reports = _read_reports(question, given)
    except TacitError as refused:
        row = _first_bad(question, given)
        place = "" if row is None else f"{columns.place(kept[rows[row]])}, "
        raise refused.but(what=f"{place}{question.name}: {refused.what}", question=question.name) from None
    if numbers is not None and isinstance(randomizer, LinearHashing):
        invited = np.array([numbers[row] is not None for row in rows], dtype=bool)
        label = seed_label(survey.digest, question.name)
        seeds = randomizer.seeds_for([numbers[row] for row in rows[invited]], label=label)
        others = np.nonzero((seeds != reports["seed"][invited]).any(axis=-1))[0]
        if len(others):
            place = columns.place(kept[rows[invited][others[0]]])
            raise bad_report_at(f"{question.name}: its seed does not belong to its invitation", place)
    return AnsweredQuestion(rows, reports)


def _read_reports(question: SurveyQuestion, given: Any) -> Any:
    randomizer: Any = question.law
    if not isinstance(given, np.ndarray) and _has_boolean(given):
        raise bad_report_at("a report says true or false, and places of answers are whole numbers")
    try:
        return randomizer.read_reports(given)
    except (ValueError, TypeError, OverflowError):  # lists of different depths, numbers without end
        raise bad_report_at("a report does not have the form of this question") from None


def _has_boolean(given: Any) -> bool:
    """Whether a report, or a part of one, is true or false; Python would read them as 1 and 0."""
    types = set(map(type, given))
    if bool in types:
        return True
    if not types & {list, dict}:
        return False
    nested = (one.values() if isinstance(one, dict) else one for one in given if isinstance(one, list | dict))
    return any(bool in map(type, parts) for parts in nested)


def _first_bad(question: SurveyQuestion, given: Any) -> int | None:
    """Return the first report that is refused by itself, by halving; None where only all together are."""
    low, high = 0, len(given)
    while high - low > 1:
        middle = (low + high) // 2
        if _is_bad(question, given[low:middle]):
            high = middle
        else:
            low = middle
    return low if _is_bad(question, given[low:high]) else None


def _is_bad(question: SurveyQuestion, given: Any) -> bool:
    try:
        _read_reports(question, given)
    except TacitError:
        return True
    return False


def _check_answers(
    answered: Mapping[str, AnsweredQuestion], columns: ReportColumns, kept: list[int], *, one: bool
) -> None:
    """Refuse a report without an answer, and one with several where each respondent is asked one question."""
    times = np.zeros(len(kept), dtype=np.int64)
    for own in answered.values():
        times[own.rows] += 1
    if len(silent := np.nonzero(times == 0)[0]):
        raise bad_report_at("it answers no question", columns.place(kept[silent[0]]))
    if one and len(many := np.nonzero(times > 1)[0]):
        what = "it answers several questions, and the survey asks each respondent one"
        raise bad_report_at(what, columns.place(kept[many[0]]))


def _array(values: list[Any]) -> Any:
    """Return a public column as numbers where all values are numbers, else as texts."""
    try:
        found = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        return np.array(["" if value is None else str(value) for value in values], dtype=object)
    whole = np.array_equal(found, np.rint(found)) and bool(np.all(np.abs(found) < 2**53))
    return found.astype(np.int64) if whole else found
