"""The DuckDB engine's connections: a private one that sees only its sources, or a cursor of the user's."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb

__all__ = ["check_collation", "compare_bytes", "lock", "open_private"]


def open_private(folder: Path, memory: str) -> duckdb.DuckDBPyConnection:
    """Open a connection whose snapshots and spilled data stay in a private folder."""
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory,
        "temp_directory": str(folder),
        "pandas_analyze_sample": 0,
    }
    return duckdb.connect(str(folder / "snapshot.duckdb"), config=config)


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
                why="only the first of several equal texts is shown, and one person can change which it is",
                fix="run SET default_collation = '' before you lock the connection",
            ) from error
