"""Cells and types of what users hand over, read so that no cell changes how others count.

Cells are read one by one. The values that stored arrays can have are known from their types alone, so nobody
pays for learning from nothing. The type of an array is a public fact, and its values are private. A list has
no type of its own, and neither has an array of objects, so nothing is ever refused because of what these
hold.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_SECONDS = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60, "s": 1}
_ATTOSECONDS = {unit: seconds * 10**18 for unit, seconds in _SECONDS.items()}
_ATTOSECONDS |= {"ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1}


_NUMBERS = frozenset("biuf")


def cells(table: Any) -> Any:
    """Return nested lists as an array, read cell by cell; what already is an array stays as it is.

    NumPy gives all cells of a list one type: with one word in it every number becomes text, and a very long
    word makes every cell as long. So one patient would change what the rows of all others say.

    Examples
    --------
    >>> cells([[True, 2], [0.5, "x"]]).tolist()
    [[True, 2], [0.5, 'x']]
    """
    if hasattr(table, "__array__") or hasattr(table, "shape"):
        return table
    try:
        return _typed(np.array(table, dtype=object))
    except ValueError:
        raise ValueError("the rows of a list must have the same length") from None


def column_cells(column: Any) -> NDArray[Any]:
    """Return a column, such as owners, as an array; of a list each element is one cell, whatever it is.

    Examples
    --------
    >>> column_cells([2**53 + 1, 0.5]).tolist(), column_cells([("ward", 1), "ana"]).shape
    ([9007199254740993, 0.5], (2,))
    """
    if hasattr(column, "__array__"):
        return np.asarray(column)
    entries = list(column)
    return _typed(np.fromiter(entries, dtype=object, count=len(entries)))


def _typed(objects: NDArray[Any]) -> NDArray[Any]:
    """Return cells that are all Python's own floats, whole numbers or truth values in NumPy's type for them.

    Each cell stays exactly the same object, so whoever reads cell by cell sees no difference.
    """
    entries = [one.item() if isinstance(one, np.generic) else one for one in objects.ravel().tolist()]
    kinds = {type(one) for one in entries}
    small = kinds == {int} and all(abs(one) < 2**63 for one in entries)
    if small or kinds in ({float}, {bool}):
        return np.asarray(entries).reshape(objects.shape)
    return np.fromiter(entries, dtype=object, count=len(entries)).reshape(objects.shape)


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


def stored_types(table: Any) -> tuple[np.dtype[Any], ...]:
    """Return the types in which an array or the columns of a table are stored; nothing for objects and lists.

    Examples
    --------
    >>> stored_types(np.zeros(3, np.int8)), stored_types([0, 1])
    ((dtype('int8'),), ())
    """
    types = [table.dtype] if hasattr(table, "dtype") else list(getattr(table, "dtypes", ()))
    if hasattr(table, "detach"):
        types = [table[:0].detach().cpu().numpy().dtype if "bfloat16" not in str(table.dtype) else None]
    return tuple(one for one in types if isinstance(one, np.dtype) and one.kind != "O")


def refuse_unknown_labels(types: Sequence[np.dtype[Any]], classes: Sequence[Any], *, spelled: bool) -> None:
    """Refuse classes that no label of the stored type can be: all examples would count as zero.

    Parameters
    ----------
    types
        The types in which the labels are stored.
    classes
        The declared classes.
    spelled
        Whether a text that spells the number of a class is this class.
    """
    if not types or any(_possible(kind, one, spelled=spelled) for kind in types for one in classes):
        return
    examples = ", ".join(repr(one) for one in classes[:5]) + (" ..." if len(classes) > 5 else "")
    numbers = types[0].kind in _NUMBERS
    raise TacitError(
        "bad-parameter",
        f"the labels are stored as {types[0]}, so none of them can be one of the classes {examples}",
        why="an example with another label counts as zero, so the fit would cost budget and learn nothing",
        fix=Code("classes=[0, 1]" if numbers else 'classes=["healthy", "ill"]'),
    )


def refuse_constant(
    subject: str, types: Sequence[np.dtype[Any]], low: NDArray[Any], high: NDArray[Any]
) -> None:
    """Refuse values of a type that holds no numbers, or of which none is within the declared bounds."""
    for index, kind in enumerate(types):
        pick = index if len(types) == len(low) else slice(None)
        if kind.kind in "mMV":
            raise TacitError(
                "bad-parameter",
                f"{subject} {'hold' if subject.endswith('s') else 'holds'} values that are stored as {kind}, "
                "which are not numbers",
                why="such values count as missing, so the fit would cost budget and learn nothing",
                fix=Code('X.astype("int64")'),
            )
        if kind.kind not in "biu":
            continue
        lowest, highest = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
        if bool(np.any((np.asarray(low)[pick] >= highest) | (np.asarray(high)[pick] <= lowest))):
            raise TacitError(
                "bad-parameter",
                f"{subject}: values of {kind} lie between {lowest} and {highest}, "
                "outside the declared bounds",
                why="all of them would count as the same bound: the fit would cost budget and learn nothing",
                fix=Code(f"bounds=({lowest}, {highest})"),
            )


def _possible(kind: np.dtype[Any], label: Any, *, spelled: bool) -> bool:
    """Return whether a value of a stored type can equal a class."""
    if not isinstance(label, bool | int | float | str):
        return True  # an object of the user's own, of which nothing is known
    if kind.kind == "U":
        return isinstance(label, str) or spelled
    if kind.kind not in _NUMBERS or (isinstance(label, str) and not spelled):
        return False
    try:
        number = float(label)
    except ValueError:
        return False
    if kind.kind == "f":
        return not np.isnan(number)
    lowest, highest = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return number == np.floor(number) and lowest <= number <= highest
