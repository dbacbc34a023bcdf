"""What every ledger promises, on every store: one suite, three stores."""

import json
import sqlite3
import threading
import time
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from functools import partial

import numpy as np
import psycopg
import pytest

from support.ledger_sites import lineage, refused, spent, visits
from tacit.accounting import Budget, Cost, Filter, Spend, _laws
from tacit.errors import TacitError
from tacit.ledger import Head, Ledger
from tacit.ledger._arguments import read_charge
from tacit.ledger.accounts._charges import charge
from tacit.ledger.accounts._decisions import open_account
from tacit.ledger.checks._chain import canonical
from tacit.ledger.checks._replay import cost_text
from tacit.ledger.draws._draws import authorise
from tacit.ledger.stores._postgres import _TAKE_LOCK
from tacit.ledger.stores._writer import Job, _Request

HALF = Cost.pure(0.5)


@pytest.fixture
def ledger(everywhere):
    return everywhere.open()


# charges


def test_a_charge_takes_exactly_its_cost(ledger):
    visits(ledger)
    for _ in range(10):
        ledger.charge("visits", Cost.pure(0.1))
    assert spent(ledger, "visits") == 1
    assert ledger.remaining("visits").epsilon == 0
    with refused("budget-exceeded"):
        ledger.charge("visits", Cost.pure(1e-300))


def test_a_third_fits_three_times_into_one(ledger):
    visits(ledger)
    for _ in range(3):
        ledger.charge("visits", Cost.pure(Fraction(1, 3)))
    with refused("budget-exceeded"):
        ledger.charge("visits", Cost.pure(Fraction(1, 10**30)))


def test_a_refusal_names_the_account_and_what_is_left(ledger):
    lineage(ledger, analyst=0.25)
    with pytest.raises(TacitError) as caught:
        ledger.charge("ana", HALF)
    assert "'ana'" in caught.value.what
    assert "0.25" in caught.value.what
    assert str(caught.value.fix)


@pytest.mark.parametrize("tight", ["visits", "oncology", "ana"])
def test_a_charge_that_any_level_refuses_is_charged_nowhere(ledger, tight):
    lineage(ledger, *(0.25 if name == tight else 5 for name in ("visits", "oncology", "ana")))
    before = ledger.head
    with refused("budget-exceeded"):
        ledger.charge("ana", HALF)
    assert spent(ledger, "visits", "oncology", "ana") == [0, 0, 0]
    assert ledger.head == before


def test_a_charge_is_charged_to_every_level_above_and_none_below(ledger):
    lineage(ledger)
    assert ledger.charge("ana", HALF).charged == ("ana", "oncology", "visits")
    ledger.charge("oncology", HALF)
    assert spent(ledger, "visits", "oncology", "ana") == [1, 1, Fraction(1, 2)]


def test_a_receipt_says_what_was_recorded(ledger):
    visits(ledger)
    receipt = ledger.charge("visits", HALF, plan="p1", who="ana", purpose="report", key="k1")
    assert receipt.id
    assert (receipt.account, receipt.plan, receipt.who, receipt.purpose, receipt.key) == (
        "visits",
        "p1",
        "ana",
        "report",
        "k1",
    )
    entry = ledger.history("visits")[-1]
    assert entry.hash == receipt.head.hash
    assert entry.cost == HALF
    assert entry.spend == receipt.spend
    assert datetime.fromisoformat(entry.at).tzinfo is not None


def test_charges_of_several_kinds_are_taken_as_the_exact_filters_say(ledger):
    budgets = {
        "pure": Budget(epsilon=2),
        "zcdp": Budget(rho=0.3),
        "zcdp-delta": Budget(rho=0.3, delta=1e-6),
        "both": Budget(epsilon=2, delta=1e-6),
    }
    costs = [
        Cost.pure(0.3),
        Cost.pure(0.1),
        Cost.zcdp(0.05),
        Cost.pure(0.7),
        Cost.zcdp(0.001),
        Cost.pure(0.02),
    ] * 4
    for name, budget in budgets.items():
        ledger.create_account(name, unit="patient_id", budget=budget)
        model, admitted, taken = Filter.start(budget), [], []
        for cost in costs:
            admitted.append(model.admits(cost.spend))
            model = model.after(cost.spend) if admitted[-1] else model
            try:
                ledger.charge(name, cost)
                taken.append(True)
            except TacitError as error:
                code = error.code
                assert code == "budget-exceeded"
                taken.append(False)
        assert taken == admitted
        assert True in taken
        assert False in taken
        assert ledger.account(name).filter == model
    assert ledger.verify().ok


HOSTILE = [
    float("nan"),
    -1,
    -0.5,
    float("inf"),
    True,
    False,
    5e-324,
    "1e400",
    "0.5",
    np.int8(1),
    np.float32(0.5),
    0.5,
    1,
    None,
    {},
    [HALF],
    Fraction(1, 2),
    b"\x01",
]


@pytest.mark.parametrize("cost", HOSTILE, ids=repr)
def test_what_is_no_cost_is_refused_and_charges_nothing(ledger, cost):
    visits(ledger)
    before = ledger.head
    with refused("bad-parameter"):
        ledger.charge("visits", cost)
    assert ledger.head == before


class Cheap(Cost):
    """A subclass that records one cost and charges another."""

    @property
    def spend(self):
        return Spend(Fraction(0), Fraction(0), Fraction(0))


class Disguised(Cost):
    """A subclass that changes nothing but what it writes into the log."""

    def to_json(self):
        return Cost.pure(Fraction(1, 10**9)).to_json()


class CheapLaw(_laws.PureLoss):
    """A law that is recorded as one of ours and charges another amount."""

    @property
    def charge(self):
        return Spend(Fraction(0), Fraction(0), Fraction(0))


class LooksLikeOne:
    """Not a Cost, though it has its methods and says that it is one."""

    __class__ = Cost
    parts, adjacency = HALF.parts, HALF.adjacency
    spend = Spend(Fraction(0), Fraction(0), Fraction(0))

    def to_json(self):
        return HALF.to_json()


def bent():
    """Return a genuine Cost into which somebody put another law after its checks."""
    cost = Cost.pure(0.5)
    object.__setattr__(cost, "parts", ((CheapLaw(Fraction(1, 2)), 1),))
    return cost


FORGED = {
    "spends nothing": lambda: Cheap(HALF.parts),
    "records less": lambda: Disguised(HALF.parts),
    "no methods of its own": lambda: type("Same", (Cost,), {})(HALF.parts),
    "only looks like one": LooksLikeOne,
    "a law of its own": bent,
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_forged_cost_is_refused_and_charges_nothing(ledger, forged):
    visits(ledger)
    before = ledger.head
    for act in (
        lambda: ledger.charge("visits", forged()),
        lambda: ledger.draw("visits", forged(), plan="p", compute=lambda _: b"x"),
    ):
        with refused("bad-parameter"):
            act()
    assert ledger.head == before


@pytest.mark.parametrize(
    "epsilon", [float("nan"), -1, float("inf"), True, 5e-324, "1e400", np.int8(1)], ids=repr
)
def test_no_cost_can_be_made_of_a_hostile_number(epsilon):
    with refused("bad-parameter"):
        Cost.pure(epsilon)


def test_an_unknown_account_is_refused(ledger):
    for act in (
        lambda: ledger.charge("nobody", HALF),
        lambda: ledger.remaining("nobody"),
        lambda: ledger.history("nobody"),
        lambda: ledger.grow("nobody", Budget(epsilon=1), statement="s", who="w"),
        lambda: ledger.refresh("nobody", statement="s", who="w"),
        lambda: ledger.draw("nobody", HALF, plan="p", compute=lambda _: b""),
        lambda: ledger.create_account("x", parent="nobody", budget=Budget(epsilon=1)),
    ):
        with refused("unknown-account"):
            act()
    assert ledger.head.count == 0


def test_a_closed_ledger_refuses_everything(ledger):
    visits(ledger)
    ledger.close()
    for act in (
        lambda: ledger.charge("visits", HALF),
        lambda: ledger.remaining("visits"),
        lambda: ledger.entry(1),
        ledger.history,
        lambda: list(ledger.export()),
        ledger.verify,
        lambda: ledger.head,
    ):
        with refused("ledger-closed"):
            act()
    ledger.close()


def test_a_sealed_ledger_refuses_changes_until_it_is_unsealed_on_record(ledger):
    visits(ledger)
    ledger._writer.store.seal("the disk failed")
    with refused("ledger-sealed"):
        ledger.charge("visits", HALF)
    assert "disk failed" in ledger.sealed
    assert spent(ledger, "visits") == 0
    assert ledger.verify().ok
    ledger.unseal(statement="disk replaced", who="operator")
    ledger.charge("visits", HALF)
    kinds = [entry.kind for entry in ledger.history()]
    assert kinds == ["open", "unseal", "charge"]


# limits


def test_one_charge_may_not_exceed_the_cap_for_a_single_charge(ledger):
    visits(ledger, per_charge=Budget(epsilon=0.2))
    ledger.charge("visits", Cost.pure(0.2))
    with refused("charge-too-large"):
        ledger.charge("visits", Cost.pure(0.21))
    assert spent(ledger, "visits") == Fraction(1, 5)


def test_the_cap_of_a_level_above_counts_too(ledger):
    visits(ledger, per_charge=Budget(epsilon=0.2))
    ledger.create_account("ana", parent="visits", budget=Budget(epsilon=1))
    with refused("charge-too-large"):
        ledger.charge("ana", Cost.pure(0.3))


def test_nothing_is_charged_after_the_last_day(ledger):
    now = datetime.now(UTC)
    visits(ledger, expires=now.date())
    ledger.charge("visits", Cost.pure(0.1))
    ledger.create_account("past", unit="u", budget=Budget(epsilon=1), expires=now - timedelta(seconds=1))
    ledger.create_account("old", unit="u", budget=Budget(epsilon=1), expires=date(2020, 1, 1))
    for name in ("past", "old"):
        with refused("account-expired"):
            ledger.charge(name, Cost.pure(0.1))


NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)


def set_clock(monkeypatch, hours):
    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return NOON + timedelta(hours=hours)

    monkeypatch.setattr("tacit.ledger.stores._transaction.datetime", Clock)


@pytest.fixture
def clocked(everywhere, monkeypatch):
    """A ledger whose last entry was recorded two hours after noon, with accounts of a day and an hour."""
    set_clock(monkeypatch, 0)
    ledger = everywhere.open()
    for name, hours in (("day", 24), ("hour", 1), ("forever", None)):
        expires = None if hours is None else NOON + timedelta(hours=hours)
        ledger.create_account(name, unit="u", budget=Budget(epsilon=9), expires=expires)
        ledger.charge(name, HALF)
    set_clock(monkeypatch, 2)
    ledger.charge("forever", HALF)
    return ledger


def test_a_clock_that_went_back_does_not_decide_whether_an_account_has_expired(clocked, monkeypatch):
    set_clock(monkeypatch, 0)
    before = clocked.head
    for name, code, words in (
        ("day", "clock-behind", "the clock shows 2030-06-01T12:00"),
        ("hour", "account-expired", "expired at 2030-06-01T13:00"),
    ):
        with refused(code) as caught:
            clocked.charge(name, HALF)
        assert words in str(caught.value)
    assert clocked.head == before
    set_clock(monkeypatch, 3)
    clocked.charge("day", HALF)


