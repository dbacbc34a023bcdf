"""Floats for exact noise, the quick case: exp and log from IEEE arithmetic alone, with proven errors.

No mathematical library is trusted: tables come from exact integers, polynomials are written out, and the
stated bounds hold with a margin in every rounding mode (docs/proofs/noise.md). Where a comparison is closer
than the bound, the caller decides in exact arithmetic.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tacit.noise._intervals import exp_minus as exact_exp_minus
from tacit.noise._intervals import minus_log as exact_minus_log

if TYPE_CHECKING:
    from numpy.typing import NDArray

FAR = 64  # beyond it exp(-x) counts as exp(-64), which is below 2^-92
_PARTS = 32  # table entries per unit of x
_EXP = (1 / 5040, 1 / 720, 1 / 120, 1 / 24, 1 / 6, 1 / 2, 1.0)  # Taylor coefficients of exp, from the highest


@cache
def _exp_table() -> NDArray[np.float64]:
    """Return exp(-k/32) for k = 0 .. 2048, each within a relative 2^-52."""
    bits = 320
    low, _ = exact_exp_minus(Fraction(1, _PARTS), bits)
    powers = [1 << bits]
    for _ in range(FAR * _PARTS):
        powers.append((powers[-1] * low) >> bits)  # all roundings together stay below 2^-300
    return np.array([power / (1 << bits) for power in powers])


def exp_minus(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Approximate ``exp(-x)`` for ``x >= 0``: the error is at most ``2^-46 exp(-x) + 2^-91``.

    x = k/32 + r with r < 1/32 exactly (scaling by 32 and taking the fraction of a double are exact);
    exp(-k/32) comes from the table, exp(-r) from its Taylor series to degree 7, whose remainder is below
    2^-55.
    """
    scaled = np.minimum(x, FAR)
    scaled *= _PARTS
    integer = np.floor(scaled)
    r = np.subtract(integer, scaled, out=scaled)
    r /= _PARTS
    total = np.full_like(r, _EXP[0])
    for coefficient in _EXP[1:]:
        total *= r
        total += coefficient
    total *= r
    total += 1.0
    total *= _exp_table()[integer.astype(np.int16)]
    return total


def exp_minus_one(x: float) -> float:
    """Approximate ``exp(-x)`` for one ``x >= 0``: the same steps and bound as `exp_minus`."""
    scaled = min(x, FAR) * _PARTS
    integer = int(scaled)
    r = (integer - scaled) / _PARTS
    total = _EXP[0]
    for coefficient in _EXP[1:]:
        total = total * r + coefficient
    return (total * r + 1.0) * _exp_list()[integer]


@cache
def _exp_list() -> list[float]:
    return [float(value) for value in _exp_table()]


_CUTS = 64  # pieces of [1/2, 1) for the logarithm


@cache
def _log_table() -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return, for each piece of [1/2, 1), a short factor c near 1/x and -log(c); then log 2, within 2^-52."""
    factors = [Fraction(round(Fraction(128 * 256, 128 + 2 * j + 1)), 128) for j in range(_CUTS)]
    bits = 128
    logs = [exact_minus_log(1 / c, bits)[0] / (1 << bits) for c in factors]
    two = exact_minus_log(Fraction(1, 2), bits)[0] / (1 << bits)
    return np.array([float(c) for c in factors]), np.array([-value for value in logs]), two


def log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Approximate ``log(x)`` for ``x`` between 2^-80 and 2^80: the error is at most 2^-44.

    x = f * 2^e exactly with 1/2 <= f < 1; z = c f - 1 for the table's c has |z| < 2^-6; log(x) = log(1+z) -
    log(c) + e log 2, the first from its Taylor series to degree 9.
    """
    f, e = np.frexp(x)
    piece = ((f - 0.5) * (2 * _CUTS)).astype(np.int16)
    factors, logs, two = _log_table()
    f *= factors[piece]
    f -= 1.0
    total = _log_near_one(f)
    total += logs[piece]
    total += e * two
    return total


def _log_near_one(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Approximate ``log(1 + z)`` for ``|z| <= 2^-6`` within a relative 2^-49."""
    total = np.full_like(z, 1 / 9)
    for j in range(8, 0, -1):
        total *= z
        total += (1.0 if j % 2 else -1.0) / j
    total *= z
    return total


def minus_log_uniform(u: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Approximate ``-log U`` for a U in ``[u, u + 1] / 2^64``.

    The relative error is at most 2^-37, plus 2 / min(u, 2^64 - 1 - u) for the later bits of U.
    """
    v = u.astype(np.float64)
    v += 0.5
    v *= 2.0**-64
    total = -log(v)
    close = np.flatnonzero(u > np.uint64(2**64 - 2**58))
    if close.size:
        rest = (~u[close]).astype(np.float64)
        rest += 0.5
        rest *= 2.0**-64
        total[close] = -_log_near_one(-rest)
    return total
