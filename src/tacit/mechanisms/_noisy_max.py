"""The report noisy max mechanism: the candidate with the largest noisy score, and nothing else."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit import noise
from tacit.mechanisms._grid import add
from tacit.mechanisms._noise_laws import LaplaceLaw
from tacit.mechanisms._selection import Selection, gaps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.accounting import Cost

_EXACT_UP_TO = 512  # scales, in steps, up to which probabilities are summed on the lattice itself


class NoisyMax(Selection):
    """Add Laplace noise to every score and report which candidate is largest, never its value.

    Guarantee: epsilon, pure, for the choice alone. The winning value is not part of the output. To learn it,
    release it with a `Laplace` mechanism, at its own cost.

    Argument: fix the noise of all others and the order that breaks ties (a random one, independent of the
    scores). Candidate r wins iff its own noise reaches a threshold, which neighbours move by at most 2D
    steps (D if the scores are monotone), and integer noise of scale t has P(k >= x + 2D) >= exp(-2D/t) P(k
    >= x) with t = 2D/epsilon (Dwork and Roth 2014, claim 3.9). Only under add/remove do monotone scores need
    no factor 2.

    Parameters
    ----------
    epsilon, sensitivity, monotone, adjacency, grid
        As for `Exponential`.

    Examples
    --------
    >>> import tacit as tc
    >>> m = tc.mechanisms.NoisyMax(epsilon=1, sensitivity=1, monotone=True)
    >>> m.release([3, 100, 5])
    1
    """

    __slots__ = ()

    _name: ClassVar[str] = "noisy-max"
    _words: ClassVar[str] = "report noisy max"

    @property
    def cost(self) -> Cost:
        """Pure epsilon."""
        from tacit.accounting import Cost

        return Cost.pure(self.epsilon, adjacency=self.adjacency)

    def _pick(self, steps: NDArray[Any], size: int | None) -> int | NDArray[np.int64]:
        shape = (1 if size is None else size, len(steps))
        drawn = np.asarray(LaplaceLaw(self.lattice.scale).draws(shape))
        noisy = np.asarray(add(np.broadcast_to(steps, shape), drawn))
        best = noisy == noisy.max(axis=1)[:, None]
        place = np.asarray(noise.uniform_below(best.sum(axis=1)))  # ties: the first in a random order
        chosen = np.asarray(np.argmax(np.cumsum(best, axis=1) > place[:, None], axis=1), dtype=np.int64)
        return int(chosen[0]) if size is None else chosen

    def _chances(self, steps: NDArray[Any]) -> NDArray[np.float64]:
        """Sum over the winning value; exact on coarse lattices, to about 10^-6 on fine ones."""
        scale = float(self.lattice.scale)
        unit = max(1.0, scale / _EXACT_UP_TO)
        below = np.minimum(gaps(steps, self.lattice.scale) * scale / unit, 40 * scale / unit)
        a = np.exp(-unit / scale)
        reach = int(40 * scale / unit) + 2
        value = np.arange(-reach, reach + 1, dtype=np.float64)  # of the winner, from the best score
        far = value[None, :] + below[:, None]
        mass = (1 - a) / (1 + a) * a ** np.abs(far)
        at_most = np.where(
            far >= 0, 1 - a ** (np.maximum(far, 0) + 1) / (1 + a), a ** -np.minimum(far, 0) / (1 + a)
        )
        exact = len(steps) // 2 + 1  # nodes that integrate the polynomial of ties exactly; rare ties need few
        nodes, weights = np.polynomial.legendre.leggauss(min(exact, 50 if scale < 64 else 4))
        chances = np.zeros(len(steps))
        for x, w in zip((nodes + 1) / 2, weights / 2, strict=True):  # x: how early in the order of ties
            beaten = at_most - mass * x
            chances += w * (mass * (beaten.prod(axis=0) / beaten)).sum(axis=1)
        return np.asarray(chances / chances.sum())

    def _best_chance(self, steps: NDArray[Any]) -> float:
        return float(self._chances(steps)[steps == steps.max()].sum())

    def _worse_than(self, steps: int, candidates: int) -> float:
        # to win from this far behind, two noises must differ by as much; union over the others
        a = math.exp(-1 / float(self.lattice.scale))
        rest = -math.expm1(-1 / float(self.lattice.scale))
        gap = steps + 1
        per_pair = a**gap * rest / (1 + a) ** 2 * (gap + a / rest + (1 + a * a) / (rest * (1 + a)))
        return min(1.0, (candidates - 1) * per_pair)

    @property
    def worst_pair(self) -> tuple[list[float], list[float]]:
        """Two candidates, the first behind: the farther, the closer to epsilon (and the rarer)."""
        moved = self.sensitivity
        rare = max(Fraction(1), 4 - self.epsilon)
        behind = rare * (1 if self.monotone else 2) * moved / self.epsilon
        if self.monotone:
            return [0.0, float(behind)], [0.0, float(behind + moved)]
        return [0.0, float(behind)], [-float(moved), float(behind + moved)]
