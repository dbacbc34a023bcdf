"""Moments from a mechanism's noisy parts: count, sum, mean and variance, by free post-processing.

A value x in [low, high] becomes y = (x - low) / (high - low) in [0, 1]. It adds to two parts, 1 - y and y, or
to three, (1-y)^2, 2y(1-y) and y^2, each times a whole weight W. No part is negative, and each row adds
exactly W to all of them together, so one budget buys the number of rows with the mean (two parts), and with
the variance too (three). Row mechanisms and tables share this reading.

Confidence sets for a mean and a variance are read off the same noisy parts, in units of what one row adds. A
value is tested with a statistic that is linear in the noisy parts and is zero without noise at the true
value. The law of its noise is known for every number of rows (`LinearNoise`), so the test is exact, and the
set of values that pass covers the truth as often as stated. The interval is the hull of that set and of the
released value, within the public range. Where no value passes (noise has pushed the parts beyond
what any rows could give), the statistics are measured from that of the released value; this only adds values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms.additive._linear_noise import root_between

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.mechanisms.additive._linear_noise import LinearNoise


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
        degree = len(self.parts) - 1
        rates = [
            (self.low + Fraction(i, degree) * (self.high - self.low)) / self.weight for i in range(degree + 1)
        ]
        value = sum(
            (rate * Fraction(part) for rate, part in zip(rates, self.parts, strict=True)), Fraction(0)
        )
        slack = sum((abs(rate) for rate in rates), Fraction(0)) * Fraction(self.half)
        return float(value), float(value - slack), float(value + slack)

    def mean(self) -> _Ends:
        """Return the mean of the values."""
        low, width = float(self.low), float(self.high - self.low)
        value, lowest, highest = self._share()
        return low + width * value, low + width * lowest, low + width * highest

    def variance(self, *, sample: bool = False) -> _Ends:
        """Return the variance, of the rows themselves or (`sample`) of what they are a sample of.

        E[y^2] - E[y]^2 = E[y] (1 - E[y]) - E[y (1-y)]: both forms are bounded over the box of parts, and the
        narrower bounds taken. A sample's is n/(n-1) times it.
        """
        down, up = self._ends()
        mean, low_mean, high_mean = self._share()
        low_square = _ratio((up[0] + up[1], down[2]), 0.0)
        high_square = _ratio((down[0] + down[1], up[2]), 1.0)
        trough = min(low_mean * (1 - low_mean), high_mean * (1 - high_mean))
        peak = (
            0.25
            if low_mean <= 0.5 <= high_mean
            else max(low_mean * (1 - low_mean), high_mean * (1 - high_mean))
        )
        low_middle = _ratio((up[0] + up[2], down[1]), 0.0) / 2
        high_middle = _ratio((down[0] + down[2], up[1]), 1.0) / 2
        low = max(low_square - high_mean**2, trough - high_middle, 0.0)
        high = min(high_square - low_mean**2, peak - low_middle, 0.25)
        value = _ratio((self.parts[0] + self.parts[1], self.parts[2]), 0.125) - mean**2
        value = min(max(value, 0.0), 0.25)
        factor = grow = 1.0
        if sample:
            count, fewest = sum(self.parts) / self.weight, sum(down) / self.weight
            grow = count / (count - 1) if count >= 2 else 1.0
            factor = fewest / (fewest - 1) if fewest >= 2 else 2.0
        square = float(self.high - self.low) ** 2
        return value * grow * square, min(low, value) * square, max(high, value) * factor * square

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


_Array: TypeAlias = NDArray[np.float64]
#: Values and the lower and upper ends of their sets.
_Sets: TypeAlias = tuple[_Array, _Array, _Array]

_NEAR = np.array([0.5, 0.9, 1.0, 1.1, 1.4, 2.0, 4.0, 8.0])  # of the half-width to expect
_FAR = np.arange(1, 9) / 8  # of the way to the bound
_REFINED = 7  # steps of false position towards each end
_SMALLEST = 1e-300
_AT_ONCE = 4096  # groups
#: Rows per scale of the noise below which the mean is profiled, and the part of what may fail that it takes.
_PLUGGED = 20.0
_FOR_MEAN = 1 / 25
_MEANS = 9


def mean_sets(parts: _Array, noise: LinearNoise, failing: float) -> _Sets:
    """Return the mean of y with its set, for each line of two or three noisy parts.

    A mean m is tested with the sum of y minus m times the number of rows: weights i/last - m on the parts.

    Examples
    --------
    >>> from tacit.mechanisms import LinearNoise
    >>> sets = mean_sets(np.array([[60.0, 40.0], [5.0, 3.0]]), LinearNoise((1.0,)), 0.05)
    >>> [ends.round(4).tolist() for ends in sets]
    [[0.4, 0.375], [0.3788, 0.0009], [0.4208, 0.6438]]
    """
    return _in_blocks(parts, lambda block: _mean_sets(block, noise, failing))


def variance_sets(parts: _Array, noise: LinearNoise, failing: float, *, sample: bool = False) -> _Sets:
    """Return the variance of y with its set, for each line of three noisy parts.

    With m the mean, sum (y - m)^2 = n v, or (n - 1) u for the sample variance u: v is tested with
    s2 - 2 m s1 + (m^2 - v) n, u with the same plus u. The statistic is flat in m at its best value, which is
    plugged in. With fewer than 20 rows per scale of the noise, m runs over its own set, at 1/25 of `failing`.

    Examples
    --------
    >>> from tacit.mechanisms import LinearNoise
    >>> sets = variance_sets(np.array([[500.0, 400.0, 100.0]]), LinearNoise((1.0,)), 0.05)
    >>> [ends.round(6).tolist() for ends in sets]
    [[0.01], [0.008435], [0.011559]]
    """
    rows = parts.sum(axis=-1)
    plugged = rows >= _PLUGGED * noise.scale
    ends = np.empty((3, len(parts)))
    for chosen, profiled in ((plugged, False), (~plugged, True)):
        if chosen.any():
            ends[:, chosen] = _in_blocks(
                parts[chosen],
                lambda block, profiled=profiled: _variance_sets(  # type: ignore[misc]
                    block, noise, failing, sample=sample, profiled=profiled
                ),
            )
    return ends[0], ends[1], ends[2]


def _in_blocks(parts: _Array, sets: Callable[[_Array], _Sets]) -> _Sets:
    """Work through the lines in blocks of bounded size."""
    blocks = [sets(parts[i : i + _AT_ONCE]) for i in range(0, len(parts), _AT_ONCE)]
    empty = np.empty(0)
    return tuple(np.concatenate([block[i] for block in blocks]) if blocks else empty for i in range(3))  # type: ignore[return-value]


def _mean_sets(parts: _Array, noise: LinearNoise, failing: float, *, shifted: bool = False) -> _Sets:
    at = np.linspace(0.0, 1.0, parts.shape[-1])
    rows, total = parts.sum(axis=-1), parts @ at
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(rows > 0, np.clip(total / rows, 0.0, 1.0), 0.5)

    def p(m: _Array) -> _Array:
        return noise.tail(total[:, None] - m * rows[:, None] - rest, at - m[..., None])

    rest = (total - value * rows)[:, None] if shifted else np.zeros((len(parts), 1))
    scale = _near(noise, np.sqrt(((at - value[:, None]) ** 2).sum(axis=-1)), rows, failing)
    *ends, empty = passing_hull(p, value, (np.zeros_like(value), np.ones_like(value)), scale, failing)
    if empty.any() and not shifted:
        _, ends[0][empty], ends[1][empty] = _mean_sets(parts[empty], noise, failing, shifted=True)
    return value, ends[0], ends[1]


def _variance_sets(
    parts: _Array,
    noise: LinearNoise,
    failing: float,
    *,
    sample: bool,
    profiled: bool,
    shifted: bool = False,
) -> _Sets:
    rows, sums, squares = parts.sum(axis=-1), parts[:, 1] / 2 + parts[:, 2], parts[:, 2]
    at_rest = failing * (1 - _FOR_MEAN) if profiled else failing
    mean, low, high = (
        _mean_sets(parts, noise, failing * _FOR_MEAN)
        if profiled
        else (np.where(rows > 0, np.clip(sums / np.where(rows > 0, rows, 1.0), 0.0, 1.0), 0.5),) * 3
    )
    share = np.linspace(0.0, 1.0, _MEANS) if profiled else np.zeros(1)
    means = low[:, None] + (high - low)[:, None] * share  # (lines, means)
    fewest = np.maximum(rows - 1.5 * noise.scale * np.log(1 / (failing * _FOR_MEAN)), 2.0)
    grown = fewest / (fewest - 1) if sample else np.ones_like(rows)
    largest = grown[:, None] * (means * (1 - means) if profiled else np.full_like(means, 0.25))
    around = squares[:, None] - 2 * means * sums[:, None] + means**2 * rows[:, None]

    def p(v: _Array) -> _Array:
        best = np.zeros_like(v)
        for i in range(means.shape[1]):
            m, square = means[:, i, None], means[:, i, None] ** 2 - v
            weights = np.stack([square, square - m, square - 2 * m + 1], axis=-1)
            at = around[:, i, None] - v * rows[:, None] + (v if sample else 0.0) - rest[:, i, None]
            best = np.maximum(best, np.where(v <= largest[:, i, None], noise.tail(at, weights), 0.0))
        return best

    positive = rows > 0
    divided = np.where(positive, rows, 1.0)
    value = np.where(positive, np.clip(squares / divided, 0.0, 1.0), 0.125) - mean**2
    value = np.clip(value, 0.0, 0.25)
    if sample:
        some = np.maximum(rows, 2.0)
        value *= np.where(rows >= 1.5, some / (some - 1), 1.0)
    top = np.maximum(largest.max(axis=1), value)
    rest = np.zeros_like(means)
    if shifted:
        rest = around - value[:, None] * (rows[:, None] - (1.0 if sample else 0.0))
    square = mean**2 - value
    norm = np.sqrt(square**2 + (square - mean) ** 2 + (square - 2 * mean + 1) ** 2)
    scale = _near(noise, norm, rows, failing)
    *ends, empty = passing_hull(p, value, (np.zeros_like(value), top), scale, at_rest)
    if empty.any() and not shifted:
        _, ends[0][empty], ends[1][empty] = _variance_sets(
            parts[empty], noise, failing, sample=sample, profiled=profiled, shifted=True
        )
    return value, ends[0], ends[1]


def _near(noise: LinearNoise, norm: _Array, rows: _Array, failing: float) -> _Array:
    """Guess the half-width of a set, from the norm of the weights: a start for the search."""
    width = np.maximum(norm, 1e-3) * noise.scale * np.log(1 / failing)
    return np.asarray(width / np.maximum(rows, 1e-9))


def passing_hull(
    p: Callable[[_Array], _Array],
    value: _Array,
    within: tuple[_Array, _Array],
    scale: _Array,
    failing: float,
) -> tuple[_Array, _Array, NDArray[np.bool_]]:
    """Return the hull of {x in the range: p(x) >= failing} and the value; also where nothing passes."""
    sign = np.array([[-1.0], [1.0]])
    side = np.stack(within, axis=-1)
    reach = np.abs(side - value[:, None])[..., None]  # (lines, sides, 1)

    def level(x: _Array) -> _Array:
        """Return ln p/failing at distances x from the value, (lines, sides, distances)."""
        values = (value[:, None, None] + sign * x).reshape(len(value), -1)
        return np.log(np.maximum(p(values), _SMALLEST) / failing).reshape(x.shape)

    distances = np.broadcast_to(scale[:, None, None] * _NEAR, (len(value), 2, len(_NEAR)))
    steps = np.sort(np.minimum(np.concatenate([distances, reach * _FAR], axis=-1), reach), axis=-1)
    steps = np.concatenate([np.zeros_like(reach), steps], axis=-1)
    levels = level(steps)
    passed = levels >= 0
    end = steps.shape[-1] - 1
    farthest = (end - np.argmax(passed[..., ::-1], axis=-1))[..., None]
    after = np.minimum(farthest + 1, end)
    ends = np.take_along_axis(steps, farthest, -1), np.take_along_axis(steps, after, -1)
    heights = np.take_along_axis(levels, farthest, -1), np.take_along_axis(levels, after, -1)
    roots = root_between(level, ends, heights, steps=_REFINED)
    roots = np.where(passed.any(axis=-1, keepdims=True), roots, 0.0)
    hull = np.where(roots >= reach, side[..., None], value[:, None, None] + sign * roots)[..., 0]
    return hull[:, 0], hull[:, 1], np.asarray(~passed.any(axis=(1, 2)))
