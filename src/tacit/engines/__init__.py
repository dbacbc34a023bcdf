"""Engines compute exact integers from the rows of a source. Every engine runs the same contract tests."""

from tacit.engines._columns import ColumnRole, ReadColumns, SourceColumns
from tacit.engines._duckdb import DuckDB, SourceTable
from tacit.engines._remote_files import is_remote
from tacit.engines._row_files import KEPT, read_kept, read_note, write_rows
from tacit.engines._sources import Source, csv_file, read_source
from tacit.engines._values import MOST_TEXT

__all__ = [
    "KEPT",
    "MOST_TEXT",
    "ColumnRole",
    "DuckDB",
    "ReadColumns",
    "Source",
    "SourceColumns",
    "SourceTable",
    "csv_file",
    "is_remote",
    "read_kept",
    "read_note",
    "read_source",
    "write_rows",
]
