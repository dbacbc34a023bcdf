"""Gaussian noise on the integers, drawn exactly: the discrete Gaussian, and the rounded Gaussian.

Rounded Gaussian noise is a real Gaussian number, rounded to the nearest integer. With Y real Gaussian of
deviation 2^s sigma, round(Y / 2^s) = floor((floor(Y) + 2^(s-1)) / 2^s) for s >= 1. The floor of a real number
comes from the same tables as other noise; then it is shifted. The shift s makes the deviation of Y large
enough for the tables; it does not change the law. See docs/proofs/noise.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tacit.noise import _bits, _floats, _geometric
from tacit.noise._bulk import strips
from tacit.noise._coins import each_coin, exp_coin, exp_coins, one_coin
from tacit.noise._intervals import IntegerInterval, Place, exp_minus_between
from tacit.noise._parameters import ExactArray, Sampler, does_not_fit, read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tacit.exact import Number
    from tacit.noise._parameters import DrawShape, NumberOrArray


_NAME = "rounded Gaussian noise"
_BLOCK = 1 << 16
_SPREAD = 7  # tables are made for deviations of at least 2^6


def _energy(sigma: Fraction, t: int, y: int) -> Fraction:
    """Return the exponent of the acceptance coin: (|y| - sigma^2/t)^2 / (2 sigma^2)."""
    variance = sigma * sigma
    return (abs(y) - variance / t) ** 2 / (2 * variance)


def _one(sigma: Fraction) -> int:
    """Draw a discrete Laplace number y of scale t; accept with exp(-(|y| - sigma^2/t)^2 / (2 sigma^2)).

    Canonne, Kamath, Steinke 2020, Algorithm 3: the product of the two is proportional to exp(-y^2 / (2
    sigma^2)).
    """
    n, d = sigma.numerator**2, sigma.denominator**2
    t = sigma.numerator // sigma.denominator + 1
    scale, below, t_d = Fraction(t), 2 * n * d * t * t, t * d
    limits = _geometric.thresholds(t, 1)
    while True:
        coin, *words = _bits.words(len(limits) + 3)
        y = _geometric.laplace_from(scale, limits, words)
        if exp_coin(coin, (abs(y) * t_d - n) ** 2, below):
            return y


def _many(sigmas: ExactArray) -> NDArray[np.int64]:
    """Draw as `_one` does, for all elements at once."""
    out = np.empty(sigmas.near.size, np.int64)
    huge = sigmas.near > 2.0**56  # their proposals may need more than 64 bits, though their results rarely do
    for i in np.flatnonzero(huge):
        draw = _one(sigmas.exact(int(i)))
        if not -(2**63) <= draw < 2**63:
            raise does_not_fit("discrete Gaussian noise")
        out[i] = draw
    pending = np.flatnonzero(~huge)
    while pending.size:
        scales = sigmas.at(pending)
        y, accepted = _propose(scales)
        out[pending[accepted]] = y[accepted]
        pending = pending[~accepted]
    return out


def _propose(sigmas: ExactArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Make one proposal per element and toss its coin."""
    sigma = np.maximum(sigmas.near, 2.0**-500)
    t = np.floor(sigma) + 1.0  # any whole number is valid; it affects the acceptance rate only
    y = _geometric.laplace_many(ExactArray(t, lambda i: Fraction(int(t[i])), t))
    x = (np.abs(y.astype(np.float64)) - sigma * (sigma / t)) / sigma
    x = np.minimum(x, 2.0**10)
    return y, exp_coins(0.5 * x * x, lambda i: _energy(sigmas.exact(i), int(t[i]), int(y[i])))


def _bulk(sigma: Fraction, count: int) -> NDArray[np.int64]:
    spread = 2 * sigma * sigma
    return strips(spread.numerator, spread.denominator, 2, signed=True).draw(count, "discrete Gaussian noise")


_GAUSSIAN = Sampler("discrete Gaussian noise", _one, _bulk, _many)


@overload
def discrete_gaussian(sigma: Number, size: None = None) -> int: ...
@overload
def discrete_gaussian(sigma: NumberOrArray, size: int | tuple[int, ...]) -> NDArray[np.int64]: ...
@overload
def discrete_gaussian(
    sigma: Sequence[Any] | np.ndarray[Any, Any], size: DrawShape = None
) -> NDArray[np.int64]: ...
def discrete_gaussian(sigma: NumberOrArray, size: DrawShape = None) -> int | NDArray[np.int64]:
    """Draw integers k with probability exactly proportional to exp(-k^2 / (2 sigma^2)).

    Added to integers of L2 sensitivity D, this noise is rho-zCDP for rho = D^2 / (2 sigma^2)
    (Canonne, Kamath, Steinke 2020, Theorem 4). Its variance is at most sigma^2.

    Parameters
    ----------
    sigma
        A positive number up to 2^60, exact (a float at its decimal reading), or one per element.
    size
        None for one Python int of any size, or the shape of an array of 64-bit integers. A draw that does not
        fit into 64 bits is refused with code ``does-not-fit``; it never overflows.

    Examples
    --------
    >>> discrete_gaussian([0.5, 10, 1000]).shape
    (3,)
    """
    return _GAUSSIAN.draw("sigma", read("sigma", sigma), size)


def _shift(sigma: Fraction, bits: int) -> int:
    """Return an s >= 1 with ``2**s * sigma`` at least ``2**(bits - 2)``; any s is valid."""
    return max(1, bits - sigma.numerator.bit_length() + sigma.denominator.bit_length())


