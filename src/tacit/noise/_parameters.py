"""The parameters of a noise draw: one exact number, or one per element with a double near each; shapes.

A sampler draws one number by a scalar draw, an array by a table, and many scales by either.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Code, Either, Say, Set

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: One number, or one per element: an array of doubles or integers, or a (nested) sequence of numbers.
NumberOrArray = Number | Sequence[Any] | np.ndarray[Any, Any]
#: The shape of the result: None for one Python number, a length, or the lengths of all axes.
DrawShape = int | tuple[int, ...] | None

LARGEST_SCALE = Fraction(2**60)
_MAX_DRAWS = 2**32
_SHORT = 2**1000


@dataclass(frozen=True, slots=True)
class ExactArray:
    """One exact number per element; `near` holds each as a double, with a relative error below 2^-52."""

    near: NDArray[np.float64]
    exact: Callable[[int], Fraction]  # by flat position
    labels: NDArray[Any]  # equal where the exact numbers are equal, flat

    def at(self, index: NDArray[np.intp]) -> ExactArray:
        """Return the numbers at some flat positions."""
        return ExactArray(self.near.ravel()[index], lambda i: self.exact(int(index[i])), self.labels[index])


def read(
    name: str, value: NumberOrArray, *, zero: bool = False, most: Fraction | None = LARGEST_SCALE
) -> Fraction | ExactArray:
    """Read one number as a Fraction, or many as an `ExactArray` whose `near` has their shape."""
    if type(value) is int or type(value) is float:
        return _plain(name, value, zero, most)
    if type(value) is Fraction:  # nearly all are positive, short and at most `most`: seen in whole numbers
        n, d = value.numerator, value.denominator
        if 0 < n < _SHORT and d < _SHORT and (most is None or n * most.denominator <= most.numerator * d):
            return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype != object:
        return _read_array(name, value, zero=zero, limit=most)
    if isinstance(value, list | tuple | np.ndarray):
        try:
            items = np.array(value, dtype=object)
        except ValueError:
            raise bad_parameter(name, "a number or an array of numbers", value) from None
        exact = [_one(name, item, zero=zero, limit=most) for item in items.flat]
        doubles = np.array([float(item) for item in exact], dtype=np.float64).reshape(items.shape)
        numbers: dict[Fraction, int] = {}
        labels = np.array([numbers.setdefault(item, len(numbers)) for item in exact], np.intp)
        return ExactArray(doubles, exact.__getitem__, labels)
    return _one(name, value, zero=zero, limit=most)  # type: ignore[arg-type]


@lru_cache(maxsize=256, typed=True)
def _plain(name: str, value: float, zero: bool, limit: Fraction | None) -> Fraction:  # noqa: FBT001
    """Read a plain int or float, with a cache: callers draw at the same scale again and again."""
    return _one(name, value, zero=zero, limit=limit)


def _one(name: str, value: Number, *, zero: bool, limit: Fraction | None) -> Fraction:
    exact = rational(name, value, zero=zero)
    if limit is not None and exact > limit:
        raise _too_large(name, limit, value)
    return exact


def read_single(name: str, value: Number, *, example: int = 1) -> Fraction:
    """Read one number up to 2^60 where an array of them is not allowed."""
    exact = read(name, value)
    if isinstance(exact, Fraction):
        return exact
    raise bad_parameter(name, "one number", value, fix=Set(**{name: example}))


def read_rate(rate: Number) -> Fraction:
    """Read the rate of a ladder: the inverse of a scale up to 2^60."""
    exact = rational("rate", rate)
    if exact * LARGEST_SCALE < 1:
        raise bad_parameter("rate", "at least 2^-60", rate, fix=Set(rate=1))
    return exact


def _too_large(name: str, limit: Fraction, value: object) -> TacitError:
    written_limit = "2^60" if limit == LARGEST_SCALE else str(limit)
    return bad_parameter(name, f"at most {written_limit}", value, fix=Set(**{name: 1}))


def _read_array(name: str, value: NDArray[Any], *, zero: bool, limit: Fraction | None) -> ExactArray:
    """Check an array of doubles or whole numbers without a Python loop."""
    kind = value.dtype.kind
    if not (kind in "iu" or value.dtype == np.float64):
        fix = Code(f"{name}={name}.astype(float)")
        raise bad_parameter(name, "an array of 64-bit floats or whole numbers", value.dtype.name, fix=fix)
    doubles = value.astype(np.float64)
    invalid = ~np.isfinite(doubles) | (doubles < 0)
    invalid |= (doubles < 2.0**-1022) & ~((doubles == 0) & zero)
    if invalid.any():
        _one(name, value[invalid][0].item(), zero=zero, limit=limit)  # raises the error for this value
    if limit is not None and doubles.size and doubles.max() >= float(limit):
        for item in np.unique(value[doubles >= float(limit)]):
            _one(name, item.item(), zero=zero, limit=limit)
    flat = value.flatten()  # a copy: the caller may change the array later
    return ExactArray(doubles, lambda i: rational(name, flat[i].item(), zero=True), flat)


def read_size(size: DrawShape) -> tuple[int, ...] | None:
    """Read a shape: None, a whole number or a tuple of whole numbers."""
    if size is None:
        return None
    lengths = size if isinstance(size, tuple) else (size,)
    shape = tuple(n if type(n) is int and n >= 0 else count("size", n) for n in lengths)
    if math.prod(shape) > _MAX_DRAWS:
        raise bad_parameter("size", "at most 2^32 draws at once", size, fix="draw fewer numbers at a time")
    return shape


def spread(
    name: str, values: ExactArray, shape: tuple[int, ...] | None
) -> tuple[ExactArray, tuple[int, ...]]:
    """Spread one parameter per element over the requested shape by NumPy's broadcasting rule, flat."""
    shape_of_values = values.near.shape
    if shape is None or shape == shape_of_values:
        return ExactArray(values.near.ravel(), values.exact, values.labels), shape_of_values
    index = broadcast(name, np.arange(values.near.size).reshape(shape_of_values), shape).ravel()
    return values.at(index), shape


