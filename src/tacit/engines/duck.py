"""DuckDB in this process: reads its sources in place, sees nothing else, returns integers.

What it guarantees to the plan
------------------------------
* The owner of a row, its values as the plan reads them, and its rank among the rows of its owner are
  functions of that owner's rows and of a secret key. Types that a frame infers from all its values together
  (a float column because someone's value is missing, objects because of someone's text) do not change a rank,
  a text, a number or an owner.
* The connection has no access beyond its sources, its configuration is locked, memory is limited, spilling
  goes to a private folder that vanishes with the engine.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.engines.frames import scannable
from tacit.engines.layout import (
    MACROS,
    UNREADABLE,
    limited_view,
    quote,
    ranked_table,
    ranked_view,
    readable,
    source_sql,
    view_sql,
)
from tacit.engines.scratch import scratch_folder
from tacit.errors import TacitError
from tacit.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import duckdb

    from tacit.engines.sources import Source

__all__ = ["DuckDB", "Place"]

_HOLDERS = """SELECT table_catalog, table_schema FROM information_schema.tables
WHERE lower(table_name) = lower($table) AND table_catalog <> 'temp'
ORDER BY table_catalog <> current_database(), table_schema <> current_schema() LIMIT 1"""
_KINDS = {str: "VARCHAR", float: "DOUBLE", bool: "BOOLEAN"}


@dataclass(frozen=True, slots=True, eq=False)
class Place:
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
        self, places: Mapping[str, Place], *, key: int, snapshot: int | None = 1, memory: str = "70%"
    ) -> None:
        self._places = dict(places)
        self._key = key
        self._snapshot = snapshot
        self._memory = memory
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._discard: Callable[[], object] = lambda: None
        self._asked: dict[str, int] = {}
        self._stamps: dict[str, object] = {}
        self._types: dict[str, list[tuple[str, str]]] = {}

    def columns(self, table: str) -> tuple[str, ...] | None:
        """Return a table's column names, or None where its source is not at hand. Reads no row."""
        known = self._places[table].source.columns()
        if known is not None:
            return known
        described = self.schema(table)
        return None if described is None else tuple(name for name, _ in described)

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
        """Run one emitted statement. Anything that fails here is reported as one opaque error by the plan."""
        with self._lock:
            con = self._opened()
            for name, rows in sorted(limited):
                con.execute(self._first(con, name, rows))
            for name, lines in keys.items():
                self._keys(con, name, lines)
            with progress("Reading the tables", lambda: con.query_progress() / 100):
                return con.execute(sql).fetchall()

    def close(self) -> None:
        """Close the connection; the private folder goes with it."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
                self._stamps.clear()
                self._discard()

    def _opened(self) -> duckdb.DuckDBPyConnection:
        if self._connection is not None:
            return self._connection
        import duckdb

        shared = [p.source.place for p in self._places.values() if p.source.kind == "connection"]
        folder, self._discard = scratch_folder(self)
        if shared:
            con: duckdb.DuckDBPyConnection = shared[0].cursor()  # type: ignore[attr-defined]
        else:
            con = duckdb.connect(
                str(folder / "snapshot.duckdb"),
                config={
                    "memory_limit": self._memory,
                    "temp_directory": str(folder),
                    "pandas_analyze_sample": 0,
                },
            )
        files = []
        for name, place in self._places.items():
            source = place.source
            if source.kind in {"parquet", "csv"}:
                files.append(str(source.place))
            elif source.kind == "connection":  # a view of that name must not hide the table from itself
                found = con.execute(_HOLDERS, {"table": source.table or name}).fetchone()
                self._places[name] = replace(place, source=replace(source, within=found or ()))
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
            coarse = _coarse(con, place.source)
            self._types[name] = [
                (str(line[0]), UNREADABLE if line[0] in coarse else str(line[1]))
                for line in con.execute(f"DESCRIBE {source_sql(place.source, name)}").fetchall()
            ]
            con.execute(view_sql(name, place.source, place.unit, self._types[name], self._grids(name)))
        self._connection = con
        return con

    def _first(self, con: duckdb.DuckDBPyConnection, name: str, rows: int) -> str:
        """Lay the view of each unit's first rows over the table, or over its snapshot once there is one.

        A snapshot is made when a table has been asked about before, and again when the source has changed.
        """
        place = self._places[name]
        inferred = place.source.kind == "frame"
        asked = self._asked[name] = self._asked.get(name, 0) + 1
        if self._snapshot is None or asked <= self._snapshot:
            grids = list(self._grids(name))
            return limited_view(name, rows, self._types[name], self._key, grids, inferred=inferred)
        stamp = _stamp(place.source)
        if self._stamps.get(name) != stamp:
            temporary = any(p.source.kind == "connection" for p in self._places.values())
            grids = list(self._grids(name))
            made = ranked_table(
                name, self._types[name], self._key, grids, temporary=temporary, inferred=inferred
            )
            with progress(f"Preparing {name} for quick answers (once)", lambda: con.query_progress() / 100):
                con.execute(made)
            self._stamps[name] = stamp
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
    """Tell what changes when a source changes; stays inside the engine."""
    if source.kind in {"parquet", "csv", "database"}:
        seen = Path(str(source.place)).stat()
        return seen.st_mtime_ns, seen.st_size
    return id(source.place)


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
