"""Clipping before a mechanism's noise, and truncation and folding after it, which cost nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, rational
from tacit.fixes import Set
from tacit.mechanisms._input_rows import as_floats
from tacit.parameters import RealNumber

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import ArrayLike, NDArray


def read_bounds(bounds: tuple[Number, Number] | None) -> tuple[Fraction, Fraction]:
    """Read public bounds (low, high), or refuse where there are none."""
    if bounds is None:
        raise TacitError(
            "missing-bounds",
            "the values have no bounds, so one person could move the answer by any amount",
            why="the sensitivity is infinite; choose a range that is known without looking at the data",
            fix=Set(bounds=(0, 200_000)),
        )
    if len(bounds) != 2:
        raise bad_parameter("bounds", "a pair (low, high)", bounds, fix=Set(bounds=(0, 100)))
    low, high = (
        rational(f"the {which} bound", bounds[i], zero=True, negative=True, fix=Set(bounds=(0, 100)))
        for i, which in enumerate(("lower", "upper"))
    )
    if low >= high:
        raise bad_parameter("bounds", "a pair with low < high", bounds, fix=Set(bounds=(0, 100)))
    return low, high


def clip(values: object, low: Number, high: Number, *, missing: Number | None = None) -> NDArray[np.float64]:
    """Bring every value into [low, high]; NaN and None become `missing`, by default the low bound.

    Guarantee: every value has a fixed meaning that does not depend on the other rows, so one row changes one
    entry of the result, by at most high - low. Nothing is refused. Infinities become the nearer bound.

    Parameters
    ----------
    values
        A sequence or an array; entries that are not numbers, and masked ones, count as missing.
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
    RealNumber(least=bottom, most=top, instead=float(bottom)).read("missing", stand_in)
    return brought_within(as_floats(values), bottom, top, missing=stand_in)


def brought_within(
    numbers: NDArray[np.float64], low: Fraction, high: Fraction, *, missing: Fraction
) -> NDArray[np.float64]:
    """Clip floats to bounds that were read before; NaN becomes `missing`."""
    return np.clip(np.where(np.isnan(numbers), float(missing), numbers), float(low), float(high))


def truncate(released: ArrayLike, low: Number, high: Number) -> Any:
    """Bring released numbers into a range: what lies outside becomes the nearer end. This costs nothing.

    Examples
    --------
    >>> truncate(-3.2, 0, 100), truncate([4, 130], 0, 100).tolist()
    (0.0, [4.0, 100.0])
    """
    bottom, top = read_bounds((low, high))
    clipped = np.clip(np.asarray(released, dtype=np.float64), float(bottom), float(top))
    return float(clipped) if clipped.ndim == 0 else clipped


def fold(released: ArrayLike, low: Number, high: Number) -> Any:
    """Bring released numbers into a range by reflecting them at its ends. This costs nothing.

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
