"""Datasets: data with a unit and public facts. ``tc.protect`` is the one door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tacit import noise
from tacit.accounting import Budget
from tacit.core.facts import Fact, Kind, Limits, Table, read_bounds, read_keys, read_kind
from tacit.core.unit import ADJACENCIES, Adjacency, Identity, Unit
from tacit.engines import DuckDB, SourceTable, read_source
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count
from tacit.ledger import Ledger
from tacit.tables._expressions import Column
from tacit.tables._kinds import Scope, resolve
from tacit.tables.algebra import How, Scan
from tacit.tables.emit import grid_columns
from tacit.tables.group_keys import public_column
from tacit.tables.planning import Home
from tacit.tables.query import Answer, Grouped, Rows

if TYPE_CHECKING:
    import os

    from tacit.tables._fluent import Expr
    from tacit.tables.aggregates import Asked
    from tacit.tables.group_keys import KeysGiven

__all__ = ["Dataset", "protect"]


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Data, the unit that is protected, and public facts. Made by `protect`.

    A dataset answers through plans only: there is no way to read a row, a count of rows or a list of values
    from it.
    """

    home: Home
    tables: Mapping[str, Table]
    limits: Limits
    main: str
    ledger: Ledger

    @property
    def name(self) -> str:
        """The declared name."""
        return self.home.identity.name

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self.home.identity.unit

    @property
    def remaining(self) -> object:
        """What is left of the budget."""
        return self.ledger.remaining(self.home.identity.account)

    def __repr__(self) -> str:
        tables = ", ".join(sorted(self.tables))
        return f"Dataset({self.name!r}, unit={self.unit!r}, tables: {tables})"

    def __getitem__(self, table: str) -> Rows:
        found = self.tables.get(table)
        if found is None or found.public:
            protected = sorted(n for n, t in self.tables.items() if not t.public)
            raise TacitError(
                "unknown-table",
                f"there is no protected table {table!r}",
                fix=f"one of: {', '.join(protected)}",
            )
        rows = None if self.unit.is_row else self.limits.rows
        return Rows(self.home, Scan(found, rows), self.limits, self.tables)

    def where(self, condition: Expr | str) -> Rows:
        """Keep rows by a condition; see `Rows.where`."""
        return self[self.main].where(condition)

    def with_columns(self, **columns: Expr | str | float) -> Rows:
        """Add or redefine columns; see `Rows.with_columns`."""
        return self[self.main].with_columns(**columns)

    def select(self, *names: str, **made: Expr | str) -> Rows:
        """Keep or rename columns; see `Rows.select`."""
        return self[self.main].select(*names, **made)

    def join(
        self, other: Rows | str, on: str | Expr | None = None, *, how: How = "inner", rows: int | None = None
    ) -> Rows:
        """Join on the unit, or look up a public table; see `Rows.join`."""
        return self[self.main].join(other, on, how=how, rows=rows)

    def per_unit(self, by: Sequence[str] = (), **measures: Asked) -> Rows:
        """Aggregate each unit's own rows first; see `Rows.per_unit`."""
        return self[self.main].per_unit(by, **measures)

    def limit(self, **limits: int | None) -> Rows:
        """Change limits on groups for one question; see `Rows.limit`."""
        return self[self.main].limit(**limits)

    def group_by(self, *by: str | Expr, keys: KeysGiven = None, **named: Expr | str) -> Grouped:
        """Group by columns; see `Rows.group_by`."""
        return self[self.main].group_by(*by, keys=keys, **named)

    def agg(self, **aggregates: Asked) -> Answer:
        """Aggregate all rows; see `Rows.agg`."""
        return self[self.main].agg(**aggregates)

    def sql(self, query: str, *, keys: Mapping[str, Sequence[object] | str] | None = None) -> Answer:
        """Ask in SQL.

        SELECT with aggregates, WHERE, GROUP BY, JOIN, WITH, CASE, dates; HAVING, ORDER BY, LIMIT and
        arithmetic on aggregates are free post-processing. Only SQL that Tacit writes itself is ever run.

        Parameters
        ----------
        query
            One SELECT statement.
        keys
            Public keys by group column, where they are not declared with the dataset: lists, or names of
            public tables.
        """
        from tacit.tables.sql import parse_query

        return parse_query(query, self, keys)


