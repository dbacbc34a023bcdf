"""CSV files with decimal commas and encodings, and folders of Parquet files."""

import json
import random
from fractions import Fraction

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit as tc
from tacit.algebra._statistics import grid_for
from tacit.tables import csv_file, read_config
from tacit.tables.planning._exact_integers import exact_integers

HUGE = tc.Budget(epsilon=10**6, delta=1e-6)


def exact(query):
    """Return the exact integers of a question's only statistic, by group."""
    from tacit.core import members_of

    task = members_of(query.plan(epsilon=1, delta=1e-7))[0].task.subject
    [found] = exact_integers(task.engine, task.asked, task.statistics).values()
    return found


def released(query) -> float:
    return query.plan(epsilon=10**5).release().value


# --- decimals ---


def test_a_decimal_comma_is_read_where_it_is_declared(tmp_path):
    file = tmp_path / "d.csv"
    file.write_text("pid;x\n" + "".join(f"{u};{u % 3},5\n" for u in range(99)))
    bounds = {"x": (0, 10)}
    plain = tc.protect(file, unit="pid", bounds=bounds, budget=HUGE)
    declared = tc.protect(csv_file(file, decimal=","), unit="pid", bounds=bounds, budget=HUGE)
    assert released(declared.agg(x=tc.sum("x"))) == pytest.approx(99 * 1.5, abs=0.5)
    assert released(plain.agg(x=tc.sum("x"))) == pytest.approx(0, abs=0.5)


def test_a_decimal_comma_does_not_merge_units(tmp_path):
    file = tmp_path / "d.csv"
    file.write_text("pid;x\n1,5;1\n1.5;1\n")
    data = tc.protect(csv_file(file, decimal=","), unit="pid", budget=HUGE)
    assert exact(data.agg(n=tc.count_units())) == {(): [2]}


@pytest.mark.parametrize(
    "cell", ["", ",", "1,5,5", "a,5", "1.000,5", "1,5" * 30_000, "\x00", "1e400,5", "-,5"]
)
def test_no_cell_makes_a_file_with_decimal_commas_fail(tmp_path, cell):
    file = tmp_path / "d.csv"
    file.write_text("pid;x\n1;1,5\n2;" + cell + "\n")
    data = tc.protect(csv_file(file, decimal=","), unit="pid", bounds={"x": (-9, 9)}, budget=HUGE)
    exact(data.agg(n=tc.sum("x")))


# --- encodings ---


def test_an_encoding_is_read_where_it_is_declared(tmp_path):
    file = tmp_path / "d.csv"
    file.write_bytes("pid,Größe,ort\nä,1,Köln\nö,2,Köln\nü,3,Bonn\n".encode("latin-1"))
    data = tc.protect(
        csv_file(file, encoding="latin-1"), unit="pid", keys={"ort": ["Köln", "Bonn"]}, budget=HUGE
    )
    assert data.columns == ("pid", "Größe", "ort")
    found = exact(data.group_by("ort").agg(n=tc.count()))
    assert found == {("Köln",): [2], ("Bonn",): [1]}


@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252", "iso-8859-15", "cp850", "koi8-r", "cp1255"])
def test_different_bytes_stay_different_units_in_every_encoding(tmp_path, encoding):
    file = tmp_path / "d.csv"
    names = [bytes([b]) for b in range(128, 256)]
    file.write_bytes(b"pid,x\n" + b"".join(b"u" + name + b"u,1\n" for name in names))
    data = tc.protect(csv_file(file, encoding=encoding), unit="pid", budget=HUGE)
    assert exact(data.agg(n=tc.count_units())) == {(): [128]}


def test_line_ends_inside_cells_stay_inside_them_in_every_encoding(tmp_path):
    file = tmp_path / "d.csv"
    file.write_bytes(b"pid,x\nA,\xe9\rB\nC,\x1ab\n")
    data = tc.protect(csv_file(file, encoding="latin-1"), unit="pid", budget=HUGE)
    assert exact(data.agg(n=tc.count_units())) == {(): [2]}


def test_the_rows_of_a_day_are_read_as_those_of_a_table(tmp_path):
    """A stream stores them once: a break in a cell is no line, and a file with a bad line is refused."""
    import duckdb

    from tacit.engines import read_source, write_rows

    file, stored = tmp_path / "d.csv", tmp_path / "d.parquet"
    file.write_bytes(b"pid,x\nA,1\rB\nC,2\n")
    write_rows(read_source(file), stored)
    assert duckdb.sql(f"FROM '{stored}'").fetchall() == [("A", "1\rB"), ("C", "2")]
    file.write_bytes(b'pid,x\nA,"1\nC,2\n')
    with pytest.raises(tc.TacitError, match=r"line 2 of d\.csv breaks the form"):
        write_rows(read_source(file), stored)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["d.csv", "d.parquet"]


