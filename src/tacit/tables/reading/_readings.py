"""The readings of a table's noisy integers: values and intervals, by free post-processing.

An interval covers the noise of the released integers as often as stated. It does not cover what clipping and
limits drop. A value that is not linear in the integers (a mean, a variance) is tested with a statistic that
is linear in them, whose noise has a known law; its interval holds the values that pass.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tacit.core import HIDDEN, least_shown
from tacit.mechanisms import DiscreteGaussian, LinearNoise, PermuteAndFlip, TopK, mean_sets, variance_sets

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tacit.algebra import BinCounts, MomentSums, Statistic
    from tacit.mechanisms import IntegerMechanism


@dataclass(frozen=True, slots=True)
class Cell:
    """One released number (or picked value) with its interval; None where there is none."""

    value: float | str | bool | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class StepNoise:
    """A statistic and the noise on it: one mechanism, or one for each member whose integers are added."""

    statistic: Statistic
    mechanisms: tuple[IntegerMechanism, ...]

    def half_width(self, confidence: Fraction) -> int:
        """Return an m with P(|noise| <= m) at least the confidence: the smallest, for one mechanism.

        The continuous noises of the same scales bound the sum of several integer noises.
        """
        if len(self.mechanisms) == 1:
            return self.mechanisms[0].half_width(confidence)
        return _half_width_together(self.linear, float(1 - confidence))

    @property
    def linear(self) -> LinearNoise:
        """The noise on each integer, all members added, for the law of weighted sums of the integers."""
        gaussian = [one for one in self.mechanisms if isinstance(one, DiscreteGaussian)]
        return LinearNoise(
            tuple(float(one.scale) for one in self.mechanisms if not isinstance(one, DiscreteGaussian)),
            math.sqrt(sum(float(one.scale) ** 2 for one in gaussian)),
        )

    @property
    def variance(self) -> Fraction | float:
        """The variance of the noise in the sum of a line's integers, all members added."""
        terms = (one.scale**2 * (1 if isinstance(one, DiscreteGaussian) else 2) for one in self.mechanisms)
        return self.statistic.size * sum(terms, Fraction(0))


@lru_cache(maxsize=1024)
def _half_width_together(noise: LinearNoise, failing: float) -> int:
    """Return the half-width of all members' noise on one integer; a function of public numbers alone."""
    return math.ceil(noise.half_width(failing, [1.0]).item())


class Reading(ABC):
    """How one column is read off the noisy integers of a step."""

    __slots__ = ()
    #: What the plan says in place of an expected error that it cannot know.
    unknown: ClassVar[str] = ""
    #: Whether the value is divided by a number of rows: the sum of the integers of a line.
    divided: ClassVar[bool] = False

    @abstractmethod
    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the value of every group, with its interval, also where the noise hides it."""

    def shown(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the value of every group, with its interval; a value that the noise hides is missing."""
        cells = zip(self.read(noise, lines, confidence), lines, strict=True)
        limit = self.hidden_up_to(noise)
        if limit is None:
            return [cell for cell, _ in cells]
        return [replace(cell, value=None) if limit(sum(line)) else cell for cell, line in cells]

    def hidden_up_to(self, noise: StepNoise) -> Callable[[int], bool] | None:
        """Return whether the noise hides a value, by the sum of the integers of its line; None: never."""
        if not self.divided:
            return None
        shown = least_shown(noise.variance)
        return lambda total: total < shown

    def caution(self, noise: StepNoise, size: int | None) -> str:
        """Say from how many rows on the value is shown, where fewer may be asked about."""
        if not self.divided:
            return ""
        rows = math.ceil(least_shown(noise.variance) / noise.statistic.weight)
        text = f"{HIDDEN} with fewer than about {rows:,} rows"
        return text if size is None or size < rows else ""

    @abstractmethod
    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width to expect, or None where it depends on the data or on ``size``."""

    def note(self, noise: StepNoise, confidence: Fraction) -> str:
        """Say why there is no expected error, or what it means."""
        del noise, confidence
        return self.unknown

    def caption(self, noise: StepNoise, confidence: Fraction) -> str:
        """Say what is known of the error of a released value that has no interval."""
        del noise, confidence
        return ""

    def rows_in_words(self, noise: StepNoise, confidence: Fraction) -> str:
        """Say how many rows a value may lie from its position, where it has one."""
        del noise, confidence
        return ""


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
    """A reading of the non-negative parts of `MomentSums` or `SquareSums`.

    In units of what one row adds, they hold the number of rows and the sum of y = (x - low)/(high - low).
    """

    __slots__ = ()

    @staticmethod
    def scaled(noise: StepNoise) -> tuple[LinearNoise, float, float]:
        """Return the noise in units of what one row adds, the lower bound and the width of the range."""
        statistic: MomentSums = noise.statistic  # type: ignore[assignment]
        grid, linear = statistic.grid, noise.linear
        low, width = float(grid.lo * grid.step), float(grid.width * grid.step)
        return linear.over(statistic.weight), low, width

    @staticmethod
    def parts(noise: StepNoise, lines: list[list[int]]) -> NDArray[np.float64]:
        """Return the parts in units of what one row adds, one line for each group."""
        sums = np.array(lines, dtype=np.float64).reshape(-1, noise.statistic.size)
        return sums / float(noise.statistic.weight)


class _LinearInParts(_FromParts):
    """A reading that is itself linear in the parts: its half-width is the same for every group."""

    __slots__ = ()

    @abstractmethod
    def rates(self, noise: StepNoise) -> NDArray[np.float64]:
        """Return what one unit of each part adds to the value."""

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the values."""
        h = self.expected(noise, confidence, None)
        values = (self.parts(noise, lines) @ self.rates(noise)).tolist()
        return [Cell(value, value - h, value + h) for value in values]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float:
        """Return the half-width of the noise."""
        del size
        linear, *_ = self.scaled(noise)
        return float(linear.half_width(float(1 - confidence), self.rates(noise)))


