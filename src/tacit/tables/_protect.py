"""The function ``tc.protect``: declare a dataset of tables, who is protected and what is public.

A declaration may also divide the data into blocks: `BlockColumn` finds the blocks that a question concerns.

Guarantee: the answer to a question that concerns some blocks is a function of the rows in these blocks alone
(docs/proofs/filters.md, "Blocks"). Where this cannot be seen from the question, it concerns all of the data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tacit.algebra import (
    Call,
    Column,
    JoinPublic,
    JoinUnits,
    PerUnit,
    Project,
    Scan,
    Scope,
    Where,
    choose_name,
    is_iso,
    resolve,
)
from tacit.algebra import Literal as Constant
from tacit.core import (
    KEY_KINDS,
    Fact,
    Limits,
    Table,
    Unit,
    open_account,
    read_bounds,
    read_identity,
    read_kind,
)
from tacit.engines import SourceTable, check_sources, grid_columns, open_engine, place_source
from tacit.errors import TacitError, bad_parameter, missing_file
from tacit.fixes import Choose, Code, Declare, Either, Say, Set
from tacit.ledger import Blocks, Ledger, open_books, open_ledger, source_places
from tacit.mechanisms import ranking_secret
from tacit.parameters import ColumnName, Instance, Integer, Listed
from tacit.report import with_article
from tacit.tables._dataset import TableDataset
from tacit.tables.questions._aggregates import AUTO
from tacit.tables.questions._keys import example_keys, listed_order, public_column, read_column_keys
from tacit.tables.questions._limit_advice import refuse_automatic

if TYPE_CHECKING:
    import os

    from tacit.accounting import Adjacency, Budget
    from tacit.algebra import Node, Relation, TableQuestion
    from tacit.core import Identity, Kind, LimitGiven
    from tacit.engines import Engine
    from tacit.exact import Number


_MINIMUM = Integer(2, 10**9, "every group that is shown has at least one", instead=8)


def protect(
    source: object,
    *,
    unit: str | Unit,
    budget: Budget,
    name: str | None = None,
    version: int = 1,
    bounds: Mapping[str, Sequence[Number] | Literal["auto"]] | None = None,
    keys: Mapping[str, Sequence[object] | str] | None = None,
    types: Mapping[str, object] | None = None,
    never_null: Sequence[str] = (),
    limits: Mapping[str, LimitGiven] | Limits | None = None,
    public: Mapping[str, tuple[object, str]] | None = None,
    adjacency: Adjacency = "add/remove",
    ledger: Ledger | str | os.PathLike[str] | None = None,
    parent: str | None = None,
    record: Literal["words", "shape"] = "words",
    blocks: Blocks | None = None,
    block: str | int | date | None = None,
    engine: object = None,
    minimum_people: int | None = None,
) -> TableDataset:
    """Declare who is protected and what is public; no value of the data is used.

    Guarantee
    ---------
    All releases of the dataset together, whoever asks and however they depend on each other, are private
    for one unit within the budget. The budget belongs to the declared name in the ledger: a new session
    does not reset it. Without ``ledger``, the budget is forgotten when Python ends. Columns and types are
    read. A CSV file is checked as a whole: one that is not well formed is refused before an account is
    opened, and the refusal is for the curator alone.

    Parameters
    ----------
    source
        A Parquet or CSV file, a folder or pattern of Parquet files (``"visits/*.parquet"``) that have the
        same columns, a DuckDB file or connection (as ``(database, "table")`` where its table has another
        name), a pandas, Polars or Arrow table; or several of them by name, all with the unit's column.
        `csv_file` declares a decimal comma or an encoding. On another ``engine``: the name of a table there.
    unit
        The column that says to whom a row belongs, ``Unit.row()``, or ``Unit("patient_id", per="day")``. Rows
        without a unit are dropped.
    budget
        What may be learned in total.
    name, version
        Declared identity; the name is required with a durable ledger.
    bounds
        Public ranges by column; values outside are clipped. ``"auto"`` instead of a range lets every question
        that needs one find it privately, at a quarter of its cost; `TableDataset.declaring` then keeps it.
    keys
        Public values by column, for grouping: a list, or the name of a public table (the values of its key)
        or ``"table.column"``, which is read now, since nothing in it is private. Answers show groups in the
        order of the list.
    types
        ``number``, ``text``, ``boolean`` or ``date`` by column, where questions do not show the type.
    never_null
        Columns declared to have a value in every row.
    limits
        How much one unit may contribute: ``rows`` (default 10; in a table of a database in which the unit's
        column is a PRIMARY KEY or UNIQUE, 1), ``groups``, ``per_group``, ``joined``; and
        ``pairs`` (default 10,000), the most pairs of its rows that a join may form. For one table alone:
        ``{"rows": 5, "visits": {"rows": 20}}``. `TableDataset.suggest_limits` helps to choose them.
    public
        Public tables by name: each has a source and a column whose values are unique.
    adjacency
        ``add/remove`` (default) or ``replace`` (the number of units is public).
    ledger
        A `Ledger`, or where to open one. None keeps it in memory, for notebooks: it is forgotten when Python
        ends. Until then, a dataset of the same name and the same data has the same budget; to recognise the
        data, a frame's contents are digested in this process.
    parent
        An account of the ledger, of the same unit and adjacency, that several datasets share: every question
        to one of them is charged to its own budget and to this account.
    record
        What the ledger's log keeps of a question: its ``"words"``, or only its ``"shape"``, in which ``?``
        stands for each constant. Once a dataset is declared with ``"shape"``, no session writes more.
    blocks
        A public partition of the data whose blocks are charged separately, for the adjacency add/remove.
        Without ``block``, by a column of the tables: the unit is a single row, or the column is part of the
        unit. A question whose WHERE names values of that column, or that groups by it with public keys,
        concerns these blocks; any other question concerns all of the data.
    block
        The block that all of this data belongs to: several datasets with the same name, one for each block,
        share one account. You promise that a unit is in at most ``blocks.per_unit`` of them.
    engine
        Where the tables are and the integers are computed: ``"duckdb"`` (default), in this process; an open
        psycopg connection or an address ``postgresql://...``; an open Spark session. There a source is the
        name of a table, on Spark also the path of Parquet files. A pair such as ``(connection, "visits")``
        says the same. All tables of a dataset are on one engine.
    minimum_people
        How many units a line of a grouped answer needs to be shown, by their noisy number; groups that are
        selected privately follow their true number exactly. Epsilon protects people, not this rule.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = protect(
    ...     "visits.parquet", unit="patient_id", bounds={"stay": (0, 30)}, budget=tc.Budget(epsilon=3)
    ... )
    >>> visits
    dataset data, protects each patient; left: epsilon 3 of 3
    tables: data (its source is not available here)
    ask: .agg(n=tc.count()), .group_by(...).agg(...) or .sql(...); .columns lists the columns
    budget: kept in memory: forgotten when Python ends
    """
    if ledger is not None and name is None:
        raise _name_missing()
    identity = read_identity(
        name="data" if name is None else name, version=version, unit=unit, adjacency=adjacency
    )
    if block is not None:
        identity = replace(identity, block=read_block_of_dataset(blocks, block))
    if identity.unit.kind not in {"column", "row"}:
        raise _not_of_tables(identity.unit)
    (sources, shared), keys = _sources(source, public, identity.name), keys or {}
    key_lists = {c: v for c, v in keys.items() if not isinstance(v, str)}
    facts = _read_facts(bounds, key_lists, types, never_null)
    owner, main = identity.unit.columns, next(iter(sources))
    places = {
        n: SourceTable(place_source(s, engine), owner, grid_columns(_of_table(n, facts, facts)))
        for n, s in sources.items()
    }
    one_table = len(places) == 1 and all(place.source.kind != "csv" for place in places.values())
    places |= {n: SourceTable(place_source(s, engine), None) for n, (s, _) in shared.items()}
    data_engine = open_engine(places, key=ranking_secret())
    check_sources(places)
    key_sources = {c: v for c, v in keys.items() if isinstance(v, str)}
    if key_sources:  # keys that stand in a public table are read now, since nothing in it is private
        public_tables = {n: _table(n, data_engine, facts, (key,)) for n, (_, key) in shared.items()}
        public_keys = {c: public_column(v, public_tables, data_engine) for c, v in key_sources.items()}
        key_sets = {c: set(values) for c, values in public_keys.items()}
        facts = _read_facts(bounds, {**key_lists, **key_sets}, types, never_null)
    tables = {n: _table(n, data_engine, facts, owner, identity.unit) for n in sources}
    tables |= {n: _table(n, data_engine, facts, (key,)) for n, (_, key) in shared.items()}
    _check_names({"bounds": bounds, "keys": keys, "types": types, "never_null": never_null}, tables)
    _check_files(places, tables, ledger, identity.name)
    limited, minimum = _read_limits(limits, sources, identity.unit), _read_minimum(minimum_people)
    tables, limited = _with_keys(_with_reading(tables, places), limited, identity.unit, data_engine)
    column, blocks = _divided(blocks, identity, tables) if blocks is not None else (None, None)
    books, where = open_books(ledger, identity.name, (sources, engine)), source_places(sources, engine)
    open_account(identity, budget, books, parent=parent, record=record, blocks=blocks, places=where)
    facts_of_all = (identity, books, tables, limited, main, one_table, data_engine, column)
    return TableDataset(*facts_of_all, minimum_people=minimum, record=record)


def _read_minimum(minimum: int | None) -> int | None:
    """Return the fewest units of a line that is shown; None for any number."""
    return None if minimum is None else _MINIMUM.read("minimum_people", minimum)


def _name_missing() -> TacitError:
    return TacitError(
        "bad-parameter",
        "a dataset in a durable ledger needs a name",
        why="the budget is bound to the declared name, so that a new session does not reset it",
        fix=Declare("name", "visits"),
    )


def _not_of_tables(unit: Unit) -> TacitError:
    """Refuse a unit that tables do not have."""
    return bad_parameter(
        "unit",
        "a column, a pair of columns such as patient and day, or a single row",
        unit,
        why=f"a table has no {unit.kind}s",
        fix=Declare("unit", "patient_id"),
    )


def _divided(
    blocks: Blocks, identity: Identity, tables: Mapping[str, Table]
) -> tuple[BlockColumn | None, Blocks]:
    """Return the column that divides the data, and the blocks with the kind of its values."""
    column = read_partition(blocks, identity.block, identity.unit, tables)
    return column, blocks if column is None else replace(blocks, kind=column.kind)


def _read_limits(
    declared: Mapping[str, LimitGiven] | Limits | None, sources: Mapping[str, object], unit: Unit
) -> Limits:
    """Read the limits; those of a single table name a protected table, and single rows have none."""
    if isinstance(declared, Mapping):
        refuse_automatic(declared)
    limits = Limits.read(declared)
    unknown = next((table for table, _ in limits.of_tables if table not in sources), None)
    if unknown is not None:
        raise TacitError(
            "unknown-table",
            f"limits name the table {unknown!r}, which is not a protected table",
            fix=Choose(tuple(sources), given=unknown),
        )
    return Limits(rows=None) if unit.kind == "row" else limits


def _with_keys(
    tables: dict[str, Table], limits: Limits, unit: Unit, engine: Engine
) -> tuple[dict[str, Table], Limits]:
    """Note the tables in which a key of the catalogue leaves each unit one row, where nobody chose a limit.

    The limit of one row is enforced like every other one, whatever becomes of the key. Whether the key is
    still there is checked before every charge.
    """
    if unit.is_row:
        return tables, limits
    keyed = {}
    for name, table in tables.items():
        if table.key is None and table.columns is not None and limits.is_default_of(name):
            key = next((key for key in engine.unique(name) if key and set(key) <= set(unit.columns)), None)
            if key is not None:
                keyed[name] = replace(table, unique=key)
    return {**tables, **keyed}, replace(limits, keyed=tuple(keyed))


def _sources(
    source: object, public: Mapping[str, tuple[object, str]] | None, name: str
) -> tuple[dict[str, object], dict[str, tuple[object, str]]]:
    """Return the protected and the public sources by table."""
    sources = dict(source) if isinstance(source, Mapping) else {name: source}
    shared = dict(public or {})
    if not sources or any(not isinstance(n, str) for n in (*sources, *shared)):
        raise bad_parameter(
            "source", "at least one table, by name", source, fix=Code('{"visits": "visits.parquet"}')
        )
    if "" in sources or "" in shared:
        raise bad_parameter("the name of a table", "text", "", fix=Code('{"visits": "visits.parquet"}'))
    if len({n.lower() for n in (*sources, *shared)}) != len(sources) + len(shared):
        raise bad_parameter(
            "source", "tables with different names", sorted((*sources, *shared)), fix="use another name"
        )
    return sources, shared


def _read_facts(
    bounds: Mapping[str, Sequence[Number] | Literal["auto"]] | None,
    keys: Mapping[str, Collection[object]],
    types: Mapping[str, object] | None,
    never_null: Sequence[str],
) -> dict[str, Fact]:
    """Read the public facts of columns, as the curator wrote them."""
    bounds, types = bounds or {}, types or {}
    never_null = Listed("columns", '["hospital"]', least=0, each=ColumnName()).read("never_null", never_null)
    names = dict.fromkeys((*bounds, *keys, *types, *never_null))
    facts = {}
    for column in names:
        kind = read_kind(column, types[column]) if column in types else None
        values = read_column_keys(column, keys[column]) if column in keys else None
        of_keys = None if values is None else _kind_of_keys(column, values, kind)
        for implied in (of_keys, "number" if column in bounds else None):
            if (
                implied is not None
                and kind is not None
                and kind != implied
                and (kind, implied) != ("date", "text")
            ):
                raise bad_parameter(
                    f"the type of {column!r}",
                    f"{implied}, to match its bounds or keys",
                    kind,
                    fix=Declare("types", implied, column=column, example=False),
                )
            kind = kind or implied
        auto = bounds.get(column) == AUTO
        limits = read_bounds(column, bounds[column]) if column in bounds and not auto else None
        order = () if values is None else listed_order(column, keys[column], values)
        facts[column] = Fact(kind, limits, values, column in never_null, order=order, auto=auto)
    return facts


def _kind_of_keys(column: str, values: tuple[object, ...], declared: Kind | None) -> Kind | None:
    """Return the kind that keys show. Text that could be dates shows none: the question decides."""
    kind = KEY_KINDS[type(values[0])]
    odd = (
        next((str(v) for v in values if v is not None and not is_iso(str(v))), None) if kind == "text" else ""
    )
    if declared == "date" and odd:
        raise bad_parameter(
            f"the keys of {column!r}",
            "dates such as '2026-01-31', like its type",
            odd,
            fix=Declare("keys", example_keys("date"), column=column),
        )
    return None if kind == "text" and odd is None and declared != "text" else kind


def _check_names(declared: Mapping[str, Collection[str] | None], tables: Mapping[str, Table]) -> None:
    """Refuse a fact about a column that no table has, if a column of almost that name exists.

    Other names may be those of columns that questions compute.
    """
    if any(table.columns is None for table in tables.values()):
        return
    columns = tuple(dict.fromkeys(c for table in tables.values() for c in table.columns or ()))
    for fact, names in declared.items():
        for name in names or ():
            table, _, column = name.partition(".")
            own_columns = tables[table].columns or () if table in tables and name not in columns else None
            if name in columns or (own_columns is not None and column in own_columns):
                continue
            fix = choose_name(column, own_columns) if own_columns is not None else choose_name(name, columns)
            if own_columns is not None or _is_slip(name.strip().lower(), fix.close.lower()):
                raise TacitError(
                    "unknown-column",
                    f"{fact} names the column {name!r}, which no table has",
                    why="a fact about a column that does not exist would have no effect",
                    fix=fix,
                )


def _is_slip(name: str, column: str) -> bool:
    """Return whether a name is likely a misspelled column; a longer one, such as stay_2, may be computed."""
    if not column or (column in name and column != name):
        return False
    return sorted(name) == sorted(column) or SequenceMatcher(None, name, column).ratio() >= 0.75


def _check_files(
    places: Mapping[str, SourceTable],
    tables: Mapping[str, Table],
    ledger: Ledger | str | os.PathLike[str] | None,
    name: str,
) -> None:
    """Refuse a file that does not exist before an account is opened in a ledger that lasts.

    Without such a ledger the dataset can be planned with, and a release is refused before its charge.
    """
    unread = [places[table].source for table, read in tables.items() if read.columns is None]
    files = [source for source in unread if isinstance(source.place, Path)]
    absent = next((Path(str(file.place)) for file in files if not file.is_there), None)
    if absent is None or ledger is None or _has_account(ledger, name):
        return
    raise missing_file(
        absent,
        why="no account was opened and nothing was charged",
        fix=Declare("source", f"path/of/{absent.name}"),
    )


def _has_account(ledger: Ledger | str | os.PathLike[str], name: str) -> bool:
    """Return whether the ledger knows the dataset already, or lives in memory."""
    if isinstance(ledger, Ledger):
        return ledger.name == ":memory:" or any(account.name == name for account in ledger.accounts())
    if "://" not in str(ledger) and not Path(ledger).exists():
        return False
    with open_ledger(ledger) as books:
        return any(account.name == name for account in books.accounts())


def _with_reading(tables: Mapping[str, Table], places: Mapping[str, SourceTable]) -> dict[str, Table]:
    """Note with each table how its file is declared to be written, which is part of every question."""
    return {n: replace(table, reading=places[n].source.reading_facts) for n, table in tables.items()}


def _of_table(
    name: str, facts: Mapping[str, Fact], columns: Collection[str] | None = None
) -> dict[str, Fact]:
    """Return the facts of one table: ``column`` speaks of every table, ``table.column`` of one.

    A name with a dot may also be a column's own name. ``columns`` are those that the table has, or may have.
    """
    table_facts = {c: f for c, f in facts.items() if "." not in c or (columns is not None and c in columns)}
    return table_facts | {c.removeprefix(name + "."): f for c, f in facts.items() if c.startswith(name + ".")}


def _table(
    name: str,
    engine: Engine,
    facts: Mapping[str, Fact],
    key_columns: tuple[str, ...],
    unit: Unit | None = None,
) -> Table:
    """Declare one table with its facts; names of columns are checked where the source is available.

    ``key_columns`` are the columns that name the unit; without a unit the table is public, and it is its key.
    """
    columns, types = engine.columns(name), engine.stored_as(name)
    own_facts = _of_table(name, facts, columns)
    if columns is not None:
        reserved = next((c for c in columns if c.lower().startswith(("tacit_", "tacit "))), None)
        if reserved is not None:
            raise bad_parameter(
                "a column's name", "one that does not start with tacit_", reserved, fix="rename the column"
            )
        own_facts = {c: f for c, f in own_facts.items() if c in columns}
        missing = next((c for c in key_columns if c not in columns), None)
        if missing is not None:
            raise TacitError(
                "unknown-column",
                f"the table {name!r} has no column {missing!r}",
                why=f"this column names the {unit.noun} that each row belongs to"
                if unit is not None
                else "this column is the key of the public table",
                fix=choose_name(str(missing), tuple(columns)),
            )
    if unit is not None and len(key_columns) == 1:  # of a pair, neither column alone names the unit
        own_facts[unit.column] = replace(own_facts.get(unit.column, Fact()), unit=True)
    for column, stored in types.items():
        own_facts[column] = replace(own_facts.get(column, Fact()), stored=stored)
    for column, kind in (columns or {}).items():
        if kind:
            own_facts[column] = replace(own_facts.get(column, Fact()), unreadable=kind)
            if unit is not None and column in key_columns:
                resolve(Column(column), Scope(own_facts))  # refuses
    names = None if columns is None else tuple(columns)
    return Table(name, own_facts, names, key_columns[0] if unit is None else None)


@dataclass(frozen=True, slots=True)
class BlockColumn:
    """The column whose value, read as its declared kind, is the block of a row."""

    name: str
    kind: Kind

    def concerned(self, question: TableQuestion) -> tuple[str, ...]:
        """Return the blocks whose rows a question reads; none stands for all of the data."""
        blocks = _both(self._read_from(question.input), self._grouped(question))
        return () if blocks is None or len(blocks) > Blocks.most else tuple(sorted(blocks))

    def _grouped(self, question: TableQuestion) -> frozenset[str] | None:
        """Rows whose key is not listed are dropped before anything else is done with them."""
        for position, (_, node) in enumerate(question.by):
            if question.keys is not None and self._is_read(question.input, node):
                return self._names(key[position] for key in question.keys)
        return None

    def _read_from(self, relation: Relation) -> frozenset[str] | None:
        """Return the blocks that the rows of a relation come from; None where nothing restricts them."""
        match relation:
            case Scan():
                return None
            case Where(inner, predicate):
                return _both(self._read_from(inner), self._pinned(inner, predicate))
            case Project(inner, _) | PerUnit(inner, _, _) | JoinPublic(inner, _, _, _, _):
                return self._read_from(inner)
            case JoinUnits(left, right, _, _):
                left_blocks, second = self._read_from(left), self._read_from(right)
                return None if left_blocks is None or second is None else left_blocks | second

    def _pinned(self, rows: Relation, predicate: Node) -> frozenset[str] | None:
        """Return the only blocks for which a condition can be true; None where it names none."""
        match predicate:
            case Call("eq", (own, Constant(value, _))) | Call("eq", (Constant(value, _), own)) if (
                self._is_read(rows, own)
            ):
                return self._names([value])
            case Call("in", (own, *values)) if self._is_read(rows, own):
                constants = [v.value for v in values if isinstance(v, Constant)]
                return self._names(constants) if len(constants) == len(values) else None
            case Call("and", parts):
                blocks: frozenset[str] | None = None
                for part in parts:
                    blocks = _both(blocks, self._pinned(rows, part))
                return blocks
            case Call("or", parts):
                each = [self._pinned(rows, part) for part in parts]
                if any(one is None for one in each):
                    return None
                return frozenset().union(*(one for one in each if one is not None))
        return None

    def _is_read(self, rows: Relation, node: Node) -> bool:
        """Return whether an expression is the block column, read as its declared kind."""
        return isinstance(node, Column) and node.kind == self.kind and self._is_own(rows, node)

    def _is_own(self, rows: Relation, node: Node) -> bool:
        """Return whether an expression is the block column as it stands in the declared table."""
        if not isinstance(node, Column) or node.kind not in {None, self.kind}:
            return False
        match rows:
            case Scan(table, _):
                fact = table.facts.get(node.name)
                return node.name == self.name and fact is not None and fact.kind == self.kind
            case Where(inner, _):
                return self._is_own(inner, node)
            case Project(inner, columns) | PerUnit(inner, columns, _):
                source = dict(columns).get(node.name)
                return source is not None and self._is_own(inner, source)
            case JoinPublic(left, _, _, columns, _):
                return node.name not in dict(columns) and self._is_own(left, node)
            case _:
                return False

    def _names(self, values: object) -> frozenset[str] | None:
        """Return the blocks of some values; None if one of them has no name, such as NULL."""
        names = [block_name(value, self.kind) for value in values]  # type: ignore[attr-defined]
        return None if None in names else frozenset(name for name in names if name is not None)


def _both(left: frozenset[str] | None, right: frozenset[str] | None) -> frozenset[str] | None:
    """Return the blocks that two conditions leave; where they leave none, either list is right."""
    if left is None or right is None:
        return right if left is None else left
    return left & right or left


def block_name(value: object, kind: Kind) -> str | None:
    """Return the one name of a value of a kind, however it is written; None if there is none.

    Examples
    --------
    >>> block_name("2026-01-03 00:00", "date"), block_name("2026-01-03", "date"), block_name(7.0, "number")
    ('2026-01-03', '2026-01-03', '7')
    """
    match kind, value:
        case "boolean", bool():
            return "true" if value else "false"
        case "number", float() if value == value:
            return str(int(value)) if value.is_integer() else repr(value)
        case "date", str():
            return _moment_name(value)
        case "text", str() if 1 <= len(value) <= 200 and value.isprintable():
            return value
    return None


def _moment_name(text: str) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return None
    return moment.date().isoformat() if moment.time() == time() else moment.isoformat(sep=" ")


def read_block_of_dataset(blocks: Blocks | None, block: object) -> str:
    """Read the block that all of a dataset is declared to be."""
    if blocks is None:
        raise TacitError(
            "bad-parameter",
            "a dataset that is one block of a larger dataset must declare by what the data is divided",
            why="its account keeps one total for each block",
            fix=Code('blocks=tc.Blocks("day")'),
        )
    if isinstance(block, date):
        block = _moment_name(block.isoformat())
    if isinstance(block, int) and not isinstance(block, bool):
        block = str(block)
    if (
        not isinstance(block, str)
        or not 1 <= len(block) <= 200
        or not block.isprintable()
        or block.strip() != block
    ):
        raise bad_parameter(
            "block",
            "a date, a whole number or text of 1 to 200 printable characters",
            block,
            fix=Set(block="2026-01-03"),
        )
    return block


def read_partition(blocks: Blocks, block: str, unit: Unit, tables: Mapping[str, Table]) -> BlockColumn | None:
    """Read a partition by a column: only where the table itself shows that each unit is in one block."""
    declared: object = blocks
    declared = Instance(Blocks, 'blocks=tc.Blocks("day")').read("blocks", declared)
    if block:
        return None
    name = blocks.by
    if not (unit.is_row or name in unit.columns) or blocks.per_unit != 1:
        raise _not_structural(blocks, unit)
    kinds = {
        table.facts[name].kind if name in table.facts else None
        for table in tables.values()
        if table.key is None and (table.columns is None or name in table.columns)
    }
    if not kinds:
        raise TacitError(
            "unknown-column",
            f"no protected table has the column {name!r}, by which the data would be divided into blocks",
            fix=Choose(
                tuple(sorted({c for table in tables.values() for c in table.columns or ()})), given=name
            ),
        )
    kind = next(iter(kinds))
    if kind is None or len(kinds) > 1:
        raise TacitError(
            "bad-parameter",
            f"the type of {name!r}, by which the data is divided into blocks, must be declared",
            why="'2026-01-03' and '2026-1-3' are one day if read as dates, but two blocks if read as text",
            fix=Declare("types", "date", column=name),
        )
    return BlockColumn(name, kind)


def _not_structural(blocks: Blocks, unit: Unit) -> TacitError:
    noun = unit.noun
    return TacitError(
        "not-allowed",
        f"{with_article(noun)} may be in several blocks of {blocks.by!r}"
        if blocks.per_unit == 1
        else f"if a column divides a table, each {noun} is in 1 block, not in {blocks.per_unit}",
        why="blocks are charged separately only if each unit is in one block: the unit must be a single "
        "row, or the column must be part of the unit",
        fix=Either(
            Code(f'unit=tc.Unit("{unit.column}", per="{blocks.by}")') if unit.columns else Set(blocks=None),
            Say("declare one dataset for each block, with the name of the block"),
        ),
    )
