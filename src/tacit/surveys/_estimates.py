"""Unbiased estimates from reports, with score intervals: shares of a list or of one side of a pair, means.

The variance of an unbiased estimate is a quadratic function of the true share, ``a + b f + c f**2``. The
interval holds every share f with ``(estimate - f)**2 <= z**2 (a + b f + c f**2)``, so it uses the variance at
f and not at the estimate. It covers the randomizer, and where asked the sampling as well. For one group of
respondents from a population this is Wilson's interval for the rate of reports, mapped to the share; the
argument is in docs/proofs/surveys.md.

Norm-sub gives shares that are at least zero and add up to one, at the price of a bias. True answers in place
of reports give odd figures, which a check finds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Set
from tacit.mechanisms import Design, NumberWindow, SupportRandomizer
from tacit.parameters import Choice, RealNumber

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tacit.surveys._survey_questions import SurveyQuestion

    Floats = NDArray[np.float64]


#: What an interval covers: a population from which the respondents are a sample, or these respondents only.
Covers: TypeAlias = Literal["population", "respondents"]
#: What is said beside shares that were adjusted.
BIAS = (
    "norm-sub: the shares were shifted to be at least 0 and to add up to 1; this makes small shares too "
    "large and the estimates biased, and the intervals are those of the unbiased estimates"
)
_CHANCE = 1e-3  # of a caution about a table of shares whose reports are right, at most
_FAR = 6.0  # standard errors
_FALSE = (
    "Caution: these reports do not fit the randomizer, so the estimates and intervals are wrong. "
    "Check that the file holds reports, and not true answers."
)


class ShareVariance(NamedTuple):
    """The variance of an estimated share as a function of the true share f: a + b f + c f**2."""

    a: float
    b: float
    c: float

    def at(self, share: ArrayLike) -> NDArray[np.float64]:
        """Return the variance at a true share."""
        f = np.asarray(share, dtype=float)
        return self.a + self.b * f + self.c * f**2

    def weighted(self, weight: float) -> ShareVariance:
        """Return the variance of ``weight`` times the estimate."""
        return ShareVariance(*(weight**2 * part for part in self))

    def plus(self, other: ShareVariance) -> ShareVariance:
        """Return the variance of the sum with an independent estimate of the same share."""
        return ShareVariance(self.a + other.a, self.b + other.b, self.c + other.c)


def variance_of(p: float, q: float, respondents: int, *, covers: Covers, draws: int = 1) -> ShareVariance:
    """Return the variance of (N/n - q)/(p - q), where N of n reports support a value.

    Where each respondent tosses the coin ``draws`` times (Kuk's design), N is the average over the tosses.

    Guarantee: exact. For a population L(1-L)/(n(p-q)^2) with L = q + f(p-q); for these respondents
    [f p(1-p) + (1-f) q(1-q)]/(n(p-q)^2). The two differ by f(1-f)/n.

    Examples
    --------
    >>> both = [variance_of(0.75, 0.25, 100, covers=c).at(0.3) for c in ("population", "respondents")]
    >>> round(float(both[0] - both[1]), 6)
    0.0021
    """
    scale = draws * respondents * (p - q) ** 2
    a, b = q * (1 - q) / scale, (p * (1 - p) - q * (1 - q)) / scale
    if covers == "respondents":
        return ShareVariance(a, b, 0.0)
    return ShareVariance(a, b + 1 / respondents, -1 / respondents)


def score_interval(
    estimate: ArrayLike, variance: ShareVariance, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both ends: the shares f with (estimate - f)^2 <= z^2 variance(f). They are not cut to [0, 1].

    Examples
    --------
    >>> low, high = score_interval(0.324, variance_of(0.75, 0.25, 1000, covers="population"), 0.95)
    >>> round(float(low), 4), round(float(high), 4)
    (0.2638, 0.3856)
    """
    f = np.asarray(estimate, dtype=float)
    z2 = normal_quantile(confidence) ** 2
    lead = 1 - z2 * variance.c
    middle = f + z2 * variance.b / 2
    room = middle**2 - lead * (f**2 - z2 * variance.a)
    # far outside [0, 1] no share fits the estimate: the variance at the nearest share takes its place
    deviation = np.sqrt(z2 * np.maximum(variance.at(np.clip(f, 0, 1)), 0))
    root = np.sqrt(np.maximum(room, 0))
    low, high = (middle - root) / lead, (middle + root) / lead
    return np.where(room < 0, f - deviation, low), np.where(room < 0, f + deviation, high)


def normal_quantile(confidence: float) -> float:
    """Return how many standard deviations hold a normal number with this probability."""
    from scipy.special import ndtri

    RealNumber(above=0, below=1, instead=0.95).read("confidence", confidence)
    return float(-ndtri((1 - confidence) / 2))


def read_covers(of: str) -> Covers:
    """Read what an interval is to cover, or refuse."""
    chosen = Choice(("population", "respondents")).read("of", of)
    return "population" if chosen == "population" else "respondents"


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
    for index, label in enumerate(of_label):
        hits = np.zeros(n)
        for cell in label:
            hits += randomizer.supported(reports, int(cell))
        score = (hits - q * len(label)) / (p - q)
        values[index], raw[index] = score.mean(), (hits > 0).mean()
        errors[index] = _error(score, covers, spread=values[index] * (1 - values[index]))
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

    def others(label: int, supported: int) -> tuple[float, float]:
        """Return the mean and variance of how many cells of a label are named, besides the true one."""
        if d is None:
            return label * q, label * q * (1 - q)
        part, rest = label / (cells - 1), max(cells - 2, 1)
        return supported * part, supported * part * (1 - part) * (cells - 1 - supported) / rest

    def variance(label: int, share: int) -> float:
        """Mix reports with the true cell and those without; ``share`` is 1 if the true cell has the label."""
        (high, spread), (low, other) = others(label, (d or 1) - 1), others(label, d or 1)
        gap = share + high - low
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
    smallest = window.variance(0)
    slope = window.variance(1) - smallest
    square = min(float(values.mean()) ** 2, 1.0)
    if slope > -0.5:
        square = min(max((float((values**2).mean()) - smallest) / (slope + 1), square), 1.0)
    return smallest + slope * square


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
    for index, level in enumerate(levels()):
        scores += level * (randomizer.supported(reports, index) - q) / (p - q)
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
    max_cells = min(cells, getattr(question.randomizer, "subset", cells))
    p, q = float(question.support.p), float(question.support.q)
    return 0.01 * max(max_cells - q * cells, p + q * (cells - 1)) / (p - q)


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


def norm_sub(shares: ArrayLike) -> NDArray[np.float64]:
    """Return the nearest shares (least squares) that are non-negative and add up to one.

    A constant is added to all shares, negative ones become zero, until the sum is one (Wang et al. 2020). The
    result is biased: rare answers look more common than they are.

    Examples
    --------
    >>> norm_sub([0.7, 0.5, -0.1]).round(6).tolist()
    [0.6, 0.4, 0.0]
    """
    f = np.atleast_1d(np.asarray(shares, dtype=float))
    if not f.size or not np.isfinite(f).all():
        raise bad_parameter("shares", "finite numbers", "others", fix=Set(shares=[0.7, 0.5, -0.1]))
    ordered = np.sort(f)[::-1]
    shifts = (1 - np.cumsum(ordered)) / np.arange(1, len(f) + 1)
    last_positive = np.nonzero(ordered + shifts > 0)[0][-1]
    return np.asarray(np.maximum(f + shifts[last_positive], 0.0))


def caution(question: SurveyQuestion, reports: NDArray[Any], estimate: EstimatedShares | None = None) -> str:
    """Return a sentence if the reports cannot have come from the randomizer, whatever the true answers.

    It depends on public facts and on reports that are private already. For a list, the rate of each answer
    lies between q and p up to the coins: an exact binomial test of both ends, at 1 in 1,000 for all answers
    together. For a number, the reports vary at least as much as the randomizer alone lets them vary, and
    their mean lies between the bounds: six standard errors. ``estimate`` saves counting the answers again.
    """
    if not len(reports):
        return ""
    if isinstance(question.law, NumberWindow):
        return "" if _window_fits(question.law, question.law.unbiased(reports)) else _FALSE
    estimate = estimate or shares(question, reports, covers="respondents", confidence=0.95)
    return "" if _shares_fit(question, estimate) else _FALSE


def _shares_fit(question: SurveyQuestion, estimate: EstimatedShares) -> bool:
    from scipy.special import bdtr, bdtrc  # the tails of the binomial law

    law = question.law if isinstance(question.law, Design) else question.support
    low, high = sorted((float(law.p), float(law.q)))
    raw, draws = estimate.raw, estimate.respondents
    if isinstance(law, Design):
        raw, draws = raw[1:], draws * law.draws
    hits = np.rint(raw * draws)
    tails = np.minimum(bdtr(hits, draws, low), bdtrc(hits - 1, draws, high))
    return bool(tails.min() >= _CHANCE / len(question.answers))


def _window_fits(window: NumberWindow, scores: NDArray[np.float64]) -> bool:
    """Compare the spread of the scores with the least that the coins give, and their mean with the bounds.

    If x is a true number, a score has the mean x and the variance a + c x^2, c >= -1, so scores vary by at
    least a + min(c, 0) m^2 for a mean m. Squares of deviations lie in [0, B] and have at least this mean v,
    so P(their average <= v - t) <= exp(-n t^2 / (2 B v)), which is exp(-18) for six times sqrt(B v / n).
    """
    n, mean = len(scores), float(scores.mean())
    smallest = window.variance(0)
    smallest += min(window.variance(1) - smallest, 0.0) * min(mean**2, 1.0)
    top = float(window.coin_value) if window.window_chance < 1 else 0.0
    if window.half_width is not None:
        top = max(top, float(window.reach * window.window_factor))
    widest = (top + min(abs(mean), 1.0)) ** 2
    narrow = float(scores.var()) < smallest - _FAR * np.sqrt(widest * smallest / n)
    return not narrow and abs(mean) <= 1 + _FAR * top / np.sqrt(n)
