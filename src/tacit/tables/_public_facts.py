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
MAX_VALUES = 10_000
_MAX_LIMIT = 10**9
_LIMITS = ("rows", "groups", "per_group", "joined")


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
        **({} if dataset.minimum_people is None else {"minimum_people": dataset.minimum_people}),
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
        **({"unique": list(table.unique)} if table.unique else {}),
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
        "auto": fact.auto,
    }
    return {name: value for name, value in told.items() if value not in (None, False, "")}


def kinds_read(kind: Kind | None) -> tuple[Kind | None, ...]:
    """Return how planning reads a column of a public table: as declared; else as stored, or as text."""
    return (None, "text") if kind is None else (kind,)


def _values(table: Table, engine: Engine) -> JSON:
    """Write the different values of the columns of a public table, where there are not too many."""
    lists: list[JSON] = []
    for column in table.columns or ():
        fact = table.facts.get(column)
        if fact is not None and fact.unreadable:
            continue
        for kind in kinds_read(None if fact is None else fact.kind):
            values = engine.public_values(table.name, Column(column, kind), MAX_VALUES + 1)
            keys = None if values is None or len(values) > MAX_VALUES else _written(values)
            if keys is not None:
                lists.append({"column": column, "kind": kind, "values": keys})
    return lists


def _written(values: Sequence[object]) -> list[JSON] | None:
    """Write values exactly, in one order; None if one of them is of another type."""
    texts: list[JSON] = []
    for value in sorted(values, key=lambda one: (type(one).__name__, str(one))):
        match value:
            case Decimal():
                texts.append({"decimal": str(value)})
            case datetime() if value.tzinfo is None:
                texts.append({"moment": value.isoformat()})
            case date() if not isinstance(value, datetime):
                texts.append({"day": value.isoformat()})
            case bool() | int() | str() | float():
                texts.append(document(value))
            case _:
                return None
    return texts


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


def _dataset(document: Mapping[str, Any], ledger: Charger) -> TableDataset:
    _insist(document["schema"] == FACTS_SCHEMA and type(document["one_table"]) is bool)
    _insist(document["record"] in {"words", "shape"})
    identity = _identity(document["dataset"])
    tables = {
        _name(one_table["name"]): _read_table(one_table["name"], one_table)
        for one_table in document["tables"]
    }
    _insist(len({name.lower() for name in tables}) == len(document["tables"]))
    main = tables[document["main"]]
    _insist(main.key is None)
    for table in tables.values():
        owners = identity.unit.columns if table.key is None else (table.key,)
        _insist(table.columns is None or set(owners) <= set(table.columns))
        _insist(not table.unique or (table.key is None and set(table.unique) <= set(owners)))
    engine = DeclaredTables(
        {
            one_table["name"]: _declared(tables[one_table["name"]], one_table)
            for one_table in document["tables"]
        },
        dialect_named(document["dialect"]["name"], document["dialect"]["settings"]),
    )
    block = document["block_column"]
    column = None if block is None else BlockColumn(_name(block["name"]), _one_of(KINDS, block["kind"]))
    limits, one_table = _read_limits(document["limits"], tables), document["one_table"]
    record = document["record"]
    minimum = document.get("minimum_people")
    _insist(minimum is None or (type(minimum) is int and 1 < minimum <= _MAX_LIMIT))
    return TableDataset(
        identity, ledger, tables, limits, main.name, one_table, engine, column, minimum_people=minimum,
        record=record,
    )  # fmt: skip


def _identity(document: Mapping[str, Any]) -> Identity:
    unit = Unit.from_text(document["unit"])
    _insist(unit.kind in {"column", "row"})
    identity = read_identity(
        name=document["name"], version=document["version"], unit=unit, adjacency=document["adjacency"]
    )
    return replace(identity, block=_name(document["block"])) if "block" in document else identity


