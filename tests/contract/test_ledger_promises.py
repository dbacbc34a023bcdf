"""What every ledger promises about accounts that add up promised pairs, on every store."""

import json
import shutil
from fractions import Fraction

import pytest

from support.ledger_sites import refused
from tacit.accounting import Budget, Cost, Filter
from tacit.ledger import Blocks, Ledger

#: Gaussian noise that keeps (0.5, 1e-7), and the promise.
NOISE = Cost.gaussian(sigma=8.9957, sensitivity=1)
PROMISE = Budget(epsilon=0.5, delta=1e-7)
HALF = Fraction(1, 2)
BOTH = Budget(epsilon=1, delta=1e-6)


@pytest.fixture
def ledger(everywhere):
    return everywhere.open()


def visits(ledger, budget=BOTH, **facts):
    return ledger.create_account("visits", unit="patient_id", budget=budget, **facts)


def promised(ledger, name="visits"):
    return ledger.account(name).filter.promised


@pytest.mark.parametrize(
    ("budget", "promise", "sigma", "words"),
    [
        ((1, 1e-6), (0.5, 1e-7), 8.9957, "0.5; or 2 more"),
        ((3, 1e-6), (1, 1e-7), 4.6787, "2; or 6 more"),
        ((8, 1e-5), (1, 1e-6), 4.2247, "7; or 38 more"),
        ((1, 1e-6), (0.1, 1e-8), 45.9374, "0.9; or 89 more"),
    ],
)
def test_what_is_left_after_one_gaussian_answer(ledger, budget, promise, sigma, words):
    visits(ledger, Budget(*budget))
    cost, promise_ = Cost.gaussian(sigma=sigma, sensitivity=1), Budget(*promise)
    ledger.charge("visits", cost, promise=promise_)
    left = ledger.left("visits", cost, promise=promise_)
    assert str(left) == f"one more question of up to epsilon {words} like this one"
    assert ledger.remaining("visits") == left.remaining
    for _ in range(left.more):
        ledger.charge("visits", cost, promise=promise_)
    with refused("budget-exceeded"):
        ledger.charge("visits", cost, promise=promise_)
    assert ledger.verify().ok


def test_the_one_larger_question_is_admitted_and_nothing_after_it(ledger):
    visits(ledger)
    ledger.charge("visits", NOISE, promise=PROMISE)
    ledger.charge("visits", Cost.pure(HALF))
    assert promised(ledger) == (1, Fraction(1, 10**7))
    assert str(ledger.remaining("visits")) == "nothing of epsilon 1"
    with refused("budget-exceeded"):
        ledger.charge("visits", Cost.pure(1e-6))
    assert ledger.verify().ok


def test_a_charge_in_rho_ends_the_promises_of_an_account(ledger):
    visits(ledger)
    ledger.charge("visits", Cost.zcdp(0.001))
    assert promised(ledger)[0] is None
    ledger.charge("visits", NOISE, promise=PROMISE)
    assert ledger.remaining("visits").epsilon < HALF
    assert ledger.verify().ok


def test_a_promise_that_the_cost_does_not_keep_is_refused_and_charges_nothing(ledger):
    visits(ledger)
    before = ledger.head
    for promise in (Budget(0.4, 1e-7), Budget(0.5, 1e-9), Budget(0.5)):
        with refused("bad-parameter"):
            ledger.charge("visits", NOISE, promise=promise)
    for odd in (0.5, "0.5", {"epsilon": 0.5}, (0.5, 1e-7)):
        with refused("bad-parameter"):
            ledger.charge("visits", NOISE, promise=odd)
    assert ledger.head == before


