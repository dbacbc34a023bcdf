"""The sources of an engine: where the rows are. Before a charge, only columns and their types are read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tacit.engines._values import GENERATED, UNREADABLE, quote, string
from tacit.engines.sources._csv_files import cell_sql, csv_delimiter, csv_names, line_end
from tacit.engines.sources._csv_form import CsvDialect, check_form
from tacit.engines.sources._parquet import (
    check_same_schema,
    is_pattern,
    is_remote,
    load_extension,
    parquet_files,
    remote_stamp,
    shown_address,
)
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from tacit.algebra import ValueGrid
    from tacit.engines._values import ColumnTypes, UniqueColumns
    from tacit.fixes import Fix

#: What can be declared of how a CSV file is written, sorted by name, and what holds if nothing is declared.
READING_FACTS = {"dates": "", "decimal": ".", "encoding": "", "quote": '"', "separator": ""}
_COARSE = (
    "SELECT name FROM parquet_schema($path) WHERE converted_type = 'TIMESTAMP_MILLIS' "
    "OR (logical_type LIKE 'TimestampType%' AND logical_type NOT LIKE '%MILLIS=<null>%')"
)
#: The places of a table, best first; a temporary one belongs to one connection, not to the database.
_HOLDERS = """SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables
WHERE lower(table_name) = lower($table) AND table_catalog <> 'temp'
AND ($catalog = '' OR table_catalog = $catalog)
ORDER BY table_catalog <> current_database(), table_schema <> current_schema(), table_schema <> 'main'
LIMIT 1"""
#: Where a version of DuckDB does not say which columns are generated, all with a default are taken for it.
_GENERATED = """SELECT c.column_name FROM information_schema.columns c JOIN duckdb_tables() t
ON (c.table_catalog, c.table_schema, c.table_name) = (t.database_name, t.schema_name, t.table_name)
WHERE c.table_catalog = $1 AND c.table_schema = $2 AND c.table_name = $3 AND (c.is_generated = 'ALWAYS' OR
(c.is_generated IS NULL AND c.column_default IS NOT NULL AND contains(upper(t.sql), 'GENERATED ALWAYS')))"""

_KEYS = """SELECT constraint_column_names FROM duckdb_constraints()
WHERE database_name = $1 AND schema_name = $2 AND table_name = $3
AND constraint_type IN ('PRIMARY KEY', 'UNIQUE')"""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A place that holds one table. Each kind of place that DuckDB reads is a subclass.

    Parameters
    ----------
    kind
        What the place is: ``parquet``, ``csv``, ``database`` (a DuckDB file), ``connection`` (an open DuckDB
        connection), ``frame`` (pandas, Polars, Arrow: anything that DuckDB scans in place), or the name of
        another engine.
    place
        The path, the address in object storage, the connection or the frame.
    table
        For databases and connections: the name of the table there.
    """

    kind: str
    place: object = field(repr=False)  # an address may hold a password
    table: str = ""

    #: Whether the rows are in files, on this machine or in object storage.
    is_file: ClassVar[bool] = False

    @property
    def is_folder(self) -> bool:
        """Whether the place stands for any number of Parquet files: a folder, or a pattern."""
        return False

    @property
    def is_remote(self) -> bool:
        """Whether the file is in object storage, read by its address; other files have a path."""
        return False

    @property
    def is_there(self) -> bool:
        """Whether the file exists, or at least one file of a folder or pattern."""
        return True

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of all files that are read, sorted by name; none if the rows are not in such files."""
        return ()

    @property
    def shown(self) -> str:
        """The place as messages may show it: an address without its signature."""
        return str(self.place)

    @property
    def reading_facts(self) -> tuple[tuple[str, str], ...]:
        """What is declared of how a CSV file is written, by name; empty where nothing is.

        The same file read in another way gives other answers: so these facts are part of a question.
        """
        return ()

    def check_form(self, name: str = "") -> None:
        """Refuse a CSV file that is not well formed; see `CsvSource.check_form`."""

    def written_names(self) -> list[str] | None:
        """Return the names of the columns as the source writes them; None where it declares a schema."""
        return None

    def columns(self) -> tuple[str, ...] | None:
        """Return the names of the columns, or None where they are not available. Reads no row."""
        names = self.written_names()
        return None if names is None else _distinct(names)

    def schema(self, name: str) -> ColumnTypes | None:
        """Return the columns with their types; None where there is no schema or it is not available.

        A CSV file has a header and no types. A frame is not asked, because its types may follow from its
        values. No row is read.
        """
        del name
        return None

    def unique(self, name: str) -> UniqueColumns:
        """Return the columns that the catalogue of a database keeps unique; none where there is none."""
        del name
        return ()

    def stamp(self) -> object:
        """Return what changes when a file changes; it stays inside the engine. None where it is unknown."""
        return None

    def described(self, con: duckdb.DuckDBPyConnection, name: str) -> ColumnTypes:
        """Return the columns with their types, as a connection that has this source sees them."""
        return _described(con, self.sql(name))

    def sql(self, name: str) -> str:
        """Write the source of a table as a relation of DuckDB."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class FrameSource(Source):
    """A data frame in this process."""

    def written_names(self) -> list[str] | None:
        """Return the names of the frame's columns."""
        return _frame_names(self.place)

    def sql(self, name: str) -> str:
        """Write the frame, which a connection knows by this name."""
        return f"SELECT * FROM {quote('tacit raw ' + name)}"


