"""Quantiles by choice: from the number of rows at each public candidate, one candidate or two.

The quantile choice mechanism chooses one candidate. The quantile bracket mechanism chooses two that enclose a
quantile, as an interval for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tacit.exact import Number, count, rational
from tacit.fixes import Code
from tacit.mechanisms._input_values import read_integers, wrong_input
from tacit.mechanisms._mechanism import IntegerMechanism, confidence_level, show
from tacit.mechanisms._noise_laws import check_width
from tacit.mechanisms.choices._selection import Exponential, PermuteAndFlip
from tacit.parameters import Choice, RealNumber

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost


_METHODS = {"exponential": Exponential, "permute-and-flip": PermuteAndFlip}


def read_share(name: str, q: Number) -> Fraction:
    """Read a share strictly between 0 and 1."""
    return RealNumber(above=0, below=1).read(name, q)


def balance(below: NDArray[Any], up_to: NDArray[Any], rows: NDArray[Any], level: Fraction) -> NDArray[Any]:
    """Return the whole scores -max(0, m below - a rows, a rows - m up_to) of candidates, for the level a/m.

    `below` counts the rows below a candidate, `up_to` those at it too, and `rows` all of them. A candidate at
    the level scores 0, the best: no more than a/m of the rows lie below it, and no more than the rest above.
    Rows that share a value are one candidate's own, and count neither below nor above it.
    """
    part, denominator = level.numerator, level.denominator
    if denominator * int(rows.max(initial=0)) >= 2**61:
        below, up_to, rows = below.astype(object), up_to.astype(object), rows.astype(object)
    return np.asarray(
        -np.maximum(0, np.maximum(denominator * below - part * rows, part * rows - denominator * up_to))
    )


@dataclass(frozen=True, init=False, repr=False, slots=True)
class QuantileChoice(IntegerMechanism):
    """Choose the candidate that splits the rows most nearly at a level, in each of several groups.

    Guarantee: epsilon, pure, for all groups together; by the exponential mechanism of bounded range, too.

    Argument: with the level a/m a candidate scores -max(0, m L - a N, a N - m U), L the rows below it, U
    those below or at it, N all rows. A row that comes or goes changes N by 1 and each of L and U by 0 or 1,
    so each term by a or m-a, and the score by at most max(a, m-a), in its own group only.
    One unit moves at most `rows` rows over all groups, so the largest changes of a score in each group add up
    to at most rows max(a, m-a): the sensitivity of a choice in several groups (`Exponential`).

    Parameters
    ----------
    epsilon
        The promise for all groups together.
    level
        The share of rows below, between 0 and 1.
    rows
        The most rows that come or go with one unit, over all groups: under replace those of two units.
    adjacency
        The neighbours that `rows` is stated for; the cost records them.
    method
        ``"exponential"``, or ``"permute-and-flip"``, which is never worse and up to twice as good where only
        pure epsilon counts.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.QuantileChoice(epsilon=1, level=0.5, rows=1)
    >>> m.release([[0, 900, 0], [0, 0, 900]]).tolist()
    [1, 2]
    """

    level: Fraction
    rows: int
    choice: Exponential | PermuteAndFlip

    def __init__(
        self,
        epsilon: Number,
        *,
        level: Number,
        rows: int,
        adjacency: Adjacency = "add/remove",
        method: Literal["exponential", "permute-and-flip"] = "exponential",
    ) -> None:
        Choice(tuple(_METHODS)).read("method", method)  # fmt: skip
        share, max_rows = read_share("level", level), count("rows", rows, zero=False)
        movement = max_rows * max(share.numerator, share.denominator - share.numerator)
        for name, value in (
            ("level", share),
            ("rows", max_rows),
            ("choice", _METHODS[method](epsilon, sensitivity=movement, adjacency=adjacency, grid=1)),
        ):
            object.__setattr__(self, name, value)
        check_width(self.scale, power=56)

    @property
    def epsilon(self) -> Fraction:
        """The promise."""
        return self.choice.epsilon

    @property
    def adjacency(self) -> Adjacency:
        """What makes neighbours."""
        return self.choice.adjacency

    @property
    def sensitivity(self) -> int:
        """The most that one unit can change the scores: the largest change in each group, added up."""
        return int(self.choice.sensitivity)

    @property
    def scale(self) -> Fraction:
        """What scores are divided by."""
        return self.choice.scale

    @property
    def cost(self) -> Cost:
        """Bounded range, epsilon; pure epsilon for permute-and-flip."""
        return self.choice.cost

    def scores(self, value: object) -> NDArray[Any]:
        """Return the whole scores of the candidates from the rows at each candidate, in order: private."""
        counts = np.asarray(read_integers(value))
        if counts.ndim not in {1, 2} or counts.shape[-1] == 0:
            raise wrong_input(
                "numbers of rows, one column per candidate", counts, fix=Code("[[3, 0, 2], [1, 4, 4]]")
            )
        if float(np.abs(counts).sum(dtype=np.float64)) >= 2**62:
            counts = counts.astype(object)
        up_to = np.cumsum(counts, axis=-1)
        return balance(up_to - counts, up_to, up_to[..., -1:], self.level)

    def release(self, value: object) -> Any:
        """Return the index of a candidate (one per group for a table) from the rows at each candidate."""
        return self.choice.release(self.scores(value))

    def release_many(self, value: object, count: int) -> NDArray[np.int64]:
        """Return `count` independent choices (as indices), each at the full cost: for auditors only."""
        return self.choice.release_many(self.scores(value), count)

    def half_width(self, confidence: Number, *, copies: int = 1, candidates: int | None = None) -> int:
        """Return how far below the best score a choice among `candidates` may lie."""
        return self.choice.half_width(confidence, copies=copies, candidates=candidates)

    def rank_error(self, confidence: Number, *, candidates: int) -> float:
        """Bound how many rows the chosen candidate may lie from its rank, with at least this confidence.

        P(score < best - scale (ln K + x)) <= exp(-x) (McSherry and Talwar 2007; McKenna and Sheldon 2020);
        the best score is 0, since every row is at a candidate, and a row of rank counts as much as the
        level's denominator.
        """
        failing = float(1 - confidence_level(confidence))
        among = count("candidates", candidates, zero=False)
        score = float(self.scale) * (math.log(among) + math.log(1 / failing))
        return score / self.level.denominator

    def to_json(self) -> dict[str, Any]:
        """Return the name, the level, the exact scale and sensitivity of the scores, and the cost."""
        return {
            "mechanism": "quantile-choice",
            "method": "exponential" if isinstance(self.choice, Exponential) else "permute-and-flip",
            "level": str(self.level),
            "scale": str(self.scale),
            "sensitivity": self.sensitivity,
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        return self.choice.describe(unit)

    @property
    def worst_pair(self) -> tuple[list[int], list[int]]:
        """Rows at the end that weighs more, so that the other end is rare, and the rows of one more unit."""
        some = self.rows * max(1, round(4 / float(self.epsilon)))
        more = some + self.rows
        return ([0, some], [0, more]) if self.level >= Fraction(1, 2) else ([some, 0], [more, 0])

    def __repr__(self) -> str:
        return f"QuantileChoice(level={show(self.level)}, rows={self.rows}; {self.choice!r})"


@dataclass(frozen=True, init=False, repr=False, slots=True)
class QuantileBracket(IntegerMechanism):
    """Choose a candidate on either side of a quantile, in each of several groups.

    Guarantee: epsilon, pure, for all groups together, as two choices of bounded range epsilon/2. The two
    candidates enclose the quantile with at least the confidence, for any rows, also for none.

    Argument for privacy: with the level a/m and a public margin M, the lower choice scores a candidate
    -max(0, m L - T, T - m U), T = a N - M, L the rows below it, U those below or at it, N all rows; the upper
    choice has T = a N + M. The first candidate drops the term of L and the last the term of U. A row that
    comes or goes changes each term that is left by a or m-a, and a score by max(a, m-a), in its own group.

    Argument for the interval: some candidate always scores 0, the best. If T <= m U at the first, it is the
    first; else the first with T <= m U, for then m L < T. With M = scale (ln K + ln 2/f), a choice among K
    scores -M or less with a chance of at most f/2 (McSherry and Talwar 2007). Otherwise the lower choice has
    m L < T + M = a N, or is the first candidate: it is not above the quantile. The upper one is not below it.

    Parameters
    ----------
    epsilon
        The promise for both choices and all groups together.
    level
        The share of rows below, between 0 and 1.
    rows
        The most rows that come or go with one unit, over all groups: under replace those of two units.
    candidates
        How many candidates there are.
    confidence
        How often the two enclose the quantile, at least.
    adjacency
        The neighbours that `rows` is stated for; the cost records them.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.QuantileBracket(epsilon=1, level=0.5, rows=1, candidates=4)
    >>> m.margin, m.release([[900, 0, 900, 900], [0, 0, 900, 0]]).tolist()
    (21, [[2, 2], [2, 2]])
    """

    level: Fraction
    rows: int
    candidates: int
    confidence: Fraction
    each: Exponential

    def __init__(
        self,
        epsilon: Number,
        *,
        level: Number,
        rows: int,
        candidates: int,
        confidence: Number = Fraction(95, 100),
        adjacency: Adjacency = "add/remove",
    ) -> None:
        share, max_rows = read_share("level", level), count("rows", rows, zero=False)
        movement = max_rows * max(share.numerator, share.denominator - share.numerator)
        half = rational("epsilon", epsilon) / 2
        for name, value in (
            ("level", share),
            ("rows", max_rows),
            ("candidates", count("candidates", candidates, zero=False)),
            ("confidence", confidence_level(confidence)),
            ("each", Exponential(half, sensitivity=movement, adjacency=adjacency, grid=1)),
        ):
            object.__setattr__(self, name, value)
        check_width(self.scale * 100, power=56)

    @property
    def epsilon(self) -> Fraction:
        """The promise."""
        return 2 * self.each.epsilon

    @property
    def adjacency(self) -> Adjacency:
        """What makes neighbours."""
        return self.each.adjacency

    @property
    def sensitivity(self) -> int:
        """The most that one unit can change the scores: the largest change in each group, added up."""
        return int(self.each.sensitivity)

    @property
    def scale(self) -> Fraction:
        """What scores are divided by."""
        return self.each.scale

    @property
    def cost(self) -> Cost:
        """Two choices of bounded range epsilon/2."""
        return 2 * self.each.cost

    @property
    def margin(self) -> int:
        """How far from the level each choice aims, in rows times the level's denominator."""
        return self.half_width(self.confidence)

    def scores(self, value: object) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the whole scores of both choices from the rows at each candidate, in order: private."""
        counts = np.asarray(read_integers(value))
        if counts.ndim not in {1, 2} or counts.shape[-1] != self.candidates:
            must_be = f"numbers of rows, one column for each of {self.candidates} candidates"
            raise wrong_input(must_be, counts, fix=Code(repr([0] * min(self.candidates, 3))))
        part, denominator = self.level.numerator, self.level.denominator
        if denominator * float(np.abs(counts).sum(dtype=np.float64)) + self.margin >= 2**61:
            counts = counts.astype(object)
        up_to = np.cumsum(counts, axis=-1)
        aim = part * up_to[..., -1:]
        return self._scores(up_to - counts, up_to, aim - self.margin), self._scores(
            up_to - counts, up_to, aim + self.margin
        )

    def _scores(self, below: NDArray[Any], up_to: NDArray[Any], aim: NDArray[Any]) -> NDArray[Any]:
        beyond, short = self.level.denominator * below - aim, aim - self.level.denominator * up_to
        beyond[..., 0] = 0
        short[..., -1] = 0
        return np.asarray(-np.maximum(0, np.maximum(beyond, short)))

    def release(self, value: object) -> Any:
        """Return two indices of candidates, the lower first (a pair per group for a table)."""
        chosen = [self.each.release(scores) for scores in self.scores(value)]
        return np.sort(np.stack([np.asarray(one) for one in chosen], axis=-1), axis=-1)

    def release_many(self, value: object, count: int) -> NDArray[np.int64]:
        """Return `count` independent pairs (as indices), each at the full cost: for auditors only."""
        chosen = [self.each.release_many(scores, count) for scores in self.scores(value)]
        return np.sort(np.stack(chosen, axis=-1), axis=-1)

    def half_width(self, confidence: Number, *, copies: int = 1) -> int:
        """Return how far below the best score either choice may lie, both together."""
        del copies
        failing = float(1 - confidence_level(confidence)) / 2
        return math.ceil(float(self.scale) * (math.log(self.candidates) + math.log(1 / failing)))

    def rank_error(self) -> float:
        """Bound how many rows each end lies from the quantile's rank, with the mechanism's confidence."""
        return 2 * self.margin / self.level.denominator

    def to_json(self) -> dict[str, Any]:
        """Return the name, the level, the margin, the exact scale and sensitivity, and the cost."""
        return {
            "mechanism": "quantile-bracket",
            "level": str(self.level),
            "margin": self.margin,
            "scale": str(self.scale),
            "sensitivity": self.sensitivity,
            "cost": self.cost.to_json(),
        }

    def describe(self, unit: Fraction = Fraction(1)) -> str:
        """Return the mechanism in a few words."""
        return self.each.describe(unit)

    @property
    def worst_pair(self) -> tuple[list[int], list[int]]:
        """Rows on one side of a boundary between candidates, and the rows of one more unit."""
        some = self.rows * max(1, round(4 / float(self.each.epsilon)))
        rest = [0] * (self.candidates - 2)
        pairs = [some + self.margin, some], [some + self.margin + self.rows, some]
        return [*pairs[0], *rest][: self.candidates], [*pairs[1], *rest][: self.candidates]

    def __repr__(self) -> str:
        return f"QuantileBracket(level={show(self.level)}, rows={self.rows}; {self.each!r} twice)"
