"""Norm-sub: shares that are at least zero and add up to one, at the price of a bias."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import bad_parameter
from tacit.fixes import Set

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: What is said beside shares that were adjusted.
BIAS = (
    "norm-sub: the shares were shifted to be at least 0 and to add up to 1; this makes small shares too "
    "large and the estimates biased, and the intervals are those of the unbiased estimates"
)


def norm_sub(shares: ArrayLike) -> NDArray[np.float64]:
    """Return the nearest shares (least squares) that are non-negative and add up to one.

    A constant is added to all shares, negative ones become zero, until the sum is one (Wang et al. 2020). The
    result is biased: rare answers look more common than they are.

    Examples
    --------
    >>> norm_sub([0.7, 0.5, -0.1]).round(6).tolist()
    [0.6, 0.4, 0.0]
    """
    f = np.atleast_1d(np.asarray(shares, dtype=float))
    if not f.size or not np.isfinite(f).all():
        raise bad_parameter("shares", "finite numbers", "others", fix=Set(shares=[0.7, 0.5, -0.1]))
    ordered = np.sort(f)[::-1]
    shifts = (1 - np.cumsum(ordered)) / np.arange(1, len(f) + 1)
    kept = np.nonzero(ordered + shifts > 0)[0][-1]
    return np.asarray(np.maximum(f + shifts[kept], 0.0))
