"""Coins for exact noise, whose chance is a rational number, or exp(-x) of one."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tacit.noise import _bits, _floats
from tacit.noise._intervals import IntegerInterval, below, exp_minus, scaled
from tacit.noise._parameters import read, read_size, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tacit.exact import Number
    from tacit.noise._parameters import DrawShape, NumberOrArray

_MARGIN = 2.0**-40  # far above the error of a chance computed in doubles


@overload
def bernoulli(p: Number, size: None = None) -> bool: ...
@overload
def bernoulli(p: NumberOrArray, size: int | tuple[int, ...]) -> NDArray[np.bool_]: ...
@overload
def bernoulli(p: Sequence[Any] | np.ndarray[Any, Any], size: DrawShape = None) -> NDArray[np.bool_]: ...
def bernoulli(p: NumberOrArray, size: DrawShape = None) -> bool | NDArray[np.bool_]:
    """Draw True with probability exactly p.

    Parameters
    ----------
    p
        A number from 0 to 1, exact (a float at its decimal reading), or one per element.
    size
        None for one bool, or the shape of an array.

    Examples
    --------
    >>> bernoulli(1), bernoulli(0)
    (True, False)
    """
    value = read("p", p, zero=True, most=Fraction(1))
    shape = read_size(size)
    if isinstance(value, Fraction):
        if shape is None:
            return one_coin(_bits.word(), float(value), lambda bits: scaled(value, bits))
        return alike_coins(lambda bits: scaled(value, bits), math.prod(shape)).reshape(shape)
    values, shape = spread("p", value, shape)
    return each_coin(values.near, lambda i: lambda bits: scaled(values.exact(i), bits)).reshape(shape)


@overload
def bernoulli_exp(x: Number, size: None = None) -> bool: ...
@overload
def bernoulli_exp(x: NumberOrArray, size: int | tuple[int, ...]) -> NDArray[np.bool_]: ...
@overload
def bernoulli_exp(x: Sequence[Any] | np.ndarray[Any, Any], size: DrawShape = None) -> NDArray[np.bool_]: ...
def bernoulli_exp(x: NumberOrArray, size: DrawShape = None) -> bool | NDArray[np.bool_]:
    """Draw True with probability exactly exp(-x).

    Parameters
    ----------
    x
        A non-negative number, exact (a float at its decimal reading), or one per element.
    size
        None for one bool, or the shape of an array.

    Examples
    --------
    >>> bernoulli_exp(0)
    True
    """
    value = read("x", x, zero=True, most=None)
    shape = read_size(size)
    if isinstance(value, Fraction):
        if shape is None:
            return exp_coin(_bits.word(), value.numerator, value.denominator)
        return alike_coins(lambda bits: exp_minus(value, bits), math.prod(shape)).reshape(shape)
    values, shape = spread("x", value, shape)
    return exp_coins(values.near, values.exact).reshape(shape)


def exp_coin(uniform: int, n: int, d: int) -> bool:
    """Turn a uniform word into True with probability exp(-n/d)."""
    rate = n / d if n < _floats.FAR * d else float(_floats.FAR)  # rounded once
    return one_coin(uniform, _floats.exp_minus_one(rate), lambda bits: exp_minus(Fraction(n, d), bits))


def exp_coins(x: NDArray[np.float64], exact: Callable[[int], Fraction]) -> NDArray[np.bool_]:
    """Draw True with probability exp(-x), one x per element.

    `x` may have an error that changes exp(-x) by at most 2^-42; `exact` returns the true values.
    """
    return each_coin(_floats.exp_minus(x), lambda i: lambda bits: exp_minus(exact(i), bits))


def one_coin(uniform: int, chance: float, bound: Callable[[int], IntegerInterval]) -> bool:
    """Compare a uniform word, extended as needed, with a chance: in doubles, or exactly by `bound`."""
    gap = uniform * 2.0**-64 - chance
    if gap < -_MARGIN:
        return True
    return gap <= _MARGIN and below(uniform, 64, bound)


def each_coin(
    chances: NDArray[np.float64], bound: Callable[[int], Callable[[int], IntegerInterval]]
) -> NDArray[np.bool_]:
    """Compare one uniform number per element with its chance: in doubles if they can decide, else exactly."""
    words = np.empty(chances.size, np.uint64)
    _bits.fill(words)
    words >>= np.uint64(11)
    gap = words * 2.0**-53
    gap -= chances
    coins = gap < 0
    for i in np.flatnonzero(np.abs(gap) <= _MARGIN):
        coins[i] = below(int(words[i]), 53, bound(int(i)))
    return coins


def alike_coins(bound: Callable[[int], IntegerInterval], count: int) -> NDArray[np.bool_]:
    """Compare 16 bits with the common chance; if they do not decide, 64 more; then exact arithmetic."""
    low, high = bound(16)
    words = np.empty(count, np.uint16)
    _bits.fill(words)
    coins = words < low
    unsure = np.flatnonzero(~coins & (words < high))
    if unsure.size:
        more = np.empty(unsure.size, np.uint64)
        _bits.fill(more)
        for where, digits in zip(unsure, more, strict=True):
            coins[where] = below((int(words[where]) << 64) | int(digits), 80, bound)
    return coins
