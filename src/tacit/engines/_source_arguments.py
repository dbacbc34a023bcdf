"""What a person gives an engine as a source: a path, an address, a frame, a connection; recognised here."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from tacit.core import needs
from tacit.engines._csv_files import read_encoding
from tacit.engines._frame_text import home_of
from tacit.engines._packed_files import is_packed
from tacit.engines._parquet_folders import refuse_lake
from tacit.engines._remote_files import is_remote, read_address
from tacit.engines._sources import CsvSource, FrameSource, ParquetSource, Source, StoredTable, column_names
from tacit.engines._views import DATE_PARTS
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Declare, Either, Say, Set
from tacit.parameters import Choice

_FILES: dict[str, tuple[str, type[ParquetSource | CsvSource | StoredTable]]] = {
    ".parquet": ("parquet", ParquetSource),
    ".pq": ("parquet", ParquetSource),
    ".csv": ("csv", CsvSource),
    ".tsv": ("csv", CsvSource),
    ".duckdb": ("database", StoredTable),
    ".db": ("database", StoredTable),
}


def read_source(source: object, *, table: str = "") -> Source:
    """Recognise a source: a path, a frame, a DuckDB connection, or a pair (database or connection, table)."""
    if isinstance(source, Source):
        return source
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        return read_source(source[0], table=source[1])
    if is_remote(source):
        return ParquetSource("parquet", read_address(str(source)))
    if isinstance(source, str) and source.startswith(("postgresql://", "postgres://")):
        raise TacitError(
            "bad-parameter",
            "the address of a database server cannot be a source",
            why="the source is a table; the address, which may hold a password, belongs to engine",
            fix=Say("give the name of the table and, as engine, the address; or give a file"),
        )
    if isinstance(source, str) and "://" in source:
        raise bad_parameter(
            "source",
            "a file, a frame, or a table on an engine",
            source.partition("://")[0] + "://...",  # the rest may hold a password
            fix=Declare("source", "visits.parquet"),
        )
    if isinstance(source, str | os.PathLike):
        return _read_path(Path(source), table)
    if type(source).__name__ == "DuckDBPyConnection":
        return StoredTable("connection", source, table)
    if type(source).__name__ == "LazyFrame":
        raise TacitError(
            "bad-parameter",
            "a lazy frame is not a source",
            why="asking for its columns may read rows, and its later computations may fail on one of them",
            fix=Either(Code("tc.protect(frame.collect(), ...)"), Say("the file that it reads")),
        )
    if is_spark_frame(source):
        raise not_a_spark_frame()
    if hasattr(source, "__arrow_c_stream__") and (column_names(source) is None or not home_of(source)):
        return FrameSource("frame", _arrow_table(source))
    if column_names(source) is not None:
        return FrameSource("frame", source)
    raise TacitError(
        "bad-parameter",
        f"an object of the type {type(source).__name__} is not a source",
        why="Tacit reads Parquet, CSV, DuckDB, pandas, Polars, and every object that hands over Arrow",
        fix=Declare("source", "visits.parquet"),
    )


def _arrow_table(source: object) -> object:
    """Read what an object hands over as Arrow, once and now: later its computations could fail on one row."""
    needs("protect", "pyarrow", "tacit[pandas]")
    import pyarrow as pa

    try:
        return pa.table(source)
    except Exception:  # noqa: BLE001 - a reason could come from a row
        raise TacitError(
            "bad-parameter",
            f"the Arrow stream of the {type(source).__name__} cannot be read as a table",
            why="an object with __arrow_c_stream__ must hand over all its rows when the dataset is declared",
            fix=Declare("source", "visits.parquet"),
        ) from None


def is_spark_frame(given: object) -> bool:
    """Return whether an object is a DataFrame of Spark, which computes its rows when it is read."""
    packages = {base.__module__.partition(".")[0] for base in type(given).__mro__}
    return "pyspark" in packages and "DataFrame" in type(given).__name__


def not_a_spark_frame() -> TacitError:
    """Refuse a DataFrame of Spark."""
    return TacitError(
        "bad-parameter",
        "a DataFrame of Spark is not a source",
        why="it computes its rows when it is read; it can mix the rows of several people, "
        "and a row on which it fails would make every query fail, which reveals the row",
        fix=Code('frame.write.saveAsTable("visits_rows"), then tc.protect("visits_rows", engine=spark, ...)'),
    )


def _read_path(path: Path, table: str) -> Source:
    """Recognise a file by how its name ends, and a folder or a pattern of Parquet files."""
    place = path.absolute()
    try:
        place.stat()  # raises for a name that no file can have
    except (FileNotFoundError, NotADirectoryError):
        pass  # planning needs no file
    except (OSError, ValueError):
        raise TacitError(
            "bad-parameter",
            "the path of the source cannot be opened",
            why="its name is too long or contains a character that names of files do not have, or the folder "
            "may not be read",
            fix=Declare("source", "visits.parquet"),
        ) from None
    if is_packed(path):
        raise TacitError(
            "bad-parameter",
            f"{path.name} is compressed or an Excel file, which Tacit does not read in place",
            why="it is converted once, and the rows that a dataset reads then stay the same",
            fix=f"tacit convert {path.name} {path.name.partition('.')[0]}.parquet",
        )
    ending = ".parquet" if place.is_dir() else path.suffix.lower()
    if ending not in _FILES:
        raise bad_parameter(
            "source",
            f"a file that ends in {', '.join(_FILES)}, or a folder of Parquet files",
            str(path),
            fix=Declare("source", "visits.parquet"),
        )
    kind, form = _FILES[ending]
    source: Source = form(kind, place, table)
    if source.is_folder:
        refuse_lake(place)
    return source


def csv_file(
    path: str | os.PathLike[str],
    *,
    dates: str = "",
    decimal: str = ".",
    encoding: str = "utf-8",
    separator: str = "",
    quote: str = '"',
) -> CsvSource:
    """Declare how a CSV file is written, for `tacit.protect`. The file is not read.

    These facts are part of a question: after a change of them, the same question is a new one.

    Parameters
    ----------
    path
        The file.
    dates
        How dates are written: the words day, month and year in their order, with the sign between them, such
        as ``day.month.year`` for ``31.12.2023``. A cell such as this is ``2023-12-31`` in every question; a
        time may follow it. By default, dates are read with the year first, as in ``2023-12-31``.
    decimal
        The character before the decimals of a number: a point, or a comma, as in ``3,5``. With a comma, a
        cell such as this is ``3.5`` in every question. Separators between thousands are not read.
    encoding
        How bytes stand for text: ``"utf-8"``, or an encoding with one byte for each character, such as
        ``"latin-1"`` or ``"windows-1252"``.
    separator
        The character between cells: a comma, a semicolon, a tab or a bar; by default the header line shows
        it.
    quote
        The character around cells that contain a separator; empty if no cell is quoted, so that every line
        of the file is one row.

    Examples
    --------
    >>> import tacit as tc
    >>> file = tc.tables.csv_file("visits.csv", decimal=",", encoding="latin-1")
    >>> tc.protect(file, unit="patient_id", budget=tc.Budget(epsilon=1)).name
    'data'
    """
    source = read_source(path)
    if not isinstance(source, CsvSource):
        raise bad_parameter("a CSV file", "a file that ends in .csv or .tsv", str(path), fix="visits.csv")
    Choice((".", ",")).read("decimal", decimal)
    if separator not in {"", ",", ";", "\t", "|"}:
        raise bad_parameter(
            "separator", "a comma, a semicolon, a tab or a bar", separator, fix=Set(separator=";")
        )
    if quote not in {"", '"', "'"}:
        raise bad_parameter("quote", "a quotation mark, an apostrophe or empty", quote, fix=Set(quote='"'))
    order, coding = _read_dates(dates), read_encoding(encoding)
    return replace(source, dates=order, decimal=decimal, encoding=coding, separator=separator, quote=quote)


def _read_dates(order: str) -> str:
    """Read the order of a date's parts; the usual one is empty."""
    if order and (
        sorted(re.split(r"[./-]", order)) != sorted(DATE_PARTS) or len(set(re.findall(r"[./-]", order))) != 1
    ):
        raise bad_parameter(
            "dates", "the words day, month and year with one sign between them", order,
            fix=Set(dates="day.month.year"),
        )  # fmt: skip
    return "" if order == "-".join(DATE_PARTS) else order
