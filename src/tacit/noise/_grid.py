"""The grid of noise: real numbers to whole multiples and back in exact arithmetic, with one rounding."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational
from tacit.fixes import Set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.exact import Number

_BLOCK = 1 << 15
_EXACT = 2**53  # whole numbers up to here are doubles


@overload
def quantise(x: float | Fraction, grid: Number) -> int: ...
@overload
def quantise(x: Sequence[float] | NDArray[Any], grid: Number) -> NDArray[np.int64]: ...
def quantise(x: float | Fraction | Sequence[float] | NDArray[Any], grid: Number) -> int | NDArray[np.int64]:
    """Round to the grid: floor(x / grid + 1/2) in exact arithmetic.

    Rounding half up moves by whole grid steps when x does, so a change of x by D changes the result by at
    most ceil(D / grid); half-even rounding could double it (law 1).

    Parameters
    ----------
    x
        A number (an int or Fraction exactly, a float at the binary value it stores), or an array of floats or
        whole numbers. NaN and infinities are refused: replace or remove them first.
    grid
        The step, a positive number, exact (a float at its decimal reading).

    Returns
    -------
    A Python int for one number, else an array of 64-bit integers; numbers that do not fit are refused.

    Examples
    --------
    >>> quantise(0.25, 0.1), quantise(-2.5, 1), quantise(0.5, 1)
    (3, -2, 1)
    """
    step = rational("grid", grid)
    if isinstance(x, Fraction):
        return _floor(x, step)
    if isinstance(x, int | np.integer) and not isinstance(x, bool):
        return _floor(Fraction(int(x)), step)
    values = _array("x", x)
    if values.dtype.kind in "iu":
        return _quantise_whole(values, step) if values.ndim else _floor(Fraction(int(values)), step)
    if values.dtype.kind != "f" or values.dtype.itemsize > 8:
        raise _wrong("x", "a number or an array of numbers", values.dtype.name, fix=Set(x=[0.5, 2]))
    if not np.isfinite(values).all():
        why = "they have no place on a grid"
        fix = "replace or remove NaN and infinite values first"
        raise _wrong("x", "finite", "NaN or an infinity", why=why, fix=fix)
    values = values.astype(np.float64, copy=False)
    if values.ndim == 0:
        return _floor(Fraction(float(values)), step)
    return _quantise_floats(values.ravel(), step).reshape(values.shape)


def _array(name: str, values: object) -> NDArray[Any]:
    """Read an array; errors never show values, because they may be private."""
    try:
        return np.asarray(values)
    except (ValueError, OverflowError):
        fix = Set(**{name: [0.5, 2]})
        raise _wrong(name, "a number or an array of numbers", "a ragged sequence", fix=fix) from None


def _wrong(name: str, must_be: str, form: str, *, fix: Set | str, why: str = "") -> TacitError:
    """Build the refusal of values by their form; it shows none of them, because they may be private."""
    return bad_parameter(name, must_be, form, why=why, fix=fix)


def _floor(x: Fraction, step: Fraction) -> int:
    return (2 * x * step.denominator + step.numerator) // (2 * step.numerator)


def _fit(k: int) -> int:
    if not -(2**63) <= k < 2**63:
        raise TacitError(
            "does-not-fit",
            "a multiple of the grid does not fit into 64 bits",
            why="an integer overflow would silently change the value",
            fix="use a coarser grid, or clip the values first",
        )
    return k


def _quantise_whole(values: NDArray[Any], step: Fraction) -> NDArray[np.int64]:
    n, d = step.numerator, step.denominator
    top = max(abs(int(values.max())), abs(int(values.min()))) if values.size else 0
    if 2 * top * d + n < 2**63 and 2 * n < 2**63:
        return (values.astype(np.int64) * (2 * d) + n) // (2 * n)
    flat = [_fit(_floor(Fraction(int(v)), step)) for v in values.flat]
    return np.array(flat, np.int64).reshape(values.shape)


def _quantise_floats(x: NDArray[np.float64], step: Fraction) -> NDArray[np.int64]:
    out = np.empty(x.size, np.int64)
    for start in range(0, x.size, _BLOCK):
        part = x[start : start + _BLOCK]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            out[start : start + _BLOCK] = _quantise_block(part, step)
    return out


def _quantise_block(x: NDArray[np.float64], step: Fraction) -> NDArray[np.int64]:
    """Divide in doubles; where the quotient is close to a half, or large, decide exactly."""
    double = float(step)
    quotient = x / double
    base = np.floor(quotient)
    part = quotient - base
    size = np.abs(quotient)
    up = part >= 0.5
    if step == double and math.frexp(double)[0] == 0.5:  # a power of two: the quotient is exact
        hard = np.flatnonzero(~(size < 2.0**62))
    else:  # the quotient has a relative error below 2^-51
        hard = np.flatnonzero(~(size < 2.0**50) | (np.abs(part - 0.5) <= size * 2.0**-50))
    base[hard] = 0.0
    out = base.astype(np.int64) + up
    if hard.size:
        _, examples, label = np.unique(x[hard], return_index=True, return_inverse=True)
        settled = [_fit(_floor(Fraction(float(x[hard[i]])), step)) for i in examples]
        out[hard] = np.array(settled, np.int64)[label]
    return out


@overload
def from_grid(k: int, grid: Number) -> float: ...
@overload
def from_grid(k: Sequence[int] | NDArray[Any], grid: Number) -> NDArray[np.float64]: ...
def from_grid(k: int | Sequence[int] | NDArray[Any], grid: Number) -> float | NDArray[np.float64]:
    """Return k * grid as the nearest double, rounded once.

    Parameters
    ----------
    k
        A whole number of any size, or an array of whole numbers.
    grid
        The step, a positive number, exact (a float at its decimal reading).

    Examples
    --------
    >>> from_grid(3, 0.1), 3 * 0.1
    (0.3, 0.30000000000000004)
    """
    step = rational("grid", grid)
    n, d = step.numerator, step.denominator
    values = _array("k", k)
    integral = values.dtype.kind in "iu" or values.size == 0
    if values.dtype == object:
        integral = all(isinstance(item, int) and not isinstance(item, bool) for item in values.flat)
    if not integral:
        raise _wrong("k", "a whole number or an array of them", values.dtype.name, fix=Set(k=3))
    if values.ndim == 0:
        return _nearest(int(k) * n, d)  # type: ignore[arg-type]
    if values.dtype != object and values.size:
        top = max(abs(int(values.max())), abs(int(values.min())))
        if top * n <= _EXACT and d <= _EXACT:
            return (values.astype(np.int64) * n) / float(d)
    return np.array([_nearest(int(item) * n, d) for item in values.flat], np.float64).reshape(values.shape)


def _nearest(numerator: int, denominator: int) -> float:
    """Return the nearest double: Python divides whole numbers with one rounding."""
    try:
        return numerator / denominator
    except OverflowError:
        raise TacitError(
            "does-not-fit",
            "a multiple of the grid is larger than the largest float (1.8e308)",
            fix="use a finer grid",
        ) from None
