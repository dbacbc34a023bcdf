"""Write expressions and relations of tables as SQL that cannot fail on any row, in the dialect of an engine.

A relation is written as the rows of every unit, with the columns that are needed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from tacit.algebra import (
    OPERATORS,
    Call,
    Column,
    JoinPublic,
    JoinUnits,
    Literal,
    Measure,
    Node,
    PerUnit,
    Project,
    Relation,
    Scan,
    ValueGrid,
    Where,
    grid_for,
    kind_of,
    names,
    names_unit,
    rows_per_unit,
    scope,
    words_of,
)
from tacit.engines._values import MOST_TEXT
from tacit.engines.sql._dialect import STORED, Dialect, StoredType
from tacit.errors import TacitError
from tacit.fixes import Choose, Declare, Do

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.core import Fact
    from tacit.engines.sql._dialect import Part


#: How the columns that hold a declared column on its public grids are named, by the bits of the grid.
ON_GRID = {30: "tacit values ", 16: "tacit squares "}

#: The types of a relation's columns, as far as the engine's dialect needs them.
StoredTypes: TypeAlias = Mapping[str, StoredType | None]

_TRUNC = ("year", "quarter", "month", "week", "day", "hour", "minute")
_DIFF = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_FORMAT = re.compile(r"%-?.?", re.DOTALL)
_FORMAT_PARTS = frozenset({
    "%a", "%A", "%w", "%u", "%d", "%-d", "%b", "%B", "%m", "%-m", "%y", "%-y", "%Y", "%H", "%-H", "%I", "%-I",
    "%p", "%M", "%-M", "%S", "%-S", "%j", "%-j", "%U", "%W", "%V", "%G", "%%",
})  # fmt: skip
_MAX_FORMAT = 200
#: The most characters of SQL of one expression, with the computed columns that it reads written out.
_MAX_SQL = 50_000


def grid_columns(facts: Mapping[str, Fact]) -> dict[str, tuple[str, ValueGrid]]:
    """Name the columns that hold the bounded columns of a table on their grids.

    An engine lays them over its source; a snapshot stores them as integers.
    """
    return {
        start + column: (column, grid_for(fact.bounds, bits))
        for column, fact in facts.items()
        if fact.bounds is not None
        for bits, start in ON_GRID.items()
    }


@dataclass(frozen=True, slots=True)
class SqlWriter:
    """Writes expressions in a dialect.

    Parameters
    ----------
    dialect
        The SQL of the engine.
    tables
        The types of the columns of each table's view; none where the dialect does not need them.
    """

    dialect: Dialect
    tables: Mapping[str, StoredTypes] = field(default_factory=dict)

    def expression(self, node: Node, types: StoredTypes) -> str:
        """Write a resolved expression over columns of these types."""
        dialect = self.dialect
        match node:
            case Column(name, kind):  # the result does not depend on the type of the column
                return dialect.read(dialect.quote(name), types.get(name), kind or "text")
            case Literal(None, kind):
                return dialect.null(kind)
            case Literal(bool() as value, _):
                return dialect.truth(value)
            case Literal(value, "number"):
                return dialect.number(float(value or 0))
            case Literal(value, "date"):
                return dialect.moment(str(value))
            case Literal(value, _):
                return dialect.string(str(value))
            case Call(op, args):
                sql = _CALLS[op](self, op, args, types)
                if len(sql) > _MAX_SQL:
                    raise TacitError(
                        "bad-expression",
                        "an expression is too deeply nested",
                        why=f"its SQL would have more than {_MAX_SQL:,} characters",
                        fix="compute it in several steps",
                    )
                return sql

    def all(self, nodes: tuple[Node, ...], types: StoredTypes) -> list[str]:
        """Write several expressions."""
        return [self.expression(node, types) for node in nodes]

    def quantised(self, value: str, grid: ValueGrid) -> str:
        """Write floor(x/step + 1/2), clipped to the grid.

        NULL and NaN are NULL. The result is exact: the step is a power of two, so the grid's ends are
        doubles, x times 2/step loses no digit, and rounding it down gives a whole number of half steps
        (docs/proofs/tables.md).
        """
        limit = Fraction(sys.float_info.max)
        lower, upper, halves = (
            max(grid.lo * grid.step, -limit),
            min(grid.hi * grid.step, limit),
            2 / grid.step,
        )
        return self.dialect.grid(value, float(lower), float(upper), float(halves))


#: How an operator is written: its arguments as SQL, or as checked constants, handed to the dialect.
_Writing: TypeAlias = Callable[[SqlWriter, str, tuple[Node, ...], StoredTypes], str]


def _operator(writer: SqlWriter, op: str) -> Callable[..., str]:
    return getattr(writer.dialect, f"op_{op}")  # type: ignore[no-any-return]


def _plain(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    return _operator(writer, op)(*writer.all(args, types))


def _with_kind(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    """Write a conversion, whose form depends on the kind of its argument."""
    return _operator(writer, op)(writer.expression(args[0], types), kind_of(args[0]))


def _in(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    sql, *others = writer.all(args, types)
    return _operator(writer, op)(sql, others)


def _case(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    a = writer.all(args, types)
    return _operator(writer, op)(list(zip(a[:-1:2], a[1::2], strict=True)), a[-1])


def _with_texts(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    """Write an operator whose arguments after the first are constant texts; a missing one gives NULL."""
    constants = [a.value if isinstance(a, Literal) else None for a in args[1:]]
    if None in constants:
        return writer.dialect.null(kind_of(Call(op, args)))
    return _operator(writer, op)(writer.expression(args[0], types), *map(str, constants))


def _power(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    exponent = args[1].value if isinstance(args[1], Literal) else None
    if exponent is None:
        return writer.dialect.null("number")
    return _operator(writer, op)(writer.expression(args[0], types), float(exponent))


def _round(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    return _operator(writer, op)(writer.expression(args[0], types), _small(args[1], 15))


def _substring(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    start, length = max(1, _small(args[1], 10**6)), max(0, _small(args[2], 10**6))
    return _operator(writer, op)(writer.expression(args[0], types), start, length)


def _right(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    return _operator(writer, op)(writer.expression(args[0], types), max(0, _small(args[1], 10**6)))


def _replace(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    """Write a replacement that cannot outgrow the longest text: where it may grow, its input is cut first."""
    old, new = (str(a.value) if isinstance(a, Literal) else "" for a in args[1:])
    times = max(1, -(-len(new) // max(len(old), 1)))
    text = writer.dialect.op_substring(writer.expression(args[0], types), 1, MOST_TEXT // times)
    return _operator(writer, op)(text, old, new)


def _split_part(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    sign = args[1].value if isinstance(args[1], Literal) else None
    index = max(1, _small(args[2], 10**6))
    if sign is None:
        return writer.dialect.null("text")
    return _operator(writer, op)(writer.expression(args[0], types), str(sign), index)


def _strftime(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    """Write a date in a public format; only parts that every date between the years 1 and 9999 has."""
    form = str(args[1].value) if isinstance(args[1], Literal) else ""
    unknown = [one for one in _FORMAT.findall(form) if one not in _FORMAT_PARTS]
    if unknown or not 0 < len(form) <= _MAX_FORMAT:
        size = "it is too long" if form else "it is empty"  # DuckDB fails on an empty one
        raise TacitError(
            "bad-expression",
            f"strftime cannot use the format {form[:40]!r}",
            why=f"{unknown[0]} is not a part of a date that Tacit writes" if unknown else size,
            fix=Choose(tuple(sorted(_FORMAT_PARTS)), given=unknown[0] if unknown else ""),
        )
    return _operator(writer, op)(writer.expression(args[0], types), form)


def _with_part(allowed: tuple[str, ...]) -> _Writing:
    def written(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
        part = str(args[0].value).lower() if isinstance(args[0], Literal) else ""
        if part not in allowed:
            raise TacitError(
                "bad-expression",
                f"{op} cannot use the part {part[:20]!r}",
                fix=Choose(allowed, given=part[:20]),
            )
        return _operator(writer, op)(part, *writer.all(args[1:], types))

    return written


def _add_months(writer: SqlWriter, op: str, args: tuple[Node, ...], types: StoredTypes) -> str:
    return _operator(writer, op)(writer.expression(args[0], types), _small(args[1], 120_000))


def _small(node: Node, limit: int) -> int:
    value = node.value if isinstance(node, Literal) else None
    if not isinstance(value, int | float) or value != int(value) or abs(value) > limit:
        raise TacitError(
            "bad-expression",
            f"a whole number between -{limit} and {limit} is needed here",
            fix="a whole number such as 2",
        )
    return int(value)


#: The operators that are not a plain function of their arguments' SQL.
_OTHERS: dict[str, _Writing] = {
    **dict.fromkeys(("to_number", "to_whole", "to_text", "to_boolean", "to_date"), _with_kind),
    **dict.fromkeys(("position", "like", "starts_with", "ends_with", "contains"), _with_texts),
    "in": _in, "case": _case, "power": _power, "round": _round, "substring": _substring, "right": _right,
    "replace": _replace, "split_part": _split_part, "strftime": _strftime, "add_months": _add_months,
    "date_trunc": _with_part(_TRUNC), "date_diff": _with_part(_DIFF),
}  # fmt: skip
_CALLS: dict[str, _Writing] = {op: _OTHERS.get(op, _plain) for op in OPERATORS}


#: Characters of an expression with its computed columns written out: more than random plans need anywhere.
MAX_WRITTEN_OUT = 75_000
#: The most bytes of text that one column of one unit's pairs holds in a join: 256 MiB.
MAX_JOINED = 1 << 28


@dataclass(frozen=True, slots=True)
class QuestionWriter(SqlWriter):
    """Writes the statements of one question.

    An expression is written once, although its length is checked before it is used. Expressions and relations
    are told apart by identity, since 1 equals True; they are kept, so that no other one gets their identity.
    """

    _types: dict[int, tuple[Relation, StoredTypes]] = field(default_factory=dict)
    _expressions: dict[tuple[int, int], tuple[Relation, Node, str]] = field(default_factory=dict)

    def types(self, relation: Relation) -> StoredTypes:
        """Return the types of a relation's columns."""
        entry = self._types.get(id(relation))
        if entry is None:
            entry = self._types[id(relation)] = relation, _stored_types(self, relation)
        return entry[1]

    def over(self, relation: Relation, node: Node) -> str:
        """Write an expression over the columns of a relation."""
        at = id(relation), id(node)
        entry = self._expressions.get(at)
        if entry is None:
            entry = self._expressions[at] = relation, node, self.expression(node, self.types(relation))
        return entry[2]


