"""The permute-and-flip mechanism: never worse than the exponential mechanism at the same pure epsilon."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit import noise
from tacit.mechanisms._selection import Selection, gaps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Cost


class PermuteAndFlip(Selection):
    """Go through the candidates in random order and take each with chance exp(-gap / t); the first one wins.

    Guarantee: epsilon, pure. It is **not** of bounded range: its losses spread over up to twice epsilon, so
    it must be charged as pure epsilon (an audit of the whole curve proves the cheaper charge wrong).

    Argument: it is report-noisy-max with exponential noise of scale t = 2D/epsilon (Ding et al. 2021). Fix
    the noise of all others: candidate r wins iff its own noise reaches a threshold, which neighbours move
    by at most 2D (D if the scores are monotone and t = D/epsilon), and P(noise >= x + 2D) >= exp(-2D/t)
    P(noise >= x) (McKenna and Sheldon 2020). All coins are independent of the order, hence the first taken
    in a random order is a uniform one of all that are taken: that is how it is drawn, with integer coins
    P(geometric >= gap) = exp(-gap / t).

    Parameters
    ----------
    epsilon, sensitivity, monotone, adjacency, grid
        As for `Exponential`.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.PermuteAndFlip(epsilon=1, sensitivity=1)
    >>> m.probabilities([0, 0]).tolist(), m.probabilities([2, 0]).round(4).tolist()
    ([0.5, 0.5], [0.8161, 0.1839])
    """

    __slots__ = ()

    _name: ClassVar[str] = "permute-and-flip"
    _words: ClassVar[str] = "permute-and-flip"

    @property
    def cost(self) -> Cost:
        """Pure epsilon."""
        from tacit.accounting import Cost

        return Cost.pure(self.epsilon, adjacency=self.adjacency)

    def _pick(self, steps: NDArray[Any], size: int | None) -> int | NDArray[np.int64]:
        gap = steps.max() - steps
        if size is None:
            taken = np.flatnonzero(np.asarray(noise.geometric(self.lattice.scale, len(gap))) >= gap)
            return int(taken[int(noise.uniform_below(len(taken)))])
        coins = np.asarray(noise.geometric(self.lattice.scale, (size, len(gap)))) >= gap
        place = np.asarray(noise.uniform_below(coins.sum(axis=1)))
        return np.asarray(np.argmax(np.cumsum(coins, axis=1) > place[:, None], axis=1), dtype=np.int64)

    def _chances(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        """P(r) = p_r times the integral of prod_{j != r} (1 - p_j x) over [0, 1], by exact quadrature."""
        taken = np.exp(-gaps(steps, self.lattice.scale))
        nodes, weights = np.polynomial.legendre.leggauss(min(len(taken) // 2 + 1, 400))
        x, w = (nodes + 1) / 2, weights / 2
        missed = 1 - np.outer(taken, x)  # every entry is positive, since x < 1
        chances = taken * ((missed.prod(axis=0) / missed) @ w)
        return np.asarray(chances / chances.sum())

    def _best_chance(self, steps: NDArray[Any]) -> float:
        """Integrate m (1 - x)^(m-1) prod (1 - p_j x) over [0, 1], m candidates tie and j are the others.

        Between x and 2x the integrand falls by less than exp(-40) or is negligible, so 32 nodes on each such
        piece are exact up to rounding; before the first piece it is 1 up to 1e-12.
        """
        gap = gaps(steps, self.lattice.scale)
        each, times = np.unique(gap[gap < 60], return_counts=True)
        taken = np.exp(-each)
        best = int(times[0])
        if best == len(gap):
            return 1.0
        times = times - (taken == 1)  # one of those that tie is the one that wins
        pieces = math.ceil(math.log2(float((times * taken).sum()) + 2)) + 42
        ends = np.concatenate([[0.0], 2.0 ** -np.arange(pieces, -1, -1)])
        nodes, weights = np.polynomial.legendre.leggauss(32)
        x = ends[:-1, None] + np.diff(ends)[:, None] * (nodes + 1) / 2
        logs = sum(n * np.log1p(-p * x) for n, p in zip(times.tolist(), taken.tolist(), strict=True))
        found = best * float((np.exp(logs) @ weights * np.diff(ends) / 2).sum())
        return min(1.0, found)

    def _worse_than(self, steps: int, candidates: int) -> float:
        # one best and the others just too far: the best wins if it comes before all others that are taken
        p = math.exp(-float((steps + 1) / self.lattice.scale))
        if p == 0:  # too small for a double
            return 0.0
        wins = -math.expm1(candidates * math.log1p(-p)) / (candidates * p) if p < 1 else 1 / candidates
        return 1 - wins

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """Two candidates that tie, and the same with one ahead by all that a neighbour can do."""
        moved = float(self.sensitivity)
        return ([0.0, 0.0], [0.0, moved]) if self.monotone else ([0.0, 0.0], [-moved, moved])
