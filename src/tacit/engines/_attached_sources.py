"""The sources of a DuckDB connection, attached as they are, or as a copy if they cannot be read in place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.engines._connections import copy_table
from tacit.engines._csv_files import copy_with_coded_cells
from tacit.engines._frames import register
from tacit.engines._parquet_footers import copy_with_bytes
from tacit.engines._remote_files import download
from tacit.engines._sources import CsvSource, FrameSource, ParquetSource, StoredTable
from tacit.engines._values import GENERATED, quote, string

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

    from tacit.engines._sources import Source, SourceTable


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
    found: dict[str, Source] = {}
    for i, (name, table) in enumerate(tables.items()):
        source = found[name] = table.source
        match source:
            case ParquetSource() if as_bytes:
                found[name] = _with_bytes(source, folder / f"{i}.parquet")
            case CsvSource():
                source.check_form()
                copy = folder / f"{i}.csv"
                if copy_with_coded_cells(Path(source.file), copy, source.encoding, source.quote):
                    found[name] = replace(source, copy=copy)
            case FrameSource():
                register(con, f"tacit raw {name}", source.place)
            case StoredTable(is_file=True):
                source.attach(con, name)
                found[name] = source.found(con, name)
            case StoredTable():
                found[name] = _from_connection(con, name, source, None if shared else folder / f"{i}.duckdb")
    return found


def _from_connection(
    con: duckdb.DuckDBPyConnection, name: str, source: StoredTable, copy: Path | None
) -> StoredTable:
    """Look a table up in its own connection; copy it where the connections lead to several databases."""
    own: duckdb.DuckDBPyConnection = source.place.cursor()  # type: ignore[attr-defined]
    found = source.found(own, name)
    if copy is None:
        return found
    stored = [column for column, kind in found.described(own, name) if kind != GENERATED]
    copy_table(own, found.within, stored, copy)
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
