"""Steps of explainable boosting: the sums of residuals by bin, and the move of one shape by noisy sums."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

GRID = 2**20  # residuals are whole multiples of 1 / GRID
FINE = 2**12  # scores are whole multiples of 1 / FINE
MOST = 16  # scores beyond it count as it


def chances() -> NDArray[np.int64]:
    """Return the chance of the second class for each score on the grid, in steps of 1 / GRID.

    One public table: the chance of a row then follows from its whole score alone, whoever else is there.
    """
    scores = np.arange(-MOST * FINE, MOST * FINE + 1) / FINE
    return np.floor(GRID / (1 + np.exp(-scores))).astype(np.int64)


@dataclass(frozen=True, slots=True)
class BoostingRates:
    """Public facts of the steps: passes over all features, learning rate, noise of a sum of residuals.

    Parameters
    ----------
    noise
        The standard deviation of the noise on a sum of residuals, where one row moves it by at most 1.
    """

    passes: int
    rate: float
    noise: float

    def move(self, sums: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how far each bin of a shape moves: a Newton step, held back where the noise is large."""
        return 4 * self.rate * sums / (np.maximum(counts, 0) + 2 * self.noise)


@dataclass(slots=True)
class BoostingSteps:
    """The sums of `SampledSteps` for boosting: one feature after the other, pass after pass.

    One row is in one bin of the step's feature with a residual between -1 and 1, so it moves the sums of a
    step by at most `GRID`, in L2.
    """

    places: NDArray[np.int64]
    labels: NDArray[np.int64]
    rates: BoostingRates
    counts: Sequence[NDArray[np.float64]]
    intercept: int
    step: int = 0
    _shapes: list[NDArray[np.int64]] = field(default_factory=list)
    _kept: list[NDArray[np.float64]] = field(default_factory=list)
    _scores: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _chances: NDArray[np.int64] = field(default_factory=chances)

    def __post_init__(self) -> None:
        self._shapes = [np.zeros(len(one), np.int64) for one in self.counts]
        self._kept = [np.zeros(len(one)) for one in self.counts]
        self._scores = np.full(len(self.labels), self.intercept, np.int64)

    @property
    def units(self) -> int:
        """The number of rows; every step uses all of them."""
        return len(self.labels)

    def sums(self, sample: NDArray[np.int64]) -> Any:
        """Return the sum of the residuals in each bin of the step's feature, in steps of 1 / GRID."""
        del sample  # the rate is 1
        j = self.step % len(self.counts)
        bound = MOST * FINE
        chance = self._chances[np.clip(self._scores, -bound, bound) + bound]
        residuals = (GRID * self.labels - chance).astype(np.float64)
        return np.bincount(self.places[:, j], residuals, len(self.counts[j])).astype(np.int64)

    def update(self, noisy: Any) -> None:
        """Move the shape of the step's feature; keep it from the second half of the passes on."""
        j, features = self.step % len(self.counts), len(self.counts)
        moved = self.rates.move(np.asarray(noisy, np.float64) / GRID, self.counts[j])
        moves = np.clip(np.rint(moved * FINE), -MOST * FINE, MOST * FINE).astype(np.int64)
        self._shapes[j] += moves
        self._scores += moves[self.places[:, j]]
        first = self.rates.passes // 2
        if self.step // features >= first:
            self._kept[j] += self._shapes[j] / (self.rates.passes - first)
        self.step += 1

    def result(self) -> Any:
        """Return the mean of each shape over the second half of the passes."""
        return [(one / FINE).tolist() for one in self._kept]
