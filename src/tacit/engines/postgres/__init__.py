"""The PostgreSQL engine: tables of a database are read in place, by a role that need not write anything.

- ``_engine``: the engine.
- ``_sessions``: its connections to a server.
- ``_tables``: tables that can be a source, and how their columns are read.
- ``_dialect``: the SQL of PostgreSQL.
- ``_functions``: functions that PostgreSQL lacks, or that raise there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.engines.postgres._dialect import POSTGRES, PostgresDialect
from tacit.engines.postgres._engine import PostgresEngine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.engines.sources._sources import SourceTable

__all__ = ["POSTGRES", "PostgresDialect", "PostgresEngine", "dialect", "open_engine"]


def open_engine(tables: Mapping[str, SourceTable], *, key: int) -> PostgresEngine:
    """Open the engine on tables of one database. No row is read."""
    return PostgresEngine(tables, key=key)


def dialect(cases: str) -> PostgresDialect:
    """Return the dialect of a server whose letters change case by this collation."""
    return PostgresDialect(cases)
