"""Moments from a mechanism's noisy parts: count, sum, mean and variance, by free post-processing.

A value x in [low, high] becomes y = (x - low) / (high - low) in [0, 1]. It adds to two parts, 1 - y and y, or
to three, (1-y)^2, 2y(1-y) and y^2, each times a whole weight W. No part is negative, and each row adds
exactly W to all of them together, so one budget buys the number of rows with the mean (two parts), and with
the variance too (three). Row mechanisms and tables share this reading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A value and the two ends of its interval.
_Ends: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Moments:
    """Two or three noisy parts, each within `half` of its true value, and what follows from them.

    Every reading is (value, low, high): the interval holds what the exact parts would give, for all parts
    within `half` of the noisy ones.

    Parameters
    ----------
    parts
        The noisy sums of (1-y, y), or of ((1-y)^2, 2y(1-y), y^2), times `weight`.
    half
        How far each part may lie from its true value.
    low, high
        The public bounds of the values.
    weight
        What one row adds to all parts together.

    Examples
    --------
    >>> ten_rows = Moments((60, 20), 2, 0, 8, weight=8)
    >>> ten_rows.count(), ten_rows.sum(), ten_rows.mean()
    ((10.0, 9.5, 10.5), (20.0, 18.0, 22.0), (2.0, 1.8, 2.2))
    """

    parts: Sequence[float]
    half: float
    low: Fraction | int
    high: Fraction | int
    weight: int = 1

    def count(self) -> _Ends:
        """Return the number of rows."""
        total, slack = sum(self.parts), len(self.parts) * self.half
        return total / self.weight, (total - slack) / self.weight, (total + slack) / self.weight

    def sum(self) -> _Ends:
        """Return the sum of the values: linear in the parts, so the interval is exact for their box."""
        last = len(self.parts) - 1
        rates = [
            (self.low + Fraction(i, last) * (self.high - self.low)) / self.weight for i in range(last + 1)
        ]
        value = sum(
            (rate * Fraction(part) for rate, part in zip(rates, self.parts, strict=True)), Fraction(0)
        )
        slack = sum((abs(rate) for rate in rates), Fraction(0)) * Fraction(self.half)
        return float(value), float(value - slack), float(value + slack)

    def mean(self) -> _Ends:
        """Return the mean of the values."""
        low, width = float(self.low), float(self.high - self.low)
        value, least, most = self._share()
        return low + width * value, low + width * least, low + width * most

    def variance(self, *, sample: bool = False) -> _Ends:
        """Return the variance, of the rows themselves or (`sample`) of what they are a sample of.

        E[y^2] - E[y]^2 = E[y] (1 - E[y]) - E[y (1-y)]: both forms are bounded over the box of parts, and the
        narrower bounds taken. A sample's is n/(n-1) times it.
        """
        down, up = self._ends()
        mean, first, last = self._share()
        low_square = _ratio((up[0] + up[1], down[2]), 0.0)
        high_square = _ratio((down[0] + down[1], up[2]), 1.0)
        trough = min(first * (1 - first), last * (1 - last))
        peak = 0.25 if first <= 0.5 <= last else max(first * (1 - first), last * (1 - last))
        low_middle = _ratio((up[0] + up[2], down[1]), 0.0) / 2
        high_middle = _ratio((down[0] + down[2], up[1]), 1.0) / 2
        low = max(low_square - last**2, trough - high_middle, 0.0)
        high = min(high_square - first**2, peak - low_middle, 0.25)
        value = _ratio((self.parts[0] + self.parts[1], self.parts[2]), 0.125) - mean**2
        value = min(max(value, 0.0), 0.25)
        most = grow = 1.0
        if sample:
            count, fewest = sum(self.parts) / self.weight, sum(down) / self.weight
            grow = count / (count - 1) if count >= 2 else 1.0
            most = fewest / (fewest - 1) if fewest >= 2 else 2.0
        square = float(self.high - self.low) ** 2
        return value * grow * square, min(low, value) * square, max(high, value) * most * square

    def std(self, *, sample: bool = False) -> _Ends:
        """Return the standard deviation."""
        value, low, high = self.variance(sample=sample)
        return math.sqrt(value), math.sqrt(low), math.sqrt(high)

    def _ends(self) -> tuple[list[float], list[float]]:
        """Return the least and the most that each part can be; none is negative."""
        return [max(p - self.half, 0) for p in self.parts], [max(p + self.half, 0) for p in self.parts]

    def _share(self) -> _Ends:
        """Return the mean of y, that of 0, (1/2) and 1 weighted by the parts; it is extreme at corners."""
        down, up = self._ends()
        if len(self.parts) == 2:
            low, high = _ratio((up[0], down[1]), 0.0), _ratio((down[0], up[1]), 1.0)
        else:
            low = min(_ratio((up[0], middle, down[2]), 0.0) for middle in (down[1], up[1]))
            high = max(_ratio((down[0], middle, up[2]), 1.0) for middle in (down[1], up[1]))
        return _ratio(self.parts, 0.5), low, high


def _ratio(parts: Sequence[float], fallback: float) -> float:
    """Return the mean of 0, ..., 1 weighted by the parts, or the fallback where their sum is not positive."""
    total = sum(parts)
    if total <= 0:
        return fallback
    top = parts[1] / 1 if len(parts) == 2 else (parts[1] + 2 * parts[2]) / 2
    return min(max(top / total, 0.0), 1.0)
