"""SQL: parsed, checked against a closed list, turned into Tacit's own nodes. The text itself is never run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tacit.errors import TacitError
from tacit.tables._expressions import Column, Node
from tacit.tables._fluent import Expr
from tacit.tables._kinds import Scope, kind_of, resolve
from tacit.tables._postprocessing import PostProcessing
from tacit.tables.algebra import JoinUnits, PerUnit, Project, Relation, scope
from tacit.tables.query import Answer, Rows
from tacit.tables.sql._aggregates import Reader
from tacit.tables.sql._clauses import (
    alias_of,
    distinct_names,
    filtered,
    groups_of,
    having_of,
    limit_of,
    name_of,
    order_of,
    outputs_of,
    unaliased,
)
from tacit.tables.sql._expressions import Names, only, read_expression, refuse
from tacit.tables.sql._fixes import hinted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tacit.core.facts import Kind
    from tacit.tables.dataset import Dataset

__all__ = ["parse_expression", "parse_query"]

_MOST_TEXT = 100_000
_T = TypeVar("_T")


def _parse(text: str, wrap: str = "{}") -> exp.Expr:
    given: object = text
    if not isinstance(given, str) or len(text) > _MOST_TEXT or "\x00" in text:
        raise TacitError(
            "bad-sql", "SQL is text of at most 100,000 characters", fix="SELECT COUNT(*) FROM visits"
        )
    try:
        parsed = sqlglot.parse(wrap.format(text), dialect="duckdb")
    except (SqlglotError, RecursionError) as error:
        detail = str(error).splitlines()[0][:120] if isinstance(error, SqlglotError) else "too deeply nested"
        raise TacitError(
            "bad-sql",
            f"this SQL cannot be read: {detail}",
            why="it is parsed before anything else",
            fix="SELECT COUNT(*) FROM visits",
        ) from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Select):
        raise TacitError(
            "not-allowed",
            "one SELECT statement is allowed, nothing else",
            why="nothing but questions reaches the data",
            fix="SELECT COUNT(*) FROM visits",
        )
    return parsed[0]


def parse_expression(text: str) -> Node:
    """Read one expression written as SQL text, such as ``"age >= 65 AND ward = 'ICU'"``."""
    select = _parse(text, "SELECT {}")
    only(select, "expressions")
    if len(select.expressions) != 1 or isinstance(select.expressions[0], exp.Alias):
        raise refuse(select, "one expression is needed here")
    return _guarded(lambda: read_expression(select.expressions[0], lambda _, name: name))


def parse_query(
    text: str, dataset: Dataset, keys: Mapping[str, Sequence[object] | str] | None = None
) -> Answer:
    """Turn a SELECT into a question with its free post-processing."""
    try:
        select = _parse(text)
        return _guarded(lambda: _question(select, _Around(dataset), dict(keys or {})))
    except TacitError as error:
        tables = dataset.tables.values()
        refusal = hinted(error, text, (c for t in tables for c in t.columns or t.facts))
    raise refusal


def _guarded(work: Callable[[], _T]) -> _T:
    try:
        return work()
    except RecursionError:
        raise TacitError("bad-sql", "this SQL is too deeply nested", fix="a WITH clause") from None


@dataclass(frozen=True, slots=True)
class _Around:
    """What a SELECT can see: the dataset and the WITH clauses before it."""

    dataset: Dataset
    named: dict[str, Rows] = field(default_factory=dict)

    def table(self, name: str) -> Rows:
        for known, rows in self.named.items():
            if known.lower() == name.lower():
                return rows
        for known, table in self.dataset.tables.items():
            if known.lower() == name.lower() and not table.public:
                return self.dataset[known]
        public = any(known.lower() == name.lower() for known in self.dataset.tables)
        raise TacitError(
            "unknown-table",
            f"there is no protected table {name!r}" + (", only a public one" if public else ""),
            why="a question is asked of a protected table; public ones can be joined to it",
            fix=f"FROM {self.dataset.main}",
        )


@dataclass(frozen=True, slots=True)
class _From:
    """The relation that a FROM clause makes, and where its columns are found."""

    rows: Rows
    columns: dict[tuple[str, str], str]
    aliases: frozenset[str]

    def names(self) -> Names:
        facts = scope(self.rows.relation)

        def find(table: str, name: str) -> str:
            if table and table.lower() not in self.aliases:
                raise TacitError(
                    "unknown-table",
                    f"there is no table {table!r} here",
                    fix=f"one of: {', '.join(sorted(self.aliases))}",
                )
            found = self.columns.get((table.lower(), name.lower()))
            if found is not None:
                return found
            if table and len(self.aliases) > 1:
                raise TacitError(
                    "unknown-column", f"there is no column {table}.{name}", fix="a column of that table"
                )
            if name in facts and not facts.open:
                return name
            close = [c for c in facts if c.lower() == name.lower()]
            return close[0] if len(close) == 1 else name

        return find


def _question(select: exp.Expr, around: _Around, keys: dict[str, Sequence[object] | str]) -> Answer:
    only(select, "expressions", "from_", "where", "group", "having", "order", "limit", "joins", "with_")
    around = _with(select, around)
    source = _source(select, around)
    find = source.names()
    if any(e.is_star for e in select.expressions):
        raise TacitError(
            "not-allowed",
            "SELECT * asks for the rows themselves",
            why="rows never leave; only noisy aggregates do",
            fix=f"SELECT COUNT(*) FROM {around.dataset.main}",  # noqa: S608 - advice, never run
        )
    rows = filtered(select, source.rows, find)
    by = groups_of(select, find)
    reader = Reader(find, by)
    items = [(alias_of(e), reader.read(unaliased(e), alias_of(e))) for e in select.expressions]
    if not reader.asked:
        raise TacitError(
            "not-allowed",
            "a question needs at least one aggregate",
            why="rows never leave; only noisy aggregates do",
            fix="SELECT COUNT(*) FROM visits",
        )
    having = having_of(select, reader)
    order = order_of(select, reader, {name.lower(): node for name, node in items if name})
    limit = limit_of(select)
    outputs = outputs_of(items)
    reader.insist([*(n for _, n in outputs), *(n for n, _ in order), *([having] if having else [])])
    for name, node in outputs:
        if isinstance(node, Column) and node.name in reader.keys:
            reader.rename(node.name, name)
    outputs = [(name, reader.renamed(node)) for name, node in outputs]
    having, order = reader.renamed(having) if having else None, [(reader.renamed(n), d) for n, d in order]
    asked = dict(reader.asked)
    grouped = rows
    plain = all(isinstance(n, Column) and n.name == name for name, n in outputs)
    in_order = [name for name, _ in outputs] == [*reader.keys.values(), *asked]
    post = (
        None
        if plain and in_order and having is None and not order and limit is None
        else PostProcessing(tuple(outputs), having, tuple(order), limit)
    )
    if not by:
        answer = grouped.agg(**asked)
    else:
        named = {reader.keys[old]: Expr(node) for old, node in by}
        given = {n: keys[n] for n in named if n in keys} if all(n in keys for n in named) and keys else None
        answer = grouped.group_by(keys=given, **named).agg(**asked)
    return Answer(answer.home, answer.question, post.apply if post else None)


def _with(select: exp.Expr, around: _Around) -> _Around:
    clause = select.args.get("with_")
    if clause is None:
        return around
    only(clause, "expressions")
    named = dict(around.named)
    for part in clause.expressions:
        only(part, "this", "alias")
        if part.args["alias"].args.get("columns"):
            raise refuse(part, "name columns inside the WITH clause")
        named[part.alias] = _rows(part.this, _Around(around.dataset, dict(named)))
    return _Around(around.dataset, named)


def _rows(select: exp.Expr, around: _Around) -> Rows:
    """Read a subquery: rows, or rows aggregated per unit; never aggregated across units."""
    if not isinstance(select, exp.Select):
        raise refuse(select, "a subquery is one SELECT")
    only(select, "expressions", "from_", "where", "group", "having", "joins", "with_", "distinct")
    around = _with(select, around)
    source = _source(select, around)
    names = source.names()
    rows = filtered(select, source.rows, names)
    by = groups_of(select, names)
    distinct = select.args.get("distinct")
    if distinct is not None:
        only(distinct)
        if by:
            raise refuse(select, "DISTINCT beside GROUP BY says nothing more")
        by = [(name_of(e, i), read_expression(unaliased(e), names)) for i, e in enumerate(select.expressions)]
    reader = Reader(names, by)
    star = [e for e in select.expressions if isinstance(e, exp.Star)]
    if star and not by and len(select.expressions) == 1:
        only(star[0])
        return rows
    items = [
        (name_of(e, i), reader.read(unaliased(e), alias_of(e))) for i, e in enumerate(select.expressions)
    ]
    if not by and not reader.asked:
        if select.args.get("having"):
            raise refuse(select, "HAVING without GROUP BY")
        facts = scope(rows.relation)
        made = tuple((name, resolve(node, facts)) for name, node in distinct_names(items))
        return Rows(rows.home, Project(rows.relation, made), rows.limits, rows.tables)
    return _per_unit(select, rows, by, reader, items)


def _per_unit(
    select: exp.Expr, rows: Rows, by: list[tuple[str, Node]], reader: Reader, items: list[tuple[str, Node]]
) -> Rows:
    facts = scope(rows.relation)
    if not any(isinstance(n, Column) and facts[n.name].unit for _, n in by):
        unit = rows.home.identity.unit
        raise TacitError(
            "not-allowed",
            "a subquery may aggregate only within a unit",
            why="what is summed over people inside a query could not be protected outside it",
            fix=f"GROUP BY {unit}" if not unit.is_row else 'unit="patient_id"',
        )
    home = rows.home
    having = having_of(select, reader)
    measures = tuple(rows.measure(name, asked) for name, asked in reader.asked.items())
    groups = tuple((name, resolve(node, facts, _kind(node, facts))) for name, node in by)
    inner = Rows(home, PerUnit(rows.relation, groups, measures), rows.limits, rows.tables)
    if having is not None:
        inner = inner.where(Expr(having))
    made = tuple((name, resolve(node, scope(inner.relation))) for name, node in distinct_names(items))
    return Rows(home, Project(inner.relation, made), rows.limits, rows.tables)


def _kind(node: Node, facts: Scope) -> Kind:
    return kind_of(resolve(node, facts)) or "text"


def _source(select: exp.Expr, around: _Around) -> _From:
    clause = select.args.get("from_")
    if clause is None:
        raise refuse(select, "a question needs FROM")
    only(clause, "this")
    rows, alias = _item(clause.this, around)
    facts = scope(rows.relation)
    source = _From(rows, {(alias.lower(), c.lower()): c for c in facts}, frozenset({alias.lower()}))
    for join in select.args.get("joins") or []:
        source = _join(source, join, around)
    return source


def _item(node: exp.Expr, around: _Around) -> tuple[Rows, str]:
    match node:
        case exp.Table():
            only(node, "this", "alias")
            if not isinstance(node.this, exp.Identifier):
                raise refuse(node, f"{node.sql(dialect='duckdb')[:60]!r} is not a declared table")
            return around.table(node.name), node.alias or node.name
        case exp.Subquery():
            only(node, "this", "alias")
            return _rows(node.this, around), node.alias or "subquery"
        case _:
            raise refuse(node)


def _join(source: _From, join: exp.Expr, around: _Around) -> _From:
    only(join, "this", "on", "using", "side", "kind")
    side, kind = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
    if side not in {"", "LEFT"} or kind not in {"", "INNER", "OUTER"} or (kind == "OUTER" and side != "LEFT"):
        raise refuse(join, f"{side or kind} JOIN is not allowed; INNER and LEFT are")
    how = "left" if side == "LEFT" else "inner"
    target = join.this
    declared = around.dataset.tables
    if isinstance(target, exp.Table) and isinstance(target.this, exp.Identifier):
        only(target, "this", "alias")
        name = next((n for n, t in declared.items() if n.lower() == target.name.lower() and t.public), None)
        if name is not None and not any(n.lower() == target.name.lower() for n in around.named):
            return _join_public(source, join, name, target.alias or target.name, how)
    rows, alias = _item(target, around)
    return _join_units(source, join, rows, alias, how)


def _ends(join: exp.Expr) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the two columns of a join condition: one equality, or USING one column."""
    using, on = join.args.get("using"), join.args.get("on")
    if using and len(using) == 1 and on is None:
        return ("", using[0].name), ("", using[0].name)
    if isinstance(on, exp.EQ) and isinstance(on.this, exp.Column) and isinstance(on.expression, exp.Column):
        for column in (on.this, on.expression):
            only(column, "this", "table")
        return (on.this.table, on.this.name), (on.expression.table, on.expression.name)
    raise refuse(join, "a join needs one equality of columns: the unit, or the key of a public table")


