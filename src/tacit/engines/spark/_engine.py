"""The Spark engine: the same questions and the same integers as on DuckDB, where the data is.

What it guarantees to the plan
------------------------------
* The owner of a row, its values and its rank are functions of that owner's rows and of a secret key, so that
  a task that runs twice, or on two executors at once, gives the same rows.
* No value makes a statement fail. Spark analyses every statement before the charge.
* All statements of one plan read the same files: they are stamped before and after, and a plan whose files
  changed in between fails.
* Only the aggregates leave the cluster. Noise is drawn in this process.
* The user's session keeps its settings and views. Spark's logs of failures are silenced.

Its views hold a table's rows with their owners, and the first rows of every owner by rank.
"""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
import weakref
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tacit.algebra import Column, kind_of
from tacit.engines.spark._dialect import PORTABLE_SPARK, SPARK
from tacit.engines.spark._session import is_connect, is_stopped, open_session, quiet
from tacit.engines.spark._sources import SparkSource, family_of, owner_sql, stored_type, value_sql
from tacit.engines.sql._dialect import numbered
from tacit.engines.sql._relations import SqlWriter
from tacit.engines.sql._statements import public_values_sql, statements
from tacit.errors import TacitError
from tacit.fixes import Declare
from tacit.progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tacit.algebra import Node, Statistic, TableQuestion
    from tacit.engines._interface import SmallTables, StatementRows
    from tacit.engines._values import ColumnTypes, TypeFamily, UniqueColumns
    from tacit.engines.sources._sources import SourceTable
    from tacit.engines.spark._dialect import SparkDialect
    from tacit.engines.sql._relations import StoredTypes
    from tacit.engines.sql._statements import Statement


_KEY_TYPES: dict[type, str] = {str: "string", float: "double", bool: "boolean"}
_KIND_TYPES = {"number": "double", "boolean": "boolean"}


def view_types(types: ColumnTypes) -> StoredTypes:
    """Return what a view holds for each column."""
    return {column: stored_type(kind) or "text" for column, kind in types}


def view_sql(
    raw: str, unit: Sequence[str] | None, types: ColumnTypes, grids: Mapping[str, str] | None = None
) -> str:
    """Write the rows of a table: its columns, and the owner of each row in ``tacit_u``.

    Rows without an owner are dropped. In a public table, and where the unit is the row (``unit`` is empty),
    the owner is 0.
    """
    quote = SPARK.quote
    columns = "".join(f", {value_sql(c, t)} AS {quote(c)}" for c, t in types)
    rows = f"SELECT 0L AS tacit_u{columns} FROM {quote(raw)}"
    if unit:
        owner = owner_sql(unit, types)
        rows = (
            f"SELECT * FROM (SELECT {owner} AS tacit_u{columns} FROM {quote(raw)}) WHERE tacit_u IS NOT NULL"
        )
    if grids:
        on_grid = ", ".join(f"{sql} AS {quote(g)}" for g, sql in grids.items())
        rows = f"SELECT *, {on_grid} FROM ({rows})"
    return rows


def ranked_sql(
    name: str, types: ColumnTypes, dialect: SparkDialect, unit: Sequence[str] | None = None
) -> str:
    """Write the rows of a table with the rank of each among the rows of its owner.

    The order is the keyed hash, and then the values, so that no other row decides which of two rows with
    one hash comes first. md5 needs no second order: rows with one text are equal in every value. A column
    of whole numbers that is the unit itself is the same in all rows of an owner, so that it orders nothing.
    """
    column_types = view_types(types)
    is_single = unit is not None and len(unit) == 1 and not dialect.portable
    same = {c for c in unit or () if is_single and column_types.get(c) == "whole"}
    columns = [(dialect.quote(c), column_types[c]) for c, _ in types if c not in same]
    order = dialect.ranked(columns)
    if columns and not dialect.portable:
        order = f"{order}, {dialect.order([column for column, _ in columns])}"
    return f"SELECT *, {numbered(['tacit_u'], order)} AS tacit_r FROM {dialect.quote(name)}"


def first_sql(rows: str, n: int) -> str:
    """Write the first rows of each owner. The limit stands right above the rank, so that Spark cuts early."""
    return f"SELECT * FROM ({rows}) WHERE tacit_r <= {n}"


def keys_sql(lines: Sequence[Sequence[object]]) -> tuple[str, str]:
    """Write a small public table: the statement, and its parameter ``rows``, which Spark takes apart."""
    columns = list(zip(*lines, strict=True))
    kinds = [_KEY_TYPES[next((type(k) for k in c if k is not None), str)] for c in columns]
    fields = ", ".join(f"k{i}: {kind}" for i, kind in enumerate(kinds))
    rows = json.dumps([{f"k{i}": key for i, key in enumerate(line)} for line in lines])
    return f"SELECT inline(from_json(:rows, 'array<struct<{fields}>>', map('mode', 'FAILFAST')))", rows