def _read_limits(document: Mapping[str, Any], tables: Mapping[str, Table]) -> Limits:
    rows, groups, per_group, joined = numbers = [document[name] for name in _LIMITS]
    of_tables = tuple(sorted(document["of_tables"].items()))
    for number in (*numbers, document["pairs"], *(rows for _, rows in of_tables)):
        _insist(number is None or (type(number) is int and 0 < number <= _MAX_LIMIT))
    _insist(document["pairs"] is not None and type(document["default"]) is bool)
    _insist(all(tables[name].key is None for name, _ in of_tables))
    keyed = tuple(name for name, table in tables.items() if table.unique)
    return Limits(rows, groups, per_group, joined, document["pairs"], document["default"], of_tables, keyed)


def _read_table(name: str, document: Mapping[str, Any]) -> Table:
    columns = document["columns"]
    facts = {_column(column): _read_fact(column, fact) for column, fact in document["facts"].items()}
    if columns is not None:
        _insist(type(columns) is list and len(set(map(_column, columns))) == len(columns))
        _insist(set(facts) <= set(columns))
    key = document["key"]
    names = None if columns is None else tuple(columns)
    reading = _reading(document.get("reading", {}))
    unique = tuple(_column(column) for column in document.get("unique", ()))
    return Table(name, facts, names, key if key is None else _name(key), reading, unique)


def _reading(pairs: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return what is declared of how a file is written, sorted by name."""
    _insist(all(fact in READING_FACTS and type(own) is str for fact, own in pairs.items()))
    return tuple(sorted(pairs.items()))


def _read_fact(column: str, document: Mapping[str, Any]) -> Fact:
    """Read what is known about a column; a field that is not one of a `Fact` is an error."""
    told = dict(document)
    if "bounds" in told:
        low, high = (read_fraction(text if "/" in text else f"{text}/1") for text in told["bounds"])
        told["bounds"] = read_bounds(column, (low, high))
        _insist(told["kind"] == "number")
    if "keys" in told:
        told["keys"] = read_column_keys(column, [_value(key) for key in told["keys"]])
    if "order" in told:
        told["order"] = tuple(_value(key) for key in told["order"])
        _insist(read_column_keys(column, list(told["order"])) == told["keys"])
    _insist(all(type(told.get(name, True)) is bool for name in ("never_null", "unit", "default", "auto")))
    _insist(type(told.get("unreadable", "")) is str)
    for name, allowed in (("kind", KINDS), ("stored", TYPE_FAMILIES)):
        _insist(name not in told or told[name] in allowed)
    return Fact(**told)


def _declared(table: Table, document: Mapping[str, Any]) -> DeclaredColumns:
    facts = table.facts
    columns = (
        None
        if table.columns is None
        else {c: facts[c].unreadable if c in facts else "" for c in table.columns}
    )
    stored = {c: _one_of(TYPE_FAMILIES, fact.stored) for c, fact in facts.items() if fact.stored}
    types = {_name(c): _one_of(STORED_TYPES, kind) for c, kind in document["types"].items()}
    if table.key is None:
        return DeclaredColumns(columns, stored, types)
    values = {
        (one["column"], one["kind"]): tuple(_value(value) for value in one["values"])
        for one in document["values"]
    }
    return DeclaredColumns(columns, stored, types, values)


def _value(document: Any) -> object:
    """Read a value of a public table, or a key."""
    match document:
        case None | bool() | int() | str():
            return document
        case {"number": str(text)}:
            return float.fromhex(text)
        case {"decimal": str(text)}:
            return Decimal(text)
        case {"moment": str(text)}:
            return datetime.fromisoformat(text)
        case {"day": str(text)}:
            return date.fromisoformat(text)
        case _:
            raise TypeError(type(document).__name__)


def _name(name: Any) -> str:
    _insist(type(name) is str and bool(name))
    return str(name)


def _column(name: Any) -> str:
    _insist(not _name(name).lower().startswith(("tacit_", "tacit ")))  # names of Tacit's own columns
    return str(name)


def _one_of(allowed: tuple[Any, ...], choice: Any) -> Any:
    _insist(choice in allowed)
    return choice


def _insist(holds: bool) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise ValueError("the document contains something that is not a public fact")
