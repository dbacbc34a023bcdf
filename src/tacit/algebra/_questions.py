"""The algebra of table questions: relations whose every row is owned by one unit, and what is asked.

Invariant (proved for each node in docs/proofs/tables.md)
---------------------------------------------------------
The rows of a relation that unit u owns are a function of u's own rows in the declared tables, of public
tables and of the secret ranking key; never of another unit's rows and never of positions. `rows_per_unit`
bounds their number. So adding or removing a unit adds or removes at most that many rows and changes no
other row.

The values of a group's key are public as far as its form and declared facts show them (`keys_of`). There may
be very many groups whose keys are private, of which few are shown. So an engine returns their integers in
parts (`part_of`): all of them while they are few, else by size, and only those that are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias
from typing import Literal as OneOf

from tacit.algebra._expressions import OPERATORS, Call, Column, Literal, Node
from tacit.algebra._kinds import DATE_PARTS, Scope, bounds_of, kind_of, resolve
from tacit.core import Fact, Table
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.core import JSON


_MAX_KEYS = 1000

_NAMES: dict[str, tuple[str, ...]] = {
    "dayname": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "monthname": (
        "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
        "November", "December",
    ),
}  # fmt: skip


def _digits(start: int, end: int, width: int) -> tuple[str, ...]:
    return tuple(f"{n:0{width}}" for n in range(start, end + 1))


#: The texts that a format of one part can have.
_FORMATS: dict[str, tuple[str, ...]] = {
    "%A": _NAMES["dayname"], "%a": tuple(name[:3] for name in _NAMES["dayname"]),
    "%B": _NAMES["monthname"], "%b": tuple(name[:3] for name in _NAMES["monthname"]),
    "%m": _digits(1, 12, 2), "%d": _digits(1, 31, 2), "%H": _digits(0, 23, 2), "%I": _digits(1, 12, 2),
    "%M": _digits(0, 59, 2), "%S": _digits(0, 59, 2), "%j": _digits(1, 366, 3), "%u": _digits(1, 7, 1),
    "%w": _digits(0, 6, 1), "%p": ("AM", "PM"),
}  # fmt: skip


def keys_of(node: Node, scope: Scope) -> tuple[object, ...] | None:
    """Return the public keys of an expression if they follow from its form, otherwise None.

    A column has its declared keys. CASE and COALESCE have those of all their values, if all are known: a
    constant is its own key, and NULL is none. Conditions, weekdays, months, hours and similar parts of dates
    have the values that they can have.

    Examples
    --------
    >>> from tacit.algebra._kinds import Scope
    >>> keys_of(Call("quarter", (Column("day"),)), Scope({}))
    (1.0, 2.0, 3.0, 4.0)
    """
    match node:
        case Column(name, _):
            fact = scope[name] if name in scope else Fact()
            return (False, True) if fact.keys is None and fact.kind == "boolean" else fact.keys
        case Literal(value, _):
            return () if value is None else (value,)
        case Call("case" as op, args) | Call("coalesce" as op, args):
            values = (*args[1::2], args[-1]) if op == "case" else args
            branches = [keys_of(a, scope) for a in values]
            merged = dict.fromkeys(key for keys in branches for key in keys or ())
            if not can_be_missing(node, scope):
                merged.pop(None, None)
            return None if None in branches else tuple(merged)
        case Call():
            return _by_form(node)


def _by_form(node: Call) -> tuple[object, ...] | None:
    """Return the values that a condition, or a part of a date, can have."""
    match node:
        case Call(op, _) if op in _NAMES:
            return _NAMES[op]
        case Call("strftime", (_, Literal(str() as form))):
            return _FORMATS.get(form)
        case Call(op, _) if op in DATE_PARTS:
            low, high = DATE_PARTS[op]
            return tuple(float(n) for n in range(int(low), int(high) + 1))
        case Call(op, _) if op in OPERATORS and OPERATORS[op].gives == "boolean":
            return False, True
        case _:
            return None


def whole_numbers(node: Node, scope: Scope) -> range | None:
    """Return the whole numbers that an expression can have between public bounds; None where that is unknown.

    Examples
    --------
    >>> from tacit.core import Fact
    >>> from tacit.algebra._kinds import Scope
    >>> facts = Scope({"age": Fact(bounds=(0, 80))})
    >>> tens = Call("floor", (Call("div", (Column("age", "number"), Literal(10.0, "number"))),))
    >>> whole_numbers(Call("mul", (tens, Literal(10.0, "number"))), facts)
    range(0, 81, 10)
    """
    match node:
        case Call("floor" | "ceil" | "trunc" | "to_whole", (inner,)):
            below, bounds = whole_numbers(inner, scope), bounds_of(node, scope)
            if below is not None or bounds is None or not 0 < bounds[1] - bounds[0] < _MAX_KEYS:
                return below
            return range(int(bounds[0]), int(bounds[1]) + 1)
        case Call("mul", (inner, Literal(float() | int() as by))) | Call(
            "mul", (Literal(float() | int() as by), inner)
        ):
            below = whole_numbers(inner, scope)
            if below is None or by != int(by) or by <= 0:
                return None
            step = below.step * int(by)
            return range(below[0] * int(by), below[-1] * int(by) + 1, step)
        case _:
            return None


def can_be_missing(node: Node, scope: Scope) -> bool:
    """Return whether an expression may have no value in some row, as far as its form and the facts show."""
    match node:
        case Column(name, _):
            return not (scope[name].never_null or scope[name].unit)
        case Literal(value, _):
            return value is None
        case Call("case", args):
            return any(can_be_missing(a, scope) for a in (*args[1::2], args[-1]))
        case Call("coalesce", args):
            return all(can_be_missing(a, scope) for a in args)
        case Call(op, _):
            return op != "is_null"


How: TypeAlias = OneOf["inner", "left"]
#: Marks a field that documents leave out where it has its default, so that older documents stay the same.
OPTIONAL = {"optional": True}

#: The most joins in one question. A subquery that is joined with itself counts twice.
MOST_JOINS = 16


@dataclass(frozen=True, slots=True)
class Scan:
    """The rows of a declared table, at most ``rows`` of each unit. Rows without a unit are dropped first."""

    table: Table
    rows: int | None


@dataclass(frozen=True, slots=True)
class Where:
    """The rows for which the predicate is true."""

    input: Relation
    predicate: Node


@dataclass(frozen=True, slots=True)
class Project:
    """New columns for old ones, row by row. Facts survive only where a column is passed on as it is."""

    input: Relation
    columns: tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class JoinUnits:
    """Pairs of rows of one unit: the limits multiply, or ``rows`` limits the result."""

    left: Relation
    right: Relation
    how: How
    rows: int | None

    def __post_init__(self) -> None:
        _check_joins(self)


@dataclass(frozen=True, slots=True)
class JoinPublic:
    """Columns of a public table, looked up by a key that is unique there; one line per key is used."""

    left: Relation
    table: Table
    on: Node
    columns: tuple[tuple[str, str], ...]
    how: How

    def __post_init__(self) -> None:
        _check_joins(self)


@dataclass(frozen=True, slots=True)
class Measure:
    """One exact number per unit.

    ``count``, ``sum``, ``mean``, ``min``, ``max`` or ``count_distinct`` of its rows.
    """

    name: str
    function: str
    argument: Node | None
    bounds: tuple[Fraction, Fraction] | None

    @property
    def counts(self) -> bool:
        """Whether it counts rows or values."""
        return self.function in {"count", "count_distinct"}


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit (and each value of ``by`` among its rows), still owned by that unit."""

    input: Relation
    by: tuple[tuple[str, Node], ...]
    measures: tuple[Measure, ...]