@dataclass(frozen=True, slots=True, eq=False)
class StoredTable(Source):
    """A table of a DuckDB file (``database``) or of an open DuckDB connection (``connection``).

    Parameters
    ----------
    within
        Catalog, schema and name of the table, once it was found.
    """

    within: tuple[str, ...] = ()

    @property
    def is_file(self) -> bool:  # type: ignore[override]
        """Whether the rows are in a file."""
        return self.kind == "database"

    @property
    def is_there(self) -> bool:
        """Whether the file exists."""
        return not self.is_file or _exists(self.place)

    def stamp(self) -> object:
        """Return what changes when the file of the database changes."""
        return _stamp((str(self.place),)) if self.is_file else None

    def schema(self, name: str) -> ColumnTypes | None:
        """Return the columns with their types; None where the table is not available."""
        if not self.is_there:
            return None
        import duckdb

        try:
            if not self.is_file:
                return self.described(self.place.cursor(), name)  # type: ignore[attr-defined]
            with duckdb.connect() as con:
                self.attach(con, name)
                return self.described(con, name)
        except duckdb.Error:
            return None

    def unique(self, name: str) -> UniqueColumns:
        """Return the columns of each PRIMARY KEY and each UNIQUE constraint. No row is read."""
        if not self.is_there:
            return ()
        import duckdb

        try:
            if not self.is_file:
                return self._unique(self.place.cursor(), name)  # type: ignore[attr-defined]
            with duckdb.connect() as con:
                self.attach(con, name)
                return self._unique(con, name)
        except duckdb.Error:
            return ()

    def _unique(self, con: duckdb.DuckDBPyConnection, name: str) -> UniqueColumns:
        source = self if self.within else self.find(con, name)
        names = {column.lower(): column for column, _ in source.described(con, name)}
        keys = con.execute(_KEYS, list(source.within)).fetchall()
        return tuple(tuple(names[str(column).lower()] for column in key) for (key,) in keys)

    def attach(self, con: duckdb.DuckDBPyConnection, name: str) -> None:
        """Give a connection the database, for reading."""
        path, database = string(str(self.place)), quote("tacit db " + name)
        con.execute(f"ATTACH IF NOT EXISTS {path} AS {database} (READ_ONLY)")

    def described(self, con: duckdb.DuckDBPyConnection, name: str) -> ColumnTypes:
        """Return the columns with their types; DuckDB computes a generated column when it is read."""
        source = self if self.within else self.find(con, name)
        marks = {str(c): GENERATED for (c,) in con.execute(_GENERATED, list(source.within)).fetchall()}
        return _described(con, source.sql(name), marks)

    def find(self, con: duckdb.DuckDBPyConnection, name: str) -> StoredTable:
        """Find the table, so that no view and no variable of Python can stand for it.

        Raises a DuckDB error where there is none, and refuses a view: it computes its rows when it is read.
        """
        import duckdb

        table = self.table or name
        catalog = f"tacit db {name}" if self.is_file else ""
        lines = con.execute(_HOLDERS, {"table": table, "catalog": catalog}).fetchall()
        if not lines:
            raise duckdb.CatalogException(f"there is no table {table}")
        *within, kind = lines[0]
        if kind != "BASE TABLE":
            raise computes_rows(
                f"the source {table!r} is a view, not a table",
                "a view computes its rows when it is read",
                f"store its rows: CREATE TABLE {quote(table + '_rows')} AS SELECT * FROM {quote(table)}",
            )
        return replace(self, within=tuple(map(str, within)))

    def sql(self, name: str) -> str:
        """Write the table by its place in the database."""
        return f"SELECT * FROM {'.'.join(map(quote, self.within or (self.table or name,)))}"


