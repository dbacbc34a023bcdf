"""Certificates agree with the ledgers that paid, of one dataset and of several."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import tacit as tc
from tacit import TacitError


def members(ledgers):
    return [
        tc.protect(
            pd.DataFrame({"pid": range(50)}),
            name=name,
            unit="pid",
            budget=tc.Budget(epsilon=5),
            ledger=ledger,
        )
        for name, ledger in zip(("north", "south"), ledgers, strict=True)
    ]


@pytest.mark.parametrize("disjoint", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("epsilon", [1, {"north": 0.5, "south": 1}, [0.25, 0.75]])
def test_the_certificate_of_a_consortium_verifies(disjoint, shared, epsilon, tmp_path):
    one = tc.Ledger.memory()
    ledgers = [one, one] if shared else [one, tc.Ledger.memory()]
    plan = tc.consortium(members(ledgers), disjoint=disjoint).agg(n=tc.count()).plan(epsilon=epsilon)
    certificate = plan.release().certificate
    assert certificate.problems(*ledgers) == []
    assert [member.problems(*ledgers) for member in certificate.members] == [[], []]
    certificate.save(tmp_path / "c.json")
    assert tc.Certificate.load(tmp_path / "c.json").matches(*ledgers)
    if not shared:
        assert not certificate.matches(ledgers[0])
    for change in ({"cost": tc.Cost.pure(0.01).to_json()}, {"disjoint": not disjoint}):
        forged = tc.Certificate({**certificate.fields, **change})
        assert "the costs of the members do not add up" in forged.problems(*ledgers)
    north_alone = {**certificate.fields, "members": certificate.fields["members"][:1]}
    cheaper = {"disjoint": True, "cost": certificate.members[0].fields["cost"]}
    for change in (north_alone, cheaper, {"plan": "0" * 64}):
        forged = tc.Certificate({**certificate.fields, **change})
        assert forged.problems(*ledgers) or forged == certificate
    inner = json.loads(certificate.to_json())
    inner["members"][1]["ledger"]["entry"] = 1
    assert "south" in tc.Certificate(inner).problems(*ledgers)[0]


def test_members_may_pay_different_amounts():
    ledgers = [tc.Ledger.memory(), tc.Ledger.memory()]
    both = tc.consortium(members(ledgers), disjoint=True)
    plan = both.agg(n=tc.count()).plan(epsilon={"north": 0.5, "south": 1})
    assert plan.cost.epsilon(delta=0) == 1
    release = plan.release()
    spent = [book.account(name).spent for book, name in zip(ledgers, ("north", "south"), strict=True)]
    assert [float(one.epsilon) for one in spent] == [0.5, 1]
    equal = both.agg(n=tc.count()).plan(epsilon=[1, 1])
    assert plan.forecast[0].error > equal.forecast[0].error
    assert release.low <= 100 <= release.high or abs(release.value - 100) < 200
    overlapping = tc.consortium(members([tc.Ledger.memory()] * 2)).agg(n=tc.count())
    assert overlapping.plan(epsilon=[0.5, 1]).cost.epsilon(delta=0) == 1.5
    for wrong in ({"north": 1}, [1], [1, 2, 3], {"north": 1, "east": 1}):
        with pytest.raises(TacitError) as refused:
            both.agg(n=tc.count()).plan(epsilon=wrong)
        assert refused.value.code == "bad-parameter"


def test_a_member_that_was_asked_alone_answers_from_its_store():
    ledgers = [tc.Ledger.memory(), tc.Ledger.memory()]
    north, south = members(ledgers)
    alone = north.agg(n=tc.count()).plan(epsilon=1).release()
    tc.consortium([north, south], disjoint=True).agg(m=tc.count()).plan(epsilon=1).release()
    assert float(north.remaining.epsilon) == 4
    assert alone.certificate.matches(ledgers[0])


@pytest.mark.parametrize("name", ["scale", "sensitivity", "mechanism", "statistic", "step"])
def test_an_edited_mechanism_does_not_verify(name):
    ledger = tc.Ledger.memory()
    certificate = (
        members([ledger, tc.Ledger.memory()])[0].agg(n=tc.count()).plan(epsilon=1).release().certificate
    )
    assert certificate.matches(ledger)
    edited = json.loads(certificate.to_json())
    edited["mechanisms"][0][name] = "9"
    assert tc.Certificate(edited).problems(ledger) == [
        "the dataset, the question or a mechanism does not match the plan"
    ]


@pytest.mark.parametrize("fields", [{"members": 5}, {"members": [5]}, {"extra": 1}, {"schema": "x"}])
def test_a_document_with_other_fields_is_not_a_certificate(fields):
    ledger = tc.Ledger.memory()
    certificate = (
        members([ledger, tc.Ledger.memory()])[0].agg(n=tc.count()).plan(epsilon=1).release().certificate
    )
    with pytest.raises(TacitError) as refused:
        tc.Certificate({**certificate.fields, **fields})
    assert refused.value.code == "bad-certificate"


def test_a_certificate_of_an_earlier_version_is_read_but_says_what_it_lacks():
    ledger = tc.Ledger.memory()
    certificate = (
        members([ledger, tc.Ledger.memory()])[0].agg(n=tc.count()).plan(epsilon=1).release().certificate
    )
    early = {k: v for k, v in certificate.fields.items() if k != "question"} | {
        "schema": "tacit/certificate/1"
    }
    assert "earlier version" in tc.Certificate(early).problems(ledger)[0]
