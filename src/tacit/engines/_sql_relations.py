"""Write table relations as SQL: the rows of every unit, with the columns that are needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard

from tacit.algebra import (
    Column,
    JoinPublic,
    JoinUnits,
    Measure,
    Node,
    PerUnit,
    Project,
    Relation,
    Scan,
    Where,
    grid_for,
    kind_of,
    names,
    names_unit,
    rows_per_unit,
    scope,
    words_of,
)
from tacit.engines._dialect import STORED
from tacit.engines._sql_expressions import SqlWriter
from tacit.engines._values import MOST_TEXT
from tacit.errors import TacitError
from tacit.fixes import Choose, Declare, Do

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tacit.engines._dialect import Part, StoredType
    from tacit.engines._sql_expressions import StoredTypes

#: Characters of an expression with its computed columns written out: more than random plans need anywhere.
MOST_WRITTEN_OUT = 75_000
#: The most bytes of text that one column of one unit's pairs holds in a join: 256 MiB.
MOST_JOINED = 1 << 28


@dataclass(frozen=True, slots=True)
class QuestionWriter(SqlWriter):
    """Writes the statements of one question.

    An expression is written once, although its length is checked before it is used. Expressions and relations
    are told apart by identity, since 1 equals True; they are kept, so that no other one gets their identity.
    """

    _types: dict[int, tuple[Relation, StoredTypes]] = field(default_factory=dict)
    _written: dict[tuple[int, int], tuple[Relation, Node, str]] = field(default_factory=dict)

    def types(self, relation: Relation) -> StoredTypes:
        """Return the types of a relation's columns."""
        known = self._types.get(id(relation))
        if known is None:
            known = self._types[id(relation)] = relation, _stored_types(self, relation)
        return known[1]

    def over(self, relation: Relation, node: Node) -> str:
        """Write an expression over the columns of a relation."""
        at = id(relation), id(node)
        known = self._written.get(at)
        if known is None:
            known = self._written[at] = relation, node, self.expression(node, self.types(relation))
        return known[2]


def _stored_types(writer: QuestionWriter, node: Relation) -> StoredTypes:
    match node:
        case Scan(table, _):
            return writer.tables.get(table.name, {})
        case Where(inner, _):
            return writer.types(inner)
        case Project(inner, made):
            below = writer.types(inner)
            return {name: below.get(e.name) if _is_passed_on(e) else _made_type(e) for name, e in made}
        case JoinPublic(left, table, _, brought, _):
            shared = writer.tables.get(table.name, {})
            return {**writer.types(left), **{name: shared.get(source) for name, source in brought}}
        case JoinUnits(left, right, _, _):
            return {**writer.types(left), **writer.types(right)}
        case PerUnit(_, by, measures):
            keys = {name: _made_type(e) for name, e in by}
            return {**keys, **{measure.name: "float" for measure in measures}}


def _is_passed_on(node: Node) -> TypeGuard[Column]:
    return isinstance(node, Column) and node.kind is None


def _made_type(node: Node) -> StoredType:
    return STORED[kind_of(node) or "text"]


def check_lengths(writer: QuestionWriter, node: Relation, read: Iterable[Node]) -> None:
    """Refuse expressions that are too long once the computed columns that they read are written out.

    An engine does that before it reads a row. A column that uses the one before it twice doubles, and so does
    the next one: without this limit, a short question could keep an engine busy for ever after its charge.
    """
    below = _lengths(writer, node)
    for expression in read:
        _length(writer, node, expression, below)


def _lengths(writer: QuestionWriter, node: Relation) -> dict[str, int]:
    """Return how long the columns of a relation are, written out; those that are stored are left out."""
    match node:
        case Scan():
            return {}
        case Where(inner, predicate):
            below = _lengths(writer, inner)
            _length(writer, inner, predicate, below)
            return below
        case Project(inner, made):
            below = _lengths(writer, inner)
            return {name: _length(writer, inner, e, below) for name, e in made if not _is_stored(e, below)}
        case JoinPublic(left, _, on, _, _):
            below = _lengths(writer, left)
            _length(writer, left, on, below)
            return below
        case JoinUnits(left, right, _, _):
            return {**_lengths(writer, left), **_lengths(writer, right)}
        case PerUnit(inner, by, measures):
            arguments = (measure.argument for measure in measures if measure.argument is not None)
            check_lengths(writer, inner, (*(e for _, e in by), *arguments))
            return {}  # an engine computes one row for each unit before it reads them


