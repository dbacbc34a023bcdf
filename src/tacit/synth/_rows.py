"""Synthetic rows from a model, column by column: counts as whole numbers, almost without sampling error.

The generator is seeded publicly. Rows are a view of a release: the same release gives the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tacit.synth._model import GraphicalModel


def draw_codes(model: GraphicalModel, rows: int, by: np.random.Generator) -> NDArray[np.int32]:
    """Draw rows as places on each column.

    A column is drawn given the columns of its clique that are drawn already. Rows that agree in those share
    out the new column's expected counts: rounded down, and the rest without replacement.
    """
    codes = np.zeros((rows, len(model.sizes)), np.int32)
    drawn: set[int] = set()
    for clique, belief in zip(model.tree.cliques, model.beliefs, strict=True):
        for column in clique:
            if column in drawn:
                continue
            known = [c for c in clique if c in drawn]
            over = tuple(i for i, c in enumerate(clique) if c != column and c not in known)
            table = belief.sum(axis=over) if over else belief
            kept = [c for c in clique if c == column or c in known]
            chances = np.moveaxis(table, kept.index(column), -1).reshape(-1, model.sizes[column])
            group = np.zeros(rows, np.int64)
            for c in known:
                group = group * model.sizes[c] + codes[:, c]
            codes[:, column] = _shared_out(group, chances, by)
            drawn.add(column)
    return codes[by.permutation(rows)]


def _shared_out(
    group: NDArray[np.int64], chances: NDArray[np.float64], by: np.random.Generator
) -> NDArray[np.int32]:
    """Give each row a value by the chances of its group."""
    found, place, sizes = np.unique(group, return_inverse=True, return_counts=True)
    weights = chances[found]
    sums = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, sums, out=np.full_like(weights, 1 / weights.shape[1]), where=sums > 0)
    expected = shares * sizes[:, None]
    counts = np.floor(expected)
    rest = expected - counts
    keys = by.exponential(size=rest.shape) / np.maximum(rest, 1e-300)  # the smallest keys are drawn
    keys[shares == 0] = np.inf
    ranks = np.empty_like(keys, dtype=np.int64)
    np.put_along_axis(ranks, np.argsort(keys, axis=1), np.arange(keys.shape[1])[None, :], axis=1)
    left = sizes - counts.sum(axis=1).astype(np.int64)
    whole = counts.astype(np.int64) + (ranks < left[:, None])
    values = np.repeat(np.tile(np.arange(whole.shape[1], dtype=np.int32), len(found)), whole.ravel())
    order = np.lexsort((by.random(len(group)), place))
    given = np.empty(len(group), np.int32)
    given[order] = values
    return given
