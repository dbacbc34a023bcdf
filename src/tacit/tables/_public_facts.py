"""The public facts of a table dataset as a document: everything that planning needs, and nothing of the data.

Guarantee: the document is a function of what the curator declared, of the columns and types of the sources
and of the public tables. No row of a protected table is read for it.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from tacit.algebra import Column, document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import JSON, Fact, Kind, Limits, Table
    from tacit.engines import Engine
    from tacit.tables._dataset import TableDataset

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
