"""Read values and intervals off noisy integers: post-processing, free.

An interval covers the noise of the released integers with at least the stated probability (joint over the
integers that a value is read off, by splitting what may fail); it does not cover what clipping and limits
left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING

from tacit.tables.laws import half_width

if TYPE_CHECKING:
    from tacit.tables.budgeting import Share
    from tacit.tables.lowering import Reading
    from tacit.tables.statistics import Grid

__all__ = ["Cell", "expected_error", "rank_error", "read_cell"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One released number (or picked value) with its interval; None where there is none."""

    value: float | str | bool
    low: float | None = None
    high: float | None = None


def read_cell(reading: Reading, share: Share, noisy: list[int], confidence: Fraction) -> Cell:
    """Read one cell of the answer."""
    statistic = share.step.statistic
    match reading.function:
        case "pick":
            return Cell(statistic.values[noisy[reading.at]])
        case "quantile":
            return Cell(statistic.values[noisy[0]])
        case "level":
            return _from_cdf(reading, share, noisy, confidence)
        case "cell":
            h = half_width(share, confidence)
            return Cell(noisy[reading.at], noisy[reading.at] - h, noisy[reading.at] + h)
        case _ if statistic.kind in {"moments", "squares"} and statistic.grid is not None:
            h = half_width(share, 1 - (1 - confidence) / len(noisy))
            return _moment(reading.function, noisy, h, statistic.grid)
        case _:
            h = half_width(share, confidence)
            step = statistic.grid.step if statistic.grid else Fraction(1)
            if step == 1:
                return Cell(noisy[0], noisy[0] - h, noisy[0] + h)
            return Cell(float(noisy[0] * step), float((noisy[0] - h) * step), float((noisy[0] + h) * step))


def _moment(function: str, parts: list[int], h: int, grid: Grid) -> Cell:
    """Read count, sum, mean, variance or std off the parts; each part lies within h of its true value."""
    low, high = [p - h for p in parts], [p + h for p in parts]
    weight = grid.width if len(parts) == 2 else grid.width**2
    match function:
        case "count":
            return Cell(*(sum(p) / weight for p in (parts, low, high)))
        case "sum":
            return Cell(*_sum(parts, h, grid, weight))
        case "mean":
            shares = [_share(parts, h, s) for s in (0, -1, 1)]
            return Cell(*(float(grid.step) * (grid.lo + grid.width * s) for s in shares))
        case _:
            return _spread(function, parts, h, grid)


def _sum(parts: list[int], h: int, grid: Grid, weight: int) -> tuple[float, float, float]:
    """Read the sum, step * (lo n + sum of y).

    Each is linear in the parts, so the interval is exact for the box.
    """
    first = 1 if len(parts) == 2 else 2
    rates = [Fraction(grid.lo, weight) + Fraction(i * grid.width, first * weight) for i in range(len(parts))]
    value = sum((r * p for r, p in zip(rates, parts, strict=True)), Fraction(0))
    slack = sum((abs(r) * h for r in rates), Fraction(0))
    return float(grid.step * value), float(grid.step * (value - slack)), float(grid.step * (value + slack))


def _share(parts: list[int], h: int, side: int) -> float:
    """Mean of y/W, the mean of 0, (1/2,) 1 weighted by the parts.

    As it is, or least or most over the box of width h.
    """
    if side == 0:
        return _ratio([float(p) for p in parts], 0.5)
    down, up = [max(p - h, 0) for p in parts], [max(p + h, 0) for p in parts]
    first, last = (up[0], down[-1]) if side < 0 else (down[0], up[-1])
    fallback = 0.0 if side < 0 else 1.0
    corners = [
        _ratio([first, *middle, last], fallback)
        for middle in ([], *([x] for x in (down[1], up[1])))[len(parts) > 2 :]
    ]
    if len(parts) == 2:
        return corners[0]
    return min(corners) if side < 0 else max(corners)


