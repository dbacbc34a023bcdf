"""What every engine does, and which engine reads a dataset's sources.

The algebra crosses this seam, never SQL. The engine is the one that is named, or the one where the sources
are.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeAlias

from tacit.engines.duckdb._engine import DuckDB
from tacit.engines.sources._arguments import is_spark_frame, not_a_spark_frame, read_source
from tacit.engines.sources._sources import Source, SourceTable
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Either, Set, as_fix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

    from tacit.algebra import Node, Statistic, TableQuestion
    from tacit.engines._values import TypeFamily, UniqueColumns
    from tacit.engines.sql._relations import SqlWriter
    from tacit.fixes import Fix


#: Small public tables that a question reads beside its sources, by name; their columns are k0, k1, ...
SmallTables: TypeAlias = "Mapping[str, Sequence[Sequence[object]]]"
#: The statistics of one statement, and its rows: the group's key, then the integers of each statistic.
StatementRows: TypeAlias = "tuple[tuple[Statistic, ...], list[tuple[object, ...]]]"
#: The engines beside DuckDB, and the modules that open them when they are needed.
_OTHERS = {"postgres": "tacit.engines.postgres", "spark": "tacit.engines.spark"}
_SCHEMES = ("postgresql://", "postgres://")
#: How the name of a table looks, with or without its schema.
_TABLE = re.compile(r"\w+(\.\w+){0,2}")


class EngineTransaction(Protocol):
    """One consistent reading of an engine's sources, for one plan."""

    def integers(
        self, question: TableQuestion, statistics: tuple[Statistic, ...], tables: SmallTables
    ) -> list[StatementRows]:
        """Compute exact integers for every group. The plan reports every failure as one opaque error."""


class Engine(Protocol):
    """Where exact integers of tables are computed.

    An engine is opened on sources. Outside of a transaction it reads only names and types of columns, and
    public tables.
    """

    def columns(self, table: str) -> Mapping[str, str] | None:
        """Return the columns of a table, or None where its source cannot be reached now.

        Beside each column stands the type that keeps it from being read; it is empty where nothing does.
        """

    def stored_as(self, table: str) -> Mapping[str, TypeFamily]:
        """Return the declared types of a table's columns; empty where types come from the values."""

    def unique(self, table: str) -> UniqueColumns:
        """Return the lists of columns that the catalogue keeps unique, in all rows of a table.

        They are what the catalogue enforces, never what the rows show. No row is read.
        """

    def missing_file(self, table: str) -> str:
        """Return the path of a table's file if it does not exist now; empty for every other source."""

    def public_values(
        self, table: str, value: Node, most: int, *, where: Node | None = None, aggregate: str | None = None
    ) -> list[object] | None:
        """Return the different values of an expression over a public table, or None if it is not available.

        A protected table is refused.

        Parameters
        ----------
        table
            The public table.
        value
            The expression; a column without a kind is returned as it is stored.
        most
            Return at most so many values.
        where
            Read only the lines for which this is true.
        aggregate
            ``min``, ``max``, ``avg``, ``sum``, ``count`` or ``median`` of the values instead of all of them.
        """

    def writer(self) -> SqlWriter:
        """Return the writer of the engine's SQL: its dialect and the types of the columns. Reads nothing."""

    def sql(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> tuple[str, ...]:
        """Write the statements that will run. A function of public facts: no row is read."""

    def check(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> None:
        """Let the engine bind the statements before the charge; no row is read."""

    def prepare(self) -> None:
        """Make now what quick answers need, so that no answer's time shows what it cost to make.

        Reads the data, keeps what it makes to the engine, and returns nothing. For a service, which opens a
        version before it takes questions.
        """

    def transaction(self) -> AbstractContextManager[EngineTransaction]:
        """Begin one consistent reading of the sources. Only a paid plan does."""

    def close(self) -> None:
        """Close what the engine opened."""


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
        if _engine_of(given) is not None:
            raise _table_missing(given)
        _refuse_address(given[0] if isinstance(given, tuple) and given else given)
        try:
            return read_source(given)
        except TacitError as error:
            if engine is None and isinstance(given, str | os.PathLike) and _TABLE.fullmatch(os.fspath(given)):
                raise _engine_missing(error) from None
            raise
    name = _engine_of(engine)
    if name is None:
        raise bad_parameter(
            "engine",
            "'duckdb', a PostgreSQL connection or address, or a Spark session",
            _shown(engine),
            fix=_engine_meant(engine),
        )
    if isinstance(given, Source):
        return given
    if is_spark_frame(given):
        raise not_a_spark_frame()
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if not isinstance(given, str):
        raise bad_parameter(
            "source",
            "the name of a table on the engine",
            type(given).__name__,
            why="one engine reads all tables of a dataset, including the public ones",
            fix=Set(source="visits"),
        )
    return Source(name, engine, given)


def _shown(engine: object) -> str:
    """Write what was given for an engine, without what may hold a password."""
    if not isinstance(engine, str):
        return type(engine).__name__
    scheme, colon, _ = engine.partition(":")
    return f"{scheme}:..." if colon else "..." if {"=", "@"} & set(engine) else engine


def _engine_meant(engine: object) -> Fix:
    """Offer the engine that was likely meant."""
    kind = engine if isinstance(engine, type) else type(engine)
    package = (engine if isinstance(engine, str) else kind.__module__).lower()
    if "spark" in package:
        return Code("engine=SparkSession.builder.getOrCreate()")
    return Set(engine="duckdb" if "duck" in package else "postgresql://user@host/database")


def _engine_missing(error: TacitError) -> TacitError:
    """Refuse what is not a file, but could be a table of a server."""
    return error.but(
        why="the name of a table needs the engine where the table is: PostgreSQL or Spark",
        fix=Either(as_fix(error.fix), Set(engine="postgresql://user@host/database")),
    )


def _table_missing(location: object) -> TacitError:
    """Refuse a server or a session that was given in place of a table."""
    engine = "spark" if _engine_of(location) == "spark" else "connection"
    if isinstance(location, str):
        engine = '"postgresql://..."'
    return TacitError(
        "bad-parameter",
        "the source says where the tables are, but not which table to read",
        fix=Code(f'tc.protect("visits", engine={engine}, ...)'),
    )


def _refuse_address(source: object) -> None:
    """Refuse the address of a database server in the place of a file, without showing it."""
    if isinstance(source, str) and source.lower().startswith("postgres") and ":/" in source:
        raise bad_parameter(
            "source",
            "the name of a table, with an engine whose address starts with postgresql://",
            _shown(source),
            fix=Set(source="visits", engine="postgresql://localhost/hospital"),
        )


def open_engine(tables: Mapping[str, SourceTable], *, key: int) -> Engine:
    """Open the engine on which all tables are; refuse tables on several engines. No row is read."""
    kinds = {table.source.kind for table in tables.values()}
    names = {kind if kind in _OTHERS else "duckdb" for kind in kinds}
    if len(names) > 1:
        raise TacitError(
            "bad-parameter",
            f"the tables are on different engines: {', '.join(sorted(names))}",
            why="one question cannot read two engines",
            fix="put all tables, including the public ones, on one engine; or declare a dataset on each "
            "engine and ask them together as a consortium",
        )
    [name] = names
    if name == "duckdb":
        return DuckDB(tables, key=key)
    opened_engine: Engine = import_module(_OTHERS[name]).open_engine(tables, key=key)
    return opened_engine
