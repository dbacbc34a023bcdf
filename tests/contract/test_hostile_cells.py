r"""What one person writes into a cell changes nothing for others: every kind of source, every hostile cell.

Twenty people have two rows each. One more person arrives, whose cells hold line ends, quotes, NUL bytes,
marks of byte order, control sequences, spellings of bytes, numbers beyond all ranges. The exact integers of
neighbouring tables then differ by at most what the plan declares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc
from support.asking import subject_of
from tacit.tables.planning._exact_integers import exact_integers

if TYPE_CHECKING:
    from pathlib import Path

N = 20
FORGED = "".join(f"\rforged{i}" for i in range(1000))
CELLS = {
    "return": "x\ry",
    "forged lines": "x" + FORGED,
    "feed": "x\ny,A,1\nz",
    "both": "x\r\ny,A,1\r\nz",
    "only a return": "\r",
    "trailing return": "p1\r",
    "code": "\x1ab\x1aa\x1a",
    "quote": 'x"y""z"',
    "quotes": '"',
    "escape": "\x1b[31mx\x1b[0m",
    "NUL": "a\x00b",
    "mark of byte order": "\ufeffp1",
    "line separators": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "spaces": " p1 ",
    "trailing space": "p1 ",
    "empty": "",
    "spelled bytes": "\\xFF",
    "huge": "9" * 400,
    "long": "z" * 70_000,
    "infinity": "inf",
    "nan": "nan",
    "null": "NULL",
    "formula": "=1+1",
    "digest": "sha256:" + "0" * 64,
}
ENDS = {"feed": "\n", "both": "\r\n"}


def csv_text(rows: list[tuple[str, ...]], end: str) -> bytes:
    """Write a CSV file as pandas does: only a cell that holds a sign of the line end is quoted for it."""

    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"' + end) else text

    return "".join(",".join(map(cell, row)) + end for row in [("u", "h", "x"), *rows]).encode()


def made(kind: str, rows: list[tuple[str, ...]], path: Path) -> object:
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("u", "h", "x"))}
    if kind.startswith("csv "):
        (path / "t.csv").write_bytes(csv_text(rows, ENDS[kind.removeprefix("csv ")]))
        return path / "t.csv"
    match kind:
        case "arrow":
            return pa.table(columns)
        case "pandas":
            return pd.DataFrame(columns)
        case "polars":
            return pl.DataFrame(columns)
        case "parquet":
            pq.write_table(pa.table(columns), path / "t.parquet")
            return path / "t.parquet"
        case "database":
            (path / "t.duckdb").unlink(missing_ok=True)
            with duckdb.connect(str(path / "t.duckdb")) as con:
                con.register("frame", pa.table(columns))
                con.execute("CREATE TABLE t AS SELECT * FROM frame")
            return (path / "t.duckdb", "t")
        case _:
            con = duckdb.connect()
            con.register("frame", pa.table(columns))
            con.execute("CREATE TABLE t AS SELECT * FROM frame")
            con.unregister("frame")
            return (con, "t")


def counted(source: object, rows: int = 2) -> dict[str, Any]:
    """Return exact integers: units, rows, rows and values by ward."""
    data = tc.protect(
        source,
        unit="u",
        bounds={"x": (0, 10)},
        keys={"h": ["A", "B"]},
        limits={"rows": rows},
        budget=tc.Budget(epsilon=100),
    )
    found = {}
    for name, plan in {
        "units": data.agg(n=tc.count_units()).plan(epsilon=1),
        "rows": data.agg(n=tc.count()).plan(epsilon=1),
        "wards": data.group_by("h").agg(n=tc.count()).plan(epsilon=1),
        "values": data.agg(n=tc.count("x")).plan(epsilon=1),
    }.items():
        task = subject_of(plan)
        twice = [next(iter(exact_integers(task.engine, task.asked, task.statistics).values())) for _ in "12"]
        assert twice[0] == twice[1]
        found[name] = {key: vector[0] for key, vector in twice[0].items()}
    return found


def change(one: dict[Any, int], other: dict[Any, int]) -> int:
    return sum(abs(one.get(key, 0) - other.get(key, 0)) for key in {*one, *other})


OTHERS = [(f"p{i}", "AB"[i % 2], str(i % 7)) for i in range(N)]
KINDS = (
    "csv feed",
    "csv both",
    "parquet",
    "arrow",
    "pandas",
    "polars",
    "database",
    "connection",
)


def check(kind: str, cell: str, path: Path) -> None:
    before = counted(made(kind, OTHERS * 2, path))
    assert before["units"] == {(): N}
    assert before["rows"] == {(): 2 * N}
    for hostile in ((cell, "A", "1"), ("zz", cell, "1"), ("zz", "A", cell)):
        # the hostile rows stand first, between others and last
        after = counted(made(kind, [hostile, *OTHERS, hostile, *OTHERS, hostile], path))
        for name, most in (("units", 1), ("rows", 2), ("wards", 2), ("values", 2)):
            assert change(before[name], after[name]) <= most, (name, hostile)
        assert after["units"][()] >= N


@pytest.mark.parametrize("kind", ["csv feed", "csv both"])
@pytest.mark.parametrize("cell", ["forged lines", "feed", "trailing return"])
def test_a_line_end_in_a_cell_is_one_cell_of_one_person(kind: str, cell: str, tmp_path: Path) -> None:
    check(kind, CELLS[cell], tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_a_hostile_cell_is_one_cell_of_one_person(kind: str, cell: str, tmp_path: Path) -> None:
    check(kind, cell, tmp_path)


def test_a_return_inside_a_cell_does_not_forge_people(tmp_path: Path) -> None:
    names = [name for name, _, _ in OTHERS]
    frame = pd.DataFrame({"u": [*names, "p0"], "h": "A", "x": [*("1" for _ in names), "1" + FORGED]})
    frame.to_csv(tmp_path / "t.csv", index=False, lineterminator="\n")
    assert counted(tmp_path / "t.csv")["units"] == {(): N}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_the_header_line_shows_what_ends_a_line(tmp_path: Path, end: str) -> None:
    (tmp_path / "t.csv").write_bytes(csv_text(OTHERS, end))
    assert counted(tmp_path / "t.csv", 1)["wards"] == {("A",): N // 2, ("B",): N // 2}


def test_cells_with_line_ends_keep_them(tmp_path: Path) -> None:
    from tacit.engines import DuckDB, SourceTable, read_source

    cells = ["a\rb", "\x1ab", "c\x1aa\r", "\x1a", 'd"\re', "plain"]
    for end in ENDS.values():
        rows = [(f"p{i}", cell, "1") for i, cell in enumerate(cells)]
        (tmp_path / "t.csv").write_bytes(csv_text(rows, end))
        engine = DuckDB({"t": SourceTable(read_source(tmp_path / "t.csv"), ("u",))}, key=1)
        assert sorted(engine.rows("SELECT tacit_u, h FROM t", {})) == [(u, h) for u, h, _ in rows]


def test_a_long_file_is_coded_at_every_place(tmp_path: Path) -> None:
    """Parts of the copy end anywhere, also between a return and a feed."""
    from tacit.engines.sources._csv_files import copy_with_coded_cells

    body = b"".join(b"p%d,A,x\ry\r\n" % i for i in range(40))
    (tmp_path / "t.csv").write_bytes(b"u,h,x\r\n" + body)
    from tacit.engines.sources import _csv_files

    plain = _csv_files._CHUNK
    try:
        written = set()
        for size in (1, 2, 3, 7, 1 << 20):
            _csv_files._CHUNK = size
            assert copy_with_coded_cells(tmp_path / "t.csv", tmp_path / "c.csv")
            written.add((tmp_path / "c.csv").read_bytes())
        assert written == {b"u,h,x\r\n" + body.replace(b"x\ry", b"x\x1aby")}
    finally:
        _csv_files._CHUNK = plain


def test_a_return_in_one_cell_does_not_make_the_lines_of_others_too_long(tmp_path: Path) -> None:
    """A coded line is longer and may be skipped: it is coded or not whatever the other lines hold."""
    from tacit.engines.sources._csv_files import copy_with_coded_cells

    for end in (b"\n", b"\r\n"):
        others = b"u,h,x" + end + b"p1,\x1a\x1a,1" + end
        more = b'p2,"\r",1' + end + b'p3,"\n",1' + end
        coded = []
        for lines in (others, others + more):
            (tmp_path / "t.csv").write_bytes(lines)
            assert copy_with_coded_cells(tmp_path / "t.csv", tmp_path / "c.csv")
            coded.append((tmp_path / "c.csv").read_bytes())
        assert coded[1].startswith(coded[0])


def test_the_longest_line_is_read_also_once_it_is_coded_and_a_longer_one_is_refused(tmp_path: Path) -> None:
    """A coded line is up to three times as long, and the engine's reader skips lines beyond 64 MiB."""
    from tacit.engines import csv_file
    from tacit.engines.sources._row_files import readable_copy

    longest = b"\x81" * ((16 << 20) - 3)  # not a letter of windows-1252: three bytes of UTF-8
    (tmp_path / "t.csv").write_bytes(b"u,h\np0,A\np1," + longest + b"\np2,A\n")
    with readable_copy(csv_file(tmp_path / "t.csv", encoding="cp1252"), tmp_path / "c") as source:
        rows = duckdb.sql(f"SELECT u, length(h) FROM ({source.sql('t')})").fetchall()
    assert rows == [("p0", 1), ("p1", len(longest)), ("p2", 1)]
    (tmp_path / "t.csv").write_bytes(b"u,h\np1," + b"x" * ((16 << 20) - 2) + b"\n")
    with pytest.raises(tc.TacitError, match="longer than 16 MiB"):
        csv_file(tmp_path / "t.csv").check_form()