def _ratio(parts: list[float] | list[int], fallback: float) -> float:
    total = sum(parts)
    if total <= 0:
        return fallback
    top = sum(i * p for i, p in enumerate(parts)) / (len(parts) - 1)
    return min(max(top / total, 0.0), 1.0)


def _spread(function: str, parts: list[int], h: int, grid: Grid) -> Cell:
    """Sample variance from the three parts.

    E[(y/W)^2] - E[y/W]^2, times n/(n-1); bounds by interval arithmetic.
    """
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
    return _rooted(function, value * sample * unit, min(low, value) * unit, max(high, value) * most * unit)


def _rooted(function: str, value: float, low: float, high: float) -> Cell:
    if function == "std":
        return Cell(math.sqrt(value), math.sqrt(low), math.sqrt(high))
    return Cell(value, low, high)


def _from_cdf(reading: Reading, share: Share, counts: list[int], confidence: Fraction) -> Cell:
    """Find the first candidate at which the noisy number of rows reaches the level.

    With every noisy running total within e of the truth, the true quantile lies between the first
    candidates that reach the goal minus and plus (1 + level) e.
    """
    values = [float(v) for v in share.step.statistic.values]
    below = list(accumulate(counts))
    slack = 2 * _running_error(share, confidence)
    goal = float(reading.level) * max(below[-1], 1)

    def first(target: float) -> float:
        return next((v for v, b in zip(values, below, strict=True) if b >= target), values[-1])

    return Cell(first(goal), first(goal - slack), first(goal + slack))


def _running_error(share: Share, confidence: Fraction) -> float:
    """Bound all running totals of k noisy cells at once.

    Chan, Shi, Song 2011, Lemma 2.8 for Laplace; sub-Gaussian otherwise.

    The moment generating function of integer noise lies below that of the continuous law of the same scale.
    """
    log = math.log(2 * share.step.statistic.bins / float(1 - confidence))
    cells = share.step.statistic.bins * share.copies
    if share.law == "gaussian":
        return float(share.scale) * math.sqrt(2 * cells * log)
    return float(share.scale) * math.sqrt(8 * log) * max(math.sqrt(cells), math.sqrt(log))


def expected_error(reading: Reading, share: Share, confidence: Fraction, size: int | None) -> float | None:
    """Return the half-width to expect of a column, or None where it depends on the data or on ``size``."""
    statistic = share.step.statistic
    parts = statistic.size
    match reading.function:
        case "pick":
            return None
        case "quantile" | "level":
            if size is None:
                return None
            values = [float(v) for v in statistic.values]
            return min(rank_error(reading, share, confidence) / size, 1.0) * (values[-1] - values[0])
        case "cell":
            return float(half_width(share, confidence))
        case _ if statistic.grid is None or statistic.kind == "sum":
            step = float(statistic.grid.step) if statistic.grid else 1.0
            return step * half_width(share, confidence)
        case function:
            grid = statistic.grid
            h = half_width(share, 1 - (1 - confidence) / parts)
            weight = statistic.weight
            if function == "count":
                return parts * h / weight
            if function == "sum":
                _, low, high = _sum([0] * parts, h, grid, weight)  # the half-width that the answer will have
                return (high - low) / 2
            if size is None:
                return None
            share_error = min(h / (weight * size), 1.0) * (1.0 if parts == 2 else 1.5)
            width = float(grid.step) * grid.width
            if function == "mean":
                return width * share_error
            variance = width**2 * min(3 * share_error, 0.25)
            return variance if function == "variance" else math.sqrt(variance)


def rank_error(reading: Reading, share: Share, confidence: Fraction) -> float:
    """Bound how many rows a released quantile may lie from its rank, with at least the stated probability.

    Selection: P(score < best - scale (ln K + t)) <= exp(-t) (McSherry and Talwar 2007); scores count rows
    times the level's denominator, at least half of it per row of rank.
    """
    if reading.function == "level":
        return 2 * _running_error(share, confidence)
    cells = share.step.statistic.bins
    failing = float(1 - confidence)
    score = float(share.scale) * (math.log(cells) + math.log(1 / failing))
    return score / reading.level.denominator
