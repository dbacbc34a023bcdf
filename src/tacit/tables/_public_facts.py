"""The public facts of a table dataset as a document: everything that planning needs, and nothing of the data.

Guarantee: the document is a function of what the curator declared, of the columns and types of the sources
and of the public tables. No row of a protected table is read for it.

`open_facts` makes a dataset without its data from such a document, which may come from anywhere. It is read
field by field, and then the dataset that was made must write the same document again: so nothing in it is
ignored, and nothing else can be said.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tacit.algebra import Column, document
from tacit.core import KINDS, Fact, Limits, Table, Unit, read_bounds, read_identity
from tacit.engines import (
    READING_FACTS,
    STORED_TYPES,
    TYPE_FAMILIES,
    DeclaredColumns,
    DeclaredTables,
    dialect_named,
)
from tacit.errors import TacitError
from tacit.exact import read_fraction
from tacit.fixes import Code
from tacit.tables._dataset import TableDataset
from tacit.tables._protect import BlockColumn
from tacit.tables.questions._keys import read_column_keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core import JSON, Charger, Identity, Kind
    from tacit.engines import Engine


FACTS_SCHEMA = "tacit/facts/1"
#: A column of a public table with more different values is not in the document.
MOST_VALUES = 10_000


def facts_document(dataset: TableDataset) -> dict[str, JSON]:
    """Write the public facts of a dataset; see `TableDataset.public_facts`."""
    writer = dataset._engine.writer()
    block = dataset.block_column
    return {
        "schema": FACTS_SCHEMA,
        "dataset": dataset.identity.document(),
        "main": dataset.main,
        "one_table": dataset.is_one_table,
        "record": dataset.record,
        "limits": _limits(dataset.limits),
        "block_column": None if block is None else {"name": block.name, "kind": block.kind},
        "dialect": {"name": writer.dialect.name, "settings": writer.dialect.settings()},
        "tables": [
            _table(table, dataset._engine, dict(writer.tables.get(name, {})))
            for name, table in dataset.tables.items()
        ],
    }


def _limits(limits: Limits) -> JSON:
    return {
        "rows": limits.rows,
        "groups": limits.groups,
        "per_group": limits.per_group,
        "joined": limits.joined,
        "pairs": limits.pairs,
        "default": limits.is_default,
        "of_tables": dict(limits.of_tables),
    }


def _table(table: Table, engine: Engine, types: dict[str, str | None]) -> JSON:
    return {
        "name": table.name,
        "columns": None if table.columns is None else list(table.columns),
        "key": table.key,
        "facts": {column: _fact(fact) for column, fact in sorted(table.facts.items())},
        "types": types,
        **({"reading": dict(table.reading)} if table.reading else {}),
        **({} if table.key is None else {"values": _values(table, engine)}),
    }


def _fact(fact: Fact) -> JSON:
    """Write what is known about a column; what is not known is omitted."""
    told: dict[str, JSON] = {
        "kind": fact.kind,
        "bounds": None if fact.bounds is None else [str(bound) for bound in fact.bounds],
        "keys": None if fact.keys is None else document(fact.keys),
        "never_null": fact.never_null,
        "unit": fact.unit,
        "unreadable": fact.unreadable,
        "default": fact.default,
        "stored": fact.stored,
        "order": document(fact.order) if fact.order else None,
    }
    return {name: value for name, value in told.items() if value not in (None, False, "")}


def kinds_read(kind: Kind | None) -> tuple[Kind | None, ...]:
    """Return how planning reads a column of a public table: as declared; else as stored, or as text."""
    return (None, "text") if kind is None else (kind,)


def _values(table: Table, engine: Engine) -> JSON:
    """Write the different values of the columns of a public table, where there are not too many."""
    found: list[JSON] = []
    for column in table.columns or ():
        fact = table.facts.get(column)
        if fact is not None and fact.unreadable:
            continue
        for kind in kinds_read(None if fact is None else fact.kind):
            values = engine.public_values(table.name, Column(column, kind), MOST_VALUES + 1)
            written = None if values is None or len(values) > MOST_VALUES else _written(values)
            if written is not None:
                found.append({"column": column, "kind": kind, "values": written})
    return found


def _written(values: Sequence[object]) -> list[JSON] | None:
    """Write values exactly, in one order; None if one of them is of another type."""
    made: list[JSON] = []
    for value in sorted(values, key=lambda one: (type(one).__name__, str(one))):
        match value:
            case Decimal():
                made.append({"decimal": str(value)})
            case datetime() if value.tzinfo is None:
                made.append({"moment": value.isoformat()})
            case date() if not isinstance(value, datetime):
                made.append({"day": value.isoformat()})
            case bool() | int() | str() | float():
                made.append(document(value))
            case _:
                return None
    return made


_MOST = 10**9
_LIMITS = ("rows", "groups", "per_group", "joined")


def open_facts(document: Mapping[str, JSON], ledger: Charger) -> TableDataset:
    """Open a dataset from its public facts, without its data.

    Guarantee
    ---------
    Nothing of the data is read, and no account is opened in the ledger: the dataset's account exists where
    the data is. Plans have the same hash, cost, forecast, SQL and document as those of the dataset that wrote
    the facts. A draw is refused before its charge; a stored answer that an account has paid for can be read.

    Parameters
    ----------
    document
        What `TableDataset.public_facts` returned. Anything else is refused.
    ledger
        The ledger that has the dataset's account, or a service that charges and draws elsewhere.

    Examples
    --------
    >>> import tacit as tc
    >>> ledger = tc.Ledger.memory()
    >>> visits = tc.protect(
    ...     tc.tables.example_visits(),
    ...     unit="patient_id",
    ...     budget=tc.Budget(epsilon=1),
    ...     ledger=ledger,
    ...     name="visits",
    ... )
    >>> facts = tc.tables.open_facts(visits.public_facts(), ledger)
    >>> facts.agg(n=tc.count()).plan(epsilon=1) == visits.agg(n=tc.count()).plan(epsilon=1)
    True
    """
    try:
        dataset = _dataset(document, ledger)
        _insist(_text(facts_document(dataset)) == _text(document))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, TacitError):
        raise TacitError(
            "bad-parameter",
            "this is not a document of public facts that this version of Tacit can read",
            why=f"it has the schema {FACTS_SCHEMA}, and everything in it must be understood",
            fix=Code("dataset.public_facts()"),
        ) from None
    return dataset


def _text(document: object) -> str:
    return json.dumps(document, sort_keys=True, ensure_ascii=True, allow_nan=False)


def _dataset(written: Mapping[str, Any], ledger: Charger) -> TableDataset:
    _insist(written["schema"] == FACTS_SCHEMA and type(written["one_table"]) is bool)
    _insist(written["record"] in {"words", "shape"})
    identity = _identity(written["dataset"])
    tables = {_name(one["name"]): _read_table(one["name"], one) for one in written["tables"]}
    _insist(len({name.lower() for name in tables}) == len(written["tables"]))
    main = tables[written["main"]]
    _insist(main.key is None)
    for table in tables.values():
        owners = identity.unit.columns if table.key is None else (table.key,)
        _insist(table.columns is None or set(owners) <= set(table.columns))
    engine = DeclaredTables(
        {one["name"]: _declared(tables[one["name"]], one) for one in written["tables"]},
        dialect_named(written["dialect"]["name"], written["dialect"]["settings"]),
    )
    block = written["block_column"]
    column = None if block is None else BlockColumn(_name(block["name"]), _one_of(KINDS, block["kind"]))
    limits, one = _read_limits(written["limits"], tables), written["one_table"]
    record = written["record"]
    return TableDataset(identity, ledger, tables, limits, main.name, one, engine, column, record=record)


def _identity(written: Mapping[str, Any]) -> Identity:
    unit = Unit.from_text(written["unit"])
    _insist(unit.kind in {"column", "row"})
    identity = read_identity(
        name=written["name"], version=written["version"], unit=unit, adjacency=written["adjacency"]
    )
    return replace(identity, block=_name(written["block"])) if "block" in written else identity


def _read_limits(written: Mapping[str, Any], tables: Mapping[str, Table]) -> Limits:
    rows, groups, per_group, joined = numbers = [written[name] for name in _LIMITS]
    of_tables = tuple(sorted(written["of_tables"].items()))
    for number in (*numbers, written["pairs"], *(rows for _, rows in of_tables)):
        _insist(number is None or (type(number) is int and 0 < number <= _MOST))
    _insist(written["pairs"] is not None and type(written["default"]) is bool)
    _insist(all(tables[name].key is None for name, _ in of_tables))
    return Limits(rows, groups, per_group, joined, written["pairs"], written["default"], of_tables)


def _read_table(name: str, written: Mapping[str, Any]) -> Table:
    columns = written["columns"]
    facts = {_column(column): _read_fact(column, fact) for column, fact in written["facts"].items()}
    if columns is not None:
        _insist(type(columns) is list and len(set(map(_column, columns))) == len(columns))
        _insist(set(facts) <= set(columns))
    key = written["key"]
    names = None if columns is None else tuple(columns)
    reading = _reading(written.get("reading", {}))
    return Table(name, facts, names, key if key is None else _name(key), reading)


def _reading(written: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return what is declared of how a file is written, sorted by name."""
    _insist(all(fact in READING_FACTS and type(own) is str for fact, own in written.items()))
    return tuple(sorted(written.items()))


