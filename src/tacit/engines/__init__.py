"""Engines: where exact integers are computed. DuckDB is the first; each runs the same contract suite."""

from tacit.engines.duck import DuckDB, Place
from tacit.engines.sources import Source, read_source

__all__ = ["DuckDB", "Place", "Source", "read_source"]