def _join_public(source: _From, join: exp.Expr, name: str, alias: str, how: str) -> _From:
    table = source.rows.tables[name]
    if alias.lower() in source.aliases:
        raise refuse(join, f"two tables are called {alias!r}")
    first, second = _ends(join)
    if not join.args.get("using"):
        if first[0].lower() == alias.lower():
            first, second = second, first
        if second[0].lower() != alias.lower() or second[1].lower() != (table.key or "").lower():
            raise refuse(join, f"a public table is joined on its key: {alias}.{table.key}")
    elif first[1].lower() != (table.key or "").lower():
        raise refuse(join, f"a public table is joined on its key: {table.key}")
    key = source.names()(*first)
    before = set(scope(source.rows.relation))
    joined = source.rows.join(name, key, how=how)  # type: ignore[arg-type]
    columns = dict(source.columns)
    for c in scope(joined.relation):
        if c not in before:
            columns[alias.lower(), c.lower()] = c
    columns[alias.lower(), (table.key or "").lower()] = key
    return _From(joined, columns, source.aliases | {alias.lower()})


def _join_units(source: _From, join: exp.Expr, rows: Rows, alias: str, how: str) -> _From:
    if alias.lower() in source.aliases:
        raise refuse(join, f"two tables are called {alias!r}; give one of them an alias")
    ours, theirs = scope(source.rows.relation), scope(rows.relation)
    if ours.open or theirs.open:
        raise TacitError(
            "unknown-column",
            "a join needs the names of the tables' columns, and a source is not at hand",
            why="names are public facts; they are read from the header or declared",
            fix='tc.protect(..., types={"patient_id": "text", ...})',
        )
    other = _From(rows, {(alias.lower(), c.lower()): c for c in theirs}, frozenset({alias.lower()}))
    first, second = _ends(join)
    if not join.args.get("using") and first[0].lower() == alias.lower():
        first, second = second, first
    left, right = source.names()(*first), other.names()(*second)
    if left not in ours or right not in theirs or not (ours[left].unit and theirs[right].unit):
        raise TacitError(
            "not-allowed",
            "protected tables are joined on the unit only",
            why="a joined row must still belong to one unit, or one person could change rows of many",
            fix=f"JOIN {alias} ON {first[1]} = {alias}.{source.rows.home.identity.unit}",
        )
    taken = {c.lower() for c in ours}
    renamed = {c: c if c.lower() not in taken else f"{alias}.{c}" for c in theirs}
    brought = Project(rows.relation, tuple((renamed[c], Column(c, theirs[c].kind)) for c in theirs))
    limit = source.rows.limits.joined
    joined: Relation = JoinUnits(source.rows.relation, brought, "left" if how == "left" else "inner", limit)
    columns = dict(source.columns) | {(alias.lower(), c.lower()): renamed[c] for c in theirs}
    made = Rows(source.rows.home, joined, source.rows.limits, source.rows.tables)
    return _From(made, columns, source.aliases | {alias.lower()})
