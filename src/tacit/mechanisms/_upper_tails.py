"""How likely noise is to reach a height: for one noisy number exactly, for a weighted sum an upper bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tacit.mechanisms._discrete_gaussian import DiscreteGaussian

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tacit.mechanisms._discrete_laplace import DiscreteLaplace

_SLACK = 1e-9  # relative; far above the rounding errors of the sums below
_ROUNDS = 60


def chance_above(noise: DiscreteGaussian | DiscreteLaplace, weights: ArrayLike, height: float) -> float:
    """Return how likely the weighted sum of independent draws is to reach a height; never too little.

    With one weight this is the exact chance. With several it is Chernoff's bound, from the exact
    moment-generating function of discrete Laplace noise, and from exp(s^2 sigma^2 / 2), which no discrete
    Gaussian exceeds (Canonne, Kamath and Steinke 2020).

    Parameters
    ----------
    noise
        The law of each draw.
    weights
        Numbers; their signs do not matter.
    height
        In the unit of the sum.

    Examples
    --------
    >>> import tacit as tc
    >>> day = tc.mechanisms.DiscreteLaplace(epsilon=1, sensitivity=1)
    >>> round(365 * chance_above(day, [1], 9), 3)
    0.033
    """
    w = np.abs(np.asarray(weights, dtype=np.float64)).ravel()
    w = w[w > 0]
    if height <= 0:
        return 1.0
    if len(w) == 0:
        return 0.0
    if len(w) == 1:
        steps = math.ceil(height / float(w[0]) * (1 - _SLACK))
        return noise.lattice(1)[1].exceeds(steps - 1) / 2
    if isinstance(noise, DiscreteGaussian):
        spread = float(noise.scale) ** 2 * float((w**2).sum())
        return min(1.0, math.exp(-(height**2) / (2 * spread)) * (1 + _SLACK))
    return min(1.0, math.exp(_laplace_exponent(float(noise.scale), w, height)) * (1 + _SLACK))


def _laplace_exponent(scale: float, w: NDArray[np.float64], height: float) -> float:
    """Return the smallest logarithm of Chernoff's bound that a search finds; every tilt gives a bound."""
    rate = 1 / scale
    near, far = 0.0, rate / float(w.max()) * (1 - 1e-9)

    def exponent(tilt: float) -> float:
        # ln of (cosh a - 1) / (cosh a - cosh s), written with sines: no figures cancel
        s = tilt * w
        terms = 2 * _log_sine(np.array([rate / 2])) - _log_sine((rate - s) / 2) - _log_sine((rate + s) / 2)
        return float(terms.sum()) - tilt * height

    for _ in range(_ROUNDS):
        third = (far - near) / 3
        if exponent(near + third) < exponent(far - third):
            far -= third
        else:
            near += third
    return exponent((near + far) / 2)


def _log_sine(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln sinh x for x > 0, also where sinh x is too large for a float."""
    return x + np.log(-np.expm1(-2 * x)) - math.log(2)
