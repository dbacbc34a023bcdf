"""Subset selection: a report names several answers, the true one more often than any other.

The random subsets are exactly uniform, and drawn for many rows at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.mechanisms._mechanism import show
from tacit.mechanisms.local._local_randomizer import (
    UNIT_ODDS,
    SupportRandomizer,
    bad_report,
    read_answers,
    read_odds,
    respond,
    several,
)
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.exact import Number


_CELLS = 1 << 20  # of a table of rows and answers: small enough for the cache
_BLOCK = 1 << 21
_MAX_ANSWERS = 2**31 - 1


def subsets(truths: NDArray[np.int64], size: int, subset: int, *, with_truth: bool) -> NDArray[np.int32]:
    """Draw `subset` answers for each row, with its truth or without; the others are uniform. Rows are sorted.

    The others are drawn as 0 .. size - 2 and then relabelled: the label of the truth stands for the last
    answer. This is one-to-one onto the answers other than the truth.
    """
    out = np.empty((truths.size, subset), np.int32)
    rest = subset - with_truth
    sparse = rest * (rest - 1) <= size
    step = max(1, _CELLS // (rest + 1 if sparse else size))
    for start in range(0, truths.size, step):
        part, truth = out[start : start + step], truths[start : start + step, None].astype(np.int32)
        others = part[:, :rest]
        if rest:
            (_by_rejection if sparse else _by_floyd)(others, size - 1)
            np.copyto(others, size - 1, where=others == truth)
        if with_truth:
            part[:, rest:] = truth
        part.sort(axis=1)
    return out


def _by_rejection(out: NDArray[np.int32], below: int) -> None:
    """Draw with replacement; rows with a repeated answer are drawn again, so that all sets are alike."""
    rows, subset = len(out), out.shape[1]
    pending = np.arange(rows)
    while pending.size:
        draws = noise.uniform_below(below, (pending.size, subset)).astype(np.int32)
        draws.sort(axis=1)
        out[pending] = draws
        pending = pending[(draws[:, 1:] == draws[:, :-1]).any(axis=1)]


def _by_floyd(out: NDArray[np.int32], below: int) -> None:
    """Draw without replacement by Floyd's algorithm (Bentley and Floyd 1987), on a table of members.

    A step draws one of 0 .. top; where the draw is already a member, top joins instead, which no earlier step
    could reach. After each step all sets of that size within 0 .. top are alike.
    """
    rows, subset = len(out), out.shape[1]
    member = np.zeros(rows * below, np.bool_)
    base = np.arange(rows) * below
    for column, top in enumerate(range(below - subset, below)):
        draws = noise.uniform_below(top + 1, rows)
        cell = base + draws
        np.copyto(draws, top, where=member.take(cell))
        np.add(base, draws, out=cell)
        member[cell] = True
        out[:, column] = draws


@dataclass(frozen=True, init=False, repr=False, slots=True)
class SubsetSelection(SupportRandomizer):
    """Report `subset` of the `size` answers, with odds A : B for the sets that hold the true one.

    Guarantee: epsilon = ln(A/B), pure, for each respondent, whoever collects the reports (Ye and Barg 2018;
    Wang et al. 2016). `subset=1` is k-ary randomized response, and `size=2` is Warner's coin.

    Argument: every set of `subset` answers has probability proportional to A if it holds the truth and to B
    if not, and the sum of the weights does not depend on the truth. So the ratio is A/B, 1 or B/A.

    Parameters
    ----------
    epsilon, odds
        One of the two: the promise, or A exactly, with B = 2^32. From epsilon, A is the whole number at or
        just below B exp(epsilon).
    size
        The number of answers; the answers are the places 0 .. size - 1.
    subset
        How many answers a report names; by default the number with the smallest variance.

    Examples
    --------
    >>> import tacit as tc
    >>> states = tc.mechanisms.SubsetSelection(epsilon=1, size=51)
    >>> states.subset, round(float(states.p), 4), round(float(states.q), 4)
    (13, 0.4818, 0.2504)
    >>> reports = states.release([4] * 5000)  # 5,000 people from the fifth state
    >>> reports.shape, int(states.supports(reports).argmax())
    ((5000, 13), 4)
    """

    size: int
    subset: int
    odds: int
    epsilon: Fraction = field(compare=False)
    asked: Fraction = field(compare=False)

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        size: int,
        subset: int | None = None,
        odds: int | None = None,
    ) -> None:
        favour, actual, request = read_odds(epsilon, odds)
        answers = read_list_size(size)
        why = f"there are {answers:,} answers, and a set of all of them says nothing"
        chosen = (
            _best_subset(favour, answers)
            if subset is None
            else Integer(1, answers - 1, why, instead=1).read("subset", subset)
        )
        for name, value in (
            ("size", answers),
            ("subset", chosen),
            ("odds", favour),
            ("epsilon", actual),
            ("asked", request),
        ):
            object.__setattr__(self, name, value)

    @property
    def cost(self) -> Cost:
        """What one report reveals about its respondent, whatever two answers are compared (replace)."""
        from tacit.accounting import Cost

        if self.subset > 1:
            return Cost.pure(self.epsilon, adjacency="replace")
        if self.size == 2:
            return Cost.randomized_response(self.epsilon, adjacency="replace")
        return Cost.randomized_response(self.epsilon, categories=self.size, adjacency="replace")

    def to_json(self) -> dict[str, Any]:
        """Return the law and its parameters, exactly: equal documents mean equal chances."""
        return {
            "mechanism": "subset-selection",
            "size": self.size,
            "subset": self.subset,
            "odds": str(self.odds),
            "cost": self.cost.to_json(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> SubsetSelection:
        """Rebuild the randomizer that `to_json` describes."""
        return cls(odds=int(document["odds"]), size=document["size"], subset=document["subset"])

    def describe(self) -> str:
        """Return a short phrase for people."""
        if self.subset == 1:
            return f"randomized response among {self.size:,} answers"
        return f"subset selection, {self.subset:,} of {self.size:,} answers"

    @property
    def p(self) -> Fraction:
        """The probability that a report holds the true answer."""
        return _chances(self.odds, self.size, self.subset)[0]

    @property
    def q(self) -> Fraction:
        """The probability that a report holds an answer that is not true."""
        return _chances(self.odds, self.size, self.subset)[1]

    def probability(self, report: object, *, truth: int) -> Fraction:
        """Return P(report given truth), exactly."""
        [row] = self.read_reports([report])
        answer = int(read_answers(truth, self.size)[0])
        favoured = math.comb(self.size - 1, self.subset - 1) * self.odds
        others = math.comb(self.size - 1, self.subset) * UNIT_ODDS
        return Fraction(self.odds if answer in row else UNIT_ODDS, favoured + others)

    def release(self, value: object) -> Any:
        """Return one report as a list of answers, or an array with a row for each of many respondents."""
        truths = read_answers(value, self.size)
        reports = self._draw(truths)
        return reports if several(value) else reports[0].tolist()

    def _draw(self, truths: NDArray[np.int64]) -> NDArray[np.int32]:
        if self.subset == 1:
            return respond(truths, self.size, self.p).astype(np.int32)[:, None]
        honest = noise.bernoulli(self.p, truths.size)
        out = np.empty((truths.size, self.subset), np.int32)
        for with_truth in (True, False):
            rows = np.flatnonzero(honest == with_truth)
            out[rows] = subsets(truths[rows], self.size, self.subset, with_truth=with_truth)
        return out

    def read_reports(self, reports: object) -> NDArray[np.int64]:
        """Return reports as an array of sorted rows, from an array or a list of lists; refuse others."""
        if isinstance(reports, np.ma.MaskedArray):
            raise bad_report("a report is missing")
        try:
            array = np.asarray(reports)
        except ValueError:  # rows of different lengths
            raise bad_report(f"a report does not name {self.subset} answers") from None
        if array.size == 0 and (array.ndim == 1 or array.shape[1:] == (self.subset,)):
            return np.empty((0, self.subset), np.int64)
        if array.ndim == 1 and self.subset == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[1] != self.subset:
            raise bad_report(f"a report does not name {self.subset} answers")
        if array.dtype.kind not in "iu":
            raise bad_report("a report holds something other than places of answers")
        if array.min() < 0 or array.max() >= self.size:
            raise bad_report("a report names an answer that is not one of the declared answers")
        if self.subset > 1 and not bool((array[:, 1:] > array[:, :-1]).all()):
            raise bad_report("a report names an answer twice, or its answers are not in order")
        return array

    def supports(self, reports: object) -> NDArray[np.int64]:
        """Return for each answer how many reports name it."""
        flat = self.read_reports(reports).ravel()
        supports = np.zeros(self.size, np.int64)
        for start in range(0, flat.size, _BLOCK):
            supports += np.bincount(flat[start : start + _BLOCK], minlength=self.size)
        return supports

    def supported(self, reports: NDArray[Any], answer: int) -> NDArray[np.bool_]:
        """Return for each report whether it names one answer."""
        return np.asarray((reports == answer).any(axis=1))

    def _numbers(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return reports.astype(np.int64)

    def __repr__(self) -> str:
        return (
            f"SubsetSelection(epsilon={show(self.epsilon)}, {self.subset:,} of {self.size:,} answers; "
            f"the true one with probability {float(self.p):.4g}, any other with {float(self.q):.4g})"
        )


def read_list_size(size: int, *, max_size: int = _MAX_ANSWERS) -> int:
    """Read the number of answers of a list."""
    return Integer(2, max_size, instead=2).read("size", size)


@lru_cache(maxsize=1024)
def _chances(odds: int, size: int, subset: int) -> tuple[Fraction, Fraction]:
    """Return p and q; q counts sets with the truth and the other answer, and sets with the other alone."""
    truthful, bare = subset * odds, (size - subset) * UNIT_ODDS
    p = Fraction(truthful, truthful + bare)
    return p, (p * (subset - 1) + (1 - p) * subset) / (size - 1)


def _best_subset(odds: int, size: int) -> int:
    """Return the size of the sets with the smallest variance at share 0: next to size B/(A + B)."""
    low = max(1, size * UNIT_ODDS // (odds + UNIT_ODDS))
    return min((w for w in (low, low + 1) if w < size), key=lambda w: _variance(odds, size, w))


def _variance(odds: int, size: int, subset: int) -> Fraction:
    p, q = _chances(odds, size, subset)
    return q * (1 - q) / (p - q) ** 2
