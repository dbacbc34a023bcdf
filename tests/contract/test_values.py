"""What one person's value, or a file that changes, must not do: merge or move others, abort a question."""

from __future__ import annotations

import decimal
import os
import uuid
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc
from support.asking import subject_of
from tacit.tables.planning._exact_integers import exact_integers

N = 20
PEOPLE = [f"p{i}" for i in range(N)]


def protected(source: object, rows: int = 1, **more: Any) -> tc.Dataset:
    budget = tc.Budget(epsilon=100, delta=1e-3)
    return tc.protect(source, unit="u", budget=budget, limits={"rows": rows}, **more)


def integers(plan: Any) -> dict[Any, list[int]]:
    task = subject_of(plan)
    return next(iter(exact_integers(task.engine, task.asked, task.statistics).values()))


def asked(data: tc.Dataset, sql: str) -> list[int]:
    """Ask twice: before and after the snapshot."""
    plan = data.sql(sql).plan(epsilon=1)
    first, second = integers(plan), integers(plan)
    assert first == second
    return next(iter(first.values()))


def raw_texts(values: list[bytes | None]) -> pa.Array:
    """Make texts of bytes, UTF-8 or not."""
    stored = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(stored), stored.buffers())


class TestCollations:
    """Texts are compared byte by byte, whatever the source says."""

    @pytest.fixture(params=["NOCASE", "NOACCENT", "default"])
    def tables(self, request: Any, tmp_path: Any) -> Any:
        def table(*first: tuple[str, str]) -> object:
            path = tmp_path / f"{uuid.uuid4().hex}.duckdb"
            collate = "" if request.param == "default" else f"COLLATE {request.param}"
            con = duckdb.connect() if request.param == "default" else duckdb.connect(str(path))
            con.execute(f"CREATE TABLE data (u VARCHAR {collate}, w VARCHAR {collate})")
            con.executemany("INSERT INTO data VALUES (?, ?)", [*first, *((p, "a") for p in PEOPLE)])
            if request.param == "default":
                con.execute("SET default_collation = 'nocase'")
                return con, "data"
            con.close()
            return path, "data"

        table.other = "á" if request.param == "NOACCENT" else "A"  # type: ignore[attr-defined]
        return table

    def test_a_spelling_that_comes_first_moves_no_other(self, tables: Any) -> None:
        data = protected(tables(("zz", tables.other)))
        public = data.group_by("w", keys=["a", "b"]).agg(n=tc.count()).plan(epsilon=1)
        for _ in range(2):
            assert integers(public) == {("a",): [N]}
        private = data.group_by("w").agg(n=tc.count()).plan(epsilon=1, delta=1e-6)
        assert integers(private) == {("a",): [N], (tables.other,): [1]}

    def test_units_of_other_spellings_are_others(self, tables: Any) -> None:
        data = protected(tables(("a", "b"), (tables.other, "b")))
        assert asked(data, "SELECT COUNT(*) AS n FROM data") == [N + 2]
        assert asked(data, "SELECT COUNT(DISTINCT u) AS n FROM data") == [N + 2]

    def test_comparisons_and_different_values(self, tables: Any) -> None:
        data = protected(tables(("zz", tables.other)))
        assert asked(data, "SELECT COUNT(*) AS n FROM data WHERE w = 'a'") == [N]
        assert asked(data, "SELECT COUNT(*) AS n FROM data WHERE w || 'x' IN ('ax')") == [N]
        assert asked(data, "SELECT COUNT(DISTINCT w) AS n FROM data") == [2]
        computed = "SELECT COUNT(DISTINCT CASE WHEN w = 'a' THEN 'b' ELSE 'B' END) AS n FROM data"
        assert asked(data, computed) == [2]

    def test_joins_with_public_tables(self, tables: Any) -> None:
        wards = pd.DataFrame({"w": [tables.other, "a"], "floor": ["second", "first"]})
        data = protected(
            {"data": tables(("zz", tables.other))}, public={"wards": (wards, "w")}, keys={"w": "wards.w"}
        )
        sql = "SELECT COUNT(*) AS n FROM data JOIN wards ON data.w = wards.w WHERE floor = 'first'"
        assert asked(data, sql) == [N]

    def test_keys_of_a_public_table_stay_apart(self, tables: Any) -> None:
        visits = pd.DataFrame({"u": PEOPLE, "w": ["a"] * N})
        data = protected(
            {"visits": visits},
            name="h",
            public={"data": (tables(("zz", tables.other)), "u")},
            keys={"w": "data.w"},
        )
        plan = data.group_by("w").agg(n=tc.count()).plan(epsilon=1)
        assert sorted(subject_of(plan).asked.keys) == sorted([("a",), (tables.other,)])

    def test_the_callers_connection_keeps_its_collation(self) -> None:
        con = duckdb.connect()
        con.execute("CREATE TABLE data AS SELECT 'p' AS u, 'a' AS w")
        con.execute("SET default_collation = 'nocase'")
        asked(protected((con, "data")), "SELECT COUNT(*) AS n FROM data")
        assert con.execute("SELECT 'a' = 'A'").fetchone() == (True,)

    def test_a_locked_connection_with_a_collation_is_refused_at_once(self) -> None:
        con = duckdb.connect()
        con.execute("CREATE TABLE data AS SELECT 'p' AS u, 'a' AS w")
        con.execute("SET default_collation = 'nocase'; SET lock_configuration = true")
        with pytest.raises(tc.TacitError, match="nocase") as refused:
            protected((con, "data"))
        assert refused.value.code == "bad-parameter"

    def test_a_locked_connection_without_one_is_read(self) -> None:
        con = duckdb.connect()
        con.execute("CREATE TABLE data AS SELECT 'p' AS u, 'a' AS w; SET lock_configuration = true")
        assert asked(protected((con, "data")), "SELECT COUNT(*) AS n FROM data") == [1]


