"""The grid's decimals: how far the notation of a float lies from what it stores, for many floats at once.

A float that is not whole is x = m 2^-e with whole m and 2^52 <= |m| < 2^53. Its notation is the shortest
decimal that is read back as x, and the nearest of those. The decimal with k places nearest to x is M / 10^k,
where M is m 10^k / 2^e, rounded. So it differs from x by d / (2^e 10^k), where d is the distance of m 10^k
from the nearest multiple of 2^e. It is read back as x if that is below half a unit of x's last place:
2 d < 10^k. The smallest such k gives the notation. There 2 d = 10^k cannot happen: M 2^(e+1) = 10^k (2m +- 1)
needs k > e, and d is 0 for k = e already. Only d is needed, and it follows from m 10^k modulo 2^e, so 64 bits
are enough. One more place makes d at most ten times larger, so what k places do, k + 1 do too, and the
smallest k is found by halving. Left out are powers of two, whose lower neighbour is nearer, and ties between
two decimals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PLACES = 18  # 10^18 is below 2^63
_TENS = np.array([10**k for k in range(_PLACES + 1)], np.uint64)
_ONE = np.uint64(1)
_STORED = np.int64(2**52 - 1)  # the bits of a float that hold m, but for its leading one


def beyond_stored(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return decimal notation minus stored number for floats that are not whole; NaN where it is not found.

    Examples
    --------
    >>> from fractions import Fraction
    >>> beyond_stored(np.array([0.1])).tolist() == [float(Fraction(1, 10) - Fraction(0.1))]
    True
    """
    bits = np.ascontiguousarray(x).view(np.int64)
    e = 1075 - (bits >> 52 & 0x7FF)
    digits = bits & _STORED
    known = (e >= 1) & (e <= 63) & (digits != 0)
    e = np.where(known, e, 1)
    m = (digits | _STORED + 1).view(np.uint64)
    mask = (np.left_shift(1, e) - 1).view(np.uint64)  # modulo 2^e; 2^63 wraps around to -2^63, and back
    places = _places(m, mask)
    ten = _TENS[places]
    above = m * ten & mask
    below = mask + _ONE - above
    known &= (np.minimum(above, below) < ten >> _ONE) & (above != below)
    distance: NDArray[np.float64] = np.where(above < below, -above.astype(np.float64), below)
    distance /= ten.astype(np.float64)  # exact up to 10^22
    distance *= ((1023 - e) << 52).view(np.float64)  # 2^-e
    distance *= np.copysign(1.0, x)
    distance[~known] = np.nan
    return distance


def _places(m: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the fewest decimal places that are enough; the most there are, if none are."""

    def enough(ten: Any) -> NDArray[np.bool_]:
        """Return whether m ten is less than ten / 2 away from a multiple of 2^e, above or below it."""
        return np.asarray((m * ten + ((ten >> _ONE) - _ONE) & mask) < ten - _ONE)

    top = np.full(m.shape, 4)  # enough, if any are; four fewer are not
    for tried in (4, 8, 12, 16):
        too_few = ~enough(_TENS[tried])
        if not too_few.any():
            break
        top += too_few * min(4, _PLACES - tried)
    middle = top - 2
    near = middle + 1 - 2 * enough(_TENS[middle])  # one place above the middle, or one below
    return np.asarray(near + ~enough(_TENS[near]))