def open_engine(tables: Mapping[str, SourceTable], *, key: int) -> SparkEngine:
    """Open the engine on tables of one Spark session. No row is read."""
    return SparkEngine(tables, key=key)


class SparkEngine:
    """Spark 4, through a session that the user passes in.

    Parameters
    ----------
    tables
        The declared tables by name; the place of each source is the session.
    key
        The secret that orders each unit's rows and groups; one per dataset and session.
    snapshot
        After how many questions about a table to keep its ranked rows on the cluster, so that later questions
        are quick; None: never.
    portable
        Whether units keep the same rows as on the other engines; see `SparkDialect`.
    """

    def __init__(
        self,
        tables: Mapping[str, SourceTable],
        *,
        key: int,
        snapshot: int | None = 1,
        portable: bool = False,
    ) -> None:
        self.dialect = PORTABLE_SPARK if portable else SPARK
        self._tables = dict(tables)
        self._key, self._snapshot = key, snapshot
        self._lock = threading.RLock()
        self._user_session: Any = next(iter(self._tables.values())).source.place
        self._own_session: Any = None
        self._tag = f"tacit-{uuid.uuid4().hex}"
        self._types: dict[str, ColumnTypes] = {}
        self._sources: dict[str, SparkSource] = {}
        self._stamps: dict[str, object] = {}
        self._uses: dict[str, int] = {}
        self._snapshots: dict[str, Any] = {}
        self._schemas: dict[str, tuple[object, ColumnTypes]] = {}
        self._views: dict[str, object] = {}
        self._limited_views: set[tuple[str, int]] = set()
        self._at_work = False
        weakref.finalize(
            self, _give_back, self._snapshots
        ).atexit = False  # the cluster forgets with the session
        if any(table.source.place is not self._user_session for table in self._tables.values()):
            raise TacitError(
                "bad-parameter",
                "the tables are in several Spark sessions",
                why="one question runs in one session",
                fix="name all tables in the same session",
            )
        if is_stopped(self._user_session):
            raise _stopped()

    # Before the charge --------------------------------------------------------------------------------------

    def columns(self, table: str) -> dict[str, str] | None:
        """Return a table's columns, or None where its source is not available. Reads no row."""
        types = self._described(table)
        if types is None:
            return None
        return {name: "" if family_of(kind) is not None else kind for name, kind in types}

    def stored_as(self, table: str) -> dict[str, TypeFamily]:
        """Return the declared types of a table's columns, as `columns` found them. Reads nothing."""
        types = self._types.get(table, ())
        return {name: type_family for name, kind in types if (type_family := family_of(kind)) is not None}

    def unique(self, table: str) -> UniqueColumns:
        """Return nothing: a catalogue of Spark enforces no keys."""
        del table
        return ()

    def missing_file(self, table: str) -> str:
        """Return the path of a table's file if it does not exist now; empty for every other source."""
        with self._lock:
            source = self._sources.get(table)
        return source.name if source is not None and source.is_gone else ""

    def public_values(
        self, table: str, value: Node, most: int, *, where: Node | None = None, aggregate: str | None = None
    ) -> list[object] | None:
        """Return the different values of an expression over a public table, or None if it is not there."""
        if self._tables[table].unit is not None:
            raise TacitError(
                "not-allowed",
                f"the table {table!r} is protected",
                why="only a public table can be read without a charge",
                fix=Declare("public", ("hospitals.csv", "hospital"), column="hospitals"),
            )
        if self._described(table) is None:
            return None
        with self._lock, self._working():
            self._lay_views([table])
            sql = public_values_sql(self.writer(), table, value, most, where, aggregate)
            raw = isinstance(value, Column) and value.kind is None and aggregate is None
            digits = raw and view_types(self._types[table]).get(value.name) == "digits"  # type: ignore[union-attr]
            values = [line[0] for line in self._own_session.sql(sql).collect()]
        return [Decimal(str(v)) if digits else v for v in values]

    def sql(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> tuple[str, ...]:
        """Write the statements that will run. No row is read."""
        for table in self._tables:
            if table not in self._types:
                self._described(table)
        return tuple(one.sql for one in statements(self.writer(), question, statistics))

    def check(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> None:
        """Let Spark analyse the statements. No row is read, and no job runs."""
        if is_stopped(self._user_session):
            raise _stopped()
        try:
            with self._lock, self._working():
                for table in self._tables:
                    if self._described(table, fresh=True) is None:
                        raise _stopped() if is_stopped(self._user_session) else _not_available(table)
                self._analyse(question, statistics)
        except _failures() as error:
            raise TacitError(
                "bad-expression",
                "Spark cannot run this question, so nothing was charged",
                why=f"it refuses the statement as {getattr(error, 'getCondition', str)() or 'an error'}",
                fix="ask in a simpler way, and report this as a defect of Tacit",
            ) from None

    def _analyse(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> None:
        """Let Spark resolve every name and type of the statements."""
        self._lay_views(self._tables)
        kinds = [_KIND_TYPES.get(str(kind_of(e)), "string") for _, e in question.by]
        empty = ", ".join(f"CAST(NULL AS {kind}) AS k{i}" for i, kind in enumerate(kinds))
        for statement in statements(self.writer(), question, statistics):
            for name, rows in sorted(statement.limited):
                self._lay_limit(name, rows)
            sql = (
                f"WITH tacit_keys AS (SELECT {empty}) SELECT * FROM ({statement.sql})"
                if kinds
                else statement.sql
            )
            analysed = self._own_session.sql(sql, self._secrets({"tacit_sample": (("",),)}))
            if is_connect(self._own_session):  # only there, a statement waits until somebody asks about it
                _ = analysed.schema

    # After the charge ---------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self) -> Iterator[SparkEngine]:
        """Read the files of all tables as they are now; fail if they are others at the end."""
        with self._lock, self._working():
            for table in self._tables:
                if self._described(table, fresh=True) is None:
                    raise OSError(f"the table {table} is not available")
            before = {name: source.stamp() for name, source in self._sources.items()}
            if before != self._stamps:
                self._forget()
            self._stamps = before
            self._lay_views(self._tables)
            try:
                yield self
            except BaseException:
                with contextlib.suppress(Exception):
                    self._own_session.interruptTag(self._tag)
                raise
            if {name: source.stamp() for name, source in self._sources.items()} != before:
                self._forget()
                raise OSError("a file changed while it was read")

    def integers(
        self, question: TableQuestion, statistics: tuple[Statistic, ...], tables: SmallTables
    ) -> list[StatementRows]:
        """Compute the exact integers of a question. The plan reports every failure as one opaque error."""
        for name, lines in tables.items():
            if name != "tacit_sample":
                self._lay_keys(name, lines)
        sql_statements = statements(self.writer(), question, statistics)
        return [(one.statistics, self._run(one, tables)) for one in sql_statements]

    def _run(self, statement: Statement, tables: SmallTables) -> list[tuple[object, ...]]:
        for name, rows in sorted(statement.limited):
            self._uses[name] = self._uses.get(name, 0) + 1
            self._lay_limit(name, rows)
        with progress("Reading the tables", lambda: 0.0):
            lines = self._own_session.sql(statement.sql, self._secrets(tables)).collect()
        return [tuple(int(x) if isinstance(x, Decimal) else x for x in line) for line in lines]

    def prepare(self) -> None:
        """Do nothing: what lasts is made with the first question, where the tables are."""

    def close(self) -> None:
        """Give back what is kept on the cluster, and leave the session."""
        with self._lock:
            if self._own_session is not None:
                with contextlib.suppress(Exception), quiet(self._own_session):
                    self._forget()
            self._own_session = None
            self._views.clear()
            self._limited_views.clear()

    # Views --------------------------------------------------------------------------------------------------

    def writer(self) -> SqlWriter:
        """Return the writer of the SQL: the dialect, and the types of the columns that are known so far."""
        return SqlWriter(self.dialect, {name: view_types(types) for name, types in self._types.items()})

    def _secrets(self, tables: SmallTables) -> dict[str, str]:
        """Return the parameters of a statement: secrets that its text does not show."""
        sample = tables.get("tacit_sample", ())
        return {"tacit_key": str(self._key), "tacit_sample": str(sample[0][0]) if sample else ""}

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """Work in the own session, without a word in the logs; the innermost of several does nothing."""
        if self._at_work:
            yield
            return
        self._opened()
        self._at_work = True
        with quiet(self._own_session):
            self._own_session.addTag(self._tag)
            try:
                yield
            finally:
                self._at_work = False
                with contextlib.suppress(Exception):
                    self._own_session.removeTag(self._tag)

    def _opened(self) -> Any:
        if self._own_session is None:
            self._own_session = open_session(self._user_session)
        return self._own_session

    def _described(self, table: str, *, fresh: bool = False) -> ColumnTypes | None:
        """Return the columns of a table with their types, or None where the source is not available.

        A source whose columns are not the declared ones any more is not available.
        """
        with self._lock:
            if table in self._types and not fresh:
                return self._types[table]
            if is_stopped(self._user_session):
                return None
            try:
                with self._working():
                    if table not in self._sources:
                        name = self._tables[table].source.table
                        self._sources[table] = SparkSource.find(self._own_session, self._user_session, name)
                    if table in self._snapshots and self._is_stale(table):
                        self._forget()
                    if table not in self._snapshots:
                        self._sources[table].refresh()
                    types = self._schema(table)
            except _failures():
                return None
            if list(self._types.setdefault(table, types)) != list(types):
                return None
            return types

    def _schema(self, table: str) -> ColumnTypes:
        """Return the columns of a source; local files whose stamp is the same are not opened again."""
        source = self._sources[table]
        if not source.local_files:
            return source.schema()
        stamp = source.stamp()  # before the files are read, so that a change in between is seen next time
        if self._schemas.get(table, (None, ()))[0] != stamp:
            self._schemas[table] = stamp, source.schema()
        return self._schemas[table][1]

    def _is_stale(self, table: str) -> bool:
        """Return whether a file from which rows are kept was changed or removed."""
        try:
            return self._sources[table].stamp() != self._stamps.get(table)
        except Exception:  # noqa: BLE001 - a file that is gone
            return True

    def _forget(self) -> None:
        """Drop the rows that are kept on the cluster, and the views over them."""
        self._limited_views = {limit for limit in self._limited_views if limit[0] not in self._snapshots}
        _give_back(self._snapshots)

    def _lay_views(self, names: Mapping[str, object] | Sequence[str]) -> None:
        """Lay the view of each table over its source as it is now.

        A view over local files whose stamp is the same stays, and so do the views over it.
        """
        for name in names:
            source = self._sources[name]
            stamp = source.stamp() if source.local_files else None
            if name in self._snapshots or (stamp is not None and self._views.get(name) == stamp):
                continue
            types, table = self._types[name], self._tables[name]
            writer, columns = self.writer(), view_types(types)
            grids = {
                grid: writer.quantised(writer.expression(Column(column, "number"), columns), on)
                for grid, (column, on) in table.grids.items()
                if column in columns
            }
            raw = f"tacit raw {name}"
            source.frame(types).createOrReplaceTempView(SPARK.quote(raw))
            rows = self._own_session.sql(view_sql(raw, table.unit, types, grids))
            rows.createOrReplaceTempView(SPARK.quote(name))
            self._views[name] = stamp
            self._limited_views = {limit for limit in self._limited_views if limit[0] != name}

    def _lay_limit(self, name: str, rows: int) -> None:
        """Lay the view of each unit's first rows, over the ranked rows that are kept if there are some.

        They are kept when a table was asked about before, and dropped when its files have changed. Spark
        computes a lost part again, from the same files.
        """
        is_snapshot = self._snapshot is not None and self._uses.get(name, 0) > self._snapshot
        if (name, rows) in self._limited_views and (name in self._snapshots or not is_snapshot):
            return
        ranked = ranked_sql(name, self._types[name], self.dialect, self._tables[name].unit)
        if is_snapshot and name not in self._snapshots:
            self._limited_views = {limit for limit in self._limited_views if limit[0] != name}
            frame = self._own_session.sql(ranked, self._secrets({})).persist()
            self._snapshots[name] = frame
            frame.createOrReplaceTempView(SPARK.quote(f"tacit snapshot {name}"))
        if name in self._snapshots:
            ranked = f"SELECT * FROM {SPARK.quote(f'tacit snapshot {name}')}"
        first_rows = self._own_session.sql(first_sql(ranked, rows), self._secrets({}))
        first_rows.createOrReplaceTempView(SPARK.quote(f"{name} first {rows}"))
        self._limited_views.add((name, rows))

    def _lay_keys(self, name: str, lines: Sequence[Sequence[object]]) -> None:
        sql, rows = keys_sql(lines)
        self._own_session.sql(sql, {"rows": rows}).createOrReplaceTempView(name)


def _failures() -> tuple[type[BaseException], ...]:
    """Return what Spark raises where a source is not available or a statement is wrong."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:  # a client of Spark Connect has no Java
        return (PySparkException, OSError)
    return (PySparkException, Py4JError, OSError)


def _give_back(handles: dict[str, Any]) -> None:
    for frame in handles.values():
        with contextlib.suppress(Exception):
            frame.unpersist()
    handles.clear()


def _stopped() -> TacitError:
    return TacitError(
        "unknown-table",
        "the Spark session was stopped, so nothing was charged",
        fix="open a session and declare the dataset again with it",
    )


def _not_available(table: str) -> TacitError:
    return TacitError(
        "unknown-table",
        f"the source of the table {table!r} cannot be read, so nothing was charged",
        why="it was moved, or its columns are not those that were declared",
        fix=Declare("source", "hospital.visits"),
    )
