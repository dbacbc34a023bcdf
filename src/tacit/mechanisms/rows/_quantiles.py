"""The quantile mechanisms: private quantiles of rows over public candidates, and private bounds.

Several quantiles are found by halving: the middle one first, then those on either side of it. The private
bounds mechanism finds a clip range within a stated budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import noise
from tacit.exact import Number, rational
from tacit.fixes import Set
from tacit.mechanisms._mechanism import read_adjacency, show
from tacit.mechanisms.additive._integer_noise import DiscreteLaplace
from tacit.mechanisms.choices._quantile_choice import balance, read_share
from tacit.mechanisms.choices._selection import Exponential
from tacit.mechanisms.rows._input_rows import rows_of
from tacit.mechanisms.rows._row_mechanism import RowMechanism
from tacit.parameters import Listed, RealNumber

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost


_FINE = 10**6  # levels with a larger denominator are rounded: public, and by less than a millionth
_SHARES = Listed("shares", "[0.25, 0.5, 0.75]", each=RealNumber(above=0, below=1))


@dataclass(frozen=True, slots=True)
class Halving:
    """One share of a sorted list, its level among the rows that its parents leave it, and its children.

    Attributes
    ----------
    index
        Which of the shares it is.
    level
        The share of the rows below, among those between the two parents around it.
    depth
        How many parents it has.
    lower, upper
        The shares below and above it.
    """

    index: int
    level: Fraction
    depth: int
    lower: Halving | None
    upper: Halving | None

    def every(self) -> list[Halving]:
        """Return this share and all below and above it."""
        sides = [side.every() for side in (self.lower, self.upper) if side is not None]
        return [self, *(one for side in sides for one in side)]


def halve(
    shares: tuple[Fraction, ...],
    start: int = 0,
    low: Fraction = Fraction(0),
    high: Fraction = Fraction(1),
    depth: int = 0,
) -> Halving:
    """Halve increasing shares, at least one, between `low` and `high`; the first is number `start`.

    Examples
    --------
    >>> top = halve((Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)))
    >>> [(one.index, str(one.level), one.depth) for one in top.every()]
    [(1, '1/2', 0), (0, '1/2', 1), (2, '1/2', 1)]
    """
    middle = len(shares) // 2
    share = shares[middle]
    exact = (share - low) / (high - low)
    level = exact.limit_denominator(_FINE)
    below, above = shares[:middle], shares[middle + 1 :]
    return Halving(
        start + middle,
        level if 0 < level < 1 else exact,
        depth,
        halve(below, start, low, share, depth + 1) if below else None,
        halve(above, start + middle + 1, share, high, depth + 1) if above else None,
    )


def read_candidates(
    candidates: Sequence[Number] | NDArray[Any], min_candidates: int = 1
) -> tuple[float, ...]:
    """Read public candidates: different finite numbers, kept in increasing order."""
    values = candidates.tolist() if isinstance(candidates, np.ndarray) else list(candidates)
    example = Set(candidates=range(60, 261))
    numbers = sorted(
        float(rational("a candidate", one, zero=True, negative=True, fix=example)) for one in values
    )
    Listed("numbers", "range(60, 261)", least=min_candidates, different=True).read("candidates", numbers)
    return tuple(numbers)


def places_of(candidates: int) -> int:
    """Return how many places each candidate has for the rows that share it: about 4,096 of all together.

    Eight for each of many candidates, as long as that makes no more than 2^17.
    """
    return max(2**12 // candidates, min(8, 2**17 // candidates), 1)


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Quantile(RowMechanism):
    """Pick the public candidate that splits the rows most nearly q : 1 - q.

    Guarantee: epsilon, pure and bounded range, by the exponential mechanism.

    Argument: a candidate scores -max(0, L - q N, q N - U), L the rows below it, U those below or at it and N
    all rows, so that rows which share a value do not count against it. A row added or removed changes N by 1
    and each of L and U by 0 or 1, the score by at most max(q, 1-q); a row replaced changes L and U by at most
    1, and so the score. With q = a/m scores are whole multiples of 1/m. Rows that are not numbers count
    neither below nor above.

    Parameters
    ----------
    epsilon
        The promise.
    q
        The share of rows below, between 0 and 1.
    candidates
        Public: the possible answers, such as whole millimetres of mercury from 60 to 260.
    adjacency
        ``"add/remove"`` or ``"replace"``.

    Examples
    --------
    >>> import tacit as tc
    >>> median = tc.mechanisms.Quantile(epsilon=1, q=0.5, candidates=range(60, 261))
    >>> 118 <= median.release([120] * 500 + [90] * 300 + [140] * 300) <= 122
    True
    """

    q: Fraction
    candidates: tuple[float, ...]
    adjacency: Adjacency
    choice: Exponential

    def __init__(
        self,
        epsilon: Number,
        *,
        q: Number,
        candidates: Sequence[Number] | NDArray[Any],
        adjacency: Adjacency = "add/remove",
    ) -> None:
        share, relation = read_share("q", q), read_adjacency(adjacency)
        below, denominator = share.numerator, share.denominator
        movement = max(below, denominator - below) if relation == "add/remove" else denominator
        for name, value in (
            ("q", share),
            ("candidates", read_candidates(candidates)),
            ("adjacency", relation),
            ("choice", Exponential(epsilon, sensitivity=movement, adjacency=relation, grid=1)),
        ):
            object.__setattr__(self, name, value)

    @property
    def cost(self) -> Cost:
        """Bounded range, epsilon."""
        return self.choice.cost

    def exact(self, value: Any) -> NDArray[Any]:
        """Return the whole scores, in units of 1/m for q = a/m: private."""
        rows = rows_of(value)
        rows = np.sort(rows[~np.isnan(rows)])
        below = np.searchsorted(rows, self.candidates, side="left")
        up_to = np.searchsorted(rows, self.candidates, side="right")
        return balance(below, up_to, np.array([len(rows)]), self.q)

    def release(self, value: Any) -> float:
        """Return one of the candidates."""
        return self.candidates[int(self.choice.release(self.exact(value)))]

    def release_many(self, value: Any, count: int) -> NDArray[np.float64]:
        """Return `count` independent outputs on the same rows, each at the full cost: for auditors only."""
        return np.asarray(self.candidates)[self.choice.release_many(self.exact(value), count)]

    def error(self, confidence: Number) -> float:
        """Return by how many rows the choice may split worse than the best, with this confidence."""
        worst = self.choice.error(confidence, candidates=len(self.candidates))
        return (worst - 1) / self.q.denominator  # whole scores: no rounding

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """Rows at one end that leave the other end rare, and one row more (or moved) against it."""
        low, high = self.candidates[0], self.candidates[-1]
        some = [low] * max(1, round(4 / float(self.choice.epsilon)))
        return (some, [*some, low]) if self.adjacency == "add/remove" else ([*some, high], [*some, low])

    def __repr__(self) -> str:
        return f"Quantile(q={show(self.q)}, {len(self.candidates)} candidates; {self.choice!r})"


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Quantiles(RowMechanism):
    """Several quantiles at once: the middle one first, then those on either side of it.

    Guarantee: epsilon, pure, for all quantiles together, as one choice of bounded range for each halving of
    their list: nine quantiles take four.

    Argument (Kaplan, Schnapp and Stemmer 2022): every row goes to its nearest candidate, and there to one of
    several places, at random, so that the rows of one value can be divided. The middle quantile is chosen by
    the exponential mechanism; the rows below it decide about the lower quantiles, the others about the upper
    ones, and so on. A row is in one part at each depth, so the choices of one depth cost no more than one of
    them; under replace a row may leave one part and join another, for which the noise is doubled. Rows that
    are not numbers are in no part.

    Parameters
    ----------
    epsilon
        The promise for all of them.
    qs
        Shares between 0 and 1.
    candidates, adjacency
        As for `Quantile`.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.Quantiles(epsilon=1, qs=[0.25, 0.5, 0.75], candidates=range(101))
    >>> [round(q, -1) for q in m.release(list(range(101)) * 100)]
    [20.0, 50.0, 80.0]
    """

    qs: tuple[Fraction, ...]
    candidates: tuple[float, ...]
    adjacency: Adjacency
    each: Fraction  # the epsilon of the choices of one depth

    def __init__(
        self,
        epsilon: Number,
        *,
        qs: Sequence[Number],
        candidates: Sequence[Number] | NDArray[Any],
        adjacency: Adjacency = "add/remove",
    ) -> None:
        shares = tuple(_SHARES.read("qs", qs))
        depths = len(set(shares)).bit_length()
        for name, value in (
            ("qs", shares),
            ("candidates", read_candidates(candidates)),
            ("adjacency", read_adjacency(adjacency)),
            ("each", rational("epsilon", epsilon) / depths),
        ):
            object.__setattr__(self, name, value)
        for halving in self._top.every():
            self._choice(halving.level)  # refuses an epsilon that is too small

    @property
    def _top(self) -> Halving:
        return halve(tuple(sorted(set(self.qs))))

    @property
    def _places(self) -> int:
        """How many places each candidate has."""
        return places_of(len(self.candidates))

    def _choice(self, level: Fraction) -> Exponential:
        """Return the choice of one quantile at a level of its part, by rows times the level's denominator."""
        movement = max(level.numerator, level.denominator - level.numerator)
        times = 1 if self.adjacency == "add/remove" else 2
        return Exponential(self.each, sensitivity=times * movement, adjacency=self.adjacency, grid=1)

    @property
    def cost(self) -> Cost:
        """A choice of bounded range for each halving."""
        depths = len(set(self.qs)).bit_length()
        return depths * self._choice(self._top.level).cost

    def exact(self, value: Any) -> NDArray[np.int64]:
        """Return the exact numbers of rows at their nearest candidates: private."""
        rows = rows_of(value)
        points = np.asarray(self.candidates)
        nearest = np.searchsorted(points[:-1] / 2 + points[1:] / 2, rows[~np.isnan(rows)], side="left")
        return np.bincount(nearest, minlength=len(points)).astype(np.int64)

    def release(self, value: Any) -> list[float]:
        """Return one candidate for each of `qs`."""
        counts, places = self.exact(value), self._places
        at = np.repeat(np.arange(len(counts)), counts) * places
        at += np.asarray(noise.uniform_below(places, len(at)))
        below = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=len(counts) * places))])
        shares = sorted(set(self.qs))
        chosen = [0] * len(shares)
        self._divide(self._top, below, 0, len(below) - 1, chosen)
        quantiles = dict(zip(shares, chosen, strict=True))
        return [self.candidates[min(quantiles[q] // places, len(counts) - 1)] for q in self.qs]

    def _divide(
        self, halving: Halving, below: NDArray[np.int64], start: int, end: int, chosen: list[int]
    ) -> None:
        """Choose where to divide the rows between two places, then divide both sides."""
        inside = below[start : end + 1] - below[start]
        scores = balance(inside, inside, inside[-1:], halving.level)
        cut = start + int(self._choice(halving.level).release(scores))
        chosen[halving.index] = cut
        for side, (low, high) in ((halving.lower, (start, cut)), (halving.upper, (cut, end))):
            if side is not None:
                self._divide(side, below, low, high, chosen)

    def release_many(self, value: Any, count: int) -> NDArray[np.float64]:
        """Return `count` independent outputs on the same rows, each at the full cost: for auditors only."""
        return np.array([self.release(value) for _ in range(count)], dtype=np.float64).reshape(count, -1)

    def error(self, confidence: Number) -> float:
        """Return by how many rows any quantile may miss its rank, all together, with this confidence.

        The choices of all quantiles share what may fail. A quantile carries over at most what its parents
        missed, so the largest errors of all depths are added up: at least as large as needed. Rows that share
        one place are not counted.
        """
        level = rational("confidence", confidence)
        every = self._top.every()
        among = len(self.candidates) * self._places + 1
        each_level = 1 - (1 - level) / len(every)
        worst = [0.0] * (1 + max(halving.depth for halving in every))
        for halving in every:
            steps = self._choice(halving.level).half_width(each_level, candidates=among)
            worst[halving.depth] = max(worst[halving.depth], steps / halving.level.denominator)
        return sum(worst)

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """Rows at one end that leave the other end rare, and one row more (or moved) against it."""
        low, high = self.candidates[0], self.candidates[-1]
        some = [low] * max(1, round(4 / float(self.each)))
        return (some, [*some, low]) if self.adjacency == "add/remove" else ([*some, high], [*some, low])

    def __repr__(self) -> str:
        return (
            f"Quantiles({len(self.qs)} shares, {len(self.candidates)} candidates; "
            f"epsilon {show(self.each)} for each halving)"
        )


_STRAY = Fraction(1, 100)  # the chance that noise makes any empty cell look filled


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Bounds(RowMechanism):
    """Find a range for clipping where none is known beforehand.

    Guarantee: epsilon, pure. The rows are counted in the cells between public candidates, every count gets
    discrete Laplace noise (sensitivity 1 under add/remove, 2 under replace), and the range is read off the
    noisy counts: cells that noise alone could explain are set to zero, and a share `tail` of the rest is
    dropped at each end.

    This rule is wrong for many rows. The best bounds cut about 2 / epsilon rows, however many rows there are,
    but a fixed share cuts more and more of them. At epsilon 1, a mean with these bounds has 4 times the error
    of the best bounds for 2,000 rows, 16 times for 20,000 and about 90 times for 200,000 (the median over 23
    data sets; benchmarks/first_minutes.py). If there are too few rows, the widest range is returned without a
    warning. For a column of a table, use ``bounds="auto"`` instead, as in ``tc.mean("spending",
    bounds="auto")``; docs/proofs/found_bounds.md describes it.

    Parameters
    ----------
    epsilon
        The promise for both ends.
    tail
        The share of rows to drop at each end, below one half.
    candidates
        Public; by default 0 and the powers of two from 2^-10 to 2^40, of both signs.
    adjacency
        ``"add/remove"`` or ``"replace"``.

    Examples
    --------
    >>> import tacit as tc
    >>> tc.mechanisms.Bounds(epsilon=5).release([float(x) for x in range(100, 1000)])
    (64.0, 1024.0)
    """

    tail: Fraction
    candidates: tuple[float, ...]
    adjacency: Adjacency
    noise: DiscreteLaplace

    def __init__(
        self,
        epsilon: Number,
        *,
        tail: Number = Fraction(1, 100),
        candidates: Sequence[Number] | NDArray[Any] | None = None,
        adjacency: Adjacency = "add/remove",
    ) -> None:
        share, relation = (
            RealNumber(above=0, below=0.5, instead=0.01).read("tail", tail),
            read_adjacency(adjacency),
        )
        if candidates is None:
            powers = [2.0**k for k in range(-10, 41)]
            candidates = [*(-p for p in powers), 0.0, *powers]
        points = read_candidates(candidates, min_candidates=2)
        movement = 1 if relation == "add/remove" else 2
        for name, value in (
            ("tail", share),
            ("candidates", points),
            ("adjacency", relation),
            ("noise", DiscreteLaplace(epsilon=epsilon, sensitivity=movement, adjacency=relation)),
        ):
            object.__setattr__(self, name, value)

    @property
    def cost(self) -> Cost:
        """The cost of the noise on all cells together."""
        return self.noise.cost

    def exact(self, value: Any) -> NDArray[np.int64]:
        """Return the exact counts of the cells between candidates, outer ones included: private."""
        rows = rows_of(value)
        cell = np.searchsorted(self.candidates, rows[~np.isnan(rows)], side="left")
        return np.bincount(cell, minlength=len(self.candidates) + 1).astype(np.int64)

    def release(self, value: Any) -> tuple[float, float]:
        """Return two candidates low < high: the widest range where there are too few rows."""
        noisy = np.asarray(self.noise.release(self.exact(value)), dtype=np.float64)
        counts = np.where(noisy > self.error(1 - _STRAY), noisy, 0.0)
        top = len(self.candidates) - 1
        if not counts.any():
            return self.candidates[0], self.candidates[top]
        sums = np.cumsum(counts) / counts.sum()
        start = int(np.searchsorted(sums, float(self.tail), side="right"))
        end = int(np.searchsorted(sums, 1 - float(self.tail), side="left"))
        low, high = max(0, start - 1), min(top, end)
        if low >= high:
            low, high = (high - 1, high) if high > 0 else (0, 1)
        return self.candidates[low], self.candidates[high]

    def release_many(self, value: Any, count: int) -> NDArray[Any]:
        """Return `count` noisy histograms, which decide everything else: for auditors only."""
        return self.noise.release_many(self.exact(value), count)

    def error(self, confidence: Number) -> float:
        """Return the count that no cell's noise exceeds, with this confidence: smaller cells are ignored."""
        return self.noise.error(confidence, size=len(self.candidates) + 1, together=True)

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """Nobody and one person; or one person at either end."""
        low, high = self.candidates[0], self.candidates[-1]
        return ([], [low]) if self.adjacency == "add/remove" else ([low], [high])

    def __repr__(self) -> str:
        return f"Bounds(tail={show(self.tail)}, {len(self.candidates)} candidates; {self.noise!r})"