def protect(
    source: object,
    *,
    unit: str | Unit,
    budget: Budget,
    name: str | None = None,
    version: int = 1,
    bounds: Mapping[str, Sequence[Number]] | None = None,
    keys: Mapping[str, Sequence[object] | str] | None = None,
    types: Mapping[str, object] | None = None,
    never_null: Sequence[str] = (),
    limits: Mapping[str, int | None] | Limits | None = None,
    public: Mapping[str, tuple[object, str]] | None = None,
    adjacency: Adjacency = "add/remove",
    ledger: Ledger | str | os.PathLike[str] | None = None,
) -> Dataset:
    """Declare who is protected and what is public; the data is not read.

    Guarantee
    ---------
    All releases of the dataset together, whoever asks and however they depend on each other, are private
    for one unit within the budget. The budget belongs to the declared name in the ledger: a new session
    does not reset it.

    Parameters
    ----------
    source
        A Parquet or CSV file, a DuckDB file or connection (as ``(database, "table")`` where its table has
        another name), a pandas, Polars or Arrow table; or several of them by name, all with the unit's
        column.
    unit
        The column that says whom a row belongs to, or ``Unit.row()``. Rows without a unit are dropped.
    budget
        What may be learned in total.
    name, version
        Declared identity; the name is required with a durable ledger.
    bounds
        Public ranges by column; values outside are clipped.
    keys
        Public values by column, for grouping: a list, or the name of a public table (the values of its key)
        or ``"table.column"``, which is read now, since nothing in it is private.
    types
        ``number``, ``text``, ``boolean`` or ``date`` by column, where the context does not tell.
    never_null
        Columns declared to have a value in every row.
    limits
        How much one unit may contribute: ``rows`` (default 10), ``groups``, ``per_group``, ``joined``.
    public
        Public tables: source and the column that is unique there, by name.
    adjacency
        ``add/remove`` (default) or ``replace`` (the number of units is public).
    ledger
        A `Ledger`, or where to open one; None keeps it in memory, for notebooks.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = protect(
    ...     "visits.parquet", unit="patient_id", bounds={"stay": (0, 30)}, budget=tc.Budget(epsilon=3)
    ... )
    >>> visits
    Dataset('data', unit=Unit('patient_id'), tables: data)
    """
    whom = unit if isinstance(unit, Unit) else Unit(unit)
    if not isinstance(budget, Budget):
        raise bad_parameter(
            "budget",
            "a Budget",
            budget,
            why="nothing has a default epsilon",
            fix="budget=tc.Budget(epsilon=1)",
        )
    if adjacency not in ADJACENCIES:
        raise bad_parameter("adjacency", " or ".join(ADJACENCIES), adjacency, fix='adjacency="add/remove"')
    if ledger is not None and name is None:
        raise TacitError(
            "bad-parameter",
            "a dataset in a durable ledger needs a name",
            why="the budget is bound to the declared name, so that a new session does not reset it",
            fix='name="visits"',
        )
    identity = Identity(
        _name("data" if name is None else name), count("version", version, zero=False), whom, adjacency
    )
    sources = dict(source) if isinstance(source, Mapping) else {identity.name: source}
    shared = dict(public or {})
    if not sources or any(not isinstance(n, str) for n in (*sources, *shared)):
        raise bad_parameter(
            "source", "at least one table, by name", source, fix='{"visits": "visits.parquet"}'
        )
    if len({n.lower() for n in (*sources, *shared)}) != len(sources) + len(shared):
        raise bad_parameter(
            "source", "tables whose names differ", sorted((*sources, *shared)), fix="another name"
        )
    listed = {c: v for c, v in (keys or {}).items() if not isinstance(v, str)}
    facts = _read_facts(bounds or {}, listed, types or {}, never_null)
    owner = () if whom.is_row else (whom.column,)
    places = {n: SourceTable(read_source(s), owner, _grids(n, facts)) for n, s in sources.items()}
    places |= {n: SourceTable(read_source(s), None) for n, (s, _) in shared.items()}
    engine = DuckDB(places, key=noise.uniform_below(2**62))
    named = {c: v for c, v in (keys or {}).items() if isinstance(v, str)}
    if named:
        known = {n: _table(n, engine, facts, key, whom) for n, (_, key) in shared.items()}
        read = {c: public_column(v, known, engine) for c, v in named.items()}
        facts = _read_facts(bounds or {}, listed | read, types or {}, never_null)
    tables = {n: _table(n, engine, facts, None, whom) for n in sources}
    tables |= {n: _table(n, engine, facts, key, whom) for n, (_, key) in shared.items()}
    books = _ledger(ledger)
    books.create_account(
        identity.account, unit=str(whom), budget=budget, adjacency=adjacency, version=identity.version
    )
    lines = {place.source.kind for place in places.values() if place.unit is not None}
    home = Home(identity, engine, books, alone=len(sources) == 1 and "csv" not in lines)
    return Dataset(home, tables, Limits.read(limits), next(iter(sources)), books)


