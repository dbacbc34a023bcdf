"""The dataset of tables: what can be asked of it, fluently and in SQL."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tacit.algebra import How, Scan
from tacit.core import AnswerTable, Dataset, Limits, Release, Table, plannable
from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.tables.questions._limit_advice import refuse_automatic
from tacit.tables.questions._pandas_hints import PandasHints, column_as_table
from tacit.tables.questions._question_kinds import MEASURE_CUT, SUGGEST_LIMITS
from tacit.tables.questions._rows import Rows
from tacit.tables.questions._workload_questions import WorkloadQuestions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core import JSON, Question, QuestionKind
    from tacit.engines import Engine
    from tacit.exact import Number
    from tacit.tables._protect import BlockColumn
    from tacit.tables.questions._aggregates import Aggregate
    from tacit.tables.questions._keys import KeysGiven, MissingKeys
    from tacit.tables.questions._limit_advice import CutNote
    from tacit.tables.questions._python_expressions import Expr
    from tacit.tables.questions._rows import GroupedRows, Query


#: The questions that keep a minimum of people: groups are hidden by it, or there are none.
_WITH_MINIMUM = frozenset({"agg", "suggest_limits", "measure_cut", "regress"})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableDataset(Dataset, PandasHints, WorkloadQuestions):
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
        Whether there is one protected table in which every unit has a row; false for CSV, where a line can be
        empty.
    block_column
        The column that divides the rows into blocks that are charged separately, or None.
    noted
        What releases estimated that limits and bounds cut, for captions; see `noting`.
    minimum_people
        How many units a line of a grouped answer needs to be shown, as the curator decided; None for any.
    """

    kind: ClassVar[str] = "table"

    tables: Mapping[str, Table]
    limits: Limits
    main: str
    is_one_table: bool
    _engine: Engine
    block_column: BlockColumn | None = None
    noted: tuple[CutNote, ...] = ()
    minimum_people: int | None = None

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} ({_size(table)})" for name, table in sorted(self.tables.items()))
        return (
            f"dataset {self.name}, protects each {self.unit.noun}{self._left()}\n"
            f"tables: {tables}\n"
            "ask: .agg(n=tc.count()), .group_by(...).agg(...) or .sql(...); .columns lists the columns"
            + "".join(f"\nbudget: {note}" for note in self.account_notes)
        )

    def check_question(self, kind: QuestionKind[Any]) -> None:
        """Refuse a question of which nobody has said how it keeps the curator's minimum of people."""
        if self.minimum_people is not None and kind.name not in _WITH_MINIMUM:
            raise TacitError(
                "not-allowed",
                f"{kind.name} is not offered here: the curator shows only groups of at least "
                f"{self.minimum_people:,} {self.unit.noun}s",
                why="this question does not count them in each of its groups",
                fix="ask for groups with group_by and agg, or GROUP BY in SQL",
            )

    def _left(self) -> str:
        try:
            return f"; left: {self.remaining}"
        except TacitError:  # a ledger that is closed, or cannot be reached now
            return ""

    def __getitem__(self, table: str) -> Rows:
        declared = self.tables.get(table)
        if declared is None or declared.key is not None:
            if table in self.columns:
                raise column_as_table(table)
            protected = sorted(n for n, t in self.tables.items() if t.key is None)
            raise TacitError(
                "unknown-table",
                f"there is no protected table {table!r}",
                fix=Choose(tuple(protected), given=str(table)),
            )
        return Rows(self, Scan(declared, self.limits.rows_of(table)), self.limits)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the main table's columns, which are public; empty if its source is not available."""
        return self[self.main].columns

    def where(self, condition: Expr | str) -> Rows:
        """Keep rows by a condition; see `Rows.where`."""
        return self[self.main].where(condition)

    def sample(self, share: Number) -> Rows:
        """Read only a secret random sample of the units; see `Rows.sample`."""
        return self[self.main].sample(share)

    def with_columns(self, **columns: Expr | str | float) -> Rows:
        """Add or redefine columns; see `Rows.with_columns`."""
        return self[self.main].with_columns(**columns)

    def select(self, *names: str, **expressions: Expr | str) -> Rows:
        """Keep or rename columns; see `Rows.select`."""
        return self[self.main].select(*names, **expressions)

    def join(
        self, other: Rows | str, on: str | Expr | None = None, *, how: How = "inner", rows: int | None = None
    ) -> Rows:
        """Join on the unit, or look up a public table; see `Rows.join`."""
        return self[self.main].join(other, on, how=how, rows=rows)

    def per_unit(self, by: Sequence[str] = (), **measures: Aggregate) -> Rows:
        """Aggregate each unit's own rows first; see `Rows.per_unit`."""
        return self[self.main].per_unit(by, **measures)

    def limit(self, **limits: int | None) -> Rows:
        """Change limits for one question; see `Rows.limit`."""
        return self[self.main].limit(**limits)

    def group_by(
        self,
        *by: str | Expr,
        keys: KeysGiven = None,
        missing: MissingKeys = "drop",
        **expressions: Expr | str,
    ) -> GroupedRows:
        """Group by columns; see `Rows.group_by`."""
        return self[self.main].group_by(*by, keys=keys, missing=missing, **expressions)

    def agg(self, **aggregates: Aggregate) -> Query:
        """Aggregate all rows; see `Rows.agg`.

        Examples
        --------
        >>> import pandas as pd, tacit as tc
        >>> table = pd.DataFrame({"patient": [1, 2, 2], "stay": [3, 9, 4]})
        >>> ranges = {"stay": (0, 30)}
        >>> visits = tc.protect(table, unit="patient", bounds=ranges, budget=tc.Budget(epsilon=1))
        >>> question = visits.agg(days=tc.mean("stay"))
        """
        return self[self.main].agg(**aggregates)

    def _counted(self) -> Rows:
        return self[self.main]

    def sql(
        self,
        query: str,
        *,
        keys: Mapping[str, Sequence[object] | str] | None = None,
        limits: Mapping[str, int | None] | None = None,
        bounds: Mapping[str, Sequence[Number] | Literal["auto"]] | None = None,
        cut: Literal["rare"] | None = None,
    ) -> Query:
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
        limits
            Limits for this question alone, as in `Rows.limit`: ``{"rows": 20, "groups": 3}``.
        bounds
            Ranges by column for this question alone: ``{"stay": (0, 30)}``; with ``"auto"`` the plan finds
            them privately, at a quarter of its cost.
        cut
            ``"rare"``: bounds that the plan finds reach further out, so that few values lie beyond them; a
            frequency and not a guarantee.
        """
        from tacit.tables.sql import parse_query

        return parse_query(query, self if limits is None else self._limited(limits), keys, bounds, cut)

    def _limited(self, limits: Mapping[str, int | None]) -> TableDataset:
        """Return the dataset as a question with other limits sees it; refuse limits that it cannot have.

        Of several tables, one with a smaller declared limit on rows keeps it.
        """
        refuse_automatic(limits)
        protected = [name for name, table in self.tables.items() if table.key is None]
        if self.unit.is_row:
            return self[protected[0]].limit(**limits)._dataset  # checks the names; single rows have no limits
        rows = limits.get("rows")
        able = [name for name in protected if rows is None or self.limits.allows(name, rows)]
        changed = self[(able or protected)[0]].limit(**limits).limits
        if rows is not None:
            limits_of_tables = {
                name: rows if name in able else self.limits.rows_of(name) for name in protected
            }
            changed = replace(changed, of_tables=tuple(sorted(limits_of_tables.items())))
        return replace(self, limits=changed)

    def prepare(self) -> None:
        """Make the snapshot now that later questions use; by default the second question makes it.

        Guarantee
        ---------
        Nothing is released. The tables are read before anything is charged, and what is made of them stays
        inside the engine: so whoever calls this must not let others see how long it takes. The service calls
        it when it opens a version, before the dataset takes questions; then the time of no answer shows how
        much data there is.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> visits.prepare()
        >>> visits.remaining
        epsilon 1 of 1
        """
        self._engine.prepare()

    @plannable
    def suggest_limits(
        self, *, by: str | None = None, table: str | None = None, most: int = 1000
    ) -> Question[AnswerTable]:
        """Ask for private quantiles of how many rows each unit has; the release suggests limits.

        Guarantee
        ---------
        A plan like any other: it costs its ``epsilon`` for one unit. Each unit is one row of the question, so
        no limit on rows affects the answer.

        Parameters
        ----------
        by
            A column to group by later: the release then also shows how many of its values each unit has.
        table
            Whose rows are counted; the main table by default.
        most
            The largest number that Tacit looks for; larger numbers count as this one.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
        >>> release = visits.suggest_limits().plan(epsilon=0.1).release()
        >>> list(release.columns)
        ['rows_0.5', 'rows_0.9', 'rows_0.95', 'rows_0.99']
        """
        return SUGGEST_LIMITS.ask(self, by=by, table=table, most=most)

    @plannable
    def measure_cut(
        self, *, column: str | None = None, table: str | None = None, cap: int | None = None
    ) -> Question[AnswerTable]:
        """Ask for an estimate of the share of rows beyond the limit, or of values outside a column's bounds.

        Guarantee
        ---------
        A plan like any other: it costs its ``epsilon`` for one unit.

        Parameters
        ----------
        column
            Measure the values that the bounds of this column clip, among the rows that count; by default the
            rows of the table that the limit on rows drops.
        table
            Whose rows; the main table by default.
        cap
            How many rows of one unit Tacit looks at: ten times the limit by default. The noise grows with it.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(
        ...     tc.tables.example_visits(),
        ...     unit="patient_id",
        ...     limits={"rows": 2},
        ...     budget=tc.Budget(epsilon=9),
        ... )
        >>> release = visits.measure_cut().plan(epsilon=4).release()
        >>> 0 <= release.low <= release.value <= release.high <= 1
        True
        >>> visits = visits.noting(release)  # later captions repeat the estimate
        """
        return MEASURE_CUT.ask(self, column=column, table=table, cap=cap)

    def noting(self, release: Release[AnswerTable]) -> TableDataset:
        """Return the dataset with a release of `measure_cut` in the captions of later releases.

        It is post-processing: nothing is charged, and plans keep their cost and their hash.
        """
        from tacit.tables.questions._limit_advice import cut_note

        note = cut_note(self, release)
        others = tuple(one for one in self.noted if one.meaning != note.meaning)
        return replace(self, noted=(*others, note))

    def declaring(self, release: Release[AnswerTable]) -> TableDataset:
        """Return the dataset with the bounds declared that a release found, so that nobody pays again.

        The bounds are public once the release is. Of several groups, the declared range holds those of all.
        Bounds that were declared as numbers before can only become narrower.
        Plans that ask for these columns then have the declared bounds, and all of their cost for the answer.

        Guarantee
        ---------
        Nothing is read and nothing is charged: it is post-processing of the release.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(
        ...     tc.tables.example_visits(),
        ...     unit="patient_id",
        ...     limits={"rows": 1},
        ...     budget=tc.Budget(epsilon=9),
        ... )
        >>> question = visits.agg(age=tc.mean("age", bounds="auto"))
        >>> visits = visits.declaring(question.plan(epsilon=4).release())
        >>> low, high = visits.tables["data"].facts["age"].bounds
        >>> float(low) <= 10 < 80 <= float(high)
        True
        """
        from tacit.tables.questions._limit_advice import with_found_bounds

        return with_found_bounds(self, release)

    def public_facts(self) -> dict[str, JSON]:
        """Return everything that planning needs, as a JSON document: from it, `open_facts` opens the dataset.

        Guarantee: no row of a protected table is read. The document has the declared identity, columns,
        types, bounds, keys and limits, and the values of the columns of public tables, up to 10,000 each.

        Examples
        --------
        >>> import tacit as tc
        >>> visits = tc.protect(
        ...     "visits.parquet", unit="patient_id", bounds={"stay": (0, 30)}, budget=tc.Budget(epsilon=1)
        ... )
        >>> visits.public_facts()["tables"][0]["facts"]["stay"]
        {'kind': 'number', 'bounds': ['0', '30']}
        """
        from tacit.tables._public_facts import facts_document

        return facts_document(self)


def _size(table: Table) -> str:
    """Say what is public about a table: its number of columns, its key, and whether its rows are public."""
    if table.columns is None:
        return "its source is not available here"
    key = f", {' and '.join(table.unique)} unique" if table.unique else ""
    return f"{len(table.columns)} columns{key}" + (", public" if table.key is not None else "")
