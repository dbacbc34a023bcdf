"""Cells of what users hand over, in learning: read one by one, so that no cell changes how others count."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SECONDS = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60, "s": 1}
_ATTOSECONDS = {unit: seconds * 10**18 for unit, seconds in _SECONDS.items()}
_ATTOSECONDS |= {"ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1}


def cells(given: Any) -> Any:
    """Return nested lists as an array, read cell by cell; what already is an array stays as it is.

    NumPy gives all cells of a list one type: with one word in it every number becomes text, and a very long
    word makes every cell as long. So one patient would change what the rows of all others say.

    Examples
    --------
    >>> cells([[True, 2], [0.5, "x"]]).tolist()
    [[True, 2], [0.5, 'x']]
    """
    if hasattr(given, "__array__") or hasattr(given, "shape"):
        return given
    try:
        return _typed(np.array(given, dtype=object))
    except ValueError:
        raise ValueError("the rows of a list must have the same length") from None


def column_cells(given: Any) -> NDArray[Any]:
    """Return a column, such as owners, as an array; of a list each element is one cell, whatever it is.

    Examples
    --------
    >>> column_cells([2**53 + 1, 0.5]).tolist(), column_cells([("ward", 1), "ana"]).shape
    ([9007199254740993, 0.5], (2,))
    """
    if hasattr(given, "__array__"):
        return np.asarray(given)
    listed = list(given)
    return _typed(np.fromiter(listed, dtype=object, count=len(listed)))


def _typed(held: NDArray[Any]) -> NDArray[Any]:
    """Return cells that are all Python's own floats, whole numbers or truth values in NumPy's type for them.

    Each cell stays exactly the same object, so whoever reads cell by cell sees no difference.
    """
    own = [one.item() if isinstance(one, np.generic) else one for one in held.ravel().tolist()]
    kinds = {type(one) for one in own}
    small = kinds == {int} and all(abs(one) < 2**63 for one in own)
    if small or kinds in ({float}, {bool}):
        return np.asarray(own).reshape(held.shape)
    return np.fromiter(own, dtype=object, count=len(own)).reshape(held.shape)


def cell_name(cell: Any) -> bytes:
    """Return a name of an owner as bytes, for any object: equal numbers and equal texts have one name.

    Guarantee: the name depends on what the cell says, not on the type or the unit that the other cells give
    to its column. Moments are written in universal time, and a day is its midnight.

    Examples
    --------
    >>> cell_name("ana"), cell_name(7) == cell_name(7.0), cell_name(b"ana") == cell_name("ana")
    (b'ana', True, False)
    >>> cell_name(np.datetime64("2020-01-01")), cell_name(dt.datetime(2020, 1, 1, 8, 30, 0, 500000))
    (b'2020-01-01 00:00:00', b'2020-01-01 08:30:00.5')
    """
    if isinstance(cell, bytes):
        return b"\xff" + cell  # no text is written so
    if cell is None:
        return b"\xfe"
    if isinstance(cell, np.inexact | np.bool_):
        cell = cell.item()  # a short float beside other objects is one of Python's
    if isinstance(cell, bool):
        cell = int(cell)
    if isinstance(cell, float | np.floating) and np.isfinite(cell) and cell == np.floor(cell):
        cell = int(cell)
    try:
        if isinstance(cell, np.timedelta64 | dt.timedelta):
            return _span(cell).encode()
        if isinstance(cell, np.datetime64 | dt.date):
            return _moment(cell).encode()
        return str(cell).encode("utf-8", "surrogatepass")
    except Exception:  # noqa: BLE001 - a number of 5,000 digits, or whatever an object raises
        return hex(cell).encode() if isinstance(cell, int) else type(cell).__name__.encode()


def _moment(cell: Any) -> str:
    """Write a moment in universal time, with as many digits of its second as it needs."""
    if cell != cell:
        return "NaT"
    if hasattr(cell, "to_datetime64"):  # a Timestamp of pandas
        cell = cell.to_datetime64()
    elif isinstance(cell, dt.datetime):
        offset = cell.utcoffset() or dt.timedelta()
        cell = np.datetime64(cell.replace(tzinfo=None), "us") - np.timedelta64(offset, "us")
    moment = np.datetime64(cell)
    if np.datetime_data(moment.dtype)[0] in {"Y", "M", "W", "D", "h", "m"}:
        moment = moment.astype("datetime64[s]")
    text = str(moment).replace("T", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _span(cell: Any) -> str:
    """Write a span of time as a whole number of attoseconds, NumPy's smallest unit."""
    if cell != cell:
        return "NaT"
    if isinstance(cell, np.timedelta64):
        unit, count = np.datetime_data(cell.dtype)
        if unit not in _ATTOSECONDS:  # months and years have no length
            return str(cell)
        return f"{int(cell.astype(np.int64)) * count * _ATTOSECONDS[unit]} as"
    fine = (cell.days * 86400 + cell.seconds) * 10**6 + cell.microseconds
    return f"{fine * 10**12 + getattr(cell, 'nanoseconds', 0) * 10**9} as"


def written_cells(row: list[Any]) -> bytes:
    """Return what a list of cells says as bytes, for any objects in it.

    Examples
    --------
    >>> written_cells([1, "a"])
    b"[1, 'a']"
    """
    try:
        return repr(row).encode("utf-8", "surrogatepass")
    except Exception:  # noqa: BLE001 - a number of 5,000 digits, or whatever an object raises
        parts = [written_cells(one) if isinstance(one, list) else _written(one) for one in row]
        return b"[%s]" % b", ".join(b"%d:%s" % (len(one), one) for one in parts)


def _written(cell: Any) -> bytes:
    try:
        return repr(cell).encode("utf-8", "surrogatepass")
    except Exception:  # noqa: BLE001 - as above
        return cell_name(cell)