def raw_texts(values: list[bytes]) -> pa.Array:
    stored = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(stored), stored.buffers())


@pytest.mark.parametrize(
    "kind", ["parquet", "arrow", "pandas", "polars", "binary parquet", "binary arrow", "blob"]
)
def test_bytes_and_the_text_that_spells_them_are_two_people(kind: str, tmp_path: Path) -> None:
    names = [b"\xff", b"\\xFF", b"\\xff", b"\xc3\xa9", b"sha256:", b"\xfe"]
    rows = {"u": raw_texts(names * 10), "h": ["A"] * 60, "x": ["1"] * 60}
    if "binary" in kind or kind == "blob":
        rows["u"] = pa.array(names * 10, pa.binary())
    table = pa.table(rows)
    match kind:
        case "parquet" | "binary parquet":
            pq.write_table(table, tmp_path / "t.parquet")
            source: object = tmp_path / "t.parquet"
        case "pandas":
            source = table.to_pandas()
        case "polars":
            source = pl.from_arrow(table)
        case "blob":
            con = duckdb.connect()
            con.register("frame", table)
            con.execute("CREATE TABLE t AS SELECT * FROM frame")
            source = (con, "t")
        case _:
            source = table
    found = counted(source, rows=10)
    assert found["units"] == {(): len(names)}
    assert found["rows"] == {(): 60}


def test_bytes_and_texts_in_two_tables_are_one_person_only_if_they_spell_one_name() -> None:
    texts = pa.table({"u": ["\\xFF", "é", "sha256:" + "a8" * 32], "x": [1.0, 2.0, 3.0]})
    blobs = pa.table({"u": pa.array([b"\xff", "é".encode(), b"\xfe"], pa.binary()), "y": [1.0, 2.0, 3.0]})
    data = tc.protect({"a": texts, "b": blobs}, unit="u", limits={"rows": 1}, budget=tc.Budget(epsilon=10**6))
    joined = data["a"].join(data["b"])
    assert joined.agg(n=tc.count()).plan(epsilon=10**5).release().value == 1
    assert joined.where("y = 2").agg(n=tc.count()).plan(epsilon=10**5).release().value == 1
