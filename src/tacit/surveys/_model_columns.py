"""The columns of a regression: public ones as they are, texts as one column for each value but the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Set
from tacit.mechanisms import Design
from tacit.surveys._estimates import mean_scores
from tacit.surveys._regression import fit_linear, fit_logistic, fit_unbiased

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.surveys._regression import Regression
    from tacit.surveys._reports import Reports
    from tacit.surveys._survey_questions import SurveyQuestion

_MOST_VALUES = 50


def fit_logistic_on(
    reports: Reports, question: str, *, on: Sequence[str], answer: Any, confidence: float
) -> Regression:
    """Fit whether the truth is one answer; see `Reports.logistic`."""
    asked = reports.survey[question]
    rows, own = reports.answered[asked.name]
    yes, p, q = _yes(asked, own, answer)
    names, x = _predictors(reports, on, rows)
    return fit_logistic(yes, x, p=p, q=q, names=names, confidence=confidence)


def fit_linear_on(
    reports: Reports, outcome: str, *, on: Sequence[str], answer: Any, confidence: float
) -> Regression:
    """Fit a number; see `Reports.linear`."""
    questions = {question.name: question for question in reports.survey.questions}
    randomized = [name for name in _listed(on) if name in questions]
    if outcome in questions:
        if randomized:
            raise _one_randomized()
        asked = questions[outcome]
        rows, own = reports.answered[outcome]
        names, x = _predictors(reports, on, rows)
        return fit_unbiased(mean_scores(asked, own), x, names=names, confidence=confidence)
    if len(randomized) != 1:
        raise _one_randomized()
    asked = questions[randomized[0]]
    rows, own = reports.answered[asked.name]
    yes, p, q = _yes(asked, own, answer)
    names, x = _predictors(reports, [name for name in on if name != asked.name], rows)
    y = _numbers(reports, outcome)[rows]
    named = [*names, f"{asked.name}={_answer(asked, answer)}"]
    return fit_linear(y, yes, x, p=p, q=q, names=named, confidence=confidence)


def _answer(question: SurveyQuestion, answer: Any) -> Any:
    return question.answers[-1] if answer is None else answer


def _yes(question: SurveyQuestion, own: Any, answer: Any) -> tuple[NDArray[np.bool_], float, float]:
    """Return whether each report supports the answer, and with which chance it does if true and if not."""
    if not question.gives_shares:
        raise TacitError(
            "bad-parameter",
            f"the answer to {question.name!r} is a number, and this model needs a list of answers",
            why="the report of a number lies near the number and does not name an answer",
            fix="make it the outcome of a linear model, or ask for groups such as ages 18 to 29",
        )
    place = question.place_of(_answer(question, answer))
    if isinstance(question.law, Design):
        if question.law.draws != 1:
            raise bad_parameter("question", "one with a single draw for a regression", question.name)
        p, q = float(question.law.p), float(question.law.q)
        return (own == 1, p, q) if place == 1 else (own == 0, 1 - q, 1 - p)
    randomizer = question.support
    return randomizer.supported(own, place), float(randomizer.p), float(randomizer.q)


def _listed(on: Sequence[str]) -> Sequence[str]:
    if isinstance(on, str):
        raise bad_parameter("on", "a list of columns", on, fix=Set(on=[on]))
    return on


def _predictors(
    reports: Reports, on: Sequence[str], rows: NDArray[np.int64]
) -> tuple[list[str], NDArray[np.float64]]:
    names, columns = ["intercept"], [np.ones(len(rows))]
    for name in _listed(on):
        values = reports.column(name)[rows]
        if values.dtype.kind in "iufb":
            names.append(name)
            columns.append(_numbers(reports, name)[rows])
            continue
        found = sorted(dict.fromkeys(values.tolist()), key=str)
        if len(found) > _MOST_VALUES:
            raise bad_parameter("on", f"columns of numbers, or with at most {_MOST_VALUES} values", name)
        for value in found[1:]:
            names.append(f"{name}={value}")
            columns.append((values == value).astype(float))
    return names, np.column_stack(columns)


def _numbers(reports: Reports, name: str) -> NDArray[np.float64]:
    values = reports.column(name)
    if values.dtype.kind not in "iufb" or not np.isfinite(values.astype(float)).all():
        raise TacitError(
            "bad-parameter",
            f"the column {name!r} has values that are not numbers",
            fix="first drop the respondents whose value in this column is missing or is not a number",
        )
    return values.astype(float)


def _one_randomized() -> TacitError:
    return TacitError(
        "bad-parameter",
        "a linear model has exactly one randomized column: the outcome, or one predictor",
        why="the joint likelihood of several randomized answers is not offered",
        fix=Code('reports.linear("income", on=["smokes", "age"])'),
    )
