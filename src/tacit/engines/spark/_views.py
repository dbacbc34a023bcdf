"""Spark's views: a table's rows with their owners, and the first rows of every owner by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.engines._dialect import numbered
from tacit.engines.spark._dialect import SPARK
from tacit.engines.spark._types import owner_sql, stored_type, value_sql

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.engines._sql_expressions import StoredTypes
    from tacit.engines._values import ColumnTypes

__all__ = ["first_sql", "ranked_sql", "view_sql", "view_types"]


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


def ranked_sql(name: str, types: ColumnTypes) -> str:
    """Write the rows of a table with the rank of each among the rows of its owner.

    The order is the keyed hash alone. Rows with one hash are equal in every value, but for a collision of
    md5 under a secret key: which of them comes first changes nothing.
    """
    held = view_types(types)
    rank = numbered(["tacit_u"], SPARK.ranked([(SPARK.quote(c), held[c]) for c, _ in types]))
    return f"SELECT *, {rank} AS tacit_r FROM {SPARK.quote(name)}"


def first_sql(rows: str, n: int) -> str:
    """Write the first rows of each owner. The limit stands right above the rank, so that Spark cuts early."""
    return f"SELECT * FROM ({rows}) WHERE tacit_r <= {n}"
