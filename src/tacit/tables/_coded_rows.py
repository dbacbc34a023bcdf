"""Coded rows: each kind of row once, as its places on the axes, with how often it occurs.

One statement gives them all, and every cross table of the axes is a sum over them. They are exact, and they
never leave the process without noise.

Neighbours (docs/proofs/workloads.md). A unit owns at most k of the counted rows, and each row is in one cell
of every table. So adding or removing a unit moves any table by at most k in L1, and in L2 as well: the most
is k rows in one cell.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.algebra import RowCounts, TableQuestion
from tacit.tables._exact_integers import public_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tacit.algebra import Relation
    from tacit.engines import EngineTransaction
    from tacit.tables._axes import Axis

_MANY = 10_000  # kinds of rows


@dataclass(frozen=True, slots=True)
class CodedRows:
    """Rows by their places on the axes.

    Parameters
    ----------
    sizes
        How many places each axis has.
    codes
        One line for each kind of row: its place on each axis.
    counts
        How many rows there are of each kind.
    """

    sizes: tuple[int, ...]
    codes: NDArray[np.int32]
    counts: NDArray[np.int64]

    def table(self, axes: Sequence[int]) -> NDArray[np.int64]:
        """Return the exact table of some axes, in their order.

        Examples
        --------
        >>> rows = CodedRows((2, 3), np.array([[0, 2], [1, 0]], np.int32), np.array([5, 7]))
        >>> rows.table([0, 1]).tolist(), rows.table([0]).tolist(), int(rows.table([]))
        ([[0, 0, 5], [7, 0, 0]], [5, 7], 12)
        """
        shape = tuple(self.sizes[axis] for axis in axes)
        cells = int(np.prod(shape, dtype=object)) if shape else 1
        at = np.zeros(len(self.counts), np.int64)
        for axis in axes:
            at = at * self.sizes[axis] + self.codes[:, axis]
        made = np.zeros(cells, np.int64)
        np.add.at(made, at, self.counts)
        return made.reshape(shape)


def coded_question(relation: Relation, axes: Sequence[Axis], sample: int | None = None) -> TableQuestion:
    """Return the question whose groups are the kinds of rows that occur: every group, with how many rows.

    It is asked inside a paid plan only, and what comes back goes to mechanisms alone.
    """
    by = tuple((axis.name, axis.node) for axis in axes)
    return TableQuestion(relation, by, None, (), None, None, missing=True, sample=sample)


def coded_rows(data: EngineTransaction, question: TableQuestion, axes: Sequence[Axis]) -> CodedRows:
    """Read the coded rows; a row without a place on some axis is left out."""
    [(_, lines)] = data.integers(question, (RowCounts(),), public_tables(question))
    width = len(axes)
    codes = np.empty((len(lines), width), np.int32)
    for i, axis in enumerate(axes):
        places = {value: place for place, value in enumerate(axis.values)}
        beyond = len(axis.values) if axis.other else -1
        nowhere = places.get(None, -1)
        codes[:, i] = [nowhere if line[i] is None else places.get(line[i], beyond) for line in lines]
    counts = np.array([int(str(line[width])) for line in lines], np.int64)
    known = (codes >= 0).all(axis=1)
    del lines
    if len(counts) > _MANY:
        gc.collect()  # Python keeps some freed tuples for later, and with them most of the memory of all
    return CodedRows(tuple(axis.size for axis in axes), codes[known], counts[known])
