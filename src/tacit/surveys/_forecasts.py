"""What a survey will be able to say, before anyone answers: half-widths and numbers of respondents."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Choose, Set
from tacit.report import Report, Reportable, ReportTable
from tacit.surveys._estimates import liar_bound, share_variance
from tacit.surveys._intervals import normal_quantile

if TYPE_CHECKING:
    from tacit.surveys._survey import Survey
    from tacit.surveys._survey_questions import SurveyQuestion

__all__ = ["SurveyForecast", "forecast_of", "respondents_of"]


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
        The questions; how many people answer each; the half-width of its hardest share or its mean; how far
        1 % dishonest respondents can move it.
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
            ("The half-width is that of the hardest share of a list, or of the mean of a number.",),
        )


def forecast_of(survey: Survey, respondents: int, confidence: float) -> SurveyForecast:
    """Predict the half-widths of all questions of a survey."""
    n = count("respondents", respondents, zero=False)
    asked = tuple(max(1, int(n * question.share)) for question in survey.questions)
    return SurveyForecast(
        survey.name,
        n,
        confidence,
        tuple(question.name for question in survey.questions),
        asked,
        tuple(_half_width(q, k, None, confidence) for q, k in zip(survey.questions, asked, strict=True)),
        tuple(liar_bound(question) for question in survey.questions),
        tuple("points" if question.gives_shares else "" for question in survey.questions),
    )


def respondents_of(
    question: SurveyQuestion, half_width: float, share: float | None, confidence: float
) -> int:
    """Return how many people must answer the survey, so that this question has such a half-width."""
    expected: object = share
    if expected is not None and (not isinstance(expected, int | float) or not 0 <= expected <= 1):
        raise bad_parameter("share", "between 0 and 1", share, fix=Set(share=0.1))
    given: object = half_width
    if not isinstance(given, int | float) or not given > 0:
        raise bad_parameter("half_width", "a positive number", half_width, fix=Set(half_width=0.03))
    one = _half_width(question, 1, share, confidence)
    return math.ceil(math.ceil((one / half_width) ** 2 * (1 - 1e-12)) / question.share)


def _half_width(question: SurveyQuestion, respondents: int, share: float | None, confidence: float) -> float:
    if not question.gives_shares:
        error = float(question.radius) * math.sqrt(question.variance() / respondents)
        return normal_quantile(confidence) * error
    variance = share_variance(question, respondents, covers="population")
    at = min(max(-variance.b / (2 * variance.c), 0.0), 1.0) if share is None else share  # the hardest share
    return normal_quantile(confidence) * math.sqrt(float(variance.at(at)))


def _shown(value: float, unit: str) -> str:
    return f"{100 * value:.3g} points" if unit else f"{value:.3g}"
