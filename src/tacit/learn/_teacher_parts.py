"""Parts of the data for teachers: each unit belongs to one teacher, by a keyed hash of the unit alone."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.mechanisms import ranking_secret

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.learn._examples import Examples

#: The examples of each teacher: features and class numbers.
TeacherParts = list[tuple[Any, "NDArray[np.int64]"]]


def teacher_parts(data: Examples, teachers: int, classes: tuple[object, ...]) -> TeacherParts:
    """Return the examples of each teacher: private, for tasks alone.

    Guarantee: a unit with all its examples is in one part, and which one depends on this unit and on a secret
    alone. An example with a target that is not a declared class, or with a feature that is not finite, counts
    for nobody. So one unit more or less changes one part.
    """
    features, targets = (_plain(one) for one in data._arrays)  # noqa: SLF001 - the room's own
    rows = data.units()
    of_unit = units_by_teacher(_unit_names(data, rows, (features, targets)), teachers, ranking_secret())
    number = class_numbers(targets, classes)
    usable = (number >= 0) & _finite(features)
    parts: TeacherParts = []
    for teacher in range(teachers):
        own = np.sort(rows[of_unit == teacher].ravel())
        own = own[own >= 0]
        own = own[usable[own]]
        parts.append((features[own], number[own]))
    return parts


def units_by_teacher(names: list[bytes], teachers: int, secret: int) -> NDArray[np.int64]:
    """Return the teacher of each unit: a keyed hash of its name.

    Examples
    --------
    >>> first = units_by_teacher([b"ana", b"ben", b"eva"], 4, 7)
    >>> units_by_teacher([b"ana", b"eva"], 4, 7).tolist() == first[[0, 2]].tolist()
    True
    """
    key = secret.to_bytes(8, "little")
    found = [
        int.from_bytes(hashlib.blake2b(name, key=key, digest_size=8).digest(), "little") for name in names
    ]
    return np.array([one % teachers for one in found], dtype=np.int64)


def class_numbers(targets: Any, classes: tuple[object, ...]) -> NDArray[np.int64]:
    """Return the place of each target in the declared classes, -1 where it is none of them.

    Examples
    --------
    >>> class_numbers(np.array(["ill", "well", "?"]), ("well", "ill")).tolist()
    [1, 0, -1]
    """
    flat = np.asarray(targets)
    while flat.ndim > 1:  # a reshape would fail without rows
        flat = flat[:, 0]
    found = np.full(len(flat), -1, dtype=np.int64)
    for place, one in enumerate(classes):
        same = flat == one if flat.dtype.kind != "O" else np.array([_is(value, one) for value in flat], bool)
        if np.ndim(same):  # text is never equal to a number, which NumPy says with a single False
            found[same] = place
    return found


def _unit_names(data: Examples, rows: NDArray[np.int64], arrays: tuple[Any, ...]) -> list[bytes]:
    """Return a name for each unit: its owner, or the bytes of the example where each is a unit."""
    owners = data._owners  # noqa: SLF001 - the room's own
    if owners is not None:
        return [str(owners[one]).encode("utf-8", "surrogatepass") for one in rows[:, 0]]
    return [b"|".join(_bytes(array[one]) for array in arrays) for one in rows[:, 0]]


def _bytes(value: Any) -> bytes:
    held = np.asarray(value)
    if held.dtype.hasobject:
        return repr(held.tolist()).encode("utf-8", "surrogatepass")
    return np.ascontiguousarray(held).tobytes()


def _is(value: Any, one: object) -> bool:
    """Whether a target is a class; one that cannot be compared, such as pandas' NA, is none."""
    try:
        return bool(value == one)
    except Exception:  # noqa: BLE001 - one odd target must not make the whole release fail
        return False


def _plain(array: Any) -> Any:
    """Return tensors as arrays."""
    return np.asarray(array.detach().cpu() if hasattr(array, "detach") else array)


def _finite(features: Any) -> NDArray[np.bool_]:
    if features.dtype.kind not in "fc":
        return np.ones(len(features), dtype=bool)
    return np.asarray(np.isfinite(features).all(axis=tuple(range(1, features.ndim))))
