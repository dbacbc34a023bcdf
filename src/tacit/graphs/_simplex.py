"""The simplex method in whole numbers: slow, exact, and certain to end."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def largest_sum(rows: NDArray[np.int64], limits: Sequence[int]) -> Fraction:
    """Return the largest sum of numbers x >= 0 with ``rows @ x <= limits``, as an exact fraction.

    Guarantee: it always ends (Bland 1977). Limits are not negative, and every number has a limit. Divisions
    in the table are exact (Edmonds 1967), so that it holds whole numbers alone.

    Examples
    --------
    >>> largest_sum(np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]]), [1, 1, 1])
    Fraction(3, 2)
    """
    height, width = rows.shape
    table = np.zeros((height + 1, width + height + 1), dtype=object)
    table[:height, :width] = rows.astype(object)
    table[:height, width:-1] = np.eye(height, dtype=np.int64).astype(object)
    table[:height, -1] = list(limits)
    table[-1, :width] = -1
    basis, scale = list(range(width, width + height)), 1
    while True:
        enters = next((j for j in range(width + height) if table[-1, j] < 0), None)
        if enters is None:
            return Fraction(int(table[-1, -1]), scale)
        candidates = [i for i in range(height) if table[i, enters] > 0]
        leaves = min(candidates, key=lambda i: (Fraction(table[i, -1], table[i, enters]), basis[i]))
        kept, pivot = table[leaves].copy(), table[leaves, enters]
        table = (table * pivot - np.outer(table[:, enters], kept)) // scale
        table[leaves] = kept
        basis[leaves], scale = enters, pivot
