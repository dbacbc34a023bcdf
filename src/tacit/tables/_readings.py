"""The readings of a table's noisy integers: values and intervals, by free post-processing.

An interval covers the noise of the released integers with at least the stated probability (joint over the
integers that a value is read off, by splitting what may fail). It does not cover what clipping and limits
drop.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar

from tacit.mechanisms import DiscreteGaussian, Moments, QuantileChoice

if TYPE_CHECKING:
    from fractions import Fraction

    from tacit.mechanisms import IntegerMechanism
    from tacit.tables._statistics import BinCounts, MomentSums, Statistic

__all__ = [
    "Cell", "CellReading", "ChosenQuantile", "ChosenValue", "NumberReading", "PartsCount", "PartsMean",
    "PartsSpread", "PartsSum", "QuantileFromCounts", "Reading", "StepNoise",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """One released number (or picked value) with its interval; None where there is none."""

    value: float | str | bool
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class StepNoise:
    """A statistic and the noise on it: one mechanism, or one for each member whose integers are added."""

    statistic: Statistic
    mechanisms: tuple[IntegerMechanism, ...]

    def half_width(self, confidence: Fraction) -> int:
        """Return an m with P(|noise| <= m) at least the confidence: the smallest, for one mechanism."""
        first, k = self.mechanisms[0], len(self.mechanisms)
        if all(one == first for one in self.mechanisms[1:]):
            return first.half_width(confidence, copies=k)
        each = 1 - (1 - confidence) / k
        return sum(one.half_width(each) for one in self.mechanisms)

    def running_error(self, confidence: Fraction) -> float:
        """Bound all running totals of the noisy integers of a group at once.

        Chan, Shi, Song 2011, Lemma 2.8 for Laplace noise of scales b_i: at most sqrt(8 log(2/p)) times the
        larger of sqrt(sum b_i^2) and b_max sqrt(log(2/p)) with probability 1 - p; it holds for Gaussian noise
        among them too. Of Gaussian noise alone, the sub-Gaussian bound.
        The moment generating function of integer noise lies below that of the continuous law of the same
        scale.
        """
        cells = self.statistic.size
        log = math.log(2 * cells / float(1 - confidence))
        scales = [float(one.scale) for one in self.mechanisms]
        spread = math.sqrt(cells * sum(scale**2 for scale in scales))
        if all(isinstance(one, DiscreteGaussian) for one in self.mechanisms):
            return spread * math.sqrt(2 * log)
        return math.sqrt(8 * log) * max(spread, max(scales) * math.sqrt(log))


class Reading(ABC):
    """How one column is read off the noisy integers of a step."""

    __slots__ = ()
    #: What the plan says in place of an expected error that it cannot know.
    unknown: ClassVar[str] = ""

    @abstractmethod
    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the value of every group, with its interval."""

    @abstractmethod
    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width to expect, or None where it depends on the data or on ``size``."""

    def note(self, noise: StepNoise, confidence: Fraction) -> str:
        """Say why there is no expected error, or what it means."""
        del noise, confidence
        return self.unknown


@dataclass(frozen=True, slots=True)
class CellReading(Reading):
    """One of the counts."""

    at: int = 0

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the counts."""
        h, at = noise.half_width(confidence), self.at
        return [Cell(line[at], line[at] - h, line[at] + h) for line in lines]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width of the noise."""
        del size
        return float(noise.half_width(confidence))


@dataclass(frozen=True, slots=True)
class NumberReading(Reading):
    """The one integer, in the units of the column."""

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the numbers."""
        h, step = noise.half_width(confidence), noise.statistic.step
        if step == 1:
            return [Cell(n, n - h, n + h) for n, *_ in lines]
        return [Cell(float(n * step), float((n - h) * step), float((n + h) * step)) for n, *_ in lines]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width of the noise, in the units of the column."""
        del size
        return float(noise.statistic.step) * noise.half_width(confidence)


class _FromParts(Reading):
    """A reading of the non-negative parts of `MomentSums` or `SquareSums`."""

    __slots__ = ()

    @staticmethod
    def parts(noise: StepNoise, confidence: Fraction) -> tuple[MomentSums, int]:
        """Return the statistic, and the h that every part stays within, all together."""
        statistic: MomentSums = noise.statistic  # type: ignore[assignment]
        return statistic, noise.half_width(1 - (1 - confidence) / statistic.size)

    @classmethod
    def moments(cls, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Moments]:
        """Return what can be read off the parts of each group."""
        statistic, h = cls.parts(noise, confidence)
        grid, weight = statistic.grid, statistic.weight
        low, high = grid.lo * grid.step, grid.hi * grid.step
        return [Moments(line, h, low, high, weight) for line in lines]


@dataclass(frozen=True, slots=True)
class PartsCount(_FromParts):
    """The number of values: the parts' total over the weight."""

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the numbers of values."""
        return [Cell(*one.count()) for one in self.moments(noise, lines, confidence)]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width of all parts together."""
        del size
        statistic, h = self.parts(noise, confidence)
        return statistic.size * h / statistic.weight


