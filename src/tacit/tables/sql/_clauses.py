"""The clauses of a table's SQL question: WHERE, GROUP BY, the names, HAVING, ORDER BY, LIMIT.

ROLLUP, CUBE and GROUPING SETS name columns, and levels of totals over them.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from tacit.algebra import Column, Node
from tacit.errors import TacitError
from tacit.tables.questions._keys import MAX_LEVELS
from tacit.tables.questions._python_expressions import Expr, check_name
from tacit.tables.sql._allowed import only, refuse
from tacit.tables.sql._expressions import read_expression
from tacit.tables.sql._names import sql_name
from tacit.tables.sql._select_list import has_aggregate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tacit.tables.questions._keys import Levels
    from tacit.tables.questions._rows import Rows
    from tacit.tables.sql._names import ColumnFinder
    from tacit.tables.sql._select_list import SelectList


_MAX_COPIED: Final = 2_500  # words and signs that names of the SELECT list stand for


def filtered(select: exp.Expr, rows: Rows, find: ColumnFinder) -> Rows:
    """Apply WHERE."""
    clause = select.args["where"]
    only(clause, "this")
    return rows.where(Expr(read_expression(clause.this, find)))


def groups_of(select: exp.Expr, find: ColumnFinder, *, levels: bool = False) -> list[tuple[str, Node]]:
    """Read GROUP BY: the groups with their names, as expressions, names or places of the SELECT list.

    ``levels``: whether ROLLUP, CUBE and GROUPING SETS are allowed; `levels_of` reads them.
    """
    clause = select.args.get("group")
    if clause is None:
        return []
    only(clause, "expressions", "all")
    if has_levels(clause) and not levels:
        raise refuse(clause, "a subquery cannot contain ROLLUP, CUBE or GROUPING SETS", "GROUP BY a, b")
    aliases = {alias_of(e).lower(): e for e in select.expressions if alias_of(e)}
    groups: list[tuple[str, Node]] = []
    written_groups = _all_groups(select) if clause.args.get("all") else group_columns(clause)
    for i, expression in enumerate(written_groups):
        target = expression
        if isinstance(expression, exp.Literal) and not expression.is_string:
            target = _at_place(select, expression, "GROUP BY")
        elif isinstance(expression, exp.Column) and not expression.table:
            target = aliases.get(expression.name.lower(), expression)
        node = read_expression(unaliased(target), find)
        name = alias_of(target) or (node.name if isinstance(node, Column) else f"group_{i + 1}")
        groups.append((name, node))
    return groups


def _all_groups(select: exp.Expr) -> list[exp.Expr]:
    """Return the items of the SELECT list that GROUP BY ALL stands for: those without an aggregate."""
    return [e for e in select.expressions if e.find(exp.Column) and not has_aggregate(e)]


def _at_place(select: exp.Expr, number: exp.Literal, clause: str) -> exp.Expr:
    """Return the item of the SELECT list that a number in GROUP BY or ORDER BY stands for."""
    position = int(float(number.this))
    if not 1 <= position <= len(select.expressions):
        raise refuse(select, f"{clause} {position} is not a column of the SELECT list", f"{clause} 1")
    return select.expressions[position - 1]  # type: ignore[no-any-return]


def alias_of(node: exp.Expr) -> str:
    """Return the name after AS; empty if there is none."""
    if not isinstance(node, exp.Alias):
        return ""
    check_name(str(node.alias))
    return str(node.alias)


def unaliased(node: exp.Expr) -> exp.Expr:
    """Return the expression before AS."""
    if isinstance(node, exp.Alias):
        only(node, "this", "alias")
        return node.this  # type: ignore[no-any-return]
    return node


def name_of(node: exp.Expr, i: int) -> str:
    """Name an item of the SELECT list: its alias, its column, or its place."""
    inner = unaliased(node)
    return alias_of(node) or (inner.name if isinstance(inner, exp.Column) else f"column_{i + 1}")


def distinct_names(items: list[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """Refuse two items of the same name."""
    names_seen: set[str] = set()
    for name, _ in items:
        if name.lower() in names_seen:
            raise TacitError(
                "not-allowed",
                f"two columns are called {name!r}",
                fix=f"{sql_name(name)} AS {sql_name(name + '_2')}",
            )
        names_seen.add(name.lower())
    return items


def outputs_of(items: list[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """Name every item of the SELECT list."""
    aliases = {name.lower() for name, _ in items if name}
    outputs: list[tuple[str, Node]] = []
    for i, (name, node) in enumerate(items):
        base = name or (node.name if isinstance(node, Column) else f"column_{i + 1}")
        names_taken = {one.lower() for one, _ in outputs} | (set() if name else aliases)
        free = (f"{base}_{n}" for n in range(2, len(items) + 2) if f"{base}_{n}".lower() not in names_taken)
        outputs.append((base if name or base.lower() not in names_taken else next(free), node))
    return distinct_names(outputs)


def having_of(select: exp.Expr, select_list: SelectList) -> Node | None:
    """Read HAVING; it can use the names of the SELECT list."""
    clause = select.args.get("having")
    if clause is None:
        return None
    only(clause, "this")
    if window := clause.this.find(exp.Window):
        raise refuse(window, "HAVING cannot contain OVER", "ORDER BY 2 DESC LIMIT 10")
    return select_list.read(_expanded(clause.this, _aliases(select)))


def _aliases(select: exp.Expr) -> dict[str, exp.Expr]:
    return {alias_of(e).lower(): unaliased(e) for e in select.expressions if alias_of(e)}


def _expanded(node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
    """Replace names of the SELECT list by what they stand for; refuse what would become too long."""
    uses = Counter(one.name.lower() for one in node.find_all(exp.Column) if not one.table)
    copied = sum(
        times * sum(1 for _ in aliases[name].walk()) for name, times in uses.items() if name in aliases
    )
    if copied > _MAX_COPIED:
        raise TacitError(
            "question-too-large",
            "this SQL is too long when every name of its SELECT list is replaced by what it stands for",
            why="names that stand for other names double its length again and again",
            fix="ask for fewer columns that are computed from each other",
        )

    def put(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not part.table and part.name.lower() in aliases:
            return aliases[part.name.lower()].copy()
        return part

    return node.copy().transform(put)


def with_earlier_aliases(select: exp.Expr, columns: Iterable[str]) -> list[exp.Expr]:
    """Return the SELECT list; a name of an earlier item stands for it, unless it is a column of the table."""
    column_names, aliases = {column.lower() for column in columns}, dict[str, exp.Expr]()
    expressions = []
    for item in select.expressions:
        inner = unaliased(item)
        new = (
            _expanded(inner, aliases)
            if any(c.name.lower() in aliases for c in inner.find_all(exp.Column))
            else inner
        )
        expressions.append(item if new is inner else exp.Alias(this=new, alias=item.args.get("alias")))
        name = alias_of(item).lower()
        if name and name not in column_names:
            aliases[name] = new
    return expressions


def order_of(select: exp.Expr, select_list: SelectList, outputs: dict[str, Node]) -> list[tuple[Node, bool]]:
    """Read ORDER BY: expressions, names or places of the SELECT list, each with whether it is descending."""
    clause = select.args.get("order")
    if clause is None:
        return []
    only(clause, "expressions")
    aliases = _aliases(select)
    keys = []
    for part in _all_ordered(select, clause):
        only(part, "this", "desc")
        target = part.this
        if isinstance(target, exp.Literal) and not target.is_string:
            target = unaliased(_at_place(select, target, "ORDER BY"))
        is_name = isinstance(target, exp.Column) and not target.table
        node = outputs.get(target.name.lower()) if is_name else None
        descending = bool(part.args.get("desc"))
        keys.append((node if node is not None else select_list.read(_expanded(target, aliases)), descending))
    return keys


def _all_ordered(select: exp.Expr, clause: exp.Expr) -> list[exp.Expr]:
    """Return the parts of ORDER BY; ALL stands for every item of the SELECT list."""
    match clause.expressions:
        case [exp.Ordered(this=exp.Var(this=str(word))) as one] if word.upper() == "ALL":
            descending = one.args.get("desc")
            return [exp.Ordered(this=unaliased(e).copy(), desc=descending) for e in select.expressions]
        case parts:
            return list(parts)


def limit_of(select: exp.Expr) -> int | None:
    """Read LIMIT, or FETCH FIRST."""
    clause = select.args.get("limit")
    if clause is None:
        return None
    only(clause, "expression", "count", "direction", "limit_options")
    options = clause.args.get("limit_options")
    if options is not None:
        only(options, "rows")
    number = clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.expression
    if not isinstance(number, exp.Literal) or number.is_string or not str(number.this).isdigit():
        raise refuse(clause, "LIMIT takes a whole number", "LIMIT 10")
    return int(number.this)


_LEVELS = (exp.Rollup, exp.Cube, exp.GroupingSets)


def has_levels(clause: exp.Expr) -> bool:
    """Return whether a GROUP BY names several levels."""
    return any(isinstance(item, _LEVELS) for item in clause.expressions)


def group_columns(clause: exp.Expr) -> list[exp.Expr]:
    """Return every column of a GROUP BY once, in the order of the text."""
    every = clause.expressions
    if has_levels(clause):
        columns = [column for one in _sets(clause) for column in one]
        every = sorted(columns, key=lambda column: _place(clause, column))
    expressions: dict[str, exp.Expr] = {}
    for column in every:
        expressions.setdefault(_text(column), column)
    return list(expressions.values())


def levels_of(select: exp.Expr) -> Levels:
    """Read the levels of GROUP BY, as places of its columns; none where it is a plain list."""
    clause = select.args.get("group")
    if clause is None or not has_levels(clause):
        return ()
    names = [_text(column) for column in group_columns(clause)]
    places = [tuple(sorted({names.index(_text(column)) for column in one})) for one in _sets(clause)]
    levels = tuple(sorted(dict.fromkeys(places), key=lambda level: (-len(level), level)))
    return () if levels == (tuple(range(len(names))),) else levels


def _sets(clause: exp.Expr) -> list[list[exp.Expr]]:
    """Return the grouping sets: every combination of one set from each item."""
    choices = [_sets_of(item) for item in clause.expressions]
    sets: list[list[exp.Expr]] = []
    for chosen in product(*choices):
        sets.append([column for one in chosen for column in one])
        if len(sets) > MAX_LEVELS:
            raise refuse(clause, f"GROUP BY names more than {MAX_LEVELS} levels", "GROUP BY ROLLUP (a, b)")
    return sets


def _sets_of(item: exp.Expr) -> list[list[exp.Expr]]:
    match item:
        case exp.Rollup():
            only(item, "expressions")
            parts = [_columns(one) for one in item.expressions]
            return [_joined(parts[:n]) for n in range(len(parts), -1, -1)]
        case exp.Cube():
            only(item, "expressions")
            parts = [_columns(one) for one in item.expressions]
            if len(parts) > 6:
                raise refuse(item, "CUBE takes at most 6 columns", "ROLLUP (a, b)")
            return [_joined(some) for n in range(len(parts), -1, -1) for some in combinations(parts, n)]
        case exp.GroupingSets():
            only(item, "expressions")
            return [one for inner in item.expressions for one in _inner_sets(inner)]
        case _:
            return [[item]]


def _joined(parts: Sequence[list[exp.Expr]]) -> list[exp.Expr]:
    return [column for part in parts for column in part]


def _inner_sets(inner: exp.Expr) -> list[list[exp.Expr]]:
    return _sets_of(inner) if isinstance(inner, _LEVELS) else [_columns(inner)]


def _columns(node: exp.Expr) -> list[exp.Expr]:
    """Return the columns of one element: one, or several in brackets."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this if isinstance(node, exp.Paren) else node]


def _text(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb").lower()


def _place(clause: exp.Expr, column: exp.Expr) -> int:
    """Return where a column first stands in the clause."""
    return next(i for i, node in enumerate(clause.walk(bfs=False)) if node is column)
