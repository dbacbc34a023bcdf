"""Readings of an evaluation: accuracy, AUC and calibration from noisy histograms, with their intervals.

Each measure is a smooth function of the counts of all cells. To first order its error is a sum over cells of
the cell's influence times its error, so the noise adds sigma^2 times the sum of squared influences, and the
sample of patients adds the sum of counts times squared influences. No patient is drawn a second time.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class MeasuredShare:
    """A measure of a model on held-out units, with an interval for the noise and for the sample of units.

    Parameters
    ----------
    value
        The estimate.
    low, high
        The interval for patients like these: noise and sampling together.
    noise
        The half-width that the noise alone would have.
    """

    value: float
    low: float
    high: float
    noise: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True, slots=True)
class HistogramReader:
    """Noisy counts of rows by bin of the score, for the wrong or first class and for the right or second.

    Parameters
    ----------
    edges
        The public edges of the bins.
    counts
        Two lines of noisy counts.
    sigma
        The standard deviation of the noise of a count.
    per_unit
        How many rows one unit can have: the sample of units then varies at most so many times as much.
    confidence
        How often intervals cover.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.float64]
    sigma: float
    per_unit: int
    confidence: Fraction

    @property
    def total(self) -> float:
        """The noisy number of rows, at least 1."""
        return max(1.0, float(self.counts.sum()))

    @property
    def middles(self) -> NDArray[np.float64]:
        """The middle of each bin."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    def share(self, hit: NDArray[np.float64], low: float = 0.0, high: float = 1.0) -> MeasuredShare:
        """Return the mean over all rows of a public number for each cell: accuracy, calibration."""
        value = float((self.counts * hit).sum()) / self.total
        enough = self.counts.sum() > 3 * self.sigma * np.sqrt(self.counts.size)
        return self._measured(value, (hit - value) / self.total, low, high, enough=bool(enough))

    def auc(self) -> MeasuredShare:
        """Return the chance that a row of the second class scores above one of the first; ties count half."""
        first, second = self.counts
        sizes = first.sum(), second.sum()
        enough = min(sizes) > 3 * self.sigma * np.sqrt(len(first))
        negative, positive = first / max(sizes[0], 1.0), second / max(sizes[1], 1.0)
        below = np.cumsum(negative) - negative / 2  # share of the first class below each bin
        above = positive.sum() - np.cumsum(positive) + positive / 2
        value = float((positive * below).sum())
        influence = np.stack([(above - value) / max(sizes[0], 1.0), (below - value) / max(sizes[1], 1.0)])
        return self._measured(value, influence, 0.0, 1.0, enough=bool(enough))

    def outcomes(self) -> tuple[MeasuredShare, ...]:
        """Return the share of the right or second class in each bin; an empty interval is all of 0 to 1."""
        found = []
        for missed, hit in self.counts.T:
            rows = missed + hit
            enough = rows > 3 * self.sigma * np.sqrt(2)
            value = min(max(hit / rows, 0.0), 1.0) if rows > 0 else 0.5
            noise = self.sigma**2 * (value**2 + (1 - value) ** 2) / max(rows, 1.0) ** 2
            sample = self.per_unit * max(value * (1 - value), 1 / max(rows, 4.0)) / max(rows, 1.0)
            found.append(self._interval(value, noise, sample, 0.0, 1.0, enough=bool(enough)))
        return tuple(found)

    def _measured(
        self, value: float, influence: NDArray[np.float64], low: float, high: float, *, enough: bool
    ) -> MeasuredShare:
        """Return a measure with the variance that its influences give."""
        noise = self.sigma**2 * float((influence**2).sum())
        sample = self.per_unit * max(float((self.counts * influence**2).sum()), 0.0)
        return self._interval(value, noise, sample, low, high, enough=enough)

    def _interval(
        self, value: float, noise: float, sample: float, low: float, high: float, *, enough: bool
    ) -> MeasuredShare:
        wide = NormalDist().inv_cdf((1 + float(self.confidence)) / 2)
        if not enough:
            return MeasuredShare(min(max(value, low), high), low, high, high - low)
        half = wide * float(np.sqrt(noise + sample))
        ends = min(max(value - half, low), high), max(min(value + half, high), low)
        return MeasuredShare(min(max(value, low), high), *ends, wide * float(np.sqrt(noise)))
