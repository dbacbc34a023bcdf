"""What a survey will be able to say, before anyone answers: half-widths and numbers of respondents.

They decide whether several questions are asked of everyone or one of each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Choose, Either, Set
from tacit.parameters import Probability, RealNumber
from tacit.report import Report, Reportable, ReportTable, short_percent
from tacit.surveys._estimates import (
    liar_bound,
    margin_variance,
    normal_quantile,
    share_variance,
    side_liar_bound,
    variance_of,
)
from tacit.surveys._survey_questions import find_question

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        head = ("question", "answers", f"+/- at {short_percent(self.confidence)}", "1 % liars move it by")
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
    respondents_asked = tuple(max(1, int(n * question.share)) for _, question, _ in rows)
    return SurveyForecast(
        survey.name,
        n,
        confidence,
        tuple(name for name, _, _ in rows),
        respondents_asked,
        tuple(
            _half_width(question, side, k, None, confidence)
            for (_, question, side), k in zip(rows, respondents_asked, strict=True)
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
        questions = [find_question(survey.questions, name)]
    else:
        _check_units(survey)
        questions = [(question, None) for question in survey.questions]
    if any(question.gives_shares for question, _ in questions) and half_width >= _WHOLE:
        raise bad_parameter(
            "half_width",
            "below 0.5 for a share",
            half_width,
            why="a share lies between 0 and 1, and 0.03 stands for 3 percentage points",
            fix=Set(half_width=0.03),
        )
    return max(_needed(question, side, half_width, share, confidence) for question, side in questions)


def _needed(
    question: SurveyQuestion, side: int | None, half_width: float, share: float | None, confidence: float
) -> int:
    single_width = _half_width(question, side, 1, share, confidence)
    return math.ceil(math.ceil((single_width / half_width) ** 2 * (1 - 1e-12)) / question.share)


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


def worst_share(p: float, q: float) -> float:
    """Return the share between 0 and 1 that is hardest to estimate: at half of the reports, or nearest to it.

    Examples
    --------
    >>> worst_share(0.75, 0.25)
    0.5
    """
    return min(max((0.5 - q) / (p - q), 0.0), 1.0)


def share_half_width(
    p: float, q: float, respondents: float, *, share: float | None = None, confidence: float = 0.95
) -> float:
    """Return the half-width of the interval of a share for a population, before the survey.

    Parameters
    ----------
    p, q
        P(report supports the value) if it is the truth and if it is not.
    respondents
        How many people answer this question.
    share
        The expected share; by default the hardest one.
    confidence
        Of the interval.
    """
    at = worst_share(p, q) if share is None else share
    unit_variance = float(variance_of(p, q, 1, covers="population").at(at))
    return normal_quantile(confidence) * math.sqrt(unit_variance / respondents)


class StrategyChoice(NamedTuple):
    """Whether to ask one question at random or to split epsilon over all, and why."""

    name: str
    why: str


def choose_strategy(single: Sequence[float], split: Sequence[float]) -> StrategyChoice:
    """Choose by predicted variance: of each question under both strategies, for the same respondents.

    ``single`` has the variance with the whole epsilon and one respondent in m, ``split`` with epsilon / m and
    everybody. Compared is the average ratio (geometric), so that no unit of measurement matters.

    Examples
    --------
    >>> choose_strategy([2.0, 2.0], [3.0, 3.0]).name
    'one'
    """
    logs = [math.log(a / b) for a, b in zip(single, split, strict=True)]
    ratio = math.exp(sum(logs) / len(logs) / 2)  # of standard errors
    if ratio <= 1:
        why = f"splitting epsilon over the questions would make intervals {1 / ratio:.2f} times as wide"
        return StrategyChoice("one", f"each respondent answers one question, picked at random: {why}")
    why = f"asking one at random would make intervals {ratio:.2f} times as wide"
    return StrategyChoice("split", f"each respondent answers every question with a part of epsilon: {why}")
