"""The graphical model of synthetic rows: a distribution over all columns, held as tables of a junction tree.

Everything here is public: the model is fitted to noisy tables alone. The junction tree consists of cliques of
columns, each joined to its parent by a separator. Columns are numbered. Columns that are measured together
are neighbours. Eliminating one column after the other, each time the one with the smallest clique, gives
cliques in which every measured table fits. Tables with named columns are multiplied only as far as wanted
columns need it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray


_EINSUM: Any = np.einsum  # quicker than a sum over axes; its types do not know lists of axes


def summed(
    table: NDArray[np.float64], columns: Sequence[int], columns_wanted: Sequence[int]
) -> NDArray[np.float64]:
    """Sum a table over all of its columns that are not kept; the order stays.

    Examples
    --------
    >>> summed(np.ones((2, 3)), (0, 4), (4,)).tolist()
    [2.0, 2.0, 2.0]
    """
    at = [i for i, column in enumerate(columns) if column in columns_wanted]
    if len(at) == len(columns):
        return table
    sums: NDArray[np.float64] = _EINSUM(table, list(range(len(columns))), at)
    return sums


def product_of(
    parts: Sequence[tuple[Columns, NDArray[np.float64]]], columns_wanted: Columns
) -> NDArray[np.float64]:
    """Multiply tables and sum over all columns that are not wanted; columns rise everywhere.

    Two tables are multiplied at a time: the two whose product is smallest, once the columns that nothing
    else needs are summed out. A column in one table alone must be wanted. No product is held that is larger
    than it must be, so memory stays near that of the tables.

    Examples
    --------
    >>> product_of([((0, 1), np.ones((2, 3))), ((1, 2), np.ones((3, 4)))], (0, 2)).tolist()[0]
    [3.0, 3.0, 3.0, 3.0]
    """
    factors = list(parts)
    sizes = {c: n for columns, table in factors for c, n in zip(columns, table.shape, strict=True)}
    while len(factors) > 1:
        best: tuple[int, int, int, Columns] | None = None
        for i, j in combinations(range(len(factors)), 2):
            needed = set(columns_wanted).union(*(one[0] for k, one in enumerate(factors) if k not in {i, j}))
            remaining = tuple(c for c in sorted({*factors[i][0], *factors[j][0]}) if c in needed)
            cells = math.prod(sizes[c] for c in remaining)
            if best is None or cells < best[0]:
                best = cells, i, j, remaining
        assert best is not None  # noqa: S101 - there are two
        _, i, j, remaining = best
        (of_b, b), (of_a, a) = factors.pop(j), factors.pop(i)
        factors.append((remaining, _contracted(a, of_a, b, of_b, remaining)))
    columns, table = factors[0]
    return summed(table, columns, columns_wanted)


def _contracted(
    a: NDArray[np.float64], of_a: Columns, b: NDArray[np.float64], of_b: Columns, remaining: Columns
) -> NDArray[np.float64]:
    """Multiply two tables and keep some columns, as products of matrices; every own column is kept."""
    shared = [c for c in of_a if c in of_b and c in remaining]
    gone = [c for c in of_a if c in of_b and c not in remaining]
    own_a, own_b = [c for c in of_a if c not in of_b], [c for c in of_b if c not in of_a]
    sizes = {**dict(zip(of_a, a.shape, strict=True)), **dict(zip(of_b, b.shape, strict=True))}
    many, lost = (int(np.prod([sizes[c] for c in some])) for some in (shared, gone))
    matrix = a.transpose([of_a.index(c) for c in (*shared, *own_a, *gone)]).reshape(many, -1, lost)
    second = b.transpose([of_b.index(c) for c in (*shared, *gone, *own_b)]).reshape(many, lost, -1)
    order = [*shared, *own_a, *own_b]
    product = np.matmul(matrix, second).reshape([sizes[c] for c in order])
    return np.asarray(product.transpose([order.index(c) for c in remaining]))


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
        packed = _bits(columns)
        homes = [i for i, clique in enumerate(self._held) if packed & clique == packed]
        return min(homes, key=lambda i: len(self.cliques[i])) if homes else None

    @cached_property
    def _held(self) -> tuple[int, ...]:
        return tuple(_bits(clique) for clique in self.cliques)


def _bits(columns: Iterable[int]) -> int:
    return sum(1 << i for i in columns)


def _neighbours(sets: Iterable[Sequence[int]], many: int) -> tuple[int, ...]:
    """Return for each column those that it is measured with, and itself."""
    neighbours = [1 << i for i in range(many)]
    for columns in sets:
        bits = _bits(columns)
        for i in columns:
            neighbours[i] |= bits
    return tuple(neighbours)


def _eliminated(neighbours: tuple[int, ...], sizes: Sequence[int]) -> list[int]:
    """Return the cliques that arise when columns are eliminated, the smallest first, as bits."""
    adjacent = list(neighbours)
    weights = [math.log(size) + 1e-9 for size in sizes]
    remaining = set(range(len(sizes)))
    cost = {i: _weight(adjacent[i], weights) for i in remaining}
    cliques = []
    while remaining:
        cheapest = min(remaining, key=lambda i: (cost[i], i))
        clique = adjacent[cheapest]
        cliques.append(clique)
        remaining.remove(cheapest)
        separator = clique & ~(1 << cheapest)
        for i in _members(separator):
            adjacent[i] = (adjacent[i] | separator) & ~(1 << cheapest)
            cost[i] = _weight(adjacent[i], weights)
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
    maximal: list[int] = []
    for clique in sorted(cliques, key=lambda bits: -bits.bit_count()):
        if not any(clique & other == clique for other in maximal):
            maximal.append(clique)
    return maximal


def tree_cells(sets: Iterable[Sequence[int]], sizes: Sequence[int]) -> int:
    """Return how many cells the cliques of a junction tree have together.

    Examples
    --------
    >>> tree_cells([(0, 1), (1, 2)], [2, 3, 4]), tree_cells([(0, 1), (1, 2), (0, 2)], [2, 3, 4])
    (18, 24)
    """
    packed = 0
    for neighbours in _neighbours(sets, len(sizes)):
        packed = packed << len(sizes) | neighbours
    return _cells(packed, tuple(sizes))


@lru_cache(maxsize=8_192)
def _cells(packed: int, sizes: tuple[int, ...]) -> int:
    """Return the cells for the neighbours of all columns, packed into one number: many are remembered."""
    many = len(sizes)
    neighbours = tuple(packed >> many * (many - 1 - i) & (1 << many) - 1 for i in range(many))
    cliques = _maximal(_eliminated(neighbours, sizes))
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
        _, index, parent = max(
            ((cliques[i] & cliques[j]).bit_count(), -i, -j) for i in waiting for j in order
        )
        waiting.remove(-index)
        order.append(-index)
        parents.append(order.index(-parent))
    walked = [cliques[i] for i in order]
    shared = [0 if p < 0 else walked[i] & walked[p] for i, p in enumerate(parents)]
    return JunctionTree(
        tuple(tuple(_members(bits)) for bits in walked),
        tuple(parents),
        tuple(tuple(_members(bits)) for bits in shared),
    )


#: The numbers of some columns, rising.
Columns: TypeAlias = "tuple[int, ...]"
_NOTHING = 1e-280  # expected counts below it are none: one over them would leave the floats


def spread(table: NDArray[np.float64], columns: Sequence[int], target: Sequence[int]) -> NDArray[np.float64]:
    """Return a table with axes of length 1 for the columns of a larger one that it does not have.

    Examples
    --------
    >>> spread(np.ones(3), (4,), (0, 4, 5)).shape
    (1, 3, 1)
    """
    at = iter(table.shape)
    return table.reshape([next(at) if column in columns else 1 for column in target])


def _over(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide; what is over nothing, or over next to nothing, is nothing."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > _NOTHING)


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """Expected counts of every combination of columns, as one table for each clique.

    Parameters
    ----------
    sizes
        How many places each column has.
    tree
        The cliques.
    beliefs
        The expected counts of each clique; neighbouring cliques agree on what they share.
    """

    sizes: tuple[int, ...]
    tree: JunctionTree
    beliefs: tuple[NDArray[np.float64], ...]

    @property
    def total(self) -> float:
        """The expected number of rows."""
        return float(self.beliefs[0].sum())

    @cached_property
    def _shared(self) -> tuple[NDArray[np.float64], ...]:
        """The expected counts of each separator."""
        parts = zip(self.beliefs, self.tree.cliques, self.tree.separators, strict=True)
        return tuple(summed(belief, clique, separator) for belief, clique, separator in parts)

    def table(self, columns: Sequence[int]) -> NDArray[np.float64]:
        """Return the expected counts of some columns, in their order: inside a clique or across cliques.

        Across cliques, those that connect the columns are multiplied, and what is not wanted is summed out.
        """
        rising = tuple(sorted(columns))
        home = self.tree.home(rising)
        if home is not None:
            counts = summed(self.beliefs[home], self.tree.cliques[home], rising)
        else:
            counts = self._across(rising)
        order = [rising.index(column) for column in columns]
        return counts if order == sorted(order) else np.ascontiguousarray(counts.transpose(order))

    def tables(self, wanted: Iterable[Columns]) -> dict[Columns, NDArray[np.float64]]:
        """Return several tables with rising columns, small ones as sums of larger ones."""
        tables: dict[Columns, NDArray[np.float64]] = {}
        for columns in sorted(wanted, key=len, reverse=True):
            inside = set(columns)
            larger = [c for c in tables if inside.issubset(c)]
            if larger:
                source = min(larger, key=lambda c: tables[c].size)
                tables[columns] = summed(tables[source], source, columns)
            else:
                tables[columns] = self.table(columns)
        return tables

    def _across(self, columns: Columns) -> NDArray[np.float64]:
        """Multiply the cliques that connect some columns: the first of them, and the others given it."""
        places = self._connecting(columns)
        parts = []
        for clique_index in places:
            clique = self.tree.cliques[clique_index]
            others = {c for other in places if other != clique_index for c in self.tree.cliques[other]}
            columns_kept = tuple(c for c in clique if c in columns or c in others)
            table = summed(self.beliefs[clique_index], clique, columns_kept)
            if clique_index != places[0]:
                table = _over(
                    table,
                    spread(self._shared[clique_index], self.tree.separators[clique_index], columns_kept),
                )
            parts.append((columns_kept, table))
        return product_of(parts, columns)

    def _connecting(self, columns: Columns) -> list[int]:
        """Return the cliques of the smallest part of the tree that holds some columns, from the top down."""
        cliques, parents, separators = self.tree.cliques, self.tree.parents, self.tree.separators
        connecting: list[int] = []
        for index in range(len(cliques) - 1, -1, -1):
            private = set(cliques[index]).difference(separators[index])
            if not private.isdisjoint(columns) or any(parents[child] == index for child in connecting):
                connecting.insert(0, index)
        while len(connecting) > 1:  # a top with one branch that holds all that is wanted of it is not needed
            below = [child for child in connecting if parents[child] == connecting[0]]
            if len(below) > 1 or not set(cliques[connecting[0]]).intersection(columns) <= set(
                separators[below[0]]
            ):
                break
            del connecting[0]
        return connecting


def model_of(
    potentials: Mapping[Columns, NDArray[np.float64]],
    zeros: Mapping[Columns, NDArray[np.bool_]],
    sizes: Sequence[int],
    total: float,
    tree: JunctionTree | None = None,
) -> GraphicalModel | None:
    """Return the model whose weights are the exponentials of the summed potentials; None where all are zero.

    Hugin propagation in linear space: each clique's largest exponent is subtracted first, tables flow to the
    first clique and back, and nothing over nothing is nothing.

    Parameters
    ----------
    potentials
        A table of exponents for some sets of columns.
    zeros
        For some sets of columns, where nothing can be.
    sizes
        How many places each column has.
    total
        The expected number of rows.
    tree
        The junction tree, where it is known.
    """
    tree = tree or junction_tree([*potentials, *zeros], sizes)
    beliefs = _weights(tree, potentials, zeros, sizes)
    cliques, parents, separators = tree.cliques, tree.parents, tree.separators
    sent: list[NDArray[np.float64]] = [np.ones(())] * len(cliques)
    for index in range(len(cliques) - 1, 0, -1):
        message = summed(beliefs[index], cliques[index], separators[index])
        top = message.max()
        if not (top > 0 and np.isfinite(top)):
            return None
        sent[index] = message / top
        beliefs[index] /= top
        parent = parents[index]
        beliefs[parent] *= spread(sent[index], separators[index], cliques[parent])
    mass = float(beliefs[0].sum())
    if not (mass > 1e-200 and math.isfinite(mass)):  # next to nothing is left: the rounding would decide
        return None
    beliefs[0] /= mass  # in this order: a mass near 0 must not make the factor infinite
    beliefs[0] *= total
    for index in range(1, len(cliques)):
        separator = separators[index]
        marginal = summed(beliefs[parents[index]], cliques[parents[index]], separator)
        beliefs[index] = _over(beliefs[index], spread(sent[index], separator, cliques[index]))  # at most 1
        beliefs[index] *= spread(marginal, separator, cliques[index])
    return GraphicalModel(tuple(sizes), tree, tuple(beliefs))


def _weights(
    tree: JunctionTree,
    potentials: Mapping[Columns, NDArray[np.float64]],
    zeros: Mapping[Columns, NDArray[np.bool_]],
    sizes: Sequence[int],
) -> list[NDArray[np.float64]]:
    """Return the exponential of the potentials of each clique, the largest being 1."""
    logs = [np.zeros([sizes[c] for c in clique]) for clique in tree.cliques]
    for columns, exponents in potentials.items():
        home = tree.home(columns)
        assert home is not None  # noqa: S101 - the tree was made for these columns
        logs[home] += spread(exponents, columns, tree.cliques[home])
    for log_weights in logs:
        log_weights -= log_weights.max()  # in place: these are the largest arrays of a fit
        np.exp(log_weights, out=log_weights)
    for columns, never in zeros.items():
        home = tree.home(columns)
        assert home is not None  # noqa: S101
        logs[home] *= spread((~never).astype(np.float64), columns, tree.cliques[home])
    return logs
