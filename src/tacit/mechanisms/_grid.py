"""The public grid of mechanisms: numbers to integer steps and back, in exact arithmetic.

Numbers are what `_input_values` reads. Rounding is floor(x/g + 1/2). Where x moves by at most s = N g with N
whole, its step moves by at most N: x/g <= y/g + N gives floor(x/g + 1/2) <= floor(y/g + 1/2) + N. Where s/g
is not whole, N = ceil(s/g). Of d numbers that move by s together, the steps move by at most s/g + d in L1
and s/g + sqrt(d) in L2, since each rounding adds less than one step; where every step is known to lie within
1 of x/g only, by at most s/g + 2d and s/g + 2 sqrt(d).

A float is the decimal that it is written as. How far this notation lies from what the float stores is
computed for many floats at once. A float that is not whole is x = m 2^-e with whole m and
2^52 <= |m| < 2^53. Its notation is the shortest decimal that is read back as x, and the nearest of those. The
decimal with k places nearest to x is M / 10^k, where M is m 10^k / 2^e, rounded. So it differs from x by
d / (2^e 10^k), where d is the distance of m 10^k from the nearest multiple of 2^e. It is read back as x if
that is below half a unit of x's last place: 2 d < 10^k. The smallest such k gives the notation. There
2 d = 10^k cannot happen: M 2^(e+1) = 10^k (2m +- 1) needs k > e, and d is 0 for k = e already. Only d is
needed, and it follows from m 10^k modulo 2^e, so 64 bits are enough. One more place makes d at most ten times
larger, so what k places do, k + 1 do too, and the smallest k is found by halving. Two cases are not covered:
powers of two, whose lower neighbour is nearer, and ties between two decimals.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any, TypeAlias, cast, overload

import numpy as np
from numpy.typing import NDArray

from tacit import noise
from tacit.errors import bad_parameter
from tacit.fixes import Code
from tacit.mechanisms._input_values import exact_float

_PLACES = 18  # 10^18 is below 2^63
_TENS = np.array([10**k for k in range(_PLACES + 1)], np.uint64)
_ONE = np.uint64(1)
_STORED = np.int64(2**52 - 1)  # the bits of a float that hold m, but for its leading one


def beyond_stored(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return decimal notation minus stored number for floats that are not whole; NaN where it is not found.

    Examples
    --------
    >>> from fractions import Fraction
    >>> beyond_stored(np.array([0.1])).tolist() == [float(Fraction(1, 10) - Fraction(0.1))]
    True
    """
    bits = np.ascontiguousarray(x).view(np.int64)
    e = 1075 - (bits >> 52 & 0x7FF)
    digits = bits & _STORED
    certain = (e >= 1) & (e <= 63) & (digits != 0)
    e = np.where(certain, e, 1)
    m = (digits | _STORED + 1).view(np.uint64)
    mask = (np.left_shift(1, e) - 1).view(np.uint64)  # modulo 2^e; 2^63 wraps around to -2^63, and back
    places = _places(m, mask)
    ten = _TENS[places]
    above = m * ten & mask
    below = mask + _ONE - above
    certain &= (np.minimum(above, below) < ten >> _ONE) & (above != below)
    distance: NDArray[np.float64] = np.where(above < below, -above.astype(np.float64), below)
    distance /= ten.astype(np.float64)  # exact up to 10^22
    distance *= ((1023 - e) << 52).view(np.float64)  # 2^-e
    distance *= np.copysign(1.0, x)
    distance[~certain] = np.nan
    return distance