class TestTextsThatAreNoText:
    """Bytes that are not UTF-8 in one row are a value of that row, nothing else."""

    FORMS = (
        "parquet",
        "parquet plain",
        "arrow",
        "large",
        "view",
        "dictionary",
        "pandas",
        "pandas of arrow",
        "polars",
    )

    @pytest.fixture(params=FORMS)
    def source(self, request: Any, tmp_path: Any) -> Any:
        def made(**columns: list[bytes | None]) -> object:
            table = pa.table({name: raw_texts(values) for name, values in columns.items()})
            match request.param:
                case "parquet" | "parquet plain":
                    path = tmp_path / "x.parquet"
                    pq.write_table(table, path, use_dictionary=request.param == "parquet")
                    return path
                case "large":
                    return pa.table({n: _large(values) for n, values in columns.items()})
                case "view":
                    return pa.table(
                        {n: pa.array(v, pa.binary_view()).view(pa.string_view()) for n, v in columns.items()}
                    )
                case "dictionary":
                    return pa.table({n: table[n].combine_chunks().dictionary_encode() for n in columns})
                case "pandas":
                    return table.to_pandas()
                case "pandas of arrow":
                    return table.to_pandas(types_mapper=pd.ArrowDtype)
                case "polars":
                    return pl.from_arrow(table)
                case _:
                    return table

        return made

    @pytest.mark.parametrize("bad", [b"\xc3", b"\xff\xfe", b"\xed\xa0\x80"])
    def test_every_question_is_answered(self, source: Any, bad: bytes) -> None:
        data = protected(source(u=[p.encode() for p in PEOPLE] + [b"zz"], w=[b"ok"] * N + [bad]))
        assert asked(data, "SELECT COUNT(*) AS n FROM data") == [N + 1]
        assert asked(data, "SELECT COUNT(DISTINCT w) AS n FROM data") == [2]
        assert asked(data, "SELECT COUNT(*) AS n FROM data WHERE UPPER(w) = 'OK'") == [N]
        plan = data.group_by("w", keys=["ok", "no"]).agg(n=tc.count()).plan(epsilon=1)
        assert integers(plan) == {("ok",): [N]}

    def test_names_in_another_encoding_are_different_people(self, source: Any) -> None:
        names = ["Müller".encode("latin1"), "Möller".encode("latin1"), "Müller".encode(), b"M?ller", None]
        data = protected(source(u=names * 3, w=[b"ok"] * 15))
        assert asked(data, "SELECT COUNT(*) AS n FROM data") == [4]

    def test_releases_go_on(self, source: Any) -> None:
        data = protected(source(u=[p.encode() for p in PEOPLE], w=[b"ok"] * (N - 1) + [b"\xc3"]))
        for epsilon in (1, 2, 3):
            assert data.agg(n=tc.count()).plan(epsilon=epsilon).release().value is not None


def _large(values: list[bytes | None]) -> pa.Array:
    stored = pa.array(values, pa.large_binary())
    return pa.Array.from_buffers(pa.large_string(), len(stored), stored.buffers())


