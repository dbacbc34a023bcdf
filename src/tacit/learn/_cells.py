"""Cells of what users hand over, in learning: read one by one, so that no cell changes how others count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["cell_name", "cells", "column_cells", "written_cells"]


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

    Examples
    --------
    >>> cell_name("ana"), cell_name(7) == cell_name(7.0), cell_name(b"ana") == cell_name("ana")
    (b'ana', True, False)
    """
    if isinstance(cell, bytes):
        return b"\xff" + cell  # no text is written so
    if cell is None:
        return b"\xfe"
    if isinstance(cell, bool | np.bool_):
        cell = int(cell)
    if isinstance(cell, float | np.floating) and np.isfinite(cell) and cell == np.floor(cell):
        cell = int(cell)
    try:
        return str(cell).encode("utf-8", "surrogatepass")
    except Exception:  # noqa: BLE001 - a number of 5,000 digits, or whatever an object raises
        return hex(cell).encode() if isinstance(cell, int) else type(cell).__name__.encode()


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
