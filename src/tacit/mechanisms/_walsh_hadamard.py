"""The Walsh-Hadamard transform of whole numbers, in place: only additions and subtractions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def walsh_hadamard(table: NDArray[np.int64]) -> None:
    """Replace H[r] by the sum over r of (-1)^parity(r AND v) H[r], for every v; the length is 2^m.

    Examples
    --------
    >>> table = np.array([1, 0, 0, 2])
    >>> walsh_hadamard(table)
    >>> table.tolist()
    [3, -1, -1, 3]
    """
    bits = table.size.bit_length() - 1
    square = table.reshape(1 << (bits - bits // 2), 1 << (bits // 2))
    _along_rows(square)  # high bits: long runs of neighbours
    turned = np.ascontiguousarray(square.T)
    _along_rows(turned)  # low bits
    square[:] = turned.T


def _along_rows(matrix: NDArray[np.int64]) -> None:
    """Transform over the row number, so that every step handles whole rows at once."""
    rows, columns = matrix.shape
    half = 1
    while half < rows:
        pairs = matrix.reshape(rows // (2 * half), 2, half * columns)
        first, second = pairs[:, 0], pairs[:, 1]
        difference = first - second
        first += second
        second[:] = difference
        half *= 2
