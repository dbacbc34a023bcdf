"""Which engine reads a dataset's sources: the one that is named, or the one where the sources are."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

from tacit.engines._duckdb import DuckDB, SourceTable
from tacit.engines._sources import Source, read_source
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Set

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.engines._protocol import Engine

__all__ = ["open_engine", "place_source"]

#: The engines beside DuckDB, and the modules that open them when they are needed.
_OTHERS = {"postgres": "tacit.engines.postgres", "spark": "tacit.engines.spark"}
_SCHEMES = ("postgresql://", "postgres://")


def _engine_of(thing: object) -> str | None:
    """Recognise an engine by what is passed in: a session, a connection or an address; None if it is none."""
    if isinstance(thing, str):
        return "postgres" if thing.startswith(_SCHEMES) else None
    packages = {base.__module__.partition(".")[0] for base in type(thing).__mro__}
    if "psycopg" in packages:
        return "postgres"
    return "spark" if "pyspark" in packages and "SparkSession" in type(thing).__name__ else None


def place_source(given: object, engine: object = None) -> Source:
    """Recognise a source, on the engine that is named or that its pair names.

    Parameters
    ----------
    given
        What `tacit.protect` takes: a path, a frame, a connection, a pair of a place and a table; on another
        engine the name of a table there.
    engine
        None or ``"duckdb"``; an open psycopg connection or an address ``postgresql://...``; an open Spark
        session.
    """
    if engine is None and isinstance(given, tuple) and len(given) == 2 and _engine_of(given[0]) is not None:
        engine, given = given
    if engine is None or (isinstance(engine, str) and engine == "duckdb"):
        return read_source(given)
    name = _engine_of(engine)
    if name is None:
        raise bad_parameter(
            "engine",
            "'duckdb', a PostgreSQL connection or address, or a Spark session",
            _shown(engine),
            fix=Set(engine="postgresql://localhost/hospital"),
        )
    if isinstance(given, Source):
        return given
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if not isinstance(given, str):
        raise bad_parameter(
            "source", "the name of a table on the engine", type(given).__name__, fix=Set(source="visits")
        )
    return Source(name, engine, given)


def _shown(engine: object) -> str:
    """Return how a message names what is no engine; an address may hold a password."""
    if not isinstance(engine, str):
        return type(engine).__name__
    scheme, sign, _ = engine.partition("://")
    return f"{scheme}{sign}..." if sign else engine


def open_engine(tables: Mapping[str, SourceTable], *, key: int) -> Engine:
    """Open the engine on which all tables are; refuse tables on several engines. No row is read."""
    names = {_name_of(table.source) for table in tables.values()}
    if len(names) > 1:
        raise TacitError(
            "bad-parameter",
            f"the tables are on different engines: {', '.join(sorted(names))}",
            why="one question cannot read two engines",
            fix="put all tables, also the public ones, on one engine; or declare a dataset on each engine "
            "and ask them together as a consortium",
        )
    [name] = names
    if name == "duckdb":
        return DuckDB(tables, key=key)
    opened: Engine = import_module(_OTHERS[name]).open_engine(tables, key=key)
    return opened


def _name_of(source: Source) -> str:
    return source.kind if source.kind in _OTHERS else "duckdb"