Relation: TypeAlias = Scan | Where | Project | JoinUnits | JoinPublic | PerUnit


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """Aggregates of a relation per group. ``keys`` None with groups: keys are selected privately.

    A public key may be None: the group of the rows whose value is missing. Where keys are selected privately,
    ``missing`` says whether these rows can be a group.
    ``levels`` says which totals are shown; they are read off the groups and are not part of what is measured.
    Of the units, a ``sample`` is kept: each with this probability, in 2^-32.
    """

    input: Relation
    by: tuple[tuple[str, Node], ...]
    keys: tuple[tuple[object, ...], ...] | None
    aggregates: tuple[tuple[str, Any], ...]  # the aggregates of `tacit.tables`
    groups: int | None
    per_group: int | None
    missing: bool = field(default=False, metadata=OPTIONAL)
    levels: tuple[tuple[int, ...], ...] = field(default=(), metadata=OPTIONAL)
    sample: int | None = field(default=None, metadata=OPTIONAL)

    @property
    def groups_missing(self) -> bool:
        """Whether rows whose value is missing can be a group."""
        return self.missing or any(None in key for key in self.keys or ())

    @property
    def private_keys(self) -> bool:
        """Whether which groups exist is private, so that they are selected with noise."""
        return bool(self.by) and self.keys is None


