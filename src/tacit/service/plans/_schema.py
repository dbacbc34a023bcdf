"""What an analyst needs beside the editor: tables, columns and keys, and questions to start from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.core import Fact, Table
    from tacit.tables import TableDataset

_MOST_KEYS = 40  # shown of one column
_RESERVED = frozenset(
    (
        "ALL", "AND", "AS", "ASC", "BY", "CASE", "CAST", "DESC", "DISTINCT", "ELSE", "END", "EXCEPT", "FALSE",
        "FROM", "GROUP", "HAVING", "IN", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NOT", "NULL", "OFFSET", "ON",
        "OR", "ORDER", "SELECT", "TABLE", "THEN", "TO", "TRUE", "UNION", "USING", "VALUES", "WHEN", "WHERE",
        "WINDOW", "WITH",
    )
)  # fmt: skip
_KINDS = {"moment": "date", "date": "date", "text": "text", "number": "number", "boolean": "boolean"}


def schema_of(dataset: TableDataset) -> list[dict[str, Any]]:
    """Return the tables with what is public of their columns: type, range, keys."""
    return [
        {
            "name": name,
            "sql": sql_word(name),
            "public": table.key is not None,
            "columns": [_column(column, table.facts.get(column)) for column in _columns(table)],
        }
        for name, table in sorted(dataset.tables.items(), key=lambda pair: pair[0] != dataset.main)
    ]


def example_questions(dataset: TableDataset) -> list[dict[str, str]]:
    """Return a few questions that the dataset can answer, from its schema alone."""
    table = dataset.tables[dataset.main]
    columns = [_column(column, table.facts.get(column)) for column in _columns(table)]
    unit = dataset.unit
    keyed = next((one for one in columns if one["keys"] and not one["is_unit"]), None)
    ranged = next((one for one in columns if one["bounds"] and not one["is_unit"]), None)
    source = sql_word(dataset.main)
    found = [("How many rows?", f"SELECT COUNT(*) AS n\nFROM {source}")]
    if not unit.is_row and len(unit.columns) == 1:
        owner = sql_word(unit.columns[0])
        found.append((f"How many {unit.noun}s?", f"SELECT COUNT(DISTINCT {owner}) AS n\nFROM {source}"))
    if keyed is not None:
        group = keyed["sql"]
        found.append(
            (f"Rows by {keyed['name']}", f"SELECT {group}, COUNT(*) AS n\nFROM {source}\nGROUP BY {group}")
        )
    if ranged is not None:
        value = ranged["sql"]
        found.append((f"The mean of {ranged['name']}", f"SELECT AVG({value}) AS mean\nFROM {source}"))
        found.append((f"The median of {ranged['name']}", f"SELECT MEDIAN({value}) AS median\nFROM {source}"))
    if keyed is not None and ranged is not None:
        group, value = keyed["sql"], ranged["sql"]
        text = f"SELECT {group}, AVG({value}) AS mean\nFROM {source}\nGROUP BY {group}"
        found.append((f"The mean of {ranged['name']} by {keyed['name']}", text))
    return [{"label": label, "sql": sql} for label, sql in found]


def _columns(table: Table) -> tuple[str, ...]:
    return tuple(table.columns or table.facts)


def _column(name: str, fact: Fact | None) -> dict[str, Any]:
    bounds = None if fact is None or fact.bounds is None else [_short(end) for end in fact.bounds]
    keys = () if fact is None or fact.keys is None else fact.keys
    kind = None if fact is None else fact.kind or _KINDS.get(fact.stored)
    return {
        "name": name,
        "sql": sql_word(name),
        "kind": kind or "unknown",
        "bounds": bounds,
        "keys": [_short(key) for key in keys[:_MOST_KEYS]],
        "more_keys": max(0, len(keys) - _MOST_KEYS),
        "is_unit": fact is not None and fact.unit,
    }


def _short(value: object) -> object:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def sql_word(name: str) -> str:
    """Write a name as SQL does: in double quotes if it is not a plain word.

    Examples
    --------
    >>> sql_word("stay"), sql_word("Patient ID"), sql_word("order")
    ('stay', '"Patient ID"', '"order"')
    """
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and name.upper() not in _RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'
