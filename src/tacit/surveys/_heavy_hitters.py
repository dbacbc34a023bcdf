"""Heavy hitters of a survey: the answers of a long public list that stand out from the coins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.core import needs
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Say, Set
from tacit.mechanisms import SupportRandomizer
from tacit.parameters import RealNumber
from tacit.report import Report, Reportable, ReportTable
from tacit.surveys._intervals import score_interval, variance_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_MOST_SHOWN = 40


class HeavyRow(NamedTuple):
    """One answer that stands out, with its estimated share and an interval."""

    answer: Any
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, repr=False)
class HeavyHitters(Reportable):
    """The answers that stand out, the largest share first.

    Guarantee
    ---------
    With at least the stated confidence, every reported answer was given by at least one respondent. All
    intervals together cover their shares with the stated confidence, although the answers were picked for
    standing out (the intervals allow for all candidates, not only for those that are shown).

    Parameters
    ----------
    rows
        The answers with shares and intervals.
    confidence
        How sure both statements are.
    candidates
        How many answers could have been reported.
    respondents
        How many reports the shares are estimated from.
    least
        An answer is reported if its estimated share is at least this.
    epsilon
        What the survey promised its respondents.
    """

    rows: tuple[HeavyRow, ...]
    confidence: float
    candidates: int
    respondents: int
    least: float
    epsilon: float

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[HeavyRow]:
        return iter(self.rows)

    @property
    def answers(self) -> list[Any]:
        """The answers alone."""
        return [row.answer for row in self.rows]

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame (extra ``pandas``)."""
        needs("to_pandas", "pandas", "tacit[pandas]")
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(HeavyRow._fields))

    def report(self) -> Report:
        """Return the table, and what it does not show."""
        sure = f"{self.confidence * 100:g} %"
        shown = tuple(
            (str(row.answer), _percent(row.share), f"{_percent(row.low)} to {_percent(row.high)}")
            for row in self.rows[:_MOST_SHOWN]
        )
        more = len(self.rows) - _MOST_SHOWN
        first = (
            f"Of {self.candidates:,} candidates. Estimated shares below {_percent(self.least)} are not "
            "shown: the coins alone can produce them."
        )
        notes = (
            first,
            f"With {sure}, each answer that is shown was given by somebody, and all intervals hold together.",
            *((f"{more:,} more answers.",) if more > 0 else ()),
        )
        title = f"answers that stand out, {self.respondents:,} reports, epsilon {self.epsilon:g}"
        return Report(title, (), (ReportTable("", ("answer", "share", f"{sure} interval"), shown),), notes)


def find_heavy(
    reports: object,
    randomizer: SupportRandomizer,
    confidence: float = 0.95,
    *,
    labels: Sequence[Any] | None = None,
) -> HeavyHitters:
    """Return the answers of a public list that stand out from the coins.

    Guarantee: as `HeavyHitters` states. An answer that nobody gave is supported by each report independently
    with probability q, so the number of reports that support it is binomial, and an answer is reported if
    this law reaches its number with probability at most (1 - confidence) / size.

    Parameters
    ----------
    reports
        The reports of all respondents, as the randomizer drew them.
    randomizer
        `LinearHashing` (lists of up to millions: one transform for the whole list) or `SubsetSelection`.
    confidence
        How sure the statements about all answers are together.
    labels
        The answers in their order; by default their places 0, 1, ... in the list.

    Examples
    --------
    >>> import numpy as np, tacit as tc
    >>> from tacit.surveys import find_heavy
    >>> drug = tc.mechanisms.LinearHashing(epsilon=4, size=50_000)
    >>> truths = np.repeat([7, 31_415, 9], [3000, 2000, 5])
    >>> find_heavy(drug.release(truths), drug).answers[:2]     # by chance a third may follow
    [7, 31415]
    """
    if not isinstance(randomizer, SupportRandomizer):
        raise bad_parameter(
            "randomizer",
            "one for a list of answers",
            type(randomizer).__name__,
            fix=Say("pass the LinearHashing or SubsetSelection that drew the reports"),
        )
    if labels is not None and len(labels) != randomizer.size:
        raise bad_parameter(
            "labels", f"one for each of the {randomizer.size} answers", len(labels), fix=Set(labels=None)
        )
    read = randomizer.read_reports(reports)
    counts = randomizer.supports(read)
    places = np.flatnonzero(counts >= least_support(len(read), randomizer, confidence, randomizer.size))
    answers = places.tolist() if labels is None else [labels[place] for place in places.tolist()]
    return heavy_rows(answers, counts[places], len(read), randomizer, confidence, randomizer.size)


def heavy_rows(
    answers: list[Any],
    counts: NDArray[np.int64],
    respondents: int,
    randomizer: SupportRandomizer,
    confidence: float,
    candidates: int,
) -> HeavyHitters:
    """Return the answers with their shares and with intervals that hold for all candidates together."""
    p, q = float(randomizer.p), float(randomizer.q)
    shares = randomizer.shares(counts, respondents)
    variance = variance_of(p, q, respondents, covers="population")
    low, high = score_interval(shares, variance, 1 - (1 - confidence) / candidates)
    order = np.argsort(-shares, kind="stable")
    cut = least_support(respondents, randomizer, confidence, candidates)
    rows = tuple(
        HeavyRow(answers[i], float(shares[i]), max(0.0, float(low[i])), min(1.0, float(high[i])))
        for i in order.tolist()
    )
    least = float(randomizer.shares([cut], respondents)[0])
    return HeavyHitters(rows, confidence, candidates, respondents, least, float(randomizer.epsilon))


def least_support(respondents: int, randomizer: SupportRandomizer, confidence: float, candidates: int) -> int:
    """Return the smallest k with P(Bin(respondents, q) >= k) at most (1 - confidence) / candidates."""
    from scipy.special import bdtrc

    RealNumber(above=0, below=1, instead=0.95).read("confidence", confidence)
    if respondents == 0:
        raise TacitError("bad-parameter", "there is no report to search", fix=Say("collect reports first"))
    allowed, q = (1 - confidence) / candidates * (1 - 1e-6), float(randomizer.q)
    low, high = 0, respondents + 1  # nobody can have more than all reports
    while high - low > 1:
        middle = (low + high) // 2
        reached = float(bdtrc(middle - 1, respondents, q)) <= allowed
        low, high = (low, middle) if reached else (middle, high)
    return high


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
