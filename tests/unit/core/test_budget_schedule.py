"""A year's plan for a budget: what fits is what a ledger admits, and the advice is enough."""

from __future__ import annotations

import numpy as np
import pytest

import tacit as tc
from support.asking import visits
from tacit import TacitError
from tacit.core import AskedReport

BUDGETS = [tc.Budget(epsilon=4), tc.Budget(epsilon=4, delta=1e-6), tc.Budget(rho=0.4)]


@pytest.fixture(scope="module")
def data():
    return visits()


def year(data, **changes):
    return [
        {"name": "monthly", "question": data.agg(n=tc.count()), "within": 150, "times": 12},
        {"name": "quarterly", "question": data.agg(m=tc.mean("length_of_stay")), "within": 1, "times": 4,
         "size": 10_000},
        {"name": "yearly", "question": data.group_by("hospital").agg(n=tc.count()), "epsilon": 0.5,
         **changes},
    ]  # fmt: skip


def charge_all(schedule, budget, order):
    """Charge a ledger with everything that a schedule says fits; return how often it admitted a charge."""
    charges = [line.plan.cost for line in schedule.lines for _ in range(line.fitting)]
    with tc.Ledger.memory() as ledger:
        ledger.create_account("d", unit="patient_id", budget=budget)
        for place in order.permutation(len(charges)):
            ledger.charge("d", charges[place])  # raises if it does not fit
        for line in schedule.lines:
            if not line.fits:
                with pytest.raises(TacitError, match="does not fit"):
                    ledger.charge("d", line.plan.cost)
    return len(charges)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_what_fits_is_what_a_ledger_admits_in_any_order(data, budget):
    order = np.random.default_rng(3)
    small = tc.budget_plan(year(data), budget)
    assert small.fits
    assert charge_all(small, budget, order) == 17
    large = tc.budget_plan(year(data, times=30), budget)
    assert not large.fits
    assert 16 < charge_all(large, budget, order) < 46


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_each_remedy_is_enough_by_itself(data, budget):
    reports = year(data, times=30)
    schedule = tc.budget_plan(reports, budget)
    remedy = schedule.remedy
    assert remedy.report == "yearly"
    kind = "rho" if budget.rho is not None else "epsilon"
    larger = tc.Budget(**{kind: remedy.budget}, delta=budget.delta)
    assert tc.budget_plan(reports, larger).fits
    a_little_less = tc.Budget(**{kind: remedy.budget * 99 / 100}, delta=budget.delta)
    assert not tc.budget_plan(reports, a_little_less).fits
    softer = [*reports[:2], {**reports[2], "epsilon": None, **remedy.plan.promised}]
    assert tc.budget_plan(softer, budget).fits
    assert tc.budget_plan(year(data, times=remedy.times), budget).fits
    assert not tc.budget_plan(year(data, times=remedy.times + 1), budget).fits


def test_the_advice_says_what_does_not_fit_and_what_it_would_take(data):
    schedule = tc.budget_plan(year(data, times=3), tc.Budget(epsilon=3))
    said = " ".join(schedule.advice)
    assert "None of the 3 releases of yearly fits." in said
    assert "A budget of epsilon 4.249 pays for everything." in said
    assert "in yearly, which then costs epsilon 0.0" in said
    assert "leave out yearly" in said
    page = repr(schedule)
    assert "0 of 3" in page
    assert "2.749 of 3" in page
    assert all(sentence in page.replace("\n", " ") for sentence in schedule.advice)
    assert "yearly" in schedule._repr_html_()
    assert tc.budget_plan(year(data), tc.Budget(epsilon=9)).advice == ()


def test_tolerances_are_kept(data):
    for budget in BUDGETS:
        plans = tc.budget_plan(year(data), budget).plans
        assert plans["monthly"].forecast[0].error <= 150
        assert plans["quarterly"].forecast[0].error <= 1


def test_gaussian_noise_is_chosen_where_it_makes_more_fit(data):
    reports = [{"name": "daily", "question": data.agg(n=tc.count()), "within": 300, "times": 130}]
    schedule = tc.budget_plan(reports, tc.Budget(epsilon=4, delta=1e-6))
    assert schedule.fits
    assert "rho" in schedule.plans["daily"].promised
    assert not tc.budget_plan(reports, tc.Budget(epsilon=4)).fits


def test_a_dataset_counts_what_was_spent_before():
    data = visits(budget=tc.Budget(epsilon=4))
    data.agg(n=tc.count()).plan(epsilon=1).release()
    schedule = tc.budget_plan(year(data), data)
    assert not schedule.fits
    assert str(data.remaining) == "epsilon 3 of 4"  # nothing was charged
    assert tc.budget_plan(year(data), tc.Budget(epsilon=4)).fits


def test_more_important_reports_are_paid_first(data):
    reports = year(data)
    reports[2]["priority"] = -1
    schedule = tc.budget_plan(reports, tc.Budget(epsilon=1))
    assert [line.asked.name for line in schedule.lines] == ["yearly", "monthly", "quarterly"]
    assert [line.fitting for line in schedule.lines] == [1, 2, 1]
    assert list(schedule.to_pandas()["fits"]) == [True, False, False]