def test_a_clock_that_went_back_is_remembered_by_later_entries(clocked, monkeypatch):
    set_clock(monkeypatch, 0)
    for _ in range(2):
        clocked.charge("forever", HALF)  # needs no clock, and does not hide that it went back
        with refused("clock-behind"):
            clocked.charge("day", HALF)
    assert [entry.at for entry in clocked.history("forever")][-1] == "2030-06-01T12:00:00.000+00:00"
    assert clocked.verify().ok


def test_clocks_that_differ_by_a_moment_still_decide(clocked, monkeypatch):
    set_clock(monkeypatch, 2 - 1 / 3600)
    clocked.charge("day", HALF)
    set_clock(monkeypatch, 2)
    clocked.charge("day", HALF)


def test_another_session_sees_that_the_clock_went_back(durable, monkeypatch):
    set_clock(monkeypatch, 0)
    one, two = durable.open(), durable.open()
    visits(one, Budget(epsilon=9), expires=NOON + timedelta(days=1))
    two.charge("visits", HALF)
    set_clock(monkeypatch, 2)
    one.charge("visits", HALF)
    set_clock(monkeypatch, 1)
    for ledger in (two, durable.open()):
        with refused("clock-behind"):
            ledger.charge("visits", HALF)
    set_clock(monkeypatch, 23)
    two.charge("visits", HALF)


# freezing, and the last day


@pytest.mark.parametrize("level", ["visits", "oncology", "ana"])
def test_a_frozen_account_stops_every_charge_to_it_and_below_it(ledger, level):
    lineage(ledger)
    ledger.draw("ana", HALF, plan="paid", compute=lambda _: b"1")
    ledger.draw("visits", HALF, plan="seen by the dataset", compute=lambda _: b"2")
    waiting = ledger.charge("ana", Cost.pure(0.1), plan="later", key="later")
    before = ledger.account(level)
    frozen = ledger.freeze(level, statement="consent is being checked", who="curator")
    assert frozen.frozen
    assert ledger.account(level) == frozen
    assert frozen.filter == before.filter
    head, draws = ledger.head, Draws()
    for attempt in (
        lambda: ledger.charge("ana", Cost.pure(0.1)),
        lambda: ledger.draw("ana", HALF, plan="new", compute=draws),
        lambda: ledger.draw("ana", HALF, plan="seen by the dataset", compute=draws),
        lambda: ledger.draw("ana", Cost.pure(0.1), plan="later", key="later", compute=draws),
        lambda: ledger.claim(waiting),
        lambda: ledger.store_release(waiting, b"x"),
    ):
        with refused("account-frozen") as caught:
            attempt()
        assert level in caught.value.what
    assert (ledger.head, len(draws.receipts)) == (head, 0)
    assert ledger.draw("ana", HALF, plan="paid", compute=draws).payload == b"1"  # paid for: still readable
    assert ledger.paid_release("ana", "paid").payload == b"1"
    if level != "visits":
        ledger.charge("visits", Cost.pure(0.1))  # the accounts above go on
    assert ledger.verify().ok
    ledger.unfreeze(level, statement="consent is in order", who="curator")
    ledger.draw("ana", Cost.pure(0.1), plan="later", key="later", compute=lambda _: b"3")
    kinds = [entry.kind for entry in ledger.history(level) if "freeze" in entry.kind]
    assert kinds == ["freeze", "unfreeze"]
    assert ledger.history(level)[-1].seq > head.count
    assert ledger.verify().ok


def test_freezing_needs_a_statement_and_an_account(ledger):
    visits(ledger)
    for act in (ledger.freeze, ledger.unfreeze):
        with refused("bad-parameter"):
            act("visits", statement=" ", who="curator")
        with refused("unknown-account"):
            act("nosuch", statement="x", who="curator")


def test_another_session_sees_that_an_account_is_frozen_and_redeclares_it(durable):
    one, two = durable.open(), durable.open()
    visits(one)
    two.charge("visits", Cost.pure(0.1))
    one.freeze("visits", statement="stop", who="curator")
    for ledger in (two, durable.open()):
        assert visits(ledger).frozen
        with refused("account-frozen"):
            ledger.charge("visits", Cost.pure(0.1))
    assert durable.open().verify().ok


def test_a_charge_to_a_frozen_account_is_found_by_verify(ledger, monkeypatch):
    visits(ledger)
    ledger.freeze("visits", statement="stop", who="curator")
    monkeypatch.setattr("tacit.ledger.accounts._charges.check_frozen", lambda *_: None)
    ledger.charge("visits", Cost.pure(0.1))
    assert ledger.verify().problems == ("entry 3 charges a frozen account",)


@pytest.mark.parametrize("level", ["visits", "oncology", "ana"])
def test_after_the_last_day_no_earlier_charge_is_drawn(ledger, level):
    lineage(ledger)
    ledger.draw("ana", HALF, plan="paid", compute=lambda _: b"1")
    waiting = ledger.charge("ana", Cost.pure(0.1), plan="later", key="later")
    run = ledger.run("ana", Cost.pure(0.1), plan="daily", instalments=3)
    run.draw(lambda *_: (b"first", b"secret"))
    past = datetime.now(UTC) - timedelta(seconds=1)
    ledger.set_expiry(level, past, statement="the approval ended", who="curator")
    head, draws = ledger.head, Draws()
    for attempt in (
        lambda: ledger.draw("ana", Cost.pure(0.1), plan="later", key="later", compute=draws),
        lambda: ledger.claim(waiting),
        lambda: ledger.store_release(waiting, b"x"),
        lambda: run.draw(lambda *_: (b"second", b"secret")),
        lambda: ledger.paid_run("ana", "daily").draw(lambda *_: (b"second", b"secret")),
    ):
        with refused("account-expired") as caught:
            attempt()
        assert level in caught.value.what
    assert (ledger.head, len(draws.receipts)) == (head, 0)
    assert ledger.paid_release("ana", "paid").payload == b"1"
    assert ledger.verify().ok
    ledger.set_expiry(level, None, statement="prolonged", who="curator")
    assert run.draw(lambda *_: (b"second", b"secret")).payload == b"second"
    assert (
        ledger.draw("ana", Cost.pure(0.1), plan="later", key="later", compute=lambda _: b"2").payload == b"2"
    )


def test_the_last_day_can_be_changed_on_record_and_holds_below_too(ledger):
    lineage(ledger)
    ledger.draw("visits", HALF, plan="p1", compute=lambda _: b"1")
    past = datetime.now(UTC) - timedelta(seconds=1)
    ended = ledger.set_expiry("visits", past, statement="the approval ended", who="curator")
    assert ended.expires == ledger.account("visits").expires == past
    for attempt in (
        lambda: ledger.charge("ana", Cost.pure(0.1)),
        lambda: ledger.draw("ana", HALF, plan="p1", compute=lambda _: b"2"),
    ):
        with refused("account-expired"):
            attempt()
    assert ledger.draw("visits", HALF, plan="p1", compute=lambda _: b"2").payload == b"1"
    ledger.set_expiry("visits", date(2090, 1, 1), statement="prolonged", who="curator")
    ledger.charge("ana", Cost.pure(0.1))
    ledger.set_expiry("visits", None, statement="without end", who="curator")
    assert ledger.account("visits").expires is None
    ledger.charge("ana", Cost.pure(0.1))
    assert ledger.verify().ok
    latest = datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))
    for wrong in ("2090-01-01", datetime(2090, 1, 1), date.max, latest):
        with refused("bad-parameter"):
            ledger.set_expiry("visits", wrong, statement="x", who="y")


# one budget over several datasets


def hospital(ledger, epsilon=2, **facts):
    return ledger.create_account("hospital", unit="patient_id", budget=Budget(epsilon=epsilon), **facts)


def dataset(ledger, name, epsilon=9, parent="hospital"):
    return ledger.create_account(
        name, unit="patient_id", parent=parent, budget=Budget(epsilon=epsilon), dataset=True
    )


def test_datasets_below_one_account_share_its_budget_and_keep_their_own_releases(ledger):
    hospital(ledger, 1)
    for name in ("visits", "labs"):
        assert dataset(ledger, name).root == ledger.account(name).id
    draws = Draws()
    ledger.draw("visits", HALF, plan="p", compute=draws, dataset="visits")
    ledger.draw("labs", HALF, plan="p", compute=draws, dataset="labs")
    assert len(draws.receipts) == 2  # the same hash, but of two datasets
    assert spent(ledger, "hospital", "visits", "labs") == [1, Fraction(1, 2), Fraction(1, 2)]
    with refused("budget-exceeded") as caught:
        ledger.draw("labs", HALF, plan="q", compute=draws, dataset="labs")
    assert "hospital" in caught.value.what
    assert ledger.draw("visits", HALF, plan="p", compute=draws).payload != b""
    assert len(draws.receipts) == 2
    assert ledger.verify().ok


def test_a_stored_release_is_free_for_the_dataset_and_for_the_accounts_above_it(ledger):
    hospital(ledger)
    dataset(ledger, "visits")
    for name in ("ana", "ben"):
        ledger.create_account(name, parent="visits", budget=Budget(epsilon=1))
    first = ledger.draw("ana", HALF, plan="p", compute=Draws(), dataset="visits")
    assert first.receipt.charged == ("ana", "visits", "hospital")
    again = ledger.draw("ben", HALF, plan="p", compute=Draws(), dataset="visits")
    assert (again.payload, again.receipt.charged) == (first.payload, ("ben",))
    assert spent(ledger, "hospital", "visits", "ana", "ben") == [Fraction(1, 2)] * 4
    assert ledger.paid_release("visits", "p").payload == first.payload
    assert ledger.paid_release("ben", "p").receipt == again.receipt
    assert ledger.stored_release("hospital", "p") is None  # it is the dataset's, not the hospital's
    assert ledger.verify().ok


def test_a_dataset_s_question_is_not_paid_by_an_account_above_it_or_by_another_dataset(ledger):
    hospital(ledger)
    dataset(ledger, "visits")
    dataset(ledger, "labs")
    dataset(ledger, "wards", parent="visits")  # a part of the visits
    ledger.create_account("ana", parent="labs", budget=Budget(epsilon=1))
    head = ledger.head
    for payer in ("hospital", "labs", "ana", "wards"):
        with refused("account-differs"):
            ledger.draw(payer, HALF, plan="p", compute=Draws(), dataset="visits")
    assert ledger.head == head
    assert ledger.draw("wards", HALF, plan="p", compute=Draws(), dataset="wards").receipt.charged == (
        "wards",
        "visits",
        "hospital",
    )


def test_an_account_of_a_project_is_not_taken_for_a_dataset_s(ledger):
    visits(ledger)
    ledger.create_account("ana", parent="visits", budget=Budget(epsilon=9))
    with refused("account-differs") as caught:
        dataset(ledger, "ana", parent="visits")
    assert "belongs to 'visits'" in caught.value.what
    hospital(ledger)
    dataset(ledger, "labs")
    with refused("account-differs"):
        ledger.create_account("labs", unit="patient_id", budget=Budget(epsilon=9), dataset=True)
    ledger.create_account("nurses", unit="nurse_id", budget=Budget(epsilon=1))
    with refused("account-differs"):
        dataset(ledger, "x-rays", parent="nurses")


