"""Sources that are refused before an account is opened, and facts of reading that are part of a question."""

from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc
from tacit.engines.sources import _arguments
from tacit.fixes import Do
from tacit.tables import convert_csv, csv_file, open_facts

BUDGET = tc.Budget(epsilon=10**6)


def refused(source, **facts):
    ledger = tc.Ledger.memory()
    with pytest.raises(tc.TacitError) as error:
        tc.protect(source, **{"unit": "id", "budget": BUDGET, "ledger": ledger, "name": "v", **facts})
    assert ledger.accounts() == []
    return error.value


@pytest.mark.parametrize("body", [b"", b"\n", b"\n\n\n", b"\xef\xbb\xbf", b"\r\n", b"\n1,2\n"])
def test_a_file_without_columns_is_refused_also_for_single_rows(tmp_path, body):
    (tmp_path / "v.csv").write_bytes(body)
    assert "has no columns" in refused(tmp_path / "v.csv", unit=tc.Unit.row()).what
    assert "has no columns" in refused(pd.DataFrame(index=range(3)), unit=tc.Unit.row()).what


def test_a_table_without_a_name_is_refused():
    frame = pd.DataFrame({"id": [1]})
    assert refused({"": frame}).what.startswith("the name of a table must be")
    assert refused(frame, public={"": (frame, "id")}).what.startswith("the name of a table must be")


@pytest.mark.parametrize(
    "header", [b'id,v"\rx",k\r\n', b"id,v\rx,k\n", b'id,"v\n', b'id,"v"x\n', b"id,\x00\n", b"i\x00d\x00\n"]
)
def test_a_header_that_cannot_be_read_is_refused_in_words(tmp_path, header):
    (tmp_path / "v.csv").write_bytes(header + b"u1,1,a\n")
    assert refused(tmp_path / "v.csv").code in {"bad-parameter", "unknown-column"}


def test_a_header_of_more_than_a_mebibyte_is_refused(tmp_path):
    (tmp_path / "v.csv").write_text("id," + "x" * (1 << 20) + "\n1,2\n")
    assert "longer than 1 MiB" in refused(tmp_path / "v.csv").what


@pytest.mark.parametrize("path", ["\0.csv", "a\0/v.csv", "x" * 300 + ".csv"])
def test_a_path_that_no_file_can_have_is_refused_in_words(path):
    assert "cannot be opened" in refused(path).what


def test_a_row_that_is_too_long_for_the_engine_is_refused_and_the_longest_is_answered(tmp_path, monkeypatch):
    most = _arguments._MAX_ROW // _arguments._TEXT
    assert most * 16 + most / 8 < 262_136  # what DuckDB holds
    monkeypatch.setattr(_arguments, "_MAX_ROW", 16 * 40)
    for width, answered in ((40, True), (41, False)):
        frame = pd.DataFrame([["a"] * width] * 3, columns=["id", *(f"c{i}" for i in range(width - 1))])
        frame.to_csv(tmp_path / "v.csv", index=False)
        frame.to_parquet(tmp_path / "v.parquet")
        for source in (frame, tmp_path / "v.csv", tmp_path / "v.parquet"):
            if answered:
                assert len(tc.protect(source, unit="id", budget=BUDGET).columns) == width
            else:
                assert "41 columns" in refused(source).what


@pytest.mark.long
def test_the_longest_rows_that_are_accepted_are_answered(tmp_path):
    width = _arguments._MAX_ROW // _arguments._TEXT
    row = ",".join(["1"] * width)
    names = ",".join(f"c{i}" for i in range(width))
    (tmp_path / "v.csv").write_text(names + "\n" + f"{row}\n" * 20)
    data = tc.protect(tmp_path / "v.csv", unit="c0", limits={"rows": 3}, budget=BUDGET)
    for epsilon in (10**4, 10**4 + 1):  # the second question uses a snapshot
        assert data.agg(n=tc.count()).plan(epsilon=epsilon).release().value == 3


def twice(tmp_path, kind):
    """Return a source with two columns ``id``."""
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"]), pa.array([1])], ["id", "id", "x"])
    match kind:
        case "pandas":
            return pd.DataFrame([["a", "b", 1]], columns=["id", "id", "x"])
        case "arrow":
            return table
        case "csv":
            (tmp_path / "v.csv").write_text("id,id,x\na,b,1\n")
            return tmp_path / "v.csv"
        case _:
            pq.write_table(table, tmp_path / "v.parquet")
            return tmp_path / "v.parquet"


