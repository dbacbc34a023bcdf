"""DuckDB in this process: reads its sources in place, sees nothing else, returns integers.

What it guarantees to the plan
------------------------------
* The owner of a row, its values as the plan reads them, and its rank among the rows of its owner are
  functions of that owner's rows and of a secret key. Types that a frame infers from all its values together
  (a float column because someone's value is missing, objects because of someone's text) do not change a rank,
  a text, a number or an owner.
* Neither a value nor its encoding makes a statement fail; after any failure the connection is made anew.
* A file that has changed is read as it is then, or not at all where its columns are others.
* The connection has no access beyond its sources, its configuration is locked, memory is limited, spilling
  goes to a private folder that vanishes with the engine.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.engines._frames import scannable
from tacit.engines._layout import (
    MACROS,
    UNREADABLE,
    bytes_view,
    limited_view,
    quote,
    ranked_table,
    ranked_view,
    readable,
    source_sql,
    view_sql,
)
from tacit.engines._parquet_footers import copy_with_bytes
from tacit.engines._scratch import scratch_folder
from tacit.errors import TacitError
from tacit.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import duckdb

    from tacit.engines._sources import Source

__all__ = ["DuckDB", "SourceTable"]

_HOLDERS = """SELECT table_catalog, table_schema FROM information_schema.tables
WHERE lower(table_name) = lower($table) AND table_catalog <> 'temp'
ORDER BY table_catalog <> current_database(), table_schema <> current_schema() LIMIT 1"""
_FILES = {"parquet", "csv", "database"}
_KINDS = {str: "VARCHAR", float: "DOUBLE", bool: "BOOLEAN"}


@dataclass(frozen=True, slots=True, eq=False)
class SourceTable:
    """A declared table's source and the column that owns its rows.

    ``unit`` is None for public tables and ``""`` for single rows. ``grids`` are further columns by name, as
    SQL over the table's own: values on their public grid, which a snapshot stores as integers.
    """

    source: Source
    unit: str | None
    grids: Mapping[str, str] = field(default_factory=dict)


class DuckDB:
    """The default engine.

    Parameters
    ----------
    places
        The declared tables by name.
    key
        The secret that orders each unit's rows and groups; one per dataset and session.
    snapshot
        After how many questions of a table a snapshot of it is made, so that the following ones are quick;
        None: never.
    memory
        The memory limit, as DuckDB writes it.
    """

    def __init__(
        self, places: Mapping[str, SourceTable], *, key: int, snapshot: int | None = 1, memory: str = "70%"
    ) -> None:
        self._places = dict(places)
        self._key = key
        self._snapshot = snapshot
        self._memory = memory
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._discard: Callable[[], object] = lambda: None
        self._asked: dict[str, int] = {}
        self._ranked: set[str] = set()
        self._stamps: dict[str, object] = {}
        self._types: dict[str, list[tuple[str, str]]] = {}
        self._declared: dict[str, set[str]] = {}
        self._as_bytes = False
        for place in self._places.values():
            if place.source.kind == "connection":
                _check_collation(place.source.place)

    def columns(self, table: str) -> tuple[str, ...] | None:
        """Return a table's column names, or None where its source is not at hand. Reads no row."""
        known = self._places[table].source.columns()
        if known is None:
            described = self.schema(table)
            known = None if described is None else tuple(name for name, _ in described)
        if known is not None and self._places[table].source.kind in _FILES:
            self._declared.setdefault(table, {name.lower() for name in known})
        return known

    def schema(self, table: str) -> tuple[tuple[str, str], ...] | None:
        """Return a table's columns with the types of its schema, or None where it has none at hand.

        Reads no row: a CSV file has a header and no types, a frame is not asked.
        """
        source = self._places[table].source
        if source.kind not in {"parquet", "database", "connection"}:
            return None
        import duckdb

        try:
            if source.kind == "parquet":
                if not Path(str(source.place)).exists():
                    return None
                described = _reader().execute(f"DESCRIBE {source_sql(source, table)}").fetchall()
            elif source.kind == "database":
                if not Path(str(source.place)).exists():
                    return None
                path = str(source.place).replace("'", "''")
                with duckdb.connect() as con:
                    con.execute(f"ATTACH '{path}' AS \"tacit db {table}\" (READ_ONLY)")
                    described = con.execute(f"DESCRIBE {source_sql(source, table)}").fetchall()
            else:
                con = source.place.cursor()  # type: ignore[attr-defined]
                described = con.execute(f"DESCRIBE {source_sql(source, table)}").fetchall()
        except duckdb.Error:
            return None
        return tuple((str(line[0]), str(line[1])) for line in described)

    def unreadable(self, table: str) -> dict[str, str]:
        """Return the columns whose type is never read, with that type, where there is a schema to tell."""
        source = self._places[table].source
        described = self.schema(table) or ()
        found = {name: kind for name, kind in described if not readable(kind)}
        if described:
            found |= dict.fromkeys(sorted(_coarse(_reader(), source)), "TIMESTAMP in milliseconds")
        return found

    def public_values(self, table: str, value: str, most: int) -> list[object] | None:
        """Return the different values of an expression over a public table; None where it is not at hand.

        Refuses a protected table: this is the one read that is not paid for, and nothing private is in it.
        """
        place = self._places[table]
        if place.unit is not None:
            raise TacitError(
                "not-allowed",
                f"the table {table!r} is protected",
                why="only a public table can be read without a charge",
                fix='tc.protect(..., public={"hospitals": ("hospitals.csv", "hospital")})',
            )
        public = DuckDB({table: place}, key=0, snapshot=None, memory=self._memory)
        sql = f"SELECT DISTINCT {value} FROM {quote(table)} WHERE {value} IS NOT NULL LIMIT {most}"
        import duckdb

        try:
            return [line[0] for line in public.integers(sql, {})]
        except (OSError, duckdb.Error):
            return None
        finally:
            public.close()

    def integers(
        self,
        sql: str,
        keys: Mapping[str, Sequence[Sequence[object]]],
        limited: Iterable[tuple[str, int]] = (),
    ) -> list[tuple[object, ...]]:
        """Run one emitted statement. Anything that fails here is reported as one opaque error by the plan.

        Where DuckDB fails on a value of a Parquet file (a text that is not UTF-8), the statement is run once
        more on a copy that has bytes in the place of texts.
        """
        limits = sorted(limited)
        with self._lock:
            if self._connection is not None and self._stamps != self._stamped():
                self._drop()
                self._as_bytes = False
            while True:
                try:
                    return self._run(sql, keys, limits)
                except BaseException as error:
                    self._drop()  # a failed statement may leave the whole connection unusable
                    if not self._mended(error):
                        raise

    def _mended(self, error: BaseException) -> bool:
        """Tell whether to try again with bytes in the place of texts: once, if a Parquet file may be why."""
        import duckdb

        elsewhere = isinstance(error, duckdb.OperationalError)  # no file, no room
        on_value = isinstance(error, duckdb.Error | UnicodeError)  # its message may quote the bytes
        if self._as_bytes or elsewhere or not on_value:
            return False
        self._as_bytes = any(p.source.kind == "parquet" for p in self._places.values())
        return self._as_bytes

    def _run(
        self, sql: str, keys: Mapping[str, Sequence[Sequence[object]]], limited: Sequence[tuple[str, int]]
    ) -> list[tuple[object, ...]]:
        con = self._opened()
        for name, rows in limited:
            con.execute(self._first(con, name, rows))
        for name, lines in keys.items():
            self._keys(con, name, lines)
        with progress("Reading the tables", lambda: con.query_progress() / 100):
            return con.execute(sql).fetchall()

    def close(self) -> None:
        """Close the connection; the private folder goes with it."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        """Forget the connection and all that was made in it."""
        con, self._connection = self._connection, None
        self._ranked.clear()
        self._types.clear()
        if con is not None:
            con.close()
        self._discard()

    def _stamped(self) -> dict[str, object]:
        return {n: _stamp(p.source) for n, p in self._places.items() if p.source.kind in _FILES}

    def _opened(self) -> duckdb.DuckDBPyConnection:
        if self._connection is not None:
            return self._connection
        import duckdb

        shared = [p.source.place for p in self._places.values() if p.source.kind == "connection"]
        folder, self._discard = scratch_folder(self)
        self._stamps = self._stamped()
        if shared:
            con: duckdb.DuckDBPyConnection = shared[0].cursor()  # type: ignore[attr-defined]
            self._connection = con
            _compare_bytes(con)
        else:
            con = self._connection = duckdb.connect(
                str(folder / "snapshot.duckdb"),
                config={
                    "memory_limit": self._memory,
                    "temp_directory": str(folder),
                    "pandas_analyze_sample": 0,
                },
            )
        files = []
        copies: dict[str, Path] = {}
        for name, place in self._places.items():
            source = place.source
            if source.kind in {"parquet", "csv"}:
                files.append(str(source.place))
                if source.kind == "parquet" and self._as_bytes:
                    copies[name] = folder / f"{len(copies)}.parquet"
                    copy_with_bytes(Path(str(source.place)), copies[name])
                    files.append(str(copies[name]))
            elif source.kind == "connection":  # a view of that name must not hide the table from itself
                found = con.execute(_HOLDERS, {"table": source.table or name}).fetchall()
                within = found[0] if found else ()
                self._places[name] = replace(place, source=replace(source, within=within))
            elif source.kind == "frame":
                con.register(f"tacit raw {name}", scannable(source.place))
            elif source.kind == "database":
                path = str(source.place).replace("'", "''")
                con.execute(f"ATTACH IF NOT EXISTS '{path}' AS \"tacit db {name}\" (READ_ONLY)")
        if not shared:
            con.execute("SET allowed_paths = $files", {"files": files}) if files else None
            con.execute("SET enable_external_access = false")
            con.execute("SET allow_community_extensions = false")
            con.execute("SET autoinstall_known_extensions = false")
            con.execute("SET preserve_insertion_order = false")
            with contextlib.suppress(duckdb.Error):  # a notebook without ipywidgets refuses it: then no bar
                con.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
            con.execute("SET lock_configuration = true")
        con.execute(MACROS)
        con.execute(f"CREATE OR REPLACE TEMP MACRO tacit_key() AS {self._key}::UBIGINT")
        for name, place in self._places.items():
            source, coarse = place.source, _coarse(con, place.source)
            self._types[name] = [
                (str(line[0]), UNREADABLE if line[0] in coarse else str(line[1]))
                for line in con.execute(f"DESCRIBE {source_sql(source, name)}").fetchall()
            ]
            names = {column.lower() for column, _ in self._types[name]}
            if self._declared.setdefault(name, names) != names and source.kind in _FILES:
                raise OSError(f"the columns of {name} are not those that were declared")
            if name in copies:
                con.execute(bytes_view(name, str(copies[name]), self._types[name]))
                source = replace(source, kind="bytes")
            con.execute(view_sql(name, source, place.unit, self._types[name], self._grids(name)))
        return con

    def _first(self, con: duckdb.DuckDBPyConnection, name: str, rows: int) -> str:
        """Lay the view of each unit's first rows over the table, or over its snapshot once there is one.

        A snapshot is made when a table has been asked about before; it goes with the connection when
        the source has changed.
        """
        inferred = self._places[name].source.kind == "frame"
        asked = self._asked[name] = self._asked.get(name, 0) + 1
        if self._snapshot is None or asked <= self._snapshot:
            grids = list(self._grids(name))
            return limited_view(name, rows, self._types[name], self._key, grids, inferred=inferred)
        if name not in self._ranked:
            temporary = any(p.source.kind == "connection" for p in self._places.values())
            grids = list(self._grids(name))
            made = ranked_table(
                name, self._types[name], self._key, grids, temporary=temporary, inferred=inferred
            )
            with progress(f"Preparing {name} for quick answers (once)", lambda: con.query_progress() / 100):
                con.execute(made)
            self._ranked.add(name)
        return ranked_view(name, rows)

    def _grids(self, name: str) -> dict[str, str]:
        """Return the grid columns whose own column the source has."""
        have = {column for column, _ in self._types[name]}
        return {g: sql for g, sql in self._places[name].grids.items() if g.split(" ", 2)[2] in have}

    def _keys(self, con: duckdb.DuckDBPyConnection, name: str, lines: Sequence[Sequence[object]]) -> None:
        columns = list(zip(*lines, strict=True))
        listed = ", ".join(
            f"CAST(unnest($c{i}) AS {_KINDS[type(c[0])]}) AS k{i}" for i, c in enumerate(columns)
        )
        values = {f"c{i}": list(column) for i, column in enumerate(columns)}
        if not name.isidentifier():
            raise TacitError("bad-parameter", "a key table needs a plain name", fix="tacit_keys")
        con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {listed}", values)


def _reader() -> duckdb.DuckDBPyConnection:
    """Return a connection that reads the schemas of files, one for the process."""
    return _schemas().cursor()


@cache
def _schemas() -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config={"threads": 1})


def _stamp(source: Source) -> object:
    """Tell what changes when a file changes; stays inside the engine."""
    try:
        seen = Path(str(source.place)).stat()
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size, seen.st_ino


def _check_collation(connection: Any) -> None:
    """Refuse a user's connection that merges texts and cannot be told not to; a closed one is not at hand."""
    import duckdb

    with contextlib.suppress(duckdb.ConnectionException):
        _compare_bytes(connection.cursor())


def _compare_bytes(con: duckdb.DuckDBPyConnection) -> None:
    """Make this cursor compare texts byte by byte; the connection's own collation must not merge them."""
    import duckdb

    try:
        con.execute("SET SESSION default_collation = 'C'")
    except duckdb.Error as error:
        found = str(con.execute("SELECT current_setting('default_collation')").fetchall()[0][0])
        if found.lower() not in {"", "c", "binary", "posix"}:
            raise TacitError(
                "bad-parameter",
                f"the connection compares texts by the collation {found!r} and is locked",
                why="of texts that count as equal the first is shown, which one person can change",
                fix="SET default_collation = '' before the connection is locked",
            ) from error


def _coarse(con: duckdb.DuckDBPyConnection, source: Source) -> set[str]:
    """Name the moments that a Parquet file keeps in milliseconds: DuckDB raises on one beyond its range."""
    if source.kind != "parquet":
        return set()
    found = con.execute(
        "SELECT name FROM parquet_schema($path) WHERE converted_type = 'TIMESTAMP_MILLIS' "
        "OR (logical_type LIKE 'TimestampType%' AND logical_type NOT LIKE '%MILLIS=<null>%')",
        {"path": str(source.place)},
    ).fetchall()
    return {str(line[0]) for line in found}
