"""What a curator declares: in Python, in a file; wrong facts are refused, and no row can be reached."""

from __future__ import annotations

import math

import pytest

import tacit as tc
from asking import HUGE, ledger_of, visits
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
    assert not public & {"rows", "head", "count", "len", "columns", "to_pandas", "describe", "shape"}
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
