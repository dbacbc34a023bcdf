"""FROM, WITH and subqueries in table SQL: rows that each belong to one unit, no aggregates across units.

Joins are with a public table on its key, or with a protected one on the unit.

Units may be looked for in a subquery: ``WHERE patient_id IN (SELECT patient_id FROM ... WHERE ...)``. The
rows of a unit are kept or dropped by the unit's own rows in the subquery. In the algebra that is a left join
on the unit with one line for each unit of the subquery (`PerUnit`), so the invariant of relations holds and
no unit gets more rows (docs/proofs/tables.md).

Subqueries of public tables are answered while the question is read, because nothing in them is private.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.algebra import (
    Call,
    Column,
    JoinPublic,
    JoinUnits,
    Node,
    PerUnit,
    Project,
    Scope,
    kind_of,
    lit,
    of_each_unit,
    resolve,
    scope,
)
from tacit.core import Fact
from tacit.errors import TacitError
from tacit.fixes import Declare
from tacit.tables.questions._keys import MAX_KEYS, key_node
from tacit.tables.questions._python_expressions import Expr
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
from tacit.tables.sql._names import (
    FromClause,
    TablesInReach,
    declared_name,
    names_whole_unit,
    sql_name,
    unit_column,
    unit_columns,
    unit_noun,
)
from tacit.tables.sql._select_list import SelectList

if TYPE_CHECKING:
    from tacit.algebra import How
    from tacit.core import Kind, Table
    from tacit.fixes import Fix
    from tacit.tables.questions._rows import Rows


_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Min: "min", exp.Max: "max", exp.Avg: "avg", exp.Sum: "sum", exp.Count: "count", exp.Median: "median",
}  # fmt: skip
_MAX_VALUES = 10_000


def with_clauses(select: exp.Expr, reach: TablesInReach) -> TablesInReach:
    """Return the tables in reach after the WITH clauses of a SELECT."""
    clause = select.args.get("with_")
    if clause is None:
        return reach
    only(clause, "expressions")
    named_rows = dict(reach.named)
    for part in clause.expressions:
        only(part, "this", "alias")
        if part.args["alias"].args.get("columns"):
            raise refuse(
                part,
                "columns must get their names inside the WITH clause",
                "WITH t AS (SELECT x AS a FROM ...)",
            )
        named_rows[part.alias] = _subquery(part.this, TablesInReach(reach.dataset, dict(named_rows)))
    return TablesInReach(reach.dataset, named_rows)


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
    members = asked_members(select, source)
    if not members:
        return filtered(select, source.rows, source.find)
    before = source.rows
    for member in members:
        source = with_members(source, member, _subquery(member.select, reach))
    rows = filtered(select, source.rows, source.find)
    facts = scope(before.relation)
    columns = tuple((c, Column(c, facts[c].kind)) for c in facts)
    return replace(rows, relation=Project(rows.relation, columns))


def _table(node: exp.Expr, reach: TablesInReach, *, sample: bool = False) -> tuple[Rows, str]:
    """Read one table or subquery of FROM; return its rows and its alias."""
    match node:
        case exp.Table(args={"sample": exp.TableSample() as drawn}) if sample:
            table = node.copy()
            table.set("sample", None)
            rows, alias = _table(table, reach)
            return rows.sample(_share(drawn)), alias
        case exp.Table():
            only(node, "this", "alias", "db", "catalog")
            name = declared_name(node, reach)
            if name is None:
                text = exp.Table(this=node.this, db=node.args.get("db")).sql(dialect="duckdb")[:60]
                main = sql_name(reach.dataset.main)
                raise refuse(node, f"{text!r} is not a declared table", f"FROM {main}")
            return reach.rows(name), node.alias or node.name
        case exp.Subquery():
            only(node, "this", "alias")
            return _subquery(node.this, reach), node.alias or "subquery"
        case _:
            raise refuse(node)


def _share(sample: exp.TableSample) -> Fraction:
    """Read TABLESAMPLE p PERCENT; whatever the method, units are drawn, each on its own."""
    only(sample, "method", "percent")
    percent = sample.args.get("percent")
    if not isinstance(percent, exp.Literal) or percent.is_string:
        raise refuse(sample, "TABLESAMPLE takes a percentage", "TABLESAMPLE 5 PERCENT")
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
    select_list = SelectList(find, by)
    items = [
        (name_of(e, i), select_list.read(unaliased(e), alias_of(e))) for i, e in enumerate(select.expressions)
    ]
    if by or select_list.aggregates:
        return _per_unit(select, rows, by, select_list, items)
    if select.args.get("having"):
        raise refuse(select, "HAVING needs GROUP BY", "use WHERE instead of HAVING")
    return _projected(rows, items)


def _per_unit(
    select: exp.Expr,
    rows: Rows,
    by: list[tuple[str, Node]],
    select_list: SelectList,
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
    having = having_of(select, select_list)
    measures = tuple(rows.measure(name, asked) for name, asked in select_list.aggregates.items())
    groups = tuple((name, resolve(node, facts, _kind(node, facts))) for name, node in by)
    inner = replace(rows, relation=of_each_unit(rows.relation, groups, measures))
    if having is not None:
        inner = inner.where(Expr(having))
    return _projected(inner, items)


def _projected(rows: Rows, items: list[tuple[str, Node]]) -> Rows:
    facts = scope(rows.relation)
    columns = tuple((name, resolve(node, facts)) for name, node in distinct_names(items))
    return replace(rows, relation=Project(rows.relation, columns))


def _kind(node: Node, facts: Scope) -> Kind:
    return kind_of(resolve(node, facts)) or "text"


#: A column as written: table alias or "", name.
_Written = tuple[str, str]


def move_join_conditions(select: exp.Expr) -> None:
    """Turn ``FROM a, b WHERE a.id = b.id`` into a join: move the equalities of columns from WHERE to it."""
    where, source = select.args.get("where"), select.args["from_"].this
    aliases = {str(source.alias_or_name).lower()}
    for join in select.args.get("joins") or []:
        alias = str(join.this.alias_or_name).lower()
        if where is not None and _is_comma(join):
            parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
            conditions = [part for part in parts if _connects(part, alias, aliases)]
            rest = [part for part in parts if not any(part is one for one in conditions)]
            if conditions:
                join.set("on", exp.and_(*conditions))
                join.set("kind", None)
                where = exp.Where(this=exp.and_(*rest)) if rest else None
                select.set("where", where)
        aliases.add(alias)


def _is_comma(join: exp.Expr) -> bool:
    clauses = {part for part in ("on", "using", "side", "method") if join.args.get(part)}
    return not clauses and str(join.args.get("kind") or "CROSS").upper() == "CROSS"


def _connects(part: exp.Expr, alias: str, aliases: set[str]) -> bool:
    """Return whether a condition is an equality of a column of a table and a column of those before it."""
    if not isinstance(part, exp.EQ):
        return False
    sides = [side for side in (part.this, part.expression) if isinstance(side, exp.Column)]
    tables = [side.table.lower() for side in sides]
    return len(tables) == 2 and alias in tables and any(table in aliases for table in tables)


def kind_of_join(join: exp.Expr, rows: Rows) -> How:
    """Return whether a join is inner or left; refuse any other."""
    instead = _on_the_unit(str(join.this.alias_or_name), rows)
    if join.args.get("method") or str(join.args.get("kind") or "").upper() in {"SEMI", "ANTI", "CROSS"}:
        join_kind = str(join.args.get("method") or join.args.get("kind")).upper()
        raise refuse(join, f"{join_kind} JOIN is not allowed", instead)
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
    [(left, right)] = _equalities(join, alias, 1, instead)
    table_alias = alias.lower() if not join.args.get("using") else ""
    if (right[0].lower(), right[1].lower()) != (table_alias, key.lower()):
        condition = f"ON {sql_name(left[1])} = {sql_name(alias)}.{sql_name(key)}"
        raise refuse(join, f"a public table is joined on its key, {key!r}", condition)
    on = source.find(*left)
    table, facts = source.rows.tables[name], scope(source.rows.relation)
    if table.columns is None:
        source.rows.join(name, on, how=how)  # refuses a table whose columns are not known
    names_taken = {c.lower() for c in facts}
    brought = {
        c: c if c.lower() not in names_taken else f"{alias}.{c}" for c in table.columns or () if c != key
    }
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
    left_columns, right_columns = [find(*a) for a, _ in pairs], [find_there(*b) for _, b in pairs]
    if not on_unit(source.rows, rows, left_columns, right_columns):
        raise TacitError(
            "not-allowed",
            "protected tables can only be joined on the columns that name the unit",
            why="each joined row must belong to one unit; otherwise one person could change the rows of many",
            fix=_on_the_unit(alias, rows),
        )
    names_taken = {c.lower() for c in ours}
    renamed = {c: c if c.lower() not in names_taken else f"{alias}.{c}" for c in theirs}
    brought = Project(rows.relation, tuple((renamed[c], Column(c, theirs[c].kind)) for c in theirs))
    joined = JoinUnits(source.rows.relation, brought, how, source.rows.limits.joined)
    columns = {(alias.lower(), c.lower()): renamed[c] for c in theirs}
    return source.with_table(replace(source.rows, relation=joined), columns, alias)


def on_unit(ours: Rows, theirs: Rows, left_columns: list[str], right_columns: list[str]) -> bool:
    """Return whether the columns of a join condition name the unit on both sides, each its counterpart."""
    if not (names_whole_unit(ours, left_columns) and names_whole_unit(theirs, right_columns)):
        return False
    if len(unit_columns(ours)) == 1:
        return True
    pairs = {
        (unit_column(ours, a), unit_column(theirs, b))
        for a, b in zip(left_columns, right_columns, strict=True)
    }
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
        left, right = ((c.table, c.name) for c in (part.this, part.expression))
        pairs.append((right, left) if left[0].lower() == alias.lower() else (left, right))
    else:
        if len(pairs) == max(count, 1):
            return pairs
    raise refuse(
        join,
        "a join needs an equality of columns: those that name the unit, or the key of a public table",
        instead,
    )


@dataclass(frozen=True, slots=True)
class AskedMember:
    """One IN of a WHERE clause: the columns on its left, its subquery, and the column that marks members."""

    columns: tuple[str, ...]
    select: exp.Expr
    marker: str


def asked_members(select: exp.Expr, source: FromClause) -> list[AskedMember]:
    """Find the subqueries of IN and EXISTS in WHERE, and put a column that marks members in their place."""
    members: list[AskedMember] = []
    for node in list(select.args["where"].find_all(exp.In, exp.Exists)):
        inside = node.find_ancestor(exp.In, exp.Exists, exp.Select)
        if inside is not select:
            continue
        membership = _as_in(node, source) if isinstance(node, exp.Exists) else node
        query = membership.args.get("query")
        if query is None:
            continue
        unit_expressions = (
            membership.this.expressions
            if isinstance(membership.this, exp.Tuple)
            else [_plain(membership.this)]
        )
        columns = [column for column in unit_expressions if isinstance(column, exp.Column)]
        if len(columns) < len(unit_expressions):
            raise _not_the_unit(source.rows, query)
        marker = _free_name(source, len(members))
        inner = query.this if isinstance(query, exp.Subquery) else query
        names = tuple(source.find(str(column.table), column.name) for column in columns)
        members.append(AskedMember(names, inner, marker))
        missing = exp.Is(this=exp.column(marker, quoted=True), expression=exp.Null())
        node.replace(exp.Paren(this=exp.Not(this=missing)))
    return members


def with_members(source: FromClause, member: AskedMember, members: Rows) -> FromClause:
    """Mark the rows of the units that a subquery returns."""
    rows, member_columns = source.rows, list(scope(members.relation))
    if scope(rows.relation).open or scope(members.relation).open:
        raise TacitError(
            "unknown-column",
            "a subquery in WHERE needs the names of the tables' columns, but a source is not available",
            why="names are public facts; they are read from the header or declared",
            fix=Declare("types", "text", column="patient_id"),
        )
    if len(member_columns) != len(member.columns) or not on_unit(
        rows, members, list(member.columns), member_columns
    ):
        raise _not_the_unit(rows, member.select)
    one_line = Project(PerUnit(members.relation, (), ()), ((member.marker, lit(value=True)),))
    joined = replace(rows, relation=JoinUnits(rows.relation, one_line, "left", None))
    facts = scope(joined.relation)
    return replace(source, rows=joined, names=frozenset(facts), is_open=facts.open)


def _plain(node: exp.Expr) -> exp.Expr:
    return _plain(node.this) if isinstance(node, exp.Paren) else node


def _free_name(source: FromClause, n: int) -> str:
    names_taken = {column.lower() for column in source.names}
    return next(
        name
        for i in range(n, n + len(names_taken) + 1)
        if (name := f"in subquery {i + 1}") not in names_taken
    )


def _as_in(node: exp.Expr, source: FromClause) -> exp.Expr:
    """Read EXISTS (SELECT ... FROM b WHERE b.unit = a.unit AND ...) as IN."""
    inner = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    where, clause = inner.args.get("where"), inner.args.get("from_")
    if where is None or clause is None:
        raise _not_the_unit(source.rows, inner)
    alias = str(clause.this.alias_or_name).lower()
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    pairs, rest = [], []
    for part in parts:
        sides = [s for s in (part.this, part.args.get("expression")) if isinstance(s, exp.Column)]
        tables = [side.table.lower() for side in sides]
        others = source.aliases - {alias}
        if isinstance(part, exp.EQ) and len(sides) == 2 and alias in tables and others & set(tables):
            pairs.append(sides if tables[1] == alias else sides[::-1])
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
    unit_in_sql = f"({unit})" if "," in unit else unit
    inner = select.this if isinstance(select, exp.Subquery) else select
    same = exp.Select(expressions=[exp.column(c) for c in unit_columns(rows)])
    for part in ("from_", "where"):
        if inner.args.get(part) is not None:
            same.set(part, inner.args[part].copy())
    return f"{unit_in_sql} IN ({same.sql(dialect='duckdb')})"


def _not_the_unit(rows: Rows, select: exp.Expr) -> TacitError:
    return TacitError(
        "not-allowed",
        "a subquery in WHERE must select the columns that name the unit",
        why="otherwise the rows of one person could decide which rows of others count",
        fix=_rewrite(rows, select) if unit_columns(rows) else Declare("unit", "patient_id"),
    )


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
    table_name = declared_name(clause.this, reach)
    name = reach.public_table(table_name) if table_name else None
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
        problem = "a subquery of a public table selects one column or one aggregate"
        raise refuse(select, problem, "(SELECT MAX(column) FROM table) * 2")
    if function is None:
        value = _solved(item, facts)
    else:
        only(item, "this")
        want = _kind_of_values(item, table, facts, reach)
        value = lit(1.0) if isinstance(item.this, exp.Star) else _solved(item.this, facts, want)
    values = reach.dataset._engine.public_values(
        table.name, value, min(MAX_KEYS, _MAX_VALUES) + 1, where=condition, aggregate=function
    )
    if values is None or len(values) > _MAX_VALUES:
        raise TacitError(
            "unknown-table",
            f"the public table {table.name!r} cannot be read now"
            if values is None
            else f"the subquery of {table.name!r} has more than {_MAX_VALUES:,} values",
            why="its values are part of the plan, so Tacit reads them when it makes the plan",
            fix="write the values themselves",
        )
    return sorted(values, key=str)


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
    values = reach.dataset._engine.public_values(table.name, lit(1.0), 1, where=odd)
    return None if values else "number"


def _solved(node: exp.Expr, facts: Scope, want: Kind | None = None) -> Node:
    names = {column.lower(): column for column in facts}
    expression: Node = read_expression(node, lambda _, name: names.get(name.lower(), name))
    solved = resolve(expression, facts, want)
    return solved if kind_of(solved) is not None else resolve(expression, facts, "text")


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