@dataclass(frozen=True, slots=True)
class PartsCount(_LinearInParts):
    """The number of values: the parts' total over the weight."""

    def rates(self, noise: StepNoise) -> NDArray[np.float64]:
        """Count each part fully."""
        return np.ones(noise.statistic.size)


@dataclass(frozen=True, slots=True)
class PartsSum(_LinearInParts):
    """The sum of the values."""

    def rates(self, noise: StepNoise) -> NDArray[np.float64]:
        """Count the parts as values at the lower bound, (in the middle,) and at the upper bound."""
        _, low, width = self.scaled(noise)
        return low + width * np.linspace(0.0, 1.0, noise.statistic.size)


@dataclass(frozen=True, slots=True)
class PartsMean(_FromParts):
    """The mean of the values."""

    divided: ClassVar[bool] = True
    unknown: ClassVar[str] = "depends on the number of rows: give a size to estimate it"

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the means."""
        parts, (linear, low, width) = self.parts(noise, lines), self.scaled(noise)
        sets = mean_sets(parts, linear, float(1 - confidence))
        means = low + width * np.stack(sets, axis=-1)
        statistic: MomentSums = noise.statistic  # type: ignore[assignment]
        bounds = float(statistic.grid.low), float(statistic.grid.high)
        inside = np.clip(means, *bounds)  # the ends of the grid may lie half a step outside
        return [Cell(*ends) for ends in inside.tolist()]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width to expect at most with about ``size`` rows: with the mean at a bound."""
        if size is None:
            return None
        linear, _, width = self.scaled(noise)
        rates = np.linspace(0.0, 1.0, noise.statistic.size)
        return width * min(float(linear.half_width(float(1 - confidence), rates)) / size, 1.0)


@dataclass(frozen=True, slots=True)
class PartsSpread(_FromParts):
    """The variance of the values, of a sample or of a population, or its root."""

    root: bool = False
    sample: bool = True
    divided: ClassVar[bool] = True
    unknown: ClassVar[str] = "depends on the number of rows: give a size to estimate it"

    def read(self, noise: StepNoise, lines: list[list[int]], confidence: Fraction) -> list[Cell]:
        """Read the variances or the standard deviations."""
        parts, (linear, _, width) = self.parts(noise, lines), self.scaled(noise)
        sets = variance_sets(parts, linear, float(1 - confidence), sample=self.sample)
        ends = np.stack(sets, axis=-1)
        return [Cell(*one) for one in (width * np.sqrt(ends) if self.root else width**2 * ends).tolist()]

    def expected(self, noise: StepNoise, confidence: Fraction, size: int | None) -> float | None:
        """Return the half-width to expect at most with about ``size`` rows: with all values at a bound."""
        if size is None:
            return None
        linear, _, width = self.scaled(noise)
        share = min(float(linear.half_width(float(1 - confidence), [0.0, 0.0, 1.0])) / size, 0.25)
        return width * math.sqrt(share) if self.root else width**2 * share


@dataclass(frozen=True, slots=True)
class ChosenValue(Reading):
    """One of the picked values."""

    at: int = 0
    unknown: ClassVar[str] = "one of the candidates; not a number"

    def note(self, noise: StepNoise, confidence: Fraction) -> str:
        """Say which lead is enough for the right choice, before anything is spent."""
        mechanism, statistic = noise.mechanisms[0], noise.statistic
        if len(noise.mechanisms) > 1 or not isinstance(mechanism, PermuteAndFlip | TopK):
            return self.unknown
        lead = Fraction(mechanism.lead_for(confidence, statistic.size)) * statistic.step
        rows = statistic.step == 1 and statistic.word == "cells"
        digit = Fraction(1) if rows else Fraction(10) ** (math.floor(math.log10(lead or 1)) - 3)
        number = f"{float(math.ceil(lead / digit) * digit):,.12g}"  # rounded up
        distance = f"{number} {'row' if lead == 1 else 'rows'}" if rows else f"{number} in the sum of scores"
        sure = f"{float(confidence) * 100:g} %"
        if isinstance(mechanism, TopK) and mechanism.k > 1:
            every = "both" if mechanism.k == 2 else f"all {mechanism.k}"
            return f"{every} are right with {sure} if each leads the next by {distance}"
        return f"a lead of {distance} wins with {sure}"

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