def test_every_account_above_decides_by_its_own_sums(ledger):
    visits(ledger)
    ledger.create_account("ward", parent="visits", budget=Budget(3, 1e-6))
    ledger.create_account("ana", parent="ward", budget=Budget(rho=0.1, delta=1e-6))
    ledger.charge("ana", NOISE, promise=PROMISE)
    assert promised(ledger) == promised(ledger, "ward") == (HALF, Fraction(1, 10**7))
    assert promised(ledger, "ana") is None
    left = ledger.left("ward", NOISE, promise=PROMISE)
    assert (left.remaining.epsilon, left.more) == (HALF, 2)  # the dataset above has less
    ledger.charge("visits", Cost.zcdp(0.001))  # ends the promises of the dataset alone
    assert promised(ledger, "ward")[0] == HALF
    assert ledger.left("ward").remaining.epsilon < HALF
    with refused("budget-exceeded"):
        ledger.charge("ward", Cost.pure(HALF))
    assert ledger.verify().ok


def test_promises_add_up_for_each_block_by_itself(ledger):
    ledger.create_account("visits", unit="row", budget=BOTH, blocks=Blocks("day", per_unit=2))
    for day in ("monday", "tuesday"):
        ledger.charge("visits", NOISE, blocks=[day], promise=PROMISE)
    assert promised(ledger) == (1, Fraction(2, 10**7))  # one unit may be in both
    assert ledger.remaining("visits", block="sunday").epsilon == HALF
    ledger.charge("visits", Cost.pure(HALF), blocks=["sunday"])
    for day in ("monday", "tuesday", "sunday"):
        left = ledger.left("visits", NOISE, promise=PROMISE, block=day)
        assert left.remaining.epsilon < HALF  # a unit may be in this block and in the fullest other one
    assert ledger.left("visits", NOISE, promise=PROMISE, block="monday").more == 0
    with refused("budget-exceeded"):
        ledger.charge("visits", NOISE, blocks=["monday"], promise=PROMISE)
    assert ledger.verify().ok


def test_draws_runs_and_views_pay_the_promise_of_the_plan(ledger):
    visits(ledger)
    ledger.create_account("ana", parent="visits", budget=BOTH)
    ledger.create_account("bob", parent="visits", budget=BOTH)
    ledger.draw("ana", NOISE, plan="p1", compute=lambda _: b"about 40", promise=PROMISE)
    ledger.draw("bob", Cost.pure(0.01), plan="p1", compute=lambda _: b"41")  # pays what the draw cost
    assert (
        promised(ledger, "bob") == promised(ledger, "ana") == promised(ledger) == (HALF, Fraction(1, 10**7))
    )
    for name in ("ana", "bob"):
        run = ledger.run(name, NOISE, plan="daily", instalments=3, promise=PROMISE)
    assert run.next == 1
    assert promised(ledger, "bob") == promised(ledger, "ana") == promised(ledger) == (1, Fraction(2, 10**7))
    promises = [entry.spend.promise for entry in ledger.history() if entry.kind in {"draw", "view", "run"}]
    assert promises == [PROMISE] * 4
    assert ledger.verify().ok


def test_a_key_belongs_to_one_promise(ledger):
    visits(ledger)
    first = ledger.charge("visits", NOISE, key="k", promise=PROMISE)
    assert ledger.charge("visits", NOISE, key="k", promise=PROMISE) == first
    with refused("key-reused"):
        ledger.charge("visits", NOISE, key="k", promise=Budget(0.6, 1e-7))


def test_the_log_and_the_export_show_the_promise_of_each_charge(ledger):
    visits(ledger)
    ledger.charge("visits", NOISE, promise=PROMISE)
    ledger.charge("visits", Cost.pure(0.1), promise=Budget(0.1))
    exported = [json.loads(line)["spend"] for line in ledger.export()]
    assert exported[1]["promise"] == ["1/2", "1/10000000"]
    assert "promise" not in exported[2]  # the cost says as much by itself


def test_a_frozen_account_refuses_a_promise_that_would_fit(ledger):
    visits(ledger)
    ledger.freeze("visits", statement="consent is being checked", who="curator")
    with refused("account-frozen"):
        ledger.charge("visits", NOISE, promise=PROMISE)
    assert promised(ledger) == (0, 0)


