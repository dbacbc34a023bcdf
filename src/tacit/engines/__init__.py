"""Engines compute exact integers where the data is. Every engine runs the same contract tests.

- ``_interface``: what every engine does, and which one reads a source.
- ``_declared``: the engine of a dataset without data, which writes SQL and reads nothing.
- ``_values``: values as SQL reads them: owners, columns, texts.
- ``sql``: the one writer of SQL, and what a dialect must write.
- ``sources``: where the rows are: files, frames, databases.
- ``duckdb``: the engine in this process.
- ``postgres``: tables of a PostgreSQL database, read in place.
- ``spark``: tables and files of a Spark session.
"""

from tacit.engines._declared import DIALECTS, DeclaredColumns, DeclaredTables, dialect_named
from tacit.engines._interface import (
    Engine,
    EngineTransaction,
    SmallTables,
    StatementRows,
    open_engine,
    place_source,
)
from tacit.engines._values import MOST_TEXT, TYPE_FAMILIES, quote
from tacit.engines.duckdb._connections import limit_connections
from tacit.engines.duckdb._engine import DuckDB
from tacit.engines.sources._arguments import check_sources, csv_file, read_source
from tacit.engines.sources._columns import ColumnRole, ReadColumns, SourceColumns
from tacit.engines.sources._conversion import Conversion, convert_csv
from tacit.engines.sources._frames import cell_text
from tacit.engines.sources._parquet import is_remote
from tacit.engines.sources._row_files import KEPT, read_kept, read_note, write_rows
from tacit.engines.sources._sources import READING_FACTS, CsvSource, Source, SourceTable, empty_table
from tacit.engines.sql._dialect import STORED_TYPES, Dialect
from tacit.engines.sql._relations import grid_columns

__all__ = [
    "DIALECTS",
    "KEPT",
    "MOST_TEXT",
    "READING_FACTS",
    "STORED_TYPES",
    "TYPE_FAMILIES",
    "ColumnRole",
    "Conversion",
    "CsvSource",
    "DeclaredColumns",
    "DeclaredTables",
    "Dialect",
    "DuckDB",
    "Engine",
    "EngineTransaction",
    "ReadColumns",
    "SmallTables",
    "Source",
    "SourceColumns",
    "SourceTable",
    "StatementRows",
    "cell_text",
    "check_sources",
    "convert_csv",
    "csv_file",
    "dialect_named",
    "empty_table",
    "grid_columns",
    "is_remote",
    "limit_connections",
    "open_engine",
    "place_source",
    "quote",
    "read_kept",
    "read_note",
    "read_source",
    "write_rows",
]
