"""Where an answer about means is valid but wider than it need be, and the rows or the epsilon that would do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.inference._mean_tests import means_apart
from tacit.inference._sampling_intervals import (
    mean_noise,
    moments_of,
    quantile_above_0,
    variance_noise,
)

if TYPE_CHECKING:
    from tacit.inference._sampling_intervals import Floats
    from tacit.mechanisms import LinearNoise

__all__ = ["caution_words", "few_rows_words"]

_CLEAR_SPREAD = 2.0  # deviations of its noise that the variance by sampling must reach
_SWAMPED = 10.0  # times that deviation from which the noise of the means hides all doubt about the spread
_CLEAR_GROUPS = 6.0  # deviations of its noise that the rows of each compared group must reach
_BORROWED = 0.25  # a part of the variance that may come from the other group
_OWN_ROWS = 100  # rows of a group with which next to none does
_SURELY = 0.25  # the quantile of the likely variances for which rows and epsilon are named
_CARRIED = 10.0  # rows that must be able to carry a mean


def caution_words(parts: Floats, noise: LinearNoise) -> str:
    """Say why an answer about the means of these groups is cautious, and what would do; else nothing.

    Parameters
    ----------
    parts
        The three noisy parts of each group, in rows.
    noise
        The noise on each of them.
    """
    rows = np.maximum(moments_of(parts)[0], 2.0)
    least = _CLEAR_GROUPS * math.sqrt(3 * noise.variance)
    if len(parts) > 1 and rows.min() < least:
        return _said("the noise on the number of rows is large", least, "in each group", least / rows.min())
    sampling, doubt, noisy = _spreads(parts, rows, noise)
    if sampling < _CLEAR_SPREAD * doubt and noisy < _SWAMPED * doubt:
        seen = quantile_above_0(np.array(sampling), np.array(doubt), _SURELY)
        times = _CLEAR_SPREAD * doubt / float(seen)
        where = "in the group" if len(parts) == 1 else "in these groups together"
        return _said("noise hides the spread of the values", rows.sum() * times, where, times)
    if len(parts) == 2 and means_apart(parts[None], noise).borrowed[0] > _BORROWED:
        return (
            "; cautious, because the smaller group is small and its spread was read with rows of both: "
            f"{_OWN_ROWS} rows in each group would do"
        )
    return ""


def _said(why: str, rows: float, where: str, times: float) -> str:
    return (
        f"; cautious, because {why}: about {_two_digits(rows):,} rows {where}, {times:.2g} times the epsilon "
        "or narrower bounds would do"
    )


def _two_digits(x: float) -> int:
    unit = 10 ** max(0, math.floor(math.log10(max(x, 1.0))) - 1)
    return math.ceil(x / unit) * unit


def _spreads(parts: Floats, n: Floats, noise: LinearNoise) -> tuple[float, float, float]:
    """Return the variance by sampling as it was read, the deviation of its noise, and the noise of the means.

    Of one or two groups these are the variances of the mean or the difference; of more groups those of one
    row, as the analysis of variance pools them.
    """
    rows, total, squares = moments_of(parts)
    mean = np.full(len(n), np.clip(total.sum() / n.sum(), 0.0, 1.0))
    v = (squares - 2 * mean * total + mean**2 * rows) / n
    around = variance_noise(n, mean, np.clip(v, 0.0, mean * (1 - mean)), noise)
    weights = 1 / n if len(n) < 3 else n / n.sum()
    noisy = mean_noise(n, mean, noise)
    return (
        float((weights * v).sum()),
        math.sqrt(float((weights**2 * around).sum())),
        float(noisy.sum() if len(n) < 3 else (n * noisy).mean()),
    )


def few_rows_words(parts: Floats, noise: LinearNoise) -> str:
    """Warn where the values are so far from most others that few rows carry a mean; else nothing.

    Of values in [0, 1] with the mean m and the mean square q, at most the share m^2/q lies above q/m: this is
    what a value at 0 and one at q/m would give. It is the same from the upper bound. Values that are rare and
    large, while the others lie away from the bound, are not seen: no function of mean and square sees them.

    Parameters
    ----------
    parts
        The three noisy parts of each group, in rows.
    noise
        The noise on each of them.
    """
    rows, total, squares = moments_of(parts)
    n, clear = np.maximum(rows, 2.0), 3 * math.sqrt(noise.variance)
    low = np.where(squares > clear, np.maximum(total, 0.0) ** 2 / np.maximum(squares, 1e-9), n)
    rest, far = n - total, n - 2 * total + squares
    high = np.where(far > clear, np.maximum(rest, 0.0) ** 2 / np.maximum(far, 1e-9), n)
    fewest = float(np.minimum(low, high).min())
    if fewest >= _CARRIED:
        return ""
    return (
        f"; about {max(fewest, 1.0):.0f} rows carry the mean, so it may err more often than it says, as exact "
        "statistics would: a proportion of large values is safer"
    )
