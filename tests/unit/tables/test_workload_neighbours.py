"""Workloads asked through the public interface on neighbours: the real loss is never above the charged cost.

The exact integers that go to the mechanisms are compared on two tables that differ in one unit. The search
reaches the cost itself, so half of the noise, or a forgotten row, would show.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit as tc
from support.workload_losses import KEY, loss
from tacit.engines import DuckDB

PLACES, NUMBERS = ["A", "B", "C", "D", None], [0.0, 2.5, 5.0, 10.0, -3.0, 50.0, np.nan, np.inf, None]


def lines(rng, unit, count):
    first = (unit, PLACES[rng.integers(5)], NUMBERS[rng.integers(9)], int(rng.integers(4)))
    more = [
        (unit, PLACES[rng.integers(5)], NUMBERS[rng.integers(9)], int(rng.integers(4))) for _ in range(count)
    ]
    return [first if rng.random() < 0.7 else one for one in more]


def protected(rows, ledger, adjacency, unit, limit):
    frame = pd.DataFrame(rows, columns=["pid", "h", "x", "y"])
    types = {"pid": "string", "h": "string", "x": "float64", "y": "int64"}
    data = tc.protect(
        {"t": frame.astype(types)}, unit=unit, adjacency=adjacency, ledger=ledger, name="t",
        limits=None if unit != "pid" else {"rows": limit}, keys={"h": ["A", "B", "C"], "y": [0, 1, 2]},
        bounds={"x": (0, 10)}, budget=tc.Budget(epsilon=1000, delta=0.1),
    )  # fmt: skip
    object.__setattr__(data, "_engine", DuckDB(data._engine._tables, key=KEY))
    return data


def asked(data, goal):
    tree = [("n", "A"), ("n", "B"), ("s", "C")]
    cross = data.crosstabs(["h", "x", "y"], 2, bins={"x": 3}, other=["h"])
    yield "cross", cross.plan(**goal)
    yield "light", data.crosstabs(["h", "y"], 1, weights={"h": 10**6}, aim="sum", missing=False).plan(**goal)
    yield "ranges", data.ranges("x", bins=[0, 1, 2, 9], by="h").plan(**goal)
    yield "prefixes", data.prefixes("y", values=[2, 0, 1]).plan(**goal)
    yield "hierarchy", data.hierarchy(["part", "h"], tree=tree).plan(**goal)
    yield "levels", data.sql("SELECT h, y, COUNT(*) AS n FROM t GROUP BY CUBE(h, y)").plan(**goal)
    yield "batch", tc.batch(data.agg(n=tc.count()), cross, data.ranges("x", bins=4)).plan(**goal)


@pytest.mark.parametrize("goal", [{"rho": Fraction(1, 7)}, {"epsilon": Fraction(1, 3)}], ids=str)
@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("unit", ["pid", tc.Unit.row()], ids=["unit", "row"])
def test_one_unit_moves_workloads_by_no_more_than_is_charged(unit, adjacency, goal):
    rng, reached = np.random.default_rng(11), {}
    for turn in range(3):
        limit, most = int(rng.integers(1, 4)), 6 if unit == "pid" else 1
        others = [row for i in range(3) for row in lines(rng, f"p{i}", int(rng.integers(0, 5)))]
        mine = [("u", "A", 0.0, 0)] * most if not turn else lines(rng, "u", most)
        came = lines(rng, "u", most) if adjacency == "replace" else []
        ledger = tc.Ledger.memory()
        sides = [protected(others + own, ledger, adjacency, unit, limit) for own in (mine, came)]
        for (name, one), (_, other) in zip(*(asked(side, goal) for side in sides), strict=True):
            assert one.hash == other.hash
            [law], spend = goal, one.cost.spend
            found, charged = loss(one, other), getattr(spend, law)
            assert found[law] <= charged <= goal[law], name
            assert not found["rho" if law == "epsilon" else "epsilon"]
            reached[name] = max(reached.get(name, 0), found[law] / charged)
    if adjacency == "add/remove":
        assert min(reached[name] for name in ("cross", "levels", "light", "hierarchy", "batch")) > 0.99
