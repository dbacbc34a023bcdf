"""The exponential mechanism: the chance of a candidate grows exponentially with its score."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit import noise
from tacit.mechanisms._selection import Selection, gaps, shortened

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Cost


class Exponential(Selection):
    """Pick a candidate with probability proportional to exp(epsilon u / (2 sensitivity)).

    Guarantee: epsilon, pure, and bounded range: all losses of one pair of neighbours lie in an interval of
    length epsilon, so it composes better than pure epsilon (rho = epsilon^2 / 8; Cesar and Rogers 2021).

    Argument: with scores in grid steps moving by at most D, P(r) = exp(u_r / t) / sum_j exp(u_j / t), t =
    2D/epsilon. Between neighbours the numerator changes by a factor within exp(+-D/t), and the sum, common
    to all candidates, too: the losses lie within c +- D/t, an interval of length epsilon, and never exceed
    2D/t = epsilon (McSherry and Talwar 2007). With monotone scores (adding a unit lowers none of them) all
    numerators move in one direction by at most D, so t = D/epsilon is enough; only under add/remove.

    Parameters
    ----------
    epsilon
        The promise.
    sensitivity
        The most that one unit can change any score. For several groups at once: the largest change of a score
        in each group, added up over the groups (more closely, as in the proofs: half the span of changes).
    monotone
        Whether adding a unit never lowers a score, as with counts and votes.
    adjacency
        What makes neighbours: ``"add/remove"`` or ``"replace"``.
    grid
        The public grid of scores; by default fine enough to be invisible.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.Exponential(epsilon=0.5, sensitivity=1, monotone=True)
    >>> votes = {"Aquila": 120, "Cygnus": 95, "Lyra": 94, "Orion": 12}
    >>> {name: round(p, 4) for name, p in m.probabilities(votes).items()}
    {'Aquila': 1.0, 'Cygnus': 0.0, 'Lyra': 0.0, 'Orion': 0.0}
    >>> m.release(votes) in votes
    True
    """

    __slots__ = ()

    _name: ClassVar[str] = "exponential"
    _words: ClassVar[str] = "exponential mechanism"

    @property
    def cost(self) -> Cost:
        """Bounded range, epsilon."""
        from tacit.accounting import Cost

        return Cost.exponential(self.epsilon, adjacency=self.adjacency)

    def _pick(self, steps: NDArray[Any], size: int | None) -> int | NDArray[np.int64]:
        scores, scale = shortened(steps, self.lattice.scale)
        return noise.select(scores, scale) if size is None else noise.select(scores, scale, size)

    def _chances(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        weights = np.exp(-gaps(steps, self.lattice.scale))
        return np.asarray(weights / weights.sum())

    def _best_chance(self, steps: NDArray[Any]) -> float:
        gap = gaps(steps, self.lattice.scale)
        return int((gap == 0).sum()) / float(np.exp(-gap).sum())

    def _worse_than(self, steps: int, candidates: int) -> float:
        # one best, all others just too far: more of the best, or others further away, only help
        others = (candidates - 1) * math.exp(-float((steps + 1) / self.lattice.scale))
        return others / (1 + others)

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """Two candidates, the first rare: its odds move by nearly exp(epsilon)."""
        moved = self.sensitivity
        rare = max(Fraction(1), 4 - self.epsilon)
        behind = rare * (1 if self.monotone else 2) * moved / self.epsilon
        if self.monotone:
            return [0.0, float(behind)], [0.0, float(behind + moved)]
        return [0.0, float(behind)], [-float(moved), float(behind + moved)]
