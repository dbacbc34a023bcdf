"""Parquet files in object storage, by their address. DuckDB reads them with its extension ``httpfs``.

Before a charge only the footer of a file is read, which holds names and types of columns. An address may
carry a signature after its question mark; no message shows that part. The extension is never downloaded:
it is used where the operator has installed it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Declare, Either, Say

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

_SCHEMES = ("https://", "http://", "s3://", "gs://", "gcs://", "r2://")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_ENDS = (".parquet", ".pq")


def is_remote(place: object) -> bool:
    """Return whether a source's place is an address in object storage, not a path.

    Examples
    --------
    >>> is_remote("s3://hospital/visits.parquet"), is_remote("visits.parquet")
    (True, False)
    """
    return isinstance(place, str) and place.lower().startswith(_SCHEMES)


def shown_address(address: str) -> str:
    """Return an address without what may be secret: a user's name, a password, a signature.

    Examples
    --------
    >>> shown_address("https://ann:secret@host.org/visits.parquet?signature=secret")
    'https://host.org/visits.parquet'
    """
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def read_address(address: str) -> str:
    """Check an address: one Parquet file, read over an encrypted connection. Nothing is read.

    Examples
    --------
    >>> read_address("http://host.org/visits.parquet")
    Traceback (most recent call last):
        ...
    tacit.errors.TacitError: source must be an encrypted address, got 'http://host.org/visits.parquet'
      why: others on the network could read and change the rows
      fix: tc.protect(..., source="https://host.org/visits.parquet")
      code: bad-parameter
    """
    parts, shown = urlsplit(address), shown_address(address)
    if parts.scheme.lower() == "http" and parts.hostname not in _LOOPBACK:
        raise bad_parameter(
            "source",
            "an encrypted address",
            shown,
            why="others on the network could read and change the rows",
            fix=Declare("source", "https" + shown[4:]),
        )
    if not parts.path.lower().endswith(_ENDS) or any(sign in parts.path for sign in "*?["):
        raise TacitError(
            "bad-parameter",
            f"{shown} is not the address of one Parquet file",
            why="from an address, Tacit reads one Parquet file: its footer names the columns, and other "
            "files would have to be read as a whole",
            fix=Either(
                Declare("source", "s3://hospital/visits.parquet"),
                Say("use a copy on this machine (also a CSV file or a folder)"),
            ),
        )
    if not _can_load():
        raise TacitError(
            "missing-extra",
            f"{shown} is in object storage, and DuckDB's extension httpfs is not installed here",
            why="Tacit downloads no program by itself; nothing was read",
            fix=Either(
                Code('duckdb.sql("INSTALL httpfs")'), Declare("source", f"copy/of/{shown.rpartition('/')[2]}")
            ),
        )
    return address


def load_extension(con: duckdb.DuckDBPyConnection) -> None:
    """Load the installed extension and the operator's stored secrets, before the connection is locked."""
    con.execute("SET autoinstall_known_extensions = false")
    con.execute("LOAD httpfs")
    con.execute("SELECT count(*) FROM duckdb_secrets()").fetchall()


@cache
def _can_load() -> bool:
    import duckdb

    try:
        _reader()
    except duckdb.Error:
        _reader.cache_clear()
        return False
    return True


@cache
def _reader() -> duckdb.DuckDBPyConnection:
    """Return the one connection of the process that looks at addresses."""
    import duckdb

    con = duckdb.connect(config={"threads": 1})
    load_extension(con)
    return con


def remote_stamp(address: str) -> tuple[int, int] | None:
    """Return size and time of the last change, as the storage reports them; None if it cannot be reached.

    Only the header of the file is asked for. The time has whole seconds.
    """
    import duckdb

    try:
        lines = (
            _reader()
            .cursor()
            .execute("SELECT size, epoch_us(last_modified) FROM read_blob($address)", {"address": address})
            .fetchall()
        )
    except duckdb.Error:
        return None
    return (int(lines[0][0]), int(lines[0][1] or 0)) if lines else None


def download(address: str, to: Path) -> None:
    """Copy a file to this machine. It passes through memory."""
    sql = "SELECT content FROM read_blob($address)"
    [(content,)] = _reader().cursor().execute(sql, {"address": address}).fetchall()
    to.write_bytes(content)
