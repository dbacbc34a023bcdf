"""The grid's decimals: how far the notation of a float lies from what it stores, for many floats at once.

A float that is not whole is x = m 2^-e with whole m and 2^52 <= |m| < 2^53. Its notation is the shortest
decimal that is read back as x, and the nearest of those. The decimal with k places nearest to x is M / 10^k,
where M is m 10^k / 2^e, rounded. So it differs from x by d / (2^e 10^k), where d is the distance of m 10^k
from the nearest multiple of 2^e. It is read back as x if that is below half a unit of x's last place:
2 d < 10^k. The smallest such k gives the notation. There 2 d = 10^k cannot happen: M 2^(e+1) = 10^k (2m +- 1)
needs k > e, and d is 0 for k = e already. Only d is needed, and it follows from m 10^k modulo 2^e, so 64 bits
are enough. Left out are powers of two, whose lower neighbour is nearer, and ties between two decimals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["beyond_stored"]

_PLACES = 18  # 10^18 is below 2^63


def beyond_stored(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return decimal notation minus stored number for floats that are not whole; NaN where it is not found.

    Examples
    --------
    >>> from fractions import Fraction
    >>> beyond_stored(np.array([0.1])).tolist() == [float(Fraction(1, 10) - Fraction(0.1))]
    True
    """
    part, power = np.frexp(np.abs(x))
    e = 53 - power
    found = np.full(x.shape, np.nan)
    left = np.flatnonzero((e >= 1) & (e <= 63) & (part != 0.5))
    whole = np.uint64(1) << e[left].astype(np.uint64)  # 2^e
    above = np.ldexp(part[left], 53).astype(np.uint64)  # m 10^k modulo 2^e: above a multiple of 2^e
    for places in range(1, _PLACES + 1):
        above = (above * np.uint64(10)) & (whole - np.uint64(1))
        distance = np.minimum(above, whole - above)
        done = distance < 5 * 10 ** (places - 1)
        if done.any():
            here, up, d = left[done], above[done], distance[done]
            sign = np.select([up < whole[done] - up, up > whole[done] - up], [-1.0, 1.0], np.nan)
            found[here] = np.ldexp(sign * (d / 10.0**places), -e[here])
            left, whole, above = left[~done], whole[~done], above[~done]
    return np.asarray(np.copysign(1.0, x) * found)
