"""What a survey will be able to say, before anyone answers: half-widths and numbers of respondents."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Choose, Either, Set
from tacit.parameters import Probability, RealNumber
from tacit.report import Report, Reportable, ReportTable
from tacit.surveys._estimates import liar_bound, margin_variance, share_variance, side_liar_bound
from tacit.surveys._intervals import normal_quantile
from tacit.surveys._survey_questions import find_question

if TYPE_CHECKING:
    from tacit.surveys._survey import Survey
    from tacit.surveys._survey_questions import SurveyQuestion

_WHOLE = 0.5  # an interval of this half-width says nothing about a share


@dataclass(frozen=True, slots=True, repr=False)
class SurveyForecast(Reportable):
    """How wide the intervals of a survey will be, with so many respondents.

    Parameters
    ----------
    survey
        Its name.
    respondents
        How many people answer.
    confidence
        Of the intervals, for a population.
    names, asked, half_widths, liars
        The questions, and each side of a pair; how many people answer each; the half-width of its hardest
        share or its mean; how far 1 % dishonest respondents can move it.
    units
        ``points`` of a share, or an empty text for a number in its own units.
    """

    survey: str
    respondents: int
    confidence: float
    names: tuple[str, ...]
    asked: tuple[int, ...]
    half_widths: tuple[float, ...]
    liars: tuple[float, ...]
    units: tuple[str, ...]

    def __getitem__(self, question: str) -> float:
        """Return the half-width of a question."""
        if question not in self.names:
            raise TacitError(
                "unknown-column",
                f"the survey has no question {question!r}",
                fix=Choose(self.names, given=question),
            )
        return self.half_widths[self.names.index(question)]

    def report(self) -> Report:
        """Return a line for each question."""
        rows = tuple(
            (name, f"{people:,}", _shown(half, unit), _shown(lie, unit))
            for name, people, half, lie, unit in zip(
                self.names, self.asked, self.half_widths, self.liars, self.units, strict=True
            )
        )
        head = ("question", "answers", f"+/- at {self.confidence * 100:g} %", "1 % liars move it by")
        return Report(
            f"survey {self.survey}: what {self.respondents:,} respondents will show",
            (),
            (ReportTable("", head, rows),),
            ("+/- is for the share of a list that is hardest to estimate, or for a mean.",),
        )


def forecast_of(survey: Survey, respondents: int, confidence: float) -> SurveyForecast:
    """Predict the half-widths of all questions of a survey."""
    n = count("respondents", respondents, zero=False)
    rows = [
        (name, question, side)
        for question in survey.questions
        for name, side in [(question.name, None), *((own, i) for i, (own, _) in enumerate(question.of))]
    ]
    asked = tuple(max(1, int(n * question.share)) for _, question, _ in rows)
    return SurveyForecast(
        survey.name,
        n,
        confidence,
        tuple(name for name, _, _ in rows),
        asked,
        tuple(
            _half_width(question, side, k, None, confidence)
            for (_, question, side), k in zip(rows, asked, strict=True)
        ),
        tuple(liar_bound(one) if side is None else side_liar_bound(one, side) for _, one, side in rows),
        tuple("points" if question.gives_shares else "" for _, question, _ in rows),
    )


def respondents_of(
    survey: Survey, name: str | None, half_width: float, share: float | None, confidence: float
) -> int:
    """Return how many people must answer the survey for such a half-width, of one question or of all."""
    if share is not None:
        Probability(instead=0.1).read("share", share)
    RealNumber(instead=0.03).read("half_width", half_width)
    if name is not None:
        asked = [find_question(survey.questions, name)]
    else:
        _check_units(survey)
        asked = [(question, None) for question in survey.questions]
    if any(question.gives_shares for question, _ in asked) and half_width >= _WHOLE:
        raise bad_parameter(
            "half_width",
            "below 0.5 for a share",
            half_width,
            why="a share lies between 0 and 1, and 0.03 stands for 3 percentage points",
            fix=Set(half_width=0.03),
        )
    return max(_needed(question, side, half_width, share, confidence) for question, side in asked)


def _needed(
    question: SurveyQuestion, side: int | None, half_width: float, share: float | None, confidence: float
) -> int:
    one = _half_width(question, side, 1, share, confidence)
    return math.ceil(math.ceil((one / half_width) ** 2 * (1 - 1e-12)) / question.share)


def _check_units(survey: Survey) -> None:
    """Refuse one half-width for questions that are not measured alike."""
    if len(survey.questions) == 1 or all(question.gives_shares for question in survey.questions):
        return
    units = [f"{question.name} ({_unit(question)})" for question in survey.questions]
    raise TacitError(
        "bad-parameter",
        f"the questions have different units: {', '.join(units)}",
        why="one half-width cannot stand for shares and for numbers, or for two different numbers",
        fix=Either(*(Set(question=question.name) for question in survey.questions[:4])),
    )


def _unit(question: SurveyQuestion) -> str:
    if question.gives_shares:
        return "a share from 0 to 1"
    low, high = question.bounds or (0, 0)
    return f"a number from {float(low):g} to {float(high):g}"


def _half_width(
    question: SurveyQuestion, side: int | None, respondents: int, share: float | None, confidence: float
) -> float:
    if not question.gives_shares:
        error = float(question.radius) * math.sqrt(question.variance() / respondents)
        return normal_quantile(confidence) * error
    if side is None:
        variance = share_variance(question, respondents, covers="population")
    else:
        variance = margin_variance(question, side, respondents)
    at = min(max(-variance.b / (2 * variance.c), 0.0), 1.0) if share is None else share  # the hardest share
    return normal_quantile(confidence) * math.sqrt(float(variance.at(at)))


def _shown(value: float, unit: str) -> str:
    return f"{100 * value:.3g} points" if unit else f"{value:.3g}"
