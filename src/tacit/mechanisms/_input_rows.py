"""The input rows of mechanisms: one row is one entry, and its meaning never depends on another row.

Every row has a meaning. A refusal because of one row, or another type of the result, would reveal that row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.fixes import Code
from tacit.mechanisms._input_values import packed, types_of, wrong_input

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    for place, item in enumerate(items):
        entries[place] = item
    return entries


def _as_float(one: Any) -> float:
    if one is None or isinstance(one, str | bytes | complex | np.ma.MaskedArray):
        return math.nan
    if isinstance(one, np.ndarray):
        return _as_float(one.item()) if one.ndim == 0 else math.nan
    try:
        return float(one)
    except OverflowError:
        return _infinite(one)
    except Exception:  # noqa: BLE001 - an error would reveal the row
        return math.nan


def _infinite(one: Any) -> float:
    try:
        return math.inf if one > 0 else -math.inf
    except Exception:  # noqa: BLE001 - as above
        return math.nan
