"""The contribution of one unit to a table's answer: from limits to the sensitivities of statistics.

Let a unit own at most m rows of the relation (m may be unlimited), reach at most g groups and count at most
c rows in each. With n_k rows in group k, what it adds to a statistic of per-row weight 1 is a vector (n_k)
with 0 <= n_k <= c, sum n_k <= m and at most g of them above zero, hence

* L1: at most T = min(m, g c);
* L2: at most sqrt(q c^2 + r^2), (q, r) = divmod(T, c): a convex function is largest at an extreme point of
  the polytope, and those have all entries but one at 0 or c;
* the number of groups it appears in: at most G = min(g, m).

A row's statistic of weight w (L1) multiplies both. Under `replace` one unit's vector goes and another
comes: the sum of the two norms bounds the change, for non-negative statistics the L2 bound is sqrt(2)
times, since (a-b)^2 <= a^2 + b^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.algebra._questions import JoinUnits, Relation, TableQuestion, joins_of, rows_per_unit, scans_of
from tacit.core import DEFAULT_PAIRS
from tacit.errors import TacitError
from tacit.fixes import Declare, Either, Say

if TYPE_CHECKING:
    from tacit.accounting import Adjacency

_MANY_PAIRS = 10**6  # more are never advised


@dataclass(frozen=True, slots=True)
class Contribution:
    """The most that one unit can contribute to a question.

    Parameters
    ----------
    total
        Rows over all groups (T).
    per_group
        Rows within one group (c).
    groups
        Groups it appears in (G).
    adjacency
        What a neighbour is.
    grouped
        Whether the answer has more than one group.
    """

    total: int
    per_group: int
    groups: int
    adjacency: Adjacency
    grouped: bool

    @property
    def times(self) -> int:
        """How many units differ between neighbours: 2 under replace (one goes, one comes)."""
        return 2 if self.adjacency == "replace" else 1

    def l1(self, weight: int) -> int:
        """Bound the L1 change of a statistic to which each row adds at most ``weight`` (L1)."""
        return self.times * weight * self.total

    def l2_squared(self, weight: int, *, signed: bool = False) -> int:
        """Bound the square of the L2 change; ``signed`` where a row may add negative numbers."""
        full, rest = divmod(self.total, self.per_group)
        squared = weight * weight * (full * self.per_group**2 + rest**2)
        return squared * (1 if self.times == 1 else 4 if signed else 2)

    def scalar(self, low: int, high: int) -> int:
        """Bound the change of one number, a sum of values in [low, high] over a unit's rows."""
        if self.adjacency == "replace":
            return self.total * (max(high, 0) - min(low, 0))
        return self.total * max(abs(low), abs(high))

    @property
    def units_l1(self) -> int:
        """Bound the L1 change of the numbers of units per group."""
        return self.times * self.groups if self.grouped else 1


def contribution(
    question: TableQuestion, *, row_level: bool, adjacency: Adjacency, pairs: int = DEFAULT_PAIRS
) -> Contribution:
    """Bound what one unit can contribute to a question, or refuse where nothing bounds it.

    ``pairs`` is the most pairs of rows that one unit may form in a join, also where a limit then drops some:
    the engine forms them all, so they decide how long it takes and how much memory it needs.
    """
    grouped = bool(question.by)
    _check_pairs(question.input, pairs)
    if row_level:
        _check_single_rows(question)
    rows = 1 if row_level else rows_per_unit(question.input)
    groups = question.groups if grouped else 1
    if question.keys is not None and grouped:
        groups = min(x for x in (groups, len(question.keys)) if x is not None)
    per_group = question.per_group
    reach = min(x for x in (groups, rows) if x is not None) if (groups or rows) else None
    max_rows = min((x for x in (per_group, rows) if x is not None), default=None)
    if reach is None or max_rows is None:
        missing = "per_group" if question.groups else "groups" if per_group and grouped else "rows"
        raise TacitError(
            "missing-limit",
            f"nothing bounds how much one unit can add: there is no limit on {missing}",
            why="noise can hide one unit only if there is a bound on what this unit can change",
            fix=Declare("limits", 10, column=missing),
        )
    total = reach * max_rows if rows is None else min(rows, reach * max_rows)
    return Contribution(total, min(max_rows, total), reach, adjacency, grouped)


def _check_single_rows(question: TableQuestion) -> None:
    """Refuse limits where each row is a unit of its own."""
    limited = question.groups is not None or question.per_group is not None
    if limited or any(scan.rows is not None for scan in scans_of(question.input)):
        raise TacitError(
            "not-allowed",
            "single rows have no limits on groups or rows",
            why="each row is one unit in one group, so such a limit would act on the whole table",
            fix="remove the limits",
        )


def _check_pairs(node: Relation, max_pairs: int) -> None:
    """Refuse joins in which one unit could form more pairs of rows than the public limit."""
    for join in joins_of(node):
        if not isinstance(join, JoinUnits):
            continue
        left_rows, right = rows_per_unit(join.left), rows_per_unit(join.right)
        if left_rows is None or right is None:
            raise TacitError(
                "missing-limit",
                "a join of protected tables needs a limit on the rows of each table",
                why="the rows of one unit are paired with each other, so one unit with many rows could "
                "make the query arbitrarily large",
                fix=Declare("limits", 10, column="rows"),
            )
        if left_rows * right > max_pairs:
            formed = left_rows * right
            raise TacitError(
                "question-too-large",
                f"a join could form {formed:,} pairs of rows of one unit ({left_rows:,} times {right:,}), "
                f"but only {max_pairs:,} are allowed",
                why="the time and the memory that a query needs could reveal how many rows one person has",
                fix=Either(
                    Say("aggregate the rows of each unit before the join, so that each unit has one row"),
                    Declare("limits", 10, column="rows"),
                    *([Declare("limits", formed, column="pairs")] if formed <= _MANY_PAIRS else []),
                ),
            )
