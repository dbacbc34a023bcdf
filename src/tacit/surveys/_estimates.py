"""Unbiased estimates from reports: shares of a list or of one side of a pair, means of numbers and scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.errors import TacitError
from tacit.mechanisms import Design, NumberWindow, SupportRandomizer
from tacit.surveys._intervals import ShareVariance, normal_quantile, score_interval, variance_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.surveys._intervals import Covers
    from tacit.surveys._survey_questions import SurveyQuestion

    Floats = NDArray[np.float64]


class EstimatedShares(NamedTuple):
    """Shares with the ends of their intervals, not cut to [0, 1], and the rates of reports behind them."""

    values: Floats
    low: Floats
    high: Floats
    raw: Floats
    respondents: int


class EstimatedMean(NamedTuple):
    """A mean with its standard error, in the question's own units, and the mean of the reports behind it."""

    value: float
    error: float
    raw: float
    respondents: int


def shares(
    question: SurveyQuestion, reports: NDArray[Any], *, covers: Covers, confidence: float
) -> EstimatedShares:
    """Estimate the share of every answer of a list, with score intervals.

    Guarantee: unbiased. The interval covers the randomizer, and the sampling of respondents for a population.
    """
    n = _some(len(reports))
    variance = share_variance(question, n, covers=covers)
    if isinstance(question.law, Design):
        yes = float(reports.mean()) / question.law.draws
        value = (yes - float(question.law.q)) / float(question.law.p - question.law.q)
        low, high = score_interval(value, variance, confidence)
        ends = np.array([1 - high, low]), np.array([1 - low, high])
        return EstimatedShares(np.array([1 - value, value]), *ends, np.array([1 - yes, yes]), n)
    randomizer = question.support
    raw = randomizer.supports(reports) / n
    p, q = float(randomizer.p), float(randomizer.q)
    values = (raw - q) / (p - q)
    low, high = score_interval(values, variance, confidence)
    return EstimatedShares(values, low, high, raw, n)


def share_variance(question: SurveyQuestion, respondents: int, *, covers: Covers) -> ShareVariance:
    """Return the variance of an estimated share; of a design, that of the share of yes, the last answer."""
    law = question.law
    if isinstance(law, Design):
        return variance_of(float(law.p), float(law.q), respondents, covers=covers, draws=law.draws)
    law = question.support
    return variance_of(float(law.p), float(law.q), respondents, covers=covers)


def margin(
    question: SurveyQuestion, reports: NDArray[Any], side: int, *, covers: Covers, confidence: float
) -> EstimatedShares:
    """Estimate the shares of one side of a pair: the sum of the cells, report by report.

    Guarantee: unbiased; normal intervals from the variance among reports, less f(1-f)/n for respondents.
    """
    randomizer, n = question.support, _some(len(reports))
    p, q = float(randomizer.p), float(randomizer.q)
    counts = [len(labels) for _, labels in question.of]
    cells = np.arange(counts[0] * counts[1]).reshape(counts)
    of_label = cells if side == 0 else cells.T
    values, errors, raw = (np.empty(counts[side]) for _ in range(3))
    for place, own in enumerate(of_label):
        hits = np.zeros(n)
        for cell in own:
            hits += randomizer.supported(reports, int(cell))
        score = (hits - q * len(own)) / (p - q)
        values[place], raw[place] = score.mean(), (hits > 0).mean()
        errors[place] = _error(score, covers, spread=values[place] * (1 - values[place]))
    half = normal_quantile(confidence) * errors
    return EstimatedShares(values, values - half, values + half, raw, n)


def margin_variance(question: SurveyQuestion, side: int, respondents: int) -> ShareVariance:
    """Return the variance of an estimated share of one side of a pair, for a population.

    A report that names ``d`` of ``K`` cells holds the true one with chance p, and the others at random: how
    many of the ``k`` cells of a label it names is hypergeometric. The cells of a hash count as independent.
    """
    randomizer = question.support
    p, q, cells = float(randomizer.p), float(randomizer.q), len(question.answers)
    k, d = len(question.of[1 - side][1]), getattr(randomizer, "subset", None)

    def others(label: int, named: int) -> tuple[float, float]:
        """Return the mean and variance of how many cells of a label are named, besides the true one."""
        if d is None:
            return label * q, label * q * (1 - q)
        part, rest = label / (cells - 1), max(cells - 2, 1)
        return named * part, named * part * (1 - part) * (cells - 1 - named) / rest

    def variance(label: int, own: int) -> float:
        """Mix reports with the true cell and those without; ``own`` is 1 if the true cell has the label."""
        (high, spread), (low, other) = others(label, (d or 1) - 1), others(label, d or 1)
        gap = own + high - low
        return float((p * spread + (1 - p) * other + p * (1 - p) * gap**2) / (p - q) ** 2)

    inside, outside = variance(k - 1, 1), variance(k, 0)
    n = respondents
    return ShareVariance(outside / n, (inside - outside + 1) / n, -1 / n)


