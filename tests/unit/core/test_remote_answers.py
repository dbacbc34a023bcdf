"""Stored answers without a charge, and plans whose ledger is a service elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import tacit as tc
from support.asking import ledger_of, visits
from tacit import TacitError
from tacit.core import Plan


def test_a_stored_answer_costs_and_records_nothing():
    data = visits()
    plan = data.agg(n=tc.count()).plan(epsilon=1)
    assert plan.stored() is None
    answer = plan.release()
    before = ledger_of(data).head
    found = plan.stored()
    assert found.to_json() == answer.to_json()
    assert ledger_of(data).head == before


def test_an_account_sees_only_what_it_has_paid_for():
    data = visits()
    ledger_of(data).create_account("ana", parent="visits", budget=tc.Budget(epsilon=1))
    plan = data.agg(n=tc.count()).plan(epsilon=1)
    plan.release()
    assert plan.stored(account="ana") is None
    paid = plan.release(account="ana")
    assert plan.stored(account="ana").value == paid.value
    with pytest.raises(TacitError) as caught:
        plan.stored(account="ben")
    assert caught.value.code == "unknown-account"


def test_a_stored_answer_is_shown_as_the_plan_says():
    data = visits()
    data.sql("SELECT COUNT(*) AS n FROM visits").plan(epsilon=1).release()
    found = data.sql("SELECT COUNT(*) * 2 AS twice FROM visits").plan(epsilon=1).stored()
    assert list(found.columns) == ["twice"]


def test_members_of_a_consortium_must_all_have_paid():
    north, south = visits(name="north"), visits(name="south")
    plan = tc.consortium([north, south], disjoint=True).agg(n=tc.count()).plan(epsilon=1)
    north.agg(n=tc.count()).plan(epsilon=1).release()
    assert plan.stored() is None
    answer = plan.release()
    assert plan.stored().to_json() == answer.to_json()


class FarLedger:
    """A service: it rebuilds the plan from its document, as text, and answers with the release's document."""

    def __init__(self, data):
        self.data, self.asked = data, []

    def answer(self, plan, *, account, purpose, key, stored=False):
        document = json.loads(json.dumps(plan))
        self.asked.append((account, purpose, key, stored))
        rebuilt = self.data.plan_from(document)
        found = rebuilt.stored() if stored else rebuilt.release(purpose=purpose, key=key)
        return None if found is None else json.loads(json.dumps(found.to_json()))


def far(data):
    service = FarLedger(data)
    return replace(data, _ledger=service), service


def test_a_plan_of_a_service_is_answered_there():
    data = visits()
    remote, service = far(data)
    plan = remote.sql("SELECT hospital, COUNT(*) AS n FROM visits GROUP BY hospital ORDER BY n").plan(
        epsilon=1
    )
    assert plan.stored() is None
    release = plan.release(purpose="report", key="one", account="mine")
    assert service.asked == [(None, "", None, True), ("mine", "report", "one", False)]
    assert release.certificate.plan == plan.hash
    assert repr(release) == repr(data.plan_from(plan.to_json()).stored())
    assert plan.stored().to_json() == release.to_json()


def test_the_answer_to_another_plan_is_refused():
    data = visits()
    remote, service = far(data)
    other = data.agg(n=tc.count()).plan(epsilon=2).release().to_json()
    service.answer = lambda *_, **__: other
    with pytest.raises(TacitError, match="answer to another question") as caught:
        remote.agg(n=tc.count()).plan(epsilon=1).release()
    assert caught.value.code == "bad-release"


@pytest.mark.parametrize("answer", [None, {}, {"schema": "tacit/release/1"}, []])
def test_what_is_no_release_is_refused(answer):
    remote, service = far(visits())
    service.answer = lambda *_, **__: answer
    with pytest.raises(TacitError) as caught:
        remote.agg(n=tc.count()).plan(epsilon=1).release()
    assert caught.value.code == "bad-release"


def test_the_service_says_who_asks():
    remote, service = far(visits())
    with pytest.raises(TacitError, match="who must be omitted"):
        remote.agg(n=tc.count()).plan(epsilon=1).release(who="ana")
    assert service.asked == []


def test_a_dataset_of_a_service_is_asked_alone():
    remote, service = far(visits(name="north"))
    plans = [d.agg(n=tc.count()).plan(epsilon=1) for d in (remote, visits(name="south"))]
    together = Plan.together(plans, disjoint=True)
    for call in (together.release, together.stored):
        with pytest.raises(TacitError, match="cannot be asked together"):
            call()
    assert service.asked == []