def test_a_dataset_is_found_again_whatever_its_last_day_is(ledger):
    hospital(ledger)
    dataset(ledger, "visits")
    ledger.set_expiry("visits", date(2090, 1, 1), statement="approval", who="curator")
    assert dataset(ledger, "visits").expires is not None


# certificates and versions


def test_the_digest_of_a_certificate_is_kept_with_every_payment_for_it(ledger):
    lineage(ledger)
    digest = "ab" * 32
    how = {"plan": "p", "compute": lambda _: b"1"}
    drawn = ledger.draw("oncology", HALF, certificate=digest, **how).receipt
    seen = ledger.draw("ana", HALF, certificate="cd" * 32, **how).receipt  # what it asks with is not stored
    again = ledger.draw("oncology", HALF, certificate="cd" * 32, **how).receipt
    assert [one.certificate for one in (drawn, seen, again)] == [digest] * 3
    assert [ledger.certified(one.head.count) for one in (drawn, seen, again)] == [digest] * 3
    plain = ledger.charge("visits", Cost.pure(0.1))
    assert ledger.certified(plain.head.count) is None
    assert ledger.certified(99) is None
    assert ledger.verify().ok


def test_a_charge_that_is_drawn_later_keeps_the_certificate_with_its_claim(ledger):
    lineage(ledger)
    digest = "ab" * 32
    paid = ledger.charge("ana", HALF, plan="p", key="k")
    drawn = ledger.draw("ana", HALF, plan="p", key="k", certificate=digest, compute=lambda _: b"1")
    assert drawn.receipt.head == paid.head
    assert drawn.receipt.certificate == ledger.certified(paid.head.count) == digest
    again = ledger.draw("ana", HALF, plan="p", key="k", certificate="cd" * 32, compute=lambda _: b"2")
    assert (again.payload, again.receipt.certificate) == (b"1", digest)


def test_two_processes_that_draw_one_plan_at_once_each_get_a_certificate_that_agrees(durable):
    one, two = durable.open(), durable.open()
    visits(one, Budget(epsilon=2))

    def slow(_):
        two.draw("visits", HALF, plan="p", certificate="ab" * 32, compute=lambda _: b"first")
        return b"second"

    late = one.draw("visits", HALF, plan="p", certificate="cd" * 32, compute=slow)
    assert (late.payload, late.receipt.certificate) == (b"first", "cd" * 32)
    assert one.certified(late.receipt.head.count) == "cd" * 32
    later = one.draw("visits", HALF, plan="p", certificate="ef" * 32, compute=slow)
    assert later.receipt.certificate == one.certified(later.receipt.head.count) == "ab" * 32


def test_the_version_of_a_draw_is_the_one_that_is_named(ledger):
    visits(ledger, version=2)
    ledger.create_account("ana", parent="visits", budget=Budget(epsilon=1))
    draws = Draws()
    for account in ("visits", "ana", "visits"):
        ledger.draw(account, HALF, plan="p", version=2, compute=draws)
    assert (len(draws.receipts), spent(ledger, "visits", "ana")) == (1, [Fraction(1, 2)] * 2)
    assert {entry.body["version"] for entry in ledger.history() if entry.plan} == {2}


def test_a_release_that_an_older_version_stored_under_the_payer_s_version_is_found(ledger):
    visits(ledger, version=2)
    ledger.create_account("ana", parent="visits", budget=Budget(epsilon=1))
    old = ledger.draw("ana", HALF, plan="p", compute=lambda _: b"old")  # version 1, as "ana" was opened
    for _ in range(2):
        new = ledger.draw("ana", HALF, plan="p", version=2, certificate="ab" * 32, compute=lambda _: b"new")
        assert (new.payload, new.receipt.head) == (b"old", old.receipt.head)


# going on from an older backup


WHY = {"statement": "the disk broke; backup of May", "who": "curator"}


@pytest.fixture
def behind(durable):
    """A ledger that was restored from a backup; afterwards everything had been spent, and more was opened."""
    ledger = durable.open()
    lineage(ledger, dataset=3, project=2, analyst=2)
    ledger.create_account("labs", unit="patient_id", budget=Budget(rho=0.5))
    ledger.create_account("images", unit="patient_id", budget=Budget(epsilon=3, delta=1e-6))
    ledger.draw("ana", HALF, plan="before", compute=lambda _: b"before")
    ledger.charge("images", Cost.gaussian(sigma=30, sensitivity=1))
    durable.backup()
    ledger = durable.open()
    durable.lost = ledger.draw("ana", HALF, plan="after", compute=lambda _: b"after", key="k")
    ledger.charge("visits", Cost.pure(2))
    ledger.charge("images", Cost.gaussian(sigma=2, sensitivity=1))
    ledger.create_account("scans", unit="patient_id", budget=Budget(epsilon=1))
    ledger.charge("scans", Cost.pure(1))
    durable.head = ledger.head
    durable.restore()
    return durable


def nothing_left(ledger, name):
    state = ledger.account(name).filter
    return not state.admits(Spend(Fraction(1, 10**9), 0, Fraction(1, 10**9)))


def test_what_was_lost_after_a_backup_counts_as_spent(behind):
    ledger = behind.open()
    with refused("ledger-rolled-back") as caught:
        ledger.charge("visits", Cost.pure(0.01))
    assert "continue_from_backup" in str(caught.value.fix)
    assert ledger.missing == behind.head
    end = ledger.head
    report = ledger.continue_from_backup(**WHY)
    assert report.ok
    assert ledger.missing is None
    names = [account.name for account in ledger.accounts()]
    assert names == ["visits", "oncology", "ana", "labs", "images"]
    for name in names:
        assert nothing_left(ledger, name), name
        assert "nothing" in str(ledger.remaining(name))
    draws = Draws()
    with refused("budget-exceeded"):
        ledger.draw(
            "ana", HALF, plan="after", compute=draws, key="k"
        )  # its release is lost, and not paid for
    assert not draws.receipts
    assert ledger.draw("ana", HALF, plan="before", compute=draws).payload == b"before"
    gap = ledger.history(after=end.count)[0]
    assert (gap.kind, gap.who, gap.purpose) == ("gap", WHY["who"], WHY["statement"])
    assert gap.body["last"] == {"count": end.count, "hash": end.hash}
    assert gap.body["seen"] == {"count": behind.head.count, "hash": behind.head.hash}
    with refused("bad-parameter"):
        ledger.claim(behind.lost.receipt)
    for again in (ledger, behind.open()):
        assert again.verify().ok
        with refused("bad-parameter"):
            again.continue_from_backup(**WHY)
    told = ledger.verify(witness=behind.lost.receipt).problems
    assert any("was continued from a backup that ended at entry" in problem for problem in told)


def test_after_a_backup_the_curator_grants_more_on_record_and_no_more_than_that(behind):
    ledger = behind.open()
    ledger.continue_from_backup(**WHY)
    ledger.grow("visits", Budget(epsilon=4), **WHY)
    ledger.charge("visits", Cost.pure(1))
    ledger.grow("images", Budget(epsilon=30, delta=1e-5), **WHY)
    with refused("budget-exceeded"):
        ledger.charge("images", Cost.gaussian(sigma=30, sensitivity=1))  # its past has no rho
    ledger.charge("images", Cost.pure(27))
    ledger.grow("labs", Budget(rho=1), **WHY)
    ledger.charge("labs", Cost.zcdp(0.5))
    for name in ("visits", "images", "labs"):
        assert nothing_left(ledger, name)
    ledger.refresh("ana", statement="new people only", who="curator")
    assert ledger.remaining("ana").epsilon == 2
    assert behind.open().verify().ok


def test_what_was_paid_before_a_backup_is_not_drawn_twice(durable):
    ledger = durable.open()
    ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=4))
    for name in ("ana", "bob"):
        ledger.create_account(name, parent="visits", budget=Budget(epsilon=4))
    paid = [ledger.charge("ana", HALF, plan=plan, key=plan) for plan in ("counts", "means", "sums")]
    ledger.run("ana", HALF, plan="daily", instalments=3).draw(lambda *_: (b"first", b"secret"))
    durable.backup()
    ledger = durable.open()
    ledger.draw("ana", HALF, plan="counts", key="counts", compute=lambda _: b"seen")
    ledger.claim(paid[1])
    ledger.run("ana", HALF, plan="daily", instalments=3).draw(lambda *_: (b"seen", b"secret"))
    durable.restore()
    ledger = durable.open()
    ledger.continue_from_backup(**WHY)
    draws = Draws()
    with refused("spent"):
        ledger.draw("ana", HALF, plan="counts", key="counts", compute=draws)
    for receipt in paid:
        with refused("spent"):
            ledger.claim(receipt)
        with refused("spent"):
            ledger.store_release(receipt, b"second")
    run = ledger.run("ana", HALF, plan="daily", instalments=3)
    assert run.next is None
    assert run.instalment(1).payload == b"first"
    with refused("run-finished"):
        run.draw(lambda *_: (b"second", b"secret"))
    assert not draws.receipts
    for name in ("visits", "bob"):
        ledger.grow(name, Budget(epsilon=5), **WHY)
    ledger.draw("bob", HALF, plan="counts", compute=lambda _: b"new")
    for key in ("counts", None):
        with refused("budget-exceeded"):  # ana has paid for the answer that was lost, not for this one
            ledger.draw("ana", HALF, plan="counts", key=key, compute=draws)
    assert ledger.verify().ok


def test_a_draw_whose_release_was_lost_does_not_pay_for_another_draw(durable):
    ledger = durable.open()
    ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=4))
    for name in ("ana", "bob"):
        ledger.create_account(name, parent="visits", budget=Budget(epsilon=4))
    ledger.claim(ledger.charge("ana", HALF, plan="counts"))  # its release is in the lost entries
    durable.backup()
    durable.open().charge("ana", HALF)
    durable.restore()
    ledger = durable.open()
    ledger.continue_from_backup(**WHY)
    for name in ("visits", "bob"):
        ledger.grow(name, Budget(epsilon=5), **WHY)
    ledger.draw("bob", HALF, plan="counts", compute=lambda _: b"new")
    with refused("budget-exceeded"):
        ledger.draw("ana", HALF, plan="counts", compute=Draws())


def test_a_budget_that_was_raised_in_the_lost_entries_is_not_granted_twice(behind):
    ledger = behind.open()
    for wrong in ({"visits": Budget(epsilon=1)}, {"nosuch": Budget(epsilon=9)}, {"visits": 9}):
        with pytest.raises(TacitError):
            ledger.continue_from_backup(**WHY, raised=wrong)
    assert ledger.missing is not None  # nothing was recorded
    ledger.continue_from_backup(**WHY, raised={"visits": Budget(epsilon=5)})
    assert ledger.account("visits").budget == Budget(epsilon=5)
    assert nothing_left(ledger, "visits")
    assert ledger.verify().ok


@pytest.mark.parametrize(
    ("opened", "left"),
    [(None, {"scans": 0, "new": 0}), ([], {"scans": 1, "new": 1}), (["Scans"], {"scans": 0, "new": 1})],
)
def test_an_account_that_may_have_been_opened_in_the_lost_entries_starts_with_nothing(behind, opened, left):
    ledger = behind.open()
    ledger.continue_from_backup(**WHY, opened=opened)
    for session in (ledger, behind.open()):
        for name, epsilon in left.items():
            account = session.create_account(name, unit="patient_id", budget=Budget(epsilon=1))
            assert account.filter.remaining.epsilon == session.remaining(name).epsilon == epsilon
    ledger.refresh("scans", statement="charged nothing in the lost entries", who="curator")
    ledger.charge("scans", Cost.pure(1))
    assert ledger.verify().ok


