"""Whole gradients: each unit's gradient clipped on a public grid of integers, so that its norm is exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: A gradient of the length of the clip is this many grid steps long.
CLIP_STEPS = 2**20
#: With at most so many numbers, a sum of squares fits into 64 bits.
MOST_WEIGHTS = 2**22
_MARGIN = 1 - 2.0**-40  # a computed norm may be wrong in its last bits


def clip_whole(gradients: NDArray[np.float64], clip: float) -> NDArray[np.int64]:
    """Return gradients as whole grid steps of ``clip / 2**20``, each line at most ``2**20`` long.

    Guarantee: the squared length of each line, computed in integers, is at most 2**40; whatever the floats
    were. Numbers are cut off toward zero, which never makes a line longer. A line that is not finite, or is
    too long all the same, becomes zero.

    Examples
    --------
    >>> clip_whole(np.array([[3.0, 4.0], [0.0, 0.5], [np.nan, 0.0]]), 1.0).tolist()
    [[629145, 838860], [0, 524288], [0, 0]]
    """
    given = np.asarray(gradients, dtype=np.float64)
    with np.errstate(all="ignore"):
        largest = np.abs(given).max(axis=1, keepdims=True, initial=0.0)
        unit = given / np.where(largest > 0, largest, 1.0)
        norms = np.sqrt((unit * unit).sum(axis=1, keepdims=True))
        shrunk = np.minimum(largest * norms / clip, _MARGIN) / np.where(norms > 0, norms, 1.0)
        steps = np.trunc(unit * (shrunk * CLIP_STEPS))
    steps[~np.isfinite(steps).all(axis=1)] = 0.0
    whole: NDArray[np.int64] = np.clip(steps, -CLIP_STEPS, CLIP_STEPS).astype(np.int64)
    whole[np.einsum("ij,ij->i", whole, whole) > CLIP_STEPS**2] = 0
    return whole
