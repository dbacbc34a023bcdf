"""The DuckDB engine, in this process: reads its sources in place, sees nothing else, returns integers.

What it guarantees to the plan
------------------------------
* The owner of a row, its values as the plan reads them, and its rank among the rows of its owner are
  functions of that owner's rows and of a secret key. Types that a frame infers from all its values together
  (a float column because someone's value is missing, objects because of someone's text) do not change a rank,
  a text, a number or an owner.
* Neither a value nor its encoding makes a statement fail. After any failure the connection is opened again.
* A file that has changed is read as it is now, or not at all if its columns have other names.
* The connection has no access beyond its sources, its configuration is locked, and its memory is limited.
  Data that does not fit into memory goes to a private folder that vanishes with the engine.

Before the charge, statements are bound to empty tables with the columns of the real ones. No row is read.
"""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tacit.algebra import Column
from tacit.engines._values import MACROS, family, quote
from tacit.engines.duckdb._connections import (
    all_rows,
    are_apart,
    attach_sources,
    check_collation,
    compare_bytes,
    lock,
    open_private,
    scratch_folder,
    stamps_of,
)
from tacit.engines.duckdb._dialect import DUCKDB, PORTABLE_DUCKDB
from tacit.engines.duckdb._views import (
    limited_view,
    portable_rank_sql,
    rank_sql,
    ranked_table,
    ranked_view,
    view_sql,
)
from tacit.engines.sources._arguments import check_width, read_source
from tacit.engines.sources._parquet import load_extension
from tacit.engines.sources._sources import ParquetSource, SourceTable
from tacit.engines.sql._relations import SqlWriter
from tacit.engines.sql._statements import public_values_sql, statements
from tacit.errors import TacitError
from tacit.fixes import Declare
from tacit.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import duckdb
    from numpy.typing import NDArray

    from tacit.algebra import Node, Statistic, TableQuestion, ValueGrid
    from tacit.engines._interface import EngineTransaction, SmallTables, StatementRows
    from tacit.engines._values import ColumnTypes, TypeFamily, UniqueColumns
    from tacit.engines.sources._sources import Source
    from tacit.engines.sql._statements import Statement


_MAX_KEYS = 1000  # enough to see their types
_MAX_BOUND = 1000  # statements whose binding is remembered, as digests

#: A table's name, its columns with their types, the columns of its unit, and its columns on grids.
_Form: TypeAlias = (
    "tuple[str, tuple[tuple[str, str], ...], tuple[str, ...] | None, "
    "tuple[tuple[str, tuple[str, ValueGrid]], ...]]"
)


def empty_engine(
    tables: Mapping[str, SourceTable], types: Mapping[str, ColumnTypes], *, portable: bool
) -> DuckDB:
    """Return an engine over tables without rows that have the columns of others, of their declared types.

    Where a source declares no types, as CSV files and data frames, every column is text: the statements are
    written for columns of any type. Datasets of one form share it, within a process.
    """
    forms = [
        (
            name,
            tuple((column, kind) for column, kind in typed),
            None if (unit := tables[name].unit) is None else tuple(unit),
            tuple(tables[name].grids.items()),
        )
        for name, typed in types.items()
    ]
    return _engine_of(tuple(forms), portable, os.getpid())


@lru_cache(maxsize=16)
def _engine_of(forms: tuple[_Form, ...], portable: bool, process: int) -> DuckDB:  # noqa: FBT001
    import duckdb

    del process  # a child process does not use its parent's connection
    database = duckdb.connect(config={"threads": 1, "memory_limit": "256MB"})
    tables = {}
    for name, typed, unit, grids in forms:
        columns = ", ".join(f"{quote(c)} {kind if family(kind) else 'VARCHAR'}" for c, kind in typed)
        database.execute(f"CREATE TABLE {quote(name)} ({columns})")
        tables[name] = SourceTable(read_source((database, name)), unit, dict(grids))
    return DuckDB(tables, key=0, snapshot=None, portable=portable)


