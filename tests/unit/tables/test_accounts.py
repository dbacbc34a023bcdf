"""Who pays for a question: the dataset's own account, in this session and the next."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest

import tacit as tc
from asking import ledger_of, visits
from tacit import TacitError


def test_a_new_session_does_not_reset_the_budget(tmp_path):
    path = tmp_path / "hospital.ledger"
    for expected in (2.5, 2.5):
        data = visits(ledger=path, budget=tc.Budget(epsilon=3))
        value = data.agg(n=tc.count()).plan(epsilon=0.5).release().value
        assert float(data.remaining.epsilon) == expected
        again = data.agg(n=tc.count()).plan(epsilon=0.5).release().value
        assert value == again
        ledger_of(data).close()


def test_a_question_is_paid_from_the_dataset_s_own_budget_whoever_else_pays():
    """Another account of the ledger, however rich, cannot stand in for the dataset's."""
    ledger = tc.Ledger.memory()
    frame = pd.DataFrame({"pid": range(1000)})
    data = tc.protect(frame, unit="pid", name="visits", budget=tc.Budget(epsilon=1), ledger=ledger)
    ledger.create_account("other", unit="pid", budget=tc.Budget(epsilon=10**6))
    ledger.create_account("team", parent="visits", budget=tc.Budget(epsilon=0.6))
    for epsilon in (0.5, 50_000):
        with pytest.raises(TacitError) as refused:
            data.agg(n=tc.count()).plan(epsilon=epsilon).release(account="other")
        assert refused.value.code == "account-differs"
    assert ledger.account("other").spent.epsilon == ledger.account("visits").spent.epsilon == 0
    data.agg(n=tc.count()).plan(epsilon=0.5).release(account="team")
    assert ledger.account("team").spent.epsilon == ledger.account("visits").spent.epsilon == Fraction(1, 2)
    with pytest.raises(TacitError):  # stored by now, and still not for an account from elsewhere
        data.agg(n=tc.count()).plan(epsilon=0.5).release(account="other")
