"""Workloads of joined, grouped and aggregated rows on neighbours: the real loss is never above the cost.

The search is that of `test_workload_neighbours`, on rows that pass through joins on the unit, public tables,
aggregates of each unit and renamed columns, with several rows of a unit and missing values.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from support.exact_integers import exact_of_plan
from support.workload_losses import KEY, loss
from tacit.core import members_of
from tacit.engines import DuckDB
from tacit.mechanisms import AdaptiveTables

PLACES, NUMBERS = ["A", "B", "C", "D", None], [0.0, 2.5, 10.0, -3.0, 50.0, np.nan, np.inf, None]
WARDS = pd.DataFrame({"h": ["A", "B", "C"], "region": ["n", "n", "s"]})


def lines(rng, unit, count):
    """Rows of visits and of tests of one unit; often they are all alike, where extremes occur."""
    visits = [(unit, PLACES[rng.integers(5)], NUMBERS[rng.integers(8)], int(rng.integers(3)))] * count
    if rng.random() < 0.5:
        visits = [
            (unit, PLACES[rng.integers(5)], NUMBERS[rng.integers(8)], int(rng.integers(3))) for _ in visits
        ]
    return visits, [(unit, ["p", "q", None][rng.integers(3)]) for _ in range(count // 2)]


def protected(visits, tests, ledger, adjacency, limit):
    frames = {
        "t": pd.DataFrame(visits, columns=["pid", "h", "x", "y"]).astype(
            {"pid": "string", "h": "string", "x": "float64", "y": "int64"}
        ),
        "s": pd.DataFrame(tests, columns=["pid", "w"]).astype("string"),
    }
    data = tc.protect(
        frames, public={"wards": (WARDS, "h")}, unit="pid", adjacency=adjacency, ledger=ledger, name="t",
        limits={"t": {"rows": limit}, "s": {"rows": 2}}, bounds={"x": (0, 10)},
        keys={"h": ["A", "B", "C"], "y": [0, 1], "w": ["p", "q"], "region": ["n", "s"]},
        budget=tc.Budget(epsilon=1000, delta=0.1),
    )  # fmt: skip
    object.__setattr__(data, "_engine", DuckDB(data._engine._tables, key=KEY))
    return data


def asked(data):
    """Questions about rows that passed through other operators, with the rows of one unit at most."""
    visits, tests = data["t"], data["s"]
    cuts = {"x": [0, 5, 10]}
    joined = visits.join(tests, how="left", rows=3)
    each = visits.per_unit(x=tc.max("x"), y=tc.min("y"))
    by_place = visits.per_unit(["h"], x=tc.sum("x"))
    yield "joined tables", joined.crosstabs(["h", "w", "x"], 2, bins=cuts, other=["w"])
    yield "public tables", visits.join("wards", "h").crosstabs(["region", "y"], 2)
    yield "ranges of joined rows", visits.join(tests).prefixes("x", bins=cuts["x"], by="w")
    yield "rows of each unit", by_place.hierarchy(["part", "h"], tree=[("n", "A"), ("n", "B"), ("s", "C")])
    yield "renamed", visits.select("pid", x="10 - x", y="y").ranges("x", bins=cuts["x"])
    yield "regression", each.regress("x", on=["y"], bounds={"y": (0, 2)})
    yield "logistic", each.with_columns(out="x > 3").regress("out", on=["y"], kind="logistic",
                                                             bins={"y": [0, 1, 2]})  # fmt: skip
    yield "survival", each.with_columns(gone="y > 0").survival(time="x", event="gone", bins=[0, 2, 5])
    yield "invented rows", joined.synthesize(["h", "w"], method="tables")
    yield "batch", tc.batch(joined.agg(n=tc.count()), visits.crosstabs(["h"], 1), by_place.agg(n=tc.count()))


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
def test_one_unit_moves_joined_rows_by_no_more_than_is_charged(adjacency):
    rng, reached, goal = np.random.default_rng(19), {}, Fraction(1, 7)
    for turn in range(3):
        others = [lines(rng, f"p{i}", 3) for i in range(2)]
        mine = lines(rng, "u", 6) if turn else ([("u", "A", 0.0, 0)] * 6, [("u", "p")] * 3)
        came = lines(rng, "u", 6) if adjacency == "replace" else ([], [])
        ledger = tc.Ledger.memory()
        sides = [
            protected(
                *([row for one in (*others, own) for row in one[i]] for i in (0, 1)), ledger, adjacency, 2
            )
            for own in (mine, came)
        ]
        for (name, one), (_, other) in zip(*map(asked, sides), strict=True):
            plans = [question.plan(rho=goal) for question in (one, other)]
            assert plans[0].hash == plans[1].hash
            found, charged = loss(*plans), plans[0].cost.spend.rho
            assert found["rho"] <= charged <= goal, name
            assert not found["epsilon"]
            reached[name] = max(reached.get(name, 0), float(found["rho"] / charged))
    assert min(reached.values()) > (0.2 if adjacency == "add/remove" else 0.05), reached
    assert max(reached.values()) <= 1


@pytest.mark.parametrize("method", ["aim", "mst"])
def test_tables_that_are_chosen_hold_as_many_rows_of_a_unit_as_their_noise_hides(method):
    rng = np.random.default_rng(3)
    ledger, others = tc.Ledger.memory(), lines(rng, "p", 3)
    sides = [
        protected(others[0] + own[0], others[1] + own[1], ledger, "add/remove", 2)
        for own in (([("u", "A", 0.0, 0)] * 6, [("u", "p")] * 3), ([], []))
    ]
    tables = []
    for data in sides:
        question = data["t"].join(data["s"], rows=3).synthesize(["h", "w"], method=method)
        plan = question.plan(rho=1)
        [mechanism] = members_of(plan)[0].task.mechanisms
        assert isinstance(mechanism, AdaptiveTables)
        [exact] = exact_of_plan(plan)
        tables.append(exact.table((0, 1)))
    assert np.abs(tables[0] - tables[1]).sum() == mechanism.rows == 3
