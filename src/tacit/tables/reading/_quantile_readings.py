"""The readings of quantiles: picked candidates, two picks that enclose one, noisy counts of candidates.

The engine counts every value at its nearest candidate. So what is known of a quantile is its candidate, and
an interval reaches over all values that are counted there, from end to end (`candidate_ends`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.algebra import EvenBins, ListedBins
from tacit.core import without_hidden
from tacit.exact import rational
from tacit.report import percent
from tacit.tables.reading._readings import Cell, Reading, StepNoise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tacit.algebra import BinCounts, Bins
    from tacit.core import Cells
    from tacit.mechanisms import LinearNoise, QuantileBracket, QuantileChoice
    from tacit.tables.questions._aggregates import Range


#: The lower and the upper end of every candidate's cell.
CandidateEnds = tuple["NDArray[np.float64]", "NDArray[np.float64]"]
_KNOTS = 33
#: The confidence of the rank error that hides a quantile, whatever the confidence of the release.
_SURE = Fraction(19, 20)


@lru_cache(maxsize=256)
def candidate_ends(bins: Bins, bounds: Range | None) -> CandidateEnds:
    """Return the ends of the values that are counted at each candidate, which is the nearest to them.

    The first and the last cell reach to the bounds, because values beyond them are clipped. Without bounds,
    values beyond the candidates count as the first or the last one, and are clipped to them.

    Examples
    --------
    >>> low, high = candidate_ends(EvenBins(0.0, 2.0, 3), (Fraction(0), Fraction(5)))
    >>> low.tolist(), high.tolist()  # an end moves where an engine rounds the other way
    ([0.0, 0.9999999999999999, 3.0], [1.0, 3.0, 5.0])
    """
    values = [float(value) for value in bins.values]
    low, high = values[0], values[-1]
    if bounds is not None:
        low, high = min(low, float(bounds[0])), max(high, float(bounds[1]))
    if isinstance(bins, EvenBins):
        below, above = _even_middles(bins)
    elif isinstance(bins, ListedBins):
        below = above = np.array(bins.middles)
    else:
        raise TypeError(f"{type(bins).__name__} have no nearest candidate")
    return np.concatenate([[low], below]), np.concatenate([above, [high]])


def _even_middles(bins: EvenBins) -> CandidateEnds:
    """Return the middles between even candidates, each moved by a rounding error where an engine makes one.

    Engines divide in floating point, so a value next to a middle can be counted on the other side of it.
    """
    lowest, step = rational("first", bins.first, zero=True, negative=True), rational("step", bins.width)
    middles = np.array([float(lowest + (i + Fraction(1, 2)) * step) for i in range(bins.size - 1)])
    at, highest = np.arange(bins.size - 1), bins.first + bins.width * (bins.size - 1)

    def cell(x: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = (np.clip(x, bins.first, highest) - bins.first) / bins.width
        return np.asarray(np.floor(inside + 0.5))

    below, above = middles.copy(), middles.copy()
    while (early := cell(np.nextafter(below, -np.inf)) > at).any():
        below[early] = np.nextafter(below[early], -np.inf)
    while (late := cell(np.nextafter(above, np.inf)) <= at).any():
        above[late] = np.nextafter(above[late], np.inf)
    return below, above


def rounding_in_words(bins: Bins) -> str:
    """Say to which candidates values are moved.

    Examples
    --------
    >>> rounding_in_words(EvenBins(0.0, 2.0, 126))
    'candidates 2 apart'
    >>> rounding_in_words(ListedBins((1.0, 2.0, 5.0), (1.5, 3.5)))
    'the nearest of 3 candidates'
    """
    values = np.array([float(value) for value in bins.values])
    gaps = np.diff(values)
    if len(gaps) and np.ptp(gaps) <= 1e-9 * (abs(values).max() + gaps.max()):
        return f"candidates {gaps[0]:.6g} apart"
    return f"the nearest of {len(values):,} candidates"


class _Quantile(Reading):
    """A quantile among public candidates.

    The quantile of level q is the smallest value that at least a share q of the rows do not exceed.
    """

    __slots__ = ()
    level: Fraction

    @abstractmethod
    def rank_error(self, noise: StepNoise, confidence: Fraction) -> float:
        """Bound how many rows the released candidate may lie from its rank."""

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the part of the candidates' range that the rank error makes up of ``size`` rows."""
        if size is None:
            return None
        statistic: BinCounts = noise.statistic  # type: ignore[assignment]
        values = [float(v) for v in statistic.bins.values]
        return min(self.rank_error(noise, confidence) / size, 1.0) * (values[-1] - values[0])

    def hides(self, noise: StepNoise, rows: float) -> bool:
        """Return whether a candidate may be as far as half of the rows from its position."""
        return rows <= 2 * self.rank_error(noise, _SURE)

    def rows_in_words(self, noise: StepNoise, confidence: Fraction) -> str:
        """Return the rank error in words."""
        rows = math.ceil(self.rank_error(noise, confidence))
        return "1 row" if rows == 1 else f"{rows:,} rows"

    @staticmethod
    def rounded(noise: StepNoise) -> str:
        """Say to which candidates the engine moves the values."""
        statistic: BinCounts = noise.statistic  # type: ignore[assignment]
        return f"rounded to {rounding_in_words(statistic.bins)}"

    @staticmethod
    def ends(noise: StepNoise, bounds: Range | None) -> CandidateEnds:
        """Return the ends of the values that are counted at each candidate."""
        statistic: BinCounts = noise.statistic  # type: ignore[assignment]
        return candidate_ends(statistic.bins, bounds)


