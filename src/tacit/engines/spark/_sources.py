"""Spark's sources: tables of its catalog and Parquet files. Before a charge, only their schemas are read.

The types of the columns decide which are safe, what a view holds, and who owns a row.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from tacit.algebra import choose_name
from tacit.engines._values import MOST_TEXT
from tacit.engines.sources._parquet import parquet_files, refuse_lake
from tacit.engines.sources._sources import ParquetSource, computes_rows, schema_reader
from tacit.engines.spark._dialect import SPARK
from tacit.engines.spark._functions import in_calendar, plain_text, text_of_number
from tacit.engines.spark._session import is_connect, is_local
from tacit.errors import TacitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.engines._values import ColumnTypes, TypeFamily
    from tacit.engines.sql._dialect import StoredType


#: The type of a column on which Spark fails where one of its moments is out of range: it is never read.
MILLISECONDS = "timestamp in milliseconds"
#: The same, where the files that would tell cannot be seen.
UNKNOWN_UNIT = "timestamp, perhaps in milliseconds"

_WHOLE = {"tinyint", "smallint", "int", "bigint"}
_FAMILIES: dict[StoredType, TypeFamily] = {
    "whole": "number", "float": "number", "digits": "number", "text": "text", "boolean": "boolean",
    "moment": "moment",
}  # fmt: skip
_ENDS = (".parquet", ".pq")
_OTHER_FILES = (".csv", ".tsv", ".csv.gz", ".json", ".jsonl", ".orc", ".avro", ".txt", ".xlsx", ".duckdb")
#: How many databases of a catalog are searched for a name that was misspelled.
_FEW_DATABASES = 20
_MOMENTS = {"timestamp", "timestamp_ntz"}
_MAX_DIGITS = 38
_SHORT = 18  #: Decimals with as many digits are whole numbers of 64 bits, whose digits Spark does not count.
#: DuckDB's names of types, as it finds them in a Parquet file, and how Spark declares them.
_DECLARED = {
    "TINYINT": "tinyint", "SMALLINT": "smallint", "INTEGER": "int", "BIGINT": "bigint",
    "UTINYINT": "smallint", "USMALLINT": "int", "UINTEGER": "bigint", "UBIGINT": "decimal(20,0)",
    "FLOAT": "float", "DOUBLE": "double", "VARCHAR": "string", "JSON": "string", "BLOB": "binary",
    "BOOLEAN": "boolean", "DATE": "date", "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
}  # fmt: skip


def stored_type(kind: str) -> StoredType | None:
    """Return what a view holds for a Spark type; None where its values are never read."""
    if kind in _WHOLE:
        return "whole"
    if kind in {"float", "double"}:
        return "float"
    if kind.startswith("decimal"):
        return "digits"
    if kind in {"string", "binary"} or kind.startswith(("string collate", "varchar(", "char(")):
        return "text"
    if kind == "boolean":
        return "boolean"
    return "moment" if kind in {"date", "timestamp", "timestamp_ntz"} else None


def family_of(kind: str) -> TypeFamily | None:
    """Return how values of a Spark type are read; None where they never are."""
    stored = stored_type(kind)
    return None if stored is None else _FAMILIES[stored]


def value_sql(column: str, kind: str) -> str:
    """Write a value in one of a few types; no value makes it fail.

    Floats have one zero and one NaN, moments have no time zone. Text has a bounded length and is compared
    byte by byte, whatever collation its column has; bytes that are not UTF-8 are written out.
    """
    c = SPARK.quote(column)
    match stored_type(kind):
        case "whole":
            return f"CAST({c} AS BIGINT)"
        case "float":
            return f"(CASE WHEN isnan({c}) THEN double('nan') ELSE CAST({c} AS DOUBLE) + 0e0 END)"
        case "digits":
            return f"CAST({c} AS STRING)"
        case "text":
            return plain_text(_text(c, kind))
        case "boolean":
            return c
        case "moment":
            return _moment(c, kind)
        case None:
            return "CAST(NULL AS STRING)"


def _text(column: str, kind: str) -> str:
    plain = kind == "string" or kind.startswith(("varchar(", "char("))
    return column if plain else f"CAST({column} AS STRING COLLATE UTF8_BINARY)"


def _moment(column: str, kind: str) -> str:
    if kind == "date":  # a day far outside cannot become a moment
        inside = f"{column} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        return f"(CASE WHEN {inside} THEN CAST({column} AS TIMESTAMP_NTZ) END)"
    return in_calendar(column if kind == "timestamp_ntz" else f"CAST({column} AS TIMESTAMP_NTZ)")


def owner_sql(unit: Sequence[str], types: ColumnTypes) -> str:
    """Write the owner of a row, by the same names as the DuckDB engine (see its ``owner_sql``)."""
    parts = [_name(column, _kind(column, types)) for column in unit]
    if len(parts) == 1:
        return parts[0]
    *parts_before, last_part = (f"CAST({part} AS STRING)" for part in parts)
    sized = "".join(f"CAST(octet_length({text}) AS STRING), ':', {text}, " for text in parts_before)
    return f"concat({sized}{last_part})"


def _kind(column: str, types: ColumnTypes) -> str:
    exact = dict(types).get(column)
    return exact if exact is not None else next(t for c, t in types if c.lower() == column.lower())


def _name(column: str, kind: str) -> str:
    """Write what a column names, so that two names are equal only if they name one unit."""
    c = SPARK.quote(column)
    match stored_type(kind):
        case "whole":
            return f"CAST({c} AS BIGINT)"
        case "float":
            return f"(CASE WHEN NOT isnan({c}) THEN {text_of_number(f'(CAST({c} AS DOUBLE) + 0e0)')} END)"
        case "digits":
            text = f"CAST({c} AS STRING)"
            return f"(CASE WHEN contains({text}, '.') THEN rtrim('.', rtrim('0', {text})) ELSE {text} END)"
        case "moment":
            return f"CAST({_moment(c, kind)} AS STRING)"
        case "boolean":
            return f"CAST({c} AS STRING)"
        case "text":
            return _named_text(_text(c, kind))
        case None:
            return "CAST(NULL AS STRING)"


def _named_text(text: str) -> str:
    """Write a text, or its digest where it is too long, looks like a digest, or is not UTF-8."""
    size, digest = f"octet_length({text})", f"concat('sha256:', sha2(CAST({text} AS BINARY), 256))"
    hashed = f"{size} >= 71 AND ({size} > {MOST_TEXT} OR startswith({text}, 'sha256:'))"
    return f"(CASE WHEN NOT is_valid_utf8({text}) OR ({hashed}) THEN {digest} ELSE {text} END)"


@dataclass(frozen=True, slots=True, eq=False)
class SparkSource:
    """A table of the catalog, or Parquet files, as one session sees it.

    Parameters
    ----------
    session
        Tacit's own session.
    name
        What the user wrote: ``visits``, ``schema.visits`` or a path.
    within
        The parts of the table's full name in the catalog; none for a path.
    """

    session: Any
    name: str
    within: tuple[str, ...] = ()
    is_here: bool = field(init=False)  #: Whether Spark runs on this machine; asking costs a call to Java.

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_here", is_local(self.session))

    @classmethod
    def find(cls, own_session: Any, session: Any, name: str) -> SparkSource:
        """Recognise a path or a table; refuse a view, and what is not stored as Parquet."""
        _refuse_file(own_session, name)
        if name.lower().rstrip("/").endswith(_ENDS) or "/" in name or "\\" in name:
            if is_local(own_session) and "://" not in name:
                refuse_lake(Path(name).absolute())
            return cls(own_session, name)
        return cls(own_session, name, _table_parts(session, name))

    @property
    def is_path(self) -> bool:
        """Whether this is a path, not a table of the catalog."""
        return not self.within

    @property
    def is_gone(self) -> bool:
        """Whether this is a path on this machine that leads to no file."""
        return self._is_local_path and not self.local_files

    @property
    def _is_local_path(self) -> bool:
        return self.is_path and self.is_here and "://" not in self.name

    @property
    def local_files(self) -> list[str]:
        """The files of a path on this machine; none where the files are elsewhere."""
        if not self._is_local_path:
            return []
        return [str(file) for file in parquet_files(Path(self.name).absolute()) if file.exists()]

    def schema(self) -> ColumnTypes:
        """Return the columns with their Spark types, from the footers or the catalog; reads no row."""
        if files := self.local_files:
            return self._local_schema(files)
        frame = self._frame(None)
        types = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
        if is_connect(self.session):  # it shows no footers: any moment may be stored in milliseconds
            return [(c, UNKNOWN_UNIT if t in _MOMENTS else t) for c, t in types]
        coarse = self._coarse(frame)
        return [(c, MILLISECONDS if c in coarse else t) for c, t in types]

    def _local_schema(self, files: list[str]) -> ColumnTypes:
        """Read footers with DuckDB, which also opens files that Spark refuses for one column's type."""
        path = Path(self.name).absolute()
        typed = ParquetSource("parquet", path).schema(self.name)
        if typed is None:
            raise OSError(f"the schema of {files[0]} cannot be read")
        odd = _odd_columns(files)
        names = _own_names(files[0])  # DuckDB gives a number to a name that differs from another in case only
        if [c.lower() for c in names] != [c.lower() for c, _ in typed] and len(names) == len(typed):
            typed = [(c, kind) for c, (_, kind) in zip(names, typed, strict=True)]
        return [(c, odd.get(c) or _declared(kind)) for c, kind in typed]

    def _coarse(self, frame: Any) -> set[str]:
        """Return the columns that keep moments in milliseconds, by the footers of the files."""
        if not any(field.dataType.simpleString() in _MOMENTS for field in frame.schema.fields):
            return set()
        jvm = self.session._jvm  # noqa: SLF001 - PySpark itself does not show footers
        context = self.session._jsparkSession.sparkContext()  # noqa: SLF001
        columns: set[str] = set()
        for file in frame.inputFiles():
            path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(file))
            input_file = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(
                path, context.hadoopConfiguration()
            )
            reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(input_file)
            try:
                fields = list(reader.getFooter().getFileMetaData().getSchema().getFields())
            finally:
                reader.close()
            kinds = {str(field.getName()): str(field.getLogicalTypeAnnotation()) for field in fields}
            columns |= {name for name, kind in kinds.items() if kind.startswith("TIMESTAMP(MILLIS")}
        return columns

    def frame(self, types: ColumnTypes) -> Any:
        """Return the rows with the columns that can be read; no other column is declared or opened."""
        return self._frame([(c, t) for c, t in types if stored_type(t) is not None])

    def _frame(self, types: ColumnTypes | None) -> Any:
        from pyspark.sql.types import StructField, StructType

        if not self.is_path:
            frame = self.session.table(".".join(map(SPARK.quote, self.within)))
            return frame if types is None else frame.select(*(frame[SPARK.quote(c)] for c, _ in types))
        reader = self.session.read.option("recursiveFileLookup", "true").option("mergeSchema", "false")
        if types is not None:
            fields = [StructField(c, _data_type(t)) for c, t in types]
            reader = reader.schema(StructType(fields))
        return reader.parquet(*(self.local_files or [self.name]))

    def refresh(self) -> None:
        """Forget which files of a table Spark found before; it lists the files of a path each time anyway.

        Spark then computes again what it keeps of the table.
        """
        if not self.is_path:
            self.session.catalog.refreshTable(".".join(map(SPARK.quote, self.within)))

    def stamp(self) -> object:
        """Return what changes when a file changes or the list of files does; it stays inside the engine."""
        files = self.local_files or list(self._frame(None).inputFiles())
        local = [_local(file) for file in files]
        if self.is_here and None not in local:
            stats = [(file, Path(file).stat()) for file in sorted(map(str, local))]
            return [(file, s.st_mtime_ns, s.st_size, s.st_ino) for file, s in stats]
        if not files:
            return []
        reader = self.session.read.format("binaryFile")
        stamps = reader.load(files).select("path", "modificationTime", "length").collect()
        return sorted((str(one[0]), str(one[1]), int(one[2])) for one in stamps)