def _one_rounded(sigma: Fraction) -> int:
    """Draw |Y| as a geometric number j plus a fraction f; accept with exp(-z^2/2 - f/t), z = (y - S^2/t)/S.

    S is the deviation of Y, y = j + f and t the scale of j: the product of the chances is proportional to
    exp(-y^2 / (2 S^2)), because z^2/2 + f/t = y^2/(2 S^2) - j/t + S^2/(2 t^2).
    """
    s = _shift(sigma, 3)
    spread = sigma * 2**s
    deviation, t = float(spread), spread.numerator // spread.denominator + 1
    scale, shift = Fraction(t), deviation / t * deviation
    while True:
        j = _geometric.geometric_one(scale)
        coin, digits, sign = _bits.words(3)
        f = digits * 2.0**-64
        z = (j + f - shift) / deviation
        chance = _floats.exp_minus_one(0.5 * z * z + f / t)
        if one_coin(coin, chance, _coin(spread, t, Place(j, digits, 64))):
            floor = ~j if sign >> 63 else j
            return (floor + (1 << (s - 1))) >> s


def _coin(spread: Fraction, t: int, y: Place) -> Callable[[int], IntegerInterval]:
    """Return the intervals of the chance to accept a proposal; its exponent rises with the fraction."""
    variance = spread * spread

    def energy(at: Fraction) -> Fraction:
        return at * at / (2 * variance) - Fraction(y.whole, t) + variance / (2 * t * t)

    def bound(bits: int) -> IntegerInterval:
        low, high = y.ends(bits)
        return exp_minus_between((energy(low), energy(high)), bits)

    return bound


def _many_rounded(sigmas: ExactArray) -> NDArray[np.int64]:
    """Draw as `_one` does, for all elements at once; the shift makes every deviation at least 2."""
    out = np.empty(sigmas.near.size, np.int64)
    huge = sigmas.near > 2.0**54  # proposals and shifts may need more than 64 bits
    tiny = sigmas.near < 2.0**-50
    for i in np.flatnonzero(huge | tiny):
        draw = _one_rounded(sigmas.exact(int(i)))
        if not -(2**63) <= draw < 2**63:
            raise does_not_fit(_NAME)
        out[i] = draw
    pending = np.flatnonzero(~(huge | tiny))
    while pending.size:
        proposed, accepted = _propose_rounded(sigmas.at(pending))
        out[pending[accepted]] = proposed[accepted]
        pending = pending[~accepted]
    return out


def _propose_rounded(sigmas: ExactArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Make one proposal per element and toss its coin."""
    s = np.maximum(1, 2 - np.frexp(sigmas.near)[1]).astype(np.int64)
    spread = np.ldexp(sigmas.near, s)
    t = np.floor(spread) + 1.0
    j = _geometric.geometric_many(ExactArray(t, lambda i: Fraction(int(t[i])), t))
    words = np.empty(2 * j.size, np.uint64)
    _bits.fill(words)
    sign, digits = (words[: j.size] >> np.uint64(63)).astype(np.int64), words[j.size :] >> np.uint64(11)
    f = digits * 2.0**-53
    z = np.minimum((j.astype(np.float64) + f - spread * (spread / t)) / spread, 2.0**10)

    def exact(i: int) -> Callable[[int], IntegerInterval]:
        return _coin(sigmas.exact(i) * 2 ** int(s[i]), int(t[i]), Place(int(j[i]), int(digits[i]), 53))

    accepted = each_coin(_floats.exp_minus(0.5 * z * z + f / t), exact)
    return ((j ^ -sign) + (np.int64(1) << (s - 1))) >> s, accepted


def _strips_rounded(sigma: Fraction, count: int) -> NDArray[np.int64]:
    """Draw floors of Y from the table of its law, and round."""
    s = _shift(sigma, _SPREAD)
    spread = 2 * (sigma * 2**s) ** 2
    draws = strips(spread.numerator, spread.denominator, 2, signed=True, real=True).draw(count, _NAME)
    for start in range(0, count, _BLOCK):
        part = draws[start : start + _BLOCK]
        part >>= np.int64(min(s - 1, 63))  # beyond 63 it is -1 or 0, as for 63
        odd = part & 1
        part >>= 1
        part += odd  # floor((n + 1) / 2), without an overflow
    return draws


_ROUNDED = Sampler(_NAME, _one_rounded, _strips_rounded, _many_rounded)


@overload
def rounded_gaussian(sigma: Number, size: None = None) -> int: ...
@overload
def rounded_gaussian(sigma: NumberOrArray, size: int | tuple[int, ...]) -> NDArray[np.int64]: ...
@overload
def rounded_gaussian(
    sigma: Sequence[Any] | np.ndarray[Any, Any], size: DrawShape = None
) -> NDArray[np.int64]: ...
def rounded_gaussian(sigma: NumberOrArray, size: DrawShape = None) -> int | NDArray[np.int64]:
    """Draw real Gaussian numbers of deviation sigma, rounded to the nearest integer, exactly.

    Added to integers, this noise is the continuous Gaussian noise rounded afterwards, so everything that
    holds for the continuous Gaussian mechanism holds for it, in any dimension and on samples.

    Parameters
    ----------
    sigma
        A positive number up to 2^60, exact (a float at its decimal reading), or one per element.
    size
        None for one Python int of any size, or the shape of an array of 64-bit integers. A draw that does not
        fit into 64 bits is refused with code ``does-not-fit``; it never overflows.

    Examples
    --------
    >>> rounded_gaussian([0.5, 10, 1000]).shape
    (3,)
    """
    return _ROUNDED.draw("sigma", read("sigma", sigma), size)