def rows_per_unit(node: Relation) -> int | None:
    """Return the most rows one unit can own in a relation; None where nothing bounds it."""
    return _scope_and_rows(node)[1]


def joins_of(node: Relation) -> Iterator[JoinUnits | JoinPublic]:
    """Return every join of a relation, as often as it is computed."""
    match node:
        case JoinUnits(left, right, _, _):
            yield node
            yield from joins_of(left)
            yield from joins_of(right)
        case JoinPublic(left, _, _, _, _):
            yield node
            yield from joins_of(left)
        case Where(inner, _) | Project(inner, _) | PerUnit(inner, _, _):
            yield from joins_of(inner)


def scans_of(node: Relation) -> Iterator[Scan]:
    """Return the protected tables that a relation reads, as often as it reads them."""
    match node:
        case Scan():
            yield node
        case JoinUnits(left, right, _, _):
            yield from scans_of(left)
            yield from scans_of(right)
        case JoinPublic(left, _, _, _, _):
            yield from scans_of(left)
        case Where(inner, _) | Project(inner, _) | PerUnit(inner, _, _):
            yield from scans_of(inner)


def with_rows(node: Relation, rows: int, tables: frozenset[str]) -> Relation:
    """Return a relation that reads at most so many rows of a unit in each of these tables."""
    match node:
        case Scan(table, _):
            return Scan(table, rows) if table.name in tables else node
        case Where() | Project() | PerUnit():
            return replace(node, input=with_rows(node.input, rows, tables))
        case JoinPublic():
            return replace(node, left=with_rows(node.left, rows, tables))
        case JoinUnits(left_side, right, _, _):
            left_side, right = with_rows(left_side, rows, tables), with_rows(right, rows, tables)
            return replace(node, left=left_side, right=right)


def _check_joins(join: JoinUnits | JoinPublic) -> None:
    """Refuse too many joins while a question is built: joined with itself, a question doubles each time."""
    if sum(1 for _ in joins_of(join)) > MOST_JOINS:
        raise TacitError(
            "question-too-large",
            f"a question can have at most {MOST_JOINS} joins",
            why="each join makes the question larger, and a question that is joined with itself doubles",
            fix="divide it into several questions",
        )


def names_unit(inner: Relation, by: tuple[tuple[str, Node], ...]) -> bool:
    """Whether all these columns are the unit's own name, so that a unit has one value of them."""
    return _names_unit(scope(inner), by)


def _names_unit(facts: Scope, by: tuple[tuple[str, Node], ...]) -> bool:
    return all(isinstance(e, Column) and facts[e.name].unit for _, e in by)


def of_each_unit(inner: Relation, by: tuple[tuple[str, Node], ...], measures: tuple[Measure, ...]) -> PerUnit:
    """Aggregate the rows of each unit. Where one row of each unit is left, all its rows are read.

    Then the row limit would bound nothing, it would only drop rows. Joins keep it: the rows of a unit
    multiply there.
    """
    return PerUnit(_complete(inner) if names_unit(inner, by) else inner, by, measures)