@dataclass(frozen=True, slots=True, eq=False)
class _FileSource(Source):
    """Rows in one file or several.

    Parameters
    ----------
    copy
        A copy to read instead, once the engine has made one: a Parquet file (or a folder of them) that has
        bytes for text, or a CSV file with coded cells in UTF-8.
    """

    copy: Path | None = None
    is_file: ClassVar[bool] = True

    @property
    def file(self) -> str:
        """The path of the file that is read."""
        return str(self.copy or self.place)

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of all files that are read, sorted by name."""
        return (self.file,)

    @property
    def is_there(self) -> bool:
        """Whether the file exists."""
        return _exists(self.place)

    def stamp(self) -> object:
        """Return what changes when a file changes; it stays inside the engine. None where it is unknown."""
        try:
            return _stamp(self.files or (str(self.place),))
        except TacitError:
            return None


@dataclass(frozen=True, slots=True, eq=False)
class ParquetSource(_FileSource):
    """A Parquet file, a folder or a pattern of them, or a Parquet file in object storage."""

    @property
    def is_folder(self) -> bool:
        """Whether the place stands for any number of Parquet files: a folder, or a pattern."""
        return isinstance(self.place, Path) and (is_pattern(self.place) or self.place.is_dir())

    @property
    def is_remote(self) -> bool:
        """Whether the file is in object storage, read by its address; other files have a path."""
        return self.copy is None and isinstance(self.place, str)

    @property
    def is_there(self) -> bool:
        """Whether the file exists, or at least one file of a folder or pattern."""
        if self.is_remote:
            return remote_stamp(str(self.place)) is not None
        try:
            return bool(self.files) if self.is_folder else _exists(self.place)
        except OSError:  # a folder on the way that may not be entered
            return False

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of all files that are read, sorted by name."""
        if not self.is_folder:
            return (self.file,)
        return tuple(map(str, parquet_files(self.copy or Path(str(self.place)))))

    @property
    def shown(self) -> str:
        """The place as messages may show it: an address without its signature."""
        return shown_address(str(self.place)) if is_remote(self.place) else str(self.place)

    def stamp(self) -> object:
        """Return what changes when a file changes; it stays inside the engine. None where it is unknown."""
        return remote_stamp(str(self.place)) if self.is_remote else _FileSource.stamp(self)

    def schema(self, name: str) -> ColumnTypes | None:
        """Return the columns with their types; None where the file is not available. No row is read."""
        if not self.is_there:
            return None
        import duckdb

        try:
            con = schema_reader().cursor()
            if self.is_remote:
                load_extension(con)
            return self.described(con, name)
        except duckdb.Error:
            return None

    def described(self, con: duckdb.DuckDBPyConnection, name: str) -> ColumnTypes:
        """Return the columns with their types: those of the first file by name, which all others must have.

        DuckDB raises on a moment beyond its range where a file keeps moments in milliseconds.
        """
        if not self.is_folder:
            return _described(con, self.sql(name), _coarse(con, self.file))
        files = self.files
        if not files:
            raise OSError(f"there is no file of {name}")
        schemas = [_described(con, _parquet_sql((file,)), _coarse(con, file)) for file in files]
        check_same_schema([Path(file) for file in files], schemas)
        return schemas[0]

    def sql(self, name: str) -> str:
        """Write the file, or the files of the folder."""
        del name
        if self.is_folder:
            return _parquet_sql(self.files)
        return f"SELECT * FROM read_parquet({string(self.file)})"


