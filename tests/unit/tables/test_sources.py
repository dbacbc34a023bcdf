"""CSV files: the header, what separates the columns, and lines that cannot be read."""

from __future__ import annotations

import pandas as pd
import pytest

import tacit as tc
from support.asking import HUGE, subject_of
from tacit.tables.planning._exact_integers import exact_integers


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_cells_of_a_well_formed_csv_change_nothing_before_the_charge(tmp_path, sign):
    """Only the header decides what is public; the form of the lines is checked, and nothing else is kept."""
    plans = []
    for name, lines in (("a", f"1{sign}2\n" * 1000), ("b", f"x{sign}\n\n"), ("c", "")):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "t.csv"
        path.write_text(f"pid{sign}x\n{lines}")
        data = tc.protect(path, unit="pid", bounds={"x": (0, 5)}, budget=tc.Budget(epsilon=1))
        plan = data.agg(s=tc.sum("x")).plan(epsilon=0.5)
        plans.append((plan.to_json(), data.public_facts(), repr(data), repr(plan)))
    assert plans[0] == plans[1] == plans[2]


@pytest.mark.parametrize(
    ("file", "sign"), [("t.csv", ","), ("t.csv", ";"), ("t.csv", "\t"), ("t.csv", "|"), ("t.tsv", "\t")]
)
def test_the_header_shows_what_separates_the_columns(tmp_path, file, sign):
    """Cells and quoted names hold all the other signs, and more of them than the header has."""
    header = sign.join(["pid", '"Size; of, a | thing"', "x"])
    cells = [sign.join([str(i), '"a;b,c|d"', str(i % 5)]) for i in range(200)]
    (tmp_path / file).write_text("\n".join([header, *cells, ""]))
    data = tc.protect(
        tmp_path / file, unit="pid", bounds={"x": (0, 5)}, limits={"rows": 1}, budget=HUGE, name="t"
    )
    sql = """SELECT COUNT(*) AS n, AVG(x) AS x FROM t WHERE "Size; of, a | thing" = 'a;b,c|d'"""
    release = data.sql(sql).plan(epsilon=10**6).release()
    assert release["n"].value == (200,)
    assert release["x"].value[0] == pytest.approx(2, abs=1e-3)


def test_what_separates_columns_is_never_taken_from_cells(tmp_path):
    from tacit.engines import read_source

    (tmp_path / "one.csv").write_text("pid\n1;2;3\n4;5;6\n")
    assert read_source(tmp_path / "one.csv").delimiter == ","
    assert read_source(tmp_path / "one.csv").columns() == ("pid",)
    (tmp_path / "tie.csv").write_text("a;b,c\n")
    assert read_source(tmp_path / "tie.csv").columns() == ("a;b", "c")


def test_a_header_ends_where_its_line_ends(tmp_path):
    (tmp_path / "old.csv").write_bytes(b"u,x\r\nsecret1,2\r\nsecret2,3\r\n")
    data = tc.protect(tmp_path / "old.csv", unit="u", budget=HUGE)
    assert data.tables["data"].columns == ("u", "x")


def test_lines_that_end_with_a_return_alone_are_refused(tmp_path):
    """A feed at the start of the first cell would make the header seem to end with both."""
    (tmp_path / "old.csv").write_bytes(b"u,x\rsecret1,2\rsecret2,3\r")
    with pytest.raises(tc.TacitError, match="end with a carriage return alone") as refusal:
        tc.protect(tmp_path / "old.csv", unit="u", budget=HUGE)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("bad", [b"p5,", b"", b"p5,x"])
@pytest.mark.parametrize("unit", ["u", tc.Unit.row()])
def test_a_line_without_a_value_changes_a_sum_by_no_more_than_is_declared(tmp_path, unit, bad):
    """Under replace with one value each the sensitivity is U - L, unless a line can vanish."""
    lines = [b"u,x", *(b"p%d,200" % i for i in range(100))]
    sums = []
    for name, sixth in (("a", lines[6]), ("b", bad)):
        path = tmp_path / f"{name}.csv"
        path.write_bytes(b"\n".join([*lines[:6], sixth, *lines[7:]]) + b"\n")
        data = tc.protect(
            path,
            unit=unit,
            bounds={"x": (100, 200)},
            never_null=["x"],
            adjacency="replace",
            limits={"rows": 1},
            budget=HUGE,
        )
        task = subject_of(data.agg(s=tc.sum("x")).plan(epsilon=1))
        [exact] = exact_integers(task.engine, task.asked, task.statistics).values()
        sums.append(exact[()][0])
    assert abs(sums[0] - sums[1]) <= task.mechanisms[0].sensitivity


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_that_is_gone_is_named_before_the_charge(tmp_path, kind):
    path, frame = tmp_path / f"visits.{kind}", pd.DataFrame({"pid": range(30)})
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    data = tc.protect(path, unit="pid", budget=tc.Budget(epsilon=2))
    first = data.agg(n=tc.count()).plan(epsilon=0.5).release()
    plan = data.agg(n=tc.count()).plan(epsilon=1)
    path.unlink()
    with pytest.raises(tc.TacitError) as refused:
        plan.release()
    assert str(path) in refused.value.what
    assert float(data.remaining.epsilon) == 1.5
    assert data.agg(n=tc.count()).plan(epsilon=0.5).release() == first  # stored, so it needs no file


def test_sparse_columns_of_pandas_are_read_as_what_they_hold():
    sparse = pd.arrays.SparseArray
    frame = pd.DataFrame(
        {
            "pid": sparse(range(40)),
            "x": sparse([0.0, 3.0] * 20),
            "flag": sparse([True, False] * 20),
            "ward": pd.Series(["A", "B"] * 20, dtype=pd.SparseDtype(object, "A")),
        }
    )
    data = tc.protect(
        frame, unit="pid", bounds={"x": (0, 4)}, budget=HUGE, keys={"ward": ["A", "B"]}, name="t"
    )
    found = data.group_by("ward").agg(s=tc.sum("x"), n=tc.count()).plan(epsilon=10**4).release()
    assert found["s"].value == pytest.approx((0, 60), abs=0.5)
    assert found["n"].value == (20, 20)
    assert data.where("flag").agg(n=tc.count()).plan(epsilon=10**4).release()["n"].value == (20,)
