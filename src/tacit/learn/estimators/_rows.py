"""Rows on a grid: each row of features becomes whole numbers whose length is at most a public radius.

Declared bounds, units and a clip make the grid. A row that is not finite counts as nothing. The moments of
rows are their noisy number, sum and squared length, and then rows are measured around their noisy mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.core import Step
from tacit.errors import bad_parameter
from tacit.fixes import Set
from tacit.learn.estimators._declared_bounds import read_feature_bounds
from tacit.learn.estimators._whole_features import as_numbers
from tacit.mechanisms import RoundedGaussian
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from numpy.typing import NDArray


RADIUS = 2**15  # grid steps from the middle to the furthest row
#: How far a row moves count, sum and squared length, in L2, rounded up: each is at most RADIUS.
MOVED_MEANS = math.isqrt(3 * RADIUS**2) + 1


@dataclass(frozen=True, slots=True)
class RowGrid:
    """Public facts that turn features into whole numbers: bounds, what one unit of a feature is, the radius.

    Parameters
    ----------
    low, high
        Declared bounds; values beyond them count as the bound.
    units
        How many units of each feature have the same weight: 1 for all keeps the features' own units.
    clip
        The longest row around the middle of the bounds, in these units; longer rows are shortened.
    steps
        How many grid steps the longest row has.

    Examples
    --------
    >>> grid = RowGrid(np.zeros(2), np.full(2, 10.0), np.ones(2), 5.0, 1000)
    >>> rows, good = grid.whole(np.array([[10.0, 5.0], [99.0, 10.0], [np.nan, 0.0]]))
    >>> rows.tolist(), good.tolist()
    ([[1000, 0], [706, 706], [0, 0]], [True, True, False])
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    units: NDArray[np.float64]
    clip: float
    steps: int

    @property
    def middle(self) -> NDArray[np.float64]:
        """The middle of the bounds."""
        return (self.low + self.high) / 2

    def whole(self, features: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return whole rows, and which rows count: one with a feature that is not finite does not.

        Each row is a function of itself alone: operations are elementwise, and sums are of whole numbers.
        """
        good = np.asarray(np.isfinite(features).all(axis=1), np.bool_)
        clipped = np.clip(np.where(good[:, None], features, self.middle), self.low, self.high)
        max_steps = math.isqrt(2**62 // max(1, len(self.low)))
        with np.errstate(over="ignore"):
            scaled = np.trunc((clipped - self.middle) / self.units * (self.steps / self.clip))
        return clipped_rows(np.clip(scaled, -max_steps, max_steps).astype(np.int64), self.steps), good

    def features(self, rows: Any) -> NDArray[np.float64]:
        """Return rows of whole or real grid steps in the units of the features."""
        features: NDArray[np.float64] = self.middle + np.asarray(rows) * self.units * (self.clip / self.steps)
        return features


def lengths_squared(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the squared length of each row, exactly."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows), np.int64)


def clipped_rows(rows: NDArray[np.int64], longest: int) -> NDArray[np.int64]:
    """Shorten rows that are longer than this, toward zero; whole numbers prove that none is longer after it.

    Examples
    --------
    >>> clipped_rows(np.array([[3, 4], [30, 40]]), 5).tolist()
    [[3, 4], [2, 3]]
    """
    squared = lengths_squared(rows)
    far = squared > longest**2
    if far.any():
        rows = rows.copy()
        scale = longest / (np.sqrt(squared[far].astype(np.float64)) + 1)
        rows[far] = np.trunc(rows[far] * scale[:, None]).astype(np.int64)
        rows[lengths_squared(rows) > longest**2] = 0  # never, by the margin above: a second lock
    return rows


def sums_by(group: NDArray[np.int64], rows: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """Return the sum of the rows of each group, exactly: floats of whole numbers below 2^53 are exact."""
    columns = [np.bincount(group, rows[:, j].astype(np.float64), groups) for j in range(rows.shape[1])]
    return np.stack(columns, axis=1).astype(np.int64)


#: Weights of squares and of products of two columns: 41^2 <= 2 * 29^2, so that the weighted vector of a row's
#: products is at most 29 times the square of the row's norm.
SQUARE, PRODUCT = 29, 41


def weighted_moments(rows: NDArray[Any], longest: int) -> NDArray[np.int64]:
    """Return the weighted upper triangle of the sum of the products of all pairs of columns, exactly.

    Sums of a block stay below 2^53, so they are exact in any order; blocks are added as whole numbers of any
    length. Numbers beyond 2^62 count as 2^62, which brings no two sums further apart.

    Parameters
    ----------
    rows
        Whole numbers, one line for each row.
    longest
        No row is longer than a few times this.

    Examples
    --------
    >>> weighted_moments(np.array([[1, 2], [3, 0]]), 3).tolist()
    [290, 82, 116]
    """
    block = min(2**16, 2**52 // longest**2)
    above = np.triu_indices(rows.shape[1])
    total = np.zeros(len(above[0]), dtype=np.int64 if len(rows) * longest**2 < 2**54 else object)
    for start in range(0, len(rows), block):
        part = rows[start : start + block].astype(np.float64)
        total = total + (part.T @ part)[above].astype(np.int64)
    weighted = total * np.where(above[0] == above[1], SQUARE, PRODUCT)
    return np.asarray(np.clip(weighted, -(2**62), 2**62), dtype=np.int64)


def moment_matrix(noisy: Any, columns: int) -> NDArray[np.float64]:
    """Return the symmetric matrix of noisy sums of products, without their weights.

    Examples
    --------
    >>> moment_matrix([29 * 5, 41 * 4, 0], 2).tolist()
    [[5.0, 4.0], [4.0, 0.0]]
    """
    above = np.triu_indices(columns)
    matrix = np.zeros((columns, columns))
    matrix[above] = np.asarray(noisy, dtype=np.float64) / np.where(above[0] == above[1], SQUARE, PRODUCT)
    return matrix + np.triu(matrix, 1).T


_LARGEST = 1e150  # of a distance: its square is still a number
_SMALLEST = 1e-6  # of a clip, as a share of the distance of a corner


def read_grid(
    bounds: Any, clip: Any, features: int, steps: int, units: NDArray[np.float64] | None = None
) -> RowGrid:
    """Read bounds and clip; without a clip it is the distance from the middle of the bounds to a corner."""
    low, high = read_feature_bounds(bounds, features)
    scales = np.ones(features) if units is None else units
    with np.errstate(over="ignore"):
        corner = math.sqrt(float((((high - low) / (2 * scales)) ** 2).sum()))
    if not 1 / _LARGEST < corner < _LARGEST:
        raise bad_parameter(
            "bounds", "neither extremely wide nor extremely narrow", bounds, why="rows need a finite length",
            fix=Set(bounds=(0, 100)),
        )  # fmt: skip
    why = (
        "almost every row would be shortened to less than a millionth of the distance from the middle of the "
        "bounds to a corner"
    )
    far = RealNumber(least=float(f"{corner * _SMALLEST:.1g}"), why=why, instead=float(f"{corner:.2g}"))
    longest = corner if clip is None else min(corner, float(far.read("clip", clip)))
    return RowGrid(low, high, scales, longest, steps)


def finite_features(estimator: Any, X: Any, middle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return features for a prediction; a value that is not a finite number counts as the given middle."""
    check_is_fitted(estimator)
    features = as_numbers(validate_data(estimator, X, reset=False, ensure_all_finite=False, dtype=None))
    return np.ascontiguousarray(np.where(np.isfinite(features), features, middle))  # sums then have one order


def moment_integers(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the count, in units of RADIUS, the sum of the rows, and the sum of |row|^2 / RADIUS.

    Examples
    --------
    >>> (moment_integers(np.array([[RADIUS, 0], [0, RADIUS // 2]])) / RADIUS).tolist()
    [2.0, 1.0, 0.5, 1.25]
    """
    squared = lengths_squared(rows) // RADIUS
    columns = np.concatenate([np.full((len(rows), 1), RADIUS), rows, squared[:, None]], axis=1)
    return np.asarray(sums_by(np.zeros(len(rows), np.int64), columns, 1)[0])


def moment_step(
    sigma: Fraction, per_unit: int, *, of: Callable[[Any], NDArray[np.int64]] = lambda rows: rows
) -> Step[Any]:
    """Return the step that measures the moments of all rows; ``of`` finds them in what the steps share."""
    return Step(
        RoundedGaussian(sigma=sigma, sensitivity=MOVED_MEANS * per_unit),
        lambda source, _: moment_integers(of(source)),
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