def _complete(node: Relation) -> Relation:
    """Return a relation without the row limits of its tables."""
    match node:
        case Scan(table, _):
            return Scan(table, None)
        case Where() | Project() | PerUnit():
            return replace(node, input=_complete(node.input))
        case JoinPublic():
            return replace(node, left=_complete(node.left))
        case JoinUnits():
            return node


def source_of(node: Relation, column: str) -> tuple[str, str] | None:
    """Return the protected table and the column whose values a column of a relation has, untouched.

    Returns None for what is computed, aggregated or looked up.
    """
    match node:
        case Scan(table, _):
            return table.name, column
        case Where(inner, _):
            return source_of(inner, column)
        case Project(inner, columns):
            kept = dict(columns).get(column)
            return source_of(inner, kept.name) if isinstance(kept, Column) else None
        case JoinPublic(left, _, _, columns, _):
            return None if column in dict(columns) else source_of(left, column)
        case JoinUnits(left, right, _, _):
            return source_of(left if column in scope(left) else right, column)
        case PerUnit():
            return None


def sources_of(node: Relation) -> tuple[Table, ...]:
    """Return the declared tables that a relation reads, protected and public."""
    match node:
        case Scan(table, _):
            return (table,)
        case JoinUnits(left, right, _, _):
            return (*sources_of(left), *sources_of(right))
        case JoinPublic(left, table, _, _, _):
            return (*sources_of(left), table)
        case Where(inner, _) | Project(inner, _) | PerUnit(inner, _, _):
            return sources_of(inner)


def scope(node: Relation) -> Scope:
    """Return the columns of a relation with the facts that still hold."""
    return _scope_and_rows(node)[0]


def _scope_and_rows(node: Relation) -> tuple[Scope, int | None]:
    """Return the columns of a relation, and the most rows one unit can own in it.

    Each of the two needs the other one of the relation below. So both are found at once, in one step for each
    level: apart, they would double the time with each level.
    """
    match node:
        case Scan(table, rows):
            if table.columns is None:
                return Scope({c: table.fact(c) for c in table.facts}, open=True), rows
            return Scope({c: table.fact(c) for c in table.columns}), rows
        case Where(inner, _):
            return _scope_and_rows(inner)
        case Project(inner, columns):
            below, rows = _scope_and_rows(inner)
            columns_kept = {name: _carried(expression, below) for name, expression in columns}
            return Scope(columns_kept, narrowed=_narrows(below, columns_kept)), rows
        case JoinPublic() | JoinUnits():
            return _scope_of_pairs(node)
        case PerUnit(inner, by, measures):
            below, rows = _scope_and_rows(inner)
            own_facts = {name: _carried(expression, below) for name, expression in by}
            free = rows is None  # then the bounds of a count are a choice, not a fact
            measure_facts = {m.name: Fact("number", m.bounds, default=free and m.counts) for m in measures}
            facts = {**own_facts, **measure_facts}
            return Scope(facts, narrowed=_narrows(below, facts)), 1 if _names_unit(below, by) else rows


def _scope_of_pairs(node: JoinPublic | JoinUnits) -> tuple[Scope, int | None]:
    """Return what `_known` returns, for a join."""
    a, rows = _scope_and_rows(node.left)
    owned = {c: a[c] for c in a}
    if isinstance(node, JoinPublic):
        joined = {name: _nullable(node.table.fact(source), node.how) for name, source in node.columns}
        return Scope({**owned, **joined}, open=a.open, narrowed=a.narrowed), rows
    b, others = _scope_and_rows(node.right)
    facts = {**owned, **{c: _nullable(b[c], node.how) for c in b}}
    pair_scope = Scope(facts, open=a.open and b.open, narrowed=a.narrowed or b.narrowed)
    if node.rows is not None or rows is None or others is None:
        return pair_scope, node.rows
    return pair_scope, rows * (max(others, 1) if node.how == "left" else others)


