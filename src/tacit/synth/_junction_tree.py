"""The junction tree of a graphical model: cliques of columns, each joined to its parent by a separator.

Columns are numbered. Columns that are measured together are neighbours. Eliminating one column after the
other, each time the one with the smallest clique, gives cliques in which every measured table fits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True)
class JunctionTree:
    """Cliques of columns in the order of a walk from the roots: a parent comes before its children.

    Parameters
    ----------
    cliques
        The columns of each clique, rising.
    parents
        The place of each clique's parent; -1 for the root.
    separators
        The columns that a clique shares with its parent; those of the root are none.
    """

    cliques: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]
    separators: tuple[tuple[int, ...], ...]

    def home(self, columns: Iterable[int]) -> int | None:
        """Return the place of the smallest clique that holds these columns; None where no clique does."""
        wanted = _bits(columns)
        found = [i for i, clique in enumerate(self._held) if wanted & clique == wanted]
        return min(found, key=lambda i: len(self.cliques[i])) if found else None

    @cached_property
    def _held(self) -> tuple[int, ...]:
        return tuple(_bits(clique) for clique in self.cliques)


def _bits(columns: Iterable[int]) -> int:
    return sum(1 << i for i in columns)


def _neighbours(sets: Iterable[Sequence[int]], many: int) -> tuple[int, ...]:
    """Return for each column those that it is measured with, and itself."""
    near = [1 << i for i in range(many)]
    for one in sets:
        bits = _bits(one)
        for i in one:
            near[i] |= bits
    return tuple(near)


def _eliminated(neighbours: tuple[int, ...], sizes: Sequence[int]) -> list[int]:
    """Return the cliques that arise when columns are eliminated, the smallest first, as bits."""
    near = list(neighbours)
    weights = [math.log(size) + 1e-9 for size in sizes]
    left = set(range(len(sizes)))
    cost = {i: _weight(near[i], weights) for i in left}
    cliques = []
    while left:
        first = min(left, key=lambda i: (cost[i], i))
        clique = near[first]
        cliques.append(clique)
        left.remove(first)
        kept = clique & ~(1 << first)
        for i in _members(kept):
            near[i] = (near[i] | kept) & ~(1 << first)
            cost[i] = _weight(near[i], weights)
    return cliques


def _members(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def _weight(bits: int, weights: Sequence[float]) -> float:
    total = 0.0
    while bits:
        low = bits & -bits
        total += weights[low.bit_length() - 1]
        bits ^= low
    return total


def _maximal(cliques: list[int]) -> list[int]:
    kept: list[int] = []
    for clique in sorted(cliques, key=lambda bits: -bits.bit_count()):
        if not any(clique & other == clique for other in kept):
            kept.append(clique)
    return kept


def tree_cells(sets: Iterable[Sequence[int]], sizes: Sequence[int]) -> int:
    """Return how many cells the cliques of a junction tree have together.

    Examples
    --------
    >>> tree_cells([(0, 1), (1, 2)], [2, 3, 4]), tree_cells([(0, 1), (1, 2), (0, 2)], [2, 3, 4])
    (18, 24)
    """
    packed = 0
    for near in _neighbours(sets, len(sizes)):
        packed = packed << len(sizes) | near
    return _cells(packed, tuple(sizes))


@lru_cache(maxsize=8_192)
def _cells(packed: int, sizes: tuple[int, ...]) -> int:
    """Return the cells for the neighbours of all columns, packed into one number: many are remembered."""
    many = len(sizes)
    near = tuple(packed >> many * (many - 1 - i) & (1 << many) - 1 for i in range(many))
    cliques = _maximal(_eliminated(near, sizes))
    return sum(math.prod(sizes[i] for i in _members(bits)) for bits in cliques)


def junction_tree(sets: Iterable[Sequence[int]], sizes: Sequence[int]) -> JunctionTree:
    """Return the junction tree in which every set of columns lies inside one clique.

    Every column is in it. The cliques are joined by a spanning tree with the largest separators, so those
    that hold a column are connected (Jensen and Jensen 1994).

    Examples
    --------
    >>> tree = junction_tree([(0, 1), (1, 2)], [2, 3, 4])
    >>> tree.cliques, tree.parents, tree.separators
    (((0, 1), (1, 2)), (-1, 0), ((), (1,)))
    """
    cliques = sorted(_maximal(_eliminated(_neighbours(sets, len(sizes)), sizes)), key=_members)
    order, parents = [0], [-1]
    waiting = set(range(1, len(cliques)))
    while waiting:
        _, place, parent = max(
            ((cliques[i] & cliques[j]).bit_count(), -i, -j) for i in waiting for j in order
        )
        waiting.remove(-place)
        order.append(-place)
        parents.append(order.index(-parent))
    walked = [cliques[i] for i in order]
    shared = [0 if p < 0 else walked[i] & walked[p] for i, p in enumerate(parents)]
    return JunctionTree(
        tuple(tuple(_members(bits)) for bits in walked),
        tuple(parents),
        tuple(tuple(_members(bits)) for bits in shared),
    )
