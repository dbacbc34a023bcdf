"""Rows that come in day by day, stored as Parquet files; and which units' rows of a day count.

A unit counts in a bounded number of files. Whether it counts in a file depends on its own rows in the files
before it alone, so that nothing changes for anybody else when a unit is added or removed.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.engines._values import MACROS, owner_sql, quote, string
from tacit.engines.duckdb._views import as_declared
from tacit.engines.sources._csv_files import copy_with_coded_cells
from tacit.engines.sources._frames import register
from tacit.engines.sources._sources import CsvSource, FrameSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import duckdb

    from tacit.engines.sources._sources import Source

#: The column that says whether the rows of a unit count in this file.
KEPT = "kept_by_tacit"
_NAME = "rows"
_NOTE = "tacit_note"


def write_rows(
    source: Source,
    path: Path,
    unit: str | None = None,
    barred: Callable[[Iterable[str]], list[str]] | None = None,
    note: str = "",
) -> tuple[str, ...]:
    """Write the rows of a frame, a CSV or a Parquet file to a new Parquet file; return their columns.

    A CSV file that is not well formed is refused as a whole.

    Parameters
    ----------
    source
        Where the rows are.
    path
        The file to write.
    unit
        The column that names the owner of a row, if some owners do not count.
    barred
        Called with the owners in the file; returns those that do not count. The column `KEPT` then says so.

    note
        Text that is kept in the file beside the rows; `read_note` gives it back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from tacit.engines import read_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "2026-01-01.parquet"
    ...     rows = pd.DataFrame({"pid": [1, 2]})
    ...     print(write_rows(read_source(rows), path, "pid", lambda owners: ["2"]), read_kept(path, "pid"))
    ('pid',) ['1']
    """
    with _instance().cursor() as con, readable_copy(source, path) as source:
        con.execute(MACROS)
        if isinstance(source, FrameSource):
            register(con, f"tacit raw {_NAME}", source.place)
        raw = source.sql(_NAME)
        if isinstance(source, CsvSource) and (source.decimal != "." or source.dates):
            cells = ", ".join(
                f"{as_declared(quote(c), source)} AS {quote(c)}" for c in source.columns() or ()
            )
            raw = f"SELECT {cells} FROM ({raw})"
        types = [(str(c), str(kind)) for c, kind, *_ in con.execute(f"DESCRIBE {raw}").fetchall()]
        names = tuple(name for name, _ in types)
        kept_column = ""
        if unit is not None and barred is not None and unit in names:
            owner = f"CAST({owner_sql((unit,), types)} AS VARCHAR)"
            owners = _owners(con, f"SELECT DISTINCT {owner} FROM ({raw})")
            con.execute("CREATE TEMP TABLE tacit_barred (name VARCHAR)")
            refused = barred(owners)
            if refused:
                con.execute("INSERT INTO tacit_barred SELECT unnest($names)", {"names": refused})
            kept_column = f", {owner} NOT IN (SELECT name FROM tacit_barred) AS {KEPT}"
        form = "FORMAT parquet" + (f", KV_METADATA {{{_NOTE}: {string(note)}}}" if note else "")
        con.execute(f"COPY (SELECT *{kept_column} FROM ({raw})) TO {string(str(path))} ({form})")
    return names


@contextmanager
def readable_copy(source: Source, beside: Path) -> Iterator[Source]:
    """Return a source whose file can be read as it is: for some CSV files a copy, beside another file."""
    if not isinstance(source, CsvSource):
        yield source
        return
    source.check_form()
    copy = beside.with_name(beside.name + ".copy")
    try:
        coded = copy_with_coded_cells(Path(source.file), copy, source.encoding, source.quote)
        yield replace(source, copy=copy) if coded else source
    finally:
        copy.unlink(missing_ok=True)


def read_note(path: Path) -> str:
    """Return the text that `write_rows` kept in a file beside its rows; empty for none."""
    with _instance().cursor() as con:
        notes = f"SELECT decode(value) FROM parquet_kv_metadata({string(str(path))})"
        row = con.execute(f"{notes} WHERE decode(key) = '{_NOTE}'").fetchone()
    return str(row[0]) if row else ""


def read_kept(path: Path, unit: str) -> list[str]:
    """Return the owners whose rows count in a file that `write_rows` wrote."""
    with _instance().cursor() as con:
        con.execute(MACROS)
        raw = f"SELECT * FROM read_parquet({string(str(path))})"
        types = [(str(c), str(kind)) for c, kind, *_ in con.execute(f"DESCRIBE {raw}").fetchall()]
        if not {unit, KEPT} <= {name for name, _ in types}:
            return []
        owner = f"CAST({owner_sql((unit,), types)} AS VARCHAR)"
        return _owners(con, f"SELECT DISTINCT {owner} FROM ({raw}) WHERE {quote(KEPT)}")


@cache
def _instance() -> duckdb.DuckDBPyConnection:
    """Return a database in memory that writes files; each use has a connection of its own to it."""
    import duckdb

    return duckdb.connect(config={"pandas_analyze_sample": 0})


def _owners(con: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    return [str(owner) for (owner,) in con.execute(sql).fetchall() if owner is not None]
