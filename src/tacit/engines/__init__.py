"""Engines compute exact integers from the rows of a source. Every engine runs the same contract tests."""

from tacit.engines._duckdb import DuckDB, SourceTable
from tacit.engines._layout import MOST_TEXT
from tacit.engines._sources import Source, read_source

__all__ = ["MOST_TEXT", "DuckDB", "Source", "SourceTable", "read_source"]
