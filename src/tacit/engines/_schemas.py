"""The schemas of an engine's sources: columns and types, read without touching a row."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.engines._source_views import source_sql

if TYPE_CHECKING:
    import duckdb

    from tacit.engines._sources import Source
    from tacit.engines._values import ColumnTypes

__all__ = ["coarse_moments", "read_schema", "schema_reader"]

_WITH_SCHEMA = {"parquet", "database", "connection"}
_COARSE = (
    "SELECT name FROM parquet_schema($path) WHERE converted_type = 'TIMESTAMP_MILLIS' "
    "OR (logical_type LIKE 'TimestampType%' AND logical_type NOT LIKE '%MILLIS=<null>%')"
)


def read_schema(source: Source, table: str) -> ColumnTypes | None:
    """Return the columns of a source with their types; None where it has no schema or is not available.

    A CSV file has a header and no types. A frame is not asked, because its types may follow from its values.
    """
    if source.kind not in _WITH_SCHEMA or (
        source.kind != "connection" and not Path(str(source.place)).exists()
    ):
        return None
    import duckdb

    describe = f"DESCRIBE {source_sql(source, table)}"
    try:
        match source.kind:
            case "parquet":
                described = schema_reader().execute(describe).fetchall()
            case "database":
                path = str(source.place).replace("'", "''")
                with duckdb.connect() as con:
                    con.execute(f"ATTACH '{path}' AS \"tacit db {table}\" (READ_ONLY)")
                    described = con.execute(describe).fetchall()
            case _:
                described = source.place.cursor().execute(describe).fetchall()  # type: ignore[attr-defined]
    except duckdb.Error:
        return None
    return tuple((str(line[0]), str(line[1])) for line in described)


def coarse_moments(con: duckdb.DuckDBPyConnection, source: Source) -> set[str]:
    """Name the moments that a Parquet file keeps in milliseconds: DuckDB raises on one beyond its range."""
    if source.kind != "parquet":
        return set()
    found = con.execute(_COARSE, {"path": str(source.place)}).fetchall()
    return {str(line[0]) for line in found}


def schema_reader() -> duckdb.DuckDBPyConnection:
    """Return a cursor that reads the schemas of files; the process has one connection for it."""
    return _connection().cursor()


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"threads": 1})
