"""How many respondents a survey needs, and whether several questions are asked of everyone or one of each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from tacit.parameters import RealNumber
from tacit.surveys._intervals import normal_quantile, variance_of

if TYPE_CHECKING:
    from collections.abc import Sequence


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
    one = float(variance_of(p, q, 1, covers="population").at(at))
    return normal_quantile(confidence) * math.sqrt(one / respondents)


def respondents_needed(
    p: float, q: float, *, half_width: float, share: float | None = None, confidence: float = 0.95
) -> int:
    """Return how many respondents give an interval of this half-width: n = z^2 L(1-L)/((p-q)^2 t^2).

    Examples
    --------
    >>> e = math.exp(1)
    >>> respondents_needed(e / (e + 1), 1 / (e + 1), half_width=0.03)
    4997
    """
    RealNumber(instead=0.03).read("half_width", half_width)
    one = share_half_width(p, q, 1, share=share, confidence=confidence)
    return math.ceil((one / half_width) ** 2 * (1 - 1e-12))


class StrategyChoice(NamedTuple):
    """Whether to ask one question at random or to split epsilon over all, and why."""

    name: str
    why: str


def choose_strategy(one: Sequence[float], split: Sequence[float]) -> StrategyChoice:
    """Choose by predicted variance: of each question under both strategies, for the same respondents.

    ``one`` has the variance with the whole epsilon and one respondent in m, ``split`` with epsilon / m and
    everybody. Compared is the average ratio (geometric), so that no unit of measurement matters.

    Examples
    --------
    >>> choose_strategy([2.0, 2.0], [3.0, 3.0]).name
    'one'
    """
    logs = [math.log(a / b) for a, b in zip(one, split, strict=True)]
    ratio = math.exp(sum(logs) / len(logs) / 2)  # of standard errors
    if ratio <= 1:
        why = f"splitting epsilon over the questions would make intervals {1 / ratio:.2f} times as wide"
        return StrategyChoice("one", f"each respondent answers one question, picked at random: {why}")
    why = f"asking one at random would make intervals {ratio:.2f} times as wide"
    return StrategyChoice("split", f"each respondent answers every question with a part of epsilon: {why}")
