"""The worked examples of a whole year in one budget: daily positive tests, monthly blood pressure."""

import time
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit as tc


@pytest.mark.parametrize("days", [30, pytest.param(365, marks=pytest.mark.long)])
def test_daily_positive_tests_for_a_year_cost_what_one_day_costs(days):
    tests = tc.stream(
        None, name="tests", level="event", start="2026-01-01", days=365, budget=tc.Budget(epsilon=0.8),
        types={"positive": "number"},
    )  # fmt: skip
    plan = tests.daily(positive=tc.count(), where="positive = 1").plan(epsilon=0.8)
    assert plan.cost.epsilon(delta=0) == pytest.approx(0.8)
    assert plan.mechanisms[0]["noise"]["scale"] == "5/4"  # b = 1 / 0.8
    tests.begin(plan)
    rng = np.random.default_rng(1)
    truth = rng.poisson(20 + 15 * np.sin(np.arange(days) / 40)).tolist()
    for number, positive in enumerate(truth, 1):
        frame = pd.DataFrame({"positive": [1] * positive + [0] * 10})
        tests.append(tests.horizon.name(number), frame)
        if number in {20, 50, 200, days}:  # the days since the last release come together
            year = tests.release(tests.horizon.name(number))
    assert tests.remaining.epsilon == 0
    errors = np.array(year.daily["positive"].value) - truth
    room = 7 * 1.3 / days**0.5  # of the mean; an absolute error has a standard deviation of 1.3
    assert np.abs(errors).mean() == pytest.approx(1.12, abs=max(room, 0.35))  # 1.25 if continuous
    low, high = (np.array(getattr(year.totals["positive"], end)) for end in ("low", "high"))
    assert low[-1] - 40 <= sum(truth) <= high[-1] + 40


@pytest.mark.parametrize("most", [2, 5])
def test_at_patient_level_the_same_noise_costs_as_many_times_as_days(most):
    facts = {"start": "2026-01-01", "days": 365, "budget": tc.Budget(epsilon=10)}
    event = tc.stream(None, name="event", level="event", **facts)
    person = tc.stream(
        None, name="person", level="person", unit="pid", most_days=most, limits={"rows": 1}, **facts
    )
    one = event.daily(n=tc.count(), focus="day").plan(epsilon=Fraction(4, 5))
    many = person.daily(n=tc.count(), focus="day").plan(epsilon=most * Fraction(4, 5))
    assert one.mechanisms[0]["noise"]["scale"] == many.mechanisms[0]["noise"]["scale"] == "5/4"
    assert many.cost.epsilon(delta=0) == pytest.approx(most * one.cost.epsilon(delta=0))


def test_monthly_blood_pressure_for_a_year_in_one_budget():
    pressure = tc.stream(
        None, name="pressure", level="person-day", unit="pid", start="2026-01-01", days=12,
        bounds={"systolic": (80, 200)}, limits={"rows": 1}, budget=tc.Budget(epsilon=0.5, delta=1e-6),
    )  # fmt: skip
    plan = pressure.daily(systolic=tc.mean("systolic")).plan(epsilon=0.5, delta=1e-6, size=5000)
    assert plan.forecast[0].error < 0.3  # of a mean of 5,000 patients
    pressure.begin(plan)
    rng = np.random.default_rng(2)
    truth = []
    for month in range(1, 13):
        patients = pd.DataFrame({"pid": range(5000), "systolic": rng.normal(120 + month, 15, 5000)})
        truth.append(patients["systolic"].clip(80, 200).mean())
        pressure.append(pressure.horizon.name(month), patients)
        year = pressure.release(pressure.horizon.name(month))
    assert year.daily["systolic"].value == pytest.approx(truth, abs=1)
    assert year["systolic_so_far"].value[0] == pytest.approx(np.mean(truth), abs=0.3)
    assert plan.cost.epsilon(delta=1e-6) <= 0.5


@pytest.mark.long
def test_a_year_with_a_million_rows_is_quick(tmp_path):
    """CPU time, because machines that run tests are busy; the bound on the clock is 2 minutes."""
    rng = np.random.default_rng(3)
    flu = tc.stream(
        tmp_path / "flu", name="flu", level="person-day", unit="pid", start="2026-01-01", days=365,
        keys={"region": ["a", "b"]}, limits={"rows": 1}, budget=tc.Budget(rho=1),
        ledger=tmp_path / "flu.ledger",
    )  # fmt: skip
    flu.begin(flu.daily(cases=tc.count(), by="region").plan(rho=1))
    began = time.process_time()
    for number in range(1, 366):
        day = flu.horizon.name(number)
        frame = pd.DataFrame({"pid": np.arange(2740), "region": rng.choice(["a", "b"], 2740)})
        flu.append(day, frame)
        series = flu.release(day)
    assert series["cases_so_far"].value[0] + series["cases_so_far"].value[1] == pytest.approx(
        2740 * 365, abs=99
    )
    assert time.process_time() - began < 120
    flu._ledger.close()
