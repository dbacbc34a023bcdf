"""What is left, in the same words for datasets, plans, ledgers and refusals."""

import pytest

import tacit as tc
from tacit.core import AnswerTable, Cells, Dataset, Plan, RunTask, Step, open_account, read_identity
from tacit.errors import TacitError

AFTER_ONE = "one more question of up to epsilon 0.5; or 3 more like this one"


def gaussian_plan(data, number=1, **promised):
    """Return a plan of one count with Gaussian noise that keeps (0.5, 1e-7)."""
    noise = tc.mechanisms.DiscreteGaussian(sigma=10, sensitivity=1)
    task = RunTask(
        document=f"count {number}", instalments=1, open=lambda _: 40,
        steps_of=lambda _: (Step(noise, lambda people, _: people),),
        reading=lambda which, noisy, _: AnswerTable(
            {}, {"n": Cells(tuple(noisy[which]), (None,), (None,))}, 0.95
        ),
    )  # fmt: skip
    exact = {name: tc.accounting.Spend(rho=value).rho for name, value in promised.items()}
    return Plan.of(data, task, promised=exact)


@pytest.fixture
def data():
    ledger, identity = tc.Ledger.memory(), read_identity(name="visits", unit="patient_id")
    open_account(identity, tc.Budget(epsilon=1, delta=1e-6), ledger)
    return Dataset(identity, ledger)


def test_dataset_plan_and_ledger_say_the_same(data):
    ledger = data._ledger
    plan = gaussian_plan(data, epsilon=0.5, delta=1e-7)
    assert plan.promise == tc.Budget(epsilon=0.5, delta=1e-7)
    assert f"left afterwards: {AFTER_ONE}" in repr(plan)
    assert str(data.left(plan)) == "one more question of up to epsilon 1; or 4 more like this one"
    plan.run().next()
    assert str(data.left(plan)) == str(ledger.left("visits", plan.cost, promise=plan.promise)) == AFTER_ONE
    assert str(data.left()) == str(data.remaining) == "one more question of up to epsilon 0.5"
    assert ledger.account("visits").filter.left(plan.cost, plan.promise).more == data.left(plan).more == 3


def test_the_plans_that_are_left_are_admitted_and_no_more(data):
    first = gaussian_plan(data, epsilon=0.5, delta=1e-7)
    first.run().next()
    more = data.left(first).more
    for number in range(more):
        gaussian_plan(data, number + 2, epsilon=0.5, delta=1e-7).run().next()
    with pytest.raises(TacitError) as refusal:
        gaussian_plan(data, more + 2, epsilon=0.5, delta=1e-7).run()
    assert refusal.value.code == "budget-exceeded"
    assert "promises epsilon 0.5, delta 1e-07" in refusal.value.what


def test_a_refused_plan_is_told_the_largest_promise_that_fits(data):
    gaussian_plan(data, epsilon=0.5, delta=1e-7).run().next()
    noise = tc.Cost.gaussian(sigma=4, sensitivity=1)
    promise = tc.Budget(epsilon=noise.epsilon(delta=1e-7), delta=1e-7)
    with pytest.raises(TacitError) as refusal:
        data._ledger.charge("visits", noise, promise=promise)
    assert "one more question of up to epsilon 0.5" in refusal.value.what
    assert refusal.value.facts["promise"] == 0.5


def test_a_plan_in_rho_has_no_promise_and_ends_the_sum_of_promises(data):
    plan = gaussian_plan(data, rho=1 / 200)
    assert plan.promise is None
    plan.run().next()
    assert data._ledger.account("visits").filter.promised[0] is None
    assert float(data.remaining.epsilon) < 0.45


def test_a_promise_that_the_cost_does_not_keep_is_not_added_up(data):
    plan = gaussian_plan(data, epsilon=0.4, delta=1e-7)
    assert plan.promise is None
    plan.run().next()
    assert data._ledger.account("visits").filter.promised[0] is None


def test_pure_budgets_count_in_the_same_words():
    visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=3))
    plan = visits.agg(n=tc.count()).plan(epsilon=0.5)
    assert str(visits.left(plan)) == "one more question of up to epsilon 3; or 6 more like this one"
    assert str(visits.left()) == str(visits.remaining) == "epsilon 3 of 3"


def test_a_plan_whose_answer_is_stored_says_that_it_is_free_and_reads_no_data(monkeypatch):
    frame = tc.tables.example_visits()
    visits = tc.protect(
        frame, unit="patient_id", budget=tc.Budget(epsilon=1), ledger=tc.Ledger.memory(), name="v"
    )
    question = visits.agg(n=tc.count())
    plan = question.plan(epsilon=1)
    assert "left afterwards: nothing of epsilon 1" in " ".join(repr(plan).split())
    plan.release()
    before = visits.remaining
    monkeypatch.setattr(type(visits._engine), "transaction", lambda *_: pytest.fail("the data was read"))
    for told in (repr(plan), plan._repr_html_()):
        told = " ".join(told.split())
        assert "already answered: the same question again is free; left: nothing of epsilon 1" in told
        assert "not enough" not in told
    other = " ".join(repr(question.plan(epsilon=0.5)).split())
    assert "left afterwards: not enough for this question" in other
    assert "already answered" not in other
    assert visits.remaining == before


def test_an_answer_of_an_earlier_version_of_the_data_is_not_free(tmp_path):
    facts = {"unit": "patient_id", "name": "v", "ledger": str(tmp_path / "l"), "budget": tc.Budget(epsilon=3)}
    frame = tc.tables.example_visits()
    tc.protect(frame, version=1, **facts).agg(n=tc.count()).plan(epsilon=1).release()
    newer = tc.protect(frame, version=2, **facts).agg(n=tc.count()).plan(epsilon=1)
    assert "left afterwards: one more question of up to epsilon 1" in " ".join(repr(newer).split())
