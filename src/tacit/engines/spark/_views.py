"""Spark's views: a table's rows with their owners, and the first rows of every owner by rank."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tacit.engines._dialect import numbered
from tacit.engines.spark._dialect import SPARK
from tacit.engines.spark._types import owner_sql, stored_type, value_sql

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.engines._sql_expressions import StoredTypes
    from tacit.engines._values import ColumnTypes
    from tacit.engines.spark._dialect import SparkDialect

_KEY_TYPES: dict[type, str] = {str: "string", float: "double", bool: "boolean"}


def view_types(types: ColumnTypes) -> StoredTypes:
    """Return what a view holds for each column."""
    return {column: stored_type(kind) or "text" for column, kind in types}


def view_sql(
    raw: str, unit: Sequence[str] | None, types: ColumnTypes, grids: Mapping[str, str] | None = None
) -> str:
    """Write the rows of a table: its columns, and the owner of each row in ``tacit_u``.

    Rows without an owner are dropped. In a public table, and where the unit is the row (``unit`` is empty),
    the owner is 0.
    """
    quote = SPARK.quote
    columns = "".join(f", {value_sql(c, t)} AS {quote(c)}" for c, t in types)
    rows = f"SELECT 0L AS tacit_u{columns} FROM {quote(raw)}"
    if unit:
        owner = owner_sql(unit, types)
        rows = (
            f"SELECT * FROM (SELECT {owner} AS tacit_u{columns} FROM {quote(raw)}) WHERE tacit_u IS NOT NULL"
        )
    if grids:
        on_grid = ", ".join(f"{sql} AS {quote(g)}" for g, sql in grids.items())
        rows = f"SELECT *, {on_grid} FROM ({rows})"
    return rows


def ranked_sql(
    name: str, types: ColumnTypes, dialect: SparkDialect, unit: Sequence[str] | None = None
) -> str:
    """Write the rows of a table with the rank of each among the rows of its owner.

    The order is the keyed hash, and then the values, so that no other row decides which of two rows with
    one hash comes first. md5 needs no second order: rows with one text are equal in every value. A column
    of whole numbers that is the unit itself is the same in all rows of an owner, so that it orders nothing.
    """
    held = view_types(types)
    alone = unit is not None and len(unit) == 1 and not dialect.portable
    same = {c for c in unit or () if alone and held.get(c) == "whole"}
    columns = [(dialect.quote(c), held[c]) for c, _ in types if c not in same]
    order = dialect.ranked(columns)
    if columns and not dialect.portable:
        order = f"{order}, {dialect.order([column for column, _ in columns])}"
    return f"SELECT *, {numbered(['tacit_u'], order)} AS tacit_r FROM {dialect.quote(name)}"


def first_sql(rows: str, n: int) -> str:
    """Write the first rows of each owner. The limit stands right above the rank, so that Spark cuts early."""
    return f"SELECT * FROM ({rows}) WHERE tacit_r <= {n}"


def keys_sql(lines: Sequence[Sequence[object]]) -> tuple[str, str]:
    """Write a small public table: the statement, and its parameter ``rows``, which Spark takes apart."""
    columns = list(zip(*lines, strict=True))
    kinds = [_KEY_TYPES[next((type(k) for k in c if k is not None), str)] for c in columns]
    fields = ", ".join(f"k{i}: {kind}" for i, kind in enumerate(kinds))
    rows = json.dumps([{f"k{i}": key for i, key in enumerate(line)} for line in lines])
    return f"SELECT inline(from_json(:rows, 'array<struct<{fields}>>', map('mode', 'FAILFAST')))", rows
