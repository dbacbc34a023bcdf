"""What a curator declares: in Python, in a file; wrong facts are refused, and no row can be reached."""

from __future__ import annotations

import math

import pytest

import tacit as tc
from support.asking import HUGE, ledger_of, visits
from tacit import TacitError
from tacit.tables import example_visits, load_config


@pytest.mark.parametrize(
    "options",
    [
        {"unit": 5},
        {"budget": 1},
        {"bounds": {"x": (3, 1)}},
        {"bounds": {"x": (0, math.inf)}},
        {"bounds": {"x": (math.nan, 1)}},
        {"bounds": {"x": "ab"}},
        {"keys": {"h": []}},
        {"keys": {"h": ["A", "A"]}},
        {"keys": {"h": "AB"}},
        {"keys": {"h": ["A", 1]}},
        {"limits": {"rows": 0}},
        {"limits": {"rows": True}},
        {"limits": {"rows": 1.5}},
        {"limits": {"lines": 3}},
        {"types": {"x": "complex"}},
        {"types": {"length_of_stay": "text"}},
        {"adjacency": "swap"},
        {"version": 0},
        {"name": ""},
        {"unit": "nobody"},
        {"ledger": "x.ledger", "name": None},
        {"never_null": "x"},
    ],
)
def test_wrong_declarations_are_refused(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TacitError) as refused:
        visits(**options)
    assert str(refused.value.fix)


def test_a_unit_s_column_cannot_pass_for_event_level():
    with pytest.raises(TacitError, match="a name other than"):
        tc.protect("absent.csv", unit="row", budget=HUGE)


def test_declared_facts_live_in_a_file(tmp_path):
    (tmp_path / "tacit.toml").write_text(
        f"""
ledger = "hospital.ledger"
[datasets.visits]
source = "{example_visits()}"
unit = "patient_id"
budget = {{epsilon = 1}}
bounds = {{length_of_stay = [0, 30]}}
limits = {{rows = 5}}
"""
    )
    data = load_config(tmp_path / "tacit.toml")["visits"]
    assert data.agg(m=tc.mean("length_of_stay")).plan(epsilon=0.5).release()["m"].value[0] > 0
    assert (tmp_path / "hospital.ledger").exists()
    ledger_of(data).close()
    (tmp_path / "tacit.toml").write_text("[datasets.visits]\nsource = 5")
    with pytest.raises(TacitError):
        load_config(tmp_path / "tacit.toml")


def test_no_row_can_be_reached():
    data = visits()
    public = {n for n in dir(data) if not n.startswith("_")}
    assert not public & {"rows", "head", "count", "len", "to_pandas", "describe", "shape"}
    with pytest.raises(TypeError):
        len(data)


def test_a_pair_of_columns_is_declared_in_a_file(tmp_path):
    text = '[datasets.v]\nsource = "v.csv"\nunit = {column = "pid", per = "day"}\nbudget = {epsilon = 1}'
    (tmp_path / "tacit.toml").write_text(text)
    assert load_config(tmp_path / "tacit.toml")["v"].unit == tc.Unit("pid", per="day")


def test_single_rows_have_no_limits():
    free, limited = visits(unit=tc.Unit.row()), visits(unit=tc.Unit.row(), limits={"rows": 5, "groups": 2})
    count = {"n": tc.count()}
    one = free.group_by("hospital").agg(**count).plan(epsilon=1)
    two = limited.limit(groups=1, per_group=1).group_by("hospital").agg(**count).plan(epsilon=1)
    assert one == two
    assert one.mechanisms[0]["sensitivity"] == 1
    assert limited.plan_from(two.to_json()) == one


@pytest.mark.parametrize(
    ("facts", "meant"),
    [
        ({"bounds": {"lenght_of_stay": (0, 30)}}, "length_of_stay"),
        ({"bounds": {"aeg": (0, 100)}}, "age"),
        ({"keys": {"Hospital": ["A"]}}, "hospital"),
        ({"types": {"admited": "date"}}, "admitted"),
        ({"never_null": ["hosptal"]}, "hospital"),
        ({"bounds": {"visits.stay": (0, 30)}}, "one of"),
    ],
)
def test_facts_about_columns_that_do_not_exist_are_refused(facts, meant, tmp_path):
    with pytest.raises(TacitError) as refused:
        visits(**facts, ledger=tmp_path / "x.ledger")
    assert refused.value.code == "unknown-column"
    assert meant in str(refused.value.fix)
    assert not (tmp_path / "x.ledger").exists()


def test_facts_may_be_those_of_computed_columns():
    visits(
        bounds={"weeks": (0, 5), "age_2": (0, 9), "n": (0, 4)},
        keys={"month": [1, 2], "visits.hospital": ["A"]},
    )


def test_a_file_that_does_not_exist_opens_no_account(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = {"unit": "pid", "name": "x", "budget": tc.Budget(epsilon=1)}
    for source in ("missing.csv", "missing.parquet", {"x": "missing.duckdb"}):
        with pytest.raises(TacitError, match="does not exist"):
            tc.protect(source, **asked, ledger="a.ledger")
    assert not list(tmp_path.iterdir())
    with tc.Ledger.open("b.ledger") as ledger:
        with pytest.raises(TacitError, match="does not exist"):
            tc.protect("missing.csv", **asked, ledger=ledger)
        assert not ledger.accounts()


def test_a_file_that_does_not_exist_costs_nothing(tmp_path):
    data = tc.protect(tmp_path / "missing.csv", unit="pid", budget=tc.Budget(epsilon=1))
    plan = data.agg(n=tc.count()).plan(epsilon=0.5)
    with pytest.raises(TacitError, match="nothing was charged"):
        plan.release()
    assert data.remaining.epsilon == 1
    (tmp_path / "missing.csv").write_text("pid\n1\n")
    assert plan.release().certificate
    assert data.remaining.epsilon == 0.5


def test_a_stored_release_needs_no_file(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("pid\n1\n")
    with tc.Ledger.open(tmp_path / "a.ledger") as ledger:
        asked = {"unit": "pid", "name": "x", "budget": tc.Budget(epsilon=1), "ledger": ledger}
        first = tc.protect(file, **asked).agg(n=tc.count()).plan(epsilon=0.5).release()
        file.unlink()
        again = tc.protect(file, **asked).agg(n=tc.count()).plan(epsilon=0.5).release()
        assert again.columns == first.columns


def test_a_column_that_bounds_make_a_number_says_so(tmp_path):
    (tmp_path / "t.csv").write_text("pid,code\n1,A7\n")
    data = tc.protect(
        tmp_path / "t.csv", unit="pid", bounds={"code": (0, 9)}, budget=tc.Budget(epsilon=1), name="t"
    )
    with pytest.raises(tc.TacitError, match="is read as a number because bounds are declared for it"):
        data.sql("SELECT COUNT(*) FROM t WHERE code LIKE 'A%'")
    data.sql("SELECT COUNT(*) FROM t WHERE CAST(code AS TEXT) LIKE 'A%'")  # the fix


def test_a_file_that_is_nested_too_deeply_is_refused_in_words(tmp_path):
    (tmp_path / "tacit.toml").write_text("a = " + "[" * 3000)
    with pytest.raises(TacitError, match="cannot be read as TOML"):
        load_config(tmp_path / "tacit.toml")
