"""Rows of a table as Python asks of them, rows in groups, and the complete question. All are immutable.

`Rows` has filters, columns, joins and samples. `GroupedRows` has totals over groups, and the aggregates that
make a question. `Query` is the complete question, whose cost ``plan`` states; nothing runs before
``plan().release()``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from tacit.algebra import (
    Column,
    How,
    JoinPublic,
    JoinUnits,
    Measure,
    Node,
    Project,
    Relation,
    TableQuestion,
    Where,
    as_number,
    bounds_of,
    of_each_unit,
    resolve,
    rows_per_unit,
    scans_of,
    scope,
    text_of,
    with_rows,
)
from tacit.core import AnswerTable, Fact, Limits, Question, Table, Unit
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.fixes import Choose, Code, Declare
from tacit.parameters import Choice, Instance
from tacit.tables.planning._steps import read_sample
from tacit.tables.questions._aggregates import AUTO, Aggregate, OnBounds, as_value_of_any_kind
from tacit.tables.questions._keys import (
    KeysGiven,
    Levels,
    MissingKeys,
    check_levels,
    cube_levels,
    from_public_tables,
    key_node,
    key_nodes,
    named_levels,
    read_group_keys,
    rollup_levels,
    typed_keys,
)
from tacit.tables.questions._limit_advice import refuse_automatic
from tacit.tables.questions._pandas_hints import PandasHints, question_hint
from tacit.tables.questions._python_expressions import Expr, as_node, as_value, check_name, names_needed
from tacit.tables.questions._question_kinds import TABLE
from tacit.tables.questions._workload_questions import WorkloadQuestions
from tacit.tables.reading._captions import in_words, rows_in_words, sample_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tacit.core import Goal, Plan
    from tacit.exact import Number
    from tacit.tables._dataset import TableDataset
    from tacit.tables.reading._postprocessing import Presentation


@dataclass(frozen=True, repr=False)
class Query(Question[AnswerTable]):
    """A complete question; ``plan`` states its cost."""

    #: Rewords a refusal for its author, where the question was not asked in Python.
    reworded: Callable[[TacitError], TacitError] | None = field(default=None, repr=False, compare=False)

    if not TYPE_CHECKING:  # for a type checker, a question has only what it has

        def __getattr__(self, name: str) -> Any:
            raise question_hint(self, name)

    def __hash__(self) -> int:
        return hash((self.dataset, self.question, self.post))

    @classmethod
    def of(cls, dataset: TableDataset, question: TableQuestion) -> Query:
        """Ask a dataset a question."""
        return cls(dataset, TABLE, {"question": question, "post": None})

    @property
    def question(self) -> TableQuestion:
        """What is asked."""
        return cast("TableQuestion", self.arguments["question"])

    @property
    def post(self) -> Presentation | None:
        """How the release is shown."""
        return cast("Presentation | None", self.arguments["post"])

    def shown(self, post: Presentation | None) -> Query:
        """Return the question whose release is shown in another way."""
        return replace(self, arguments={**self.arguments, "post": post})

    @property
    def words(self) -> str:
        """The question in words."""
        return in_words(self.question)

    def planned(self, goal: Goal) -> Plan[AnswerTable]:
        """Plan the question for a goal that was read; see `plan`."""
        try:
            return super().planned(goal)
        except TacitError as error:
            if self.reworded is None:
                raise
            refusal = self.reworded(error)
        raise refusal


@dataclass(frozen=True, slots=True, repr=False)
class GroupedRows(PandasHints):
    """Rows in groups."""

    rows: Rows
    by: tuple[tuple[str, Node], ...]
    keys: tuple[tuple[object, ...], ...] | None
    missing: bool = False
    levels: Levels = ()

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.by)
        keys = "selected privately" if self.keys is None else f"{len(self.keys):,} public"
        part = "" if self.rows.share is None else f", {sample_in_words(self.rows.share)}"
        totals = ", with totals" if self.levels else ""
        return (
            f"rows {rows_in_words(self.rows.relation)}{part}, in groups by {names} ({keys}){totals}\n"
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
        resolved = tuple((name, aggregate.resolved(facts)) for name, aggregate in aggregates.items())
        limits = self.rows.limits
        question = TableQuestion(
            self.rows.relation,
            self.by,
            self.keys,
            resolved,
            limits.groups,
            limits.per_group,
            self.missing,
            levels=self.levels,
            sample=self.rows.share,
        )
        check_levels(question)
        return Query.of(self.rows._dataset, question)


@dataclass(frozen=True, slots=True, repr=False)
class Rows(PandasHints, WorkloadQuestions):
    """Rows of a dataset, each owned by one unit."""

    _dataset: TableDataset
    relation: Relation
    limits: Limits
    #: The probability, in 2^-32, with which a unit is in the sample that is asked; None for all units.
    share: int | None = None

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self._dataset.unit

    @property
    def tables(self) -> Mapping[str, Table]:
        """The declared tables."""
        return self._dataset.tables

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, which are public; empty if the source is not available here."""
        return tuple(scope(self.relation))

    def __repr__(self) -> str:
        part = "" if self.share is None else f", {sample_in_words(self.share)}"
        names = ", ".join(self.columns) or "not known here"
        return (
            f"rows {rows_in_words(self.relation)}{part}; columns: {names}\n"
            "not a question yet: add .agg(n=tc.count()), or .group_by(...).agg(...)"
        )

    def _over(self, relation: Relation) -> Rows:
        """Return the rows of another relation of the same dataset, with the same limits."""
        return replace(self, relation=relation)

    def where(self, condition: Expr | str) -> Rows:
        """Keep the rows for which a condition is true: an expression, or SQL text.

        Limits on rows apply before this condition, to the declared table; limits on groups apply after it.
        """
        node = resolve(_condition(condition), scope(self.relation), "boolean")
        return self._over(Where(self.relation, node))

    def sample(self, share: Number) -> Rows:
        """Read only a secret random sample of the units: each unit is kept with this probability.

        A unit is kept with all its rows, or not at all. Counts and sums are those of the sample; divide them
        by the share to estimate the numbers of all units. Intervals cover the noise. They do not cover the
        error that comes from reading only a sample. A new plan draws a new sample. The same plan again is
        free and gives the same answer.

        Guarantee: the plan costs less than the same mechanisms without a sample (amplification by sampling).
        The adjacency must be add/remove.
        """
        if self.share is not None:
            raise TacitError(
                "not-allowed",
                "these rows are a sample already",
                fix="call sample once, with the smaller share",
            )
        return replace(self, share=read_sample(share))

    def with_columns(self, **columns: Expr | str | float) -> Rows:
        """Add or redefine columns, row by row; text is SQL. A redefined column loses its declared facts."""
        facts = scope(self.relation)
        if facts.open:
            raise names_needed("with_columns")
        new_columns = {name: resolve(_formula(e), facts) for name, e in columns.items()}
        names_in_lower_case = {c.lower(): c for c in facts}
        for name in new_columns:
            check_name(name)
            if names_in_lower_case.get(name.lower(), name) != name:
                raise bad_parameter(
                    "a column",
                    "different from all other names by more than upper and lower case",
                    name,
                    fix=f"use a name such as {name}_2",
                )
        other_columns = tuple((c, Column(c, facts[c].kind)) for c in facts if c not in new_columns)
        return self._over(Project(self.relation, (*other_columns, *new_columns.items())))

    def per_unit(self, by: Sequence[str] = (), **measures: Aggregate) -> Rows:
        """Aggregate each unit's own rows first.

        The result has one row for each unit (and for each value of ``by`` among its rows).

        Examples
        --------
        ``visits.per_unit(n=tc.count(), longest=tc.max("length_of_stay")).agg(often=tc.mean("n"))``
        """
        if self.unit.is_row:
            raise TacitError(
                "not-allowed",
                "per_unit needs a unit that can have several rows",
                why="here each unit is a single row, so there is nothing to aggregate within it",
                fix=Declare("unit", "patient_id"),
            )
        facts = scope(self.relation)
        groups = tuple((name, key_node(Column(name), facts, None)) for name in by)
        unit_measures = tuple(self.measure(name, aggregate) for name, aggregate in measures.items())
        return self._over(of_each_unit(self.relation, groups, unit_measures))

    def measure(self, name: str, aggregate: Aggregate) -> Measure:
        """Read an aggregate within a unit: exact, and simple enough to stay a function of the unit's rows."""
        check_name(name)
        function = aggregate.within_unit
        if not function:
            raise TacitError(
                "not-allowed",
                f"{aggregate.word} is not available within a unit",
                why="within a unit, Tacit computes only simple exact numbers",
                fix=Choose(("count", "sum", "mean", "min", "max", "count_distinct"), given=aggregate.word),
            )
        facts, max_rows = scope(self.relation), rows_per_unit(self.relation)
        row_bounds = None if max_rows is None else (Fraction(0), Fraction(max_rows))
        if aggregate.argument is None:
            return Measure(name, "count", None, row_bounds)
        if not isinstance(aggregate, OnBounds):
            return Measure(name, function, as_value_of_any_kind(aggregate.argument, facts), row_bounds)
        node = resolve(as_number(aggregate.argument, facts), facts, "number")
        if aggregate.bounds == AUTO or aggregate.cut is not None:
            raise TacitError(
                "not-allowed",
                "bounds are not found within a unit",
                why="numbers within a unit are exact; what is released of them is clipped",
                fix=Code(f'per_unit({name}=...).agg(answer=tc.mean("{name}", bounds="auto"))'),
            )
        bounds = aggregate.bounds or bounds_of(node, facts)
        if function == "sum" and bounds is not None and max_rows is None:
            raise TacitError(
                "missing-limit",
                "a sum within a unit needs a limit on its rows",
                fix=Declare("limits", 10, column="rows"),
            )
        return Measure(name, function, node, bounds)

    def join(
        self, other: Rows | str, on: str | Expr | None = None, *, how: How = "inner", rows: int | None = None
    ) -> Rows:
        """Join rows of the same unit, or look up a public table by its key.

        Parameters
        ----------
        other
            Rows of another protected table of this dataset (joined on the unit), or the name of a public
            table.
        on
            For a public table: the column or expression that holds the key; by default the column of that
            name.
        how
            ``inner`` or ``left``.
        rows
            For protected tables: the most rows of a unit after the join. Without it the two limits multiply.
        """
        Choice(("inner", "left")).read("how", how)
        if isinstance(other, str):
            return self._look_up(other, on, how)
        if rows is not None:
            rows = count("rows", rows, zero=False)
        if other.share is not None:
            raise TacitError(
                "not-allowed",
                "a sample applies to the whole question, so the table that is joined cannot be a sample",
                why="a unit outside the sample must not change the answer at all",
                fix="join the whole table, then draw the sample of the result",
            )
        if other._dataset is not self._dataset or self.unit.is_row:
            raise TacitError(
                "not-allowed",
                "only protected tables of one dataset with a unit column can be joined",
                why="rows are joined on the unit, so that each joined row still belongs to one unit",
                fix=Code('tc.protect({"visits": ..., "patients": ...}, unit="patient_id", ...)'),
            )
        ours, theirs = scope(self.relation), scope(other.relation)
        if ours.open or theirs.open:
            raise names_needed("join")
        right = other.relation
        same = {c.lower() for c in ours}
        owner = self.unit.columns
        joined_columns = tuple((c, Column(c, theirs[c].kind)) for c in theirs if c not in owner)
        clash = [c for c, _ in joined_columns if c.lower() in same]
        if clash:
            raise TacitError(
                "not-allowed",
                f"both tables have a column {clash[0]!r}",
                why="a name must mean one column",
                fix=Code(f'other.select(..., {clash[0]}_2=tc.col("{clash[0]}"))'),
            )
        joined = JoinUnits(self.relation, Project(right, joined_columns), how, rows or self.limits.joined)
        return self._over(joined)

    def _look_up(self, name: str, on: str | Expr | None, how: How) -> Rows:
        table = self.tables.get(name)
        if table is None or table.key is None:
            raise TacitError(
                "unknown-table",
                f"there is no public table {name!r}",
                why="a public table is declared with the column that is unique in it",
                fix=Declare("public", (f"{name}.csv", "key_column"), column=name),
            )
        if table.columns is None:
            raise names_needed("a public table")
        facts = scope(self.relation)
        key = table.key
        kind = table.facts.get(key, Fact()).kind
        node = key_node(as_node(on if on is not None else key), facts, kind)
        names_in_lower_case = {c.lower() for c in facts}
        brought = tuple((c, c) for c in table.columns if c != key and c.lower() not in names_in_lower_case)
        return self._over(JoinPublic(self.relation, table, node, brought, how))

    def select(self, *names: str, **expressions: Expr | str) -> Rows:
        """Keep only these columns, some of them under other names or computed."""
        facts = scope(self.relation)
        selected = tuple((n, resolve(Column(n), facts)) for n in names)
        new = tuple((n, resolve(_formula(e), facts)) for n, e in expressions.items())
        for name, _ in new:
            check_name(name)
        return self._over(Project(self.relation, (*selected, *new)))

    def limit(self, **limits: int | None) -> Rows:
        """Change the limits for this question: ``rows``, ``groups``, ``per_group``, ``joined``.

        ``rows`` concerns the tables that are read so far, before WHERE. Every limit is private, because the
        noise grows with it. If the curator chose the limit on rows, a question can only lower it.

        Examples
        --------
        ``visits.limit(rows=3, groups=2).group_by("hospital").agg(n=tc.count())``
        """
        refuse_automatic(limits)
        if "pairs" in limits:
            raise TacitError(
                "not-allowed",
                "the limit on pairs belongs to the dataset",
                why="it bounds the work of every question, so a question cannot change it",
                fix=Declare("limits", 10_000, column="pairs"),
            )
        changed = self.limits.but(**limits)
        if self.unit.is_row:
            return self  # single rows have no limits
        rows = changed.rows if "rows" in limits else None
        if "rows" in limits and rows is None:
            raise TacitError(
                "not-allowed",
                "a question cannot remove the limit on rows",
                why="without it, nothing bounds how much one unit can contribute",
                fix="a number, such as 20",
            )
        relation = self.relation if rows is None else self._with_rows(rows)
        return replace(self, relation=relation, limits=changed)

    def _with_rows(self, rows: int) -> Relation:
        """Return the same relation with another limit on rows, or refuse it."""
        declared = self._dataset.limits
        scans = [(scan.table.name, scan.rows) for scan in scans_of(self.relation)]
        limited = [t for t, own in scans if own is not None or declared.rows_of(t) is None]
        for table in limited:
            if not declared.allows(table, rows):
                raise TacitError(
                    "not-allowed",
                    f"at most {declared.rows_of(table):,} rows of one {self.unit.noun} count in {table!r}, "
                    f"and the question asks for {rows:,}",
                    why="the curator of the dataset chose this limit, and a question can only lower it",
                    fix=f"a limit of at most {declared.rows_of(table):,} rows",
                )
        if not limited:
            raise TacitError(
                "not-allowed",
                "a limit on rows has no effect here",
                why="the tables are read without a limit, because each unit has one row after per_unit",
                fix="limit the rows before per_unit, or remove the limit",
            )
        return with_rows(self.relation, rows, frozenset(limited))

    def group_by(
        self,
        *by: str | Expr,
        keys: KeysGiven = None,
        missing: MissingKeys = "drop",
        **expressions: Expr | str,
    ) -> GroupedRows:
        """Group by columns or expressions.

        Parameters
        ----------
        by
            Columns; ``name=expression`` groups by an expression.
        keys
            The public keys: a list (one column), lists by column, a list of tuples (several columns). In
            place of a list, the name of a public table (the values of its key) or ``"table.column"``; it is
            read now, since nothing in it is private. By default those declared with the dataset; where there
            are none, keys are selected privately, which needs ``delta``. A key None stands for the rows whose
            value is missing.
        missing
            What happens to rows whose value is missing. ``"drop"`` drops them, and the caption says so;
            ``"group"`` makes them one more group, whose key is None.
        """
        keys_by_name = [(_name_of(b), as_node(b)) for b in by] + [
            (n, _formula(e)) for n, e in expressions.items()
        ]
        if not keys_by_name:
            raise bad_parameter(
                "group_by", "given at least one column", (), fix=Code('.group_by("hospital")')
            )
        Choice(("drop", "group")).read("missing", missing)
        return self.grouped(keys_by_name, keys, missing=missing == "group")

    def grouped(
        self, by: Sequence[tuple[str, Node]], keys: KeysGiven, *, missing: bool = False
    ) -> GroupedRows:
        """Group by expressions with their names; see `group_by`."""
        facts = scope(self.relation)
        public = read_group_keys(by, from_public_tables(keys, self._dataset), facts, missing=missing)
        nodes = key_nodes(by, public, facts)
        return GroupedRows(self, nodes, typed_keys(nodes, public), missing and public is None)

    def agg(self, **aggregates: Aggregate) -> Query:
        """Aggregate all rows into one line."""
        return GroupedRows(self, (), None).agg(**aggregates)

    def _counted(self) -> Rows:
        return self


def _condition(condition: Expr | str) -> Node:
    if isinstance(condition, str):
        from tacit.tables.sql import parse_expression

        return parse_expression(condition)
    return Instance(Expr, 'tc.col("age") >= 65', "a condition or SQL text").read("where", condition).node


def _formula(formula: Expr | str | float) -> Node:
    if isinstance(formula, str):
        from tacit.tables.sql import parse_expression

        return parse_expression(formula)
    return as_value(formula)


def _name_of(by: str | Expr) -> str:
    if isinstance(by, str):
        return by
    node = by.node
    return node.name if isinstance(node, Column) else text_of(node)
