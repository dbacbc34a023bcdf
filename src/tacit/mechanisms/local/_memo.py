"""Memoised answers: a permanent coin for the answer, and a fresh one for every repetition of the survey."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tacit.errors import bad_parameter
from tacit.exact import Number, count
from tacit.fixes import Set
from tacit.mechanisms._mechanism import show
from tacit.mechanisms.local._local_randomizer import (
    UNIT_ODDS,
    LocalRandomizer,
    log_up,
    read_answers,
    read_odds,
    respond,
    several,
)
from tacit.mechanisms.local._subset_selection import SubsetSelection, read_list_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from tacit.accounting import Cost

_MAX_EXACT = 500  # reports for which the loss is computed; from there on the bound differs by nothing


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Memo(LocalRandomizer):
    """Randomize an answer once and keep the result; report that result through a second coin each time.

    Guarantee: all reports of one unchanged answer together have at most `epsilon`, the epsilon of the
    permanent coin, however many there are; one report has `once`; t reports have `loss_after(t)`. Every
    different answer of the same respondent has its own permanent coin. Between people whose answers change in
    the same reports, the epsilons of these coins add up. A memo does not hide that an answer changed
    (Erlingsson, Pihur, Korolova 2014): against somebody whose answer did not change, the loss grows with
    every report, and `loss_after` with `different` above 1 bounds it.

    Argument: the reports depend on the truth through the permanent answer alone, which is k-ary randomized
    response with odds A : B. One report is k-ary randomized response with odds A' : B, because the second
    coin is chosen so that both together have exactly these odds.

    Parameters
    ----------
    epsilon, odds
        One of the two: the promise for all reports of an unchanged answer, or A exactly, with B = 2^32.
    once, once_odds
        One of the two: the promise for one report, below `epsilon`, or A' exactly.
    size
        The number of answers; 2 is yes or no.

    Examples
    --------
    >>> import tacit as tc
    >>> memo = tc.mechanisms.Memo(epsilon=2, once=1, size=2)
    >>> [round(memo.loss_after(t), 4) for t in (1, 2, 5)]
    [1.0, 1.6417, 1.9937]
    >>> kept = memo.permanent(1)  # stays on the respondent's device
    >>> memo.report(kept) in (0, 1)
    True
    """

    size: int
    odds: int
    once_odds: int
    epsilon: Fraction = field(compare=False)
    asked: Fraction = field(compare=False)
    once: Fraction = field(compare=False)

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        once: Number | None = None,
        size: int = 2,
        odds: int | None = None,
        once_odds: int | None = None,
    ) -> None:
        permanent, repeated = read_odds(epsilon, odds), read_odds(once, once_odds)
        if repeated[0] >= permanent[0]:
            raise bad_parameter(
                "once",
                "below epsilon",
                float(repeated[2]),
                why="a report cannot say more about the answer than the permanent randomized answer does",
                fix=Set(epsilon=2, once=1),
            )
        for name, value in (
            ("size", read_list_size(size)),
            ("odds", permanent[0]),
            ("once_odds", repeated[0]),
            ("epsilon", permanent[1]),
            ("asked", permanent[2]),
            ("once", repeated[1]),
        ):
            object.__setattr__(self, name, value)

    def to_json(self) -> dict[str, Any]:
        """Return the law and its parameters, exactly: equal documents mean equal chances."""
        return {
            "mechanism": "memo",
            "size": self.size,
            "odds": str(self.odds),
            "once_odds": str(self.once_odds),
            "cost": self.cost.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Memo:
        """Rebuild the memo that `to_json` describes."""
        odds, once_odds = int(document["odds"]), int(document["once_odds"])
        return cls(odds=odds, once_odds=once_odds, size=document["size"])

    def describe(self) -> str:
        """Return a short phrase for people."""
        return f"memo, epsilon {show(self.epsilon)} in all and {show(self.once)} for one report"

    @property
    def randomizer(self) -> SubsetSelection:
        """The law of a single report: the collector estimates with it as if the coin were fresh."""
        return SubsetSelection(odds=self.once_odds, size=self.size, subset=1)

    @property
    def once_cost(self) -> Cost:
        """What one report reveals, if it is the only one."""
        return self.randomizer.cost

    @property
    def kept(self) -> Fraction:
        """The chance that the permanent answer is the true one."""
        return _chances(self.odds, self.once_odds, self.size)[0]

    @property
    def repeated(self) -> Fraction:
        """The chance that a report is the permanent answer.

        With P = `kept` and Q = (1 - P)/(size - 1) a report is true with chance Q + r (P - Q). This is set to
        A'/(A' + (size - 1) B), the chance of one coin with the odds of one report.
        """
        return _chances(self.odds, self.once_odds, self.size)[1]

    def permanent(self, truth: object) -> Any:
        """Draw the permanent answer, once for each different true answer; it stays on the device."""
        answers = respond(read_answers(truth, self.size), self.size, self.kept)
        return answers if several(truth) else int(answers[0])

    def report(self, permanent: object) -> Any:
        """Draw a report from the permanent answer, afresh for every repetition."""
        reports = respond(read_answers(permanent, self.size), self.size, self.repeated)
        return reports if several(permanent) else int(reports[0])

    def release(self, value: object) -> Any:
        """Draw a permanent answer and one report of it; return the report."""
        return self.report(self.permanent(value))

    def release_many(self, value: object, count: int) -> NDArray[np.int64]:
        """Return `count` independent first reports of one answer: for auditors only."""
        import numpy as np

        return np.asarray(self.release(np.full(count, read_answers(value, self.size)[0])))

    def probability(self, report: object, *, truth: int) -> Fraction:
        """Return P(one report given truth), exactly."""
        return self.randomizer.probability([report], truth=truth)

    def loss_after(self, reports: int, *, different: int = 1) -> float:
        """Return what this many reports give away: the largest loss between two answers, rounded up.

        Parameters
        ----------
        reports
            The number of reports of one respondent.
        different
            How many different true answers lie behind them at most. For more than one, the bound covers any
            two sequences of answers, also one that changes against one that does not. It grows with every
            report, because reports show that an answer changed.
        """
        t, values = count("reports", reports), count("different", different, zero=False)
        if min(t, values) > 1:
            return self._loss_of_changes(t, min(t, values))
        if t == 0:
            return 0.0
        if t > _MAX_EXACT:
            return float(self.epsilon)
        same, other = self.repeated, (1 - self.repeated) / (self.size - 1)
        odds = (same / other) ** t  # all reports name one answer: no other sequence has a larger loss
        truth, lie = self.kept, (1 - self.kept) / (self.size - 1)
        ratio = (truth * odds + (1 - truth)) / (truth + lie * (odds + self.size - 2))
        return float(min(self.epsilon, log_up(ratio)))

    def _loss_of_changes(self, t: int, values: int) -> float:
        """Bound the loss between two sequences of t answers, each with at most so many different ones.

        A sequence of reports has at most the probability r^t P + s^t (1 - P), and at least s^t times the
        larger of 1 and K^values rho^(t/size), with K = size (P Q^(size-1))^(1/size) and rho = r/s.
        """
        truth, lie = float(self.kept), float((1 - self.kept) / (self.size - 1))
        step = float(log_up(self.repeated * (self.size - 1) / (1 - self.repeated)))
        bound = t * step + math.log(truth + (1 - truth) * math.exp(-t * step))
        part = math.log(self.size) + (math.log(truth) + (self.size - 1) * math.log(lie)) / self.size
        return (bound - max(0.0, values * part + t * step / self.size)) * (1 + 1e-9)

    @property
    def change_shown(self) -> float:
        """The chance that a changed answer changes the permanent answer: a memo does not hide changes."""
        truth, lie = self.kept, (1 - self.kept) / (self.size - 1)
        return float(1 - 2 * truth * lie - (self.size - 2) * lie**2)

    @property
    def worst_pair(self) -> tuple[int, int]:
        """Any two different answers."""
        return 0, self.size - 1

    def __repr__(self) -> str:
        return f"Memo(epsilon={show(self.epsilon)}, once={show(self.once)}, {self.size:,} answers)"


@lru_cache(maxsize=1024)
def _chances(odds: int, once_odds: int, size: int) -> tuple[Fraction, Fraction]:
    """Return the chance that the permanent answer is true, and that a report is the permanent answer."""
    truth, once = (Fraction(one, one + (size - 1) * UNIT_ODDS) for one in (odds, once_odds))
    other = (1 - truth) / (size - 1)
    return truth, (once - other) / (truth - other)
