"""What a refusal of the ledger carries: words without Python, and a fix as data for every surface."""

import re
import sqlite3
from datetime import date

import pytest

from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.fixes import Choose, Code, Declare, Do, Either, Say, Set
from tacit.ledger import Ledger

PYTHON = re.compile(r"\w\(|\w=|\w\.\w+\(|\bNone\b|\[")


def refusal(act):
    with pytest.raises(TacitError) as caught:
        act()
    error = caught.value
    assert not PYTHON.search(error.what.partition(", got ")[0]), error.what
    assert not PYTHON.search(error.why), error.why
    assert str(error.fix)
    for one in error.fix.fixes if isinstance(error.fix, Either) else (error.fix,):
        assert isinstance(one, Code | Set | Declare | Choose | Do) or not PYTHON.search(one.text), one
    return error


@pytest.fixture
def ledger():
    with Ledger.memory() as opened:
        opened.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
        yield opened


def test_a_larger_budget_is_recorded_and_the_fix_holds_both(ledger):
    new = Budget(epsilon=2)
    error = refusal(lambda: ledger.create_account("visits", unit="patient_id", budget=new))
    assert error.what == "the budget of account 'visits' is epsilon 1, not epsilon 2"
    assert error.fix == Do("grow-budget", account="visits", old=Budget(epsilon=1), new=new)
    assert str(error.fix) == "ledger.grow('visits', Budget(epsilon=2), statement=..., who=...)"


@pytest.mark.parametrize("new", [Budget(epsilon=0.5), Budget(rho=3), Budget(rho=3, delta=1e-6)], ids=repr)
def test_a_budget_that_is_smaller_or_of_another_kind_cannot_grow(ledger, new):
    error = refusal(lambda: ledger.create_account("visits", unit="patient_id", budget=new))
    assert error.fix == Either(Set(budget=Budget(epsilon=1)), Say("use another name"))
    refusal(lambda: ledger.grow("visits", new, statement="why not", who="curator"))


@pytest.mark.parametrize(
    ("other", "old", "words"),
    [
        ({"unit": "visit_id"}, {"unit": "patient_id"}, "the unit of account 'visits' is 'patient_id', not"),
        ({"adjacency": "replace"}, {"adjacency": "add/remove"}, "'add/remove', not 'replace'"),
        ({"per_charge": Budget(epsilon=0.1)}, {"per_charge": None}, "largest single charge of account"),
        ({"expires": date(2100, 1, 1)}, {"expires": None}, "is none, not 2100-01-02 00:00:00+00:00"),
    ],
)  # fmt: skip
def test_a_fact_that_differs_is_named_with_its_old_value(ledger, other, old, words):
    facts = {"unit": "patient_id", "budget": Budget(epsilon=1), **other}
    error = refusal(lambda: ledger.create_account("visits", **facts))
    assert words in error.what
    assert error.fix == Either(Set(**old), Say("use another name"))


def test_a_level_below_is_told_what_the_level_above_protects(ledger):
    error = refusal(
        lambda: ledger.create_account("ana", parent="visits", unit="visit", budget=Budget(epsilon=1))
    )
    assert error.fix == Set(unit="patient_id", adjacency="add/remove")


def test_an_account_elsewhere_is_replaced_by_one_below_the_dataset(ledger):
    ledger.create_account("ana", unit="patient_id", budget=Budget(epsilon=1))
    error = refusal(
        lambda: ledger.draw("ana", Cost.pure(1), plan="p", compute=lambda _: b"", dataset="visits")
    )
    assert error.fix == Do("choose-account", account="ana-visits", dataset="visits")