@pytest.mark.parametrize("kind", ["pandas", "arrow", "csv", "parquet"])
def test_a_unit_column_that_stands_twice_is_refused(tmp_path, kind):
    source = twice(tmp_path, kind)
    assert "2 columns named 'id'" in refused(source).what
    assert "2 columns named 'id'" in refused(source, unit=tc.Unit("id", per="x")).what
    assert tc.protect(source, unit="x", budget=BUDGET).columns[0] == "id"  # other names may stand twice
    with pytest.raises(tc.TacitError, match="2 columns named 'id'"):
        tc.graph(source, source_column="id", target_column="x", unit=tc.Unit.edge(), budget=BUDGET, nodes=9)


def test_names_inside_a_nested_column_do_not_stand_twice(tmp_path):
    duckdb.sql(f"COPY (SELECT {{'id': 1, 'l': [1]}} AS s, 7 AS id, [1] AS l) TO '{tmp_path}/v.parquet'")
    assert tc.protect(tmp_path / "v.parquet", unit="id", budget=BUDGET).columns == ("s", "id", "l")
    assert tc.protect(pl.DataFrame({"id": [1]}), unit="id", budget=BUDGET).columns == ("id",)


# --- facts of reading ---


def german(tmp_path):
    file = tmp_path / "v.csv"
    file.write_bytes("id;ort;x\n1;Köln;3,5\n2;Köln;2,5\n".encode("latin-1"))
    return file


def test_a_declaration_of_how_a_file_is_read_is_part_of_the_question(tmp_path):
    """The same question of the same file is a new one once the declaration has changed."""
    (tmp_path / "v.csv").write_text("id;x\n" + "".join(f"{i};3,5\n" for i in range(50)))
    ledger = tc.Ledger.memory()
    hashes, answers = set(), []
    for facts in ({}, {"decimal": ","}, {"encoding": "latin-1"}, {"separator": ";"}, {"quote": ""}):
        data = tc.protect(
            csv_file(tmp_path / "v.csv", **facts),
            unit="id", bounds={"x": (0, 9)}, budget=BUDGET, ledger=ledger, name="v",
        )  # fmt: skip
        plan = data.agg(s=tc.sum("x")).plan(epsilon=1000)
        hashes.add(plan.hash)
        answers.append(plan.release().value)
        assert data.plan_from(plan.to_json()) == plan
        assert open_facts(data.public_facts(), ledger).agg(s=tc.sum("x")).plan(epsilon=1000) == plan
    assert len(hashes) == 5
    assert answers[0] == pytest.approx(0, abs=1)
    assert answers[1] == pytest.approx(175, abs=1)


def test_a_plan_of_a_file_without_such_a_declaration_keeps_its_hash(tmp_path):
    """The hash was computed by the version before facts of reading were part of a question."""
    (tmp_path / "v.csv").write_text("id,x\n1,2\n")
    data = tc.protect(tmp_path / "v.csv", unit="id", bounds={"x": (0, 9)}, budget=BUDGET, name="v")
    assert data.agg(s=tc.sum("x"), n=tc.count()).plan(epsilon=1).hash == HASH
    assert "reading" not in str(data.public_facts())


HASH = "c001f422bda28233b1473cf759e7c0b4e6033d44e3994bc560c961dd865a1bf1"


def test_a_plan_of_another_reading_is_not_rebuilt(tmp_path):
    file = german(tmp_path)
    one = tc.protect(csv_file(file, encoding="latin-1"), unit="id", budget=BUDGET)
    other = tc.protect(csv_file(file, encoding="cp1252"), unit="id", budget=BUDGET)
    with pytest.raises(tc.TacitError) as error:
        other.plan_from(one.agg(n=tc.count()).plan(epsilon=1).to_json())
    assert error.value.code == "plan-differs"


# --- conversion ---


def test_a_file_is_converted_once_and_answers_as_it_would_itself(tmp_path):
    file = german(tmp_path)
    done = convert_csv(file, tmp_path / "v.parquet", encoding="latin-1", decimal=",")
    assert (done.columns, done.repaired, done.dropped) == (("id", "ort", "x"), 0, 0)
    facts = {"unit": "id", "bounds": {"x": (0, 9)}, "keys": {"ort": ["Köln"]}, "budget": BUDGET}
    answers = [
        tc.protect(source, **facts)
        .group_by("ort")
        .agg(s=tc.sum("x"))
        .plan(epsilon=10**4)
        .release()["s"]
        .value
        for source in (tmp_path / "v.parquet", csv_file(file, encoding="latin-1", decimal=","))
    ]
    assert answers[0] == pytest.approx(answers[1], abs=0.1)
    assert answers[0][0] == pytest.approx(6, abs=0.1)


