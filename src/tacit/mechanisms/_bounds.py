"""The private bounds mechanism: a clip range found within a stated budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.mechanisms._discrete_laplace import DiscreteLaplace
from tacit.mechanisms._input_rows import rows_of
from tacit.mechanisms._mechanism import read_adjacency, show
from tacit.mechanisms._quantiles import read_candidates
from tacit.mechanisms._row_mechanism import RowMechanism
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.accounting import Adjacency, Cost
    from tacit.exact import Number

_STRAY = Fraction(1, 100)  # the chance that noise makes any empty cell look filled


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Bounds(RowMechanism):
    """Find a range for clipping where none is known beforehand.

    Guarantee: epsilon, pure. The rows are counted in the cells between public candidates, every count gets
    discrete Laplace noise (sensitivity 1 under add/remove, 2 under replace), and the range is read off the
    noisy counts: cells that noise alone could explain are set to zero, and a share `tail` of the rest is
    dropped at each end.

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
        share, near = (
            RealNumber(above=0, below=0.5, instead=0.01).read("tail", tail),
            read_adjacency(adjacency),
        )
        if candidates is None:
            powers = [2.0**k for k in range(-10, 41)]
            candidates = [*(-p for p in powers), 0.0, *powers]
        points = read_candidates(candidates, least=2)
        moved = 1 if near == "add/remove" else 2
        for name, value in (
            ("tail", share),
            ("candidates", points),
            ("adjacency", near),
            ("noise", DiscreteLaplace(epsilon=epsilon, sensitivity=moved, adjacency=near)),
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
        kept = np.where(noisy > self.error(1 - _STRAY), noisy, 0.0)
        top = len(self.candidates) - 1
        if not kept.any():
            return self.candidates[0], self.candidates[top]
        sums = np.cumsum(kept) / kept.sum()
        first = int(np.searchsorted(sums, float(self.tail), side="right"))
        last = int(np.searchsorted(sums, 1 - float(self.tail), side="left"))
        low, high = max(0, first - 1), min(top, last)
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
