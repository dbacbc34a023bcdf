"""The engines that take the entrance exam: each keeps the same Arrow tables and names them as sources."""

from __future__ import annotations

import itertools
import logging
import os
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The secret that orders the rows of each unit, the same on every engine.
KEY = 987654321
#: The engines that are compared with DuckDB; a new one joins this list. Spark's tests run in one process.
OTHERS = (
    pytest.param("postgres", id="postgres"),
    pytest.param("spark", id="spark", marks=pytest.mark.xdist_group("spark")),
)
ENGINES = (pytest.param("duckdb", id="duckdb"), *OTHERS)


class Place(Protocol):
    """Where tables are kept for one engine: it takes Arrow tables and names sources for `tc.protect`."""

    name: str
    #: What `tc.protect(..., engine=)` is given.
    engine: Any
    #: Whether a text may hold the sign NUL, or bytes that are not UTF-8.
    any_text: bool

    def keep(self, tables: Mapping[str, pa.Table]) -> dict[str, Any]:
        """Store tables and return their sources by name."""

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement of the tests on the engine itself."""

    def close(self) -> None:
        """Drop what was stored."""


class DuckPlace:
    """Parquet files that DuckDB reads; its ranks are the portable ones, as on the other engines."""

    name, engine, any_text = "duckdb", "duckdb", True

    def __init__(self, folder: Path) -> None:
        self._folder, self._numbers = folder, itertools.count()

    def keep(self, tables: Mapping[str, pa.Table]) -> dict[str, Any]:
        found = {}
        for name, table in tables.items():
            found[name] = self._folder / f"{next(self._numbers)}.parquet"
            pq.write_table(table, found[name])
        return found

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        import duckdb

        with duckdb.connect() as con:
            return con.execute(sql).fetchall()

    def close(self) -> None:
        pass


class SparkPlace(DuckPlace):
    """The same files, read by one Spark session of the test process."""

    name = "spark"

    def __init__(self, folder: Path, session: Any) -> None:
        super().__init__(folder)
        self.engine = session

    def keep(self, tables: Mapping[str, pa.Table]) -> dict[str, Any]:
        return {name: str(path) for name, path in super().keep(tables).items()}

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.engine.sql(sql).collect()]


_TYPES = {
    pa.int16(): "smallint", pa.int32(): "integer", pa.int64(): "bigint", pa.uint64(): "numeric(20, 0)",
    pa.float32(): "real", pa.float64(): "double precision", pa.string(): "text", pa.large_string(): "text",
    pa.bool_(): "boolean", pa.date32(): "date", pa.timestamp("us"): "timestamp", pa.timestamp("us", "UTC"): "timestamptz",  # noqa: E501
    pa.binary(): "bytea",
}  # fmt: skip


class PostgresPlace:
    """Tables in a schema of their own on the server of the tests."""

    name, any_text = "postgres", False

    def __init__(self, server: str) -> None:
        import psycopg

        self.schema = f"s{uuid.uuid4().hex}"
        self._numbers = itertools.count()
        self.url = f"{server}&options=-csearch_path%3D{self.schema}"
        self._writer = psycopg.connect(server, autocommit=True)
        self._writer.execute(f"CREATE SCHEMA {self.schema}")
        self._writer.execute(f"SET search_path = {self.schema}")
        self.engine = psycopg.connect(self.url, autocommit=True)

    def keep(self, tables: Mapping[str, pa.Table]) -> dict[str, Any]:
        found = {}
        for name, table in tables.items():
            stored = f"t{next(self._numbers)}"
            self.write(stored, table)
            found[name] = f"{self.schema}.{stored}"
        return found

    def write(self, stored: str, table: pa.Table) -> None:
        columns = ", ".join(
            f"{quoted(c)} {_type(t)}" for c, t in zip(table.column_names, table.schema.types, strict=True)
        )
        self._writer.execute(f"CREATE TABLE {quoted(stored)} ({columns})")
        with self._writer.cursor() as cursor, cursor.copy(f"COPY {quoted(stored)} FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)
        self._writer.execute(f"ANALYZE {quoted(stored)}")

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        done = self._writer.execute(sql)
        return done.fetchall() if done.description else []

    def close(self) -> None:
        self.engine.close()  # the server goes away with its schemas
        self._writer.close()


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    return _TYPES[kind]


def spark_session() -> Any:
    """Start the one Spark session of a test process, small and silent; None without Java or PySpark.

    The tables of the tests are tiny: compiling code for them would take most of the time, so Spark
    interprets its plans. What nobody looks at, the history of jobs, is kept short.
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    logging.getLogger("py4j").setLevel(logging.ERROR)
    from pyspark.sql import SparkSession

    options = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",  # noqa: E501
        "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.adaptive.enabled": "false",  # noqa: E501
        "spark.ui.retainedJobs": "10", "spark.ui.retainedStages": "10", "spark.ui.retainedTasks": "100",
        "spark.ui.dagGraph.retainedRootRDDs": "10", "spark.sql.ui.retainedExecutions": "5",
        "spark.sql.warehouse.dir": tempfile.mkdtemp(prefix="tacit-spark-"), "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",  # noqa: E501
    }  # fmt: skip
    builder = SparkSession.builder.master("local[2]").appName("tacit-exam")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def no_spark() -> str:
    """Say why Spark cannot run here; empty where it can."""
    import importlib.util

    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed"
    java = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (java and (Path(java) / "bin" / "java").exists()):
        return "there is no Java, which Spark needs"
    return ""
