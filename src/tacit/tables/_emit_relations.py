"""Emit table relations as SQL: the rows of every unit, with the columns that are needed."""

from __future__ import annotations

from tacit.engines import MOST_TEXT
from tacit.errors import TacitError
from tacit.fixes import Choose, Declare, Do
from tacit.tables._algebra import (
    JoinPublic,
    JoinUnits,
    Measure,
    PerUnit,
    Project,
    Relation,
    Scan,
    Where,
    names_unit,
    rows_per_unit,
    scope,
)
from tacit.tables._emit_expressions import expression_sql, number, quantised, quote
from tacit.tables._expressions import Column, Node, names, words_of
from tacit.tables._kinds import kind_of
from tacit.tables._statistics import grid_for

#: The most bytes of text that one column of one unit's pairs holds in a join: 256 MiB.
MOST_JOINED = 1 << 28

__all__ = ["MOST_JOINED", "limited_tables", "ranked", "relation_sql"]


def relation_sql(node: Relation, needed: frozenset[str]) -> str:
    """Write a relation as a SELECT of the owner ``tacit_u`` and the needed columns."""
    columns = "".join(f", {quote(c)}" for c in sorted(needed))
    match node:
        case Scan(table, rows):
            source = quote(table.name if rows is None else f"{table.name} first {rows}")
            return f"SELECT tacit_u{columns} FROM {source}"
        case Where(inner, predicate):
            below = relation_sql(inner, needed | names(predicate))
            return f"SELECT tacit_u{columns} FROM ({below}) WHERE {expression_sql(predicate)}"
        case Project(inner, made):
            wanted = [(name, e) for name, e in made if name in needed]
            below = relation_sql(inner, frozenset().union(*(names(e) for _, e in wanted)))
            listed = "".join(f", {_made(e)} AS {quote(n)}" for n, e in wanted)
            return f"SELECT tacit_u{listed} FROM ({below})"
        case JoinPublic(left, table, on, brought, how):
            return _lookup(left, (table.name, table.key or ""), on, brought, how, needed)
        case JoinUnits(left, right, how, rows):
            return _pairs(left, right, how, rows, needed)
        case PerUnit(inner, by, measures):
            return _per_unit(inner, by, measures, needed)


def _made(node: Node) -> str:
    return quote(node.name) if isinstance(node, Column) and node.kind is None else expression_sql(node)


def _lookup(
    left: Relation,
    table: tuple[str, str],
    on: Node,
    brought: tuple[tuple[str, str], ...],
    how: str,
    needed: frozenset[str],
) -> str:
    """Join a public table. Only one line per key is used, whatever the table holds."""
    wanted = [(name, source) for name, source in brought if name in needed]
    own = needed - {name for name, _ in brought}
    below = relation_sql(left, own | names(on))
    picked = "".join(f", {quote(s)} AS {quote('tacit_p' + str(i))}" for i, (_, s) in enumerate(wanted))
    key = expression_sql(Column(table[1], kind_of(on)))
    order = ", ".join(quote(s) for _, s in wanted) or "1"
    numbered = (
        f"SELECT {key} AS tacit_k{picked}, row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS tacit_r"
    )
    lines = f"SELECT * FROM ({numbered} FROM {quote(table[0])}) WHERE tacit_r = 1"
    outs = "".join(f", a.{quote(c)}" for c in sorted(own)) + "".join(
        f", b.tacit_p{i} AS {quote(n)}" for i, (n, _) in enumerate(wanted)
    )
    join = "LEFT JOIN" if how == "left" else "JOIN"
    looked = f"SELECT *, {expression_sql(on)} AS tacit_k FROM ({below})"
    return f"SELECT tacit_u{outs} FROM ({looked}) a {join} ({lines}) b USING (tacit_k)"


def _pairs(left: Relation, right: Relation, how: str, rows: int | None, needed: frozenset[str]) -> str:
    a_has, b_has = set(scope(left)), set(scope(right))
    keep = needed if rows is None else needed | a_has | b_has
    a_needs, b_needs = frozenset(keep & a_has), frozenset(keep & b_has)
    most = _most_bytes(left, right)
    outs = "".join(f", a.{quote(c)}" for c in sorted(a_needs)) + "".join(
        f", b.{quote(c)}" for c in sorted(b_needs)
    )
    join = "LEFT JOIN" if how == "left" else "JOIN"
    owners = "CAST(a.tacit_u AS VARCHAR) = CAST(b.tacit_u AS VARCHAR)"  # types may differ; no cast fails
    joined = (
        f"SELECT a.tacit_u AS tacit_u{outs} FROM ({_with_short_texts(left, a_needs, most)}) a "
        f"{join} ({_with_short_texts(right, b_needs, most)}) b ON {owners}"
    )
    if rows is None:
        return joined
    every = ", ".join(f"tacit_text({quote(c)})" for c in sorted(keep))
    twins = f"SELECT *, row_number() OVER (PARTITION BY tacit_u, {every}) AS tacit_o FROM ({joined})"
    columns = "".join(f", {quote(c)}" for c in sorted(needed))
    return (
        f"SELECT tacit_u{columns} FROM ({twins}) QUALIFY row_number() OVER "
        f"(PARTITION BY tacit_u ORDER BY {ranked(every + ', tacit_o')}, {every}, tacit_o) <= {rows}"
    )


