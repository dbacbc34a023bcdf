"""The clauses of a SELECT, one function each: WHERE, GROUP BY, the names, HAVING, ORDER BY, LIMIT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.errors import TacitError
from tacit.tables._expressions import Column, Node
from tacit.tables._fluent import Expr
from tacit.tables._query import check_name
from tacit.tables.sql._expressions import Names, only, read_expression, refuse

if TYPE_CHECKING:
    from tacit.tables._query import Rows
    from tacit.tables.sql._aggregates import Reader

__all__ = [
    "alias_of",
    "distinct_names",
    "filtered",
    "groups_of",
    "having_of",
    "limit_of",
    "name_of",
    "order_of",
    "outputs_of",
    "unaliased",
]


def filtered(select: exp.Expr, rows: Rows, names: Names) -> Rows:
    """Apply WHERE."""
    clause = select.args.get("where")
    if clause is None:
        return rows
    only(clause, "this")
    return rows.where(Expr(read_expression(clause.this, names)))


def groups_of(select: exp.Expr, names: Names) -> list[tuple[str, Node]]:
    """Read GROUP BY: names and expressions."""
    clause = select.args.get("group")
    if clause is None:
        return []
    only(clause, "expressions")
    aliases = {alias_of(e).lower(): e for e in select.expressions if alias_of(e)}
    made: list[tuple[str, Node]] = []
    for i, e in enumerate(clause.expressions):
        target = e
        if isinstance(e, exp.Literal) and not e.is_string:
            place = int(float(e.this))
            if not 1 <= place <= len(select.expressions):
                raise refuse(select, f"GROUP BY {place} names no column of the SELECT list")
            target = select.expressions[place - 1]
        elif isinstance(e, exp.Column) and not e.table and e.name.lower() in aliases:
            target = aliases[e.name.lower()]
        node = read_expression(unaliased(target), names)
        name = alias_of(target) or (node.name if isinstance(node, Column) else f"group_{i + 1}")
        made.append((name, node))
    return made


def alias_of(node: exp.Expr) -> str:
    """Return the name after AS, or nothing."""
    if not isinstance(node, exp.Alias):
        return ""
    check_name(str(node.alias))
    return str(node.alias)


def unaliased(node: exp.Expr) -> exp.Expr:
    """Return what stands before AS."""
    if isinstance(node, exp.Alias):
        only(node, "this", "alias")
        return node.this  # type: ignore[no-any-return]
    return node


def name_of(node: exp.Expr, i: int) -> str:
    """Name an item of the SELECT list: its alias, its column, or its place."""
    inner = unaliased(node)
    return alias_of(node) or (inner.name if isinstance(inner, exp.Column) else f"column_{i + 1}")


def distinct_names(items: list[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """Refuse two items of one name."""
    seen: set[str] = set()
    for name, _ in items:
        if name.lower() in seen:
            raise TacitError("not-allowed", f"two columns are called {name!r}", fix=f"{name} AS {name}_2")
        seen.add(name.lower())
    return items


def outputs_of(items: list[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """Name every item of the SELECT list."""
    named = [
        (name or (node.name if isinstance(node, Column) else f"column_{i + 1}"), node)
        for i, (name, node) in enumerate(items)
    ]
    return distinct_names(named)


def having_of(select: exp.Expr, reader: Reader) -> Node | None:
    """Read HAVING; names of the SELECT list may stand in it."""
    clause = select.args.get("having")
    if clause is None:
        return None
    only(clause, "this")
    aliases = {alias_of(e).lower(): unaliased(e) for e in select.expressions if alias_of(e)}
    return reader.read(_expanded(clause.this, aliases))


def _expanded(node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
    """Put what a name in HAVING or ORDER BY stands for in its place."""

    def put(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not part.table and part.name.lower() in aliases:
            return aliases[part.name.lower()].copy()
        return part

    return node.copy().transform(put)


def order_of(select: exp.Expr, reader: Reader, outputs: dict[str, Node]) -> list[tuple[Node, bool]]:
    """Read ORDER BY: expressions, names or places of the SELECT list, each with its direction."""
    clause = select.args.get("order")
    if clause is None:
        return []
    only(clause, "expressions")
    aliases = {alias_of(e).lower(): unaliased(e) for e in select.expressions if alias_of(e)}
    made = []
    for part in clause.expressions:
        only(part, "this", "desc")
        target = part.this
        if isinstance(target, exp.Literal) and not target.is_string:
            place = int(float(target.this))
            if not 1 <= place <= len(select.expressions):
                raise refuse(part, f"ORDER BY {place} names no column of the SELECT list")
            target = unaliased(select.expressions[place - 1])
        node = (
            outputs.get(target.name.lower()) if isinstance(target, exp.Column) and not target.table else None
        )
        made.append(
            (
                node if node is not None else reader.read(_expanded(target, aliases)),
                bool(part.args.get("desc")),
            )
        )
    return made


def limit_of(select: exp.Expr) -> int | None:
    """Read LIMIT."""
    clause = select.args.get("limit")
    if clause is None:
        return None
    only(clause, "expression")
    number = clause.expression
    if not isinstance(number, exp.Literal) or number.is_string or not str(number.this).isdigit():
        raise refuse(clause, "LIMIT takes a whole number")
    return int(number.this)
