"""Reports with different epsilons, estimated together: each survey apart, then weighted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code
from tacit.report import percent
from tacit.surveys._estimates import liar_bound, mean, share_variance, shares
from tacit.surveys._intervals import ShareVariance, normal_quantile, score_interval
from tacit.surveys._results import MeanRow, MeanTable, ShareRow, ShareTable, cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.surveys._reports import Reports
    from tacit.surveys._survey_questions import SurveyQuestion


def pool(*reports: Reports, question: str | None = None, confidence: float = 0.95) -> ShareTable | MeanTable:
    """Estimate one question from surveys that differ in epsilon, such as one in which people chose their own.

    Guarantee: unbiased for the population of which the respondents of every survey are a random sample. Each
    survey is estimated apart and weighted by one over its predicted variance. The weights follow from the
    numbers of respondents and the randomizers alone, so they do not bias the estimate.

    Parameters
    ----------
    reports
        The reports of each survey. The question and its answers must be the same in all.
    question
        Its name; may be left out if each survey has one question.
    confidence
        How often an interval covers the share or mean.

    Examples
    --------
    >>> import tacit as tc
    >>> careful, open_ = (tc.survey("smoking", ["no", "yes"], epsilon=e) for e in (0.5, 2))
    >>> table = pool(careful.randomize(["yes"] * 500), open_.randomize(["yes"] * 500))
    >>> table["yes"].respondents
    1000
    """
    for one in reports:
        if not hasattr(one, "_question"):
            raise bad_parameter(
                "reports", "the reports of each survey", type(one).__name__,
                why="an estimate does not contain the reports that a pooled estimate is weighted by",
                fix=Code("tc.surveys.pool(first.collect(...), second.collect(...))"),
            )  # fmt: skip
    asked = [one._question(question)[0] for one in reports]  # noqa: SLF001 - of this room
    if not asked or len({(one.kind, one.answers, one.bounds, one.gives_shares) for one in asked}) != 1:
        raise TacitError(
            "other-survey",
            "the surveys do not ask the same question with the same answers",
            why="only estimates of the same shares or the same mean can be weighted",
            fix=Code("tc.surveys.pool(first, second, question=...)"),
        )
    counts = [len(one.answered[own.name].rows) for one, own in zip(reports, asked, strict=True)]
    if min(counts) < 2:
        raise bad_parameter("reports", "at least 2 in each survey", min(counts))
    weights = _weights(asked, counts)
    parts = [
        _Part(own, one.answered[own.name].reports, weight, float(one.survey.epsilon))
        for own, one, weight in zip(asked, reports, weights, strict=True)
    ]
    return _pooled_shares(parts, confidence) if asked[0].gives_shares else _pooled_mean(parts, confidence)


class _Part(NamedTuple):
    """One survey's part in an estimate."""

    question: SurveyQuestion
    reports: NDArray[Any]
    weight: float
    epsilon: float


def _pooled_mean(parts: list[_Part], confidence: float) -> MeanTable:
    each = [mean(part.question, part.reports, covers="population") for part in parts]
    value = sum(part.weight * one.value for part, one in zip(parts, each, strict=True))
    square = sum((part.weight * one.error) ** 2 for part, one in zip(parts, each, strict=True))
    half = normal_quantile(confidence) * math.sqrt(square)
    row = MeanRow("", value, value - half, value + half, sum(len(part.reports) for part in parts))
    return MeanTable(parts[0].question.name, "", (row,), confidence, "population", *_about(parts))


def _pooled_shares(parts: list[_Part], confidence: float) -> ShareTable:
    found = [shares(p.question, p.reports, covers="population", confidence=confidence) for p in parts]
    total = sum(one.respondents for one in found)
    values = np.sum([part.weight * one.values for part, one in zip(parts, found, strict=True)], axis=0)
    raw = np.sum([one.respondents * one.raw for one in found], axis=0) / total
    low, high = score_interval(values, _joined(parts), confidence)
    rows = tuple(
        ShareRow("", label, float(value), cut(least), cut(most), float(rate), total)
        for label, value, least, most, rate in zip(
            parts[0].question.answers, values, low, high, raw, strict=True
        )
    )
    return ShareTable(parts[0].question.name, "", rows, confidence, "population", *_about(parts))


def _about(parts: list[_Part]) -> tuple[float, float, tuple[str, ...]]:
    """Return the largest epsilon, how far 1 % liars in every survey move the estimate, and the weights."""
    liars = sum(part.weight * liar_bound(part.question) for part in parts)
    listed = ", ".join(f"{part.epsilon:g}" for part in parts)
    weights = ", ".join(percent(part.weight, 0) for part in parts)
    mark = f"Pooled from surveys with epsilon {listed}, with weights {weights}."
    return max(part.epsilon for part in parts), liars, (mark,)


def _weights(asked: list[SurveyQuestion], counts: list[int]) -> list[float]:
    inverse = [n / own.variance() for n, own in zip(counts, asked, strict=True)]
    return [one / sum(inverse) for one in inverse]


def _joined(parts: list[_Part]) -> ShareVariance:
    """Return the variance of the weighted estimate as a function of the share."""
    total = ShareVariance(0.0, 0.0, 0.0)
    for part in parts:
        own = share_variance(part.question, len(part.reports), covers="population")
        total = total.plus(own.weighted(part.weight))
    return total
