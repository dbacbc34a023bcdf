"""Several surveys together: reports with different epsilons, and the change between two waves.

Reports with different epsilons are estimated survey by survey and then weighted. The change between two waves
of a repeated survey is estimated person by person.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Set
from tacit.mechanisms import Memo
from tacit.report import percent
from tacit.surveys._estimates import (
    ShareVariance,
    liar_bound,
    mean,
    normal_quantile,
    score_interval,
    share_variance,
    shares,
)
from tacit.surveys._results import (
    DifferenceRow,
    DifferenceTable,
    MeanRow,
    MeanTable,
    ShareRow,
    ShareTable,
    cut,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.surveys._reports import Reports
    from tacit.surveys._survey import Survey
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
    for collected in reports:
        if not hasattr(collected, "_question"):
            raise bad_parameter(
                "reports", "the reports of each survey", type(collected).__name__,
                why="an estimate does not contain the reports that a pooled estimate is weighted by",
                fix=Code("tc.surveys.pool(first.collect(...), second.collect(...))"),
            )  # fmt: skip
    questions = [collected._question(question)[0] for collected in reports]  # noqa: SLF001 - of this room
    if (
        not questions
        or len(
            {
                (collected.kind, collected.answers, collected.bounds, collected.gives_shares)
                for collected in questions
            }
        )
        != 1
    ):
        raise TacitError(
            "other-survey",
            "the surveys do not ask the same question with the same answers",
            why="only estimates of the same shares or the same mean can be weighted",
            fix=Code("tc.surveys.pool(first, second, question=...)"),
        )
    counts = [
        len(collected.answered[own.name].rows) for collected, own in zip(reports, questions, strict=True)
    ]
    if min(counts) < 2:
        raise bad_parameter("reports", "at least 2 in each survey", min(counts))
    weights = _weights(questions, counts)
    parts = [
        _Part(own, collected.answered[own.name].reports, weight, float(collected.survey.epsilon))
        for own, collected, weight in zip(questions, reports, weights, strict=True)
    ]
    return _pooled_shares(parts, confidence) if questions[0].gives_shares else _pooled_mean(parts, confidence)


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
    estimates = [shares(p.question, p.reports, covers="population", confidence=confidence) for p in parts]
    total = sum(one.respondents for one in estimates)
    values = np.sum([part.weight * one.values for part, one in zip(parts, estimates, strict=True)], axis=0)
    raw = np.sum([one.respondents * one.raw for one in estimates], axis=0) / total
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
    epsilons = ", ".join(f"{part.epsilon:g}" for part in parts)
    weights = ", ".join(percent(part.weight, 0) for part in parts)
    mark = f"Pooled from surveys with epsilon {epsilons}, with weights {weights}."
    return max(part.epsilon for part in parts), liars, (mark,)


def _weights(questions: list[SurveyQuestion], counts: list[int]) -> list[float]:
    inverse = [n / own.variance() for n, own in zip(counts, questions, strict=True)]
    return [one / sum(inverse) for one in inverse]


def _joined(parts: list[_Part]) -> ShareVariance:
    """Return the variance of the weighted estimate as a function of the share."""
    total = ShareVariance(0.0, 0.0, 0.0)
    for part in parts:
        variance = share_variance(part.question, len(part.reports), covers="population")
        total = total.plus(variance.weighted(part.weight))
    return total


def change(
    before: Reports, after: Reports, *, question: str | None = None, confidence: float = 0.95
) -> DifferenceTable:
    """Estimate how the shares changed between two waves, from those who answered both.

    Guarantee: unbiased. Respondents are matched by their invitations, and the interval is that of the mean of
    their differences, so it covers coins and sampling. With memos, permanent coins cancel in unchanged
    answers, which makes it shorter than two surveys with fresh coins.

    Parameters
    ----------
    before, after
        The reports of two waves of the same survey, with invitations.
    question
        Its name; may be left out if there is only one.
    confidence
        How often an interval covers the change.

    Examples
    --------
    >>> import tacit as tc
    >>> poll = tc.survey("smoking", ["no", "yes"], epsilon=1)
    >>> first, second = (poll.randomize(["yes"] * 50 + ["no"] * 50, invitations=range(100)) for _ in range(2))
    >>> change(first, second)["second wave", "yes"].answer
    'yes'
    """
    if before.survey != after.survey or before.invitations is None or after.invitations is None:
        raise TacitError(
            "other-survey",
            "two waves need the same survey and invitations in both",
            why="a change is estimated person by person",
            fix=Code("survey.answer({...}, invitation=...)"),
        )
    question_asked, _ = before._question(question)  # noqa: SLF001 - of this room
    randomizer = question_asked.support
    p, q = float(randomizer.p), float(randomizer.q)
    earlier, other = _matched(before, after, question_asked.name)
    if len(earlier) < 2:
        raise TacitError(
            "bad-parameter", "fewer than 2 people answered both waves", fix="collect more reports"
        )
    z, rows = normal_quantile(confidence), []
    for index, answer in enumerate(question_asked.answers):
        now = randomizer.supported(other, index).astype(float)
        change_of_support = (now - randomizer.supported(earlier, index)) / (p - q)
        value, half = (
            float(change_of_support.mean()),
            z * float(change_of_support.std(ddof=1)) / np.sqrt(len(change_of_support)),
        )
        rows.append(DifferenceRow("second wave", "first wave", answer, value, value - half, value + half))
    return DifferenceTable(
        question_asked.name, "wave", tuple(rows), confidence, "population", float(before.survey.epsilon)
    )


def randomize_waves(survey: Survey, waves: Sequence[Any]) -> list[Reports]:
    """Answer a repeated survey for many respondents at once, to try it out: each keeps a permanent answer.

    Guarantee: that of the survey, for each respondent over all waves.

    Parameters
    ----------
    survey
        A survey that was declared with ``once``.
    waves
        For each wave the true answers of the same respondents in the same order, as in `Survey.randomize`.

    Examples
    --------
    >>> import tacit as tc
    >>> poll = tc.survey("smoking", ["no", "yes"], epsilon=2, once=1)
    >>> first, second = randomize_waves(poll, [["no"] * 100, ["no"] * 80 + ["yes"] * 20])
    >>> first.respondents, second.invitations == first.invitations
    (100, True)
    """
    from tacit.surveys._reports import AnsweredQuestion, Reports
    from tacit.surveys._true_answers import by_name

    if not survey.is_repeated:
        raise bad_parameter("survey", "one that is repeated", survey.name, fix=Set(epsilon=2, once=1))
    permanent: dict[tuple[str, int], NDArray[np.int64]] = {}
    collected = []
    for wave in waves:
        answers = by_name(survey, wave)
        answered = {}
        for question in survey.questions:
            memo, truths = question.randomizer, question.encode({n: answers[n] for n in question.columns})
            if not isinstance(memo, Memo):
                raise TypeError(f"{question.name} has no memo")
            memos = np.empty(len(truths), dtype=np.int64)
            for truth in np.unique(truths):
                memo_answers = permanent.setdefault(
                    (question.name, int(truth)), np.asarray(memo.permanent(np.full(len(truths), truth)))
                )
                if len(memo_answers) != len(truths):
                    raise bad_parameter("waves", "the same respondents in each", len(truths))
                memos[truths == truth] = memo_answers[truths == truth]
            answered[question.name] = AnsweredQuestion(np.arange(len(truths)), memo.report(memos)[:, None])
        numbers = tuple(map(str, range(len(answered[survey.questions[0].name].rows))))
        collected.append(Reports(survey, len(numbers), answered, {}, numbers))
    return collected


def _matched(before: Reports, after: Reports, name: str) -> tuple[Any, Any]:
    """Return the reports of those who answered both waves, in the same order."""
    places = []
    for wave in (before, after):
        numbers = wave.invitations or ()
        places.append({numbers[row]: at for at, row in enumerate(wave.answered[name].rows.tolist())})
    invitations = [number for number in places[0] if number in places[1]]
    earlier, second = ([own[number] for number in invitations] for own in places)
    return before.answered[name].reports[earlier], after.answered[name].reports[second]
