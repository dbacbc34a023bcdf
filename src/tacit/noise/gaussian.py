"""Discrete Gaussian noise."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tacit.noise import _digits
from tacit.noise._draws import Law
from tacit.noise._parameters import Values, read
from tacit.noise._strips import strips
from tacit.noise.coins import exp_coin, exp_coins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.noise._parameters import Numbers, Size

__all__ = ["discrete_gaussian"]


def _energy(sigma: Fraction, t: int, y: int) -> Fraction:
    """Return the exponent of the acceptance coin: (|y| - sigma^2/t)^2 / (2 sigma^2)."""
    variance = sigma * sigma
    return (abs(y) - variance / t) ** 2 / (2 * variance)


def _one(sigma: Fraction) -> int:
    """Draw a discrete Laplace number of scale t, accept with exp(-(|y| - sigma^2/t)^2 / (2 sigma^2)).

    Canonne, Kamath, Steinke 2020, Algorithm 3: the product of the two is proportional to exp(-y^2 / (2 sigma^2)).
    """
    t = int(sigma) + 1
    scale = Fraction(t)
    while True:
        y = _digits.laplace_one(scale)
        if exp_coin(_energy(sigma, t, y)):
            return y


def _many(sigmas: Values) -> NDArray[np.int64]:
    """Draw as `_one` does, for all elements at once."""
    out = np.empty(sigmas.near.size, np.int64)
    left = np.arange(out.size)
    while left.size:
        own = sigmas.at(left)
        t = np.floor(own.near) + 1.0  # any whole number is valid; only the acceptance rate depends on it
        scales = Values(t, lambda i, t=t: Fraction(int(t[i])), t)
        y = _digits.laplace_many(scales)
        sigma = np.maximum(own.near, 2.0**-500)
        x = (np.abs(y.astype(np.float64)) - sigma * (sigma / t)) / sigma
        accepted = exp_coins(
            np.minimum(x * x * 0.5, 2.0**10),
            lambda i, own=own, t=t, y=y: _energy(own.exact(i), int(t[i]), int(y[i])),
        )
        out[left[accepted]] = y[accepted]
        left = left[~accepted]
    return out


def _bulk(sigma: Fraction, count: int) -> NDArray[np.int64]:
    spread = 2 * sigma * sigma
    return strips(spread.numerator, spread.denominator, 2, signed=True).draw(count, "discrete Gaussian noise")


_GAUSSIAN = Law("discrete Gaussian noise", _one, _bulk, _many)


def discrete_gaussian(sigma: Numbers, size: Size = None) -> int | NDArray[np.int64]:
    """Draw integers k with probability exactly proportional to exp(-k^2 / (2 sigma^2)).

    Added to integers of L2 sensitivity D, this noise is rho-zCDP for rho = D^2 / (2 sigma^2)
    (Canonne, Kamath, Steinke 2020, Theorem 4). Its variance is at most sigma^2.

    Parameters
    ----------
    sigma
        A positive number up to 2^60, exact (a float at its decimal reading), or one per element.
    size
        None for one Python int of any size, or the shape of an array of 64-bit integers; a draw that does not fit
        into 64 bits is refused with code ``does-not-fit``, never wrapped.

    Examples
    --------
    >>> discrete_gaussian([0.5, 10, 1000]).shape
    (3,)
    """
    return _GAUSSIAN.draw("sigma", read("sigma", sigma), size)
