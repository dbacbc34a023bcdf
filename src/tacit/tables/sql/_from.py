"""FROM, WITH and subqueries in table SQL: rows that each belong to one unit, no aggregates across units."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.algebra import Column, Node, Project, Scope, kind_of, of_each_unit, resolve, scope
from tacit.errors import TacitError
from tacit.fixes import Declare
from tacit.tables._python_expressions import Expr
from tacit.tables.sql._allowed import only, refuse
from tacit.tables.sql._clauses import (
    alias_of,
    distinct_names,
    filtered,
    groups_of,
    having_of,
    name_of,
    unaliased,
)
from tacit.tables.sql._expressions import read_expression
from tacit.tables.sql._joins import join_public, join_units, kind_of_join, move_join_conditions
from tacit.tables.sql._members import asked_members, with_members
from tacit.tables.sql._names import FromClause, TablesInReach, declared_name, sql_name
from tacit.tables.sql._public_values import put_public_values
from tacit.tables.sql._select_list import SelectList
from tacit.tables.sql._units import names_whole_unit, unit_columns, unit_noun

if TYPE_CHECKING:
    from tacit.core import Kind
    from tacit.tables._rows import Rows


def with_clauses(select: exp.Expr, reach: TablesInReach) -> TablesInReach:
    """Return the tables in reach after the WITH clauses of a SELECT."""
    clause = select.args.get("with_")
    if clause is None:
        return reach
    only(clause, "expressions")
    named = dict(reach.named)
    for part in clause.expressions:
        only(part, "this", "alias")
        if part.args["alias"].args.get("columns"):
            raise refuse(
                part,
                "columns must get their names inside the WITH clause",
                "WITH t AS (SELECT x AS a FROM ...)",
            )
        named[part.alias] = _subquery(part.this, TablesInReach(reach.dataset, dict(named)))
    return TablesInReach(reach.dataset, named)


def from_clause(select: exp.Expr, reach: TablesInReach) -> FromClause:
    """Read FROM and its joins."""
    clause = select.args.get("from_")
    if clause is None:
        raise refuse(select, "a question needs FROM", f"FROM {sql_name(reach.dataset.main)}")
    only(clause, "this")
    put_public_values(select, reach)
    source = FromClause.of(*_table(clause.this, reach, sample=True))
    if select.args.get("joins"):
        move_join_conditions(select)
        for join in select.args["joins"]:
            source = _joined(source, join, reach)
    return source


def selected_rows(select: exp.Expr, source: FromClause, reach: TablesInReach) -> Rows:
    """Apply WHERE, in which a unit may be looked for in a subquery."""
    if select.args.get("where") is None:
        return source.rows
    asked = asked_members(select, source)
    if not asked:
        return filtered(select, source.rows, source.find)
    before = source.rows
    for member in asked:
        source = with_members(source, member, _subquery(member.select, reach))
    rows = filtered(select, source.rows, source.find)
    facts = scope(before.relation)
    kept = tuple((c, Column(c, facts[c].kind)) for c in facts)
    return replace(rows, relation=Project(rows.relation, kept))


def _table(node: exp.Expr, reach: TablesInReach, *, sample: bool = False) -> tuple[Rows, str]:
    """Read one table or subquery of FROM; return its rows and its alias."""
    match node:
        case exp.Table(args={"sample": exp.TableSample() as drawn}) if sample:
            whole = node.copy()
            whole.set("sample", None)
            rows, alias = _table(whole, reach)
            return rows.sample(_share(drawn)), alias
        case exp.Table():
            only(node, "this", "alias", "db", "catalog")
            name = declared_name(node, reach)
            if name is None:
                written = exp.Table(this=node.this, db=node.args.get("db")).sql(dialect="duckdb")[:60]
                main = sql_name(reach.dataset.main)
                raise refuse(node, f"{written!r} is not a declared table", f"FROM {main}")
            return reach.rows(name), node.alias or node.name
        case exp.Subquery():
            only(node, "this", "alias")
            return _subquery(node.this, reach), node.alias or "subquery"
        case _:
            raise refuse(node)


def _share(drawn: exp.TableSample) -> Fraction:
    """Read TABLESAMPLE p PERCENT; whatever the method, units are drawn, each on its own."""
    only(drawn, "method", "percent")
    percent = drawn.args.get("percent")
    if not isinstance(percent, exp.Literal) or percent.is_string:
        raise refuse(drawn, "TABLESAMPLE takes a percentage", "TABLESAMPLE 5 PERCENT")
    return Fraction(str(percent.this)) / 100


def _joined(source: FromClause, join: exp.Expr, reach: TablesInReach) -> FromClause:
    how = kind_of_join(join, source.rows)
    target = join.this
    if isinstance(target, exp.Table) and (name := declared_name(target, reach)):
        only(target, "this", "alias", "db", "catalog")
        public = reach.public_table(name)
        if public is not None:
            return join_public(source, join, public, target.alias or target.name, how)
    rows, alias = _table(target, reach)
    return join_units(source, join, rows, alias, how)


def _subquery(select: exp.Expr, reach: TablesInReach) -> Rows:
    """Read a subquery: rows, or rows aggregated within each unit."""
    if not isinstance(select, exp.Select):
        raise refuse(select, "a subquery must be one SELECT")
    if select.find(exp.TableSample):
        raise refuse(
            select,
            "TABLESAMPLE is allowed only in the main FROM clause, not in a subquery",
            f"FROM {sql_name(reach.dataset.main)} TABLESAMPLE 5 PERCENT",
        )
    only(select, "expressions", "from_", "where", "group", "having", "joins", "with_", "distinct")
    reach = with_clauses(select, reach)
    source = from_clause(select, reach)
    find = source.find
    rows = selected_rows(select, source, reach)
    by = groups_of(select, find)
    distinct = select.args.get("distinct")
    if distinct is not None:
        only(distinct)
        if by:
            raise refuse(select, "DISTINCT has no effect together with GROUP BY", "use GROUP BY alone")
        by = [(name_of(e, i), read_expression(unaliased(e), find)) for i, e in enumerate(select.expressions)]
    star = [e for e in select.expressions if isinstance(e, exp.Star)]
    if star and not by and len(select.expressions) == 1:
        only(star[0])
        return rows
    listed = SelectList(find, by)
    items = [
        (name_of(e, i), listed.read(unaliased(e), alias_of(e))) for i, e in enumerate(select.expressions)
    ]
    if by or listed.aggregates:
        return _per_unit(select, rows, by, listed, items)
    if select.args.get("having"):
        raise refuse(select, "HAVING needs GROUP BY", "use WHERE instead of HAVING")
    return _projected(rows, items)


def _per_unit(
    select: exp.Expr,
    rows: Rows,
    by: list[tuple[str, Node]],
    listed: SelectList,
    items: list[tuple[str, Node]],
) -> Rows:
    """Aggregate the rows of each unit; the groups must name the unit."""
    if not names_whole_unit(rows, [node.name for _, node in by if isinstance(node, Column)]):
        columns = ", ".join(map(sql_name, unit_columns(rows)))
        raise TacitError(
            "not-allowed",
            f"a subquery can only aggregate the rows of one {unit_noun(rows)}",
            why="noise on the answer cannot hide one person in an exact total inside the query",
            fix=f"GROUP BY {columns}" if columns else Declare("unit", "patient_id"),
        )
    facts = scope(rows.relation)
    having = having_of(select, listed)
    measures = tuple(rows.measure(name, asked) for name, asked in listed.aggregates.items())
    groups = tuple((name, resolve(node, facts, _kind(node, facts))) for name, node in by)
    inner = replace(rows, relation=of_each_unit(rows.relation, groups, measures))
    if having is not None:
        inner = inner.where(Expr(having))
    return _projected(inner, items)


def _projected(rows: Rows, items: list[tuple[str, Node]]) -> Rows:
    facts = scope(rows.relation)
    made = tuple((name, resolve(node, facts)) for name, node in distinct_names(items))
    return replace(rows, relation=Project(rows.relation, made))


def _kind(node: Node, facts: Scope) -> Kind:
    return kind_of(resolve(node, facts)) or "text"
