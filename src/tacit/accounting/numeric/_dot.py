"""Scalar products of vectors for numeric accounting, on one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

_LONG = 8192  # BLAS starts its threads a bit above this length


def dot(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the scalar product of two vectors.

    Long ones do not go through BLAS: its threads save a few microseconds, and wait for milliseconds if the
    machine is busy. The error bounds of all callers hold for sums in any order.
    """
    return float(one @ other) if len(one) <= _LONG else float(np.einsum("i,i", one, other))
