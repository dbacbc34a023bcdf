"""Rows of units in learning: which examples belong to each unit, at most so many, chosen in secret."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.learn._cells import cell_name
from tacit.mechanisms import ranking_secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def unit_rows(examples: int, owners: Any, most: int) -> NDArray[np.int64]:
    """Return an array (units x most) of places of examples, padded with -1 at the end.

    Where a unit has more than ``most`` examples, those with the smallest keyed hash of their place among the
    unit's own examples count: a function of this unit's examples and of a secret, whoever else is there.

    Examples
    --------
    >>> unit_rows(4, None, 1).tolist()
    [[0], [1], [2], [3]]
    >>> unit_rows(3, np.array(["ana", "ben", "ana"]), 2).tolist()
    [[0, 2], [1, -1]]
    """
    if owners is None:
        rows = np.full((examples, most), -1, dtype=np.int64)
        rows[:, 0] = np.arange(examples)
        return rows
    code = _codes(np.asarray(owners))
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(code[order]) != 0]) if examples else np.zeros(0, np.int64)
    sizes = np.diff(np.r_[starts, examples])
    rows = np.full((len(starts), most), -1, dtype=np.int64)
    small = sizes <= most
    for width in np.unique(sizes[small]):
        chosen = np.flatnonzero(sizes == width)
        rows[chosen, :width] = order[starts[chosen, None] + np.arange(width)]
    secret = str(ranking_secret()).encode()
    for unit in np.flatnonzero(~small):
        own = order[starts[unit] : starts[unit] + sizes[unit]]
        name = cell_name(np.asarray(owners)[own[0]])
        keys = [hashlib.sha256(secret + b"|%d|" % place + name).digest() for place in range(len(own))]
        kept = sorted(sorted(range(len(own)), key=keys.__getitem__)[:most])
        rows[unit] = own[kept]
    return rows


def _codes(owners: NDArray[Any]) -> NDArray[np.int64]:
    """Return a number for each row, equal where the owner is; no owner, whatever it is, makes it fail."""
    if owners.dtype.kind in "biufUS":
        return np.asarray(np.unique(owners, return_inverse=True)[1], np.int64)
    numbers: dict[bytes, int] = {}
    found = (numbers.setdefault(cell_name(one), len(numbers)) for one in owners)
    return np.fromiter(found, np.int64, count=len(owners))


def unit_names(arrays: Sequence[Any], owners: Any, rows: NDArray[np.int64]) -> list[bytes]:
    """Return what each unit is called: its owner, or a digest of its own example, wherever it stands.

    Examples
    --------
    >>> owners = np.array(["ana", "ben", "ana"])
    >>> unit_names([np.zeros(3)], owners, unit_rows(3, owners, 2))
    [b'ana', b'ben']
    """
    if owners is not None:
        return [cell_name(np.asarray(owners)[place]) for place in rows[:, 0]]
    held = [_as_array(one) for one in arrays]
    return [hashlib.sha256(b"|".join(one[place].tobytes() for one in held)).digest() for place in rows[:, 0]]


def _as_array(one: Any) -> NDArray[Any]:
    """Return a NumPy array; NumPy has no bfloat16, so short floats of PyTorch become longer ones."""
    if hasattr(one, "detach"):
        one = one.detach().cpu()
        one = one.float() if one.is_floating_point() and one.element_size() < 4 else one
    return np.ascontiguousarray(one)
