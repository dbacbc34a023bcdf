"""The fluent way to ask.

Rows, filters, groups, aggregates, plan. Immutable; nothing runs before ``plan().release()``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.core.facts import Fact, Kind, Limits, Table
from tacit.errors import TacitError, bad_parameter
from tacit.exact import count
from tacit.tables._expressions import Column, Node, text_of
from tacit.tables._fluent import Expr, as_node, as_value
from tacit.tables._kinds import Scope, bounds_of, kind_of, resolve
from tacit.tables.aggregates import Asked
from tacit.tables.algebra import (
    Aggregate,
    Bounds,
    How,
    JoinPublic,
    JoinUnits,
    Measure,
    PerUnit,
    Project,
    Question,
    Relation,
    Where,
    rows_per_unit,
    scope,
)
from tacit.tables.group_keys import (
    KeysGiven,
    check_kinds,
    from_public_tables,
    key_node,
    kinds_of_keys,
    read_group_keys,
)
from tacit.tables.planning import Home, Target, make_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core.plan import Plan, Post
    from tacit.exact import Number

__all__ = ["Answer", "Grouped", "Rows", "check_name"]

_MEASURES = {"count", "sum", "mean", "min", "max", "count_distinct", "quantile"}


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a dataset, each owned by one unit."""

    home: Home
    relation: Relation
    limits: Limits
    tables: Mapping[str, Table]

    def where(self, condition: Expr | str) -> Rows:
        """Keep the rows for which a condition is true: an expression, or SQL text.

        Row limits were applied before, to the declared table; groups are limited after.
        """
        node = resolve(_condition(condition), scope(self.relation), "boolean")
        return replace(self, relation=Where(self.relation, node))

    def with_columns(self, **columns: Expr | str | float) -> Rows:
        """Add or redefine columns, row by row; text is SQL. Facts of a redefined column are gone."""
        facts = scope(self.relation)
        if facts.open:
            raise _names_needed("with_columns")
        made = {name: resolve(_formula(e), facts) for name, e in columns.items()}
        taken = {c.lower(): c for c in facts}
        for name in made:
            check_name(name)
            if taken.get(name.lower(), name) != name:
                raise bad_parameter(
                    "a column", "different from others in more than case", name, fix=f"{name}_2"
                )
        kept = tuple((c, Column(c, facts[c].kind)) for c in facts if c not in made)
        return replace(self, relation=Project(self.relation, (*kept, *made.items())))

    def per_unit(self, by: Sequence[str] = (), **measures: Asked) -> Rows:
        """Aggregate each unit's own rows first.

        One row per unit (and per value of ``by`` among its rows), owned by it.

        Examples
        --------
        ``visits.per_unit(n=tc.count(), longest=tc.max("length_of_stay")).agg(often=tc.mean("n"))``
        """
        if self.home.identity.unit.is_row:
            raise TacitError(
                "not-allowed",
                "single rows have nothing to aggregate",
                why="the unit is the row",
                fix='unit="patient_id"',
            )
        facts = scope(self.relation)
        groups = tuple((name, key_node(Column(name), facts, None)) for name in by)
        made = tuple(self.measure(name, asked) for name, asked in measures.items())
        return replace(self, relation=PerUnit(self.relation, groups, made))

    def measure(self, name: str, asked: Asked) -> Measure:
        """Read an aggregate within a unit: exact, and simple enough to stay a function of the unit's rows."""
        check_name(name)
        facts = scope(self.relation)
        function = asked.function
        if function == "quantile" and asked.levels in ((0.01,), (0.99,)):
            function = "min" if asked.levels == (0.01,) else "max"
        if function not in _MEASURES - {"quantile"}:
            raise TacitError(
                "not-allowed",
                f"{asked.function} is not known within a unit",
                why="within a unit numbers are exact and simple",
                fix="tc.count(), tc.sum, tc.mean, tc.min, tc.max or tc.count_distinct",
            )
        if asked.argument is None:
            most = rows_per_unit(self.relation)
            return Measure(name, "count", None, None if most is None else _range(0, most))
        want: Kind | None = None if function in {"count", "count_distinct"} else "number"
        node = resolve(asked.argument, facts, want)
        node = resolve(node, facts, "text") if kind_of(node) is None else node
        own = asked.bounds or bounds_of(node, facts)
        if function in {"count", "count_distinct"}:
            most = rows_per_unit(self.relation)
            return Measure(name, function, node, None if most is None else _range(0, most))
        if function == "sum" and own is not None:
            most = rows_per_unit(self.relation)
            if most is None:
                raise TacitError(
                    "missing-limit",
                    "a sum within a unit needs a limit on its rows",
                    fix='limits={"rows": 10}',
                )
            return Measure(name, "sum", node, own)
        return Measure(name, function, node, own)

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
        if how not in {"inner", "left"}:
            raise bad_parameter("how", "inner or left", how, fix='how="left"')
        if isinstance(other, str):
            return self._look_up(other, on, how)
        if rows is not None:
            rows = count("rows", rows, zero=False)
        if other.home.engine is not self.home.engine or self.home.identity.unit.is_row:
            raise TacitError(
                "not-allowed",
                "only protected tables of one dataset with a unit column can be joined",
                why="rows are joined on the unit, so that a joined row still belongs to one of them",
                fix='tc.protect({"visits": ..., "patients": ...}, unit="patient_id", ...)',
            )
        ours, theirs = scope(self.relation), scope(other.relation)
        if ours.open or theirs.open:
            raise _names_needed("join")
        right = other.relation
        same = {c.lower() for c in ours}
        unit = self.home.identity.unit.column
        kept = tuple((c, Column(c, theirs[c].kind)) for c in theirs if c != unit)
        clash = [c for c, _ in kept if c.lower() in same]
        if clash:
            raise TacitError(
                "not-allowed",
                f"both tables have a column {clash[0]!r}",
                why="a name must mean one column",
                fix=f'other.select(..., {clash[0]}_2=tc.col("{clash[0]}"))',
            )
        joined = JoinUnits(self.relation, Project(right, kept), how, rows or self.limits.joined)
        return replace(self, relation=joined)

    def _look_up(self, name: str, on: str | Expr | None, how: How) -> Rows:
        table = self.tables.get(name)
        if table is None or not table.public:
            raise TacitError(
                "unknown-table",
                f"there is no public table {name!r}",
                why="a public table is declared with the column that is unique in it",
                fix=f'tc.protect(..., public={{"{name}": ("{name}.csv", "key_column")}})',
            )
        if table.columns is None:
            raise _names_needed("a public table")
        facts = scope(self.relation)
        key = table.key or ""
        kind = table.facts.get(key, Fact()).kind
        node = key_node(as_node(on if on is not None else key), facts, kind)
        taken = {c.lower() for c in facts}
        brought = tuple((c, c) for c in table.columns if c != key and c.lower() not in taken)
        return replace(self, relation=JoinPublic(self.relation, table, node, brought, how))

    def select(self, *names: str, **made: Expr | str) -> Rows:
        """Keep only these columns, some of them under other names or computed."""
        facts = scope(self.relation)
        kept = tuple((n, resolve(Column(n), facts)) for n in names)
        new = tuple((n, resolve(_formula(e), facts)) for n, e in made.items())
        for name, _ in new:
            check_name(name)
        return replace(self, relation=Project(self.relation, (*kept, *new)))

    def limit(self, **limits: int | None) -> Rows:
        """Change the limits on groups and on rows per group for this question."""
        if "rows" in limits:
            raise TacitError(
                "not-allowed",
                "row limits belong to the declared table",
                why="they apply before WHERE, so that every question of a dataset sees the same rows",
                fix='tc.protect(..., limits={"rows": 10})',
            )
        return replace(self, limits=self.limits.but(**limits))

    def group_by(self, *by: str | Expr, keys: KeysGiven = None, **named: Expr | str) -> Grouped:
        """Group by columns or expressions.

        Parameters
        ----------
        by
            Columns; ``name=expression`` groups by an expression.
        keys
            The public keys: a list (one column), lists by column, a list of tuples (several columns). In
            place of a list, the name of a public table (the values of its key) or ``"table.column"``; it is
            read now, since nothing in it is private. By default those declared with the dataset; where there
            are none, keys are selected privately, which needs ``delta``.
        """
        given = [(_name_of(b), as_node(b)) for b in by] + [(n, _formula(e)) for n, e in named.items()]
        if not given:
            raise bad_parameter("group_by", "given at least one column", (), fix='.group_by("hospital")')
        facts = scope(self.relation)
        public = read_group_keys(given, from_public_tables(keys, self), facts)
        kinds = kinds_of_keys(len(given), public)
        nodes = tuple(
            (name, key_node(node, facts, kind)) for (name, node), kind in zip(given, kinds, strict=True)
        )
        check_kinds(nodes, public)
        return Grouped(self, nodes, public)

    def agg(self, **aggregates: Asked) -> Answer:
        """Aggregate all rows into one line."""
        return Grouped(self, (), None).agg(**aggregates)