def mean_scores(question: SurveyQuestion, reports: NDArray[Any]) -> Floats:
    """Return for each report an unbiased estimate of the true number, in the question's own units."""
    scores = _unit_scores(question, reports, question.levels if question.gives_shares else None)
    return float(question.centre) + float(question.radius) * scores


def mean(question: SurveyQuestion, reports: NDArray[Any], *, covers: Covers) -> EstimatedMean:
    """Estimate the mean of a number or a scale.

    Guarantee: unbiased. The error covers the randomizer, and the sampling of respondents for a population;
    for these respondents alone it is that of the randomizer, estimated where it depends on the truth.
    """
    n = _some(len(reports))
    radius = float(question.radius)
    scores = mean_scores(question, reports)
    unit = (float(scores.mean()) - float(question.centre)) / radius
    if covers == "population":
        error = _error(scores, covers)
        if isinstance(question.randomizer, NumberWindow):  # a few coins may all show one side
            error = max(error, radius * float(np.sqrt(_least_variance(question.randomizer, unit) / n)))
        return EstimatedMean(float(scores.mean()), error, float(scores.mean()), n)
    if isinstance(question.randomizer, NumberWindow):
        error = np.sqrt(_window_variance(question.randomizer, question.randomizer.unbiased(reports)) / n)
    else:
        inner = scores - float(question.centre)
        squares = _unit_scores(question, reports, lambda: question.levels() ** 2)
        error = _error(inner / radius, covers, spread=float(squares.mean()) - unit**2)
    return EstimatedMean(float(scores.mean()), radius * float(error), float(scores.mean()), n)


def _window_variance(window: NumberWindow, values: Floats) -> float:
    """Return the average variance of the reports of these respondents, given their true numbers.

    It is a + c E x^2 for every window. A squared report has the mean a + (c + 1) E x^2, which gives E x^2.
    With Duchi's coin alone c = -1, every square is the same, and E x^2 >= (E x)^2 gives a bound.
    """
    least = window.variance(0)
    slope = window.variance(1) - least
    square = min(float(values.mean()) ** 2, 1.0)
    if slope > -0.5:
        square = min(max((float((values**2).mean()) - least) / (slope + 1), square), 1.0)
    return least + slope * square


def _least_variance(window: NumberWindow, unit: float) -> float:
    """Return what a report of a number varies by at least, whatever the numbers, if their mean is near this.

    With Duchi's coin alone a report varies by the square of its value less the square of the mean; mixed, the
    coin adds at least this to the window; the window alone varies least at 0.
    """
    return window.variance(min(abs(unit), 1.0) if window.duchi else 0)


def _unit_scores(question: SurveyQuestion, reports: NDArray[Any], levels: Any) -> Floats:
    """Return unbiased scores on the scale from -1 to 1; ``levels`` returns what each answer counts."""
    if isinstance(question.randomizer, NumberWindow):
        return question.randomizer.unbiased(reports)
    randomizer = question.support
    p, q = float(randomizer.p), float(randomizer.q)
    scores = np.zeros(len(reports))
    for place, level in enumerate(levels()):
        scores += level * (randomizer.supported(reports, place) - q) / (p - q)
    return scores


def _error(scores: Floats, covers: Covers, *, spread: float = 0.0) -> float:
    """Return the standard error of the mean of scores; ``spread`` is the variance of the truth."""
    n = len(scores)
    if n < 2:
        raise _too_few()
    variance = float(scores.var(ddof=1))
    return float(np.sqrt(max(variance - (spread if covers == "respondents" else 0.0), 0.0) / n))


def liar_bound(question: SurveyQuestion, liars: float = 0.01) -> float:
    """Return how far dishonest respondents, as a part of all, can move a share or a mean, in expectation.

    A liar may send any report; the honest report that it replaces is counted with its expectation. Against m
    of n liars no share moves by more than m max(1 - q, p)/(n (p - q)); a mean by m times the distance from
    the largest report to the other bound.
    """
    randomizer = question.law
    if isinstance(randomizer, SupportRandomizer | Design):
        p, q = randomizer.p, randomizer.q
        return liars * float(max(1 - q, p) / (p - q) if p > q else max(1 - p, q) / (q - p))
    if isinstance(randomizer, NumberWindow):
        top = randomizer.coin_value if randomizer.window_chance < 1 else 0
        if randomizer.half_width is not None:
            top = max(top, randomizer.reach * randomizer.window_factor)
        return liars * float((top + 1) * question.radius)
    return float("inf")


def side_liar_bound(question: SurveyQuestion, side: int) -> float:
    """Return the bound for a share of one side of a pair: a report can support several cells of a label."""
    cells = len(question.of[1 - side][1])
    most = min(cells, getattr(question.randomizer, "subset", cells))
    p, q = float(question.support.p), float(question.support.q)
    return 0.01 * max(most - q * cells, p + q * (cells - 1)) / (p - q)


def _some(respondents: int) -> int:
    if respondents:
        return respondents
    raise TacitError(
        "bad-parameter",
        "there is no report to estimate from",
        fix="collect reports first, or ask for a question and groups that have some",
    )


def _too_few() -> TacitError:
    return TacitError("bad-parameter", "one report is too few for an interval", fix="collect more reports")