def test_a_second_loss_is_recorded_like_the_first(behind):
    behind.open().continue_from_backup(**WHY, opened=[])
    behind.backup()
    ledger = behind.open()
    ledger.refresh("visits", statement="other people", who="curator")
    behind.restore()
    ledger = behind.open()
    ledger.continue_from_backup(**WHY, opened=["late"])
    assert [entry.kind for entry in ledger.history()].count("gap") == 2
    assert nothing_left(ledger, "visits")
    assert ledger.create_account("late", unit="u", budget=Budget(epsilon=1)).filter.remaining.epsilon == 0
    assert ledger.create_account("new", unit="u", budget=Budget(epsilon=1)).filter.remaining.epsilon == 1
    assert ledger.verify().ok


@pytest.fixture
def undrawn(durable):
    """Charges in a backup that were drawn only after it: one draw, by key and by receipt, and a run."""

    def run(ledger):
        return ledger.run("visits", Cost.pure(0.1), plan="run", instalments=9)

    ledger = durable.open()
    lineage(ledger)
    durable.receipt = ledger.charge("visits", HALF, plan="waiting")
    ledger.charge("ana", HALF, plan="by key", key="k")
    run(ledger).draw(lambda number, secret: (b"one", b"first secret"))
    durable.backup()
    ledger = durable.open()
    ledger.claim(durable.receipt)
    ledger.store_release(durable.receipt, b"seen")
    ledger.draw("ana", HALF, plan="by key", key="k", compute=lambda _: b"seen")
    run(ledger).draw(lambda number, secret: (b"seen " + secret, b"second secret"))
    durable.restore()
    durable.run = run
    return durable


def test_what_may_have_been_drawn_in_the_lost_entries_is_not_drawn_again(undrawn):
    ledger, draws = undrawn.open(), Draws()
    ledger.continue_from_backup(**WHY)
    run, head = undrawn.run(ledger), ledger.head
    for code, attempt in (
        ("spent", lambda: ledger.claim(undrawn.receipt)),
        ("spent", lambda: ledger.store_release(undrawn.receipt, b"another")),
        ("spent", lambda: ledger.draw("ana", HALF, plan="by key", key="k", compute=draws)),
        ("run-finished", lambda: run.draw(lambda number, secret: (draws(secret), b""))),
    ):
        with refused(code) as caught:
            attempt()
        assert "lost" in caught.value.what
    assert (ledger.head, draws.receipts) == (head, [])
    assert [stored.payload for stored in run] == [b"one"]  # what is in the copy stays readable
    assert ledger.verify().ok


def test_a_charge_from_before_lost_entries_does_not_pay_for_a_draw_after_them(undrawn):
    ledger = undrawn.open()
    ledger.continue_from_backup(**WHY)
    ledger.grow("visits", Budget(epsilon=4), **WHY)
    ledger.draw("visits", HALF, plan="by key", compute=lambda _: b"new")
    for key in ("k", None):
        with refused("budget-exceeded"):
            ledger.draw("ana", HALF, plan="by key", key=key, compute=Draws())
    assert ledger.paid_release("ana", "by key") is None
    for name, epsilon in (("oncology", 2.5), ("ana", 1.5)):
        ledger.grow(name, Budget(epsilon=epsilon), **WHY)
    assert ledger.draw("ana", HALF, plan="by key", key="k", compute=Draws()).payload == b"new"
    assert nothing_left(ledger, "ana")
    assert ledger.verify().ok


def test_verify_finds_a_draw_for_a_charge_from_before_lost_entries(undrawn, monkeypatch):
    ledger = undrawn.open()
    ledger.continue_from_backup(**WHY)
    monkeypatch.setattr("tacit.ledger.draws._draws.lost_between", lambda *_: False)
    ledger.claim(undrawn.receipt)
    assert ["before entries were lost" in problem for problem in ledger.verify().problems] == [True]


def test_a_copy_with_long_releases_can_be_continued(durable):
    visits(ledger := durable.open())
    ledger.draw("visits", HALF, plan="long", compute=lambda _: bytes(2**20 + 1))
    durable.backup()
    durable.open().charge("visits", HALF)
    durable.restore()
    assert durable.open().continue_from_backup(**WHY).ok


def test_a_loss_that_the_own_witness_does_not_show_is_shown_by_a_receipt(behind):
    ledger = behind.open()
    witness = ledger.witness
    behind.close()
    witness.write_bytes(b"")  # restored from the same backup: it knows nothing of the lost entries
    ledger = behind.open(witness=witness)
    with refused("bad-parameter") as caught:
        ledger.continue_from_backup(**WHY)
    assert "nothing shows" in caught.value.what
    known = ledger.history()[0]
    with refused("bad-parameter"):
        ledger.continue_from_backup(**WHY, witness=(known.seq, known.hash))
    ledger.continue_from_backup(**WHY, witness=behind.lost.receipt)
    assert nothing_left(ledger, "visits")
    assert behind.open().verify().ok


def test_an_edited_copy_is_not_continued(behind):
    change = "UPDATE ledger_accounts SET state = replace(state, '\"1/2\"', '\"0\"') WHERE name = 'ana'"
    if behind.kind == "sqlite":
        with sqlite3.connect(behind.where) as connection:
            connection.execute(change)
        connection.close()
    else:
        with psycopg.connect(behind.where) as connection:
            connection.execute(change)
    ledger = behind.open()
    with refused("ledger-tampered"):
        ledger.continue_from_backup(**WHY)
    with refused("ledger-rolled-back"):
        ledger.charge("visits", Cost.pure(0.01))


def test_a_ledger_that_lost_nothing_is_not_continued(ledger):
    visits(ledger)
    with refused("bad-parameter"):
        ledger.continue_from_backup(**WHY)
    assert ledger.missing is None
    assert ledger.remaining("visits").epsilon == 1


# what is kept of a question


def test_a_dataset_that_keeps_shapes_keeps_no_words(ledger):
    how = {"unit": "patient_id", "budget": Budget(epsilon=9), "dataset": True}
    assert ledger.create_account("visits", **how).record == "words"
    ledger.create_account("ana", parent="visits", budget=Budget(epsilon=9))
    ledger.charge("ana", HALF, asked="icd = 'C50'")
    assert ledger.create_account("visits", **how, record="shape").record == "shape"
    with refused("account-differs"):
        ledger.create_account("visits", **how)
    ledger.charge("ana", HALF, asked="icd = 'C51'", key="k")
    ledger.charge("ana", HALF, asked="icd = 'C51'", key="k")
    ledger.draw("ana", HALF, plan="p", asked="icd = ?", record="shape", compute=lambda _: b"1")
    assert [entry.asked for entry in ledger.history("ana") if entry.spend] == ["icd = 'C50'", "", "icd = ?"]
    assert ledger.verify().ok
    with refused("bad-parameter"):
        ledger.create_account("labs", **how, record="nothing")


def test_a_cost_of_another_adjacency_is_refused(ledger):
    visits(ledger, adjacency="replace")
    with refused("adjacency-mixed"):
        ledger.charge("visits", HALF)
    assert spent(ledger, "visits") == 0


# idempotency


def test_the_same_key_and_charge_give_the_same_receipt_and_charge_once(ledger):
    visits(ledger)
    first = ledger.charge("visits", HALF, plan="p", who="ana", purpose="x", key="k")
    again = ledger.charge("visits", HALF, plan="p", who="ana", purpose="x", key="k")
    assert again == first
    assert spent(ledger, "visits") == Fraction(1, 2)


def test_the_same_key_is_answered_even_when_the_budget_is_gone(ledger):
    visits(ledger)
    first = ledger.charge("visits", Cost.pure(1), key="k")
    assert ledger.charge("visits", Cost.pure(1), key="k") == first


@pytest.mark.parametrize(
    "other",
    [{"cost": Cost.pure(0.25)}, {"plan": "q"}, {"who": "bob"}, {"purpose": "y"}],
    ids=lambda other: next(iter(other)),
)
def test_the_same_key_with_another_charge_is_refused(ledger, other):
    visits(ledger)
    ledger.create_account("other", unit="patient_id", budget=Budget(epsilon=1))
    body = {"account": "visits", "cost": HALF, "plan": "p", "who": "ana", "purpose": "x", "key": "k"}
    ledger.charge(**body)
    before = ledger.head
    with refused("key-reused"):
        ledger.charge(**{**body, **other})
    assert ledger.head == before


def test_two_accounts_may_use_the_same_key(ledger):
    names = ("visits", "other", "3:a:b", "a")
    for name in names:
        ledger.create_account(name, unit="patient_id", budget=Budget(epsilon=1))
    receipts = [ledger.charge(name, HALF, key="k", who=name) for name in names]
    before = ledger.head
    for name, receipt in zip(names, receipts, strict=True):
        assert receipt.key == "k"
        assert ledger.charge(name, HALF, key="k", who=name) == receipt
        assert ledger.entry(receipt.head.count).key == "k"
        with refused("key-reused"):
            ledger.charge(name, Cost.pure(0.25), key="k", who=name)
    assert ledger.head == before
    assert spent(ledger, *names) == [Fraction(1, 2)] * 4
    assert ledger.verify().ok


def test_a_key_cannot_be_made_up_to_be_that_of_another_account(ledger):
    for name in ("visits", "ana", "ana:k"):
        ledger.create_account(name, unit="patient_id", budget=Budget(epsilon=9))
    keys = ["k", "3:ana:k", ":k", "ana:k", "k3:ana:k", "5:ana:k:k"]
    receipts = {
        (name, key): ledger.charge(name, TINY, key=key) for name in ("visits", "ana", "ana:k") for key in keys
    }
    assert len({receipt.id for receipt in receipts.values()}) == 18
    for (name, key), receipt in receipts.items():
        assert ledger.charge(name, TINY, key=key) == receipt
        assert receipt.key == key


def test_draws_of_two_accounts_with_the_same_key_are_two_draws(ledger):
    lineage(ledger)
    ledger.create_account("bob", parent="oncology", budget=Budget(epsilon=1))
    compute = Draws()
    first = ledger.draw("ana", HALF, plan="p", compute=compute, key="k")
    view = ledger.draw("bob", HALF, plan="p", compute=compute, key="k")
    other = ledger.draw("visits", HALF, plan="q", compute=compute, key="k")
    before = ledger.head
    for name, plan, drawn in (("ana", "p", first), ("bob", "p", view), ("visits", "q", other)):
        again = ledger.draw(name, HALF, plan=plan, compute=compute, key="k")
        assert (again.payload, again.receipt) == (drawn.payload, drawn.receipt)
    assert ledger.head == before
    assert len(compute.receipts) == 2


def test_threads_of_two_accounts_race_with_the_same_keys_and_each_pays_once(ledger):
    for name in ("ana", "bob"):
        ledger.create_account(name, unit="patient_id", budget=Budget(epsilon=9))

    def work(name):
        for i in range(10):
            ledger.charge(name, TINY, key=f"k{i}")

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ana", "bob") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert spent(ledger, "ana", "bob") == [10 * TINY.spend.epsilon] * 2


