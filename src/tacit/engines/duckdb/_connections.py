"""The DuckDB engine's connections: a private one that sees only its sources, or a cursor of the user's.

Sources are attached as they are, or as a copy if they cannot be read in place. Snapshots and spilled data lie
in a scratch folder, which is removed when its process ends. The process holds the lock on the folder's file
``alive`` as long as it lives, however it ends. A folder whose lock is free belongs to a process that was
killed, and the next process removes it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
import weakref
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.engines._values import GENERATED, quote, string
from tacit.engines.sources._csv_files import copy_with_coded_cells
from tacit.engines.sources._frames import register
from tacit.engines.sources._parquet import copy_with_bytes, download
from tacit.engines.sources._sources import CsvSource, FrameSource, ParquetSource, StoredTable
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import duckdb

    from tacit.engines.sources._sources import Source, SourceTable


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


def all_rows(cursor: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """Fetch all rows of a statement. Equal texts of a long result become one.

    Groups by several columns repeat their keys, and DuckDB hands out every text as a new object: the copies
    would take more memory than everything else.
    """
    rows: list[tuple[object, ...]] = cursor.fetchmany(_BATCH)
    if len(rows) < _BATCH:
        return rows
    texts = [i for i, (_, kind, *_) in enumerate(cursor.description) if str(kind) == "VARCHAR"]
    if not texts:
        return rows + cursor.fetchall()
    interned: dict[object, object] = {}
    batch, rows = rows, []
    while batch:
        columns: list[Iterable[object]] = list(zip(*batch, strict=True))
        for i in texts:
            columns[i] = map(interned.setdefault, columns[i], columns[i])
        rows.extend(zip(*columns, strict=True))
        batch = cursor.fetchmany(_BATCH)
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
        collation = str(con.execute("SELECT current_setting('default_collation')").fetchall()[0][0])
        if collation.lower() not in {"", "c", "binary", "posix"}:
            raise TacitError(
                "bad-parameter",
                f"the connection compares text by the collation {collation!r} and is locked",
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
        cursor, *others = (one.cursor() for one in different)
        cursor.execute(f"ATTACH ':memory:' AS {quote(name)}")
        try:
            databases = [other.execute(_DATABASE, {"name": name}).fetchall() for other in others]
        finally:
            cursor.execute(f"DETACH {quote(name)}")
    except duckdb.ConnectionException:
        return False  # a closed connection is a source that is not available
    except duckdb.Error:  # nothing can be attached: then nothing shows that they share a database
        databases = [[]]
    if all(databases):
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
    settings = "SELECT current_setting('enable_external_access'), lower(current_setting('access_mode'))"
    [(external, mode)] = con.execute(settings).fetchall()
    return bool(external) and mode != "read_only"


def copy_table(
    con: duckdb.DuckDBPyConnection, within: Sequence[str], columns: Sequence[str], to: Path
) -> None:
    """Copy columns of a table into a new database file, as its table ``t``."""
    table, copy = ".".join(map(quote, within)), quote(f"tacit copy {os.getpid()} {next(_numbers)}")
    con.execute(f"ATTACH {string(str(to))} AS {copy}")
    try:
        names = ", ".join(map(quote, columns)) or "NULL"
        con.execute(f"CREATE TABLE {copy}.main.t AS SELECT {names} FROM {table}")
    finally:
        con.execute(f"DETACH {copy}")


try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows, where no folder is removed for another process
    fcntl = None  # type: ignore[assignment]

_PREFIX = "tacit-"
_ALIVE = "alive"


def scratch_folder(owner: object) -> tuple[Path, Callable[[], object]]:
    """Make a folder that only this user can enter; return it with the function that removes it.

    The folder is removed together with its owner at the latest. Folders that killed processes of this user
    left behind are removed first.
    """
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder / "new", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    if fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "new").rename(folder / _ALIVE)  # so the file of this name is locked from the start
    return folder, weakref.finalize(owner, _remove, folder, lock, os.getpid())


def _remove(folder: Path, lock: int, maker: int) -> None:
    """Remove the folder, unless this is a forked child of the process that made it."""
    if os.getpid() == maker:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_abandoned() -> None:
    if fcntl is None:  # pragma: no cover
        return
    for file in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_ALIVE}"):
        try:
            if file.parent.stat().st_uid != os.getuid():
                continue
            lock = os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)  # its process is alive
        else:
            _remove(file.parent, lock, os.getpid())


def stamps_of(tables: Mapping[str, SourceTable]) -> dict[str, object]:
    """Return what changes when a file of these tables changes; it stays inside the engine."""
    return {name: table.source.stamp() for name, table in tables.items()}


def attach_sources(
    con: duckdb.DuckDBPyConnection,
    tables: Mapping[str, SourceTable],
    folder: Path,
    *,
    shared: bool,
    as_bytes: bool,
) -> dict[str, Source]:
    """Give a connection its sources; return them as the connection finds them.

    Parameters
    ----------
    con
        The connection.
    tables
        The declared tables by name.
    folder
        The private folder for copies.
    shared
        Whether it is a cursor of the user's own connection, which has the tables already.
    as_bytes
        Whether Parquet files are copied with bytes in place of text.
    """
    sources: dict[str, Source] = {}
    for i, (name, table) in enumerate(tables.items()):
        source = sources[name] = table.source
        match source:
            case ParquetSource() if as_bytes:
                sources[name] = _with_bytes(source, folder / f"{i}.parquet")
            case CsvSource():
                source.check_form()
                copy = folder / f"{i}.csv"
                if copy_with_coded_cells(Path(source.file), copy, source.encoding, source.quote):
                    sources[name] = replace(source, copy=copy)
            case FrameSource():
                register(con, f"tacit raw {name}", source.place)
            case StoredTable(is_file=True):
                source.attach(con, name)
                sources[name] = source.find(con, name)
            case StoredTable():
                sources[name] = _from_connection(
                    con, name, source, None if shared else folder / f"{i}.duckdb"
                )
    return sources


def _from_connection(
    con: duckdb.DuckDBPyConnection, name: str, source: StoredTable, copy: Path | None
) -> StoredTable:
    """Look a table up in its own connection; copy it where the connections lead to several databases."""
    cursor: duckdb.DuckDBPyConnection = source.place.cursor()  # type: ignore[attr-defined]
    table = source.find(cursor, name)
    if copy is None:
        return table
    stored = [column for column, kind in table.described(cursor, name) if kind != GENERATED]
    copy_table(cursor, table.within, stored, copy)
    con.execute(f"ATTACH {string(str(copy))} AS {quote('tacit db ' + name)} (READ_ONLY)")
    return replace(source, within=(f"tacit db {name}", "main", "t"))


def _with_bytes(source: ParquetSource, copy: Path) -> ParquetSource:
    """Copy a Parquet file, or all files of a folder, to one that has bytes in place of text.

    A file in object storage is fetched for it, through memory.
    """
    if source.is_remote:
        fetched = copy.with_suffix(".fetched")
        download(source.file, fetched)
        copy_with_bytes(fetched, copy)
        fetched.unlink()
    elif not source.is_folder:
        copy_with_bytes(Path(source.file), copy)
    else:
        copy.mkdir()
        for j, file in enumerate(source.files):
            copy_with_bytes(Path(file), copy / f"{j}.parquet")
    return replace(source, copy=copy)
