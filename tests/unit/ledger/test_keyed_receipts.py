"""A charge is found again by its key, for its own account alone."""

import sqlite3

import pytest

import tacit as tc


def test_each_account_finds_its_own_charge(tmp_path):
    with tc.Ledger.open(tmp_path / "x.ledger") as ledger:
        for name in ("visits", "other"):
            ledger.create_account(name, unit="patient_id", budget=tc.Budget(epsilon=1))
        receipts = [ledger.charge(name, tc.Cost.pure(0.5), key="q:1") for name in ("visits", "other")]
        head = ledger.head
        assert [ledger.keyed_receipt(name, "q:1") for name in ("visits", "other")] == receipts
        assert ledger.keyed_receipt("visits", "q:2") is None
        assert ledger.head == head


def test_an_edited_charge_is_refused(tmp_path):
    with tc.Ledger.open(tmp_path / "x.ledger") as ledger:
        ledger.create_account("visits", unit="patient_id", budget=tc.Budget(epsilon=1))
        ledger.charge("visits", tc.Cost.pure(0.5), key="q:1", who="ana")
        with sqlite3.connect(tmp_path / "x.ledger") as store:
            store.execute("DROP TRIGGER entries_stay")
            store.execute("UPDATE ledger_entries SET body = replace(body, 'ana', 'bob') WHERE seq = 2")
        with pytest.raises(tc.TacitError) as refused:
            ledger.keyed_receipt("visits", "q:1")
        assert refused.value.code == "ledger-tampered"
