"""Synthetic rows from a model, column by column: counts as whole numbers, almost without sampling error.

The generator is seeded publicly. Rows are a view of a release: the same release gives the same rows.

Gradual update makes rows that agree with many tables at once, where no graphical model has room for them.
After PrivSyn (Zhang and others 2021): rows start as independent columns. Sweep after sweep, and table after
table, rows move from cells that hold too many into cells that hold too few; the share that moves shrinks. It
ends after a fixed number of sweeps; that it comes close is seen, not proven.

No row has a combination that was declared impossible: the first rows are drawn from a model without them, and
a move into one is not made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.synth._fit import NoisyTable, together, total_of
from tacit.synth._model import Columns, GraphicalModel, model_of, summed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


_SWEEPS = 40
_FIRST = 1.0  # the share of the excess that moves in the first sweep
_SHRINK = 0.84 ** (1 / 2)
_LEAST = 1e-9  # of all rows, for a value that the noisy tables deny: it may be all that is possible


def draw_codes(model: GraphicalModel, rows: int, by: np.random.Generator) -> NDArray[np.int32]:
    """Draw rows as places on each column.

    A column is drawn given the columns of its clique that are drawn already. Rows that agree in those share
    out the new column's expected counts: rounded down, and the rest without replacement.
    """
    codes = np.zeros((rows, len(model.sizes)), np.int32)
    columns_drawn: set[int] = set()
    for clique, belief in zip(model.tree.cliques, model.beliefs, strict=True):
        for column in clique:
            if column in columns_drawn:
                continue
            parents = [c for c in clique if c in columns_drawn]
            over = tuple(i for i, c in enumerate(clique) if c != column and c not in parents)
            table = belief.sum(axis=over) if over else belief
            table_columns = [c for c in clique if c == column or c in parents]
            chances = np.moveaxis(table, table_columns.index(column), -1).reshape(-1, model.sizes[column])
            group = np.zeros(rows, np.int64)
            for c in parents:
                group = group * model.sizes[c] + codes[:, c]
            codes[:, column] = _shared_out(group, chances, by)
            columns_drawn.add(column)
    return codes[by.permutation(rows)]


def _shared_out(
    group: NDArray[np.int64], chances: NDArray[np.float64], by: np.random.Generator
) -> NDArray[np.int32]:
    """Give each row a value by the chances of its group."""
    groups, group_of_row, sizes = np.unique(group, return_inverse=True, return_counts=True)
    weights = chances[groups]
    sums = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, sums, out=np.full_like(weights, 1 / weights.shape[1]), where=sums > 0)
    expected = shares * sizes[:, None]
    counts = np.floor(expected)
    rest = expected - counts
    keys = by.exponential(size=rest.shape) / np.maximum(rest, 1e-300)  # the smallest keys are drawn
    keys[shares == 0] = np.inf
    ranks = np.empty_like(keys, dtype=np.int64)
    np.put_along_axis(ranks, np.argsort(keys, axis=1), np.arange(keys.shape[1])[None, :], axis=1)
    remaining = sizes - counts.sum(axis=1).astype(np.int64)
    integer_shares = counts.astype(np.int64) + (ranks < remaining[:, None])
    values = np.repeat(
        np.tile(np.arange(integer_shares.shape[1], dtype=np.int32), len(groups)), integer_shares.ravel()
    )
    order = np.lexsort((by.random(len(group)), group_of_row))
    codes = np.empty(len(group), np.int32)
    codes[order] = values
    return codes


def nonnegative(counts: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return the nearest table without negative counts and with a given sum (Euclidean projection).

    Examples
    --------
    >>> nonnegative(np.array([6.0, 5.0, -3.0]), 10).tolist()
    [5.5, 4.5, 0.0]
    """
    flat = np.sort(counts.ravel())[::-1]
    over = (np.cumsum(flat) - total) / np.arange(1, flat.size + 1)
    end = int(np.flatnonzero(flat > over)[-1]) if (flat > over).any() else 0
    return np.asarray(np.maximum(counts - over[end], 0.0))


def gradual_codes(
    tables: Sequence[NoisyTable],
    sizes: Sequence[int],
    rows: int,
    by: np.random.Generator,
    zeros: Mapping[Columns, NDArray[np.bool_]] | None = None,
) -> NDArray[np.int32]:
    """Draw rows as places on each column, in agreement with noisy tables that cover all columns."""
    if rows == 0:
        return np.zeros((0, len(sizes)), np.int32)
    total = max(total_of(tables), 1.0)
    merged = together(tables)
    blocked = zeros or {}
    target_tables = {
        c: nonnegative(_without(t.counts, c, blocked), total) * (rows / total) for c, t in merged.items()
    }
    codes = draw_codes(_independent(target_tables, sizes, blocked), rows, by)
    share = _FIRST
    for _ in range(_SWEEPS):
        for columns, target in target_tables.items():
            touched = {c: never for c, never in blocked.items() if not set(c).isdisjoint(columns)}
            _moved(codes, columns, target, sizes, share, by, touched)
        share *= _SHRINK
    return codes[by.permutation(rows)]


