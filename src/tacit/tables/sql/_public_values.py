"""Subqueries of public tables: answered while the question is read, because nothing in them is private."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.algebra import Call, Scope, kind_of, lit, resolve
from tacit.core import Fact
from tacit.errors import TacitError
from tacit.tables._keys import MOST_KEYS
from tacit.tables.sql._allowed import only, refuse
from tacit.tables.sql._expressions import read_expression
from tacit.tables.sql._names import declared_name

if TYPE_CHECKING:
    from tacit.algebra import Node
    from tacit.core import Kind, Table
    from tacit.tables.sql._names import TablesInReach

_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Min: "min", exp.Max: "max", exp.Avg: "avg", exp.Sum: "sum", exp.Count: "count", exp.Median: "median",
}  # fmt: skip
_MOST_VALUES = 10_000


def put_public_values(select: exp.Expr, reach: TablesInReach) -> None:
    """Replace the subqueries of public tables in a SELECT by their values.

    A scalar subquery becomes a constant, and the subquery of IN a list of constants.
    """
    for node in list(select.find_all(exp.Subquery)):
        owner = node.parent
        if isinstance(owner, exp.From | exp.Join | exp.CTE) or node.find_ancestor(exp.Select) is not select:
            continue
        table = _public_table(node.this, reach)
        if table is not None:
            values = _values(node.this, table, reach)
            if isinstance(owner, exp.In):
                owner.replace(_listed(owner, values))
            else:
                node.replace(_scalar(node, values))
        elif not isinstance(owner, exp.In | exp.Exists):
            raise TacitError(
                "not-allowed",
                f"{node.sql(dialect='duckdb')[:80]!r} would be an exact number from protected rows",
                why="exact numbers are private; ask for the number first, then put the released number here",
                fix=_instead(node),
            )


def _instead(node: exp.Expr) -> str:
    """Write what helps: the total of a share is taken over the answer; else the subquery is asked first."""
    items = node.this.expressions
    if isinstance(node.parent, exp.Div) and len(items) == 1 and isinstance(items[0], exp.Count | exp.Sum):
        return f"SUM({items[0].sql(dialect='duckdb')}) OVER ()"
    return str(node.this.sql(dialect="duckdb"))


def _public_table(select: exp.Expr, reach: TablesInReach) -> Table | None:
    """Return the public table that a subquery reads; None where it reads anything else."""
    clause = select.args.get("from_")
    if not isinstance(select, exp.Select) or clause is None or not isinstance(clause.this, exp.Table):
        return None
    written = declared_name(clause.this, reach)
    name = reach.public_table(written) if written else None
    return None if name is None else reach.dataset.tables[name]


def _values(select: exp.Expr, table: Table, reach: TablesInReach) -> list[object]:
    """Read the different values of the one expression that a subquery of a public table selects."""
    only(select, "expressions", "from_", "where", "distinct")
    if len(select.expressions) != 1 or table.columns is None:
        raise refuse(select, "a subquery of a public table selects one column", "SELECT column FROM table")
    facts = Scope({c: table.facts.get(c, Fact()) for c in table.columns})
    [item] = select.expressions
    item = item.this if isinstance(item, exp.Alias) else item
    where = select.args.get("where")
    condition = None if where is None else _solved(where.this, facts, "boolean")
    function = _AGGREGATES.get(type(item))
    if function is None and item.find(exp.AggFunc, exp.Window):
        what = "a subquery of a public table selects one column or one aggregate"
        raise refuse(select, what, "(SELECT MAX(column) FROM table) * 2")
    if function is None:
        value = _solved(item, facts)
    else:
        only(item, "this")
        want = _kind_of_values(item, table, facts, reach)
        value = lit(1.0) if isinstance(item.this, exp.Star) else _solved(item.this, facts, want)
    found = reach.dataset._engine.public_values(
        table.name, value, min(MOST_KEYS, _MOST_VALUES) + 1, where=condition, aggregate=function
    )
    if found is None or len(found) > _MOST_VALUES:
        raise TacitError(
            "unknown-table",
            f"the public table {table.name!r} cannot be read now"
            if found is None
            else f"the subquery of {table.name!r} has more than {_MOST_VALUES:,} values",
            why="its values are part of the plan, so Tacit reads them when it makes the plan",
            fix="write the values themselves",
        )
    return sorted(found, key=str)


def _kind_of_values(item: exp.Expr, table: Table, facts: Scope, reach: TablesInReach) -> Kind | None:
    """Return how an aggregate reads a column whose kind nobody declared; None leaves it as it is.

    What is added up is a number. The least and the largest value are numbers where every value of the public
    table can be read as one; as text, 9 would come after 10.
    """
    if isinstance(item, exp.Avg | exp.Sum | exp.Median):
        return "number"
    if not isinstance(item, exp.Min | exp.Max) or not isinstance(item.this, exp.Column):
        return None
    if any(facts[c].kind is not None for c in facts if c.lower() == item.this.name.lower()):
        return None
    as_text, as_number = _solved(item.this, facts, "text"), _solved(item.this, facts, "number")
    odd = Call("and", (Call("not", (Call("is_null", (as_text,)),)), Call("is_null", (as_number,))))
    found = reach.dataset._engine.public_values(table.name, lit(1.0), 1, where=odd)
    return None if found else "number"


def _solved(node: exp.Expr, facts: Scope, want: Kind | None = None) -> Node:
    names = {column.lower(): column for column in facts}
    read: Node = read_expression(node, lambda _, name: names.get(name.lower(), name))
    solved = resolve(read, facts, want)
    return solved if kind_of(solved) is not None else resolve(read, facts, "text")


def _listed(owner: exp.Expr, values: list[object]) -> exp.Expr:
    if not values:
        return exp.and_(exp.false(), exp.Is(this=owner.this.copy(), expression=exp.Null()))
    return exp.In(this=owner.this.copy(), expressions=[_literal(value) for value in values])


def _scalar(node: exp.Expr, values: list[object]) -> exp.Expr:
    if len(values) > 1:
        raise refuse(
            node, "a subquery that stands for a value must give one value", "SELECT MAX(column) FROM table"
        )
    return _literal(values[0]) if values else exp.null()


def _literal(value: object) -> exp.Expr:
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, int | float | Decimal):
        return (
            exp.Literal.number(float(value))
            if value >= 0
            else exp.Neg(this=exp.Literal.number(-float(value)))
        )
    return exp.Literal.string(str(value))
