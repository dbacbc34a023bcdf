"""The entrance exam of engines, bounds that a plan finds: octaves and sums on the bounds equal DuckDB's.

The later statements of such a plan depend on noisy counts of the first. Here these are invented, the same for
every engine, so that all engines must return the same integers.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import tacit as tc
from support.engine_exam import opened
from support.engine_places import OTHERS
from tacit.core import SharedReadings, members_of
from tacit.tables.planning import _exact_integers, _found_bounds_subject

_POWERS = [2.0**k for k in (-31, -30, -29, -1, 0, 1, 5, 6, 60, 61, 62)]
_VALUES = [
    None, 0.0, -0.0, 5e-324, 1e308, -1e308, float("inf"), float("-inf"), float("nan"), 37.0, 40.5, 63.999,
    *_POWERS, *(-power for power in _POWERS), *(power * (1 + 2**-52) for power in _POWERS),
]  # fmt: skip


def crowd():
    """Return rows around every kind of cut, in two wards; nobody has more rows than a limit allows."""
    rows = [(i % 17, "AB"[i % 2], value) for i, value in enumerate(_VALUES * 3)]
    rows += [(i, "A", 32.0 + i % 30) for i in range(200)]
    return {"visits": pa.table({
        "pid": [row[0] for row in rows], "ward": [row[1] for row in rows], "x": [row[2] for row in rows],
    })}  # fmt: skip


def blown(lines):
    """Return noisy counts in which only cells with many rows stand out."""
    return [[10**6 * n if n > 5 else 0 for n in line] for line in lines]


def integers(engine, plan, invented=blown):
    """Return the exact integers of every step of a plan, after invented noisy ones."""
    task = members_of(plan)[0].task.subject.on(engine)
    noisy, exact = [], []
    with SharedReadings.opened() as readings:
        data = task.open(readings)
        for step in task.steps:
            lines = [list(map(int, line)) for line in step.exact(data, noisy)]
            exact.append(lines)
            noisy.append(invented(lines))
    return exact


def all_different(lines):
    """Return noisy counts of octaves from which every group has a range of its own, on both sides of zero."""
    if len(lines[0]) < 100:
        return lines
    noisy = [[0] * len(line) for line in lines]
    for i, line in enumerate(noisy):
        zero = len(line) // 2
        line[zero + 20 + i % 40] = line[zero - 20 - i // 40] = 10**9
    return noisy


@pytest.mark.parametrize(("name", "groups"), [("duckdb", 1_000), ("postgres", 700)])
def test_very_many_ranges_are_read_in_statements_that_every_database_takes(
    name, groups, place_of, monkeypatch
):
    keys = [f"g{i:03}" for i in range(groups)]
    rows = pa.table({
        "pid": list(range(1_400)), "ward": [keys[i % groups] for i in range(1_400)],
        "x": [float(i % 97 - 40) for i in range(1_400)], "y": [i / 8 - 90 for i in range(1_400)],
    })  # fmt: skip
    data = tc.protect(
        rows, unit="pid", name="visits", limits={"rows": 1}, keys={"ward": keys},
        bounds={"x": "auto", "y": "auto"}, budget=tc.Budget(epsilon=9),
    )  # fmt: skip
    plan = data.group_by("ward").agg(sd=tc.std("x"), m=tc.mean("y")).plan(epsilon=1)
    widths, by_group = [], _exact_integers.by_group

    def watched(statistics, lines, width):
        lines = list(lines)
        widths.extend(map(len, lines[:1]))
        return by_group(statistics, lines, width)

    monkeypatch.setattr(_exact_integers, "by_group", watched)
    exact = integers(opened(place_of(name), {"visits": rows}, ("pid",)), plan, all_different)
    assert max(widths) <= 601  # with the key
    assert sum(width - 1 for width in widths if width > 100) >= 5 * groups
    monkeypatch.setattr(_found_bounds_subject, "_MOST_COLUMNS", 10**6)
    if name == "duckdb":  # the same integers as from one statement
        widths.clear()
        assert integers(opened(place_of(name), {"visits": rows}, ("pid",)), plan, all_different) == exact
        assert max(widths) > 3_000
    else:
        with pytest.raises(Exception, match="1664"):
            integers(opened(place_of(name), {"visits": rows}, ("pid",)), plan, all_different)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("limits", [{"rows": 40}, {"rows": 40, "groups": 2, "per_group": 40}])
def test_every_integer_on_found_bounds_equals_duckdbs(name, limits, place_of):
    tables = crowd()
    data = tc.protect(
        tables["visits"], unit="pid", name="visits", limits=limits, keys={"ward": ["A", "B"]},
        bounds={"x": "auto"}, budget=tc.Budget(epsilon=9),
    )  # fmt: skip
    asked = data.group_by("ward").agg(m=tc.mean("x"), s=tc.sum("x"), q=tc.median("x"), sd=tc.std("x"))
    plan = asked.plan(epsilon=1)
    here, there = (integers(opened(place_of(one), tables, ("pid",)), plan) for one in ("duckdb", name))
    assert here == there
    assert sum(map(sum, here[0])) > 100  # the octaves are not empty
    assert any(n for line in here[-1] for n in line)
