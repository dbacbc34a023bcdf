"""Which groups a release shows: public keys, keys of public tables, keys that are selected privately."""

from __future__ import annotations

import math
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tacit as tc
from support.asking import HUGE, task_of, visits
from tacit import TacitError


def test_unknown_public_keys_never_leak_and_missing_ones_appear():
    data = tc.protect(pd.DataFrame({"pid": [1, 2], "h": ["A", "secret"]}), unit="pid", budget=HUGE)
    release = data.group_by("h", keys=["Z", "A"]).agg(n=tc.count()).plan(epsilon=10**6).release()
    assert release.keys["h"] == ("A", "Z")
    assert release["n"].value == (1, 0)


@pytest.mark.parametrize("kind", ["pandas", "arrow", "csv", "parquet", "connection"])
def test_keys_of_a_public_table(tmp_path, kind):
    lookup = pd.DataFrame({"h": ["B", "A", "Z", None], "beds": [2.0, 1.0, 2.0, np.nan]})
    lookup.to_csv(tmp_path / "l.csv", index=False)
    lookup.to_parquet(tmp_path / "l.parquet")
    con = duckdb.connect()
    con.register("v", lookup)
    con.execute("CREATE TABLE l AS FROM v")
    source = {
        "pandas": lookup, "arrow": pa.Table.from_pandas(lookup), "csv": tmp_path / "l.csv",
        "parquet": tmp_path / "l.parquet", "connection": (con, "l"),
    }[kind]  # fmt: skip
    con.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'A'), (2, 'A'), (3, 'secret')) v(pid, h)")
    data = tc.protect(
        {"t": (con, "t") if kind == "connection" else con.execute("FROM t").df()},
        unit="pid",
        types={"beds": "number"},
        public={"places": (source, "h")},
        budget=HUGE,
    )
    by_key = data.group_by("h", keys="places").agg(n=tc.count()).plan(epsilon=10**6).release()
    assert by_key.keys["h"] == ("A", "B", "Z")
    assert by_key["n"].value == (2, 0, 0)
    beds = data.join("places").group_by("beds", keys="places.beds").agg(n=tc.count())
    release = beds.plan(epsilon=10**6).release()
    assert release.keys["beds"] == (1.0, 2.0)
    assert release["n"].value == (2, 0)
    declared = tc.protect(
        {"t": (con, "t") if kind == "connection" else con.execute("FROM t").df()},
        unit="pid",
        types={"beds": "number"},
        keys={"h": "places", "beds": "places.beds"},
        public={"places": (source, "h")},
        budget=HUGE,
    )
    assert declared.group_by("h").agg(n=tc.count()).plan(epsilon=10**6).release()["n"].value == (2, 0, 0)
    again = declared.join("places").group_by("beds").agg(n=tc.count()).plan(epsilon=10**6).release()
    assert again.keys["beds"] == (1.0, 2.0)
    asked = data.sql("SELECT h, COUNT(*) AS n FROM t GROUP BY h", keys={"h": "places"})
    assert asked.plan(epsilon=10**6).release().keys["h"] == ("A", "B", "Z")


def test_keys_are_never_read_from_a_protected_table(tmp_path):
    data = tc.protect(
        {"t": pd.DataFrame({"pid": [1, 2], "h": ["A", "secret"]}), "other": pd.DataFrame({"pid": [1]})},
        unit="pid",
        public={"gone": (tmp_path / "gone.csv", "h"), "here": (pd.DataFrame({"h": ["A"]}), "h")},
        budget=HUGE,
    )
    for keys, code in [
        ("t", "bad-parameter"), ("t.h", "bad-parameter"), ("other.pid", "bad-parameter"),
        ("A", "bad-parameter"), ("gone", "unknown-table"), ("here.x", "unknown-column"),
    ]:  # fmt: skip
        with pytest.raises(TacitError) as refused:
            data.group_by("h", keys=keys)
        assert refused.value.code == code
        assert "secret" not in str(refused.value)
    with pytest.raises(TacitError, match="protected"):
        data._engine.public_values("t", '"h"', 10)


def test_private_keys_show_only_groups_with_enough_units():
    units = [(i, f"rare{i}") for i in range(200)] + [(i, "common") for i in range(2000)]
    data = tc.protect(
        pd.DataFrame(units, columns=["pid", "icd"]),
        unit="pid",
        limits={"rows": 2},
        budget=tc.Budget(epsilon=9, delta=1e-3),
    )
    release = data.group_by("icd").agg(p=tc.count_units()).plan(epsilon=1, delta=1e-9).release()
    assert release.keys["icd"] == ("common",)
    assert abs(release["p"].value[0] - 2000) < 100


def test_thresholds_are_the_smallest_that_hold():
    for epsilon, delta, groups in [(1, 1e-6, 1), (0.1, 1e-9, 5), (3, 1e-3, 2), (0.01, 1e-12, 3)]:
        reach = tc.mechanisms.KeySelection(epsilon, delta=delta, groups=groups).threshold - 1
        a = math.exp(-epsilon / groups)
        ends = [a**r * (1 - a) / (1 + a - 2 * a ** (r + 1)) for r in (reach, reach - 1)]
        assert groups * ends[0] <= delta * (1 + 1e-9)
        assert groups * ends[1] > delta * (1 - 1e-9)


def flights(per_carrier):
    """Planes of carriers, each with up to 200 flights that count."""
    planes = [(f"{name}{i}", name) for name, many in per_carrier.items() for i in range(many)]
    return tc.protect(
        pd.DataFrame(planes * 3, columns=["plane", "carrier"]),
        unit="plane",
        limits={"rows": 200, "groups": 1},
        budget=tc.Budget(epsilon=9, delta=1e-3),
    )


