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


def integers(engine, plan):
    """Return the exact integers of every step of a plan, after invented noisy ones."""
    task = members_of(plan)[0].task.subject.on(engine)
    noisy, exact = [], []
    with SharedReadings.opened() as readings:
        data = task.open(readings)
        for step in task.steps:
            lines = [list(map(int, line)) for line in step.exact(data, noisy)]
            exact.append(lines)
            noisy.append([[10**6 * n if n > 5 else 0 for n in line] for line in lines])
    return exact


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
