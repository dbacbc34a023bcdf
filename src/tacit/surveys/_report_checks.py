"""Whether reports can come from the randomizer at all: true answers in place of reports give odd figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.mechanisms import Design, NumberWindow
from tacit.surveys._estimates import shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.surveys._estimates import EstimatedShares
    from tacit.surveys._survey_questions import SurveyQuestion

_CHANCE = 1e-3  # of a caution about a table of shares whose reports are right, at most
_FAR = 6.0  # standard errors
_FALSE = (
    "Caution: these reports do not fit the randomizer, so the estimates and intervals are wrong. "
    "Check that the file holds reports, and not true answers."
)


def caution(question: SurveyQuestion, reports: NDArray[Any], found: EstimatedShares | None = None) -> str:
    """Return a sentence if the reports cannot have come from the randomizer, whatever the true answers.

    It depends on public facts and on reports that are private already. For a list, the rate of each answer
    lies between q and p up to the coins: an exact binomial test of both ends, at 1 in 1,000 for all answers
    together. For a number, the reports vary at least as much as the randomizer alone lets them vary, and
    their mean lies between the bounds: six standard errors. ``found`` saves counting the answers again.
    """
    if not len(reports):
        return ""
    if isinstance(question.law, NumberWindow):
        return "" if _window_fits(question.law, question.law.unbiased(reports)) else _FALSE
    found = found or shares(question, reports, covers="respondents", confidence=0.95)
    return "" if _shares_fit(question, found) else _FALSE


def _shares_fit(question: SurveyQuestion, found: EstimatedShares) -> bool:
    from scipy.special import bdtr, bdtrc  # the tails of the binomial law

    law = question.law if isinstance(question.law, Design) else question.support
    low, high = sorted((float(law.p), float(law.q)))
    raw, draws = found.raw, found.respondents
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
    least = window.variance(0)
    least += min(window.variance(1) - least, 0.0) * min(mean**2, 1.0)
    top = float(window.coin_value) if window.window_chance < 1 else 0.0
    if window.half_width is not None:
        top = max(top, float(window.reach * window.window_factor))
    widest = (top + min(abs(mean), 1.0)) ** 2
    narrow = float(scores.var()) < least - _FAR * np.sqrt(widest * least / n)
    return not narrow and abs(mean) <= 1 + _FAR * top / np.sqrt(n)
