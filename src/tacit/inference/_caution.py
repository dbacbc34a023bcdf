"""Where an answer about means is wider than it need be, and the rows or the epsilon that would do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.inference._mean_tests import means_apart
from tacit.inference._sampling_intervals import (
    mean_noise,
    moments_of,
    variance_noise,
)

if TYPE_CHECKING:
    from tacit.inference._sampling_intervals import Floats
    from tacit.mechanisms import LinearNoise

_CLEAR_SPREAD = 2.0  # deviations of its noise that the variance by sampling must reach
_SWAMPED = 10.0  # times that deviation from which the noise of the means hides all doubt about the spread
_CLEAR_GROUPS = 6.0  # deviations of its noise that the rows of each compared group must reach
_BORROWED = 0.1  # a part of the variance that may come from the other group
_OWN_ROWS = 100  # rows of a group with which next to none does


def caution_words(parts: Floats, noise: LinearNoise, width: float = 1.0) -> str:
    """Say why an answer about the means of these groups is cautious, and what would do; else nothing.

    Parameters
    ----------
    parts
        The three noisy parts of each group, in rows.
    noise
        The noise on each of them.
    width
        The width of the column's range.
    """
    rows = np.maximum(moments_of(parts)[0], 2.0)
    least = _CLEAR_GROUPS * math.sqrt(3 * noise.variance)
    if len(parts) > 1 and rows.min() < least:
        return (
            f"; cautious, because the noise on the number of rows is large: {_two_digits(least):,} rows in "
            f"each group or {least / rows.min():.2g} times the epsilon would be enough"
        )
    sampling, doubt, noisy = _spreads(parts, rows, noise)
    if sampling < _CLEAR_SPREAD * doubt and noisy < _SWAMPED * doubt:
        per_row = float((1 / rows).sum()) if len(parts) < 3 else 1.0
        clear = width * math.sqrt(_CLEAR_SPREAD * doubt / per_row)
        where = "in the group" if len(parts) == 1 else "in these groups together"
        return (
            "; cautious, because noise hides the spread of the values: exact for a standard deviation of "
            f"{clear:.2g} or more; for one of {clear / 2:.2g}, about {_two_digits(4 * rows.sum()):,} rows "
            f"{where} or 4 times the epsilon would be enough"
        )
    if len(parts) == 2:
        borrowed = float(means_apart(parts[None], noise).borrowed[0]) * sampling
        if borrowed > _BORROWED * (sampling + noisy):
            return (
                "; cautious, because the smaller group has few rows and its spread was read with rows of "
                f"both groups: {_OWN_ROWS} rows in each group would be enough"
            )
    return ""


def _two_digits(x: float) -> int:
    unit = 10 ** max(0, math.floor(math.log10(max(x, 1.0))) - 1)
    return int(math.ceil(x / unit) * unit)


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
