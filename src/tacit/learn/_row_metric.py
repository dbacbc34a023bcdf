"""The metric of rows: how declared bounds, units and a clip become a grid, and rows that are not finite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from tacit.errors import bad_parameter
from tacit.fixes import Set
from tacit.learn._declared_bounds import read_feature_bounds
from tacit.learn._row_grid import RowGrid
from tacit.learn._whole_features import as_numbers
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST = 1e150  # of a distance: its square is still a number
_SMALLEST = 1e-6  # of a clip, as a share of the distance of a corner


def read_grid(
    bounds: Any, clip: Any, features: int, steps: int, units: NDArray[np.float64] | None = None
) -> RowGrid:
    """Read bounds and clip; without a clip it is the distance from the middle of the bounds to a corner."""
    low, high = read_feature_bounds(bounds, features)
    own = np.ones(features) if units is None else units
    with np.errstate(over="ignore"):
        corner = math.sqrt(float((((high - low) / (2 * own)) ** 2).sum()))
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
    return RowGrid(low, high, own, longest, steps)


def finite_features(estimator: Any, X: Any, middle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return features for a prediction; a value that is not a finite number counts as the given middle."""
    check_is_fitted(estimator)
    held = as_numbers(validate_data(estimator, X, reset=False, ensure_all_finite=False, dtype=None))
    return np.ascontiguousarray(np.where(np.isfinite(held), held, middle))  # sums then have one order