def _read_fact(column: str, written: Mapping[str, Any]) -> Fact:
    """Read what is known about a column; a field that is not one of a `Fact` is an error."""
    told = dict(written)
    if "bounds" in told:
        low, high = (read_fraction(text if "/" in text else f"{text}/1") for text in told["bounds"])
        told["bounds"] = read_bounds(column, (low, high))
        _insist(told["kind"] == "number")
    if "keys" in told:
        told["keys"] = read_column_keys(column, [_value(key) for key in told["keys"]])
    if "order" in told:
        told["order"] = tuple(_value(key) for key in told["order"])
        _insist(read_column_keys(column, list(told["order"])) == told["keys"])
    _insist(all(type(told.get(name, True)) is bool for name in ("never_null", "unit", "default")))
    _insist(type(told.get("unreadable", "")) is str)
    for name, allowed in (("kind", KINDS), ("stored", TYPE_FAMILIES)):
        _insist(name not in told or told[name] in allowed)
    return Fact(**told)


def _declared(table: Table, written: Mapping[str, Any]) -> DeclaredColumns:
    facts = table.facts
    columns = (
        None
        if table.columns is None
        else {c: facts[c].unreadable if c in facts else "" for c in table.columns}
    )
    stored = {c: _one_of(TYPE_FAMILIES, fact.stored) for c, fact in facts.items() if fact.stored}
    types = {_name(c): _one_of(STORED_TYPES, kind) for c, kind in written["types"].items()}
    if table.key is None:
        return DeclaredColumns(columns, stored, types)
    values = {
        (one["column"], one["kind"]): tuple(_value(value) for value in one["values"])
        for one in written["values"]
    }
    return DeclaredColumns(columns, stored, types, values)


def _value(written: Any) -> object:
    """Read a value of a public table, or a key."""
    match written:
        case None | bool() | int() | str():
            return written
        case {"number": str(text)}:
            return float.fromhex(text)
        case {"decimal": str(text)}:
            return Decimal(text)
        case {"moment": str(text)}:
            return datetime.fromisoformat(text)
        case {"day": str(text)}:
            return date.fromisoformat(text)
        case _:
            raise TypeError(type(written).__name__)


def _name(written: Any) -> str:
    _insist(type(written) is str and bool(written))
    return str(written)


def _column(written: Any) -> str:
    _insist(not _name(written).lower().startswith(("tacit_", "tacit ")))  # names of Tacit's own columns
    return str(written)


def _one_of(allowed: tuple[Any, ...], written: Any) -> Any:
    _insist(written in allowed)
    return written


def _insist(holds: bool) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise ValueError("the document contains something that is not a public fact")