def test_what_was_asked_is_kept_with_its_charge_and_older_entries_have_none(ledger):
    visits(ledger)
    words = 'n = count, where ward = \'a","cost":7,"purpose":"b\', of visits'
    ledger.charge("visits", Cost.pure(0.25), key="old")
    ledger.charge("visits", Cost.pure(0.25), asked=words, key="new")
    ledger.draw("visits", Cost.pure(0.25), plan="p", asked="n = count", compute=lambda _: b"4")
    ledger.create_account("ana", parent="visits", budget=Budget(epsilon=1))
    ledger.draw("ana", Cost.pure(0.25), plan="p", asked="n = count", compute=lambda _: b"5")
    told = [(e.kind, e.asked) for e in ledger.history() if e.spend is not None]
    assert told == [("charge", ""), ("charge", words), ("draw", "n = count"), ("view", "n = count")]
    exported = [json.loads(line) for line in ledger.export()]
    assert [line.get("asked") for line in exported if line["key"]] == [None, words]
    assert ledger.verify().ok
    before = ledger.head
    ledger.charge("visits", Cost.pure(0.25), asked="told since", key="old")  # a retry by a newer version
    with refused("key-reused"):
        ledger.charge("visits", Cost.pure(0.25), asked="something else", key="new")
    assert ledger.head == before


@pytest.mark.parametrize("asked", ["", 'a","cost":7,"purpose":"b', "a,", "a\\"])
def test_a_check_finds_the_cost_of_an_entry_whatever_was_asked(asked):
    body = {"at": "now", "cost": {"v": 1}, "purpose": 'b,"cost":', "version": 1, "who": ""}
    text = canonical({**body, **({"asked": asked} if asked else {})})
    assert cost_text(text) == ',"cost":{"v":1}'


# accounts


def test_the_identical_account_is_returned_with_its_total(ledger):
    visits(ledger)
    ledger.charge("visits", HALF)
    again = visits(ledger)
    assert again.spent.epsilon == Fraction(1, 2)
    assert [entry.kind for entry in ledger.history()] == ["open", "charge"]


@pytest.mark.parametrize(
    "other",
    [
        {"unit": "visit_id"},
        {"adjacency": "replace"},
        {"budget": Budget(epsilon=2)},
        {"budget": Budget(epsilon=0.5)},
        {"budget": Budget(epsilon=1, delta=1e-6)},
        {"budget": Budget(rho=1)},
        {"per_charge": Budget(epsilon=0.1)},
        {"expires": date(2100, 1, 1)},
        {"parent": "above"},
    ],
    ids=str,
)
def test_an_account_with_other_facts_is_refused(ledger, other):
    ledger.create_account("above", unit="patient_id", budget=Budget(epsilon=9))
    facts = {"unit": "patient_id", "budget": Budget(epsilon=1)}
    ledger.create_account("visits", **facts)
    ledger.charge("visits", HALF)
    before = ledger.head
    with refused("account-differs"):
        ledger.create_account("visits", **{**facts, **other})
    assert ledger.head == before
    assert spent(ledger, "visits") == Fraction(1, 2)


def test_a_level_below_cannot_protect_somebody_else(ledger):
    visits(ledger)
    for other in ({"unit": "row"}, {"adjacency": "replace"}):
        with refused("account-differs"):
            ledger.create_account("ana", parent="visits", budget=Budget(epsilon=1), **other)


def test_a_dataset_needs_a_unit_and_every_account_a_budget(ledger):
    with refused("bad-parameter"):
        ledger.create_account("visits", budget=Budget(epsilon=1))
    for budget in (1, None, "1", {"epsilon": 1}):
        with refused("bad-parameter"):
            ledger.create_account("visits", unit="u", budget=budget)


def test_a_budget_grows_only_on_record_and_never_shrinks(ledger):
    visits(ledger)
    ledger.charge("visits", Cost.pure(1))
    for smaller in (Budget(epsilon=0.5), Budget(rho=5), Budget(rho=5, delta=1e-6)):
        with refused("bad-parameter"):
            ledger.grow("visits", smaller, statement="why not", who="curator")
    for silent in ({"statement": "", "who": "c"}, {"statement": "s", "who": " "}):
        with refused("bad-parameter"):
            ledger.grow("visits", Budget(epsilon=2), **silent)
    ledger.grow("visits", Budget(epsilon=2), statement="board decision 12", who="curator")
    ledger.charge("visits", Cost.pure(1))
    with refused("budget-exceeded"):
        ledger.charge("visits", Cost.pure(0.1))
    entry = [entry for entry in ledger.history("visits") if entry.kind == "grow"]
    assert [(e.who, e.purpose) for e in entry] == [("curator", "board decision 12")]
    assert visits(ledger, Budget(epsilon=2)).spent.epsilon == 2
    with refused("account-differs"):
        visits(ledger, Budget(epsilon=1))
    assert ledger.verify().ok


def test_what_was_paid_before_a_refresh_is_not_drawn_after_it(ledger):
    """The draw would read the new people's data, for which nothing was charged."""
    ledger.create_account("intake", unit="patient_id", budget=Budget(epsilon=1))
    for turn in range(2):
        paid = ledger.charge("intake", HALF, plan=f"counts {turn}", key=f"k{turn}")
        run = ledger.run("intake", HALF, plan=f"daily {turn}", instalments=2)
        run.draw(lambda *_: (b"first", b""))
        ledger.refresh("intake", statement="new people only", who="curator")
        with refused("spent"):
            ledger.draw("intake", HALF, plan=f"counts {turn}", key=f"k{turn}", compute=Draws())
        with refused("spent"):
            ledger.claim(paid)
        with refused("run-finished"):
            run.draw(lambda *_: (b"second", b""))
        assert run.instalment(1).payload == b"first"
    assert ledger.verify().ok


def test_a_draw_that_a_refresh_ended_does_not_spoil_the_others_of_its_batch(ledger):
    visits(ledger)
    ledger.create_account("ana", parent="visits", budget=Budget(epsilon=1))
    ledger.charge("ana", Cost.pure(0.125), plan="counts", key="k")  # less than the draw below will cost
    ledger.refresh("ana", statement="new people only", who="curator")
    ledger.draw("visits", HALF, plan="counts", compute=lambda _: b"new")
    words = {"who": "", "purpose": ""}
    ended = read_charge("ana", Cost.pure(0.125), plan="counts", key="k", **words)
    other = read_charge("visits", Cost.pure(0.25), plan=None, key=None, **words)
    jobs = [
        Job(_Request(partial(authorise, request=ended), ended.keys)),
        Job(_Request(partial(charge, request=other))),
    ]
    ledger._writer._run_batch(jobs)
    assert [job.error is None for job in jobs] == [False, True]
    assert jobs[0].error.code == "spent"
    assert spent(ledger, "ana") == 0
    assert ledger.verify().ok


def test_a_refresh_needs_a_statement_and_is_recorded(ledger):
    lineage(ledger)
    ledger.charge("ana", Cost.pure(1))
    with refused("bad-parameter"):
        ledger.refresh("ana", statement="", who="curator")
    ledger.refresh("ana", statement="a new cohort entered", who="curator")
    assert spent(ledger, "visits", "oncology", "ana") == [1, 1, 0]
    assert ledger.history("ana")[-1].purpose == "a new cohort entered"
    ledger.charge("ana", Cost.pure(1))
    assert ledger.verify().ok


def test_a_new_version_of_the_data_resets_nothing(ledger):
    visits(ledger)
    ledger.charge("visits", HALF)
    second = visits(ledger, version=2)
    assert (second.version, second.spent.epsilon) == (2, Fraction(1, 2))
    assert [entry.kind for entry in ledger.history()] == ["open", "charge", "version"]
    assert visits(ledger, version=1).version == 1
    assert ledger.account("visits").version == 2
    assert ledger.verify().ok


@pytest.mark.parametrize(
    "name", ["", " ", " x", "a\nb", "a\x1fb", "a\x00", "x" * 201, 7, None, "\ud800"], ids=repr
)
def test_a_name_that_could_mislead_is_refused(ledger, name):
    with refused("bad-parameter"):
        ledger.create_account(name, unit="u", budget=Budget(epsilon=1))
    assert ledger.head.count == 0


ALIKE = {
    "case": ("visits", "Visits"),
    "sharp s": ("straße", "STRASSE"),
    "two encodings": ("caf\u00e9", "cafe\u0301"),
    "full width": ("ward", "\uff57\uff41\uff52\uff44"),
    "ligature": ("office", "o\ufb03ce"),
    "variation selector": ("ward", "ward\ufe0f"),
    "grapheme joiner": ("ward", "wa\u034frd"),
    "filler": ("ward", "ward\u3164"),
    "blank": ("ward", "ward\u2800"),
    "two spaces": ("ward 1", "ward  1"),
}


@pytest.mark.parametrize(("first", "second"), ALIKE.values(), ids=ALIKE)
def test_a_name_that_looks_like_another_account_is_refused(ledger, first, second):
    for one, other in ((first, second), (second + " b", first + " b")):
        ledger.create_account(one, unit="u", budget=Budget(epsilon=1))
        before = ledger.head
        for facts in ({"unit": "u"}, {"parent": one}):
            with refused("bad-parameter") as caught:
                ledger.create_account(other, budget=Budget(epsilon=1), **facts)
            assert "looks like" in str(caught.value)
        assert ledger.head == before
        ledger.create_account(one, unit="u", budget=Budget(epsilon=1))


def test_names_that_people_can_tell_apart_are_accepted(ledger):
    names = ["ward 1", "ward 2", "ward1", "ward-1", "w\u00e4rd 1", "Ward", "\u75c5\u68df", "\u75c5"]
    for name in names:
        ledger.create_account(name, unit="u", budget=Budget(epsilon=1))
    assert [account.name for account in ledger.accounts()] == names


@pytest.mark.parametrize("name", ["\u3164", "\ufe0f\u034f", "\u2800"], ids=ascii)
def test_a_name_that_nobody_can_see_is_refused(ledger, name):
    with refused("bad-parameter"):
        ledger.create_account(name, unit="u", budget=Budget(epsilon=1))


def test_names_of_one_batch_are_compared_with_each_other(ledger):
    facts = {"unit": "u", "adjacency": None, "version": 1, "budget": Budget(epsilon=1), "parent": None}
    facts |= {"labels": {}, "per_charge": None, "expires": None}
    names = ["ward", "Ward", "ward", "other"]
    jobs = [Job(_Request(partial(open_account, name=name, **facts))) for name in names]
    ledger._writer._run_batch(jobs)
    assert [job.error is None for job in jobs] == [True, False, True, True]
    assert [account.name for account in ledger.accounts()] == ["ward", "other"]


def test_names_are_compared_with_those_of_another_session(durable):
    one, two = durable.open(), durable.open()
    one.create_account("a", unit="u", budget=Budget(epsilon=1))
    two.create_account("b", unit="u", budget=Budget(epsilon=1))
    one.create_account("ward", unit="u", budget=Budget(epsilon=1))
    with refused("bad-parameter"):
        two.create_account("WARD", unit="u", budget=Budget(epsilon=1))
    two.create_account("ward", unit="u", budget=Budget(epsilon=1))


