"""The dataset of tables: what can be asked of it, fluently and in SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.core import AnswerTable, Dataset, Limits, Plan, Table
from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.tables._algebra import How, Scan
from tacit.tables._habits import PandasHabits, column_as_table
from tacit.tables._query import GroupedRows, Query, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core import Engine
    from tacit.exact import Number
    from tacit.tables._aggregates import Aggregate
    from tacit.tables._algebra import TableQuestion
    from tacit.tables._goals import Goal
    from tacit.tables._keys import KeysGiven, MissingKeys
    from tacit.tables._partition import BlockColumn
    from tacit.tables._postprocessing import PostProcessing
    from tacit.tables._python_expressions import Expr

__all__ = ["TableDataset"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableDataset(Dataset, PandasHabits):
    """Tables, the unit that is protected, and public facts. Made by `protect`.

    A dataset answers through plans only. It offers no way to read a row, a count of rows or a list of values.

    Parameters
    ----------
    tables
        The declared tables by name, protected and public.
    limits
        How much one unit may contribute; a unit that is one row needs no limit.
    main
        The table that a question uses if it names none.
    is_one_table
        Whether there is one protected table in which every unit has a row; false for CSV, where unreadable
        lines are skipped.
    block_column
        The column that divides the rows into blocks that are charged apart, or None.
    """

    tables: Mapping[str, Table]
    limits: Limits
    main: str
    is_one_table: bool
    _engine: Engine
    block_column: BlockColumn | None = None

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} ({_size(table)})" for name, table in sorted(self.tables.items()))
        return (
            f"dataset {self.name}, protects each {self.unit.noun}{self._left()}\n"
            f"tables: {tables}\n"
            "ask: .agg(n=tc.count()), .group_by(...).agg(...) or .sql(...); .columns lists the columns"
        )

    def _left(self) -> str:
        try:
            return f"; left: {self.remaining}"
        except TacitError:  # a ledger that is closed, or cannot be reached now
            return ""

    def __getitem__(self, table: str) -> Rows:
        found = self.tables.get(table)
        if found is None or found.key is not None:
            if table in self.columns:
                raise column_as_table(table)
            protected = sorted(n for n, t in self.tables.items() if t.key is None)
            raise TacitError(
                "unknown-table",
                f"there is no protected table {table!r}",
                fix=Choose(tuple(protected), given=str(table)),
            )
        return Rows(self, Scan(found, self.limits.rows), self.limits)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the main table's columns, which are public; empty if its source is not available."""
        return self[self.main].columns

    def where(self, condition: Expr | str) -> Rows:
        """Keep rows by a condition; see `Rows.where`."""
        return self[self.main].where(condition)

    def sample(self, share: Number) -> Rows:
        """Ask a secret sample of the units; see `Rows.sample`."""
        return self[self.main].sample(share)

    def with_columns(self, **columns: Expr | str | float) -> Rows:
        """Add or redefine columns; see `Rows.with_columns`."""
        return self[self.main].with_columns(**columns)

    def select(self, *names: str, **made: Expr | str) -> Rows:
        """Keep or rename columns; see `Rows.select`."""
        return self[self.main].select(*names, **made)

    def join(
        self, other: Rows | str, on: str | Expr | None = None, *, how: How = "inner", rows: int | None = None
    ) -> Rows:
        """Join on the unit, or look up a public table; see `Rows.join`."""
        return self[self.main].join(other, on, how=how, rows=rows)

    def per_unit(self, by: Sequence[str] = (), **measures: Aggregate) -> Rows:
        """Aggregate each unit's own rows first; see `Rows.per_unit`."""
        return self[self.main].per_unit(by, **measures)

    def limit(self, **limits: int | None) -> Rows:
        """Change limits on groups for one question; see `Rows.limit`."""
        return self[self.main].limit(**limits)

    def group_by(
        self, *by: str | Expr, keys: KeysGiven = None, missing: MissingKeys = "drop", **named: Expr | str
    ) -> GroupedRows:
        """Group by columns; see `Rows.group_by`."""
        return self[self.main].group_by(*by, keys=keys, missing=missing, **named)

    def agg(self, **aggregates: Aggregate) -> Query:
        """Aggregate all rows; see `Rows.agg`."""
        return self[self.main].agg(**aggregates)

    def sql(self, query: str, *, keys: Mapping[str, Sequence[object] | str] | None = None) -> Query:
        """Ask in SQL.

        SELECT with aggregates, WHERE, GROUP BY, JOIN, WITH, CASE, dates; HAVING, ORDER BY, LIMIT and
        arithmetic on aggregates are free post-processing. Only SQL that Tacit writes itself is ever run.

        Parameters
        ----------
        query
            One SELECT statement.
        keys
            Public keys by group column, where they are not declared with the dataset: lists, or names of
            public tables.
        """
        from tacit.tables.sql import parse_query

        return parse_query(query, self, keys)

    def _rebuild(self, request: Any) -> Plan[AnswerTable]:
        from tacit.tables._planning import make_plans

        return make_plans([self._member(request)])[0]

    def _member(self, request: Any) -> tuple[TableDataset, TableQuestion, Goal, PostProcessing | None]:
        """Read what a plan's document asks of this dataset."""
        from tacit.tables._goals import Goal
        from tacit.tables._wire import read_post, read_question

        question = read_question(request["question"], self)
        return self, question, Goal.from_json(request["goal"]), read_post(request["post"], self)


def _size(table: Table) -> str:
    """Say what is public about a table: how many columns it has, and whether its rows are public."""
    if table.columns is None:
        return "its source is not available here"
    return f"{len(table.columns)} columns" + (", public" if table.key is not None else "")