def bind(empty: DuckDB, question: TableQuestion, statements: Sequence[Statement]) -> None:
    """Let DuckDB bind every name and type of the statements; refuse what it refuses.

    A statement that was bound to these tables, with the same keys, is not bound again in this process.
    """
    import duckdb

    small: dict[str, Sequence[Sequence[object]]] = {}
    if question.by and question.keys:
        small["tacit_keys"] = question.keys[:_MAX_KEYS]
    if question.sample is not None:
        small["tacit_sample"] = (("",),)
    try:
        for statement in statements:
            text = repr((statement.sql, sorted(statement.limited), small))
            digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
            if digest in empty.bound:
                continue
            empty.rows(f"DESCRIBE {statement.sql}", small, statement.limited)
            if len(empty.bound) >= _MAX_BOUND:
                empty.bound.clear()
            empty.bound.add(digest)
    except duckdb.Error as error:
        raise TacitError(
            "bad-expression",
            "DuckDB cannot run this question, so nothing was charged",
            why=f"it refuses the statement with {type(error).__name__}",
            fix="ask in a simpler way, and report this as a defect of Tacit",
        ) from None


T = TypeVar("T")
_KINDS = {str: "VARCHAR", float: "DOUBLE", bool: "BOOLEAN"}


class DuckDB:
    """The default engine.

    Parameters
    ----------
    tables
        The declared tables by name.
    key
        The secret that orders each unit's rows and groups; one per dataset and session.
    snapshot
        After how many questions about a table to make a snapshot of it, so that later questions are quick;
        None: never.
    memory
        The memory limit, as DuckDB writes it.
    portable
        Whether the rows of a unit are ranked as on every other engine; see `DuckDBDialect`.
    """

    def __init__(
        self,
        tables: Mapping[str, SourceTable],
        *,
        key: int,
        snapshot: int | None = 1,
        memory: str = "70%",
        portable: bool = False,
    ) -> None:
        self.dialect = PORTABLE_DUCKDB if portable else DUCKDB
        self._writer = SqlWriter(self.dialect)
        self._tables = dict(tables)
        self._key = key
        self._snapshot = snapshot
        self._memory = memory
        self._lock = threading.RLock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._discard: Callable[[], object] = lambda: None
        self._uses: dict[str, int] = {}
        self._ranked: set[str] = set()
        self._stamps: dict[str, object] = {}
        self._types: dict[str, ColumnTypes] = {}
        self._stored: dict[str, ColumnTypes] = {}
        self._schema_stamps: dict[str, object] = {}
        self._grids: dict[str, dict[str, str]] = {}
        self._declared: dict[str, set[str]] = {}
        self._as_bytes = False
        self._as_written = False
        self.bound: set[bytes] = set()  # digests of statements; see `bind`
        shared = [t.source.place for t in self._tables.values() if t.source.kind == "connection"]
        for connection in shared:
            check_collation(connection)
        self._shared = None if not shared or are_apart(shared) else shared[0]

    def columns(self, table: str) -> dict[str, str] | None:
        """Return a table's columns, or None where its source is not available. Reads no row.

        Beside each column stands the type that keeps it from being read; it is empty where the column can be
        read, or where the source declares no type.
        """
        source = self._tables[table].source
        stamp, names = source.stamp(), source.columns()
        typed = source.schema(table) if names is None else [(name, "") for name in names]
        if typed is None:
            return None
        check_width(table, typed)
        self._stored[table] = typed
        self._schema_stamps.setdefault(table, stamp)
        if source.is_file:
            self._declared.setdefault(table, {name.lower() for name, _ in typed})
        return {name: kind if kind and family(kind) is None else "" for name, kind in typed}

    def stored_as(self, table: str) -> dict[str, TypeFamily]:
        """Return the declared types of a table's columns, as `columns` found them. Reads nothing.

        Empty where the source is not available, and where types come from the values, as in CSV files and
        data frames: then one person's value could decide them.
        """
        typed = self._stored.get(table, ())
        return {name: type_family for name, kind in typed if (type_family := family(kind)) is not None}

    def unique(self, table: str) -> UniqueColumns:
        """Return the columns of a table that its catalogue keeps unique. Reads no row."""
        return self._tables[table].source.unique(table)

    def missing_file(self, table: str) -> str:
        """Return the path of a table's file if it does not exist now; empty for every other source."""
        source = self._tables[table].source
        return "" if not source.is_file or source.is_there else source.shown

    def public_values(
        self, table: str, value: Node, most: int, *, where: Node | None = None, aggregate: str | None = None
    ) -> list[object] | None:
        """Return the different values of an expression over a public table; None where it is not available.

        A protected table is refused: this is the only read that is not paid for, and it must touch nothing
        private.
        """
        public = self._tables[table]
        if public.unit is not None:
            raise TacitError(
                "not-allowed",
                f"the table {table!r} is protected",
                why="only a public table can be read without a charge",
                fix=Declare("public", ("hospitals.csv", "hospital"), column="hospitals"),
            )
        sql = public_values_sql(self._writer, table, value, most, where, aggregate)
        engine = DuckDB({table: public}, key=0, snapshot=None, memory=self._memory)
        import duckdb

        try:
            return [line[0] for line in engine.rows(sql)]
        except (OSError, duckdb.Error):
            return None
        finally:
            engine.close()

    def writer(self) -> SqlWriter:
        """Return the writer of the SQL."""
        return self._writer

    def sql(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> tuple[str, ...]:
        """Write the statements that will run. No row is read."""
        return tuple(one.sql for one in statements(self._writer, question, statistics))

    def check(self, question: TableQuestion, statistics: tuple[Statistic, ...]) -> None:
        """Refuse sources that cannot be read as they were declared, and statements that DuckDB cannot bind.

        The words do not say what is wrong with a file: a refusal before a charge may be seen by an analyst,
        and one line of the file would decide what it says. Statements are bound to empty tables.
        """
        readings = {name: self._readable(name) for name in self._tables}
        for name, table in self._tables.items():
            try:
                table.source.check_form()
            except (TacitError, OSError):
                raise _changed(
                    f"the file of the table {name!r}", ", and its form must be checked again"
                ) from None
        empty = empty_engine(self._tables, readings, portable=self.dialect.portable)
        bind(empty, question, statements(self._writer, question, statistics))

    def _readable(self, name: str) -> ColumnTypes:
        """Return the columns of a table as its source has them now; refuse others than the declared ones."""
        source, stored = self._tables[name].source, self._stored.get(name)
        stamp = source.stamp()
        if stored is None or source.kind == "connection" or stamp != self._schema_stamps[name]:
            try:
                columns = self.columns(name)
            except (TacitError, OSError):
                columns = None
            if columns is None:
                raise TacitError(
                    "unknown-table",
                    f"the source of the table {name!r} cannot be read, so nothing was charged",
                    why="it holds no table that Tacit can read; opening the dataset again shows the reason",
                    fix="put the table back, or declare the dataset with its new place",
                )
            self._schema_stamps[name] = stamp
        now = self._stored[name]
        names = {column.lower() for column, _ in now}
        others = source.is_file and names != self._declared[name]
        if others or not _families(stored or now) <= _families(now):
            self._stored[name] = stored or now
            raise _changed(f"the columns of the table {name!r}", " since the dataset was declared")
        if now != stored and source.kind == "connection":
            with self._lock:
                self._drop()  # its views have the types that it saw
        return now

    def prepare(self) -> None:
        """Make the snapshots of all protected tables now. Reads the data, and returns nothing of it."""
        self._guarded(self._make_snapshots)

    def _make_snapshots(self) -> None:
        con = self._opened()
        for name, table in self._tables.items():
            if table.unit is not None and self._snapshot is not None:
                self._uses[name] = max(self._uses.get(name, 0), self._snapshot)
                con.execute(self._first(con, name, 1))

    @contextmanager
    def transaction(self) -> Iterator[EngineTransaction]:
        """Begin one reading of the sources; it fails if a file changes between its statements.

        A user's open connection is read at one moment, whatever others write to its tables meanwhile.
        """
        if self._shared is None:
            yield _Reading(self)
            return
        with self._lock:
            began = self._guarded(lambda: self._opened().execute("BEGIN TRANSACTION"))
            try:
                yield _Reading(self)
                began.execute("COMMIT")
            except BaseException:
                self._drop()
                raise

    def integers(
        self, question: TableQuestion, statistics: tuple[Statistic, ...], tables: SmallTables
    ) -> list[StatementRows]:
        """Compute the exact integers of a question. The plan reports every failure as one opaque error."""
        return [
            (one.statistics, self.rows(one.sql, tables, one.limited))
            for one in statements(self._writer, question, statistics)
        ]

    def rows(
        self, sql: str, tables: SmallTables | None = None, limited: Iterable[tuple[str, int]] = ()
    ) -> list[tuple[object, ...]]:
        """Run one statement that the engine wrote.

        Where DuckDB fails on a value of a Parquet file (text that is not UTF-8), the statement runs once more
        on a copy that has bytes in place of text. Where it fails otherwise, the statement runs once more as
        it is written: DuckDB rewrites statements by what it knows of the values, for example that all of them
        are missing, and some versions fail at it.
        """
        limits = sorted(limited)
        return self._guarded(lambda: self._run(sql, tables or {}, limits))

    def arrays(self, sql: str) -> dict[str, NDArray[Any]]:
        """Run one emitted statement and return its columns as arrays; masked where values are missing."""
        return self._guarded(lambda: dict(self._opened().execute(sql).fetchnumpy()))

    def _guarded(self, work: Callable[[], T]) -> T:
        """Work with the connection, on the sources as they are now; open it again after any failure."""
        with self._lock:
            if self._connection is not None and self._stamps != stamps_of(self._tables):
                self._drop()
                self._as_bytes = self._as_written = False
            while True:
                try:
                    return work()
                except BaseException as error:
                    self._drop()  # a failed statement may leave the whole connection unusable
                    if not self._try_bytes(error) and not self._try_as_written(error):
                        raise

    def close(self) -> None:
        """Close the connection; the private folder goes with it."""
        with self._lock:
            self._drop()

    def _try_bytes(self, error: BaseException) -> bool:
        """Decide whether to run again with bytes for text: once, if a Parquet file may be the cause."""
        import duckdb

        elsewhere = isinstance(error, duckdb.OperationalError)  # no file, no room
        on_value = isinstance(error, duckdb.Error | UnicodeError)  # its message may quote the bytes
        if self._as_bytes or elsewhere or not on_value:
            return False
        self._as_bytes = any(isinstance(t.source, ParquetSource) for t in self._tables.values())
        return self._as_bytes

    def _try_as_written(self, error: BaseException) -> bool:
        """Decide whether to run again without DuckDB's optimizer: once, where it may be at fault."""
        import duckdb

        elsewhere = isinstance(error, duckdb.OperationalError) or not isinstance(error, duckdb.Error)
        if self._as_written or elsewhere or self._shared is not None:  # its transaction is lost
            return False
        self._as_written = True
        return True

    def _run(
        self, sql: str, keys: SmallTables, limited: Sequence[tuple[str, int]]
    ) -> list[tuple[object, ...]]:
        con = self._opened()
        for name, rows in limited:
            con.execute(self._first(con, name, rows))
        for name, lines in keys.items():
            self._keys(con, name, lines)
        with progress("Reading the tables", lambda: con.query_progress() / 100):
            return all_rows(con.execute(sql))

    def _drop(self) -> None:
        """Forget the connection and everything that was made in it."""
        con, self._connection = self._connection, None
        self._ranked.clear()
        self._types.clear()
        self._grids.clear()
        if con is not None:
            con.close()
        self._discard()

    def _opened(self) -> duckdb.DuckDBPyConnection:
        """Return the connection; open it with all its sources and views if there is none."""
        if self._connection is not None:
            return self._connection
        folder, self._discard = scratch_folder(self)
        self._stamps = stamps_of(self._tables)
        if self._shared is not None:
            con: duckdb.DuckDBPyConnection = self._shared.cursor()  # type: ignore[attr-defined]
            self._connection = con
            compare_bytes(con)
        else:
            con = self._connection = open_private(folder, self._memory)
            if self._as_written:
                con.execute("PRAGMA disable_optimizer")
        if any(table.source.is_remote for table in self._tables.values()):
            load_extension(con)
        sources = attach_sources(
            con, self._tables, folder, shared=self._shared is not None, as_bytes=self._as_bytes
        )
        if self._shared is None:
            lock(con, [file for source in sources.values() for file in source.files])
        con.execute(MACROS)
        con.execute(f"CREATE OR REPLACE TEMP MACRO tacit_key() AS {self._key}::UBIGINT")
        for name, source in sources.items():
            self._lay_view(con, name, source)
        return con

    def _lay_view(self, con: duckdb.DuckDBPyConnection, name: str, source: Source) -> None:
        """Lay the view of a table over its source; refuse a file whose columns have other names now."""
        table, types = self._tables[name], source.described(con, name)
        names = {column.lower() for column, _ in types}
        if self._declared.setdefault(name, names) != names and source.is_file:
            raise OSError(f"the columns of {name} are not the declared ones")
        have = {column for column, _ in types}  # a grid column needs its own column
        grids = {
            name: self._writer.quantised(self._writer.expression(Column(column, "number"), {}), grid)
            for name, (column, grid) in table.grids.items()
            if column in have
        }
        con.execute(view_sql(name, source, table.unit, types, grids))
        self._types[name], self._grids[name] = types, grids

    def _first(self, con: duckdb.DuckDBPyConnection, name: str, rows: int) -> str:
        """Write the view of each unit's first rows, over the table or over its snapshot if there is one.

        A snapshot is made when a table was asked about before. It goes with the connection when the source
        has changed.
        """
        uses = self._uses[name] = self._uses.get(name, 0) + 1
        types, grids = self._types[name], list(self._grids[name])
        if self._snapshot is None or uses <= self._snapshot:
            return limited_view(name, rows, types, self._rank(name), grids)
        if name not in self._ranked:
            temporary = self._shared is not None
            statement = ranked_table(name, types, self._rank(name), grids, temporary=temporary)
            with progress(f"Preparing {name} for quick answers (once)", lambda: con.query_progress() / 100):
                con.execute(statement)
            self._ranked.add(name)
        return ranked_view(name, rows)

    def _rank(self, name: str) -> str:
        """Write the rank of a row among the rows of its owner."""
        types = self._types[name]
        if self.dialect.portable:
            return portable_rank_sql(self.dialect, types)
        return rank_sql(types, self._key, inferred=self._tables[name].source.kind == "frame")

    def _keys(self, con: duckdb.DuckDBPyConnection, name: str, lines: Sequence[Sequence[object]]) -> None:
        columns = list(zip(*lines, strict=True))
        kinds = [_KINDS[next((type(key) for key in c if key is not None), str)] for c in columns]
        columns_sql = ", ".join(f"CAST(unnest($c{i}) AS {kind}) AS k{i}" for i, kind in enumerate(kinds))
        values = {f"c{i}": list(column) for i, column in enumerate(columns)}
        if not name.isidentifier():
            raise TacitError("bad-parameter", "a key table needs a plain name", fix="tacit_keys")
        con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {columns_sql}", values)


def _families(typed: ColumnTypes) -> set[tuple[str, TypeFamily | None]]:
    """Return the columns of a table and how their values are read, whichever type they have."""
    return {(column.lower(), family(kind)) for column, kind in typed}


def _changed(sentence: str, how: str) -> TacitError:
    return TacitError(
        "unknown-table",
        f"{sentence} ha{'ve' if sentence.startswith('the columns') else 's'} changed{how}",
        why="nothing was charged; whoever declared the dataset sees the reason",
        fix="open the dataset again",
    )


class _Reading:
    """One reading of the sources for one plan."""

    def __init__(self, engine: DuckDB) -> None:
        self._engine = engine
        self._stamps: dict[str, object] | None = None

    def integers(
        self, question: TableQuestion, statistics: tuple[Statistic, ...], tables: SmallTables
    ) -> list[StatementRows]:
        """Compute exact integers, of the files that the first statement read."""
        rows = self._engine.integers(question, statistics, tables)
        now = self._engine._stamps  # noqa: SLF001 - the engine's own reading
        if self._stamps is not None and self._stamps != now:
            raise OSError("a source changed while a plan was reading it")
        self._stamps = now
        return rows
