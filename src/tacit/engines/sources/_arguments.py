"""What a person gives an engine as a source: a path, an address, a frame, a connection; recognised here.

Before an account is opened, the source is checked: its width, names that stand twice, its form.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.core import needs
from tacit.engines._values import family
from tacit.engines.duckdb._views import DATE_PARTS
from tacit.engines.sources._csv_files import is_packed, read_encoding
from tacit.engines.sources._frames import home_of
from tacit.engines.sources._parquet import is_remote, read_address, refuse_lake
from tacit.engines.sources._sources import (
    CsvSource,
    FrameSource,
    ParquetSource,
    Source,
    StoredTable,
    column_names,
    computes_rows,
    schema_reader,
)
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Declare, Either, Say
from tacit.parameters import Matching

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tacit.engines._values import ColumnTypes
    from tacit.engines.sources._sources import SourceTable


_FILES: dict[str, tuple[str, type[ParquetSource | CsvSource | StoredTable]]] = {
    ".parquet": ("parquet", ParquetSource),
    ".pq": ("parquet", ParquetSource),
    ".csv": ("csv", CsvSource),
    ".tsv": ("csv", CsvSource),
    ".duckdb": ("database", StoredTable),
    ".db": ("database", StoredTable),
}


#: The words day, month and year, each once, with the same sign between them; or nothing.
_DATE_ORDER = r"|(day|month|year)([./-])(?!\1)(day|month|year)\2(?!\1|\3)(day|month|year)"
#: DuckDB holds a row of at most 262,136 bytes: 16 for a text, 8 for a number and a bit for each. Ranking rows
#: of this length takes it about a minute; longer ones take several.
_MAX_ROW = 160_000
_TEXT, _NUMBER = 16, 8
_SHORT = frozenset({"number", "boolean", "moment"})
_LONG = ("DECIMAL", "HUGEINT", "UHUGEINT")
_TREE = "SELECT name, coalesce(num_children, 0) FROM parquet_schema($path)"


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


def is_spark_frame(source: object) -> bool:
    """Return whether an object is a DataFrame of Spark, which computes its rows when it is read."""
    packages = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    return "pyspark" in packages and "DataFrame" in type(source).__name__


def not_a_spark_frame() -> TacitError:
    """Refuse a DataFrame of Spark."""
    return computes_rows(
        "a DataFrame of Spark is not a source",
        "it computes its rows when it is read",
        Code('frame.write.saveAsTable("visits_rows"), then tc.protect("visits_rows", engine=spark, ...)'),
    )


def _read_path(path: Path, table: str) -> Source:
    """Recognise a file by how its name ends, and a folder or a pattern of Parquet files."""
    location = path.absolute()
    try:
        location.stat()  # raises for a name that no file can have
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
    ending = ".parquet" if location.is_dir() else path.suffix.lower()
    if ending not in _FILES:
        raise bad_parameter(
            "source",
            f"a file that ends in {', '.join(_FILES)}, or a folder of Parquet files",
            str(path),
            fix=Declare("source", "visits.parquet"),
        )
    kind, form = _FILES[ending]
    source: Source = form(kind, location, table)
    if source.is_folder:
        refuse_lake(location)
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
    Matching("a point or a comma", "[.,]", ",").read("decimal", decimal)
    Matching("a comma, a semicolon, a tab or a bar", r"[,;\t|]?", ";").read("separator", separator)
    Matching("a quotation mark, an apostrophe or empty", "[\"']?", '"').read("quote", quote)
    order, coding = _read_dates(dates), read_encoding(encoding)
    return replace(source, dates=order, decimal=decimal, encoding=coding, separator=separator, quote=quote)


def _read_dates(order: str) -> str:
    """Read the order of a date's parts; the usual one is empty."""
    words = "the words day, month and year with one sign between them"
    Matching(words, _DATE_ORDER, "day.month.year").read("dates", order)
    return "" if order == "-".join(DATE_PARTS) else order


def check_sources(tables: Mapping[str, SourceTable]) -> None:
    """Refuse, before an account is opened, what no question could read, or would read wrongly.

    A source without columns; one in which a column that names the owner of a row stands twice; and a CSV
    file that is not well formed. The last refusal depends on rows: it is for the curator.
    """
    for name, table in tables.items():
        _check_columns(table.source, name)
        check_sole(table.source, table.unit or ())
        table.source.check_form()


def _check_columns(source: Source, name: str) -> None:
    if source.columns() == ():
        raise TacitError(
            "bad-parameter",
            f"the source of {name!r} has no columns",
            why="a CSV file starts with a header line that names its columns",
            fix="give a source with at least one column",
        )


def check_width(name: str, typed: ColumnTypes) -> None:
    """Refuse a table whose rows are longer than DuckDB can hold, as its columns and their types show."""
    row = sum(_width(kind) for _, kind in typed)
    if row > _MAX_ROW:
        raise TacitError(
            "bad-parameter",
            f"the source of {name!r} has {len(typed):,} columns, and a row of them is too long for DuckDB",
            why=f"every question would fail after its charge; Tacit reads at most {_MAX_ROW // _TEXT:,} "
            f"columns of text, or {_MAX_ROW // _NUMBER:,} columns of numbers in a source with a schema",
            fix="keep only the columns that questions need, for example in a Parquet file",
        )


def _width(kind: str) -> int:
    return _NUMBER if family(kind) in _SHORT and not kind.startswith(_LONG) else _TEXT


def check_sole(source: Source, columns: Iterable[str]) -> None:
    """Refuse a column that says whose a row is, if the source has two of its name."""
    names = _declared_names(source)
    twice = next((column for column in columns if names.count(column) > 1), None)
    if twice is not None:
        raise TacitError(
            "bad-parameter",
            f"the source has {names.count(twice):,} columns named {twice!r}",
            why="the column says to whom a row belongs, and it is not clear which of them is meant",
            fix=Say("rename all of them but one"),
        )


def _declared_names(source: Source) -> list[str]:
    """Return the names of columns as the source writes them; of a database none, where all differ."""
    if not isinstance(source, ParquetSource) or not source.is_there or source.is_remote:
        return source.written_names() or []
    import duckdb

    try:
        lines = schema_reader().cursor().execute(_TREE, {"path": source.files[0]}).fetchall()
    except duckdb.Error:
        return []
    names, skipped = [], 0
    for name, children in lines[1:]:  # a tree, written from its root; the columns are the root's children
        if skipped:
            skipped += int(children) - 1
            continue
        names.append(str(name))
        skipped = int(children)
    return names