@dataclass(frozen=True, slots=True)
class PartsSum(_FromParts):
    """The sum of the values."""

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the sums."""
        return [Cell(*one.sum()) for one in self.moments(noise, lines, confidence)]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width that the answer will have."""
        del size
        (nothing,) = self.moments(noise, [[0] * noise.statistic.size], confidence)
        _, low, high = nothing.sum()
        return (high - low) / 2


@dataclass(frozen=True, slots=True)
class PartsMean(_FromParts):
    """The mean of the values."""

    unknown: ClassVar[str] = "depends on the number of rows: give a size to estimate it"

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the means."""
        return [Cell(*one.mean()) for one in self.moments(noise, lines, confidence)]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width to expect with about ``size`` rows."""
        if size is None:
            return None
        statistic, h = self.parts(noise, confidence)
        return float(statistic.grid.step) * statistic.grid.width * _share_error(statistic, h, size)


@dataclass(frozen=True, slots=True)
class PartsSpread(_FromParts):
    """The variance of the values, of a sample or of a population, or its root."""

    root: bool = False
    sample: bool = True
    unknown: ClassVar[str] = "depends on the number of rows: give a size to estimate it"

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the variances or the standard deviations."""
        ends = [one.variance(sample=self.sample) for one in self.moments(noise, lines, confidence)]
        return [Cell(*(math.sqrt(end) for end in one) if self.root else one) for one in ends]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width to expect with about ``size`` rows."""
        if size is None:
            return None
        statistic, h = self.parts(noise, confidence)
        width = float(statistic.grid.step) * statistic.grid.width
        variance = width**2 * min(3 * _share_error(statistic, h, size), 0.25)
        return math.sqrt(variance) if self.root else variance


def _share_error(statistic: MomentSums, h: int, size: int) -> float:
    return min(h / (statistic.weight * size), 1.0) * (1.0 if statistic.size == 2 else 1.5)


@dataclass(frozen=True, slots=True)
class ChosenValue(Reading):
    """One of the picked values."""

    at: int = 0
    unknown: ClassVar[str] = "one of the candidates; not a number"

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the picked values; a choice has no interval."""
        del confidence
        statistic: BinCounts = noise.statistic  # type: ignore[assignment]
        values = statistic.bins.values
        return [Cell(values[line[self.at]]) for line in lines]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return None: a picked value has no error in numbers."""
        del noise, confidence, size
        return None


class _Quantile(Reading):
    """A quantile among public candidates."""

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

    def note(self, noise: StepNoise, confidence: Fraction) -> str:
        """Say how far the candidate may lie from its rank."""
        rows = math.ceil(self.rank_error(noise, confidence))
        named = "1 row" if rows == 1 else f"{rows:,} rows"
        return f"the {float(self.level):g} quantile, at most {named} from the exact position"


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

    def rank_error(self, noise: StepNoise, confidence: Fraction) -> float:
        """Read the rank error off the mechanism."""
        choice: QuantileChoice = noise.mechanisms[0]  # type: ignore[assignment]
        return choice.rank_error(confidence, candidates=noise.statistic.size)


@dataclass(frozen=True, slots=True)
class QuantileFromCounts(_Quantile):
    """A quantile read off noisy counts of candidates."""

    level: Fraction

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Find the first candidates at which the noisy number of rows reaches the level.

        With every noisy running total within e of the truth, the true quantile lies between the first
        candidates that reach the goal minus and plus (1 + level) e.
        """
        statistic: BinCounts = noise.statistic  # type: ignore[assignment]
        values = [float(v) for v in statistic.bins.values]
        slack = self.rank_error(noise, confidence)

        def first(below: list[int], target: float) -> float:
            return next((v for v, b in zip(values, below, strict=True) if b >= target), values[-1])

        cells = []
        for line in lines:
            below = list(accumulate(line))
            goal = float(self.level) * max(below[-1], 1)
            cells.append(Cell(*(first(below, goal + shift) for shift in (0, -slack, slack))))
        return cells

    def rank_error(self, noise: StepNoise, confidence: Fraction) -> float:
        """Two running totals decide: the one below the candidate and the total."""
        return 2 * noise.running_error(confidence)