def _local(file: str) -> str | None:
    """Return the path of a file on this machine; None for another place."""
    parsed = urlparse(file)
    return unquote(parsed.path) if parsed.scheme == "file" else file if not parsed.scheme else None


def _own_names(file: str) -> list[str]:
    """Return the columns of a file as it names them; the parts of nested columns follow their column."""
    with schema_reader().cursor() as con:
        statement = "SELECT name, coalesce(num_children, 0) FROM parquet_schema($file)"
        [_, *lines] = con.execute(statement, {"file": file}).fetchall()
    names, within = [], 0
    for name, parts in lines:
        if within == 0:
            names.append(str(name))
        else:
            within -= 1
        within += int(parts)
    return names


def _odd_columns(files: list[str]) -> dict[str, str]:
    """Return the columns whose type in the files is not the one that DuckDB's type stands for."""
    statement = "SELECT DISTINCT name, type, logical_type FROM parquet_schema($files)"
    with schema_reader().cursor() as con:
        lines = con.execute(statement, {"files": files}).fetchall()
    halves = {str(name): "half" for name, _, logical in lines if "Float16" in str(logical)}
    return {**halves, **{str(name): "timestamp" for name, kind, _ in lines if kind == "INT96"}}


def _declared(kind: str) -> str:
    if kind.startswith("DECIMAL("):
        # Spark fails on a value with more digits than its type has. Its bytes may hold some more than that.
        digits, scale = (int(part) for part in kind[8:-1].split(","))
        if digits <= _MAX_DIGITS:
            return f"decimal({_MAX_DIGITS if digits > _SHORT else digits},{scale})"
    return _DECLARED.get(kind, kind)