def _narrows(below: Scope, columns: Mapping[str, Fact]) -> bool:
    """Return whether some columns of the scope below are not available any more."""
    return below.narrowed or below.open or not set(below) <= set(columns)


def _carried(expression: Node, below: Scope) -> Fact:
    """Facts live on only for a column that is passed on untouched; for a formula, what its form shows."""
    if isinstance(expression, Column):
        fact = below[expression.name]
        return replace(fact, kind=fact.kind or expression.kind)
    solved = resolve(expression, below)
    return Fact(kind_of(solved), bounds_of(solved, below), keys_of(solved, below))


def _nullable(fact: Fact, how: How) -> Fact:
    return replace(fact, never_null=fact.never_null and how == "inner", unit=fact.unit and how == "inner")


def document(thing: object) -> JSON:
    """Write a node as JSON for the plan hash: equal documents mean equal plans."""
    match thing:
        case None | bool() | int() | str():
            return thing
        case float():
            return {"number": thing.hex()}
        case Fraction():
            return {"fraction": f"{thing.numerator}/{thing.denominator}"}
        case Table():
            reading = {"reading": dict(thing.reading)} if thing.reading else {}
            return {"table": thing.name, **reading}
        case tuple() | list():
            return [document(t) for t in thing]
        case Mapping():
            return {str(k): document(v) for k, v in thing.items()}
        case _ if is_dataclass(thing):
            declared = (f for f in fields(thing) if f.init)
            present = (f for f in declared if not f.metadata or getattr(thing, f.name) != f.default)
            inner = {f.name: document(getattr(thing, f.name)) for f in present}
            return {"node": type(thing).__name__, **inner}
        case _ if hasattr(thing, "isoformat"):
            return {"date": str(thing.isoformat())}
        case _:
            raise TacitError(
                "bad-expression", f"{type(thing).__name__} cannot be part of a plan", fix="use a plain value"
            )


@dataclass(frozen=True, slots=True)
class FewGroups:
    """All groups, where there are at most ``most``; else ``most`` + 1 of them, any."""

    most: int


@dataclass(frozen=True, slots=True)
class GroupsBySize:
    """The large groups one by one, and of the others only how many have which size.

    The one statistic that is asked for is the size. A line holds a group's key, its size, a cell and a
    number. A group of at least ``threshold`` has a line of its own, without a cell. The other groups of one
    size and one cell have a line together, without a key, and the number says how many they are. The cell of
    a group is a function of its key: a text that has 16^``digits`` values.
    """

    threshold: int
    digits: int


@dataclass(frozen=True, slots=True)
class GroupsAtRanks:
    """Small groups at some ranks, among the groups of one size and one cell in the order of their keys.

    The table ``tacit_ranks`` has sizes, cells and ranks from 1. A line holds a group's key, its size, cell
    and rank, and the number of groups of this size and cell.
    """

    threshold: int
    digits: int


@dataclass(frozen=True, slots=True)
class ListedGroups:
    """The groups in the table ``tacit_keys``. They are picked after a unit's groups were limited."""


GroupPart: TypeAlias = FewGroups | GroupsBySize | GroupsAtRanks | ListedGroups


@dataclass(frozen=True, slots=True)
class PartialQuestion(TableQuestion):
    """A question with private keys, and the part of its groups that is read now; never part of a plan."""

    part: GroupPart | None = None


def part_of(question: TableQuestion, part: GroupPart) -> PartialQuestion:
    """Return a question about a part of the groups.

    Examples
    --------
    >>> from tacit.algebra import Scan
    >>> from tacit.core import Table
    >>> asked = TableQuestion(Scan(Table("visits"), None), (), None, (), None, None)
    >>> part_of(asked, FewGroups(10)).part
    FewGroups(most=10)
    """
    return PartialQuestion(**{f.name: getattr(question, f.name) for f in fields(question)}, part=part)
