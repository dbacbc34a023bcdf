"""Sum, mean and variance from the noisy parts of `Moments` and `SquareSums`, as value, low and high.

Each part lies within h of its true value. Bounds are those of interval arithmetic over that box.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tacit.tables._statistics import ValueGrid

__all__ = ["mean_of", "spread_of", "sum_of"]

Ends: TypeAlias = tuple[float, float, float]


def sum_of(parts: list[int], h: int, grid: ValueGrid) -> Ends:
    """Read the sum, step * (lo n + sum of y): linear in the parts, so the interval is exact for the box."""
    weight = grid.width if len(parts) == 2 else grid.width**2
    first = 1 if len(parts) == 2 else 2
    rates = [Fraction(grid.lo, weight) + Fraction(i * grid.width, first * weight) for i in range(len(parts))]
    value = sum((r * p for r, p in zip(rates, parts, strict=True)), Fraction(0))
    slack = sum((abs(r) * h for r in rates), Fraction(0))
    return float(grid.step * value), float(grid.step * (value - slack)), float(grid.step * (value + slack))


def mean_of(parts: list[int], h: int, grid: ValueGrid) -> Ends:
    """Read the mean, step * (lo + W times the mean of y/W)."""
    value, low, high = (
        float(grid.step) * (grid.lo + grid.width * _share(parts, h, side)) for side in (0, -1, 1)
    )
    return value, low, high


def spread_of(parts: list[int], h: int, grid: ValueGrid) -> Ends:
    """Read the sample variance from the three parts: E[(y/W)^2] - E[y/W]^2, times n/(n-1)."""
    unit = (float(grid.step) * grid.width) ** 2
    down, up = [max(p - h, 0) for p in parts], [max(p + h, 0) for p in parts]
    square_low = _ratio([up[0] + up[1], down[2]], 0.0)
    square_high = _ratio([down[0] + down[1], up[2]], 1.0)
    mean_low, mean_high = _share(parts, h, -1), _share(parts, h, 1)
    low = max(square_low - mean_high**2, 0.0)
    high = min(square_high - mean_low**2, 0.25)
    value = min(max(_ratio([parts[0] + parts[1], parts[2]], 0.125) - _share(parts, 0, 0) ** 2, 0.0), 0.25)
    count, fewest = sum(parts) / grid.width**2, sum(down) / grid.width**2
    sample = count / (count - 1) if count >= 2 else 1.0
    most = fewest / (fewest - 1) if fewest >= 2 else 2.0
    return value * sample * unit, min(low, value) * unit, max(high, value) * most * unit


def _share(parts: list[int], h: int, side: int) -> float:
    """Return the mean of y/W, the mean of 0, (1/2,) 1 weighted by the parts.

    As it is (``side`` 0), or the least (-1) or the most (1) over the box of width h.
    """
    if side == 0:
        return _ratio([float(p) for p in parts], 0.5)
    down, up = [max(p - h, 0) for p in parts], [max(p + h, 0) for p in parts]
    first, last = (up[0], down[-1]) if side < 0 else (down[0], up[-1])
    fallback = 0.0 if side < 0 else 1.0
    if len(parts) == 2:
        return _ratio([first, last], fallback)
    corners = [_ratio([first, middle, last], fallback) for middle in (down[1], up[1])]
    return min(corners) if side < 0 else max(corners)


def _ratio(parts: list[float] | list[int], fallback: float) -> float:
    total = sum(parts)
    if total <= 0:
        return fallback
    top = sum(i * p for i, p in enumerate(parts)) / (len(parts) - 1)
    return min(max(top / total, 0.0), 1.0)
