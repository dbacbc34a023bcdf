"""Units looked for in a subquery: ``WHERE patient_id IN (SELECT patient_id FROM ... WHERE ...)``.

The rows of a unit are kept or dropped by the unit's own rows in the subquery. In the algebra that is a left
join on the unit with one line for each unit of the subquery (`PerUnit`), so the invariant of relations holds
and no unit gets more rows (docs/proofs/tables.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.algebra import JoinUnits, PerUnit, Project, lit, scope
from tacit.errors import TacitError
from tacit.fixes import Declare
from tacit.tables.sql._joins import on_unit
from tacit.tables.sql._names import FromClause, sql_name
from tacit.tables.sql._units import unit_columns

if TYPE_CHECKING:
    from tacit.tables._rows import Rows


@dataclass(frozen=True, slots=True)
class AskedMember:
    """One IN of a WHERE clause: the columns on its left, its subquery, and the column that marks members."""

    columns: tuple[str, ...]
    select: exp.Expr
    marker: str


def asked_members(select: exp.Expr, source: FromClause) -> list[AskedMember]:
    """Find the subqueries of IN and EXISTS in WHERE, and put a column that marks members in their place."""
    found: list[AskedMember] = []
    for node in list(select.args["where"].find_all(exp.In, exp.Exists)):
        inside = node.find_ancestor(exp.In, exp.Exists, exp.Select)
        if inside is not select:
            continue
        asked = _as_in(node, source) if isinstance(node, exp.Exists) else node
        query = asked.args.get("query")
        if query is None:
            continue
        written = asked.this.expressions if isinstance(asked.this, exp.Tuple) else [_plain(asked.this)]
        columns = [column for column in written if isinstance(column, exp.Column)]
        if len(columns) < len(written):
            raise _not_the_unit(source.rows, query)
        marker = _free_name(source, len(found))
        inner = query.this if isinstance(query, exp.Subquery) else query
        names = tuple(source.find(str(column.table), column.name) for column in columns)
        found.append(AskedMember(names, inner, marker))
        missing = exp.Is(this=exp.column(marker, quoted=True), expression=exp.Null())
        node.replace(exp.Paren(this=exp.Not(this=missing)))
    return found


def with_members(source: FromClause, asked: AskedMember, members: Rows) -> FromClause:
    """Mark the rows of the units that a subquery returns."""
    rows, there = source.rows, list(scope(members.relation))
    if scope(rows.relation).open or scope(members.relation).open:
        raise TacitError(
            "unknown-column",
            "a subquery in WHERE needs the names of the tables' columns, but a source is not available",
            why="names are public facts; they are read from the header or declared",
            fix=Declare("types", "text", column="patient_id"),
        )
    if len(there) != len(asked.columns) or not on_unit(rows, members, list(asked.columns), there):
        raise _not_the_unit(rows, asked.select)
    one_line = Project(PerUnit(members.relation, (), ()), ((asked.marker, lit(value=True)),))
    joined = replace(rows, relation=JoinUnits(rows.relation, one_line, "left", None))
    facts = scope(joined.relation)
    return replace(source, rows=joined, names=frozenset(facts), is_open=facts.open)


def _plain(node: exp.Expr) -> exp.Expr:
    return _plain(node.this) if isinstance(node, exp.Paren) else node


def _free_name(source: FromClause, n: int) -> str:
    taken = {column.lower() for column in source.names}
    return next(name for i in range(n, n + len(taken) + 1) if (name := f"in subquery {i + 1}") not in taken)


def _as_in(node: exp.Expr, source: FromClause) -> exp.Expr:
    """Read EXISTS (SELECT ... FROM b WHERE b.unit = a.unit AND ...) as IN."""
    inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    where, clause = inner.args.get("where"), inner.args.get("from_")
    if where is None or clause is None:
        raise _not_the_unit(source.rows, inner)
    own = str(clause.this.alias_or_name).lower()
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    pairs, rest = [], []
    for part in parts:
        sides = [s for s in (part.this, part.args.get("expression")) if isinstance(s, exp.Column)]
        tables = [side.table.lower() for side in sides]
        others = source.aliases - {own}
        if isinstance(part, exp.EQ) and len(sides) == 2 and own in tables and others & set(tables):
            pairs.append(sides if tables[1] == own else sides[::-1])
        else:
            rest.append(part)
    if not pairs:
        raise _not_the_unit(source.rows, inner)
    select = inner.copy()
    select.set("expressions", [second.copy() for _, second in pairs])
    select.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    outer = [first.copy() for first, _ in pairs]
    return exp.In(this=exp.Tuple(expressions=outer), query=exp.Subquery(this=select))


def _rewrite(rows: Rows, select: exp.Expr) -> str:
    """Write the condition that looks for the unit in the same subquery."""
    unit = ", ".join(map(sql_name, unit_columns(rows)))
    left = f"({unit})" if "," in unit else unit
    inner = select.this if isinstance(select, exp.Subquery) else select
    same = exp.Select(expressions=[exp.column(c) for c in unit_columns(rows)])
    for part in ("from_", "where"):
        if inner.args.get(part) is not None:
            same.set(part, inner.args[part].copy())
    return f"{left} IN ({same.sql(dialect='duckdb')})"


def _not_the_unit(rows: Rows, select: exp.Expr) -> TacitError:
    return TacitError(
        "not-allowed",
        "a subquery in WHERE must select the columns that name the unit",
        why="otherwise the rows of one person could decide which rows of others count",
        fix=_rewrite(rows, select) if unit_columns(rows) else Declare("unit", "patient_id"),
    )