def _name(name: str) -> str:
    given: object = name
    if not isinstance(given, str) or not name or len(name) > 200 or not name.isprintable():
        raise bad_parameter("name", "printable text of at most 200 characters", name, fix='name="visits"')
    return name


def _ledger(given: Ledger | str | os.PathLike[str] | None) -> Ledger:
    if given is None:
        return Ledger.memory()
    return (
        given if isinstance(given, Ledger) else Ledger.open(given if isinstance(given, str) else Path(given))
    )


def _read_facts(
    bounds: Mapping[str, Sequence[Number]],
    keys: Mapping[str, Sequence[object]],
    types: Mapping[str, object],
    never_null: Sequence[str],
) -> dict[str, Fact]:
    if isinstance(never_null, str):
        raise bad_parameter("never_null", "a list of columns", never_null, fix=f'never_null=["{never_null}"]')
    names = dict.fromkeys((*bounds, *keys, *types, *never_null))
    facts = {}
    for column in names:
        kind = read_kind(column, types[column]) if column in types else None
        values = read_keys(column, keys[column]) if column in keys else None
        for implied in (_kind_of_keys(values), "number" if column in bounds else None):
            if (
                implied is not None
                and kind is not None
                and kind != implied
                and (kind, implied) != ("date", "text")
            ):
                raise bad_parameter(
                    f"types[{column!r}]", f"{implied}, as its bounds or keys say", kind, fix=f'"{implied}"'
                )
            kind = kind or implied
        limits = read_bounds(column, bounds[column]) if column in bounds else None
        facts[column] = Fact(kind, limits, values, column in never_null)
    return facts


def _of_table(name: str, facts: Mapping[str, Fact], columns: Sequence[str] | None = None) -> dict[str, Fact]:
    """Return the facts of one table: ``column`` speaks of every table, ``table.column`` of one."""
    own = {c: f for c, f in facts.items() if "." not in c or (columns is not None and c in columns)}
    return own | {c.removeprefix(name + "."): f for c, f in facts.items() if c.startswith(name + ".")}


def _grids(name: str, facts: Mapping[str, Fact]) -> dict[str, str]:
    made: dict[str, str] = {}
    for column, fact in _of_table(name, facts).items():
        made |= grid_columns(column, fact.bounds) if fact.bounds is not None else {}
    return made


def _kind_of_keys(values: tuple[object, ...] | None) -> Kind | None:
    if values is None:
        return None
    kinds: dict[type, Kind] = {float: "number", bool: "boolean"}
    return kinds.get(type(values[0]), "text")


def _table(name: str, engine: DuckDB, facts: Mapping[str, Fact], key: str | None, unit: Unit) -> Table:
    """Declare one table with its facts; names of columns are checked where the source is at hand."""
    columns = engine.columns(name)
    own = _of_table(name, facts, columns)
    if columns is not None:
        reserved = next((c for c in columns if c.lower().startswith(("tacit_", "tacit "))), None)
        if reserved is not None:
            raise bad_parameter(
                "a column's name", "one that does not start with tacit_", reserved, fix="rename it"
            )
        own = {c: f for c, f in own.items() if c in columns}
        for needed in [key] if key is not None else [] if unit.is_row else [unit.column]:
            if needed not in columns:
                raise TacitError(
                    "unknown-column",
                    f"the table {name!r} has no column {needed!r}",
                    why="it says whom a row belongs to"
                    if key is None
                    else "it is the key of the public table",
                    fix=f"one of: {', '.join(columns[:12])}",
                )
    if key is None and not unit.is_row:
        own[unit.column] = replace(own.get(unit.column, Fact()), unit=True)
    for column, kind in engine.unreadable(name).items():
        own[column] = replace(own.get(column, Fact()), unreadable=kind)
        if column == unit.column:
            resolve(Column(column), Scope(own))  # refuses
    return Table(name, own, columns, key)