@dataclass(frozen=True, slots=True, eq=False)
class CsvSource(_FileSource):
    """A CSV file, with what is declared of how it is written.

    Parameters
    ----------
    dates
        The order and the sign of a date's parts, such as ``day.month.year``; empty for ``year-month-day``.
    decimal
        The sign before the decimals of a number.
    encoding
        How bytes stand for text, one of the encodings with one byte for each character; empty for UTF-8.
    separator
        The sign between cells; empty if the header line shows it.
    quote
        The sign around cells that contain a separator; empty if no cell is quoted.
    """

    dates: str = ""
    decimal: str = "."
    encoding: str = ""
    separator: str = ""
    quote: str = '"'

    @property
    def delimiter(self) -> str:
        """The separator: the declared one, or the one that the header line shows."""
        return self.separator or csv_delimiter(Path(str(self.place)), self.encoding, self.quote)

    @property
    def reading_facts(self) -> tuple[tuple[str, str], ...]:
        """What is declared of how the file is written, by name; empty where nothing is.

        The same file read in another way gives other answers: so these facts are part of a question.
        """
        usual = READING_FACTS.items()
        return tuple((fact, declared) for fact, value in usual if (declared := getattr(self, fact)) != value)

    def check_form(self, name: str = "") -> None:
        """Refuse a file that is not well formed; see `check_form` of this package. For the curator alone.

        ``name`` is what the file was unpacked from.

        A file that has passed is read again only after it has changed. One that does not exist yet is checked
        before the first charge.
        """
        dialect = self.dialect()
        if dialect is not None:
            check_form(Path(str(self.place)), dialect, name, dict(self.reading_facts))

    def dialect(self) -> CsvDialect | None:
        """Return how the file is written, as declared and as its header shows; None without a header."""
        names = self.written_names()
        if not names:
            return None
        end, quote = line_end(Path(str(self.place)), self.quote), self.quote.encode()
        return CsvDialect(self.delimiter.encode(), end, quote, self.encoding, len(names))

    def written_names(self) -> list[str] | None:
        """Return the names of the columns as the header line writes them; None where there is no file."""
        return csv_names(Path(str(self.place)), self.encoding, self.separator, self.quote)

    def sql(self, name: str) -> str:
        """Write the file as a relation of texts.

        The file has passed `check_form`; the reader skips what it cannot read all the same, so that no line
        could abort the query.
        """
        del name
        names = self.columns() or ("column0",)
        texts = ", ".join(f"{string(c)}: 'VARCHAR'" for c in names)
        cells = ", ".join(f"{cell_sql(quote(c))} AS {quote(c)}" for c in names)
        return (
            f"SELECT {cells if self.copy else '*'} "
            f"FROM read_csv({string(self.file)}, header = true, all_varchar = true, "
            f"delim = '{self.delimiter}', "
            f"quote = {string(self.quote)}, escape = {string(self.quote)}, "
            "strict_mode = false, null_padding = true, "
            "ignore_errors = true, parallel = false, "
            f"max_line_size = 67108864, auto_detect = false, columns = {{{texts}}})"
        )