def _is_stored(node: Node, below: Mapping[str, int]) -> bool:
    return isinstance(node, Column) and node.name not in below


def _length(writer: QuestionWriter, relation: Relation, node: Node, below: Mapping[str, int]) -> int:
    """Return how long an expression is with its computed columns written out; refuse one that is too long."""
    if _is_passed_on(node):
        return below.get(node.name, 0)
    written = writer.over(relation, node)
    read = names(node) & below.keys() if below else ()
    computed = [(writer.dialect.quote(name), below[name]) for name in read]
    length = len(written) + sum(written.count(column) * own for column, own in computed)
    if length > MOST_WRITTEN_OUT:
        raise TacitError(
            "question-too-large",
            f"with its computed columns written out, an expression would have {length:,} characters of SQL, "
            f"but only {MOST_WRITTEN_OUT:,} are allowed",
            why="a column that uses the computed column before it twice is twice as long, at each step",
            fix="fewer steps, each of which uses the computed column before it once",
        )
    return length


def relation_sql(writer: QuestionWriter, node: Relation, needed: frozenset[str]) -> str:
    """Write a relation as a SELECT of the owner ``tacit_u`` and the needed columns."""
    quote = writer.dialect.quote
    columns = "".join(f", {quote(c)}" for c in sorted(needed))
    match node:
        case Scan(table, rows):
            source = quote(table.name if rows is None else f"{table.name} first {rows}")
            return f"SELECT tacit_u{columns} FROM {source}"
        case Where(inner, predicate):
            below = relation_sql(writer, inner, needed | names(predicate))
            condition = writer.over(inner, predicate)
            return f"SELECT tacit_u{columns} FROM ({below}) WHERE {condition}"
        case Project(inner, made):
            wanted = [(name, e) for name, e in made if name in needed]
            below = relation_sql(writer, inner, frozenset().union(*(names(e) for _, e in wanted)))
            listed = "".join(
                f", {quote(e.name) if _is_passed_on(e) else writer.over(inner, e)} AS {quote(n)}"
                for n, e in wanted
            )
            return f"SELECT tacit_u{listed} FROM ({below})"
        case JoinPublic():
            return _lookup(writer, node, needed)
        case JoinUnits():
            return _pairs(writer, node, needed)
        case PerUnit():
            return _per_unit(writer, node, needed)


def _lookup(writer: QuestionWriter, node: JoinPublic, needed: frozenset[str]) -> str:
    """Join a public table. Only one line per key is used, whatever the table holds."""
    quote = writer.dialect.quote
    wanted = [(name, source) for name, source in node.columns if name in needed]
    own = needed - {name for name, _ in node.columns}
    below = relation_sql(writer, node.left, own | names(node.on))
    picked = "".join(f", {quote(s)} AS {quote('tacit_p' + str(i))}" for i, (_, s) in enumerate(wanted))
    table = node.table
    key = writer.expression(Column(table.key or "", kind_of(node.on)), writer.tables.get(table.name, {}))
    order = writer.dialect.order([quote(s) for _, s in wanted] or ["1"])
    numbered = (
        f"SELECT {key} AS tacit_k{picked}, row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS tacit_r"
    )
    lines = f"SELECT * FROM ({numbered} FROM {quote(table.name)}) WHERE tacit_r = 1"
    outs = "".join(f", a.{quote(c)}" for c in sorted(own)) + "".join(
        f", b.tacit_p{i} AS {quote(n)}" for i, (n, _) in enumerate(wanted)
    )
    join = "LEFT JOIN" if node.how == "left" else "JOIN"
    looked = writer.over(node.left, node.on)
    return (
        f"SELECT tacit_u{outs} FROM (SELECT *, {looked} AS tacit_k FROM ({below})) a "
        f"{join} ({lines}) b USING (tacit_k)"
    )


