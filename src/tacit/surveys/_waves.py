"""The change between two waves of a repeated survey, person by person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Set
from tacit.mechanisms import Memo
from tacit.surveys._intervals import normal_quantile
from tacit.surveys._results import DifferenceRow, DifferenceTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.surveys._reports import Reports
    from tacit.surveys._survey import Survey


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
    asked, _ = before._question(question)  # noqa: SLF001 - of this room
    randomizer = asked.support
    p, q = float(randomizer.p), float(randomizer.q)
    one, other = _matched(before, after, asked.name)
    if len(one) < 2:
        raise TacitError(
            "bad-parameter", "fewer than 2 people answered both waves", fix="collect more reports"
        )
    z, rows = normal_quantile(confidence), []
    for place, answer in enumerate(asked.answers):
        now = randomizer.supported(other, place).astype(float)
        moved = (now - randomizer.supported(one, place)) / (p - q)
        value, half = float(moved.mean()), z * float(moved.std(ddof=1)) / np.sqrt(len(moved))
        rows.append(DifferenceRow("second wave", "first wave", answer, value, value - half, value + half))
    return DifferenceTable(
        asked.name, "wave", tuple(rows), confidence, "population", float(before.survey.epsilon)
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
    found = []
    for wave in waves:
        given = by_name(survey, wave)
        answered = {}
        for question in survey.questions:
            memo, truths = question.randomizer, question.encode({n: given[n] for n in question.columns})
            if not isinstance(memo, Memo):
                raise TypeError(f"{question.name} has no memo")
            kept = np.empty(len(truths), dtype=np.int64)
            for truth in np.unique(truths):
                own = permanent.setdefault(
                    (question.name, int(truth)), np.asarray(memo.permanent(np.full(len(truths), truth)))
                )
                if len(own) != len(truths):
                    raise bad_parameter("waves", "the same respondents in each", len(truths))
                kept[truths == truth] = own[truths == truth]
            answered[question.name] = AnsweredQuestion(np.arange(len(truths)), memo.report(kept)[:, None])
        numbers = tuple(map(str, range(len(answered[survey.questions[0].name].rows))))
        found.append(Reports(survey, len(numbers), answered, {}, numbers))
    return found


def _matched(before: Reports, after: Reports, name: str) -> tuple[Any, Any]:
    """Return the reports of those who answered both waves, in the same order."""
    places = []
    for wave in (before, after):
        numbers = wave.invitations or ()
        places.append({numbers[row]: at for at, row in enumerate(wave.answered[name].rows.tolist())})
    both = [number for number in places[0] if number in places[1]]
    first, second = ([own[number] for number in both] for own in places)
    return before.answered[name].reports[first], after.answered[name].reports[second]
