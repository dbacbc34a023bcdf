"""The graphical model of synthetic rows: a distribution over all columns, held as tables of a junction tree.

Everything here is public: the model is fitted to noisy tables alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tacit.synth._contraction import product_of, summed
from tacit.synth._junction_tree import JunctionTree, junction_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

#: The numbers of some columns, rising.
Columns: TypeAlias = "tuple[int, ...]"
_NOTHING = 1e-280  # expected counts below it are none: one over them would leave the floats


def spread(table: NDArray[np.float64], columns: Sequence[int], wide: Sequence[int]) -> NDArray[np.float64]:
    """Return a table with axes of length 1 for the columns of a larger one that it does not have.

    Examples
    --------
    >>> spread(np.ones(3), (4,), (0, 4, 5)).shape
    (1, 3, 1)
    """
    at = iter(table.shape)
    return table.reshape([next(at) if column in columns else 1 for column in wide])


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
            made = summed(self.beliefs[home], self.tree.cliques[home], rising)
        else:
            made = self._across(rising)
        order = [rising.index(column) for column in columns]
        return made if order == sorted(order) else np.ascontiguousarray(made.transpose(order))

    def tables(self, wanted: Iterable[Columns]) -> dict[Columns, NDArray[np.float64]]:
        """Return several tables with rising columns, small ones as sums of larger ones."""
        made: dict[Columns, NDArray[np.float64]] = {}
        for columns in sorted(wanted, key=len, reverse=True):
            inside = set(columns)
            larger = [c for c in made if inside.issubset(c)]
            if larger:
                source = min(larger, key=lambda c: made[c].size)
                made[columns] = summed(made[source], source, columns)
            else:
                made[columns] = self.table(columns)
        return made

    def _across(self, wanted: Columns) -> NDArray[np.float64]:
        """Multiply the cliques that connect some columns: the first of them, and the others given it."""
        places = self._connecting(wanted)
        parts = []
        for place in places:
            clique = self.tree.cliques[place]
            others = {c for other in places if other != place for c in self.tree.cliques[other]}
            kept = tuple(c for c in clique if c in wanted or c in others)
            table = summed(self.beliefs[place], clique, kept)
            if place != places[0]:
                table = _over(table, spread(self._shared[place], self.tree.separators[place], kept))
            parts.append((kept, table))
        return product_of(parts, wanted)

    def _connecting(self, wanted: Columns) -> list[int]:
        """Return the cliques of the smallest part of the tree that holds some columns, from the top down."""
        cliques, parents, separators = self.tree.cliques, self.tree.parents, self.tree.separators
        kept: list[int] = []
        for place in range(len(cliques) - 1, -1, -1):
            own = set(cliques[place]).difference(separators[place])
            if not own.isdisjoint(wanted) or any(parents[child] == place for child in kept):
                kept.insert(0, place)
        while len(kept) > 1:  # a top with one branch that holds all that is wanted of it is not needed
            below = [child for child in kept if parents[child] == kept[0]]
            if len(below) > 1 or not set(cliques[kept[0]]).intersection(wanted) <= set(separators[below[0]]):
                break
            del kept[0]
        return kept


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
    for place in range(len(cliques) - 1, 0, -1):
        message = summed(beliefs[place], cliques[place], separators[place])
        top = message.max()
        if not (top > 0 and np.isfinite(top)):
            return None
        sent[place] = message / top
        beliefs[place] /= top
        parent = parents[place]
        beliefs[parent] *= spread(sent[place], separators[place], cliques[parent])
    mass = float(beliefs[0].sum())
    if not (mass > 1e-200 and math.isfinite(mass)):  # next to nothing is left: the rounding would decide
        return None
    beliefs[0] /= mass  # in this order: a mass near 0 must not make the factor infinite
    beliefs[0] *= total
    for place in range(1, len(cliques)):
        separator = separators[place]
        known = summed(beliefs[parents[place]], cliques[parents[place]], separator)
        beliefs[place] = _over(beliefs[place], spread(sent[place], separator, cliques[place]))  # at most 1
        beliefs[place] *= spread(known, separator, cliques[place])
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
    for one in logs:
        one -= one.max()  # in place: these are the largest arrays of a fit
        np.exp(one, out=one)
    for columns, never in zeros.items():
        home = tree.home(columns)
        assert home is not None  # noqa: S101
        logs[home] *= spread((~never).astype(np.float64), columns, tree.cliques[home])
    return logs