def _data_type(kind: str) -> Any:
    from pyspark.sql import types as t

    if kind.startswith("decimal"):
        precision, scale = (int(part) for part in kind[8:-1].split(","))
        return t.DecimalType(precision, scale)
    plain = {
        "tinyint": t.ByteType, "smallint": t.ShortType, "int": t.IntegerType, "bigint": t.LongType,
        "float": t.FloatType, "double": t.DoubleType, "binary": t.BinaryType, "boolean": t.BooleanType,
        "date": t.DateType, "timestamp": t.TimestampType, "timestamp_ntz": t.TimestampNTZType,
    }  # fmt: skip
    return plain.get(kind, t.StringType)()


def _spelled(sql: str, stored: str | None) -> str:
    """Return a name as the catalog stores it; the user's session may ignore case, and Tacit's does not."""
    return stored if stored is not None and stored.lower() == sql.lower() else sql


def _refuse_file(session: Any, name: str) -> None:
    """Refuse a file of another format, by how its name ends."""
    path = "/" in name or "\\" in name
    if name.lower().endswith(_OTHER_FILES) and (path or (is_local(session) and Path(name).is_file())):
        raise TacitError(
            "bad-parameter",
            f"the source {name!r} is not a Parquet file",
            why="on Spark, Tacit reads tables of the catalog and Parquet files",
            fix="store its rows as a table: CREATE TABLE visits_rows USING parquet AS SELECT ..., "
            "or read the file without Spark, as a dataset on DuckDB",
        )


