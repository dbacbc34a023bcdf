"""The input values of mechanisms, read exactly; one entry never changes how another is read.

A number has one reading, for values and for parameters such as a sensitivity alike (`exact_float`): a float
is the decimal number that it is written as, so 0.1 is one tenth; a float that holds a whole number is that
whole number, however large; ints, Fractions and Decimals are exact. So a statement such as "one person moves
the value by at most 0.1" is about the same numbers that are released.

Lists are read entry by entry, never through NumPy's common type. The shape and the type of the result follow
from the container, never from private values.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.exact import Number, rational
from tacit.fixes import Code

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ExactNumbers", "exact", "exact_float", "in_64_bits", "read_integers", "read_numbers"]

#: Numbers as read at the door. Floats in an array stand for their exact reading, see `_grid.to_steps`.
ExactNumbers: TypeAlias = int | Fraction | NDArray[np.float64] | NDArray[np.int64] | NDArray[np.object_]

_FAR = 1200  # decimal places: far below any grid, far above any float
_FARTHEST: int = 10**1200


def exact(name: str, value: Number, *, zero: bool = False, negative: bool = False) -> Fraction:
    """Read a parameter that is compared with values, by the reading of values.

    Examples
    --------
    >>> exact("sensitivity", 0.1), exact("sensitivity", 2.0**65) == 2**65
    (Fraction(1, 10), True)
    """
    read = rational(name, value, zero=zero, negative=negative)
    return Fraction(exact_float(value)) if isinstance(value, float) else read


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
    if isinstance(value, list | tuple):
        return _nested(value, _one_number)
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
        return _objects([_one_number(one) for one in array.ravel().tolist()], array.shape)
    raise _not_numbers()


def read_integers(value: object) -> int | NDArray[np.int64] | NDArray[np.object_]:
    """Read a whole number or an array of them: in 64 bits where all fit, else as Python ints.

    The type is for computing only: a release takes it from the container (`in_64_bits`), since private
    values must not decide it. The refusal never shows a value, which is private too.
    """
    if type(value) is int:
        return value
    if isinstance(value, list | tuple):
        return _nested(value, _one_integer)
    if isinstance(value, int | np.integer):
        return _one_integer(value)
    try:
        array = _array(value)
    except TacitError:
        raise _not_whole() from None
    if _fits_64_bits(array.dtype):
        return int(array.item()) if array.ndim == 0 else array.astype(np.int64, copy=False)
    if array.dtype == object or array.dtype.kind == "u":
        whole = [_one_integer(one) for one in array.ravel().tolist()]
        return whole[0] if array.ndim == 0 else _objects(whole, array.shape)
    raise _not_whole()


def in_64_bits(value: object) -> bool:
    """Return whether a container holds integers of at most 64 bits by its own type; lists do not."""
    dtype = getattr(value, "dtype", None)
    return isinstance(dtype, np.dtype) and _fits_64_bits(dtype)


def _fits_64_bits(dtype: np.dtype[Any]) -> bool:
    """Return whether every number of a type is a signed integer of 64 bits, whatever its byte order."""
    return dtype.kind == "i" or (dtype.kind == "u" and dtype.itemsize < 8)


def _array(value: object) -> NDArray[Any]:
    """Read an array or what turns into one; a mask is refused, since NumPy would drop it silently."""
    if isinstance(value, np.ma.MaskedArray):
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


def _nested(value: list[Any] | tuple[Any, ...], read: Callable[[object], Any]) -> NDArray[Any]:
    """Read nested lists entry by entry into an array of the same shape.

    Plain ints are kept in 64 bits where all of them fit, plain floats as they are, which changes no number.
    """
    flat, shape = _flat(value)
    kinds = set(map(type, flat))
    if kinds == {int}:
        try:
            return np.array(flat, dtype=np.int64).reshape(shape)
        except OverflowError:
            return _objects(flat, shape)
    if kinds == {float} and read is _one_number:
        if not np.all(np.isfinite(np.array(flat, dtype=np.float64))):
            raise _not_numbers()
        return _objects(flat, shape)
    return _objects([read(one) for one in flat], shape)


def _flat(value: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Return the entries of nested lists in order, and their shape, which must be that of an array."""
    if isinstance(value, np.ndarray):
        array = _array(value)
        if array.dtype.kind not in "iufbO" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
            raise _not_numbers()
        return array.ravel().tolist(), array.shape
    if not isinstance(value, list | tuple):
        return [value], ()
    if not any(issubclass(kind, list | tuple | np.ndarray) for kind in set(map(type, value))):
        return list(value), (len(value),)
    parts = [_flat(one) for one in value]
    if len({shape for _, shape in parts}) > 1:
        raise _not_numbers()
    return [one for flat, _ in parts for one in flat], (len(parts), *parts[0][1])


def _objects(numbers: list[Any], shape: tuple[int, ...]) -> NDArray[np.object_]:
    flat = np.empty(len(numbers), dtype=object)
    flat[:] = numbers
    return flat.reshape(shape)


def _one_number(one: Any) -> int | Fraction:
    """Read one finite number."""
    match one:
        case bool() | np.bool_() | np.timedelta64():
            raise _not_numbers()
        case np.floating() if one.dtype.itemsize > 8:  # doubles would round it before the noise
            raise _not_numbers()
        case int() | np.integer():
            return int(one)
        case Fraction():
            return one
        case float() | np.floating() if math.isfinite(one):
            return exact_float(float(one))
        case Decimal() if one.is_finite():
            return _decimal(one)
        case np.ndarray() if one.ndim == 0:
            return _one_number(_array(one).item())
        case _:
            raise _not_numbers()


def _decimal(one: Decimal) -> int | Fraction:
    """Read a Decimal; beyond 1200 places it is zero, or 10^1200: no grid and no float is finer or larger.

    Every Decimal has a meaning: refusing small or large ones would separate them from their neighbours.
    """
    if one.is_zero() or one.adjusted() < -_FAR:
        return 0
    if one.adjusted() > _FAR:
        return _FARTHEST if one > 0 else -_FARTHEST
    return Fraction(one)


def _one_integer(one: object) -> int:
    if isinstance(one, int | np.integer) and not isinstance(one, bool | np.timedelta64):
        return int(one)
    if isinstance(one, np.ndarray) and one.ndim == 0:
        return _one_integer(one.item())
    raise _not_whole()


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
        fix=Code("tc.mechanisms.Laplace(...) puts real numbers on a public grid"),
    )