@dataclass(frozen=True, slots=True)
class ChosenQuantile(_Quantile):
    """A quantile that the exponential mechanism chose."""

    level: Fraction

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the chosen candidates; a choice has no interval."""
        del confidence
        statistic: BinCounts = noise.statistic  # type: ignore[assignment]
        values = statistic.bins.values
        return [Cell(values[line[0]]) for line in lines]

    def note(self, noise: StepNoise, confidence: Fraction) -> str:
        """Say how far the candidate may lie from its rank."""
        return f"the {float(self.level):g} quantile, {self.caption(noise, confidence)}"

    def caption(self, noise: StepNoise, confidence: Fraction) -> str:
        """Say how far the candidate may lie from its rank: its interval is one of ranks, not of values."""
        return (
            f"{self.rounded(noise)}, at most {self.rows_in_words(noise, confidence)} from the exact position"
        )

    def rank_error(self, noise: StepNoise, confidence: Fraction) -> float:
        """Read the rank error off the mechanism."""
        choice: QuantileChoice = noise.mechanisms[0]  # type: ignore[assignment]
        return choice.rank_error(confidence, candidates=noise.statistic.size)


@dataclass(frozen=True, slots=True)
class BracketedQuantile(_Quantile):
    """A quantile between two candidates that the exponential mechanism chose on either side of it."""

    level: Fraction
    bounds: Range | None

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the middle of the two; their cells are an interval for the confidence of their choice."""
        statistic: BinCounts = noise.statistic  # type: ignore[assignment]
        values = [float(v) for v in statistic.bins.values]
        middles = [(values[low] + values[high]) / 2 for low, high in lines]
        if confidence > self._choice(noise).confidence:
            return [Cell(middle) for middle in middles]
        lowest, highest = (ends.tolist() for ends in self.ends(noise, self.bounds))
        chosen = zip(middles, lines, strict=True)
        return [Cell(middle, lowest[low], highest[high]) for middle, (low, high) in chosen]

    def caption(self, noise: StepNoise, confidence: Fraction) -> str:
        """Say that the interval covers the rounding to candidates."""
        if confidence > self._choice(noise).confidence:
            return self.rounded(noise)
        return f"{self.rounded(noise)}; the interval allows for this"

    def rank_error(self, noise: StepNoise, confidence: Fraction) -> float:
        """Read the reach of both ends off the mechanism."""
        del confidence
        return self._choice(noise).rank_error()

    @staticmethod
    def _choice(noise: StepNoise) -> QuantileBracket:
        return noise.mechanisms[0]  # type: ignore[return-value]

    def note(self, noise: StepNoise, confidence: Fraction) -> str:
        """Say how far both ends may lie from the exact position, in rows."""
        coverage = self._choice(noise).confidence
        if confidence > coverage:
            only = percent(float(coverage), 0)
            return (
                f"the two picks enclose the quantile with a confidence of only {only}, so it has no interval"
            )
        quantile_words = f"the {float(self.level):g} quantile"
        reach = self.rows_in_words(noise, confidence)
        return f"two picks enclose {quantile_words}, {self.rounded(noise)}; each is at most {reach} from it"


