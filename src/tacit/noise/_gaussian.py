"""Gaussian noise on the integers, drawn exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tacit.noise import _bits, _geometric
from tacit.noise._bulk import strips
from tacit.noise._coins import exp_coin, exp_coins
from tacit.noise._parameters import ExactArray, does_not_fit, read
from tacit.noise._sampler import Sampler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.exact import Number
    from tacit.noise._parameters import DrawShape, NumberOrArray


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
        drawn = _one(sigmas.exact(int(i)))
        if not -(2**63) <= drawn < 2**63:
            raise does_not_fit("discrete Gaussian noise")
        out[i] = drawn
    left = np.flatnonzero(~huge)
    while left.size:
        own = sigmas.at(left)
        y, accepted = _propose(own)
        out[left[accepted]] = y[accepted]
        left = left[~accepted]
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
