"""The input rows of mechanisms: one row is one entry, and its meaning never depends on another row.

Every row has a meaning. A refusal because of one row, or another type of the result, would reveal that row.
Values are clipped before a mechanism's noise. Truncation and folding come after it and cost nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.exact import Number, rational
from tacit.fixes import Code, Set
from tacit.mechanisms._input_values import packed, types_of, wrong_input
from tacit.parameters import Pair, RealNumber, refuse_auto

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import ArrayLike, NDArray


_WHOLE = {int, np.int64, np.int32}
_PLAIN = _WHOLE | {float, bool, np.float64, np.float32}


def collected(values: Any) -> Any:
    """Return the rows as a collection that has a length: what can be read only once is read into a list."""
    if hasattr(values, "to_pylist"):  # Arrow
        return values.to_pylist()
    if hasattr(values, "__len__"):
        return values
    if hasattr(values, "__iter__"):
        return list(values)
    raise wrong_input("a collection of rows", values, name="values", fix=Code("[3.0, 5.0]"))


def taken(values: Any, places: NDArray[np.intp]) -> Any:
    """Return the rows at some places, counted from 0, whatever labels the collection has for them."""
    if hasattr(values, "iloc"):  # pandas
        return values.iloc[places]
    if isinstance(values, np.ndarray):
        return values[places]
    rows = list(values)
    return [rows[place] for place in places.tolist()]


def rows_of(values: Any) -> NDArray[np.float64]:
    """Return one float per row; a table of several columns is refused (its shape is public)."""
    shape = getattr(values, "shape", None)
    numbers = None if shape is not None and len(shape) != 1 else as_floats(values)
    if numbers is None or numbers.ndim != 1:
        raise wrong_input("one value per row", values, name="values", fix=Code("values[:, 0]"))
    return numbers


def as_floats(values: Any) -> NDArray[np.float64]:
    """Return floats, NaN for whatever is not a number or is masked.

    One entry of a sequence is one entry of the result, whatever it holds: a nested list is not a number.
    """
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), math.nan, as_floats(values.data))
    if not isinstance(values, np.ndarray):
        values = _entries(values)
    if values.dtype.kind in "fiub":
        with np.errstate(over="ignore"):
            return np.asarray(values, dtype=np.float64)
    flat = np.array([_as_float(one) for one in values.ravel().tolist()], dtype=np.float64)
    return flat.reshape(values.shape)


def _entries(values: Any) -> NDArray[Any]:
    """Lay a sequence out as one array entry per item; plain numbers quickly, which changes none of them."""
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        items = [values]
    else:
        items = list(collected(values))
    kinds = types_of(items)
    if kinds <= _PLAIN:
        numbers = packed(items, np.int64 if kinds <= _WHOLE else np.float64)
        if numbers is not None:  # else an int is beyond 64 bits, or beyond the largest float
            return numbers
    entries = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        entries[index] = item
    return entries


def _as_float(entry: Any) -> float:
    if entry is None or isinstance(entry, str | bytes | complex | np.ma.MaskedArray):
        return math.nan
    if isinstance(entry, np.ndarray):
        return _as_float(entry.item()) if entry.ndim == 0 else math.nan
    try:
        return float(entry)
    except OverflowError:
        return _infinite(entry)
    except Exception:  # noqa: BLE001 - an error would reveal the row
        return math.nan


def _infinite(entry: Any) -> float:
    try:
        return math.inf if entry > 0 else -math.inf
    except Exception:  # noqa: BLE001 - as above
        return math.nan


def read_bounds(bounds: tuple[Number, Number] | None) -> tuple[Fraction, Fraction]:
    """Read public bounds (low, high), or refuse where there are none."""
    if bounds is None:
        raise TacitError(
            "missing-bounds",
            "the values have no bounds, so one person could move the answer by any amount",
            why="the sensitivity is infinite; choose a range that is known without looking at the data",
            fix=Set(bounds=(0, 200_000)),
        )
    refuse_auto("this mechanism", bounds, Set(bounds=(0, 200_000)))
    low, high = Pair("a low and a high finite number").read("bounds", bounds)
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
    why = "missing values are put within the bounds"
    RealNumber(least=bottom, most=top, why=why, instead=float(bottom)).read("missing", stand_in)
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