@dataclass(frozen=True, slots=True, eq=False)
class SourceTable:
    """A declared table: its source, and the columns that name the owner of each row.

    Parameters
    ----------
    source
        Where the rows are.
    unit
        The columns that name the owner: one (``("patient_id",)``) or several, whose values together name it
        (``("patient_id", "day")``); none where each row stands for itself. None for a public table.
    grids
        Further columns by name: a column of the table and the public grid on which they hold its values. A
        snapshot stores them as integers.
    """

    source: Source
    unit: tuple[str, ...] | None
    grids: Mapping[str, tuple[str, ValueGrid]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.unit, str):
            raise TypeError("unit must be a tuple of column names")


def computes_rows(sentence: str, why: str, fix: Fix | str) -> TacitError:
    """Refuse a source that computes its rows, whatever engine it is on."""
    mixes = (
        "it can mix the rows of several people, and a row on which it fails would make every query fail, "
        "which reveals the row"
    )
    return TacitError("bad-parameter", sentence, why=f"{why}; {mixes}", fix=fix)


def _exists(path: object) -> bool:
    try:
        return Path(str(path)).exists()
    except OSError:  # a folder on the way that may not be entered
        return False


def _stamp(files: Sequence[str]) -> object:
    try:
        states = [(file, Path(file).stat()) for file in files]
    except OSError:
        return None
    return [(file, s.st_mtime_ns, s.st_size, s.st_ino) for file, s in states]


def _described(
    con: duckdb.DuckDBPyConnection, relation: str, marks: Mapping[str, str] | None = None
) -> ColumnTypes:
    """Return the columns of a relation with their types; marks stand for the types of what is never read."""
    marks = marks or {}
    lines = con.execute(f"DESCRIBE {relation}").fetchall()
    return tuple((str(c), marks.get(str(c), str(kind))) for c, kind, *_ in lines)


def _coarse(con: duckdb.DuckDBPyConnection, file: str) -> dict[str, str]:
    """Mark the columns of a Parquet file that keep moments in milliseconds."""
    return {str(c): UNREADABLE for (c,) in con.execute(_COARSE, {"path": file}).fetchall()}


def _parquet_sql(files: tuple[str, ...]) -> str:
    """Write several Parquet files as one relation: columns by name, nothing from the names of folders."""
    files_sql = ", ".join(map(string, files))
    return f"SELECT * FROM read_parquet([{files_sql}], union_by_name = true, hive_partitioning = false)"


@cache
def schema_reader() -> duckdb.DuckDBPyConnection:
    """Return the one connection of the process that reads the schemas of files."""
    import duckdb

    return duckdb.connect(config={"threads": 1})


def column_names(frame: object) -> tuple[str, ...] | None:
    """Return distinct names for a frame's columns, ignoring case; None if the object is not a frame."""
    names = _frame_names(frame)
    return None if names is None else _distinct(names)


def _frame_names(frame: object) -> list[str] | None:
    for attribute in ("column_names", "columns"):
        columns = getattr(frame, attribute, None)
        if columns is not None and not callable(columns):
            return [str(c) for c in columns]
    return None


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Make all names differ, ignoring case, by a number after those that occurred before.

    The first column of a name keeps it, and no column gets a name that another one has: DuckDB ignores case,
    and a column that takes another's name would silently name other units.
    """
    lower_names = {name.lower() for name in names}
    used: set[str] = set()
    distinct = []
    for i, name in enumerate(names):
        free, n = name or f"column{i}", 1
        while free.lower() in used or (free != name and free.lower() in lower_names):
            free, n = f"{name}_{n}", n + 1
        used.add(free.lower())
        distinct.append(free)
    return tuple(distinct)


def empty_table(columns: Mapping[str, str]) -> object:
    """Return a source without rows that has these columns, by their types in SQL."""
    import duckdb

    database = duckdb.connect(config={"threads": 1})
    typed = ", ".join(f"{quote(name)} {kind}" for name, kind in columns.items())
    database.execute(f"CREATE TABLE empty ({typed})")
    return (database, "empty")