def broadcast(name: str, values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Spread an array over the requested shape, or refuse a shape that does not fit."""
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        must_be = f"a shape to which {name} of shape {values.shape} can be broadcast"
        raise bad_parameter("size", must_be, shape, fix=Set(size=None)) from None


def does_not_fit(name: str) -> TacitError:
    """Build the error for a draw that needs more than 64 bits."""
    return TacitError(
        "does-not-fit",
        f"a draw of {name} does not fit into 64 bits, so the array cannot hold it",
        why="an integer overflow would silently change the law of the noise",
        fix=Either(Set(size=None), Say("a smaller scale")),
    )


_FEW_DRAWS = 128  # below this, single draws are quicker than building a table
_WORTH_A_TABLE = 1 << 12  # draws of one scale, among many scales, that pay for a table


@dataclass(frozen=True, slots=True)
class Sampler:
    """The samplers of one family of laws: three ways to draw from the same law."""

    name: str
    one: Callable[[Fraction], int]
    bulk: Callable[[Fraction, int], NDArray[np.int64]]
    many: Callable[[ExactArray], NDArray[np.int64]]

    def draw(self, parameter: str, value: Fraction | ExactArray, size: DrawShape) -> int | NDArray[np.int64]:
        """Draw a Python int (one parameter, no size), or an array of 64-bit integers."""
        shape = read_size(size)
        if not isinstance(value, Fraction):
            values, shape = spread(parameter, value, shape)
            return self._each(values).reshape(shape)
        if shape is None:
            return self.one(value)
        count = math.prod(shape)
        if count >= _FEW_DRAWS:
            return self.bulk(value, count).reshape(shape)
        try:
            return np.array([self.one(value) for _ in range(count)], dtype=np.int64).reshape(shape)
        except OverflowError:
            raise does_not_fit(self.name) from None

    def _each(self, values: ExactArray) -> NDArray[np.int64]:
        """Draw scales that occur often by their tables, and all others together, element by element."""
        _, examples, label, counts = np.unique(
            values.labels, return_index=True, return_inverse=True, return_counts=True
        )
        often = counts >= _WORTH_A_TABLE
        out = np.empty(values.near.size, np.int64)
        for group in np.flatnonzero(often):
            out[label == group] = self.bulk(values.exact(int(examples[group])), int(counts[group]))
        rest = np.flatnonzero(~often[label])
        if rest.size:
            out[rest] = self.many(values.at(rest))
        return out
