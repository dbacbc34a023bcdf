"""Engines: where exact integers are computed. DuckDB is the first; each runs the same contract suite."""

from tacit.engines.duck import DuckDB
from tacit.engines.duck import Place as SourceTable
from tacit.engines.sources import Source, read_source

__all__ = ["DuckDB", "Source", "SourceTable", "read_source"]
