"""Engines compute exact integers where the data is. Every engine runs the same contract tests."""

from tacit.engines._choice import open_engine, place_source
from tacit.engines._columns import ColumnRole, ReadColumns, SourceColumns
from tacit.engines._connections import limit_connections
from tacit.engines._csv_conversion import Conversion, convert_csv
from tacit.engines._declared import DIALECTS, DeclaredColumns, DeclaredTables, dialect_named
from tacit.engines._dialect import STORED_TYPES, Dialect
from tacit.engines._duckdb import DuckDB
from tacit.engines._frames import cell_text
from tacit.engines._protocol import Engine, EngineTransaction, SmallTables, StatementRows
from tacit.engines._remote_files import is_remote
from tacit.engines._row_files import KEPT, read_kept, read_note, write_rows
from tacit.engines._source_arguments import csv_file, read_source
from tacit.engines._source_checks import check_sources
from tacit.engines._sources import READING_FACTS, CsvSource, Source, SourceTable, empty_table
from tacit.engines._sql_expressions import grid_columns
from tacit.engines._values import MOST_TEXT, TYPE_FAMILIES, quote

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
