"""The quantile mechanisms: private quantiles of rows over public candidates."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Set
from tacit.mechanisms._discrete_laplace import DiscreteLaplace
from tacit.mechanisms._exponential import Exponential
from tacit.mechanisms._input_rows import rows_of
from tacit.mechanisms._mechanism import read_adjacency, show
from tacit.mechanisms._quantile_choice import balance, read_share
from tacit.mechanisms._row_mechanism import RowMechanism

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tacit.accounting import Cost
    from tacit.mechanisms._mechanism import Adjacency

__all__ = ["Quantile", "Quantiles", "read_candidates"]


def read_candidates(candidates: Sequence[Number] | NDArray[Any]) -> tuple[float, ...]:
    """Read public candidates: different finite numbers, kept in increasing order."""
    listed = candidates.tolist() if isinstance(candidates, np.ndarray) else list(candidates)
    example = Set(candidates=range(60, 261))
    numbers = sorted(
        float(rational("a candidate", one, zero=True, negative=True, fix=example)) for one in listed
    )
    if not numbers or any(a == b for a, b in itertools.pairwise(numbers)):
        raise bad_parameter("candidates", "different numbers, at least one", candidates, fix=example)
    return tuple(numbers)


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Quantile(RowMechanism):
    """Pick the public candidate that splits the rows most nearly q : 1 - q.

    Guarantee: epsilon, pure and bounded range, by the exponential mechanism.

    Argument: a candidate scores -|(1-q) L - q G|, L the rows below it and G the rows above. A row added or
    removed changes L or G by 1, the score by at most max(q, 1-q); a row replaced may change both, the score
    by at most 1. With q = a/m scores are whole multiples of 1/m. Rows that are not numbers count neither
    below nor above.

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
        share, near = read_share("q", q), read_adjacency(adjacency)
        below, whole = share.numerator, share.denominator
        moved = max(below, whole - below) if near == "add/remove" else whole
        for name, value in (
            ("q", share),
            ("candidates", read_candidates(candidates)),
            ("adjacency", near),
            ("choice", Exponential(epsilon, sensitivity=moved, adjacency=near, grid=1)),
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
        above = len(rows) - np.searchsorted(rows, self.candidates, side="right")
        return balance(below, above, self.q)

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
    """Several quantiles at once, from one noisy distribution over the public candidates.

    Guarantee: epsilon, pure, for all quantiles together, however many: they come from one noisy histogram.

    Argument: a row falls into one of the cells between candidates (2 in L1 under replace, 1 under
    add/remove). With more than 256 candidates blocks of cells are counted too, so that a row is in one cell
    and one block, which doubles the sensitivity and still lowers the error of sums over many cells.
    Summing, making the sums increase and reading off quantiles touches no data. Rows that are not numbers
    are in no cell.

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
    noise: DiscreteLaplace

    def __init__(
        self,
        epsilon: Number,
        *,
        qs: Sequence[Number],
        candidates: Sequence[Number] | NDArray[Any],
        adjacency: Adjacency = "add/remove",
    ) -> None:
        shares = tuple(read_share("qs", q) for q in qs)
        if not shares:
            raise bad_parameter("qs", "at least one share", qs, fix=Set(qs=[0.25, 0.5, 0.75]))
        points, near = read_candidates(candidates), read_adjacency(adjacency)
        moved = (1 if near == "add/remove" else 2) * (2 if len(points) > 256 else 1)
        for name, value in (
            ("qs", shares),
            ("candidates", points),
            ("adjacency", near),
            ("noise", DiscreteLaplace(epsilon=epsilon, sensitivity=moved, adjacency=near)),
        ):
            object.__setattr__(self, name, value)

    @property
    def cost(self) -> Cost:
        """The cost of the noise on all cells together."""
        return self.noise.cost

    @property
    def _block(self) -> int:
        """How many cells a block has; 0 without blocks."""
        return round((len(self.candidates) + 1) ** 0.5) if len(self.candidates) > 256 else 0

    def exact(self, value: Any) -> NDArray[np.int64]:
        """Return the exact counts of cells, then of blocks: private."""
        rows = rows_of(value)
        cell = np.searchsorted(self.candidates, rows[~np.isnan(rows)], side="left")
        cells = np.bincount(cell, minlength=len(self.candidates) + 1).astype(np.int64)
        if not self._block:
            return cells
        return np.concatenate([cells, np.add.reduceat(cells, np.arange(0, len(cells), self._block))])

    def release(self, value: Any) -> list[float]:
        """Return one candidate for each of `qs`."""
        return self._read(np.asarray(self.noise.release(self.exact(value)), dtype=np.float64))

    def release_many(self, value: Any, count: int) -> NDArray[Any]:
        """Return `count` noisy histograms, which decide everything else: for auditors only."""
        return self.noise.release_many(self.exact(value), count)

    def _read(self, noisy: NDArray[np.float64]) -> list[float]:
        """Sum up to each candidate, make the sums increase, and read off where they reach each share."""
        size = len(self.candidates) + 1
        cells = noisy[:size]
        if self._block:
            starts = np.arange(0, size, self._block)
            before = np.concatenate([[0.0], np.cumsum(noisy[size:])])
            inside = np.cumsum(cells) - np.repeat(
                np.cumsum(cells)[starts] - cells[starts], np.diff([*starts, size])
            )
            sums = np.repeat(before[:-1], np.diff([*starts, size])) + inside
            total = before[-1]
        else:
            sums = np.cumsum(cells)
            total = sums[-1]
        up = (np.maximum.accumulate(sums) + np.minimum.accumulate(sums[::-1])[::-1]) / 2
        places = [int(np.searchsorted(up[:-1], float(q) * total, side="left")) for q in self.qs]
        return [self.candidates[min(place, len(self.candidates) - 1)] for place in places]

    def error(self, confidence: Number) -> float:
        """Return by how many rows the noise may move any of the sums, all together, with this confidence.

        By Bernstein's inequality on the longest sum, shared over all candidates: at least as large as needed.
        """
        level = rational("confidence", confidence)
        terms = 2 * (self._block or len(self.candidates) + 1)
        missed = float(1 - level)
        # sums of independent Laplace noise are sub-exponential: Bernstein's bound with scale b and variance v
        scale, spread = float(self.noise.scale), terms * self.noise.variance
        log = float(np.log(2 * len(self.candidates) / missed))
        return float(np.sqrt(2 * spread * log) + 2 * scale * log)

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """Nobody and one person; or one person at either end."""
        low, high = self.candidates[0], self.candidates[-1]
        return ([], [low]) if self.adjacency == "add/remove" else ([low], [high])

    def __repr__(self) -> str:
        return f"Quantiles({len(self.qs)} shares, {len(self.candidates)} candidates; {self.noise!r})"