def _places(m: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the fewest decimal places that are enough; the most there are, if none are."""

    def enough(ten: Any) -> NDArray[np.bool_]:
        """Return whether m ten is less than ten / 2 away from a multiple of 2^e, above or below it."""
        return np.asarray((m * ten + ((ten >> _ONE) - _ONE) & mask) < ten - _ONE)

    top = np.full(m.shape, 4)  # enough, if any are; four fewer are not
    for tried in (4, 8, 12, 16):
        too_few = ~enough(_TENS[tried])
        if not too_few.any():
            break
        top += too_few * min(4, _PLACES - tried)
    middle = top - 2
    candidate = middle + 1 - 2 * enough(_TENS[middle])  # one place above the middle, or one below
    return np.asarray(candidate + ~enough(_TENS[candidate]))


LONGEST = 2**53  # steps in one noise scale: no draw comes near 64 bits
FINE = 2**20  # steps in one noise scale, by default: a millionth is too small to matter
_SAFE = 2**62 - 1  # two of these still fit into 64 bits
_SETTLED = 2.0**50  # the relative precision of a quotient in doubles, with a margin
_NORMAL = sys.float_info.min  # a smaller float has lost digits
_BLOCK, _SHORT = 1 << 15, 1 << 13  # numbers that are worked on at a time

#: Whole numbers of steps: one, or an array (of 64 bits where they fit, else of Python ints).
Array: TypeAlias = NDArray[np.int64] | NDArray[np.object_]
Steps: TypeAlias = int | Array


def default_grid(sensitivity: Fraction, scale: Fraction) -> tuple[Fraction, int]:
    """Return a grid g and N = sensitivity / g, whole, with at least 2^20 steps in the noise scale.

    Depends on public parameters only. Whole numbers lie on the grid unless the sensitivity is an odd
    fraction.

    Examples
    --------
    >>> default_grid(Fraction(1), Fraction(2))
    (Fraction(1, 524288), 524288)
    >>> default_grid(Fraction(3, 125), Fraction(1, 5))
    (Fraction(1, 8192000), 196608)
    """
    refinement = max(1, math.ceil(FINE * sensitivity / scale))
    top, bottom = sensitivity.numerator, sensitivity.denominator
    if top <= FINE and max(top, refinement) * scale <= LONGEST * sensitivity:
        doublings = max(0, math.ceil(refinement / top) - 1).bit_length()
        return Fraction(1, bottom << doublings), top << doublings
    steps = 1 << (refinement - 1).bit_length()
    return sensitivity / steps, steps


def fine_grid(sensitivity: Fraction, size: int, *, scale: Fraction | None = None) -> Fraction:
    """Return a power of two for `size` numbers: rounding them costs a millionth of the sensitivity.

    Where the noise scale would then have too many steps for 64 bits, rounding may cost up to a quarter.
    """
    target = sensitivity / (FINE * size)
    if scale is not None and scale > LONGEST * target:
        target = scale / LONGEST
        if 4 * size * target > sensitivity:
            raise bad_parameter(
                "value",
                "shorter for such a small epsilon",
                f"{size} numbers",
                why="the noise and the rounding together do not fit into 64 bits",
                fix=Code("tc.mechanisms.DiscreteLaplace(...) for whole numbers"),
            )
    down = target.denominator.bit_length() - target.numerator.bit_length() + 1  # 2^-down <= target
    return Fraction(1, 1 << down) if down >= 0 else Fraction(1 << -down)


@overload
def to_steps(numbers: float | Fraction, grid: Fraction) -> int: ...
@overload
def to_steps(numbers: NDArray[Any], grid: Fraction, *, many: bool = False, stored: bool = True) -> Array: ...
def to_steps(
    numbers: float | Fraction | NDArray[Any], grid: Fraction, *, many: bool = False, stored: bool = True
) -> Steps:
    """Return floor(x/g + 1/2), exactly, whatever the size of x.

    With `many`, for arrays on a fine grid that is a power of two, every step is within 1 of x/g instead,
    which is quicker; there x is the number that a float stores (for containers that hold floats by their own
    type), or with `stored=False` its reading, as everywhere else.
    """
    if not isinstance(numbers, np.ndarray):
        return _float_to_steps(numbers, grid) if isinstance(numbers, float) else _floor(numbers, grid)
    if numbers.dtype == object:
        return _one_by_one(numbers.ravel().tolist(), numbers.shape, grid)
    if numbers.dtype == np.float64:
        return _floats_to_steps(numbers, grid, many=many, stored=stored)
    if max(grid.numerator, grid.denominator) < _SAFE // 2 and _largest(numbers) < _SAFE * grid:
        if grid.numerator == 1:  # whole numbers lie on the grid
            return cast("NDArray[np.int64]", numbers * np.int64(grid.denominator))
        return noise.quantise(numbers, grid)
    return _one_by_one(numbers.ravel().tolist(), numbers.shape, grid)


def _floor(x: int | Fraction, grid: Fraction) -> int:
    """Return floor(x/g + 1/2) for x = a/b and g = n/d: the whole part of (2ad + nb) / 2nb."""
    below = 2 * grid.numerator * x.denominator
    return (2 * x.numerator * grid.denominator + below // 2) // below


def _float_to_steps(x: float, grid: Fraction) -> int:
    """Divide in doubles; where that does not settle the step, decide by the exact reading.

    The quotient is off by less than 2^-51 of itself, and the reading of x by 2^-53.
    """
    step = grid.numerator / grid.denominator
    quotient = x / step if step >= _NORMAL else math.inf
    if -_SETTLED < quotient < _SETTLED:
        base = math.floor(quotient)
        part = quotient - base
        if abs(part - 0.5) > abs(quotient) / _SETTLED:
            return base + (part > 0.5)
    return _floor(exact_float(x), grid)


def _one_by_one(
    numbers: list[Any], shape: tuple[int, ...], grid: Fraction, *, stored: bool = False
) -> NDArray[np.object_]:
    """Round ints, Fractions and floats, each by its own reading, or floats at what they store."""
    n, d = grid.numerator, grid.denominator
    steps = np.empty(len(numbers), dtype=object)
    if set(map(type, numbers)) == {int}:
        steps[:] = [(2 * x * d + n) // (2 * n) for x in numbers] if n != 1 else [x * d for x in numbers]
    else:
        ratio = float.as_integer_ratio if stored else _ratio
        pairs = map(ratio, numbers)
        steps[:] = [(2 * a * d + n * b) // (2 * n * b) for a, b in pairs]
    return steps.reshape(shape)


def _ratio(x: float | Fraction) -> tuple[int, int]:
    """Return the exact reading of a number as a numerator and a denominator."""
    return (exact_float(x) if isinstance(x, float) else x).as_integer_ratio()


def _floats_to_steps(
    numbers: NDArray[np.float64], grid: Fraction, *, many: bool = False, stored: bool = False
) -> Array:
    """Round floats to the grid, exactly, or with `many` to within one step.

    The reading of a float that is not whole lies within half a unit of its last place. On a grid that is a
    power of two the quotient q is exact. So rint(q) is within 1/2 of what the float stores, and below 2^54
    within 1 of its reading: half a unit of q's last place is at most 1/2 below 2^53, and q is whole above.
    From there on the step is moved by the difference of the two.
    """
    largest = _largest(numbers)
    if largest >= _SAFE * grid or grid < _NORMAL:
        return _one_by_one(numbers.ravel().tolist(), numbers.shape, grid, stored=many and stored)
    if many:
        steps = np.rint(numbers * float(1 / grid)).astype(np.int64, order="C")
        if not stored and largest >= 2**54 * grid:
            _move_to_readings(numbers.ravel(), steps.ravel(), grid)
        return steps
    flat = numbers.ravel()
    out = np.empty(flat.size, np.int64)
    small = largest < 2**51 * grid
    for start in range(0, flat.size, _BLOCK):
        out[start : start + _BLOCK] = _block_to_steps(flat[start : start + _BLOCK], grid, small=small)
    return out.reshape(numbers.shape)


def _move_to_readings(numbers: NDArray[np.float64], steps: NDArray[np.int64], grid: Fraction) -> None:
    """Move the steps of what floats store to within one step of their reading, from 2^54 steps on."""
    for start in range(0, len(numbers), _SHORT):
        x, here = numbers[start : start + _SHORT], steps[start : start + _SHORT]
        far = np.flatnonzero((np.abs(here) >= 2**54) & (x != np.rint(x)))
        if not len(far):
            continue
        x = x[far]
        shift = beyond_stored(x) * float(1 / grid)
        unknown = np.flatnonzero(np.isnan(shift))
        shift[unknown] = 0.0
        here[far] += np.rint(shift).astype(np.int64)
        here[far[unknown]] = [_floor(exact_float(one), grid) for one in x[unknown].tolist()]


def _block_to_steps(x: NDArray[np.float64], grid: Fraction, *, small: bool) -> NDArray[np.int64]:
    """Divide in doubles; where that does not settle the step, decide by the exact reading.

    On a grid that is a power of two the quotient is exact and, below 2^51, the halves are floats themselves,
    so that the reading can only change sides where the quotient is a half. On others the quotient is off by
    2^-51 of itself, the reading by 2^-53.
    """
    step = float(grid)
    with np.errstate(over="ignore", under="ignore"):
        quotient = x / step
        base = np.floor(quotient)
        part = quotient - base
        if grid != step or math.frexp(step)[0] != 0.5:
            size = np.abs(quotient)
            hard = np.flatnonzero((size >= _SETTLED) | (np.abs(part - 0.5) <= size / _SETTLED))
        else:
            doubtful = part == 0.5
            hard = np.flatnonzero(doubtful if small else doubtful | (np.abs(quotient) >= 2.0**51))
            hard = hard[x[hard] != np.rint(x[hard])]  # whole numbers are what they store
    base[hard] = 0.0
    out = base.astype(np.int64)
    out += part >= 0.5
    if hard.size:
        again, label = np.unique(x[hard], return_inverse=True)
        settled = [_floor(exact_float(one), grid) for one in again.tolist()]
        out[hard] = np.array(settled, np.int64)[label]
    return out


def _largest(numbers: NDArray[np.generic]) -> Fraction:
    """Return the largest size of an array of 64-bit floats or integers, exactly."""
    if numbers.size == 0:
        return Fraction(0)
    return max(abs(Fraction(numbers.max().item())), abs(Fraction(numbers.min().item())))


@overload
def add(steps: int, noise: int) -> int: ...
@overload
def add(steps: NDArray[Any], noise: NDArray[np.int64]) -> Array: ...
def add(steps: int | NDArray[Any], noise: int | NDArray[np.int64]) -> Steps:
    """Add noise without wrapping around: in 64 bits where all fits, else in Python ints."""
    if isinstance(steps, int):
        return steps + int(noise)
    if steps.dtype == np.int64 and isinstance(noise, np.ndarray) and fits(steps, noise):
        return cast("NDArray[np.int64]", steps + noise)
    return cast("NDArray[np.object_]", steps.astype(object) + np.asarray(noise).astype(object))


def fits(*arrays: NDArray[Any]) -> bool:
    """Return whether the sum of two entries of these arrays surely fits into 64 bits."""
    return all(a.size == 0 or (int(a.min()) >= -_SAFE and int(a.max()) <= _SAFE) for a in arrays)


def from_steps(steps: Steps, grid: Fraction) -> float | NDArray[np.float64]:
    """Return steps times the grid as floats, rounded once; beyond the largest float, the largest float."""
    if isinstance(steps, int):
        return _to_float(steps * grid.numerator, grid.denominator)
    if steps.dtype == np.int64:
        if grid.numerator == 1 and grid.denominator.bit_count() == 1 and grid.denominator < 2**900:
            return np.multiply(
                steps, float(grid), dtype=np.float64
            )  # a power of two, and no result is below 2^-900: exact
        return noise.from_grid(steps, grid)
    n, d = grid.numerator, grid.denominator
    flat = np.array([_to_float(one * n, d) for one in steps.ravel().tolist()], dtype=np.float64)
    return flat.reshape(steps.shape)


def _to_float(numerator: int, denominator: int) -> float:
    """Return the nearest float: Python divides whole numbers with one rounding."""
    try:
        return numerator / denominator
    except OverflowError:
        return sys.float_info.max if numerator > 0 else -sys.float_info.max
