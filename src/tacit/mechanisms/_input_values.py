"""The input values of mechanisms, read exactly; one entry never changes how another is read.

A number has one reading, for values and for parameters such as a sensitivity alike (`exact_float`): a float
is the decimal number that it is written as, so 0.1 is one tenth; a float that holds a whole number is that
whole number, however large; ints, Fractions and Decimals are exact. So a statement such as "one person moves
the value by at most 0.1" is about the same numbers that are released.

Lists are read entry by entry, never through NumPy's common type. The shape and the type of the result follow
from the container, never from private values. Entries of plain types are moved into an array at once where
that provably changes none of them.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.exact import Number, rational
from tacit.fixes import Code, Fix

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Numbers as read at the door. A float stands for its exact reading, see `_grid.to_steps`.
ExactNumbers: TypeAlias = (
    int | float | Fraction | NDArray[np.float64] | NDArray[np.int64] | NDArray[np.object_]
)

_WHOLE_TYPES = frozenset({int, np.int64, np.int32, np.int16, np.int8, np.uint32, np.uint16, np.uint8})
_REAL_TYPES = _WHOLE_TYPES | {float, np.float64, np.float32, np.float16}
_EXACT = 2.0**53  # every whole number below it is a float

_AT_ONCE = 4096  # entries

_FAR = 1200  # decimal places: far below any grid, far above any float
_FARTHEST: int = 10**1200


def exact(name: str, value: Number, *, zero: bool = False, negative: bool = False) -> Fraction:
    """Read a parameter that is compared with values, by the reading of values.

    Examples
    --------
    >>> exact("sensitivity", 0.1), exact("sensitivity", 2.0**65) == 2**65
    (Fraction(1, 10), True)
    """
    fraction = rational(name, value, zero=zero, negative=negative)
    return Fraction(exact_float(value)) if isinstance(value, float) else fraction


def exact_float(x: float) -> int | Fraction:
    """Return the number that a finite float is read as.

    Examples
    --------
    >>> exact_float(0.05), exact_float(2.0**60 + 256) == 2**60 + 256
    (Fraction(1, 20), True)
    """
    x = float(x)
    return int(x) if x.is_integer() else Fraction(Decimal(float.__repr__(x)))


def read_numbers(value: object) -> ExactNumbers:
    """Read one finite number or an array of them, exactly."""
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, list | tuple):
        return _read(*_flat(value), _one_number)
    if not isinstance(value, np.ndarray) and (np.isscalar(value) or isinstance(value, Fraction | Decimal)):
        return _one_number(value)
    array = _array(value)
    if array.ndim == 0:
        return _one_number(array.item())
    if _fits_64_bits(array.dtype):
        return array.astype(np.int64, copy=False)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        numbers = array.astype(np.float64, copy=False)
        if not np.all(np.isfinite(numbers)):
            raise _not_numbers()
        return numbers
    if array.dtype == object or array.dtype.kind == "u":
        entries = array.ravel().tolist()
        return _read(entries, array.shape, types_of(entries), _one_number)
    raise _not_numbers()


def read_integers(value: object) -> int | NDArray[np.int64] | NDArray[np.object_]:
    """Read a whole number or an array of them: in 64 bits where all fit, else as Python ints.

    The type is for computing only: a release takes it from the container (`in_64_bits`), since private
    values must not decide it. The refusal never shows a value, which is private too.
    """
    if type(value) is int:
        return value
    if isinstance(value, list | tuple):
        return _read(*_flat(value), _one_integer)
    if isinstance(value, int | np.integer):
        return _one_integer(value)
    try:
        array = _array(value)
    except TacitError:
        raise _not_whole() from None
    if _fits_64_bits(array.dtype):
        return int(array.item()) if array.ndim == 0 else array.astype(np.int64, copy=False)
    if array.dtype == object or array.dtype.kind == "u":
        if array.ndim == 0:
            return _one_integer(array.item())
        entries = array.ravel().tolist()
        return _read(entries, array.shape, types_of(entries), _one_integer)
    raise _not_whole()


def in_64_bits(value: object) -> bool:
    """Return whether a container holds integers of at most 64 bits by its own type; lists do not."""
    dtype = getattr(value, "dtype", None)
    return isinstance(dtype, np.dtype) and _fits_64_bits(dtype)


def in_floats(value: object) -> bool:
    """Return whether a container holds floats by its own type; lists, which may hold any number, do not."""
    dtype = getattr(value, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind == "f"


def _fits_64_bits(dtype: np.dtype[Any]) -> bool:
    """Return whether every number of a type is a signed integer of 64 bits, whatever its byte order."""
    return dtype.kind == "i" or (dtype.kind == "u" and dtype.itemsize < 8)


def _array(value: object) -> NDArray[Any]:
    """Read an array or what turns into one; a mask is refused, since NumPy would drop it silently."""
    if type(value) is not np.ndarray and isinstance(value, np.ma.MaskedArray):  # numpy.ma loads on first use
        raise TacitError(
            "not-finite",
            "the value to be released is a masked array",
            why="masked entries have no value; give them a fixed meaning before the data is seen",
            fix=Code("values.filled(0)"),
        )
    if isinstance(value, str | bytes | dict | set | frozenset):
        raise _not_numbers()
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        raise _not_numbers() from None
    if array.ndim == 0 and not isinstance(value, np.ndarray):  # not a number, and not a sequence of them
        raise _not_numbers()
    return array


def _read(
    flat: list[Any], shape: tuple[int, ...], kinds: set[type], read_entry: Callable[[object], Any]
) -> NDArray[Any]:
    """Read entries into an array: of 64-bit integers or floats where that changes none of them.

    Floats are kept as they are. Integers among them become floats, exactly if all entries stay below 2^53:
    an integer from 2^53 on does not become a float below it.
    """
    if kinds <= _WHOLE_TYPES:
        integers = packed(flat, np.int64)
        return _objects([int(one) for one in flat], shape) if integers is None else integers.reshape(shape)
    if kinds <= _REAL_TYPES and read_entry is _one_number:
        floats = packed(flat, np.float64)
        if floats is not None:
            low, high = floats.min(), floats.max()  # NaN, if there is one
            if -_EXACT < low <= high < _EXACT or (
                kinds.isdisjoint(_WHOLE_TYPES) and -math.inf < low <= high < math.inf
            ):
                return floats.reshape(shape)
    return _objects([read_entry(one) for one in flat], shape)


def types_of(flat: Sequence[Any]) -> set[type]:
    """Return the types of the entries; where there seems to be one, counting it is the quickest proof."""
    kinds = set(map(type, flat[:8]))
    if len(kinds) == 1 and list(map(type, flat)).count(*kinds) == len(flat):
        return kinds
    return set(map(type, flat))


def packed(flat: Sequence[Any], kind: type[np.int64 | np.float64]) -> NDArray[Any] | None:
    """Return numbers of plain types as 64-bit integers or floats, or None where one does not fit.

    The module `struct` does this in half the time that NumPy needs, which looks for a common type first; on a
    few thousand at a time it is quickest.
    """
    numbers: Any = np.empty(len(flat), dtype=kind)
    code = "q" if kind is np.int64 else "d"
    try:
        for start in range(0, len(flat), _AT_ONCE):
            some = flat[start : start + _AT_ONCE]
            struct.pack_into(f"{len(some)}{code}", numbers, 8 * start, *some)
    except (struct.error, OverflowError):
        return None
    return np.asarray(numbers)


def _flat(value: list[Any] | tuple[Any, ...]) -> tuple[list[Any], tuple[int, ...], set[type]]:
    """Return the entries of nested lists in order, their shape (that of an array), and their types."""
    flat = list(value)
    shape: tuple[int, ...] = (len(flat),)
    while True:
        kinds = types_of(flat)
        if kinds <= _REAL_TYPES:
            return flat, shape, kinds
        if any(issubclass(kind, np.ndarray) for kind in kinds):
            flat = [_unpacked(one) if isinstance(one, np.ndarray) else one for one in flat]
            kinds = types_of(flat)
        lists = [issubclass(kind, list | tuple) for kind in kinds]
        if not any(lists):
            return flat, shape, kinds
        if not all(lists) or len(lengths := set(map(len, flat))) > 1:
            raise _not_numbers()
        flat, shape = list(chain.from_iterable(flat)), (*shape, *lengths)


def _unpacked(value: NDArray[Any]) -> Any:
    """Return an array within a list as lists, or as a number where it has no dimension."""
    array = _array(value)
    if array.dtype.kind not in "iufbO" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
        raise _not_numbers()
    return array.tolist()


def _objects(numbers: list[Any], shape: tuple[int, ...]) -> NDArray[np.object_]:
    flat = np.empty(len(numbers), dtype=object)
    flat[:] = numbers
    return flat.reshape(shape)


def _one_number(number: Any) -> int | Fraction:
    """Read one finite number."""
    match number:
        case bool() | np.bool_() | np.timedelta64():
            raise _not_numbers()
        case np.floating() if number.dtype.itemsize > 8:  # doubles would round it before the noise
            raise _not_numbers()
        case int() | np.integer():
            return int(number)
        case Fraction():
            return number
        case float() | np.floating() if math.isfinite(number):
            return exact_float(float(number))
        case Decimal() if number.is_finite():
            return _decimal(number)
        case np.ndarray() if number.ndim == 0:
            return _one_number(_array(number).item())
        case _:
            raise _not_numbers()


def _decimal(decimal: Decimal) -> int | Fraction:
    """Read a Decimal; beyond 1200 places it is zero, or 10^1200: no grid and no float is finer or larger.

    Every Decimal has a meaning: refusing small or large ones would separate them from their neighbours.
    """
    if decimal.is_zero() or decimal.adjusted() < -_FAR:
        return 0
    if decimal.adjusted() > _FAR:
        return _FARTHEST if decimal > 0 else -_FARTHEST
    return Fraction(decimal)


def _one_integer(number: object) -> int:
    if isinstance(number, int | np.integer) and not isinstance(number, bool | np.timedelta64):
        return int(number)
    if isinstance(number, np.ndarray) and number.ndim == 0:
        return _one_integer(number.item())
    raise _not_whole()


def wrong_input(must_be: str, value: object, *, fix: Fix | str, name: str = "value") -> TacitError:
    """Build the refusal of an input by its public form: the shape of an array, or a type, but no entry.

    Examples
    --------
    >>> wrong_input("one number", np.array([17, 4]), fix=Code("ask(12)")).what
    'value must be one number, got an array of shape (2,)'
    >>> wrong_input("a mapping", 17, fix=Code('{"A": 12}')).what
    'value must be a mapping, got an object of type int'
    """
    shape = getattr(value, "shape", None)
    form = f"an object of type {type(value).__name__}" if shape is None else f"an array of shape {shape}"
    return TacitError("bad-parameter", f"{name} must be {must_be}, got {form}", fix=fix)


def _not_numbers() -> TacitError:
    return TacitError(
        "not-finite",
        "the value to be released is not a finite number or an array of finite numbers",
        why="noise cannot hide NaN or an infinity; give them a fixed meaning before the data is seen",
        fix=Code("tc.mechanisms.clip(values, low, high, missing=low)"),
    )


def _not_whole() -> TacitError:
    return TacitError(
        "not-finite",
        "the value to be released is not a whole number or an array of whole numbers",
        why="this mechanism adds integer noise, and its promise holds for whole numbers only",
        fix=Code("tc.mechanisms.Laplace(epsilon=0.8, sensitivity=1)"),
    )
