"""The worked examples of the documentation that ask tables."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

import tacit as tc
from support.asking import HUGE, visits
from tacit import TacitError


def test_worked_example_8_and_13():
    data = visits(unit=tc.Unit.row())
    [count] = data.agg(n=tc.count()).plan(epsilon=0.8).mechanisms
    assert count["sensitivity"] == 1
    assert Fraction(count["scale"]) == Fraction("1.25")  # example 17
    with pytest.raises(TacitError) as asked:
        data.agg(pay=tc.mean("age")).plan(epsilon=1)
    assert asked.value.code == "missing-bounds"


@pytest.mark.parametrize(
    ("people", "low", "high", "total", "moved", "scale"),
    [
        (500, 0, 8, {"epsilon": 0.12}, 0.016, 0.1333),
        (5000, 80, 200, {"epsilon": 0.5, "delta": 1e-6}, 0.024, None),
    ],
)
def test_worked_examples_9_and_12(people, low, high, total, moved, scale):
    """The number of people is public: one value each, replaced; the mean is a sum over that number."""
    data = tc.protect(
        "absent.parquet",
        unit="p",
        bounds={"x": (low, high)},
        never_null=["x"],
        limits={"rows": 1},
        adjacency="replace",
        budget=HUGE,
    )
    [used] = data.sql(f"SELECT SUM(x) / {people} AS m FROM data").plan(**total).mechanisms
    step = Fraction(used["step"])
    assert float(used["sensitivity"] * step / people) == pytest.approx(moved, rel=1e-6)
    if scale is not None:
        assert float(Fraction(used["scale"]) * step / people) == pytest.approx(scale, abs=5e-5)


@pytest.mark.parametrize(("rows", "count", "total"), [(1, 1, 30), (5, 5, 150)])
def test_worked_examples_10_and_11(rows, count, total):
    event = visits(unit=tc.Unit.row())
    patient = visits(limits={"rows": rows})
    for data, factor in ((event, 1), (patient, rows)):
        plan = data.agg(n=tc.count(), s=tc.sum("length_of_stay")).plan(epsilon=1)
        by = {m["statistic"]: m for m in plan.mechanisms}
        assert by["rows"]["sensitivity"] == factor
        assert by["sum"]["sensitivity"] * Fraction(by["sum"]["step"]) == 30 * factor
    assert (count, total) == (rows, 30 * rows)


def test_worked_examples_16_to_18():
    data = visits(unit=tc.Unit.row())
    scales = {}
    for epsilon in (0.4, 0.8):
        [count] = data.agg(n=tc.count()).plan(epsilon=epsilon).mechanisms
        scales[epsilon] = Fraction(count["scale"])
        law = tc.mechanisms.Laplace(epsilon=epsilon, sensitivity=count["sensitivity"])
        assert scales[epsilon] == law.scale == Fraction(1) / Fraction(str(epsilon))
        assert law.textbook.mean_absolute_error == law.scale
        assert law.textbook.variance == 2 * law.scale**2
    assert scales[0.8] == Fraction("1.25")
    assert 2 * scales[0.4] ** 2 == 4 * 2 * scales[0.8] ** 2


def test_worked_examples_23_to_26():
    data = visits()
    plans = [data.where(f"age > {a}").agg(n=tc.count()).plan(epsilon=0.2) for a in (10, 20, 30)]
    total = plans[0].cost + plans[1].cost + plans[2].cost
    assert total.epsilon(delta=0) == pytest.approx(0.6)
    others = [
        tc.protect(pa.table({"pid": [1]}), name=f"h{i}", unit="pid", budget=HUGE, ledger=tc.Ledger.memory())
        for i in range(10)
    ]
    ten = tc.consortium(others, disjoint=True).ask(lambda d: d.agg(n=tc.count())).plan(epsilon=0.3)
    assert ten.cost.epsilon(delta=0) == pytest.approx(0.3)
    assert plans[0].cost.group(5).epsilon(delta=0) == pytest.approx(1.0)
    overlapping = tc.consortium(others[:5]).ask(lambda d: d.agg(n=tc.count())).plan(epsilon=0.5)
    assert overlapping.cost.epsilon(delta=0) == pytest.approx(0.5)
    assert overlapping._members[0].cost.epsilon(delta=0) == pytest.approx(0.1)


def test_worked_examples_27_and_28():
    data = visits()
    assert data.agg(n=tc.count()).plan(epsilon=1).cost.sampled(0.05).epsilon(delta=0) == pytest.approx(
        0.0824, abs=5e-5
    )
    plain = data.sql("SELECT COUNT(*) AS n, SUM(length_of_stay) AS s FROM visits").plan(epsilon=1)
    tidy = data.sql(
        "SELECT SUM(length_of_stay) / COUNT(*) AS m FROM visits HAVING COUNT(*) > 0 ORDER BY 1 LIMIT 1"
    ).plan(epsilon=1)
    assert tidy.cost == plain.cost
    assert sorted(map(str, tidy.mechanisms)) == sorted(map(str, plain.mechanisms))
