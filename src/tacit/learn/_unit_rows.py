"""Rows of units in learning: which examples belong to each unit, at most so many, chosen in secret."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.mechanisms import ranking_secret

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["owned_by", "unit_rows"]


def owned_by(owners: Any) -> NDArray[Any]:
    """Return owners as an array in which each of them stays what it is.

    NumPy gives a list one type: a single fraction in it would round large whole numbers, and two people would
    become one.

    Examples
    --------
    >>> owned_by([2**53, 2**53 + 1, 0.5]).tolist()
    [9007199254740992, 9007199254740993, 0.5]
    """
    if hasattr(owners, "dtype") and np.asarray(owners).dtype != object:
        return np.asarray(owners)
    return np.fromiter(map(_plain_owner, owners), dtype=object, count=len(owners))


def _plain_owner(owner: Any) -> Any:
    """Return an owner so that equal ones are written alike: 1.0 and True are 1."""
    plain = owner.item() if isinstance(owner, np.generic) else owner
    whole = isinstance(plain, bool) or (isinstance(plain, float) and plain.is_integer())
    return int(plain) if whole else plain


def _owner_codes(owners: NDArray[Any]) -> NDArray[np.int64]:
    """Return a number for each example, the same for two of them exactly if their owners are equal."""
    if owners.dtype != object:
        return np.unique(owners, return_inverse=True)[1]
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(_key(one), len(seen)) for one in owners], dtype=np.int64)


def _key(owner: Any) -> Any:
    """Return what stands for an owner: its value and kind; everything that is not a number is one owner."""
    try:
        hash(owner)
    except TypeError:
        return _UNKNOWN, repr(owner)
    return _UNKNOWN if isinstance(owner, float) and math.isnan(owner) else owner


_UNKNOWN = object()


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
    code = _owner_codes(owned_by(owners))
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
        name = str(np.asarray(owners)[own[0]]).encode()
        keys = [hashlib.sha256(secret + b"|%d|" % place + name).digest() for place in range(len(own))]
        kept = sorted(sorted(range(len(own)), key=keys.__getitem__)[:most])
        rows[unit] = own[kept]
    return rows
