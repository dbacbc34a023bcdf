"""A ledger file of schema 1, written by the first version, is read and continued by every later one."""

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from tacit.accounting import Budget, Cost
from tacit.errors import TacitError
from tacit.ledger import Head, Ledger

KEPT = Path(__file__).parents[2] / "data" / "ledger_schema_1"
END = Head(21, "603d7eb52df2c394e48a257f858812e7b4de9a48925ccb9d5e318dfddec4f312")


@pytest.fixture
def ledger(tmp_path):
    shutil.copytree(KEPT, tmp_path, dirs_exist_ok=True)
    with Ledger.open(tmp_path / "visits.ledger", create=False) as opened:
        yield opened


def test_the_kept_file_verifies_up_to_its_last_entry(ledger):
    assert ledger.head == END
    report = ledger.verify(witness=END)
    assert report.complete, report
    assert (report.entries, report.accounts, report.releases) == (21, 5, 4)
    assert ledger.verify(witness=ledger.witness).complete


def test_its_totals_are_what_they_were(ledger):
    spent = {account.name: account.spent for account in ledger.accounts()}
    assert spent["visits"].epsilon == Fraction(23, 24)
    assert spent["oncology"].epsilon == Fraction(17, 24)
    assert spent["ana"].epsilon == 0  # refreshed
    assert spent["scans"].rho == spent["trials"].rho == Fraction(1, 1800)
    assert ledger.account("visits").budget == Budget(epsilon=4)
    assert ledger.account("visits").version == 2
    assert ledger.account("oncology").labels == {"team": "oncology"}
    assert ledger.account("ana").per_charge == Budget(epsilon=0.5)


def test_its_log_holds_every_kind_of_entry(ledger):
    entries = ledger.history()
    assert {entry.kind for entry in entries} == {
        "open", "version", "grow", "refresh", "charge", "draw", "claim", "view", "release", "unseal",
    }  # fmt: skip
    assert entries[6].asked == "n = count"
    assert entries[5].cost == Cost.pure(Fraction(1, 3))
    assert [entry.hash for entry in entries][-1] == END.hash


def test_its_stored_releases_are_handed_out_again_and_nothing_is_drawn(ledger):
    def never(_):
        raise AssertionError

    first = ledger.stored_release("visits", "p1", version=1)
    assert first.payload == b"about 40"
    assert ledger.draw("visits", Cost.pure(0.25), plan="p1", compute=never).payload == b"about 50"
    gaussian = Cost.gaussian(sigma=30, sensitivity=1)
    assert ledger.draw("scans", gaussian, plan="p2", compute=never).payload == b'{"n":41}'
    assert ledger.stored_release("visits", "p3", version=1).payload == b"stored by hand"
    assert ledger.head == END


def test_its_keys_and_limits_still_hold(ledger):
    again = ledger.charge("ana", Cost.pure(Fraction(1, 3)), plan="p0", who="ana", purpose="trial", key="k0")
    assert again.head.count == 6
    for words, code in (
        (("ana", Cost.pure(0.6)), "charge-too-large"),
        (("visits", Cost.pure(3.1)), "budget-exceeded"),
    ):
        with pytest.raises(TacitError, match=f"code: {code}"):
            ledger.charge(*words)
    assert ledger.head == END


def test_its_log_goes_on(ledger):
    receipt = ledger.draw("ana", Cost.pure(0.5), plan="p9", compute=lambda _: b"new").receipt
    assert receipt.head.count == 22
    assert ledger.verify(witness=END).complete
    assert ledger.verify(witness=receipt).complete
    assert ledger.account("visits").spent.epsilon == Fraction(35, 24)