def _independent(
    target_tables: Mapping[Columns, NDArray[np.float64]],
    sizes: Sequence[int],
    zeros: Mapping[Columns, NDArray[np.bool_]],
) -> GraphicalModel:
    """Return the model of independent columns, apart from what can never be."""
    weights: dict[Columns, NDArray[np.float64]] = {}
    for column, size in enumerate(sizes):
        marginals = [summed(t, c, (column,)) for c, t in target_tables.items() if column in c]
        mean_marginal = np.mean(marginals, axis=0) if marginals else np.ones(size)
        weights[column,] = np.log(np.maximum(mean_marginal, _LEAST * max(mean_marginal.sum(), 1.0)))
    model = model_of(weights, zeros, sizes, 1.0) or model_of({}, zeros, sizes, 1.0)
    assert model is not None  # noqa: S101 - what can never be was checked to leave something
    return model


def _forbidden(codes: NDArray[np.int32], zeros: Mapping[Columns, NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return which rows have a combination that can never be."""
    forbidden = np.zeros(len(codes), bool)
    for columns, never in zeros.items():
        forbidden |= never[tuple(codes[:, column] for column in columns)]
    return forbidden


def _without(
    counts: NDArray[np.float64], columns: Columns, zeros: Mapping[Columns, NDArray[np.bool_]]
) -> NDArray[np.float64]:
    """Return counts with a low number where nothing can be, so that the projection makes it zero."""
    for blocked, never in zeros.items():
        if set(blocked) <= set(columns):
            blocked_cells = never.reshape(
                [counts.shape[i] if c in blocked else 1 for i, c in enumerate(columns)]
            )
            counts = np.where(blocked_cells, -1e300, counts)
    return counts


def _dealt(weights: NDArray[np.float64], rows: int, by: np.random.Generator) -> NDArray[np.int32]:
    """Deal out the values of one column in random order, as many of each as its weight says."""
    expected = (
        weights / weights.sum() * rows if weights.sum() > 0 else np.full(len(weights), rows / len(weights))
    )
    counts = np.floor(expected).astype(np.int64)
    keys = by.exponential(size=len(weights)) / np.maximum(expected - counts, 1e-300)
    counts[np.argsort(keys)[: rows - int(counts.sum())]] += 1
    return by.permutation(np.repeat(np.arange(len(weights), dtype=np.int32), counts))


def _moved(
    codes: NDArray[np.int32],
    columns: Columns,
    target_table: NDArray[np.float64],
    sizes: Sequence[int],
    share: float,
    by: np.random.Generator,
    zeros: Mapping[Columns, NDArray[np.bool_]],
) -> None:
    """Move rows from cells of one table that hold too many into cells that hold too few.

    Half of the moved rows become copies of rows that are in the new cell; the others change only the
    columns of the table. A row stays as it was where the move would make what can never be.
    """
    cell = np.zeros(len(codes), np.int64)
    for column in columns:
        cell = cell * sizes[column] + codes[:, column]
    target = target_table.ravel()
    away = target - np.bincount(cell, minlength=target.size)
    give = np.floor(np.maximum(-away, 0) * share + by.random(target.size)).astype(np.int64)
    order = np.lexsort((by.random(len(codes)), cell))
    starts = np.searchsorted(cell[order], np.arange(target.size))
    rank = np.arange(len(codes)) - starts[cell[order]]
    leaving = order[rank < give[cell[order]]]
    short = np.maximum(away, 0)
    if not len(leaving) or not short.sum() > 0:
        return
    places = _dealt(short, len(leaving), by).astype(np.int64)
    staying = order[rank >= give[cell[order]]]
    staying_cells = cell[staying]  # rising
    low, high = np.searchsorted(staying_cells, places), np.searchsorted(staying_cells, places, side="right")
    copied = (by.random(len(leaving)) < 0.5) & (high > low)
    moving = codes[leaving]
    if copied.any():
        pick = low[copied] + np.floor(by.random(int(copied.sum())) * (high - low)[copied]).astype(np.int64)
        moving[copied] = codes[staying[pick]]
    for column in reversed(columns):
        moving[:, column] = places % sizes[column]
        places = places // sizes[column]
    allowed = ~_forbidden(moving, zeros)
    codes[leaving[allowed]] = moving[allowed]