def _most_bytes(left: Relation, right: Relation) -> int | None:
    """Return how long a text may be in a join, so that the pairs of one unit hold a bounded amount of text.

    None if no text can be longer: a text has at most ``MOST_TEXT`` characters of at most four bytes.
    """
    a, b = rows_per_unit(left), rows_per_unit(right)
    most = MOST_JOINED // max(1, (a or 1) * (b or 1))
    return most if most < 4 * MOST_TEXT else None


def _with_short_texts(node: Relation, needed: frozenset[str], most: int | None) -> str:
    """Write a relation in which texts of more bytes are missing, each decided on its own."""
    below = relation_sql(node, needed)
    if most is None:
        return below
    columns = "".join(f", tacit_short({quote(c)}, {most}) AS {quote(c)}" for c in sorted(needed))
    return f"SELECT tacit_u{columns} FROM ({below})"


def ranked(columns: str) -> str:
    """Write the keyed order among the rows of one unit: a hash of secret key, unit and own values."""
    return f"hash(tacit_key(), CAST(tacit_u AS VARCHAR), {columns})"


def _per_unit(
    inner: Relation, by: tuple[tuple[str, Node], ...], measures: tuple[Measure, ...], needed: frozenset[str]
) -> str:
    wanted = [m for m in measures if m.name in needed]
    arguments = [m.argument for m in wanted if m.argument is not None]
    below = relation_sql(inner, frozenset().union(*(names(e) for e in (*arguments, *(e for _, e in by)))))
    own = [(n, e) for n, e in by if names_unit(inner, ((n, e),))]
    others = [(n, e) for n, e in by if (n, e) not in own]
    keys = "".join(f", {expression_sql(e)} AS {quote(n)}" for n, e in others)
    keys += "".join(f", min({expression_sql(e)}) AS {quote(n)}" for n, e in own)
    grouping = ", ".join(["tacit_u", *(str(i + 2) for i in range(len(others)))])
    made = "".join(f", {_measure(m)} AS {quote(m.name)}" for m in wanted)
    outs = "".join(f", {quote(c)}" for c in sorted(needed))
    return f"SELECT tacit_u{outs} FROM (SELECT tacit_u{keys}{made} FROM ({below}) GROUP BY {grouping})"


def _measure(measure: Measure) -> str:
    """Write one exact number of a unit's own rows. Sums add integers, so the order does not matter."""
    if measure.argument is None:
        return "CAST(count(*) AS DOUBLE)"
    value = expression_sql(measure.argument)
    match measure.function:
        case "count":
            return f"CAST(count({value}) AS DOUBLE)"
        case "count_distinct":
            return f"CAST(count(DISTINCT {value}) AS DOUBLE)"
        case "min" | "max" as function:
            return f"{function}(CASE WHEN NOT isnan({value}) THEN {value} END)"
        case "sum" | "mean":
            if measure.bounds is None:
                raise _missing_bounds(measure.function, measure.argument)
            grid = grid_for(measure.bounds)
            q = quantised(value, grid)
            total = f"CAST(sum({q}) AS DOUBLE) * {number(float(grid.step))}"
            return total if measure.function == "sum" else f"{total} / NULLIF(count({q}), 0)"
        case other:
            raise TacitError(
                "not-allowed",
                f"{other} cannot be computed within a unit",
                fix=Choose(("count", "sum", "mean", "min", "max", "count_distinct"), given=other),
            )


def _missing_bounds(function: str, argument: Node) -> TacitError:
    what = words_of(argument)
    return TacitError(
        "missing-bounds",
        f"{function} of {what} within a unit needs bounds",
        why="public bounds decide the size of the whole steps in which it is computed",
        fix=Declare("bounds", (0, 30), column=what)
        if isinstance(argument, Column)
        else Do("bound-aggregate", expression=what, low="LOW", high="HIGH"),
    )


def limited_tables(node: Relation) -> frozenset[tuple[str, int]]:
    """Return the declared tables with the row limits under which they are read."""
    match node:
        case Scan(table, rows):
            return frozenset() if rows is None else frozenset({(table.name, rows)})
        case JoinUnits(left, right, _, _):
            return limited_tables(left) | limited_tables(right)
        case JoinPublic(left, _, _, _, _):
            return limited_tables(left)
        case Where(inner, _) | Project(inner, _) | PerUnit(inner, _, _):
            return limited_tables(inner)
