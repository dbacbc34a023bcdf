"""The DuckDB engine's connections: a private one that sees only its sources, or a cursor of the user's."""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import TYPE_CHECKING, Any

from tacit.engines._values import quote, string
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import duckdb

#: What all private connections of this process may take; see `limit_connections`.
_LIMITS: dict[str, str | int] = {}
_BATCH = 2_000  # rows that are fetched at a time


def limit_connections(*, memory: int, threads: int) -> None:
    """Limit every DuckDB connection that this process opens from now on: MiB of memory, and threads.

    For a process that serves one dataset and must stay within limits of its own.
    """
    _LIMITS.update(memory_limit=f"{memory}MiB", threads=threads)


def open_private(folder: Path, memory: str) -> duckdb.DuckDBPyConnection:
    """Open a connection whose snapshots and spilled data stay in a private folder."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory,
        "temp_directory": str(folder),
        "pandas_analyze_sample": 0,
        **_LIMITS,
    }
    file = str(folder / "snapshot.duckdb")
    try:
        return duckdb.connect(file, config=config)
    except duckdb.ParserException:  # DuckDB below 2 takes no share of the memory; its own limit is 80 %
        return duckdb.connect(file, config={k: v for k, v in config.items() if k != "memory_limit"})


def all_rows(found: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """Fetch all rows of a statement. Equal texts of a long result become one.

    Groups by several columns repeat their keys, and DuckDB hands out every text as a new object: the copies
    would take more memory than everything else.
    """
    rows: list[tuple[object, ...]] = found.fetchmany(_BATCH)
    if len(rows) < _BATCH:
        return rows
    texts = [i for i, (_, kind, *_) in enumerate(found.description) if str(kind) == "VARCHAR"]
    if not texts:
        return rows + found.fetchall()
    one: dict[object, object] = {}
    batch, rows = rows, []
    while batch:
        columns: list[Iterable[object]] = list(zip(*batch, strict=True))
        for i in texts:
            columns[i] = map(one.setdefault, columns[i], columns[i])
        rows.extend(zip(*columns, strict=True))
        batch = found.fetchmany(_BATCH)
    return rows


def lock(con: duckdb.DuckDBPyConnection, files: Sequence[str]) -> None:
    """Take away all access beyond these files, and lock the configuration."""
    import duckdb

    if files:
        con.execute("SET allowed_paths = $files", {"files": list(files)})
    con.execute("SET enable_external_access = false")
    con.execute("SET allow_community_extensions = false")
    con.execute("SET autoinstall_known_extensions = false")
    con.execute("SET preserve_insertion_order = false")
    with contextlib.suppress(duckdb.Error):  # a notebook without ipywidgets refuses it and shows no bar
        con.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
    con.execute("SET lock_configuration = true")


def check_collation(connection: Any) -> None:
    """Refuse a user's connection that treats different texts as equal and cannot be set to do otherwise.

    A closed connection is not refused here: it is a source that is not available.
    """
    import duckdb

    with contextlib.suppress(duckdb.ConnectionException):
        compare_bytes(connection.cursor())


def compare_bytes(con: duckdb.DuckDBPyConnection) -> None:
    """Make this cursor compare text byte by byte, whatever collation the connection has."""
    import duckdb

    try:
        con.execute("SET SESSION default_collation = 'C'")
    except duckdb.Error as error:
        found = str(con.execute("SELECT current_setting('default_collation')").fetchall()[0][0])
        if found.lower() not in {"", "c", "binary", "posix"}:
            raise TacitError(
                "bad-parameter",
                f"the connection compares text by the collation {found!r} and is locked",
                why="different texts can then count as equal, and one person can change which is shown",
                fix="run SET default_collation = '' before you lock the connection",
            ) from error


def are_apart(connections: Sequence[Any]) -> bool:
    """Return whether connections lead to several databases, so that none of them sees all tables.

    An empty database in memory is attached for a moment: connections that see it share everything. If they
    do not share it, tables are copied, and a connection that cannot write a copy is refused.
    """
    import duckdb

    different = list({id(one): one for one in connections}.values())
    if len(different) < 2:
        return False
    name = f"tacit probe {os.getpid()} {next(_numbers)}"
    try:
        first, *others = (one.cursor() for one in different)
        first.execute(f"ATTACH ':memory:' AS {quote(name)}")
        try:
            seen = [other.execute(_DATABASE, {"name": name}).fetchall() for other in others]
        finally:
            first.execute(f"DETACH {quote(name)}")
    except duckdb.ConnectionException:
        return False  # a closed connection is a source that is not available
    except duckdb.Error:  # nothing can be attached: then nothing shows that they share a database
        seen = [[]]
    if all(seen):
        return False
    if not all(_can_copy(one.cursor()) for one in different):
        raise TacitError(
            "bad-parameter",
            "the tables are in several DuckDB databases, but one of the connections cannot write a file",
            why="Tacit must copy tables of different databases to read them together",
            fix="use one connection that has attached all databases, or use the database files themselves",
        )
    return True


_numbers = itertools.count()  # names that no other attached database has
_DATABASE = "SELECT 1 FROM duckdb_databases() WHERE database_name = $name"


def _can_copy(con: duckdb.DuckDBPyConnection) -> bool:
    asked = "SELECT current_setting('enable_external_access'), lower(current_setting('access_mode'))"
    [(external, mode)] = con.execute(asked).fetchall()
    return bool(external) and mode != "read_only"


def copy_table(
    con: duckdb.DuckDBPyConnection, within: Sequence[str], columns: Sequence[str], to: Path
) -> None:
    """Copy columns of a table into a new database file, as its table ``t``."""
    table, copy = ".".join(map(quote, within)), quote(f"tacit copy {os.getpid()} {next(_numbers)}")
    con.execute(f"ATTACH {string(str(to))} AS {copy}")
    try:
        listed = ", ".join(map(quote, columns)) or "NULL"
        con.execute(f"CREATE TABLE {copy}.main.t AS SELECT {listed} FROM {table}")
    finally:
        con.execute(f"DETACH {copy}")
