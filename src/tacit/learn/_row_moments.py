"""Moments of rows: noisy number, sum and squared length, and the rows around their noisy mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.core import Step
from tacit.learn._row_grid import clipped_rows, lengths_squared, sums_by
from tacit.mechanisms import RoundedGaussian

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from numpy.typing import NDArray


RADIUS = 2**15  # grid steps from the middle to the furthest row
#: How far a row moves count, sum and squared length, in L2, rounded up: each is at most RADIUS.
MOVED_MEANS = math.isqrt(3 * RADIUS**2) + 1


def moment_integers(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the count, in units of RADIUS, the sum of the rows, and the sum of |row|^2 / RADIUS.

    Examples
    --------
    >>> (moment_integers(np.array([[RADIUS, 0], [0, RADIUS // 2]])) / RADIUS).tolist()
    [2.0, 1.0, 0.5, 1.25]
    """
    squared = lengths_squared(rows) // RADIUS
    held = np.concatenate([np.full((len(rows), 1), RADIUS), rows, squared[:, None]], axis=1)
    return np.asarray(sums_by(np.zeros(len(rows), np.int64), held, 1)[0])


def moment_step(
    sigma: Fraction, per_unit: int, *, of: Callable[[Any], NDArray[np.int64]] = lambda rows: rows
) -> Step[Any]:
    """Return the step that measures the moments of all rows; ``of`` finds them in what the steps share."""
    return Step(
        RoundedGaussian(sigma=sigma, sensitivity=MOVED_MEANS * per_unit),
        lambda held, _: moment_integers(of(held)),
        {"statistic": "number of rows, their sum and squared length"},
    )


def centre_and_radius(noisy: Any) -> tuple[float, NDArray[np.int64], int]:
    """Read the noisy moments: the number of rows, the mean, and the root of the total variance, in steps."""
    numbers = np.asarray(noisy, np.float64)
    rows = max(1.0, float(numbers[0]) / RADIUS)
    centre = clipped_rows(
        np.rint(np.clip(numbers[1:-1] / rows, -RADIUS, RADIUS)).astype(np.int64)[None, :], RADIUS
    )
    variance = float(numbers[-1]) * RADIUS / rows - float((centre.astype(np.float64) ** 2).sum())
    radius = math.sqrt(min(max(variance, (RADIUS / 100) ** 2), (2 * RADIUS) ** 2))
    return rows, centre[0], math.ceil(radius)


def least_variance(noisy: Any, deviation: float) -> float:
    """Return the total variance of the rows, in squared steps, less twice the deviation of its noise.

    ``deviation`` is that of the noise on each moment. Unlike the radius, this is not kept in a range.

    Examples
    --------
    >>> rows = np.array([[8, 0], [-8, 0]])
    >>> least_variance(moment_integers(RADIUS // 16 * rows), deviation=0.0) / RADIUS**2
    0.25
    """
    numbers = np.asarray(noisy, np.float64)
    rows = max(1.0, float(numbers[0]) / RADIUS)
    length = float(((numbers[1:-1] / rows) ** 2).sum())
    spoiled = deviation / rows * math.sqrt(2 * RADIUS**2 + 4 * length)
    return float(numbers[-1]) * RADIUS / rows - length - 2 * spoiled


def around(rows: NDArray[np.int64], centre: NDArray[np.int64], radius: int) -> NDArray[np.int64]:
    """Return the way from the centre to each row, clipped to the radius, which has RADIUS steps."""
    way = np.trunc((rows - centre) * (RADIUS / radius)).astype(np.int64)
    return clipped_rows(way, RADIUS)
