"""Plans of tables: no data enters them, and SQL and Python make the same ones."""

from __future__ import annotations

import pandas as pd
import pytest

import tacit as tc
from support.asking import HUGE, subject_of, visits
from tacit import TacitError
from tacit.tables import example_visits


def test_a_plan_touches_no_data(tmp_path):
    nowhere = tc.protect(
        tmp_path / "not-there.parquet",
        unit="pid",
        bounds={"x": (0, 30)},
        budget=tc.Budget(epsilon=1, delta=1e-6),
    )
    plan = (
        nowhere.where("x > 3")
        .group_by("h", keys=["A", "B"])
        .agg(n=tc.count(), m=tc.mean("x"))
        .plan(epsilon=0.5)
    )
    assert plan.cost.epsilon(delta=0) == 0.5
    assert [float(part.scale) for part in subject_of(plan).mechanisms] == [40, 40 * 30 * 2**25]
    assert "first 10" in plan.sql[0]
    assert "epsilon 0.5" in repr(plan)
    assert nowhere.sql("SELECT COUNT(*) FROM data WHERE h LIKE 'a%'").plan(epsilon=0.1).hash
    with pytest.raises(TacitError) as failed:
        plan.release()
    assert failed.value.code == "unknown-table"  # the source was never there, so nothing is charged
    assert "not-there.parquet" in str(failed.value)
    assert float(nowhere.remaining.epsilon) == 1
    assert nowhere.remaining.epsilon == 1


def test_nothing_of_the_data_enters_a_plan():
    small = pd.DataFrame(
        {"patient_id": [1], "hospital": ["Ahorn"], "length_of_stay": [1.0], "age": [3], "icd": ["x"]}
    )
    plans = [
        tc.protect(s, name="visits", unit="patient_id", bounds={"length_of_stay": (0, 30)}, budget=HUGE)
        .group_by("hospital", keys=["Ahorn"])
        .agg(m=tc.mean("length_of_stay"))
        .plan(epsilon=1)
        for s in (small, example_visits())
    ]
    assert plans[0].hash == plans[1].hash
    assert plans[0].sql == plans[1].sql
    assert repr(plans[0]) == repr(plans[1])


def test_sql_and_python_make_the_same_plan():
    data = visits(types={"admitted": "date"})
    pairs = [
        (
            "SELECT hospital, AVG(length_of_stay) AS stay FROM visits GROUP BY hospital",
            data.group_by("hospital").agg(stay=tc.mean("length_of_stay")),
        ),
        (
            "SELECT COUNT(*) AS n, COUNT(DISTINCT patient_id) AS p FROM visits WHERE age > 65 AND icd = 'I2'",
            data.where((tc.col("age") > 65) & (tc.col("icd") == "I2")).agg(n=tc.count(), p=tc.count_units()),
        ),
        (
            "SELECT AVG(n) AS m FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)",
            None,
        ),
    ]
    for text, fluent in pairs:
        plan = data.sql(text).plan(epsilon=1)
        release = plan.release()
        if fluent is not None:
            same = fluent.plan(epsilon=1)
            assert subject_of(plan).statistics == subject_of(same).statistics
            assert same.cost == plan.cost
        assert release.columns


def test_the_mean_and_the_hash_agree_between_sql_and_python():
    data = visits()
    one = data.sql("SELECT hospital, AVG(length_of_stay) AS stay FROM visits GROUP BY hospital").plan(
        epsilon=1
    )
    two = data.group_by("hospital").agg(stay=tc.mean("length_of_stay")).plan(epsilon=1)
    assert one == two
    assert one.release().columns == two.release().columns


def test_a_mean_gives_its_count_for_nothing_where_values_are_never_missing():
    kept = (
        visits(never_null=["length_of_stay"]).agg(n=tc.count(), m=tc.mean("length_of_stay")).plan(epsilon=1)
    )
    split = visits().agg(n=tc.count(), m=tc.mean("length_of_stay")).plan(epsilon=1)
    assert len(kept.mechanisms) == 1
    assert len(split.mechanisms) == 2
    every = visits().agg(
        **{f: getattr(tc, f)("length_of_stay") for f in ("sum", "mean", "variance", "std", "count")}
    )
    assert len(every.plan(epsilon=1).mechanisms) == 1


@pytest.mark.parametrize(
    ("delta", "size", "warned"),
    [(1e-2, None, "above 0.001"), (1e-3, None, ""), (1e-4, 20_000, "above 1 / 20,000"), (1e-5, 20_000, ""),
     (0.04, 20, "")],
)  # fmt: skip
def test_a_plan_warns_once_of_a_large_delta(delta, size, warned):
    plan = visits().agg(n=tc.count()).plan(epsilon=1, delta=delta, size=size)
    text = " ".join(repr(plan).split())
    assert text.count("warning: delta") == bool(warned)
    assert warned in text


def test_only_a_plan_with_a_choice_asks_the_ledger(monkeypatch):
    data = visits(budget=tc.Budget(epsilon=9))
    asked = []
    ledger = type(data._ledger)
    read = ledger.account
    monkeypatch.setattr(ledger, "account", lambda self, name: asked.append(name) or read(self, name))
    data.agg(n=tc.count(), m=tc.mean("length_of_stay")).plan(epsilon=1)
    assert not asked
    data.agg(q=tc.median("length_of_stay")).plan(epsilon=1)
    assert asked