def test_the_selection_of_groups_gets_a_fair_share_beside_columns_that_one_unit_moves_far():
    """It got 0.005 of epsilon 1 before, so that groups below 3,100 planes were hidden."""
    plan = flights({"AA": 600, "YV": 60}).group_by("carrier").agg(n=tc.count()).plan(epsilon=1, delta=1e-7)
    selection, counts = task_of(plan).mechanisms
    assert selection.epsilon == counts.epsilon == Fraction(1, 2)
    assert selection.threshold < 40
    assert plan.release().keys["carrier"] == ("AA", "YV")


def test_a_selection_shares_one_rho_with_the_columns_where_that_shows_more():
    """Each patient counts once in each of up to 60 groups: Gaussian noise for all."""
    data = visits(limits={"rows": 60, "per_group": 1})
    plan = data.group_by("icd").agg(n=tc.count_units(), m=tc.count()).plan(epsilon=1, delta=1e-7)
    selection, counts = task_of(plan).mechanisms
    assert selection.scale == counts.sigma
    assert selection.threshold < tc.mechanisms.KeySelection(0.5, delta=1e-7, groups=60).threshold
    assert plan.cost.epsilon(delta=1e-7) <= 1 + 1e-9
    assert "rho" in str(plan)
    assert len(plan.release()) > 0


AGES = pd.DataFrame(
    {
        "pid": range(100),
        "age": [float(a) for a in range(100)],
        "h": ["A", "B", None, "C"] * 25,
        "w": ["u", "v"] * 50,
    }
)


@pytest.fixture(scope="module")
def ages():
    return tc.protect(
        AGES,
        name="t",
        unit="pid",
        types={"age": "number"},
        keys={"h": ["A", "B"]},
        limits={"rows": 1},
        budget=HUGE,
    )


@pytest.mark.parametrize(
    ("expression", "exact"),
    [
        ("CASE WHEN age < 18 THEN 'child' WHEN age < 65 THEN 'adult' ELSE 'old' END",
         {"adult": 47, "child": 18, "old": 35}),
        ("CASE WHEN age < 18 THEN 1 WHEN age < 65 THEN 2 END", {1.0: 18, 2.0: 47}),
        ("IF(age < 18, TRUE, FALSE)", {False: 82, True: 18}),
        ("CASE WHEN age < 50 THEN h ELSE 'late' END", {"A": 13, "B": 13, "late": 50}),
        ("COALESCE(h, 'unknown')", {"A": 25, "B": 25, "unknown": 25}),
        ("CASE WHEN age < 18 THEN DATE '2026-01-01' ELSE '2026-02-01' END",
         {"2026-01-01": 18, "2026-02-01": 82}),
    ],
)  # fmt: skip
def test_constants_of_a_case_are_public_keys(ages, expression, exact):
    for sql in (
        f"SELECT {expression} AS k, COUNT(*) AS n FROM t GROUP BY k",
        f"SELECT k, COUNT(*) AS n FROM (SELECT pid, {expression} AS k FROM t) GROUP BY k",
    ):
        release = ages.sql(sql).plan(epsilon=10**6).release()
        assert dict(zip(release.keys["k"], release["n"].value, strict=True)) == exact
    made = ages.with_columns(k=expression).group_by("k").agg(n=tc.count()).plan(epsilon=10**6)
    assert dict(zip(made.release().keys["k"], made.release()["n"].value, strict=True)) == exact


@pytest.mark.parametrize(
    "expression", ["CASE WHEN age < 18 THEN w ELSE 'x' END", "COALESCE(w, 'x')", "UPPER(h)", "NULL"]
)
def test_values_that_are_not_public_make_no_keys(ages, expression):
    with pytest.raises(TacitError) as refused:
        ages.sql(f"SELECT {expression} AS k, COUNT(*) AS n FROM t GROUP BY k").plan(epsilon=1)
    assert refused.value.code == "keys-missing"


def test_keys_of_a_question_come_beside_the_declared_ones(ages):
    sql = "SELECT h, w, COUNT(*) AS n FROM t GROUP BY h, w"
    release = ages.sql(sql, keys={"w": ["u"]}).plan(epsilon=10**6).release()
    assert list(zip(*release.keys.values(), release["n"].value, strict=True)) == [
        ("A", "u", 25),
        ("B", "u", 0),
    ]
    fluent = ages.group_by("h", "w", keys={"w": ["u"]}).agg(n=tc.count()).plan(epsilon=10**6)
    assert fluent.release().keys == release.keys
    other = ages.sql(sql, keys={"w": ["u"], "h": ["C"]}).plan(epsilon=10**6).release()
    assert other.keys["h"] == ("C",)
    with pytest.raises(TacitError, match="for each column"):
        ages.group_by("h", "age", "w", keys={"w": ["u"]})


def test_a_case_of_two_kinds_is_refused_as_an_expression(ages):
    with pytest.raises(TacitError, match="values of one kind") as refused:
        ages.sql("SELECT CASE WHEN age < 18 THEN 1 ELSE 'x' END AS k, COUNT(*) AS n FROM t GROUP BY k")
    assert refused.value.code == "bad-expression"


def test_a_name_for_missing_values_takes_their_place(ages):
    data = tc.protect(AGES, name="t", unit="pid", keys={"h": ["A", None]}, budget=HUGE)
    sql = "SELECT COALESCE(h, 'unknown') AS k, COUNT(*) AS n FROM t GROUP BY k"
    assert data.sql(sql).plan(epsilon=10**6).release().keys["k"] == ("A", "unknown")