class TestValuesOfParquet:
    """No value of one row makes a question of a Parquet file fail, or changes the others' rows."""

    SQL = (
        "SELECT COUNT(*) AS n FROM data",
        "SELECT COUNT(w) AS n FROM data",
        "SELECT COUNT(DISTINCT w) AS n FROM data",
        "SELECT COUNT(*) AS n FROM data WHERE CAST(w AS DATE) > '2020-01-01'",
        "SELECT COUNT(*) AS n FROM data WHERE UPPER(CAST(w AS VARCHAR)) LIKE 'A%'",
    )
    FAR = 2**63 - 1

    @staticmethod
    def of(kind: Any, value: int) -> pa.Array:
        stored = pa.int32() if kind == pa.date32() else pa.int64()
        return pa.array([0] * N + [value], stored).view(kind)

    @staticmethod
    def json(last: bytes) -> pa.Array:
        return pa.ExtensionArray.from_storage(pa.json_(), raw_texts([b'{"a": 1}'] * N + [last]))

    CASES = (
        ("moment", lambda c: c.of(pa.timestamp("us"), c.FAR), {}),
        ("zoned", lambda c: c.of(pa.timestamp("us", "UTC"), -c.FAR - 1), {}),
        ("fine", lambda c: c.of(pa.timestamp("ns"), -c.FAR - 1), {}),
        ("fine and zoned", lambda c: c.of(pa.timestamp("ns", "UTC"), c.FAR), {}),
        ("int96", lambda c: c.of(pa.timestamp("ns"), c.FAR), {"use_deprecated_int96_timestamps": True}),
        ("day", lambda c: c.of(pa.date32(), 2**31 - 1), {}),
        ("decimal", lambda c: pa.array([decimal.Decimal(1)] * N + [decimal.Decimal("9" * 38)]), {}),
        ("wide", lambda c: pa.array([decimal.Decimal(1)] * N + [decimal.Decimal("9" * 76)]), {}),
        ("half", lambda c: pa.array(np.array([1] * N + [np.inf], np.float16)), {}),
        ("json", lambda c: c.json(b"{"), {}),
        ("json bytes", lambda c: c.json(b'{"\xff'), {}),
        ("zeros", lambda c: raw_texts([b"ok"] * N + [b"a\x00b"]), {}),
        ("version 2", lambda c: raw_texts([b"ok"] * N + [b"\xc3"]), {"data_page_version": "2.0"}),
        ("version 1", lambda c: raw_texts([b"ok"] * N + [b"\xc3"]), {"version": "1.0"}),
        ("list", lambda c: pa.ListArray.from_arrays(range(N + 2), raw_texts([b"ok"] * N + [b"\xc3"])), {}),
    )

    @pytest.mark.parametrize(("make", "options"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
    def test_one_row_changes_an_answer_by_one(self, tmp_path: Any, make: Any, options: Any) -> None:
        table = pa.table({"u": [*PEOPLE, "zz"], "w": make(type(self))})
        pq.write_table(table, tmp_path / "with.parquet", **options)
        pq.write_table(table.slice(0, N), tmp_path / "without.parquet", **options)
        for sql in self.SQL:
            found = []
            for file in ("with", "without"):
                try:
                    found.append(asked(protected(tmp_path / f"{file}.parquet"), sql)[0])
                except tc.TacitError as refused:
                    assert refused.code in {"unreadable-column", "unknown-kind", "bad-expression"}
                    found.append(-9)
            assert abs(found[0] - found[1]) <= 1, sql

    def test_zoned_nanoseconds_are_read(self, tmp_path: Any) -> None:
        pq.write_table(
            pa.table({"u": PEOPLE, "w": self.of(pa.timestamp("ns", "UTC"), 1)[:N]}), tmp_path / "x.pq"
        )
        assert asked(protected(tmp_path / "x.pq"), "SELECT COUNT(w) AS n FROM data") == [N]


class TestOwners:
    """Different names are different units."""

    LONG = "a" * 65_536

    @pytest.mark.parametrize("form", ["arrow", "parquet"])
    @pytest.mark.parametrize(
        "names",
        [
            pa.array([LONG + "v", LONG + "w", LONG]),
            pa.array([1, 2, 1000]).view(pa.timestamp("ns")),
            pa.array([1, 2, 1000]).view(pa.timestamp("ns", "UTC")),
        ],
        ids=["long", "fine", "fine and zoned"],
    )
    def test_names_that_begin_alike(self, tmp_path: Any, form: str, names: pa.Array) -> None:
        table: Any = pa.table({"u": pa.concat_arrays([names, names])})
        if form == "parquet":
            pq.write_table(table, tmp_path / "x.parquet")
            table = tmp_path / "x.parquet"
        assert asked(protected(table), "SELECT COUNT(*) AS n FROM data") == [3]

    def test_no_short_name_is_the_name_of_a_long_one(self) -> None:
        digest = duckdb.connect().sql(f"SELECT 'sha256:' || sha256('{self.LONG}b')").fetchall()[0][0]
        data = protected(pa.table({"u": [digest, self.LONG + "b"] * 2}))
        assert asked(data, "SELECT COUNT(*) AS n FROM data") == [2]

    def test_a_moment_names_one_unit_in_every_precision(self) -> None:
        coarse = pa.array([0, 1_500_000]).view(pa.timestamp("us"))
        visits = pa.table({"u": coarse})
        people = pa.table({"u": coarse.cast(pa.timestamp("ns")), "age": [1, 2]})
        data = protected({"visits": visits, "people": people}, name="h")
        plan = data["visits"].join(data["people"]).agg(n=tc.count()).plan(epsilon=1)
        assert integers(plan) == {(): [2]}


class TestFilesThatChange:
    """A file is read as it is when it is asked, by the names of its columns."""

    @staticmethod
    def write(path: Any, columns: dict[str, list[Any]]) -> None:
        table = pa.table(columns)
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            table.to_pandas().to_csv(path, index=False)
        later = path.stat().st_mtime_ns + 1_000_000
        os.utime(path, ns=(later, later))

    @pytest.fixture(params=["csv", "parquet"])
    def path(self, request: Any, tmp_path: Any) -> Any:
        return tmp_path / f"data.{request.param}"

    def test_columns_that_change_places_keep_their_meaning(self, path: Any) -> None:
        self.write(path, {"u": ["one"] * 100, "x": list(range(100))})
        data = protected(path)
        assert asked(data, "SELECT COUNT(*) AS n FROM data") == [1]
        self.write(path, {"x": list(range(100)), "u": ["one"] * 100})
        assert asked(data, "SELECT COUNT(*) AS n FROM data") == [1]

    def test_types_that_change_are_read_anew(self, path: Any) -> None:
        self.write(path, {"u": [1, 2, 2], "x": [1, 2, 3]})
        data = protected(path)
        assert asked(data, "SELECT COUNT(*) AS n FROM data") == [2]
        self.write(path, {"u": ["a", "b", "c", "c"], "x": ["1", "2", "3", "4"]})
        assert asked(data, "SELECT COUNT(*) AS n FROM data") == [3]

    def test_other_columns_are_refused_before_the_charge(self, path: Any) -> None:
        self.write(path, {"u": ["a", "b"], "x": [1, 2]})
        data = protected(path)
        asked(data, "SELECT COUNT(*) AS n FROM data")
        self.write(path, {"u": ["a", "b"], "y": [1, 2]})
        with pytest.raises(tc.TacitError) as failed:
            data.agg(n=tc.count()).plan(epsilon=2).release()
        assert failed.value.code == "unknown-table"
        self.write(path, {"u": ["a", "b", "c"], "x": [1, 2, 3]})
        assert asked(data, "SELECT COUNT(*) AS n FROM data") == [3]

    def test_columns_are_those_of_the_declaration(self, path: Any) -> None:
        self.write(path, {"u": ["a", "b"], "x": [1, 2]})
        data = protected(path)
        self.write(path, {"u": ["a", "b"], "y": [1, 2]})
        with pytest.raises(OSError, match="declared"):
            integers(data.agg(n=tc.count()).plan(epsilon=2))

    def test_a_file_that_was_mended_is_read_plainly_again(self, tmp_path: Any) -> None:
        path = tmp_path / "data.parquet"
        self.write(path, {"u": raw_texts([b"a", b"\xff"]), "x": [1, 2]})
        data = protected(path)
        assert asked(data, "SELECT COUNT(*) AS n FROM data") == [2]
        self.write(path, {"u": ["a", "b", "c"], "x": [1, 2, 3]})
        assert asked(data, "SELECT COUNT(*) AS n FROM data") == [3]
        assert not data._engine._as_bytes


def test_a_failed_statement_leaves_no_connection_behind(tmp_path: Any) -> None:
    data = protected(pd.DataFrame({"u": PEOPLE}))
    engine = data._engine
    assert asked(data, "SELECT COUNT(*) AS n FROM data") == [N]
    before = engine._connection
    with pytest.raises(duckdb.Error):
        engine.rows("SELECT error('boom') FROM data", {})
    with pytest.raises(duckdb.ConnectionException):
        before.execute("SELECT 1")
    assert asked(data, "SELECT COUNT(*) AS n FROM data") == [N]
