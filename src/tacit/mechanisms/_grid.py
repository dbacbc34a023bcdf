"""The public grid: numbers to integer steps and back, in exact arithmetic.

Rounding is floor(x/g + 1/2). Where x moves by at most s = N g with N whole, its step moves by at most N:
x/g <= y/g + N gives floor(x/g + 1/2) <= floor(y/g + 1/2) + N. Where s/g is not whole, N = ceil(s/g).
Of d numbers that move by s together, the steps move by at most s/g + d in L1 and s/g + sqrt(d) in L2, since
each rounding adds less than one step.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias, cast, overload

import numpy as np
from numpy.typing import NDArray

from tacit import noise
from tacit.errors import TacitError, bad_parameter

__all__ = [
    "FINE",
    "LONGEST",
    "Array",
    "ExactNumbers",
    "Steps",
    "add",
    "default_grid",
    "fine_grid",
    "from_steps",
    "read_numbers",
    "to_steps",
]

LONGEST = 2**53  # steps in one noise scale: no draw comes near 64 bits
FINE = 2**20  # steps in one noise scale, by default: a millionth is invisible beside the noise
_SAFE = 2**62 - 1  # two of these still fit into 64 bits

#: IntegerNoise numbers of steps: one, or an array (of 64 bits where they fit, else of Python ints).
Array: TypeAlias = NDArray[np.int64] | NDArray[np.object_]
Steps: TypeAlias = int | Array
#: ExactNumbers as read at the door.
ExactNumbers: TypeAlias = int | Fraction | NDArray[np.float64] | NDArray[np.int64] | NDArray[np.object_]


def default_grid(sensitivity: Fraction, scale: Fraction) -> tuple[Fraction, int]:
    """Return a grid g and N = sensitivity / g, whole, with at least 2^20 steps in the noise scale.

    Depends on public parameters only. IntegerNoise numbers lie on the grid unless the sensitivity is an odd
    fraction.

    Examples
    --------
    >>> default_grid(Fraction(1), Fraction(2))
    (Fraction(1, 524288), 524288)
    >>> default_grid(Fraction(3, 125), Fraction(1, 5))
    (Fraction(1, 8192000), 196608)
    """
    wanted = max(1, math.ceil(FINE * sensitivity / scale))
    top, bottom = sensitivity.numerator, sensitivity.denominator
    if top <= FINE and max(top, wanted) * scale <= LONGEST * sensitivity:
        doublings = max(0, math.ceil(wanted / top) - 1).bit_length()
        return Fraction(1, bottom << doublings), top << doublings
    steps = 1 << (wanted - 1).bit_length()
    return sensitivity / steps, steps


def fine_grid(sensitivity: Fraction, size: int, *, scale: Fraction | None = None) -> Fraction:
    """Return a power of two for `size` numbers: rounding them costs a millionth of the sensitivity.

    Where the noise scale would then have too many steps for 64 bits, rounding may cost up to a quarter.
    """
    wanted = sensitivity / (FINE * size)
    if scale is not None and scale > LONGEST * wanted:
        wanted = scale / LONGEST
        if 4 * size * wanted > sensitivity:
            raise bad_parameter(
                "value",
                "fewer numbers for so small an epsilon",
                f"{size} of them",
                why="noise and rounding do not fit into 64 bits together",
                fix="whole numbers on a grid of 1: tc.mechanisms.DiscreteLaplace",
            )
    down = wanted.denominator.bit_length() - wanted.numerator.bit_length() + 1  # 2^-down <= wanted
    return Fraction(1, 1 << down) if down >= 0 else Fraction(1 << -down)


def read_numbers(value: object) -> ExactNumbers:
    """Read one finite number or an array of them."""
    if isinstance(value, bool | np.bool_):
        raise _not_numbers()
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            raise _not_numbers()
        return Fraction(float(value))
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Decimal):
        if not value.is_finite() or abs(value.adjusted()) > 400:
            raise _not_numbers()
        return Fraction(value)
    try:
        array = np.asarray(value)
    except ValueError:
        raise _not_numbers() from None
    if array.ndim == 0:
        if not isinstance(value, np.ndarray):  # no number, and no sequence of them
            raise _not_numbers()
        return read_numbers(array.item())
    if array.dtype.kind in "iu":
        return array.astype(np.int64) if array.dtype != np.uint64 else _exact(array)
    if array.dtype.kind == "f":
        numbers = array.astype(np.float64)
        if not np.all(np.isfinite(numbers)):
            raise _not_numbers()
        return numbers
    if array.dtype == object:
        return _exact(array)
    raise _not_numbers()


def _exact(array: NDArray[np.generic]) -> NDArray[np.object_]:
    flat = [read_numbers(one) for one in array.ravel().tolist()]
    if not all(isinstance(one, int | Fraction) for one in flat):
        raise _not_numbers()
    numbers = np.empty(len(flat), dtype=object)
    numbers[:] = flat
    return numbers.reshape(array.shape)


def _not_numbers() -> TacitError:
    return TacitError(
        "not-finite",
        "the value to be released is not a finite number or an array of them",
        why="noise cannot hide NaN or an infinity; give them a fixed meaning before the data is seen",
        fix="tc.mechanisms.clip(values, low, high, missing=low)",
    )


@overload
def to_steps(numbers: int | Fraction, grid: Fraction) -> int: ...
@overload
def to_steps(numbers: NDArray[Any], grid: Fraction) -> Array: ...
def to_steps(numbers: int | Fraction | NDArray[Any], grid: Fraction) -> Steps:
    """Return floor(x/g + 1/2), exactly, whatever the size of x."""
    if isinstance(numbers, int | Fraction):
        return math.floor(numbers / grid + Fraction(1, 2))
    if numbers.dtype != object and _largest(numbers) < _SAFE * grid:
        if numbers.dtype == np.int64 and grid.numerator == 1:  # whole numbers on the grid already
            return cast("NDArray[np.int64]", numbers * np.int64(grid.denominator))
        return noise.quantise(numbers, grid)
    half = Fraction(1, 2)
    flat = np.empty(numbers.size, dtype=object)
    flat[:] = [math.floor(Fraction(one) / grid + half) for one in numbers.ravel().tolist()]
    return flat.reshape(numbers.shape)


def _largest(numbers: NDArray[np.generic]) -> Fraction:
    """Return the largest size of an array of 64-bit floats or integers, exactly."""
    if numbers.size == 0:
        return Fraction(0)
    return max(abs(Fraction(numbers.max().item())), abs(Fraction(numbers.min().item())))


@overload
def add(steps: int, drawn: int) -> int: ...
@overload
def add(steps: NDArray[Any], drawn: NDArray[np.int64]) -> Array: ...
def add(steps: int | NDArray[Any], drawn: int | NDArray[np.int64]) -> Steps:
    """Add noise without wrapping around: in 64 bits where all fits, else in Python ints."""
    if isinstance(steps, int):
        return steps + int(drawn)
    if steps.dtype == np.int64 and isinstance(drawn, np.ndarray) and _fits(steps, drawn):
        return cast("NDArray[np.int64]", steps + drawn)
    return cast("NDArray[np.object_]", steps.astype(object) + np.asarray(drawn).astype(object))


def _fits(*arrays: NDArray[Any]) -> bool:
    return all(a.size == 0 or (int(a.min()) >= -_SAFE and int(a.max()) <= _SAFE) for a in arrays)


def from_steps(steps: Steps, grid: Fraction) -> float | NDArray[np.float64]:
    """Return steps times the grid as floats, rounded once."""
    if isinstance(steps, int):
        return float(steps * grid)
    if steps.dtype == np.int64:
        if grid.numerator == 1 and grid.denominator.bit_count() == 1 and grid.denominator < 2**900:
            return np.ldexp(steps.astype(np.float64), 1 - grid.denominator.bit_length())
        return noise.from_grid(steps, grid)
    flat = np.array([float(one * grid) for one in steps.ravel().tolist()], dtype=np.float64)
    return flat.reshape(steps.shape)
