"""Parquet files as a source of an engine: one file, a folder or pattern of files, or an address.

**Folders and patterns.** Names of files and the schemas in their footers are public facts. All files must
have the same columns with the same types: a conversion between types could fail on one row. Values in the
names of folders (``year=2024``) are not read.

**Footers.** DuckDB refuses a whole file if one text in it is not UTF-8, and so reveals one row. Only the
file's footer says which columns hold text. So a copy with another footer has the same rows, with bytes in
those columns, and a view can decode each value on its own. The footer is a Thrift structure (compact
protocol), and readers skip fields that they do not know. A column's annotation becomes such a field when the
step to its field number grows: this changes one byte for each column and moves nothing.

**Object storage.** DuckDB reads files by their address with its extension ``httpfs``. Before a charge only
the footer of a file is read, which holds names and types of columns. An address may carry a signature after
its question mark; no message shows that part. The extension is never downloaded: it is used where the
operator has installed it.
"""

from __future__ import annotations

import glob
import shutil
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Declare, Either, Say

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from tacit.engines._values import ColumnTypes


_ENDS = (".parquet", ".pq")
_SCHEMA, _CONVERTED, _LOGICAL = 2, 6, 10
_TEXTS = {_CONVERTED: {0, 8, 38}, _LOGICAL: {0x1C, 0x4C, 0xCC}}  # UTF8, ENUM, JSON as they are written
_STRUCT, _LIST, _BINARY = 12, 9, 8
_WIDTHS = {1: 0, 2: 0, 3: 1, 7: 8}
_NUMBERS = {4, 5, 6}
_FULL_NIBBLE = 0xF0
_SCHEMES = ("https://", "http://", "s3://", "gs://", "gcs://", "r2://")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def is_pattern(path: Path) -> bool:
    """Return whether a path stands for several files: it has ``*``, ``?`` or ``[`` and does not exist."""
    return glob.has_magic(str(path)) and not path.exists()


def parquet_files(path: Path) -> tuple[Path, ...]:
    """Return the Parquet files of a folder, at any depth, or those that match a pattern, sorted by name.

    Files and folders whose names start with a point or an underscore are no data. A path that is neither
    stands for itself.
    """
    if is_pattern(path):
        base = Path(*_fixed(path))
        matches = [*base.glob(str(path.relative_to(base)))]
    elif path.is_dir():
        matches, base = [*path.rglob("*")], path
    else:
        return (path,)
    files = [
        one
        for one in matches
        if one.suffix.lower() in _ENDS
        and one.is_file()
        and not any(part.startswith((".", "_")) for part in one.relative_to(base).parts)
    ]
    odd = next((one for one in files if glob.has_magic(str(one))), None)
    if odd is not None:
        raise TacitError(
            "bad-parameter",
            f"the name of the file {odd.name!r} contains one of the characters * ? [",
            why="the engine would read other files in its place",
            fix="rename the file",
        )
    return tuple(sorted(files))


def _fixed(path: Path) -> list[str]:
    """Return the parts of a pattern's path before the first part with a sign."""
    fixed = []
    for part in path.parts[:-1]:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return fixed


def refuse_lake(path: Path) -> None:
    """Refuse a folder of a Delta or Iceberg table: its files hold rows that were deleted or replaced."""
    base = Path(*_fixed(path)) if is_pattern(path) else path
    for folder in (base, *base.parents):
        delta = (folder / "_delta_log").is_dir()
        if not delta and not any(folder.glob("metadata/*.metadata.json")):
            continue
        kind, scan = ("a Delta", "delta_scan") if delta else ("an Iceberg", "iceberg_scan")
        raise TacitError(
            "bad-parameter",
            f"{folder} is {kind} table, which Tacit cannot read",
            why="its files also hold rows that were deleted, and DuckDB reads its log only with an extension "
            "that has to be downloaded; Tacit downloads nothing",
            fix=Either(
                Say("export the table to Parquet first"),
                Code(f"COPY (FROM {scan}('{folder.name}')) TO '{folder.name}.parquet'"),
            ),
        )


