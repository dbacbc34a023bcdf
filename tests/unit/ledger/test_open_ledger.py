"""The argument ``ledger=`` of every field: a ledger, where one is, or nothing."""

from pathlib import Path

import pytest

from tacit.accounting import Budget
from tacit.errors import TacitError
from tacit.fixes import Set
from tacit.ledger import Ledger, open_ledger


def test_a_ledger_is_returned_as_it_is():
    with Ledger.memory() as ledger:
        assert open_ledger(ledger) is ledger


@pytest.mark.parametrize("given", [None, ":memory:"])
def test_nothing_is_a_new_ledger_in_memory(given):
    with open_ledger(given) as one, open_ledger(given) as other:
        assert one.name == ":memory:"
        assert one.id != other.id


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_opened_and_made_if_it_is_missing(tmp_path, kind):
    with open_ledger(kind(tmp_path / "a.ledger")) as ledger:
        ledger.create_account("visits", unit="patient_id", budget=Budget(epsilon=1))
    with open_ledger(kind(tmp_path / "a.ledger")) as again:
        assert again.account("visits").unit == "patient_id"


@pytest.mark.parametrize("given", [7, b"a.ledger", ["a.ledger"], Ledger, ""], ids=repr)
def test_anything_else_is_refused(given):
    with pytest.raises(TacitError) as caught:
        open_ledger(given)
    assert caught.value.code == "bad-parameter"
    if given != "":
        assert caught.value.fix == Set(ledger="study.ledger")