@dataclass(frozen=True, slots=True)
class Grouped:
    """Rows in groups."""

    rows: Rows
    by: tuple[tuple[str, Node], ...]
    keys: tuple[tuple[object, ...], ...] | None

    def agg(self, **aggregates: Asked) -> Answer:
        """Name the aggregates of each group: ``.agg(n=tc.count(), stay=tc.mean("length_of_stay"))``."""
        if not aggregates:
            raise bad_parameter("agg", "given at least one aggregate", {}, fix=".agg(n=tc.count())")
        facts = scope(self.rows.relation)
        made = []
        for name, asked in aggregates.items():
            if not isinstance(asked, Asked):
                raise bad_parameter(name, "an aggregate", asked, fix=f"{name}=tc.count()")
            made.append(_aggregate(name, asked, facts))
        limits = self.rows.limits
        if self.rows.home.identity.unit.is_row:
            limits = Limits(rows=None)  # a row is one row in one group; there is nothing to limit
        return Answer(
            self.rows.home,
            Question(
                self.rows.relation,
                self.by,
                self.keys,
                tuple(made),
                limits.groups,
                limits.per_group,
            ),
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete question; ``plan`` prices it."""

    home: Home
    question: Question
    post: Post | None = None

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        within: Number | None = None,
        confidence: Number = 0.95,
        size: int | None = None,
        weights: Mapping[str, Number] | None = None,
    ) -> Plan:
        """Price the question. Touches no data.

        Parameters
        ----------
        epsilon, delta
            The total for this plan. Without ``delta`` the plan is pure: Laplace noise, public keys only.
        rho
            Instead of epsilon: the total in zCDP (Gaussian noise).
        within, confidence
            Instead of epsilon: solve for the smallest epsilon with every column within this error at this
            confidence.
        size
            A public guess of the rows per group; used for planning only.
        weights
            How much of the budget each aggregate gets, relative to the others.
        """
        target = Target(epsilon, delta, rho, within, confidence, size, weights)
        return make_plan(self.home, self.question, target, self.post)


def _range(low: int, high: int) -> Bounds:
    return Fraction(low), Fraction(high)


def _condition(condition: Expr | str) -> Node:
    if isinstance(condition, str):
        from tacit.tables.sql import parse_expression

        return parse_expression(condition)
    if isinstance(condition, Expr):
        return condition.node
    raise bad_parameter("where", "a condition or SQL text", condition, fix='tc.col("age") >= 65')


def _formula(given: Expr | str | float) -> Node:
    if isinstance(given, str):
        from tacit.tables.sql import parse_expression

        return parse_expression(given)
    return as_value(given)


def _name_of(by: str | Expr) -> str:
    if isinstance(by, str):
        return by
    node = by.node
    return node.name if isinstance(node, Column) else text_of(node)


def check_name(name: str) -> None:
    """Refuse names that the emitted SQL keeps for itself."""
    if name.lower().startswith("tacit_") or "\x00" in name or not name:
        raise bad_parameter(
            "a column's name", "plain text that does not start with tacit_", name, fix="another name"
        )


def _names_needed(what: str) -> TacitError:
    return TacitError(
        "unknown-column",
        f"{what} needs the names of the table's columns, and its source is not at hand",
        why="names are public facts; they are read from the header or declared",
        fix='tc.protect(..., types={"patient_id": "text", "length_of_stay": "number"})',
    )


_NUMERIC = {"sum", "mean", "variance", "std", "quantile", "quantiles", "histogram"}


def _aggregate(name: str, asked: Asked, facts: Scope) -> Aggregate:
    check_name(name)
    if asked.argument is None:
        return Aggregate(name, asked.function)
    if asked.function in _NUMERIC:
        want: Kind | None = "number"
    elif asked.function == "most_common":
        want = kinds_of_keys(1, ((asked.options[0],),))[0] or "text"
    else:
        want = kind_of(resolve(asked.argument, facts)) or "text"
    node = resolve(asked.argument, facts, want)
    bounds = asked.bounds
    if bounds is None and asked.function in _NUMERIC - {"histogram"}:
        found = bounds_of(node, facts)
        bounds = found if found is not None and found[0] < found[1] else None
    return Aggregate(name, asked.function, node, bounds, asked.options, asked.levels)
