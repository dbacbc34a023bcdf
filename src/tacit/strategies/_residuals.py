"""Residual plans: the noise with which many cross tables are best measured together.

The residual of a set S of columns, ``v_S = prod over i in S of (n_i I - 1 1^T)``, applied to the table of S,
is what the table says beyond the tables of fewer columns. Residuals of different sets are orthogonal, so a
table A is rebuilt as the sum of the residuals of its subsets, and its variance is a sum too (Xiao, He, Zhang,
Kifer 2023; docs/proofs/workloads.md):

    var_A = sum over S in A of s_S^2 p_S prod over j in A without S of 1/n_j^2,
    p_S = prod over i in S of (1 - 1/n_i),
    rho = sum over S of p_S / (2 s_S^2),

where each number of ``v_S / prod n_i`` gets Gaussian noise of variance ``s_S^2``. Everything here is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tacit.errors import bad_parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: Columns of a table, by their numbers, rising.
ColumnSet: TypeAlias = "tuple[int, ...]"
_Numbers: TypeAlias = "NDArray[np.float64]"

_MAX_PARTS = 20_000_000  # pairs of a table and one of its subsets
_EXACT_COLUMNS = 14  # up to so many columns, all 2^d ways to replace a row are looked at
_ROUNDS = 2_000
_FLOOR = 1e-9  # a table's share of the attention never falls below this part of an equal share


def tables_up_to(columns: int, most: int) -> list[ColumnSet]:
    """Return all tables of at least one and at most ``most`` columns, small ones first.

    Examples
    --------
    >>> tables_up_to(3, 2)
    [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    """
    return [one for k in range(1, most + 1) for one in combinations(range(columns), k)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResidualSets:
    """The wanted tables, all their subsets, and how noise on the subsets becomes variance of the tables.

    Parameters
    ----------
    sizes
        How many values each column has.
    tables
        The wanted tables.
    sets
        The subsets whose residuals are measured, small ones first. Those with a column of one value are
        left out: their residual is 0.
    shares
        ``p_S`` of each of them.

    Examples
    --------
    >>> sets = ResidualSets.of((2, 3, 4, 5), tables_up_to(4, 2))
    >>> squares = sets.least_sum()
    >>> cells = [6, 8, 10, 12, 15, 20]
    >>> round(float(sets.cells @ sets.variances(squares)), 6), round(float(sets.rho(squares)), 6)
    (333.790859, 0.5)
    >>> round(float(sets.variances(sets.least_largest(gap=1e-6)).max()), 4)
    4.495
    """

    sizes: tuple[int, ...]
    tables: tuple[ColumnSet, ...]
    sets: tuple[ColumnSet, ...]
    shares: _Numbers
    _table: NDArray[np.int64]  # of each pair of a table and a subset: the table,
    _set: NDArray[np.int64]  # the subset
    _ratio: _Numbers  # and p_S prod 1/n_j^2

    @classmethod
    def of(cls, sizes: Sequence[int], tables: Sequence[ColumnSet]) -> ResidualSets:
        """Find the subsets of the wanted tables, or refuse more than can be planned."""
        columns = tuple(tuple(sorted(one)) for one in tables)
        if sum(2 ** len(one) for one in columns) > _MAX_PARTS:
            raise bad_parameter(
                "tables", "fewer, or tables of fewer columns", f"{len(columns):,} tables",
                fix="ask for tables of at most two or three columns",
            )  # fmt: skip
        n = np.asarray(sizes, np.float64)
        at, keys, ratios = _parts(n, columns)
        codes, index = np.unique(keys, return_inverse=True)
        sets = [_decoded(int(key), len(n) + 1) for key in codes.tolist()]
        shares = np.array([math.prod(1 - 1 / n[i] for i in one) for one in sets])
        order = sorted((i for i in range(len(sets)) if shares[i] > 0), key=lambda i: (len(sets[i]), sets[i]))
        rank = np.full(len(sets), -1)
        rank[order] = np.arange(len(order))
        nonempty = rank[index] >= 0
        return cls(
            tuple(int(one) for one in sizes), columns, tuple(sets[i] for i in order), shares[order],
            at[nonempty], rank[index][nonempty], ratios[nonempty],
        )  # fmt: skip

    @property
    def cells(self) -> _Numbers:
        """How many cells each wanted table has."""
        return np.array([math.prod(self.sizes[i] for i in one) for one in self.tables], np.float64)

    def variances(self, squares: _Numbers) -> _Numbers:
        """Return the variance of a cell of each wanted table, for noise of these squares ``s_S^2``."""
        return np.asarray(
            np.bincount(self._table, squares[self._set] * self._ratio, len(self.tables)), np.float64
        )

    def rho(self, squares: _Numbers) -> float:
        """Return the cost, where one row more or less makes a neighbour."""
        return float((self.shares / squares).sum()) / 2

    def least_sum(self, weights: _Numbers | None = None) -> _Numbers:
        """Return the squares at rho = 1/2 for which the weighted sum of the variances of all cells is least.

        The closed form of Xiao et al. 2023: with ``u_S`` the weight on ``s_S^2``, the least is ``T^2`` for
        ``T = sum of sqrt(u_S p_S)``. For another rho, divide by 2 rho.
        """
        each = self.cells if weights is None else weights * self.cells
        return self._best(each)[0]

    def least_largest(self, weights: _Numbers | None = None, *, gap: float = 1e-4) -> _Numbers:
        """Return the squares at rho = 1/2 for which the largest weighted variance of a cell is least.

        Guarantee: the largest is at most ``1 + gap`` times the least possible, unless the search ended
        first; `certified_gap` says how close it came. The tables get attention in proportion to the root
        of their variance, again and again. For every choice of attention, the least weighted sum bounds the
        largest variance of all plans from below.
        """
        return self._least_largest(weights, gap)[0]

    def certified_gap(self, weights: _Numbers | None = None, *, gap: float = 1e-4) -> float:
        """Return by which part the largest variance of `least_largest` can at most be lowered."""
        return self._least_largest(weights, gap)[1]

    def _least_largest(self, weights: _Numbers | None, gap: float) -> tuple[_Numbers, float]:
        count = len(self.tables)
        each = np.ones(count) if weights is None else np.asarray(weights, np.float64)
        attention = np.full(count, 1 / count)
        best, largest, bound = np.empty(0), math.inf, 0.0
        for _ in range(_ROUNDS):
            squares, rho = self._best(attention * each)
            variances = self.variances(squares) * each
            bound = max(bound, rho)
            worst = float(variances.max())
            if worst < largest:
                best, largest = squares, worst
            if largest <= bound * (1 + gap):
                break
            attention *= np.sqrt(variances / worst)
            attention = np.maximum(attention / attention.sum(), _FLOOR / count)
        return best, largest / bound - 1

    def _best(self, each: _Numbers) -> tuple[_Numbers, float]:
        """Return the squares with the least ``sum of each_A var_A`` at rho = 1/2, and this least sum."""
        u = np.bincount(self._set, each[self._table] * self._ratio, len(self.sets))
        total = float(np.sqrt(u * self.shares).sum())
        return np.sqrt(self.shares / u) * total, total**2

    def replaced(self, squares: _Numbers) -> float:
        """Return an upper bound of the cost where a neighbour has one row replaced by another."""
        return replace_cost(self.sizes, self.sets, squares)


def replace_cost(sizes: Sequence[int], sets: Sequence[ColumnSet], squares: _Numbers) -> float:
    """Return an upper bound of rho where one row is replaced by another.

    The two rows differ in some columns D, and the cost is the largest over D of ``sum (p_S - prod c_i) /
    s_S^2`` with ``c_i = -1/n_i`` in D and ``1 - 1/n_i`` outside. With many columns, a bound for each set
    alone is added up: ``prod c_i`` is at least ``-p_S / (min n_i - 1)``. Rounding errors are added.

    Examples
    --------
    >>> replace_cost((2,), [(), (0,)], np.array([1.0, 1.0])) >= 1  # only the residual of the column moves
    True
    """
    n, d = np.asarray(sizes, np.float64), len(sizes)
    shares = np.array([math.prod(1 - 1 / n[i] for i in columns) for columns in sets])
    slack = (len(sets) + 64) * 2.0**-50 * float((shares / squares).sum())
    if d > _EXACT_COLUMNS:
        moves = [i for i, columns in enumerate(sets) if columns and shares[i] > 0]
        lowest = np.array([min(n[j] for j in sets[i]) for i in moves])
        return float((shares[moves] * (1 + 1 / (lowest - 1)) / squares[moves]).sum()) + slack
    differ = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1
    factors = np.where(differ, -1 / n, 1 - 1 / n)
    total = np.zeros(2**d)
    for columns, share, square in zip(sets, shares, squares, strict=True):
        total += (share - np.prod(factors[:, list(columns)], axis=1)) / square
    return float(total.max()) + slack


def _parts(
    n: _Numbers, tables: Sequence[ColumnSet]
) -> tuple[NDArray[np.int64], NDArray[np.int64 | np.object_], _Numbers]:
    """Return all pairs of a table and a subset: the table's number, the subset as one number, the ratio."""
    base = len(n) + 1
    widest = max((len(one) for one in tables), default=0)
    kind = np.int64 if base ** max(widest, 1) < 2**62 else object
    numbers, keys, ratios = [], [], []
    for k in sorted({len(one) for one in tables}):
        which = np.array([i for i, one in enumerate(tables) if len(one) == k])
        columns = np.array([tables[i] for i in which], np.int64).reshape(len(which), k)
        inside, outside = 1 - 1 / n[columns], 1 / n[columns] ** 2
        for mask in range(2**k):
            chosen = [j for j in range(k) if mask >> j & 1]
            rest = [j for j in range(k) if not mask >> j & 1]
            key = np.zeros(len(which), kind)
            for j in reversed(chosen):
                key = key * base + (columns[:, j] + 1).astype(kind)
            numbers.append(which)
            keys.append(key)
            ratios.append(np.prod(inside[:, chosen], axis=1) * np.prod(outside[:, rest], axis=1))
    return np.concatenate(numbers), np.concatenate(keys), np.concatenate(ratios)


def _decoded(key: int, base: int) -> ColumnSet:
    columns = []
    while key:
        key, digit = divmod(key, base)
        columns.append(digit - 1)
    return tuple(columns)