def _unknown(session: Any, name: str) -> TacitError:
    """Refuse a name that no table has; offer tables that the session knows."""
    tables = tuple(_table_names(session, name.replace("`", "").rpartition(".")[0]))
    fix = choose_name(name, tables)
    elsewhere = next((one for one in tables if one.rpartition(".")[2].lower() == name.lower()), "")
    return TacitError(
        "unknown-table",
        f"the catalog of the Spark session has no table {name!r}",
        fix=replace(fix, close=elsewhere or fix.close)
        if tables
        else "the name of a table, with its database, or the path of Parquet files",
    )


def _table_names(session: Any, database_name: str) -> list[str]:
    """Return tables of the current database, of the named one and of a few others."""
    tables: list[str] = []
    with contextlib.suppress(Exception):  # whatever cannot be listed is not offered
        current = str(session.catalog.currentDatabase())
        others = [str(one[0]) for one in session.sql("SHOW DATABASES").collect()][:_FEW_DATABASES]
        for database in dict.fromkeys(
            (current, *([database_name] if database_name in others else []), *others)
        ):
            before = "" if database == current else f"{database}."
            within = SPARK.quote(database)
            views = {str(one[1]) for one in session.sql(f"SHOW VIEWS IN {within}").collect()}
            names = [str(one[1]) for one in session.sql(f"SHOW TABLES IN {within}").collect()]
            tables += [f"{before}{name}" for name in names if name not in views]
    return tables


def _table_parts(session: Any, name: str) -> tuple[str, ...]:
    """Find a table of the catalog in the user's session; refuse what computes its rows when it is read."""
    from pyspark.errors import AnalysisException

    try:
        table = session.catalog.getTable(name)
    except AnalysisException as error:
        if str(error.getCondition()).startswith(("TABLE_OR_VIEW_NOT_FOUND", "PARSE", "INVALID")):
            raise _unknown(session, name) from None
        raise
    kind = str(table.tableType)
    if table.isTemporary or "VIEW" in kind.upper():
        raise computes_rows(
            f"the source {name!r} is a view, not a table",
            "a view computes its rows when it is read",
            f"store its rows: CREATE TABLE {name}_rows USING parquet AS SELECT * FROM {name}",
        )
    namespace = [str(part) for part in (table.namespace or [])]
    within = (*([str(table.catalog)] if table.catalog else []), *namespace, str(table.name))
    lines = session.sql(f"DESCRIBE TABLE EXTENDED {'.'.join(map(SPARK.quote, within))}").collect()
    facts = _details([(str(one[0]), str(one[1] or "")) for one in lines])
    stored = [facts.get(row) for row in ("database", "table")]
    within = (*within[:-2], *map(_spelled, within[-2:], stored[-len(within) :]))
    provider = facts.get("provider", "").lower()
    if provider != "parquet" and "parquet" not in facts.get("serde library", "").lower():
        raise TacitError(
            "bad-parameter",
            f"the table {name!r} is stored as {provider or 'an unknown format'}, not as Parquet",
            why="Tacit's tests show only for Parquet that no row can make a query fail; this version was "
            "not tested with the packages that Delta and Iceberg need",
            fix=f"store its rows: CREATE TABLE {name}_rows USING parquet AS SELECT * FROM {name}",
        )
    return within


def _details(lines: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return what a description says about the table; its columns, which come first, are left out."""
    names = [name for name, _ in lines]
    start = names.index("# Detailed Table Information") if "# Detailed Table Information" in names else 0
    return {name.lower(): value for name, value in lines[start:]}
