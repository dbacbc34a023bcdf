"""Exceedances of noise: of many draws only those that reach a level, in time that follows their number.

Each of n independent draws reaches the level with the same chance q. So the numbers of draws in between are
geometric: P(gap >= g) = u^g with u = 1 - q. The binary digits of a geometric number are independent coins,
and digit i is 1 with the chance u^(2^i) / (1 + u^(2^i)). The gaps are drawn by these coins, with certified
intervals of q, and no draw that stays below the level is ever made. The proof is in docs/proofs/noise.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tacit.exact import count as whole
from tacit.noise import _bits
from tacit.noise._coins import bernoulli_exp
from tacit.noise._gaussian import discrete_gaussian
from tacit.noise._intervals import IntegerInterval, below, exp_minus, gaussian_mass
from tacit.noise._laplace import geometric
from tacit.noise._parameters import does_not_fit, read_single
from tacit.parameters import Integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tacit.exact import Number

    #: Where the exceedances lie among all draws, from 0 and in order, and what they are.
    Exceedances = tuple[NDArray[np.int64], NDArray[np.int64]]

_MAX_NUMBERS = 2**48
_HIGHEST = 2**62
_LARGEST_INTEGER = 2**63 - 1
_WIDEST = 2**57  # a scale of geometric numbers that fit 64 bits except with probability exp(-64)
_BLOCK = 1 << 12
_WHOLE_BLOCK = 1 << 16


def laplace_exceedances(scale: Number, count: int, least: int, *, reach: int | None = None) -> Exceedances:
    """Draw `count` numbers of discrete Laplace noise and return those that are at least `least`.

    The law is exactly that of drawing all numbers and keeping some. The time follows how many are kept.

    Parameters
    ----------
    scale
        A positive number up to 2^60, exact (a float at its decimal reading).
    count
        How many numbers to draw, up to 2^48.
    least
        The smallest number to keep, at least 1.
    reach
        The noise is cut off beyond +-reach: P(k) proportional to exp(-|k| / scale) for abs(k) <= reach.

    Returns
    -------
    tuple
        The positions of the numbers kept, from 0 and in order, and the numbers. A number that does not fit
        into 64 bits is refused with code ``does-not-fit``; it never overflows.

    Examples
    --------
    >>> positions, numbers = laplace_exceedances(2, 10**12, 60)
    >>> bool((positions < 10**12).all()), bool((numbers >= 60).all())
    (True, True)
    """
    exact, draws, level = _read("scale", scale, count, least)
    end = None if reach is None else whole("reach", reach)
    if end is not None and level > end:
        return _nothing()

    positions = successes(_LaplaceRate(exact, level, end), draws)
    above = geometric(exact, positions.size)
    if end is not None:
        above %= end - level + 1  # a geometric number modulo m has the same law, cut off at m
    if above.size and int(above.max()) > _LARGEST_INTEGER - level:
        raise does_not_fit("an exceedance")
    return positions, level + above


def gaussian_exceedances(sigma: Number, count: int, least: int) -> Exceedances:
    """Draw `count` numbers of discrete Gaussian noise and return those that are at least `least`.

    The law is exactly that of drawing all numbers and keeping some. The time follows how many are kept.

    Parameters
    ----------
    sigma
        A positive number up to 2^60, exact (a float at its decimal reading).
    count
        How many numbers to draw, up to 2^48.
    least
        The smallest number to keep, at least 1.

    Returns
    -------
    tuple
        The positions of the numbers kept, from 0 and in order, and the numbers.

    Examples
    --------
    >>> positions, numbers = gaussian_exceedances(2, 10**12, 14)
    >>> bool((positions < 10**12).all()), bool((numbers >= 14).all())
    (True, True)
    """
    exact, draws, level = _read("sigma", sigma, count, least)
    rate = _GaussianRate(exact, level)
    variance = exact * exact
    if rate(8)[1] > 1 << 7 or variance > _WIDEST * level:  # about one in four reaches the level, or e is huge
        return _by_all(exact, draws, level)
    positions = successes(rate, draws)
    above = geometric(variance / level, positions.size)
    accepted = np.asarray(bernoulli_exp([Fraction(int(e) ** 2) / (2 * variance) for e in above], above.size))
    return positions[accepted], level + above[accepted]


def successes(rate: Callable[[int], IntegerInterval], count: int) -> NDArray[np.int64]:
    """Return the positions of the successes among `count` independent coins of one chance, in order.

    ``rate(bits)`` is a certified interval of the chance. A gap of 2^digits or more leads beyond the last
    coin, so one coin decides that, and the digits below need one coin each.
    """
    digits = count.bit_length()
    low, high, places, longest = _words(rate, digits)
    words = np.empty((min((longest * count * 9 >> 67) + 16, _BLOCK), digits + 1), np.uint64)
    hits, at = [], -1
    while True:
        _bits.fill(words)
        coins = words < low
        for row, i in zip(*np.nonzero(~coins & (words <= high)), strict=True):
            coins[row, i] = _at_the_edge(int(words[row, i]), rate, digits, int(i))
        beyond = np.flatnonzero(coins[:, digits])
        gaps = coins[: beyond[0] if beyond.size else len(coins), :digits] @ places
        positions = at + np.cumsum(gaps + 1)
        inside = positions < count
        hits.append(positions[inside])
        if beyond.size or not inside.all():
            return np.concatenate(hits)
        at = int(positions[-1])


@lru_cache(maxsize=4096)
def _words(
    rate: Callable[[int], IntegerInterval], digits: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64], int]:
    """Return the ends of all chances as words, what each digit is worth, and an upper end of the chance."""
    bounds = _chances(rate, digits, 64)
    low = np.array([first for first, _ in bounds], np.uint64)
    high = np.array([min(last, 2**64 - 1) for _, last in bounds], np.uint64)
    return low, high, np.int64(1) << np.arange(digits, dtype=np.int64), rate(64)[1]


def _at_the_edge(word: int, rate: Callable[[int], IntegerInterval], digits: int, i: int) -> bool:
    """Decide one coin exactly."""
    return below(word, 64, lambda bits: _chances(rate, digits, bits)[i])


def _chances(rate: Callable[[int], IntegerInterval], digits: int, bits: int) -> list[IntegerInterval]:
    """Return the intervals of the chances of all digits of a gap, and of a gap beyond them."""
    work = bits + 2 * digits + 16
    unit = 1 << work
    lower, upper = rate(work)
    low, high = max(unit - upper, 0), unit - lower  # of u^(2^i), squared from digit to digit
    chances = []
    for _ in range(digits):
        chances.append(((low << bits) // (unit + low), (high << bits) // (unit + high) + 1))
        low, high = (low * low) >> work, ((high * high) >> work) + 1
    chances.append((low >> (work - bits), (high >> (work - bits)) + 1))
    return chances


@dataclass(frozen=True, slots=True)
class _LaplaceRate:
    """The interval of P(k >= level) = (a^level - a^(reach+1)) / (1 + a - 2 a^(reach+1)).

    Here a = exp(-1/scale); without a reach its power is 0.
    """

    scale: Fraction
    level: int
    reach: int | None

    def __call__(self, bits: int) -> IntegerInterval:
        work = bits + self.scale.numerator.bit_length() + 16
        unit = 1 << work
        low, high = exp_minus(self.level / self.scale, work)
        low_a, high_a = exp_minus(1 / self.scale, work)
        low_cut, high_cut = (0, 0) if self.reach is None else exp_minus((self.reach + 1) / self.scale, work)
        lower = (max(low - high_cut, 0) << bits) // (unit + high_a - 2 * low_cut)
        return lower, ((high - low_cut) << bits) // (unit + low_a - 2 * high_cut) + 1


@dataclass(frozen=True, slots=True)
class _GaussianRate:
    """The interval of P(k = level) / (1 - exp(-level / sigma^2)), the chance of a candidate.

    A candidate is level + e with a geometric e of scale sigma^2/level, kept with the chance
    exp(-e^2 / (2 sigma^2)): then P(level + e) is exactly that of the discrete Gaussian law.
    """

    sigma: Fraction
    level: int

    def __call__(self, bits: int) -> IntegerInterval:
        variance = self.sigma * self.sigma
        work = bits + 3 * self.sigma.numerator.bit_length() + 16
        unit = 1 << work
        low, high = exp_minus(self.level * self.level / (2 * variance), work)
        low_step, high_step = exp_minus(self.level / variance, work)
        low_mass, high_mass = gaussian_mass(self.sigma, work)
        lower = (low << (work + bits)) // (high_mass * (unit - low_step))
        return lower, (high << (work + bits)) // (low_mass * (unit - high_step)) + 1


def _by_all(sigma: Fraction, count: int, level: int) -> Exceedances:
    """Draw all numbers: where many of them reach the level."""
    positions, numbers = [], []
    for start in range(0, count, _WHOLE_BLOCK):
        draws = discrete_gaussian(sigma, min(_WHOLE_BLOCK, count - start))
        reached = np.flatnonzero(draws >= level)
        positions.append(start + reached)
        numbers.append(draws[reached])
    return (np.concatenate(positions), np.concatenate(numbers)) if positions else _nothing()


def _read(name: str, width: Number, count: int, threshold: int) -> tuple[Fraction, int, int]:
    exact = read_single(name, width, example=2)
    draws = Integer(0, _MAX_NUMBERS, instead=1000).read("count", count)
    level = whole("least", threshold, zero=False)
    if level > _HIGHEST:
        raise does_not_fit("an exceedance")
    return exact, draws, level


def _nothing() -> Exceedances:
    return np.empty(0, np.int64), np.empty(0, np.int64)