@dataclass(frozen=True, slots=True)
class QuantileFromCounts(_Quantile):
    """A quantile read off noisy counts of candidates."""

    level: Fraction
    bounds: Range | None

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Find the first candidates at which the noisy number of rows reaches the level.

        The candidate of the true quantile has at least q n rows up to it and at most q n below it. Each side
        is a test of one candidate with a statistic that is linear in the counts, so the candidates that pass
        both hold it as often as stated. The interval is the hull of their cells: the true quantile lies in
        the cell of its candidate. The number of candidates does not enter.
        """
        statistic: BinCounts = noise.statistic  # type: ignore[assignment]
        values = np.array([float(v) for v in statistic.bins.values])
        q, size = float(self.level), statistic.size
        slack = np.array(_rank_slacks(noise.linear, size, q, float(1 - confidence)))
        up_to = np.cumsum(np.array(lines, dtype=np.float64).reshape(-1, size), axis=1)
        rows = up_to[:, -1:]
        below = up_to - np.array(lines, dtype=np.float64).reshape(-1, size)
        enough = up_to >= q * rows - slack[1:]
        enough[:, -1] = True  # all rows lie up to the last candidate, and none below the first
        few = below <= q * rows + slack[:-1]
        few[:, 0] = True
        reached = up_to >= q * np.maximum(rows, 1)
        chosen = np.where(reached.any(axis=1), reached.argmax(axis=1), size - 1)
        possible = enough & few
        possible[np.arange(len(chosen)), chosen] = True
        lowest_index, highest_index = possible.argmax(axis=1), size - 1 - possible[:, ::-1].argmax(axis=1)
        lowest, highest = self.ends(noise, self.bounds)
        readings = np.stack([values[chosen], lowest[lowest_index], highest[highest_index]], axis=-1)
        return [Cell(*one) for one in readings.tolist()]

    def hidden_up_to(self, noise: StepNoise) -> Callable[[int], bool]:
        """Compare the number of rows with the rank error."""
        return lambda rows: self.hides(noise, rows)

    def rank_error(self, noise: StepNoise, confidence: Fraction) -> float:
        """Return how many rows of noise the test of one candidate allows for, at most."""
        return max(_rank_slacks(noise.linear, noise.statistic.size, float(self.level), float(1 - confidence)))

    def note(self, noise: StepNoise, confidence: Fraction) -> str:
        """Say how far the interval reaches, in rows."""
        quantile_words = f"the {float(self.level):g} quantile, {self.rounded(noise)}"
        reach = self.rows_in_words(noise, confidence)
        return f"{quantile_words}; its interval covers an error of {reach} on each side, and the rounding"

    def caption(self, noise: StepNoise, confidence: Fraction) -> str:
        """Say that the interval covers the rounding to candidates."""
        del confidence
        return f"{self.rounded(noise)}; the interval allows for this"


def hide_picks(reading: Reading, noise: StepNoise, cells: Cells, rows: Sequence[Any]) -> Cells:
    """Return a column of picked quantiles without those that the noise hides, by their noisy rows.

    A pick holds no number of rows, so the count of rows that the same answer releases stands for it. Of a
    hidden pick the interval is all that is known: the range of the candidates.
    """
    if not isinstance(reading, ChosenQuantile | BracketedQuantile):
        return cells
    hidden = [reading.hides(noise, own) for own in rows]
    lowest, highest = reading.ends(noise, getattr(reading, "bounds", None))
    low, high = (
        tuple(float(end) if gone and own is None else own for own, gone in zip(part, hidden, strict=True))
        for part, end in ((cells.low, lowest[0]), (cells.high, highest[-1]))
    )
    return without_hidden(replace(cells, low=low, high=high), hidden)


def hidden_pick(reading: Reading, noise: StepNoise, cell: Cell, rows: float) -> Cell:
    """Return a picked quantile, or the range of its candidates alone where the noise hides it."""
    if not isinstance(reading, ChosenQuantile | BracketedQuantile) or not reading.hides(noise, rows):
        return cell
    lowest, highest = reading.ends(noise, getattr(reading, "bounds", None))
    low, high = float(lowest[0]), float(highest[-1])
    return Cell(None, low if cell.low is None else cell.low, high if cell.high is None else cell.high)


@lru_cache(maxsize=256)
def _rank_slacks(noise: LinearNoise, size: int, level: float, failing: float) -> tuple[float, ...]:
    """Return c_j, j = 0 to size, which the noise in (the first j counts) - level times all rarely exceeds.

    Either sign of it fails with half of ``failing``. In units of the standard deviation c is smooth in j, so
    it is computed at some j and interpolated.
    """
    j = np.arange(size + 1, dtype=np.float64)
    knots = np.unique(np.round(np.linspace(0, size, min(size + 1, _KNOTS))))
    weights = np.broadcast_to(np.array([1 - level, level]), (len(knots), 2))

    def spread(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.sqrt(weights * (1 - level) ** 2 + (size - weights) * level**2)

    half_widths = noise.half_width(failing, weights, np.stack([knots, size - knots], axis=-1))
    slack = np.interp(j, knots, half_widths / spread(knots)) * spread(j)
    return tuple(slack.tolist())