def test_a_strict_conversion_refuses_a_broken_file_and_writes_nothing(tmp_path):
    (tmp_path / "v.csv").write_text('id,x\n1,"2\n3,4\n')
    with pytest.raises(tc.TacitError, match="line 2 of"):
        convert_csv(tmp_path / "v.csv", tmp_path / "v.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["v.csv"]


def test_a_conversion_never_overwrites_unasked(tmp_path):
    (tmp_path / "v.csv").write_text("id\n1\n")
    convert_csv(tmp_path / "v.csv", tmp_path / "v.parquet")
    with pytest.raises(tc.TacitError, match="exists already"):
        convert_csv(tmp_path / "v.csv", tmp_path / "v.parquet")
    convert_csv(tmp_path / "v.csv", tmp_path / "v.parquet", force=True)
    for target in ("v.csv", "v.txt"):
        with pytest.raises(tc.TacitError, match="ends in"):
            convert_csv(tmp_path / "v.csv", tmp_path / target, force=True)
    with pytest.raises(tc.TacitError, match="missing, empty"):
        convert_csv(tmp_path / "none.csv", tmp_path / "w.parquet")


def test_a_first_line_that_says_how_the_file_is_written_names_no_columns(tmp_path):
    (tmp_path / "v.csv").write_bytes("\ufeffid,größe\n1,2\n".encode())
    error = refused(csv_file(tmp_path / "v.csv", encoding="latin-1"))
    assert "starts with the mark of UTF-8" in error.what
    assert error.fix == Do("declare-encoding", source="v.csv", encoding="utf-8")
    assert tc.protect(csv_file(tmp_path / "v.csv"), unit="id", budget=BUDGET).columns == ("id", "größe")
    for first in ("sep=;\n", "SEP=;\r\n", "\ufeffsep=,\n"):
        (tmp_path / "w.csv").write_bytes(f"{first}id;x\n1;2\n".encode())
        error = refused(tmp_path / "w.csv")
        assert "the first line of w.csv is 'sep=" in error.what.replace("SEP", "sep")
        assert str(error.fix) == "delete the first line of the file"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_lenient_conversion_keeps_every_sound_line_and_lists_the_others(tmp_path, end):
    lines = {
        "id,ward,x": None,
        '1,"a\nb",2': ("1", "a\nb", "2"),  # a cell of two lines is well formed
        '500,"elective,4': ("500", '"elective', "4"),
        '3,6" high,5': ("3", '6" high', "5"),
        "": None,
        "4": ("4", None, None),
        "5,b,6,,": ("5", "b", "6"),
        "6,b,6,7": None,
        "7,M\udcfcnchen,1": None,
        "8,c,9": ("8", "c", "9"),
    }
    text = "".join(line + end for line in lines)
    (tmp_path / "v.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    done = convert_csv(tmp_path / "v.csv", tmp_path / "v.parquet", lenient=True)
    rows = duckdb.sql(f"FROM '{tmp_path}/v.parquet'").fetchall()
    assert rows == [row for row in lines.values() if row is not None]
    assert (done.repaired, done.repaired_lines) == (4, [4, 5, 7, 8])
    assert (done.dropped, done.dropped_lines) == (2, [9, 10])


def test_a_lenient_conversion_never_drops_the_header_so_that_no_row_names_the_columns(tmp_path):
    (tmp_path / "v.csv").write_bytes("id;Größe\np7;3\np8;4\n".encode("latin-1"))
    with pytest.raises(tc.TacitError, match=r"line 1 of v\.csv .* not UTF-8") as refused:
        convert_csv(tmp_path / "v.csv", tmp_path / "v.parquet", lenient=True)
    assert refused.value.fix == Do("declare-encoding", source="v.csv", encoding="windows-1252")
    assert not (tmp_path / "v.parquet").exists()
    (tmp_path / "w.csv").write_bytes(b'"last, first", "born"\np7,3\n')
    with pytest.raises(tc.TacitError, match=r"line 1 of w\.csv .* quotation mark") as refused:
        convert_csv(tmp_path / "w.csv", tmp_path / "w.parquet", lenient=True)
    assert "write the names of the columns again" in str(refused.value.fix)
    done = convert_csv(tmp_path / "v.csv", tmp_path / "v.parquet", encoding="windows-1252", lenient=True)
    assert (done.columns, done.dropped) == (("id", "Größe"), 0)


def test_a_lenient_conversion_of_the_file_that_swallowed_a_thousand_patients_keeps_them(tmp_path):
    lines = [f"{i},elective,4,0,30001,0\n" for i in range(1494)]
    lines.insert(498, '500,"elective,4,0,30001,0\n')
    (tmp_path / "with.csv").write_text("id,kind,a,b,c,d\n" + "".join(lines))
    done = convert_csv(tmp_path / "with.csv", tmp_path / "with.parquet", lenient=True)
    assert (done.repaired_lines, done.dropped) == ([500], 0)
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/with.parquet'").fetchall() == [(1495,)]
