"""Products of tables with named columns, of which only some columns are wanted."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.synth._model import Columns

_EINSUM: Any = np.einsum  # quicker than a sum over axes; its types do not know lists of axes


def summed(table: NDArray[np.float64], columns: Sequence[int], kept: Sequence[int]) -> NDArray[np.float64]:
    """Sum a table over all of its columns that are not kept; the order stays.

    Examples
    --------
    >>> summed(np.ones((2, 3)), (0, 4), (4,)).tolist()
    [2.0, 2.0, 2.0]
    """
    at = [i for i, column in enumerate(columns) if column in kept]
    if len(at) == len(columns):
        return table
    made: NDArray[np.float64] = _EINSUM(table, list(range(len(columns))), at)
    return made


def product_of(parts: Sequence[tuple[Columns, NDArray[np.float64]]], wanted: Columns) -> NDArray[np.float64]:
    """Multiply tables and sum over all columns that are not wanted; columns rise everywhere.

    Two tables are multiplied at a time: the two whose product is smallest, once the columns that nothing
    else needs are summed out. A column in one table alone must be wanted. No product is held that is larger
    than it must be, so memory stays near that of the tables.

    Examples
    --------
    >>> product_of([((0, 1), np.ones((2, 3))), ((1, 2), np.ones((3, 4)))], (0, 2)).tolist()[0]
    [3.0, 3.0, 3.0, 3.0]
    """
    held = list(parts)
    sizes = {c: n for columns, table in held for c, n in zip(columns, table.shape, strict=True)}
    while len(held) > 1:
        best: tuple[int, int, int, Columns] | None = None
        for i, j in combinations(range(len(held)), 2):
            needed = set(wanted).union(*(one[0] for k, one in enumerate(held) if k not in {i, j}))
            left = tuple(c for c in sorted({*held[i][0], *held[j][0]}) if c in needed)
            cells = math.prod(sizes[c] for c in left)
            if best is None or cells < best[0]:
                best = cells, i, j, left
        assert best is not None  # noqa: S101 - there are two
        _, i, j, left = best
        (of_b, b), (of_a, a) = held.pop(j), held.pop(i)
        held.append((left, _contracted(a, of_a, b, of_b, left)))
    columns, table = held[0]
    return summed(table, columns, wanted)


def _contracted(
    a: NDArray[np.float64], of_a: Columns, b: NDArray[np.float64], of_b: Columns, left: Columns
) -> NDArray[np.float64]:
    """Multiply two tables and keep some columns, as products of matrices; every own column is kept."""
    both = [c for c in of_a if c in of_b and c in left]
    gone = [c for c in of_a if c in of_b and c not in left]
    own_a, own_b = [c for c in of_a if c not in of_b], [c for c in of_b if c not in of_a]
    sizes = {**dict(zip(of_a, a.shape, strict=True)), **dict(zip(of_b, b.shape, strict=True))}
    many, lost = (int(np.prod([sizes[c] for c in some])) for some in (both, gone))
    first = a.transpose([of_a.index(c) for c in (*both, *own_a, *gone)]).reshape(many, -1, lost)
    second = b.transpose([of_b.index(c) for c in (*both, *gone, *own_b)]).reshape(many, lost, -1)
    order = [*both, *own_a, *own_b]
    made = np.matmul(first, second).reshape([sizes[c] for c in order])
    return np.asarray(made.transpose([order.index(c) for c in left]))