def _stored_types(writer: QuestionWriter, node: Relation) -> StoredTypes:
    match node:
        case Scan(table, _):
            return writer.tables.get(table.name, {})
        case Where(inner, _):
            return writer.types(inner)
        case Project(inner, made):
            below = writer.types(inner)
            return {name: below.get(e.name) if _is_passed_on(e) else _computed_type(e) for name, e in made}
        case JoinPublic(left, table, _, brought, _):
            shared = writer.tables.get(table.name, {})
            return {**writer.types(left), **{name: shared.get(source) for name, source in brought}}
        case JoinUnits(left, right, _, _):
            return {**writer.types(left), **writer.types(right)}
        case PerUnit(_, by, measures):
            keys = {name: _computed_type(e) for name, e in by}
            return {**keys, **{measure.name: "float" for measure in measures}}


def _is_passed_on(node: Node) -> TypeGuard[Column]:
    return isinstance(node, Column) and node.kind is None


def _computed_type(node: Node) -> StoredType:
    return STORED[kind_of(node) or "text"]


def check_lengths(writer: QuestionWriter, node: Relation, nodes: Iterable[Node]) -> None:
    """Refuse expressions that are too long once the computed columns that they read are written out.

    An engine does that before it reads a row. A column that uses the one before it twice doubles, and so does
    the next one: without this limit, a short question could keep an engine busy for ever after its charge.
    """
    below = _lengths(writer, node)
    for expression in nodes:
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
    sql = writer.over(relation, node)
    columns = names(node) & below.keys() if below else ()
    computed = [(writer.dialect.quote(name), below[name]) for name in columns]
    length = len(sql) + sum(sql.count(column) * own for column, own in computed)
    if length > MAX_WRITTEN_OUT:
        raise TacitError(
            "question-too-large",
            f"with its computed columns written out, an expression would have {length:,} characters of SQL, "
            f"but only {MAX_WRITTEN_OUT:,} are allowed",
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
            expressions = [(name, e) for name, e in made if name in needed]
            below = relation_sql(writer, inner, frozenset().union(*(names(e) for _, e in expressions)))
            columns_sql = "".join(
                f", {quote(e.name) if _is_passed_on(e) else writer.over(inner, e)} AS {quote(n)}"
                for n, e in expressions
            )
            return f"SELECT tacit_u{columns_sql} FROM ({below})"
        case JoinPublic():
            return _lookup(writer, node, needed)
        case JoinUnits():
            return _pairs(writer, node, needed)
        case PerUnit():
            return _per_unit(writer, node, needed)


def _lookup(writer: QuestionWriter, node: JoinPublic, needed: frozenset[str]) -> str:
    """Join a public table. Only one line per key is used, whatever the table holds."""
    quote = writer.dialect.quote
    columns = [(name, source) for name, source in node.columns if name in needed]
    needed_left = needed - {name for name, _ in node.columns}
    below = relation_sql(writer, node.left, needed_left | names(node.on))
    picked = "".join(f", {quote(s)} AS {quote('tacit_p' + str(i))}" for i, (_, s) in enumerate(columns))
    table = node.table
    key = writer.expression(Column(table.key or "", kind_of(node.on)), writer.tables.get(table.name, {}))
    order = writer.dialect.order([quote(s) for _, s in columns] or ["1"])
    numbered = (
        f"SELECT {key} AS tacit_k{picked}, row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS tacit_r"
    )
    lines = f"SELECT * FROM ({numbered} FROM {quote(table.name)}) WHERE tacit_r = 1"
    outs = "".join(f", a.{quote(c)}" for c in sorted(needed_left)) + "".join(
        f", b.tacit_p{i} AS {quote(n)}" for i, (n, _) in enumerate(columns)
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
    limit = _most_bytes(node)
    outs = "".join(f", a.{quote(c)}" for c in sorted(a_needs)) + "".join(
        f", b.{quote(c)}" for c in sorted(b_needs)
    )
    join = "LEFT JOIN" if node.how == "left" else "JOIN"
    owners = f"{dialect.owner_text('a.tacit_u')} = {dialect.owner_text('b.tacit_u')}"  # types may differ
    joined = (
        f"SELECT a.tacit_u AS tacit_u{outs} FROM ({_with_short_texts(writer, node.left, a_needs, limit)}) a "
        f"{join} ({_with_short_texts(writer, node.right, b_needs, limit)}) b ON {owners}"
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
    limit = MAX_JOINED // max(1, (a or 1) * (b or 1))
    return limit if limit < 4 * MOST_TEXT else None


def _with_short_texts(
    writer: QuestionWriter, node: Relation, needed: frozenset[str], limit: int | None
) -> str:
    """Write a relation in which texts of more bytes are missing, each decided on its own."""
    below = relation_sql(writer, node, needed)
    if limit is None:
        return below
    quote, types = writer.dialect.quote, writer.types(node)
    columns = "".join(
        f", {writer.dialect.short(quote(c), types.get(c), limit)} AS {quote(c)}" for c in sorted(needed)
    )
    return f"SELECT tacit_u{columns} FROM ({below})"


def _per_unit(writer: QuestionWriter, node: PerUnit, needed: frozenset[str]) -> str:
    dialect, quote = writer.dialect, writer.dialect.quote
    measures = [m for m in node.measures if m.name in needed]
    arguments = [m.argument for m in measures if m.argument is not None]
    columns = frozenset().union(*(names(e) for e in (*arguments, *(e for _, e in node.by))))
    below = relation_sql(writer, node.input, columns)
    owner_columns = [(n, e) for n, e in node.by if names_unit(node.input, ((n, e),))]
    others = [(n, e) for n, e in node.by if (n, e) not in owner_columns]
    keys = "".join(f", {writer.over(node.input, e)} AS {quote(n)}" for n, e in others)
    keys += "".join(
        f", {dialect.least_of(writer.over(node.input, e), kind_of(e))} AS {quote(n)}"
        for n, e in owner_columns
    )
    grouping = ", ".join(["tacit_u", *(str(i + 2) for i in range(len(others)))])
    measures_sql = "".join(f", {_measure(writer, m, node.input)} AS {quote(m.name)}" for m in measures)
    outs = "".join(f", {quote(c)}" for c in sorted(needed))
    return (
        f"SELECT tacit_u{outs} FROM (SELECT tacit_u{keys}{measures_sql} FROM ({below}) GROUP BY {grouping})"
    )


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
    expression = words_of(argument)
    return TacitError(
        "missing-bounds",
        f"{function} of {expression} within a unit needs bounds",
        why="Tacit rounds the values to steps, and the bounds set the size of a step",
        fix=Declare("bounds", (0, 30), column=expression)
        if isinstance(argument, Column)
        else Do("bound-aggregate", expression=expression, low="LOW", high="HIGH"),
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
