"""Before the noise: a range, and a meaning for what is missing. After it: truncation and folding, free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational
from tacit.mechanisms._row_values import as_floats

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

__all__ = ["clip", "fold", "read_bounds", "truncate"]


def read_bounds(bounds: tuple[Number, Number] | None) -> tuple[Fraction, Fraction]:
    """Read public bounds (low, high); none at all is the error that asks for them."""
    if bounds is None:
        raise TacitError(
            "missing-bounds",
            "the values have no bounds, so one person could move the answer by any amount",
            why="sensitivity is infinite, and no finite noise hides an infinite change",
            fix="bounds=(0, 200_000), a range known without looking at the data",
        )
    if len(bounds) != 2:
        raise bad_parameter("bounds", "a pair (low, high)", bounds, fix="bounds=(0, 100)")
    low = rational("bounds[0]", bounds[0], zero=True, negative=True)
    high = rational("bounds[1]", bounds[1], zero=True, negative=True)
    if low >= high:
        raise bad_parameter("bounds", "a pair with low < high", bounds, fix="bounds=(0, 100)")
    return low, high


def clip(values: object, low: Number, high: Number, *, missing: Number | None = None) -> NDArray[np.float64]:
    """Bring every value into [low, high]; NaN and None become `missing`, by default the low bound.

    Guarantee: total and row by row. Every value has a fixed meaning that was settled before the data was
    seen, so one row changes one entry of the result, by at most high - low. Infinities go to the nearer
    bound.

    Parameters
    ----------
    values
        A sequence or an array; entries that are not numbers count as missing.
    low, high
        The public range.
    missing
        What a missing value counts as, within the range.

    Examples
    --------
    >>> clip([12, -5, float("nan"), None, float("inf")], 0, 30).tolist()
    [12.0, 0.0, 0.0, 0.0, 30.0]
    """
    bottom, top = read_bounds((low, high))
    stand_in = bottom if missing is None else rational("missing", missing, zero=True, negative=True)
    if not bottom <= stand_in <= top:
        raise bad_parameter("missing", "within the bounds", missing, fix=f"missing={float(bottom):g}")
    numbers = as_floats(values)
    return np.clip(np.where(np.isnan(numbers), float(stand_in), numbers), float(bottom), float(top))


def truncate(released: object, low: Number, high: Number) -> Any:
    """Bring released numbers into a range: what lies outside goes to the nearer end. Free.

    Examples
    --------
    >>> truncate(-3.2, 0, 100), truncate([4, 130], 0, 100).tolist()
    (0.0, [4.0, 100.0])
    """
    bottom, top = read_bounds((low, high))
    clipped = np.clip(np.asarray(released, dtype=np.float64), float(bottom), float(top))
    return float(clipped) if clipped.ndim == 0 else clipped


def fold(released: object, low: Number, high: Number) -> Any:
    """Bring released numbers into a range by reflecting them at its ends. Free, for it sees no data.

    Examples
    --------
    >>> fold(-3.0, 0, 100), fold([4.0, 130.0, 205.0], 0, 100).tolist()
    (3.0, [4.0, 70.0, 5.0])
    """
    bottom, top = (float(end) for end in read_bounds((low, high)))
    width = top - bottom
    within = np.mod(np.asarray(released, dtype=np.float64) - bottom, 2 * width)
    folded = bottom + np.where(within > width, 2 * width - within, within)
    return float(folded) if folded.ndim == 0 else folded
