"""The values that stored arrays can have, by their types alone: nobody pays for learning from nothing.

The type of an array is a public fact, and its values are private. A list has no type of its own, and neither
has an array of objects, so nothing is ever refused because of what these hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError
from tacit.fixes import Code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_NUMBERS = frozenset("biuf")


def stored_types(given: Any) -> tuple[np.dtype[Any], ...]:
    """Return the types in which an array or the columns of a table are stored; nothing for objects and lists.

    Examples
    --------
    >>> stored_types(np.zeros(3, np.int8)), stored_types([0, 1])
    ((dtype('int8'),), ())
    """
    held = [given.dtype] if hasattr(given, "dtype") else list(getattr(given, "dtypes", ()))
    if hasattr(given, "detach"):
        held = [given[:0].detach().cpu().numpy().dtype if "bfloat16" not in str(given.dtype) else None]
    return tuple(one for one in held if isinstance(one, np.dtype) and one.kind != "O")


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
    shown = ", ".join(repr(one) for one in classes[:5]) + (" ..." if len(classes) > 5 else "")
    numbers = types[0].kind in _NUMBERS
    raise TacitError(
        "bad-parameter",
        f"the labels are stored as {types[0]}, so none of them can be one of the classes {shown}",
        why="an example with another label counts as zero, so the fit would cost budget and learn nothing",
        fix=Code("classes=[0, 1]" if numbers else 'classes=["healthy", "ill"]'),
    )


def refuse_constant(what: str, types: Sequence[np.dtype[Any]], low: NDArray[Any], high: NDArray[Any]) -> None:
    """Refuse values of a type that holds no numbers, or of which none is within the declared bounds."""
    for place, kind in enumerate(types):
        pick = place if len(types) == len(low) else slice(None)
        if kind.kind in "mMV":
            raise TacitError(
                "bad-parameter",
                f"{what} {'hold' if what.endswith('s') else 'holds'} values that are stored as {kind}, "
                "which are not numbers",
                why="such values count as missing, so the fit would cost budget and learn nothing",
                fix=Code('X.astype("int64")'),
            )
        if kind.kind not in "biu":
            continue
        least, most = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
        if bool(np.any((np.asarray(low)[pick] >= most) | (np.asarray(high)[pick] <= least))):
            raise TacitError(
                "bad-parameter",
                f"{what}: values of {kind} lie between {least} and {most}, outside the declared bounds",
                why="all of them would count as the same bound: the fit would cost budget and learn nothing",
                fix=Code(f"bounds=({least}, {most})"),
            )


def _possible(kind: np.dtype[Any], one: Any, *, spelled: bool) -> bool:
    """Return whether a value of a stored type can equal a class."""
    if not isinstance(one, bool | int | float | str):
        return True  # an object of the user's own, of which nothing is known
    if kind.kind == "U":
        return isinstance(one, str) or spelled
    if kind.kind not in _NUMBERS or (isinstance(one, str) and not spelled):
        return False
    try:
        number = float(one)
    except ValueError:
        return False
    if kind.kind == "f":
        return not np.isnan(number)
    least, most = (0, 1) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
    return number == np.floor(number) and least <= number <= most