def check_same_schema(files: Sequence[Path], schemas: Sequence[ColumnTypes]) -> None:
    """Refuse files of which one has other columns, or other types, than the first by name."""
    columns_of_first = dict(schemas[0])
    for file, schema in zip(files[1:], schemas[1:], strict=True):
        columns_of_file = dict(schema)
        if columns_of_file == columns_of_first:
            continue
        column = next(
            c
            for c in (*columns_of_first, *columns_of_file)
            if columns_of_file.get(c) != columns_of_first.get(c)
        )
        other, here = (
            columns_of_file.get(column, "no such column"),
            columns_of_first.get(column, "no such column"),
        )
        raise TacitError(
            "bad-parameter",
            f"the column {column!r} is not the same in all files: {here} in {files[0].name}, {other} in "
            f"{file.name}",
            why="the files are read as one table, and a conversion could fail on one row and reveal it",
            fix="write all files with the same columns and types",
        )


def copy_with_bytes(file: Path, copy: Path) -> None:
    """Copy a Parquet file to one that has bytes in place of text; raise ValueError on another format."""
    shutil.copyfile(file, copy)
    with copy.open("r+b") as output:
        size = output.seek(-8, 2)
        tail = output.read(8)
        start = size - int.from_bytes(tail[:4], "little")
        if tail[4:] != b"PAR1" or start < 0:
            raise ValueError("this is not a Parquet file with a plain footer")
        output.seek(start)
        footer = bytearray(output.read(size - start))
        _forget_texts(footer)
        output.seek(start)
        output.write(footer)


def _forget_texts(footer: bytearray) -> None:
    """Turn the annotation of every text column into a field that no reader knows."""
    at, number = 0, 0
    while True:
        number, kind, at = _field(footer, at, number)
        if number == _SCHEMA and kind == _LIST:
            break
        at = _after(footer, at, kind)
    count, at = (footer[at] >> 4, at + 1) if footer[at] < _FULL_NIBBLE else _number(footer, at + 1)
    for _ in range(count):
        at = _after_column(footer, at)


def _after_column(footer: bytearray, at: int) -> int:
    number = 0
    while footer[at]:
        head = at
        number, kind, at = _field(footer, at, number)
        if footer[at] in _TEXTS.get(number, ()):
            footer[head] = (
                _FULL_NIBBLE | kind
            )  # its number and the following ones are beyond all known fields
        at = _after(footer, at, kind)
    return at + 1


def _field(footer: bytearray, at: int, before: int) -> tuple[int, int, int]:
    """Return a field's number, its kind and the place where its value begins."""
    step, kind = footer[at] >> 4, footer[at] & 15
    if not step:
        raise ValueError("the fields of the footer are not in order")
    return before + step, kind, at + 1


def _after(footer: bytearray, at: int, kind: int) -> int:
    """Return the place where the next field begins."""
    if kind in _NUMBERS:
        return _number(footer, at)[1]
    if kind == _BINARY:
        length, at = _number(footer, at)
        return at + length
    if kind == _STRUCT:
        number = 0
        while footer[at]:
            number, inner, at = _field(footer, at, number)
            at = _after(footer, at, inner)
        return at + 1
    if kind not in _WIDTHS:
        raise ValueError("the footer has a list inside a column")
    return at + _WIDTHS[kind]


def _number(footer: bytearray, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (footer[at] & 127) << shift
        shift += 7
        at += 1
        if footer[at - 1] < 128:
            return value, at


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
    parts, public_address = urlsplit(address), shown_address(address)
    if parts.scheme.lower() == "http" and parts.hostname not in _LOOPBACK:
        raise bad_parameter(
            "source",
            "an encrypted address",
            public_address,
            why="others on the network could read and change the rows",
            fix=Declare("source", "https" + public_address[4:]),
        )
    if not parts.path.lower().endswith(_ENDS) or any(sign in parts.path for sign in "*?["):
        raise TacitError(
            "bad-parameter",
            f"{public_address} is not the address of one Parquet file",
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
            f"{public_address} is in object storage, and DuckDB's extension httpfs is not installed here",
            why="Tacit downloads no program by itself; nothing was read",
            fix=Either(
                Code('duckdb.sql("INSTALL httpfs")'),
                Declare("source", f"copy/of/{public_address.rpartition('/')[2]}"),
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