def test_growth_keeps_promises_and_refresh_starts_them_again(ledger):
    visits(ledger)
    ledger.charge("visits", NOISE, promise=PROMISE)
    ledger.grow("visits", Budget(epsilon=2, delta=1e-6), statement="more", who="curator")
    assert ledger.remaining("visits").epsilon == Fraction(3, 2)
    ledger.refresh("visits", statement="other people", who="curator")
    assert ledger.account("visits").filter.members[0].remaining.epsilon == 2
    assert promised(ledger) == (0, 0)
    assert ledger.verify().ok


def test_lost_entries_count_as_promised_and_growth_gives_the_difference(tmp_path):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        visits(ledger)
    shutil.copy(tmp_path / "a.ledger", tmp_path / "backup")
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.charge("visits", NOISE, promise=PROMISE)
    for leftover in tmp_path.glob("a.ledger-*"):
        leftover.unlink()
    shutil.copy(tmp_path / "backup", tmp_path / "a.ledger")
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        ledger.continue_from_backup(statement="disk broke", who="curator", opened=[])
        assert str(ledger.remaining("visits")) == "nothing of epsilon 1"
        with refused("budget-exceeded"):
            ledger.charge("visits", NOISE, promise=PROMISE)
        ledger.grow("visits", Budget(epsilon=1.5, delta=2e-6), statement="more", who="curator")
        left = ledger.left("visits", NOISE, promise=PROMISE)
        assert (left.remaining.epsilon, left.more) == (HALF, 1)
        ledger.charge("visits", NOISE, promise=PROMISE)
        with refused("budget-exceeded"):
            ledger.charge("visits", Cost.pure(1e-6))
        assert ledger.verify().ok


# `verify` works out the two sums again


def test_verify_finds_a_program_that_forgets_the_promised_delta(ledger, monkeypatch):
    visits(ledger)
    with monkeypatch.context() as twin:
        twin.setattr(Filter, "_promised_with", lambda _, old, spend: (old[0] + spend.promised[0], old[1]))
        for _ in range(2):
            ledger.charge("visits", NOISE, promise=PROMISE)
    assert promised(ledger) == (1, 0)
    report = ledger.verify()
    assert not report.ok
    assert any("visits" in problem for problem in report.problems)


def test_verify_finds_a_program_that_admits_too_many_promises(ledger, monkeypatch):
    visits(ledger)
    with monkeypatch.context() as twin:
        twin.setattr(Filter, "within", property(lambda _: True))
        for _ in range(9):
            ledger.charge("visits", NOISE, promise=PROMISE)
    assert promised(ledger)[0] == Fraction(9, 2)
    assert not ledger.verify().ok


def test_verify_finds_a_recorded_promise_that_the_cost_does_not_keep(ledger, monkeypatch):
    visits(ledger)
    from tacit.ledger import _ledger

    read = _ledger.read_charge

    def dishonest(*args, **more):
        from dataclasses import replace

        from tacit.accounting import Spend
        from tacit.ledger.checks._chain import spend_to_text

        request = read(*args, **{**more, "promise": None})
        spend = request.spend
        low = Spend(spend.epsilon, spend.delta, spend.rho, spend.curve, Budget(0.1, 1e-7))
        return replace(request, spend=low, spend_text=spend_to_text(low))

    monkeypatch.setattr(_ledger, "read_charge", dishonest)
    ledger.charge("visits", NOISE)
    assert any("does not keep" in problem for problem in ledger.verify().problems)


def test_equal_sums_in_memory_and_after_opening_again(tmp_path):
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        visits(ledger)
        ledger.charge("visits", NOISE, promise=PROMISE)
        state = ledger.account("visits").filter
    with Ledger.open(tmp_path / "a.ledger") as ledger:
        assert ledger.account("visits").filter == state
        assert state.version == 3
