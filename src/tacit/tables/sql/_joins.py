"""Joins in a table's SQL question: with a public table on its key, or a protected one on the unit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.algebra import Column, JoinPublic, JoinUnits, Project, scope
from tacit.core import Fact
from tacit.errors import TacitError
from tacit.fixes import Declare
from tacit.tables._keys import key_node
from tacit.tables.sql._allowed import only, refuse
from tacit.tables.sql._names import FromClause, sql_name
from tacit.tables.sql._units import names_whole_unit, unit_column, unit_columns

if TYPE_CHECKING:
    from tacit.algebra import How
    from tacit.fixes import Fix
    from tacit.tables._rows import Rows

#: A column as written: table alias or "", name.
_Written = tuple[str, str]


def move_join_conditions(select: exp.Expr) -> None:
    """Turn ``FROM a, b WHERE a.id = b.id`` into a join: move the equalities of columns from WHERE to it."""
    where, source = select.args.get("where"), select.args["from_"].this
    seen = {str(source.alias_or_name).lower()}
    for join in select.args.get("joins") or []:
        alias = str(join.this.alias_or_name).lower()
        if where is not None and _is_comma(join):
            parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
            moved = [part for part in parts if _connects(part, alias, seen)]
            rest = [part for part in parts if not any(part is one for one in moved)]
            if moved:
                join.set("on", exp.and_(*moved))
                join.set("kind", None)
                where = exp.Where(this=exp.and_(*rest)) if rest else None
                select.set("where", where)
        seen.add(alias)


def _is_comma(join: exp.Expr) -> bool:
    given = {part for part in ("on", "using", "side", "method") if join.args.get(part)}
    return not given and str(join.args.get("kind") or "CROSS").upper() == "CROSS"


def _connects(part: exp.Expr, alias: str, seen: set[str]) -> bool:
    """Return whether a condition is an equality of a column of a table and a column of those before it."""
    if not isinstance(part, exp.EQ):
        return False
    sides = [side for side in (part.this, part.expression) if isinstance(side, exp.Column)]
    tables = [side.table.lower() for side in sides]
    return len(tables) == 2 and alias in tables and any(table in seen for table in tables)


def kind_of_join(join: exp.Expr, rows: Rows) -> How:
    """Return whether a join is inner or left; refuse any other."""
    instead = _on_the_unit(str(join.this.alias_or_name), rows)
    if join.args.get("method") or str(join.args.get("kind") or "").upper() in {"SEMI", "ANTI", "CROSS"}:
        what = str(join.args.get("method") or join.args.get("kind")).upper()
        raise refuse(join, f"{what} JOIN is not allowed", instead)
    only(join, "this", "on", "using", "side", "kind")
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    if side not in {"", "LEFT"} or kind not in {"", "INNER", "OUTER"} or (kind == "OUTER" and side != "LEFT"):
        raise refuse(join, f"{side or kind} JOIN is not allowed", instead)
    return "left" if side == "LEFT" else "inner"


def join_public(source: FromClause, join: exp.Expr, name: str, alias: str, how: How) -> FromClause:
    """Look up a public table by its key."""
    key = source.rows.tables[name].key or ""
    if alias.lower() in source.aliases:
        raise _same_alias(join, alias)
    instead = f"JOIN {sql_name(alias)} ON {sql_name(key)} = {sql_name(alias)}.{sql_name(key)}"
    [(first, second)] = _equalities(join, alias, 1, instead)
    there = alias.lower() if not join.args.get("using") else ""
    if (second[0].lower(), second[1].lower()) != (there, key.lower()):
        condition = f"ON {sql_name(first[1])} = {sql_name(alias)}.{sql_name(key)}"
        raise refuse(join, f"a public table is joined on its key, {key!r}", condition)
    on = source.find(*first)
    table, facts = source.rows.tables[name], scope(source.rows.relation)
    if table.columns is None:
        source.rows.join(name, on, how=how)  # refuses a table whose columns are not known
    taken = {c.lower() for c in facts}
    brought = {c: c if c.lower() not in taken else f"{alias}.{c}" for c in table.columns or () if c != key}
    node = key_node(Column(on), facts, table.facts.get(key, Fact()).kind)
    lookup = tuple((new, c) for c, new in brought.items())
    joined = replace(source.rows, relation=JoinPublic(source.rows.relation, table, node, lookup, how))
    columns = {(alias.lower(), c.lower()): new for c, new in brought.items()}
    columns[alias.lower(), key.lower()] = on
    return source.with_table(joined, columns, alias)


def join_units(source: FromClause, join: exp.Expr, rows: Rows, alias: str, how: How) -> FromClause:
    """Join rows of the same unit."""
    if alias.lower() in source.aliases:
        raise _same_alias(join, alias)
    ours, theirs = scope(source.rows.relation), scope(rows.relation)
    if ours.open or theirs.open:
        raise TacitError(
            "unknown-column",
            "a join needs the column names of both tables, but the source of one of them is not available",
            why="names are public facts; they are read from the header or declared",
            fix=Declare("types", "text", column="patient_id"),
        )
    pairs = _equalities(join, alias, len(unit_columns(rows)), _on_the_unit(alias, rows))
    find, find_there = source.find, FromClause.of(rows, alias).find
    left, right = [find(*a) for a, _ in pairs], [find_there(*b) for _, b in pairs]
    if not on_unit(source.rows, rows, left, right):
        raise TacitError(
            "not-allowed",
            "protected tables can only be joined on the columns that name the unit",
            why="each joined row must belong to one unit; otherwise one person could change the rows of many",
            fix=_on_the_unit(alias, rows),
        )
    taken = {c.lower() for c in ours}
    renamed = {c: c if c.lower() not in taken else f"{alias}.{c}" for c in theirs}
    brought = Project(rows.relation, tuple((renamed[c], Column(c, theirs[c].kind)) for c in theirs))
    joined = JoinUnits(source.rows.relation, brought, how, source.rows.limits.joined)
    columns = {(alias.lower(), c.lower()): renamed[c] for c in theirs}
    return source.with_table(replace(source.rows, relation=joined), columns, alias)


def on_unit(ours: Rows, theirs: Rows, left: list[str], right: list[str]) -> bool:
    """Return whether the columns of a join condition name the unit on both sides, each its counterpart."""
    if not (names_whole_unit(ours, left) and names_whole_unit(theirs, right)):
        return False
    if len(unit_columns(ours)) == 1:
        return True
    pairs = {(unit_column(ours, a), unit_column(theirs, b)) for a, b in zip(left, right, strict=True)}
    return pairs == {(column, column) for column in unit_columns(ours)}


def _on_the_unit(alias: str, rows: Rows) -> Fix | str:
    """Write the join that protected tables need; single rows have nothing to be joined on."""
    unit = ", ".join(map(sql_name, unit_columns(rows)))
    return f"JOIN {sql_name(alias)} USING ({unit})" if unit else Declare("unit", "patient_id")


def _same_alias(join: exp.Expr, alias: str) -> TacitError:
    return refuse(join, f"two tables are called {alias!r}", f"JOIN ... AS {sql_name(alias + '_2')}")


def _equalities(
    join: exp.Expr, alias: str, count: int, instead: Fix | str
) -> list[tuple[_Written, _Written]]:
    """Return the pairs of columns of a join condition, those of the joined table second.

    The condition is USING, or equalities joined by AND, of as many columns as ``count`` says.
    """
    using, on = join.args.get("using"), join.args.get("on")
    if using and on is None and len(using) == max(count, 1):
        return [(("", column.name), ("", column.name)) for column in using]
    pairs = []
    for part in on.flatten() if isinstance(on, exp.And) else [on]:
        if not (
            isinstance(part, exp.EQ)
            and isinstance(part.this, exp.Column)
            and isinstance(part.expression, exp.Column)
        ):
            break
        for column in (part.this, part.expression):
            only(column, "this", "table")
        first, second = ((c.table, c.name) for c in (part.this, part.expression))
        pairs.append((second, first) if first[0].lower() == alias.lower() else (first, second))
    else:
        if len(pairs) == max(count, 1):
            return pairs
    raise refuse(
        join,
        "a join needs an equality of columns: those that name the unit, or the key of a public table",
        instead,
    )