@pytest.mark.parametrize(
    "encoding", ["utf-16", "shift_jis", "gbk", "big5", "cp037", "utf-7", "hex", "klingon", 7]
)
def test_other_encodings_are_refused(encoding):
    with pytest.raises(tc.TacitError, match="encoding must be"):
        csv_file("visits.csv", encoding=encoding)


def test_utf8_needs_no_copy():
    assert csv_file("visits.csv", encoding="UTF8").encoding == ""


def test_only_csv_files_have_decimals_and_encodings():
    with pytest.raises(tc.TacitError, match="a CSV file must be"):
        csv_file("visits.parquet", decimal=",")
    with pytest.raises(tc.TacitError, match="decimal must be"):
        csv_file("visits.csv", decimal=";")


# --- folders and patterns ---


def parts(folder, count=3, rows=10):
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(count):
        table = {"pid": [i * rows + j for j in range(rows)], "x": [float(i)] * rows}
        pq.write_table(pa.table(table), folder / f"part-{i}.parquet")


@pytest.mark.parametrize(
    "place", ["visits", "visits/", "visits/*.parquet", "visits/part-?.parquet", "*/*.parquet"]
)
def test_a_folder_or_a_pattern_is_one_table(tmp_path, monkeypatch, place):
    parts(tmp_path / "visits")
    monkeypatch.chdir(tmp_path)
    data = tc.protect(place, unit="pid", bounds={"x": (0, 9)}, budget=HUGE)
    assert data.columns == ("pid", "x")
    assert exact(data.agg(n=tc.count())) == {(): [30]}
    assert released(data.agg(x=tc.mean("x"))) == pytest.approx(1, abs=0.1)


def test_folders_in_a_folder_are_read_and_their_names_are_not(tmp_path):
    parts(tmp_path / "visits" / "year=2023")
    parts(tmp_path / "visits" / "year=2024")
    (tmp_path / "visits" / "_SUCCESS").write_text("")
    parts(tmp_path / "visits" / "_temporary")
    data = tc.protect(tmp_path / "visits", unit="pid", budget=HUGE)
    assert data.columns == ("pid", "x")
    assert exact(data.agg(n=tc.count())) == {(): [60]}


def test_a_file_that_is_added_later_is_read(tmp_path):
    parts(tmp_path / "visits", 2)
    data = tc.protect(tmp_path / "visits", unit="pid", budget=HUGE)
    assert exact(data.agg(n=tc.count())) == {(): [20]}
    parts(tmp_path / "visits", 3)
    assert exact(data.agg(n=tc.count())) == {(): [30]}


def test_columns_are_read_by_name(tmp_path):
    folder = tmp_path / "visits"
    parts(folder, 1)
    pq.write_table(pa.table({"x": [5.0], "pid": [99]}), folder / "z.parquet")
    data = tc.protect(folder, unit="pid", bounds={"x": (0, 9)}, budget=HUGE)
    assert exact(data.agg(x=tc.sum("x"))) == {(): [5 / grid_for((Fraction(0), Fraction(9))).step]}


@pytest.mark.parametrize(
    "odd",
    [{"pid": [1], "x": ["text"]}, {"pid": [1]}, {"pid": [1], "x": [1.0], "y": [1]}, {"pid": [1], "X": [1.0]}],
)
def test_files_with_other_columns_or_types_are_refused_before_the_charge(tmp_path, odd):
    folder = tmp_path / "visits"
    parts(folder, 2)
    pq.write_table(pa.table(odd), folder / "z.parquet")
    with pytest.raises(tc.TacitError, match="not the same in all files"):
        tc.protect(folder, unit="pid", budget=HUGE)


def test_a_file_with_another_schema_that_comes_later_is_refused_before_the_charge(tmp_path):
    folder = tmp_path / "visits"
    parts(folder, 2)
    data = tc.protect(folder, unit="pid", budget=HUGE)
    plan = data.agg(n=tc.count()).plan(epsilon=1)
    pq.write_table(pa.table({"pid": [1], "x": ["text"]}), folder / "z.parquet")
    with pytest.raises(tc.TacitError) as refused:
        plan.release()
    assert refused.value.code == "unknown-table"
    assert "z.parquet" not in str(refused.value)
    assert data.remaining.epsilon == HUGE.epsilon


def test_bytes_that_are_not_text_do_not_fail_a_folder(tmp_path):
    folder = tmp_path / "visits"
    folder.mkdir()
    for i, bad in enumerate((b"a", b"\xff")):
        text = pa.array([bad], pa.binary()).view(pa.string()) if bad == b"\xff" else pa.array(["a"])
        pq.write_table(pa.table({"pid": text, "x": [1.0]}), folder / f"{i}.parquet")
    data = tc.protect(folder, unit="pid", budget=HUGE)
    assert exact(data.agg(n=tc.count_units())) == {(): [2]}