def test_accounts_of_older_versions_that_look_alike_stay_as_they_are(durable, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr("tacit.ledger.accounts._decisions._check_appearance", lambda *_: None)
        for name in ("ward", "Ward"):
            durable.open().create_account(name, unit="u", budget=Budget(epsilon=1))
    ledger = durable.open()
    for name in ("ward", "Ward"):
        ledger.create_account(name, unit="u", budget=Budget(epsilon=1))
        ledger.charge(name, HALF)
    assert ledger.verify().ok
    with refused("bad-parameter"):
        ledger.create_account("WARD", unit="u", budget=Budget(epsilon=1))


ODD = [
    "'; DROP TABLE ledger_entries; --",
    "\x1b[31m\x00\x1f\x1e",
    "%s ? {0} \\",
    "𝔭 \u202e ﷽",
    "a" * 2000,
    "NaN",
]


@pytest.mark.parametrize("words", ODD, ids=range(len(ODD)))
def test_hostile_words_are_kept_as_they_are(ledger, words):
    visits(ledger, labels={"team": words})
    ledger.charge("visits", HALF, who=words, purpose=words)
    entry = ledger.history("visits")[-1]
    assert (entry.who, entry.purpose) == (words, words)
    assert ledger.account("visits").labels == {"team": words}
    assert ledger.verify().ok
    assert json.loads(list(ledger.export())[-1])["who"] == words


@pytest.mark.parametrize("words", [7, None, "a" * 2001, "\ud800"], ids=repr)
def test_words_that_cannot_be_kept_are_refused(ledger, words):
    visits(ledger)
    for field in ("who", "purpose", "asked"):
        with refused("bad-parameter"):
            ledger.charge("visits", HALF, **{field: words})
    assert spent(ledger, "visits") == 0


@pytest.mark.parametrize("token", ["", "a\nb", "x" * 201, 7, "\x1f"], ids=repr)
def test_a_plan_or_key_that_could_mislead_is_refused(ledger, token):
    visits(ledger)
    for field in ("plan", "key"):
        with refused("bad-parameter"):
            ledger.charge("visits", HALF, **{field: token})


# draws


class Draws:
    """A computation that counts how often it runs and never gives the same answer twice."""

    def __init__(self) -> None:
        self.receipts: list[str] = []

    def __call__(self, receipt) -> bytes:
        self.receipts.append(receipt.id)
        return f"answer {len(self.receipts)}".encode()


def test_a_draw_is_charged_before_it_is_computed(ledger):
    visits(ledger)
    seen = []
    ledger.draw("visits", HALF, plan="p", compute=lambda r: seen.append(spent(ledger, "visits")) or b"x")
    assert seen == [Fraction(1, 2)]


def test_the_same_plan_again_is_the_same_answer_and_free(ledger):
    visits(ledger)
    compute = Draws()
    first = ledger.draw("visits", HALF, plan="p", compute=compute)
    again = ledger.draw("visits", HALF, plan="p", compute=compute)
    assert (first.fresh, again.fresh) == (True, False)
    assert again.payload == first.payload == b"answer 1"
    assert len(compute.receipts) == 1
    assert spent(ledger, "visits") == Fraction(1, 2)
    assert ledger.stored_release("visits", "p").payload == b"answer 1"
    assert ledger.stored_release("visits", "q") is None


def test_an_empty_release_is_a_release(ledger):
    visits(ledger)
    compute = Draws()
    ledger.draw("visits", HALF, plan="p", compute=lambda _: b"")
    assert ledger.draw("visits", HALF, plan="p", compute=compute).payload == b""
    assert compute.receipts == []


def test_a_stored_release_is_charged_to_each_account_that_has_not_paid(ledger):
    lineage(ledger)
    ledger.create_account("bob", parent="oncology", budget=Budget(epsilon=1))
    ledger.create_account("surgery", parent="visits", budget=Budget(epsilon=2))
    ledger.create_account("cy", parent="surgery", budget=Budget(epsilon=1))
    compute = Draws()
    names = ("visits", "oncology", "ana", "bob", "surgery", "cy")

    def draw(who):
        return ledger.draw(who, HALF, plan="p", compute=compute)

    draw("ana")
    half = Fraction(1, 2)
    assert spent(ledger, *names) == [half, half, half, 0, 0, 0]
    assert draw("bob").receipt.charged == ("bob",)
    assert spent(ledger, *names) == [half, half, half, half, 0, 0]
    assert draw("cy").receipt.charged == ("cy", "surgery")
    assert spent(ledger, *names) == [half, half, half, half, half, half]
    before = ledger.head
    for name in names:
        assert draw(name).payload == b"answer 1"
    assert ledger.head == before
    assert len(compute.receipts) == 1
    assert ledger.verify().ok


def test_a_stored_release_costs_what_its_draw_cost_whatever_the_reader_says(ledger):
    lineage(ledger)
    ledger.create_account("bob", parent="oncology", budget=Budget(epsilon=1))
    ledger.draw("ana", HALF, plan="p", compute=Draws())
    for said in (0.001, 0.001, 0.9):
        release = ledger.draw("bob", Cost.pure(said), plan="p", compute=Draws(), key=f"k{said}")
        assert (release.payload, release.receipt.spend) == (b"answer 1", HALF.spend)
    assert spent(ledger, "visits", "oncology", "ana", "bob") == [Fraction(1, 2)] * 4
    view = ledger.history("bob")[-1]
    assert (view.kind, view.cost, view.spend) == ("view", HALF, HALF.spend)
    assert ledger.verify().ok


def test_a_reader_pays_the_stored_price_or_gets_nothing(ledger):
    lineage(ledger)
    ledger.create_account("poor", parent="visits", budget=Budget(epsilon=0.25))
    ledger.create_account("capped", parent="visits", budget=Budget(epsilon=1), per_charge=Budget(epsilon=0.1))
    ledger.draw("ana", HALF, plan="p", compute=Draws())
    before = ledger.head
    for name, code in (("poor", "budget-exceeded"), ("capped", "charge-too-large")):
        with refused(code):
            ledger.draw(name, Cost.pure(0.01), plan="p", compute=Draws())
    with refused("adjacency-mixed"):
        ledger.draw("poor", Cost.pure(0.01, adjacency="replace"), plan="p", compute=Draws())
    assert ledger.head == before


TINY = Cost.pure(0.001)


def claimed_cheaply(ledger):
    ledger.claim(ledger.charge("ana", TINY, plan="p"))
    return ledger.draw("ana", TINY, plan="p", compute=Draws())


def charged_cheaply_with_a_key(ledger):
    ledger.charge("ana", TINY, plan="p", key="k")
    return ledger.draw("ana", TINY, plan="p", compute=Draws(), key="k")


def failed_cheaply_before(ledger):
    return ledger.draw("ana", TINY, plan="p", compute=Draws(), key="early")


@pytest.mark.parametrize("way", [claimed_cheaply, charged_cheaply_with_a_key, failed_cheaply_before])
def test_a_smaller_charge_for_the_same_plan_does_not_pay_for_what_is_stored(ledger, way):
    lineage(ledger)
    if way is failed_cheaply_before:
        with refused("release-failed"):
            ledger.draw("ana", TINY, plan="p", compute=lambda _: 1 / 0, key="early")
    ledger.draw("visits", HALF, plan="p", compute=Draws())
    assert way(ledger).payload == b"answer 1"
    assert spent(ledger, "ana", "oncology") == [HALF.spend.epsilon + TINY.spend.epsilon] * 2
    before = ledger.head
    for key in (None, "k" if way is charged_cheaply_with_a_key else None):  # paid: free from now on
        assert ledger.draw("ana", TINY, plan="p", compute=Draws(), key=key).payload == b"answer 1"
    assert ledger.head == before
    assert ledger.verify().ok


def test_a_receipt_that_paid_less_does_not_get_what_another_stored(ledger):
    lineage(ledger)
    ledger.draw("visits", HALF, plan="p", compute=Draws())
    cheap = ledger.charge("ana", TINY, plan="p")
    before = ledger.head
    with refused("spent"):
        ledger.store_release(cheap, b"mine")
    assert ledger.head == before
    equal = ledger.charge("ana", HALF, plan="p")
    assert ledger.store_release(equal, b"mine").payload == b"answer 1"


def test_a_paid_release_is_read_without_a_charge_by_those_who_paid_only(ledger):
    lineage(ledger)
    ledger.create_account("bob", parent="oncology", budget=Budget(epsilon=1))
    ledger.create_account("cy", parent="visits", budget=Budget(epsilon=1))
    names = ("visits", "oncology", "ana", "bob", "cy")
    assert [ledger.paid_release(name, "p") for name in names] == [None] * 5
    drawn = ledger.draw("ana", HALF, plan="p", compute=Draws())
    before = ledger.head
    for name in ("visits", "oncology", "ana"):
        release = ledger.paid_release(name, "p")
        assert (release.payload, release.fresh, release.receipt) == (b"answer 1", False, drawn.receipt)
    assert [ledger.paid_release(name, "p") for name in ("bob", "cy")] == [None, None]
    assert ledger.head == before
    mine = ledger.draw("bob", HALF, plan="p", compute=Draws()).receipt
    assert ledger.paid_release("bob", "p").receipt == mine
    assert ledger.paid_release("cy", "p") is None
    assert ledger.paid_release("ana", "q") is None


def test_a_payment_by_the_project_is_not_a_payment_by_the_analyst_nor_the_other_way_round(ledger):
    lineage(ledger)
    ledger.create_account("bob", parent="oncology", budget=Budget(epsilon=1))
    ledger.draw("visits", HALF, plan="p", compute=Draws())
    ledger.draw("oncology", HALF, plan="p", compute=Draws())
    assert ledger.paid_release("oncology", "p").payload == b"answer 1"
    assert ledger.paid_release("ana", "p") is None
    ledger.draw("ana", HALF, plan="p", compute=Draws())
    assert ledger.paid_release("ana", "p").receipt.charged == ("ana",)
    assert ledger.paid_release("bob", "p") is None


def test_what_paid_less_or_was_not_drawn_does_not_show_a_release(ledger):
    lineage(ledger)
    ledger.draw("visits", HALF, plan="p", compute=Draws())
    receipt = ledger.charge("ana", TINY, plan="p")
    ledger.claim(receipt)
    assert ledger.paid_release("ana", "p") is None
    full = ledger.charge("ana", HALF, plan="p")
    assert ledger.paid_release("ana", "p") is None  # paid for something that the ledger has not seen
    ledger.claim(full)
    assert ledger.paid_release("ana", "p").receipt == full


def test_a_paid_release_is_of_the_version_that_was_paid(ledger):
    first = visits(ledger)
    compute = Draws()
    ledger.draw(first, HALF, plan="p", compute=compute)
    visits(ledger, version=2)
    assert ledger.paid_release("visits", "p") is None
    for old in (ledger.paid_release(first, "p"), ledger.paid_release("visits", "p", version=1)):
        assert old.payload == b"answer 1"
    with refused("unknown-account"):
        ledger.paid_release("nobody", "p")
    with refused("bad-parameter"):
        ledger.paid_release("visits", "")


def test_who_cannot_pay_does_not_see_a_stored_release(ledger):
    lineage(ledger)
    ledger.create_account("poor", parent="visits", budget=Budget(epsilon=0.1))
    compute = Draws()
    ledger.draw("ana", HALF, plan="p", compute=compute)
    with refused("budget-exceeded"):
        ledger.draw("poor", HALF, plan="p", compute=compute)
    assert spent(ledger, "poor") == 0


def test_another_version_of_the_data_is_another_release(ledger):
    first = visits(ledger)
    compute = Draws()
    ledger.draw(first, HALF, plan="p", compute=compute)
    second = visits(ledger, version=2)
    assert ledger.draw(second, HALF, plan="p", compute=compute).payload == b"answer 2"
    assert ledger.draw(first, HALF, plan="p", compute=compute).payload == b"answer 1"
    assert spent(ledger, "visits") == 1
    assert ledger.stored_release(first, "p").payload == b"answer 1"
    assert ledger.stored_release("visits", "p").payload == b"answer 2"


def test_datasets_do_not_share_stored_releases(ledger):
    visits(ledger)
    ledger.create_account("other", unit="patient_id", budget=Budget(epsilon=1))
    compute = Draws()
    ledger.draw("visits", HALF, plan="p", compute=compute)
    assert ledger.draw("other", HALF, plan="p", compute=compute).payload == b"answer 2"


@pytest.mark.parametrize(
    "failure",
    [ValueError("row 17 is Ada"), MemoryError(), TacitError("spent", "x"), KeyError(1), BaseException("Ada")],
)
def test_a_failure_after_the_charge_is_one_opaque_error_and_the_charge_stays(ledger, failure):
    visits(ledger)

    def compute(_):
        raise failure

    with pytest.raises(TacitError) as caught:
        ledger.draw("visits", HALF, plan="p", compute=compute)
    assert caught.value.code == "release-failed"
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert "Ada" not in str(caught.value)
    assert spent(ledger, "visits") == Fraction(1, 2)
    ledger.draw("visits", HALF, plan="p", compute=Draws())
    assert spent(ledger, "visits") == 1


@pytest.mark.parametrize(
    "payload",
    [7, "text", None, {"x": float("nan")}, {"x": object()}],
    ids=["number", "text", "nothing", "nan", "object"],
)
def test_what_cannot_be_stored_fails_like_everything_else(ledger, payload):
    visits(ledger)
    with refused("release-failed"):
        ledger.draw("visits", HALF, plan="p", compute=lambda _: payload)


def test_a_receipt_without_a_stored_release_is_spent(ledger):
    visits(ledger)
    compute = Draws()
    with refused("release-failed"):
        ledger.draw("visits", HALF, plan="p", compute=lambda _: 1 / 0, key="k")
    for _ in range(2):
        with refused("spent"):
            ledger.draw("visits", HALF, plan="p", compute=compute, key="k")
    assert compute.receipts == []
    assert spent(ledger, "visits") == Fraction(1, 2)


def test_a_retry_with_its_key_gets_the_stored_release(ledger):
    visits(ledger)
    compute = Draws()
    first = ledger.draw("visits", HALF, plan="p", compute=compute, key="k")
    again = ledger.draw("visits", HALF, plan="p", compute=compute, key="k")
    assert (again.payload, again.receipt) == (first.payload, first.receipt)
    with refused("key-reused"):
        ledger.draw("visits", Cost.pure(0.1), plan="p", compute=compute, key="k")


def test_a_charge_may_be_drawn_later_once(ledger):
    visits(ledger)
    compute = Draws()
    receipt = ledger.charge("visits", HALF, plan="p", key="k")
    drawn = ledger.draw("visits", HALF, plan="p", compute=compute, key="k")
    assert compute.receipts == [receipt.id]
    assert drawn.receipt == receipt
    assert spent(ledger, "visits") == Fraction(1, 2)
    with refused("spent"):
        ledger.claim(receipt)


def test_a_receipt_is_claimed_once(ledger):
    visits(ledger)
    receipt = ledger.charge("visits", HALF, plan="p", key="k")
    ledger.claim(receipt)
    with refused("spent"):
        ledger.claim(receipt)
    with refused("spent"):
        ledger.draw("visits", HALF, plan="p", compute=Draws(), key="k")
    ledger.store_release(receipt, b"one")
    assert ledger.store_release(receipt, b"one").payload == b"one"
    with refused("spent"):
        ledger.store_release(receipt, b"two")
    assert ledger.draw("visits", HALF, plan="p", compute=Draws(), key="k").payload == b"one"
    assert ledger.verify().ok


def test_a_charge_alone_does_not_pay_for_a_release_of_the_same_plan(ledger):
    lineage(ledger)
    ledger.draw("visits", HALF, plan="p", compute=Draws())
    ledger.charge("ana", HALF, plan="p")  # paid for something that the ledger has not seen
    ledger.draw("ana", HALF, plan="p", compute=Draws())
    assert spent(ledger, "ana") == 1


def test_the_first_release_of_a_plan_stays(ledger):
    visits(ledger)
    one, two = (ledger.charge("visits", HALF, plan="p") for _ in range(2))
    assert ledger.store_release(one, b"one").payload == b"one"
    late = ledger.store_release(two, b"two")
    assert (late.payload, late.fresh) == (b"one", False)


def test_a_receipt_of_another_ledger_is_refused(ledger):
    visits(ledger)
    ledger.charge("visits", Cost.pure(0.1))
    with Ledger.memory() as other:
        visits(other)
        foreign = other.charge("visits", HALF, plan="p")
        for act in (lambda: ledger.claim(foreign), lambda: ledger.store_release(foreign, b"x")):
            with refused("bad-parameter"):
                act()


def test_threads_that_draw_the_same_plan_pay_once_and_see_one_answer(ledger):
    visits(ledger)
    compute, seen = Draws(), []
    threads = [
        threading.Thread(
            target=lambda: seen.append(ledger.draw("visits", HALF, plan="p", compute=compute).payload)
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [b"answer 1"] * 8
    assert spent(ledger, "visits") == Fraction(1, 2)


def test_threads_of_several_analysts_that_draw_the_same_plan_pay_once_for_the_dataset(ledger):
    visits(ledger)
    for me in range(8):
        ledger.create_account(f"analyst {me}", parent="visits", budget=Budget(epsilon=1))
    compute, seen = Draws(), []

    def draw(me):
        seen.append(ledger.draw(f"analyst {me}", HALF, plan="p", compute=compute).payload)

    threads = [threading.Thread(target=draw, args=(me,)) for me in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [b"answer 1"] * 8
    assert spent(ledger, "visits") == Fraction(1, 2)
    assert {spent(ledger, f"analyst {me}") for me in range(8)} == {Fraction(1, 2)}


def test_analysts_of_a_session_that_has_read_no_account_yet_take_turns_too(durable):
    first = durable.open()
    visits(first)
    for me in range(4):
        first.create_account(f"analyst {me}", parent="visits", budget=Budget(epsilon=1))
    later, seen = durable.open(), []
    later.charge("analyst 0", Cost.pure(0.1))  # this account is known now, the others are not

    def compute(_):
        time.sleep(0.05)  # so that another analyst who does not wait would be charged too
        return b"answer"

    def draw(me):
        seen.append(later.draw(f"analyst {me}", HALF, plan="p", compute=compute).fresh)

    threads = [threading.Thread(target=draw, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [False, False, False, True]
    assert spent(first, "visits") == Fraction(6, 10)


# many at once


def test_threads_race_for_the_last_units_and_exactly_as_many_win_as_fit(ledger):
    visits(ledger)
    won, lost = [], []
    start = threading.Barrier(16)

    def race(me):
        start.wait()
        for i in range(4):
            try:
                won.append(ledger.charge("visits", Cost.pure(Fraction(1, 30)), key=f"{me}-{i}").id)
            except TacitError as error:
                lost.append(error.code)

    threads = [threading.Thread(target=race, args=(me,)) for me in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(won)) == len(won) == 30
    assert set(lost) == {"budget-exceeded"}
    assert len(lost) == 34
    assert spent(ledger, "visits") == 1
    assert ledger.verify().ok


def test_one_refused_charge_does_not_spoil_the_others_of_its_batch(ledger):
    visits(ledger)
    costs = [0.3, 0.9, 0.3, 0.9, 0.3]
    requests = [read_charge("visits", Cost.pure(e), plan=None, who="", purpose="", key=None) for e in costs]
    jobs = [Job(_Request(partial(charge, request=request))) for request in requests]
    ledger._writer._run_batch(jobs)
    assert [job.error is None for job in jobs] == [True, False, True, False, True]
    assert spent(ledger, "visits") == Fraction(9, 10)


# the record


def test_history_shows_what_charged_an_account_and_nothing_else(ledger):
    lineage(ledger)
    ledger.create_account("bob", parent="oncology", budget=Budget(epsilon=1))
    ledger.charge("ana", Cost.pure(0.1), who="ana")
    ledger.charge("bob", Cost.pure(0.2), who="bob")
    ledger.charge("visits", Cost.pure(0.3), who="curator")

    def who(name):
        return [entry.who for entry in ledger.history(name) if entry.kind == "charge"]

    assert who("ana") == ["ana"]
    assert who("oncology") == ["ana", "bob"]
    assert who("visits") == ["ana", "bob", "curator"]
    assert len(ledger.history()) == 7


def pages(ledger, account, limit):
    found, after = [], 0
    while page := ledger.history(account, after=after, limit=limit):
        assert len(page) <= limit
        found.append(page)
        after = page[-1].seq
    return found


def busy(ledger):
    """Fill a log in which entries of several accounts alternate, with numbers that contain each other."""
    lineage(ledger, 99, 99, 99)
    for i in range(12):
        ledger.create_account(f"analyst {i}", parent="oncology", budget=Budget(epsilon=9))
    for i in range(30):
        ledger.charge(f"analyst {i % 12}" if i % 3 else "ana", TINY, who=str(i))
    ledger.grow("visits", Budget(epsilon=100), statement="more", who="curator")
    ledger.unseal(statement="nothing was wrong", who="operator")


@pytest.mark.parametrize("step", [2, 7, 2000])
@pytest.mark.parametrize("account", [None, "visits", "oncology", "ana", "analyst 1"], ids=str)
def test_the_pages_of_a_history_make_up_the_whole(ledger, monkeypatch, account, step):
    busy(ledger)
    monkeypatch.setattr("tacit.ledger._reading._STEP", step)
    whole = ledger.history(account)
    for limit in (1, 3, 1000, 10**30):
        assert [entry for page in pages(ledger, account, limit) for entry in page] == whole
    assert ledger.history(account, after=whole[2].seq) == whole[3:]
    assert ledger.history(account, after=10**30, limit=5) == []
    exported = [json.loads(line) for line in ledger.export()]
    if account is not None:
        exported = [
            line for line in exported if account in (line["account"], *line["charged"], line.get("name"))
        ]
    assert [entry.to_json() for entry in whole] == exported


def test_a_page_is_read_without_the_rest_of_the_log(ledger, monkeypatch):
    busy(ledger)
    store, read = ledger._writer.store, []
    monkeypatch.setattr(store, "snapshot", None)  # which is how the whole log is read
    with store.reading() as reader:
        kind = type(reader)
    original = kind.entries_between

    def spy(self, *args):
        rows = original(self, *args)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(kind, "entries_between", spy)
    assert [entry.seq for entry in ledger.history(after=20, limit=5)] == [21, 22, 23, 24, 25]
    assert read == [5]


@pytest.mark.parametrize("wrong", [{"after": -1}, {"limit": 0}, {"limit": True}, {"after": 1.0}], ids=str)
def test_what_is_not_a_page_is_refused(ledger, wrong):
    with refused("bad-parameter"):
        ledger.history(**wrong)
    with refused("unknown-account"):
        ledger.history("nobody", limit=1)


def test_one_entry_is_read_by_its_number_without_the_history(ledger, monkeypatch):
    lineage(ledger)
    ledger.create_account("other", unit="u", budget=Budget(epsilon=1))
    ledger.draw("ana", HALF, plan="p", compute=lambda _: b"x", key="k", who="ana", asked="n = count")
    ledger.grow("visits", Budget(epsilon=4), statement="more", who="curator")
    ledger.unseal(statement="nothing was wrong", who="operator")
    history = ledger.history()
    assert len(history) == 8
    monkeypatch.setattr(ledger._writer.store, "snapshot", None)  # which is how long reads are made
    assert [ledger.entry(entry.seq) for entry in history] == history
    drawn = ledger.entry(5)
    assert (drawn.account, drawn.charged) == ("ana", ("ana", "oncology", "visits"))
    assert (drawn.asked, drawn.key, drawn.cost) == ("n = count", "k", HALF)
    assert ledger.entry(8).account is None


@pytest.mark.parametrize("number", [3, 10**9, 2**63 - 1, 2**63, 2**70], ids=repr)
def test_an_entry_beyond_the_end_is_none(ledger, number):
    visits(ledger)
    ledger.charge("visits", HALF)
    assert ledger.entry(number) is None


@pytest.mark.parametrize("number", [0, -1, True, 1.0, "1", None, float("nan"), [1]], ids=repr)
def test_what_is_not_the_number_of_an_entry_is_refused(ledger, number):
    visits(ledger)
    with refused("bad-parameter"):
        ledger.entry(number)


def test_export_is_json_lines_with_exact_numbers(ledger):
    visits(ledger)
    ledger.charge("visits", Cost.pure(Fraction(1, 3)), plan="p", who="ana")
    lines = [json.loads(line) for line in ledger.export()]
    assert [line["kind"] for line in lines] == ["open", "charge"]
    assert lines[1]["spend"]["epsilon"] == "1/3"
    assert lines[1]["account"] == "visits"
    assert Cost.from_json(lines[1]["cost"]) == Cost.pure(Fraction(1, 3))


def test_verify_without_a_witness_does_not_claim_completeness(ledger):
    visits(ledger)
    ledger.charge("visits", HALF)
    report = ledger.verify()
    assert report.ok
    assert not report.complete
    assert "consistent, completeness not proven" in str(report)
    assert report.head == ledger.head


def test_a_witness_of_a_start_that_no_ledger_has_proves_nothing(ledger):
    visits(ledger)
    assert ledger.verify(witness=(0, "0" * 64)).complete
    for wrong in ("f" * 64, ledger.head.hash):
        report = ledger.verify(witness=(0, wrong))
        assert (report.ok, report.complete) == (False, False)
        assert "witness" in report.problems[0]


def test_verify_with_a_witness_proves_completeness_up_to_it(ledger):
    visits(ledger)
    receipt = ledger.charge("visits", HALF)
    ledger.charge("visits", Cost.pure(0.1))
    for witness in (receipt, receipt.head, (2, receipt.head.hash), {"count": 2, "hash": receipt.head.hash}):
        report = ledger.verify(witness=witness)
        assert report.ok
        assert report.complete
        assert report.witnessed == 2
    for wrong in ((2, "0" * 64), (9, receipt.head.hash), Head(3, receipt.head.hash)):
        assert not ledger.verify(witness=wrong).ok
    for nonsense in (7, (1,), ("1", "x"), {"count": 1}, (-1, "0" * 64)):
        with refused("bad-parameter"):
            ledger.verify(witness=nonsense)


# more than one session


def test_a_new_session_resets_nothing(durable):
    first = durable.open()
    lineage(first)
    first.draw("ana", HALF, plan="p", compute=Draws(), key="k")
    first.close()
    second = durable.open()
    lineage(second)
    assert spent(second, "visits", "oncology", "ana") == [Fraction(1, 2)] * 3
    assert second.draw("ana", HALF, plan="p", compute=Draws(), key="k").payload == b"answer 1"
    with refused("budget-exceeded"):
        second.charge("ana", Cost.pure(0.6))
    assert second.verify(witness=second.witness).complete


def test_two_sessions_see_each_others_charges_at_once(durable):
    one, two = durable.open(), durable.open()
    visits(one)
    one.charge("visits", Cost.pure(0.4), key="a")
    two.charge("visits", Cost.pure(0.4), key="b")
    for ledger in (one, two):
        with refused("budget-exceeded"):
            ledger.charge("visits", Cost.pure(0.4))
        assert ledger.remaining("visits").epsilon == Fraction(1, 5)


def test_a_key_used_in_one_session_is_known_in_another(durable):
    one, two = durable.open(), durable.open()
    visits(one)
    two.charge("visits", Cost.pure(0.1))
    receipt = one.charge("visits", Cost.pure(0.9), key="k")
    assert two.charge("visits", Cost.pure(0.9), key="k") == receipt
    with refused("key-reused"):
        two.charge("visits", Cost.pure(0.1), key="k")


def test_two_accounts_use_the_same_key_in_two_sessions(durable):
    one, two = durable.open(), durable.open()
    for name in ("ana", "bob"):
        one.create_account(name, unit="patient_id", budget=Budget(epsilon=1))
    mine = one.charge("ana", HALF, key="k")
    theirs = two.charge("bob", HALF, key="k")
    for ledger in (one, two):
        assert ledger.charge("ana", HALF, key="k") == mine
        assert ledger.charge("bob", HALF, key="k") == theirs
    assert spent(one, "ana", "bob") == [Fraction(1, 2)] * 2


def test_a_refusal_is_decided_on_what_is_stored_now(durable):
    one, two = durable.open(), durable.open()
    visits(one)
    one.charge("visits", Cost.pure(1))
    with refused("budget-exceeded"):
        two.charge("visits", HALF)
    one.grow("visits", Budget(epsilon=2), statement="more", who="curator")
    two.charge("visits", HALF)
    one.refresh("visits", statement="new people", who="curator")
    two.charge("visits", Cost.pure(2))
    with refused("budget-exceeded"):
        one.charge("visits", HALF)


def test_a_draw_that_another_session_made_is_answered_from_store(durable):
    one, two = durable.open(), durable.open()
    visits(one)
    one.draw("visits", HALF, plan="p", compute=Draws())
    compute = Draws()
    assert two.draw("visits", HALF, plan="p", compute=compute).payload == b"answer 1"
    assert compute.receipts == []


def test_a_draw_lost_to_another_session_still_hands_out_one_answer(durable):
    one, two = durable.open(), durable.open()
    visits(one)

    def compute(_):
        two.draw("visits", HALF, plan="p", compute=lambda _: b"theirs")
        return b"mine"

    drawn = one.draw("visits", HALF, plan="p", compute=compute)
    assert (drawn.payload, drawn.fresh) == (b"theirs", False)
    assert spent(one, "visits") == 1


def test_a_seal_is_seen_by_every_session(durable):
    one, two = durable.open(), durable.open()
    visits(one)
    two.charge("visits", Cost.pure(0.1))
    one._writer.store.seal("the disk failed")
    for ledger in (one, two):
        with refused("ledger-sealed"):
            ledger.charge("visits", Cost.pure(0.1))
    third = durable.open()
    with refused("ledger-sealed"):
        third.charge("visits", Cost.pure(0.1))


def test_the_key_is_needed_and_must_be_the_right_one(durable):
    durable.open().close()
    with refused("ledger-key"):
        Ledger.open(durable.where, key=b"another key of 32 bytes, surely.")
    durable.key.rename(durable.key.with_suffix(".away"))
    with refused("ledger-key"):
        durable.open()


def test_a_file_that_lost_its_witness_takes_no_charges_and_a_server_may_have_new_clients(durable):
    with durable.open() as first:
        visits(first)
        first.witness.unlink()
    ledger = durable.open()
    if durable.kind == "sqlite":
        with refused("ledger-rolled-back"):
            ledger.charge("visits", HALF)
    else:  # every client has its own witness, and a new client has none yet
        ledger.charge("visits", HALF)


def test_a_missing_ledger_is_not_made_where_none_is_wanted(durable):
    with refused("not-a-ledger"):
        durable.open(create=False)


@contextmanager
def locked(place):
    """Hold the lock of the ledger's store as another process would, for half a minute at most."""
    done = threading.Event()
    taken = threading.Event()

    def hold():
        if place.kind == "sqlite":
            holder = sqlite3.connect(place.where, isolation_level=None)
            holder.execute("BEGIN IMMEDIATE")
        else:
            import psycopg

            holder = psycopg.connect(place.where)
            holder.execute(_TAKE_LOCK)
        taken.set()
        done.wait(30)
        holder.rollback()  # a server notices a closed connection only some time later
        holder.close()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    yield
    done.set()
    thread.join()


@pytest.mark.parametrize("wait", [0, 0.0001], ids=str)
def test_a_ledger_that_may_not_wait_does_not(durable, wait):
    ledger = durable.open(wait=wait)
    visits(ledger)
    with locked(durable), refused("ledger-locked"):
        ledger.charge("visits", HALF)
    ledger.charge("visits", HALF)


@pytest.mark.parametrize("wait", [0, 10**9, 10**300], ids=lambda wait: f"{wait:g}")
def test_every_waiting_time_is_accepted(everywhere, wait):
    ledger = everywhere.open(wait=wait)
    visits(ledger)
    ledger.charge("visits", HALF)


# exactness


def charge_dust(ledger, threads, grains=100_000):
    visits(ledger, Budget(epsilon=2))
    ledger.charge("visits", Cost.pure(1))
    dust = Cost.pure(1e-17)

    def work():
        for _ in range(grains // threads):
            ledger.charge("visits", dust)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert spent(ledger, "visits") == 1 + grains * Fraction(1, 10**17)
    assert ledger.remaining("visits").epsilon == 1 - grains * Fraction(1, 10**17)
    assert ledger.verify().ok


def test_grains_of_dust_cost_exactly_their_sum():
    """A ledger that adds doubles loses the first grain already: 1 + 1e-17 is 1 for them."""
    with Ledger.memory() as ledger:
        charge_dust(ledger, 1, grains=5_000)


@pytest.mark.long
def test_a_hundred_thousand_grains_of_dust_cost_exactly_their_sum():
    with Ledger.memory() as ledger:
        charge_dust(ledger, 1)


@pytest.mark.long
def test_a_hundred_thousand_grains_of_dust_cost_exactly_their_sum_on_disk(durable):
    charge_dust(durable.open(), 50)


def test_awkward_fractions_stay_bounded_and_are_never_undercounted(ledger):
    visits(ledger, Budget(epsilon=100))
    exact = Fraction(0)
    for i in range(40):
        epsilon = Fraction(1, 10**25 + 2 * i + 1)
        exact += epsilon
        ledger.charge("visits", Cost.pure(epsilon))
    kept = spent(ledger, "visits")
    assert exact <= kept <= exact * (1 + Fraction(1, 10**20))
    assert kept.denominator.bit_length() <= 1000
    assert ledger.verify().ok