def _pairs(writer: QuestionWriter, node: JoinUnits, needed: frozenset[str]) -> str:
    dialect = writer.dialect
    quote = dialect.quote
    a_has, b_has = set(scope(node.left)), set(scope(node.right))
    keep = needed if node.rows is None else needed | a_has | b_has
    a_needs, b_needs = frozenset(keep & a_has), frozenset(keep & b_has)
    most = _most_bytes(node)
    outs = "".join(f", a.{quote(c)}" for c in sorted(a_needs)) + "".join(
        f", b.{quote(c)}" for c in sorted(b_needs)
    )
    join = "LEFT JOIN" if node.how == "left" else "JOIN"
    owners = f"{dialect.owner_text('a.tacit_u')} = {dialect.owner_text('b.tacit_u')}"  # types may differ
    joined = (
        f"SELECT a.tacit_u AS tacit_u{outs} FROM ({_with_short_texts(writer, node.left, a_needs, most)}) a "
        f"{join} ({_with_short_texts(writer, node.right, b_needs, most)}) b ON {owners}"
    )
    if node.rows is None:
        return joined
    types = writer.types(node)
    every = [dialect.text(quote(c), types.get(c)) for c in sorted(keep)]
    twins = dialect.twins(joined, ["tacit_u", *every], "tacit_o")
    parts: list[Part] = [*((text, "text") for text in every), ("tacit_o", "whole")]
    order = f"{dialect.ranked(parts)}, {dialect.order([*every, 'tacit_o'])}"
    columns = ["tacit_u", *(quote(c) for c in sorted(needed))]
    return dialect.first_rows(twins, columns, ["tacit_u"], order, node.rows)


def _most_bytes(node: JoinUnits) -> int | None:
    """Return how long a text may be in a join, so that the pairs of one unit hold a bounded amount of text.

    None if no text can be longer: a text has at most ``MOST_TEXT`` characters of at most four bytes.
    """
    a, b = rows_per_unit(node.left), rows_per_unit(node.right)
    most = MOST_JOINED // max(1, (a or 1) * (b or 1))
    return most if most < 4 * MOST_TEXT else None


def _with_short_texts(
    writer: QuestionWriter, node: Relation, needed: frozenset[str], most: int | None
) -> str:
    """Write a relation in which texts of more bytes are missing, each decided on its own."""
    below = relation_sql(writer, node, needed)
    if most is None:
        return below
    quote, types = writer.dialect.quote, writer.types(node)
    columns = "".join(
        f", {writer.dialect.short(quote(c), types.get(c), most)} AS {quote(c)}" for c in sorted(needed)
    )
    return f"SELECT tacit_u{columns} FROM ({below})"


def _per_unit(writer: QuestionWriter, node: PerUnit, needed: frozenset[str]) -> str:
    dialect, quote = writer.dialect, writer.dialect.quote
    wanted = [m for m in node.measures if m.name in needed]
    arguments = [m.argument for m in wanted if m.argument is not None]
    read = frozenset().union(*(names(e) for e in (*arguments, *(e for _, e in node.by))))
    below = relation_sql(writer, node.input, read)
    own = [(n, e) for n, e in node.by if names_unit(node.input, ((n, e),))]
    others = [(n, e) for n, e in node.by if (n, e) not in own]
    keys = "".join(f", {writer.over(node.input, e)} AS {quote(n)}" for n, e in others)
    keys += "".join(
        f", {dialect.least_of(writer.over(node.input, e), kind_of(e))} AS {quote(n)}" for n, e in own
    )
    grouping = ", ".join(["tacit_u", *(str(i + 2) for i in range(len(others)))])
    made = "".join(f", {_measure(writer, m, node.input)} AS {quote(m.name)}" for m in wanted)
    outs = "".join(f", {quote(c)}" for c in sorted(needed))
    return f"SELECT tacit_u{outs} FROM (SELECT tacit_u{keys}{made} FROM ({below}) GROUP BY {grouping})"


def _measure(writer: QuestionWriter, measure: Measure, rows: Relation) -> str:
    """Write one exact number of a unit's own rows. Sums add integers, so the order does not matter."""
    dialect = writer.dialect
    if measure.argument is None:
        return dialect.to_double("count(*)")
    value = writer.over(rows, measure.argument)
    match measure.function:
        case "count":
            return dialect.to_double(f"count({value})")
        case "count_distinct":
            return dialect.to_double(f"count(DISTINCT {value})")
        case "min" | "max" as function:
            return f"{function}({dialect.present(value)})"
        case "sum" | "mean":
            if measure.bounds is None:
                raise _missing_bounds(measure.function, measure.argument)
            grid = grid_for(measure.bounds)
            q = writer.quantised(value, grid)
            summed = dialect.sum_or_null(q)
            total = dialect.op_mul(dialect.to_double(summed), dialect.number(float(grid.step)))
            return (
                total
                if measure.function == "sum"
                else dialect.op_div(total, dialect.to_double(f"count({q})"))
            )
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
        why="Tacit rounds the values to steps, and the bounds set the size of a step",
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
