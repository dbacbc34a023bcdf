"""Geometric noise digit by digit: the binary digits of a geometric number are independent coins.

With a = exp(-1/s), P(G = k) = (1 - a) a^k is a product over the binary digits of k. So digit i is 1 with
probability 1 / (1 + exp(2^i / s)), independently of the others, and P(G >= 2^K) = exp(-2^K / s). A draw takes
the same steps whatever number it returns.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tacit.noise import _bits, _floats
from tacit.noise._intervals import below, exp_minus, logistic
from tacit.noise._parameters import does_not_fit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.noise._parameters import ExactArray

_REACH = 46  # exp(-46) < 2^-66: digits beyond 46 scales are almost never set
_BLOCK = 1 << 13
_MARGIN = 2.0**-40  # far above the error of a coin's probability computed in doubles


@lru_cache(maxsize=256)
def thresholds(n: int, d: int) -> tuple[int, ...]:
    """Return floor(2^64 / (1 + exp(2^i d / n))) for each digit i below 46 scales."""
    digits = (_REACH * n // d).bit_length()
    work = 128 + digits
    unit = 1 << work
    low, high = exp_minus(Fraction(d, n), work)  # exp(-2^i d / n), squared from digit to digit
    limits = []
    for i in range(digits):
        lower, upper = (low << 64) // (unit + low), (high << 64) // (unit + high)
        bits = 64
        while lower != upper:
            bits += 64
            lower, upper = (end >> (bits - 64) for end in logistic(Fraction(d << i, n), bits))
        limits.append(lower)
        low, high = (low * low) >> work, ((high * high) >> work) + 1
    return tuple(limits)


def _is_set(i: int, scale: Fraction, digits: int, bits: int) -> bool:
    """Decide digit i exactly, from the first bits of its uniform number."""
    x = Fraction(scale.denominator << i, scale.numerator)
    return below(digits, bits, lambda p: logistic(x, p))


def _beyond(k: int, scale: Fraction, digits: int, bits: int) -> int:
    """Return how many whole multiples of 2^k fit into G, from the first bits of the first coin."""
    x = Fraction(scale.denominator << k, scale.numerator)
    number = 0
    while below(digits, bits, lambda p: exp_minus(x, p)):
        number += 1
        digits, bits = _bits.word(), 64
    return number


def geometric_one(scale: Fraction) -> int:
    """Draw one G with P(G = k) proportional to exp(-k / scale), k >= 0, as a Python int of any size."""
    limits = thresholds(scale.numerator, scale.denominator)
    final, *uniforms = _bits.words(len(limits) + 1)
    return _assemble(scale, limits, uniforms, final)


def _assemble(scale: Fraction, limits: tuple[int, ...], uniforms: list[int], final: int) -> int:
    """Assemble a geometric number from one uniform word per digit and one for the part above all digits."""
    number, digit = 0, 1
    for uniform, limit in zip(uniforms, limits, strict=True):
        if uniform < limit or (uniform == limit and _is_set(digit.bit_length() - 1, scale, uniform, 64)):
            number |= digit
        digit <<= 1
    if final == 0:
        number += _beyond(len(limits), scale, final, 64) << len(limits)
    return number


def laplace_one(scale: Fraction) -> int:
    """Draw one X with P(X = k) proportional to exp(-|k| / scale).

    X is G or, with odds exp(-1/scale) to 1, -1 - G. Zero arises in one way only, and nothing is rejected.
    """
    limits = thresholds(scale.numerator, scale.denominator)
    return laplace_from(scale, limits, _bits.words(len(limits) + 2))


def laplace_from(scale: Fraction, limits: tuple[int, ...], words: list[int]) -> int:
    """Assemble a discrete Laplace number: one word for the sign, one for the part above, one per digit."""
    sign, final, *uniforms = words
    number = _assemble(scale, limits, uniforms, final)
    limit = limits[0] if limits else 0  # the sign has the same chance as digit 0
    return ~number if sign < limit or (sign == limit and _is_set(0, scale, sign, 64)) else number


def _coins(i: int, scales: ExactArray, rates: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Draw digit i for every element: in doubles where they can decide, in exact arithmetic elsewhere."""
    words = np.empty(rates.size, np.uint64)
    _bits.fill(words)
    words >>= np.uint64(11)
    uniform = words * 2.0**-53
    chance = _floats.exp_minus(rates * 2.0**i)
    chance /= 1.0 + chance
    uniform -= chance
    coins = uniform < 0
    for where in np.flatnonzero(np.abs(uniform) < _MARGIN):
        coins[where] = _is_set(i, scales.exact(int(where)), int(words[where]), 53)
    return coins


def _rates(scales: ExactArray) -> NDArray[np.float64]:
    """Return 1 / scale in doubles, at most 1024; larger rates make no difference to `exp_minus`."""
    return 1.0 / np.maximum(scales.near, 2.0**-10)


def geometric_many(scales: ExactArray) -> NDArray[np.int64]:
    """Draw one geometric number per element, each with its own scale; refuse numbers beyond 64 bits."""
    out = np.empty(scales.near.size, np.int64)
    for start in range(0, out.size, _BLOCK):
        index = np.arange(start, min(start + _BLOCK, out.size))
        out[index] = _geometric_block(scales.at(index))
    return out


def _geometric_block(scales: ExactArray) -> NDArray[np.int64]:
    rates = _rates(scales)
    top = int(_REACH * scales.near.max() * (1 + 2.0**-40)).bit_length()
    numbers = np.zeros(rates.size, np.int64)
    for i in range(top):
        coins = _coins(i, scales, rates)
        if i < 63:
            numbers |= coins.astype(np.int64) << i
        elif coins.any():
            raise does_not_fit("noise")
    words = np.empty(rates.size, np.uint64)
    _bits.fill(words)
    for where in np.flatnonzero(words == 0):
        beyond = _beyond(top, scales.exact(int(where)), 0, 64) << top
        if beyond + int(numbers[where]) >= 2**63:
            raise does_not_fit("noise")
        numbers[where] += beyond
    return numbers


def laplace_many(scales: ExactArray) -> NDArray[np.int64]:
    """Draw one discrete Laplace number per element, each with a scale of its own."""
    numbers = geometric_many(scales)
    out = np.empty_like(numbers)
    for start in range(0, out.size, _BLOCK):
        index = np.arange(start, min(start + _BLOCK, out.size))
        scale_part = scales.at(index)
        negative = _coins(0, scale_part, _rates(scale_part))
        out[index] = numbers[index] ^ -negative.astype(np.int64)
    return out