def test_a_folder_of_a_delta_or_iceberg_table_is_refused(tmp_path):
    parts(tmp_path / "delta")
    (tmp_path / "delta" / "_delta_log").mkdir()
    parts(tmp_path / "ice" / "data")
    (tmp_path / "ice" / "metadata").mkdir()
    (tmp_path / "ice" / "metadata" / "v1.metadata.json").write_text("{}")
    for place in ("delta", "delta/*.parquet", "ice", "ice/data", "ice/data/*.parquet"):
        with pytest.raises(tc.TacitError, match="table, which Tacit cannot read") as refused:
            tc.protect(tmp_path / place, unit="pid", budget=HUGE)
        assert "export the table to Parquet" in str(refused.value.fix)


def test_an_empty_folder_is_refused_before_a_durable_account_is_opened(tmp_path):
    (tmp_path / "visits").mkdir()
    for place in ("visits", "visits/*.parquet"):
        with pytest.raises(tc.TacitError, match="does not exist"):
            tc.protect(tmp_path / place, unit="pid", name="v", budget=HUGE, ledger=tmp_path / "l.ledger")


def test_a_name_with_signs_of_patterns_is_refused(tmp_path):
    parts(tmp_path / "visits")
    (tmp_path / "visits" / "part-0.parquet").rename(tmp_path / "visits" / "part-[12].parquet")
    with pytest.raises(tc.TacitError, match="contains one of the characters"):
        tc.protect(tmp_path / "visits", unit="pid", budget=HUGE)


@pytest.mark.parametrize("seed", range(5))
def test_the_rows_of_a_unit_that_count_do_not_depend_on_the_files_of_others(tmp_path, seed):
    """The first rows of a unit are the same, wherever its rows and those of others are."""
    draw = random.Random(seed)
    own = pd.DataFrame({"pid": "u", "x": [float(draw.randrange(100)) for _ in range(9)]})
    others = pd.DataFrame({"pid": [f"o{i % 7}" for i in range(40)], "x": [1.0] * 40})
    sums = []
    for name, frames in (("a", [own, others]), ("b", [others[:13], own[5:], own[:5], others[13:]])):
        (tmp_path / name).mkdir()
        for i, frame in enumerate(frames):
            frame.to_parquet(tmp_path / name / f"{i}.parquet", index=False)
        bounds, limits = {"x": (0, 100)}, {"rows": 3}
        data = tc.protect(tmp_path / name, unit="pid", bounds=bounds, limits=limits, budget=HUGE)
        data._engine._key = 5
        sums.append(exact(data.where("pid = 'u'").agg(s=tc.sum("x"))))
    assert sums[0] == sums[1]


# --- tacit.toml ---


def test_the_config_declares_decimals_encodings_folders_and_limits(tmp_path):
    (tmp_path / "de.csv").write_bytes("pid;x;ort\n1;1,5;Köln\n2;2,5;Köln\n".encode("latin-1"))
    (tmp_path / "us.csv").write_text("pid,y\n1,1.5\n")
    (tmp_path / "codes.csv").write_bytes("ort;name\nKöln;Cöln\n".encode("cp1252"))
    parts(tmp_path / "visits")
    text = """
    [datasets.all]
    unit = "pid"
    budget = {epsilon = 1e6}
    encoding = "latin-1"
    [datasets.all.source]
    de = {path = "de.csv", decimal = ","}
    us = {path = "us.csv", encoding = "utf-8"}
    visits = "visits/*.parquet"
    [datasets.all.limits]
    rows = 2
    visits = {rows = 5}
    [datasets.all.public]
    codes = {source = "codes.csv", key = "ort", encoding = "windows-1252"}
    [datasets.all.bounds]
    x = [0, 10]
    "de.x" = [0, 9]
    """
    data = read_config(text, tmp_path).dataset("all")
    assert released(data["de"].agg(x=tc.sum("x"))) == pytest.approx(4, abs=0.5)
    assert exact(data["visits"].agg(n=tc.count())) == {(): [30]}
    assert data.limits.rows_of("visits") == 5
    looked = data["de"].join("codes", "ort").group_by("name", keys=["Cöln"]).agg(n=tc.count())
    assert exact(looked) == {("Cöln",): [2]}


@pytest.mark.parametrize(
    "source", ["7", "{visits = 7}", '{visits = {path = "v.csv", sep = ";"}}', "{visits = {}}"]
)
def test_a_source_of_another_form_is_refused(source):
    text = f'[datasets.d]\nunit = "pid"\nbudget = {{epsilon = 1}}\nsource = {source}'
    with pytest.raises(tc.TacitError, match="must be a path"):
        read_config(text)


def test_the_command_reads_a_folder(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from tacit.cli import app

    parts(tmp_path / "visits")
    text = '[datasets.visits]\nsource = "visits/*.parquet"\nunit = "pid"\nbudget = {epsilon = 5}\n'
    (tmp_path / "tacit.toml").write_text('ledger = "tacit.ledger"\n' + text)
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(
        app, ["query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "5", "--json"]
    )
    assert json.loads(answer.stdout)["rows"][0]["n"] == pytest.approx(30, abs=60)