def test_accounts_limits_and_keys(ledger):
    ledger.create_account("small", parent="visits", budget=Budget(epsilon=1), per_charge=Budget(epsilon=0.1))
    ledger.create_account("old", parent="visits", budget=Budget(epsilon=1), expires=date(2020, 1, 1))
    ledger.charge("visits", Cost.pure(0.1), key="k")
    assert refusal(lambda: ledger.account("nobody")).fix == Do("create-account", account="nobody")
    assert "epsilon 0.1 in one charge" in refusal(lambda: ledger.charge("small", Cost.pure(0.2))).what
    assert "expired at 2020-01-02" in refusal(lambda: ledger.charge("old", Cost.pure(0.2))).what
    refusal(lambda: ledger.charge("visits", Cost.pure(0.2), key="k"))
    refusal(lambda: ledger.charge("visits", 0.5))
    refusal(lambda: ledger.create_account(" x", unit="u", budget=Budget(epsilon=1)))
    refusal(lambda: ledger.create_account("x", unit="u", budget=1))
    refusal(lambda: ledger.create_account("x", budget=Budget(epsilon=1)))
    refusal(lambda: ledger.create_account("x", unit="u", budget=Budget(epsilon=1), expires=7))
    refusal(lambda: ledger.charge("visits", Cost.pure(0.1), who=7))
    refusal(lambda: ledger.verify(witness=7))
    receipt = ledger.charge("visits", Cost.pure(0.1))
    ledger.claim(receipt)
    refusal(lambda: ledger.claim(receipt))
    refusal(lambda: ledger.claim("receipt"))
    refusal(lambda: ledger.store_release(receipt, "text"))
    refusal(lambda: ledger.draw("visits", Cost.pure(0.1), plan="p", compute=lambda _: 1 / 0))


def test_a_sealed_ledger_says_how_it_is_unsealed(ledger):
    ledger._writer.store.seal("the disk failed")
    error = refusal(lambda: ledger.charge("visits", Cost.pure(0.1)))
    assert error.fix == Do("unseal-ledger", statement="the disk was checked")


def test_a_closed_ledger_says_how_it_is_opened(tmp_path):
    ledger = Ledger.open(tmp_path / "a.ledger")
    ledger.close()
    assert refusal(lambda: ledger.head).fix == Do("open-ledger", path=str(tmp_path / "a.ledger"))


def test_a_missing_ledger_says_that_it_can_be_made(tmp_path):
    path = tmp_path / "a.ledger"
    error = refusal(lambda: Ledger.open(path, create=False))
    assert error.fix == Do("open-ledger", path=str(path), create=True)
    assert str(error.fix) == f"Ledger.open({str(path)!r})"


def test_a_lock_is_waited_for(tmp_path):
    path = tmp_path / "a.ledger"
    with Ledger.open(path, wait=0) as ledger:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        error = refusal(lambda: ledger.create_account("x", unit="u", budget=Budget(epsilon=1)))
        holder.close()
    assert error.fix == Either(Say("try again"), Do("wait-for-lock", seconds=30))


def test_key_and_witness_are_given_by_file(tmp_path):
    path = tmp_path / "a.ledger"
    with Ledger.open(path) as ledger:
        ledger.create_account("x", unit="u", budget=Budget(epsilon=1))
    assert refusal(lambda: Ledger.open(path, key=b"another key of 32 bytes, surely.")).fix == Do(
        "give-key-file", path="the/file/it/was/made/with.key"
    )
    assert refusal(lambda: Ledger.open(path, witness=tmp_path)).fix == Do(
        "give-witness-file", path="a/file/you/may/write.witness"
    )
    (tmp_path / "a.ledger.key").unlink()
    assert refusal(lambda: Ledger.open(path)).fix == Either(
        Say(f"restore {path}.key from your backup"), Do("give-key-file", path="where/it/is.key")
    )
    assert refusal(lambda: Ledger.open(tmp_path / "b.ledger", key=b"short")).fix == Set(key="hospital.key")
    (tmp_path / "w").touch()
    with Ledger.memory() as other:
        refusal(lambda: other.verify(witness=tmp_path / "w"))
        refusal(lambda: other.verify(witness=tmp_path / "nowhere"))


def test_a_lost_ledger_is_restored(tmp_path):
    path = tmp_path / "a.ledger"
    with Ledger.open(path) as ledger:
        ledger.create_account("x", unit="u", budget=Budget(epsilon=1))
    path.unlink()
    error = refusal(lambda: Ledger.open(path))
    assert error.code == "ledger-rolled-back"
    assert error.fix.fixes[0] == Do("restore-ledger")
    (tmp_path / "notes.txt").write_text("hello\n" * 200)
    what = refusal(lambda: Ledger.open(tmp_path / "notes.txt")).what
    assert what.endswith("is not a Tacit ledger; it was left unchanged")
