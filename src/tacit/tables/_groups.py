"""Rows in groups: totals over them, and the aggregates that make a question."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tacit.algebra import (
    TableQuestion,
    scope,
)
from tacit.errors import bad_parameter
from tacit.fixes import Code
from tacit.parameters import Instance
from tacit.tables._aggregates import Aggregate
from tacit.tables._column_names import check_name
from tacit.tables._habits import PandasHabits
from tacit.tables._levels import Levels, check_levels, cube_levels, named_levels, rollup_levels
from tacit.tables._query import Query
from tacit.tables._words import rows_in_words, sample_in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.algebra import Node
    from tacit.tables._rows import Rows


@dataclass(frozen=True, slots=True, repr=False)
class GroupedRows(PandasHabits):
    """Rows in groups."""

    rows: Rows
    by: tuple[tuple[str, Node], ...]
    keys: tuple[tuple[object, ...], ...] | None
    missing: bool = False
    levels: Levels = ()

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.by)
        known = "selected privately" if self.keys is None else f"{len(self.keys):,} public"
        part = "" if self.rows.share is None else f", {sample_in_words(self.rows.share)}"
        totals = ", with totals" if self.levels else ""
        return (
            f"rows {rows_in_words(self.rows.relation)}{part}, in groups by {names} ({known}){totals}\n"
            "not a question yet: add .agg(n=tc.count())"
        )

    def rollup(self) -> GroupedRows:
        """Show totals too: over the last column, over the last two, and so on, down to all rows.

        Tacit measures only the smallest groups and adds them up, so totals cost nothing. Counts with Gaussian
        noise and keys that form a product are planned together with their totals instead, where that is
        narrower; such a plan is not the plan of the groups alone. The key of a total is None.
        """
        return replace(self, levels=rollup_levels(len(self.by)))

    def cube(self) -> GroupedRows:
        """Show the totals over every choice of columns; see `rollup`."""
        return replace(self, levels=cube_levels(len(self.by)))

    def grouping_sets(self, sets: Sequence[Sequence[str]]) -> GroupedRows:
        """Show only these levels, each a list of columns: ``[["ward", "sex"], ["ward"], []]``."""
        return replace(self, levels=named_levels([name for name, _ in self.by], sets))

    def agg(self, **aggregates: Aggregate) -> Query:
        """Name the aggregates of each group: ``.agg(n=tc.count(), stay=tc.mean("length_of_stay"))``."""
        if not aggregates:
            raise bad_parameter("agg", "given at least one aggregate", {}, fix=Code(".agg(n=tc.count())"))
        facts = scope(self.rows.relation)
        for name, aggregate in aggregates.items():
            check_name(name)
            Instance(Aggregate, f"{name}=tc.count()", "an aggregate").read(name, aggregate)
        made = tuple((name, aggregate.resolved(facts)) for name, aggregate in aggregates.items())
        limits = self.rows.limits
        question = TableQuestion(
            self.rows.relation,
            self.by,
            self.keys,
            made,
            limits.groups,
            limits.per_group,
            self.missing,
            levels=self.levels,
            sample=self.rows.share,
        )
        check_levels(question)
        return Query.of(self.rows._dataset, question)