def test_a_single_first_charge_may_take_the_whole_budget(data):
    whole = tc.Budget(epsilon=1, delta=1e-6)
    question = data.group_by("icd").agg(n=tc.count())
    report = {"name": "once", "question": question, "epsilon": 1, "delta": 1e-6}
    assert tc.budget_plan([report], whole).fits
    assert not tc.budget_plan([{**report, "times": 2}], whole).fits
    assert tc.budget_plan([{**report, "times": 2}], whole).remedy.budget is None
    with tc.Ledger.memory() as ledger:
        ledger.create_account("d", unit="patient_id", budget=whole)
        ledger.charge("d", question.plan(epsilon=1, delta=1e-6).cost)


def test_a_function_can_be_a_question(data):
    made = tc.budget_plan(
        [{"question": lambda **total: data.agg(n=tc.count()).plan(**total), "within": 150}],
        tc.Budget(epsilon=1),
    )
    assert made.lines[0].asked.name == "report 1"
    assert 0.199 < made.plans["report 1"].promised["epsilon"] < 0.2


def test_the_picture_shows_the_budget_and_what_is_left(data):
    picture = tc.budget_plan(year(data, times=3), tc.Budget(epsilon=3)).plot()
    labels = [text.get_text() for text in picture.axes[0].get_legend().get_texts()]
    assert set(labels) == {"paid", "does not fit", "budget: epsilon 3", "left afterwards"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epsilon": 1}, "exactly one of"),
        ({"within": None}, "exactly one of"),
        ({"within": -1}, "within of"),
        ({"times": 0}, "times of"),
        ({"times": 1.5}, "times of"),
        ({"times": 10**6}, "at most 1,000"),
        ({"question": 3}, "the question of"),
        ({"tolerance": 3}, "no field 'tolerance'"),
        ({"confidence": 1}, "below 1"),
    ],
)
def test_bad_reports_are_refused_with_a_way_out(data, change, words):
    report = {"name": "r", "question": data.agg(n=tc.count()), "within": 100, **change}
    with pytest.raises(TacitError) as caught:
        tc.budget_plan([report], tc.Budget(epsilon=1))
    assert words in f"{caught.value.what} {caught.value.why}"
    assert str(caught.value.fix)


@pytest.mark.parametrize("given", [[], "reports", {"name": "x"}, [3], None])
def test_what_is_no_list_of_reports_is_refused(given):
    with pytest.raises(TacitError):
        tc.budget_plan(given, tc.Budget(epsilon=1))


def test_names_and_budgets_are_checked(data):
    report = {"name": "r", "question": data.agg(n=tc.count()), "epsilon": 1}
    with pytest.raises(TacitError, match="different for each report"):
        tc.budget_plan([report, report], tc.Budget(epsilon=1))
    with pytest.raises(TacitError, match="a Budget or a dataset"):
        tc.budget_plan([report], 3)
    assert AskedReport.read(report, 1).times == 1


def below_an_office(left):
    """A dataset whose account is below another one, which pays as well."""
    ledger = tc.Ledger.memory()
    ledger.create_account("office", unit="patient_id", adjacency="add/remove", budget=tc.Budget(epsilon=left))
    return visits(name="below", budget=tc.Budget(epsilon=3), ledger=ledger, parent="office"), ledger


@pytest.mark.parametrize(("left", "fitting"), [(1, 2), (3, 4), (0.25, 0)])
def test_accounts_above_the_dataset_must_have_room_too(left, fitting):
    data, ledger = below_an_office(left)
    asked = {"name": "monthly", "question": data.agg(n=tc.count()), "epsilon": 0.5, "times": 4}
    schedule = tc.budget_plan([asked], data)
    assert schedule.lines[0].fitting == fitting
    assert schedule.fits == (fitting == 4)
    for _ in range(fitting):
        ledger.charge("below", schedule.lines[0].plan.cost)  # raises if it does not fit
    if not schedule.fits:
        with pytest.raises(TacitError, match="does not fit"):
            ledger.charge("below", schedule.lines[0].plan.cost)
        assert schedule.needs == 2
        assert schedule.budget == tc.Budget(epsilon=left)
        assert "A budget of epsilon 2 pays for everything." in schedule.advice


def test_no_larger_budget_is_advised_where_two_accounts_have_too_little():
    data, _ = below_an_office(1)
    asked = {"name": "monthly", "question": data.agg(n=tc.count()), "epsilon": 0.5, "times": 8}
    schedule = tc.budget_plan([asked], data)
    assert schedule.lines[0].fitting == 2
    assert schedule.needs is None
    assert any("another account" in line for line in schedule.advice)
    softer = schedule.remedy.plan
    assert tc.budget_plan([{**asked, "epsilon": softer.promised["epsilon"]}], data).fits


def test_a_report_about_other_data_is_refused(data):
    other = visits(name="other")
    asked = {"name": "far", "question": other.agg(n=tc.count()), "epsilon": 1}
    with pytest.raises(TacitError, match="does not ask") as caught:
        tc.budget_plan([asked], data)
    assert caught.value.code == "not-allowed"
    assert tc.budget_plan([asked], other).fits
