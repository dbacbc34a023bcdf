"""Certificates agree with the ledgers that paid, of one dataset and of several."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

import tacit as tc
from tacit import TacitError
from tacit.core import Plan, members_of
from tacit.mechanisms import ResidualNoise, cost_is_too_small


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


def leaves(value, path=()):
    """Yield the path and the value of every leaf of a JSON document."""
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for step, one in inner:
            yield from leaves(one, (*path, step))
    else:
        yield path, value


def edits(value):
    """Return other values for a leaf: of the same kind, of another, and equal ones that are not the same."""
    match value:
        case bool():
            return [not value, int(value), None]
        case str():
            return [value + "0", "1/3", "", None]
        case int() | float():
            return [value + 1, float(value) if isinstance(value, int) else str(value), str(value), None]
    return ["x", 0]


def edited(fields, path, value):
    forged = place = json.loads(json.dumps(fields))
    *way, last = path
    for step in way:
        place = place[step]
    place[last] = value
    return forged


def found(fields, *ledgers):
    try:
        return tc.Certificate(fields).problems(*ledgers)
    except TacitError as refusal:
        assert refusal.code == "bad-certificate"
        return [refusal.what]


def assert_every_edit_is_found(certificate, *ledgers):
    fields = json.loads(certificate.to_json())
    assert found(fields, *ledgers) == []
    tried = [(path, value, other) for path, value in leaves(fields) for other in edits(value)]
    assert len(tried) > 60
    for path, value, other in tried:
        if json.dumps(other) != json.dumps(value):
            assert found(edited(fields, path, other), *ledgers), (path, value, other)
    for path in {path[:-1] for path, _ in leaves(fields)}:  # additions and omissions, at every level
        place = fields
        for step in path:
            place = place[step]
        if isinstance(place, dict):
            assert found(edited(fields, (*path, "added"), 1), *ledgers), path
            for name in place:
                forged = json.loads(json.dumps(fields))
                inner = forged
                for step in path:
                    inner = inner[step]
                del inner[name]
                assert found(forged, *ledgers), (*path, name)
        elif len(place) > 1:
            assert found(edited(fields, path, place[:-1]), *ledgers), path


def test_every_edit_of_a_certificate_is_found():
    ledger = tc.Ledger.memory()
    north, _ = members([ledger, tc.Ledger.memory()])
    ledger.create_account("team", parent="north", budget=tc.Budget(epsilon=5))
    plan = north.agg(n=tc.count(), m=tc.count()).plan(epsilon=1)
    for account in (None, "team"):  # who draws, and who sees what is stored
        assert_every_edit_is_found(plan.release(account=account).certificate, ledger)


@pytest.mark.parametrize("disjoint", [True, False])
def test_every_edit_of_a_consortium_s_certificate_is_found(disjoint):
    ledgers = [tc.Ledger.memory(), tc.Ledger.memory()]
    both = tc.consortium(members(ledgers), disjoint=disjoint)
    certificate = both.agg(n=tc.count()).plan(epsilon=[0.5, 1]).release().certificate
    assert certificate.fields["promised"] == {"epsilon": "1" if disjoint else "3/2"}
    assert_every_edit_is_found(certificate, *ledgers)
    swapped = json.loads(certificate.to_json())
    swapped["members"].reverse()
    assert found(swapped, *ledgers)
    assert found({**swapped, "members": []}, *ledgers)
    assert found({**swapped, "members": [json.loads(certificate.to_json())]}, *ledgers)
    own = json.loads(certificate.to_json())
    assert found({**own, "blocks": ["2026-01-03"]}, *ledgers)
    claims = {"dataset": {"name": "all"}, "mechanisms": [], "filter": [], "ledger": {}, "question": ""}
    assert found({**own, **claims, "schema": "tacit/certificate/1"}, *ledgers)


def test_a_stored_release_keeps_the_certificate_that_it_was_drawn_with(monkeypatch):
    ledger = tc.Ledger.memory()
    north, _ = members([ledger, tc.Ledger.memory()])
    first = north.agg(n=tc.count()).plan(epsilon=1)
    drawn = first.release().certificate
    monkeypatch.setattr("tacit.core._certificate._software", lambda: "tacit 99")
    other = north.agg(n=tc.count()).plan(within=first.forecast[0].error, confidence=0.95)
    if other.hash == first.hash:
        assert other.release().certificate.digest == drawn.digest
    renamed = north.agg(m=tc.count()).plan(epsilon=1).release().certificate
    assert (renamed.digest, renamed.fields["ledger"]) == (drawn.digest, drawn.fields["ledger"])
    ledger.create_account("team", parent="north", budget=tc.Budget(epsilon=5))
    seen = first.release(account="team").certificate
    assert seen.digest == drawn.digest
    assert seen.fields["filter"] == ["team"]
    assert seen.fields["software"] != "tacit 99"
    assert seen.matches(ledger)


def test_a_release_stored_by_an_older_version_is_answered_and_its_certificate_verifies():
    """Older versions kept the noisy integers alone, and no digest in the entry."""
    ledger = tc.Ledger.memory()
    north, _ = members([ledger, tc.Ledger.memory()])
    plan = north.agg(n=tc.count()).plan(epsilon=1)
    ledger.draw("north", plan.cost, plan=plan.hash, compute=lambda _: b'{"noisy": [[[40]]]}', dataset="north")
    release = plan.release()
    assert release.value == 40
    assert float(north.remaining.epsilon) == 4
    assert release.certificate.problems(ledger) == []
    ledger.create_account("team", parent="north", budget=tc.Budget(epsilon=5))
    assert plan.release(account="team").certificate.problems(ledger) == []


def test_a_certificate_is_checked_without_reading_the_log(monkeypatch):
    ledger = tc.Ledger.memory()
    north, _ = members([ledger, tc.Ledger.memory()])
    certificate = north.agg(n=tc.count()).plan(epsilon=1).release().certificate
    for reader in ("history", "export", "verify"):
        monkeypatch.setattr(tc.Ledger, reader, None)
    for reader in ("entries", "entries_between", "accounts", "names_after", "releases"):
        monkeypatch.setattr(f"tacit.ledger.stores._memory.MemoryStore.{reader}", None)
    assert certificate.problems(ledger) == []


def test_a_plan_passes_its_key_on_and_each_member_pays_once():
    ledgers = [tc.Ledger.memory(), tc.Ledger.memory()]
    north, south = members(ledgers)
    plan = tc.consortium([north, south], disjoint=True).agg(n=tc.count()).plan(epsilon=1)
    assert plan.release(key="request-17").value == plan.release(key="request-17").value
    keys = [entry.key for ledger in ledgers for entry in ledger.history() if entry.kind == "draw"]
    assert keys == ["request-17"] * 2
    with pytest.raises(TacitError) as refused:
        north.agg(n=tc.count()).plan(epsilon=2).release(key="request-17")
    assert refused.value.code == "key-reused"
    assert float(north.remaining.epsilon) == 4
    ledgers[0].create_account("team", parent="north", budget=tc.Budget(epsilon=5))
    north.agg(n=tc.count()).plan(epsilon=2).release(key="request-17", account="team")  # a key of its own
    assert float(north.remaining.epsilon) == 2


def test_the_certificate_of_a_later_version_is_right_whoever_pays():
    ledger = tc.Ledger.memory()
    frame = pd.DataFrame({"pid": range(50)})
    how = {"name": "north", "unit": "pid", "budget": tc.Budget(epsilon=5), "ledger": ledger}
    old = tc.protect(frame, **how)
    ledger.create_account("team", parent="north", budget=tc.Budget(epsilon=5))
    new = tc.protect(frame, **how, version=2)
    first = new.agg(n=tc.count()).plan(epsilon=1).release()
    again = new.agg(n=tc.count()).plan(epsilon=1).release(account="team")
    assert (first.value, float(new.remaining.epsilon)) == (again.value, 4)
    late = old.agg(n=tc.count()).plan(epsilon=1).release()  # a session that still has the old data
    assert [one.certificate.problems(ledger) for one in (first, again, late)] == [[], [], []]


def test_a_certificate_prints_as_a_short_page():
    data = members([tc.Ledger.memory(), tc.Ledger.memory()])
    certificate = data[0].agg(n=tc.count()).plan(epsilon=0.25).release().certificate
    for page in (repr(certificate), str(certificate)):
        assert "Certificate for north" in page
        assert "each pid; neighbours: add/remove" in page
        assert "epsilon 0.25" in page
        assert "north, with entry" in page
        assert "{" not in page
        assert len(page.splitlines()) < 16
    assert "<table" in certificate._repr_html_()
    both = tc.consortium(data, disjoint=False).agg(n=tc.count()).plan(epsilon=1).release().certificate
    assert "north + south" in repr(both)
    assert repr(both).count("paid by") == 2


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": None}, {"promised": 7}, {"promised": {"epsilon": "1/0"}}, {"mechanisms": "x"},
        {"ledger": None, "filter": None}, {"ledger": {}}, {"audit": 3}, {"dataset": {"name": "\x1b[2J" * 99}},
        {"filter": {"a": 1}}, {"plan": ["x" * 999]},
    ],
)  # fmt: skip
def test_the_page_of_an_edited_certificate_is_harmless(change):
    [data, _] = members([tc.Ledger.memory(), tc.Ledger.memory()])
    honest = data.agg(n=tc.count()).plan(epsilon=1).release().certificate
    page = repr(tc.Certificate({**honest.fields, **change}))
    assert "\x1b" not in page
    assert max(map(len, page.splitlines())) < 400


def test_what_a_guarantee_assumes_stands_on_the_page_and_cannot_be_taken_out():
    ledger = tc.Ledger.memory()
    data = members([ledger, ledger])[0]
    plan = data.agg(n=tc.count()).plan(epsilon=1)
    [member] = members_of(plan)
    [step] = member.task.steps
    assumed = replace(step, label={**step.label, "assumes": "no patient has two names"})
    task = replace(member.task, steps=(assumed,))
    promised = Plan.of(data, task, promised=plan.promised)
    assert promised.hash != plan.hash
    certificate = promised.release().certificate
    assert "no patient has two names" in str(certificate)
    assert certificate.matches(ledger)
    fields = json.loads(json.dumps(certificate.fields))
    del fields["mechanisms"][0]["assumes"]
    assert not tc.Certificate(fields).matches(ledger)


class CheapResiduals(ResidualNoise):
    """A broken twin: the noise of one cost, and a document that states a tenth of it."""

    @property
    def cost(self):
        return tc.Cost.zcdp(self.rho / 10, adjacency=self.adjacency)


def forged(mechanism):
    """The same mechanism as its dishonest author states it: the cost alone is another."""
    match mechanism:
        case ResidualNoise():
            sigmas = dict(zip(mechanism.sets, mechanism.sigmas, strict=True))
            return CheapResiduals(mechanism.sizes, sigmas, rows=mechanism.rows, adjacency=mechanism.adjacency)
        case _:
            stated = tc.Cost.zcdp(mechanism.cost.spend.rho / 10, adjacency=mechanism.adjacency)
            document = mechanism.to_json() | {"cost": stated.to_json()}
            if "noise" in document:
                document["noise"] = document["noise"] | {"cost": stated.to_json()}
            return SimpleNamespace(cost=stated, release=mechanism.release, to_json=lambda: document)


WORKLOADS = {
    "cross tables": lambda data: data.crosstabs(["g", "h"], 2),
    "ranges": lambda data: data.ranges("x", bins=4),
    "levels of a tree": lambda data: data.hierarchy(["part", "g"], tree=[("n", "a"), ("s", "b")]),
    "counts": lambda data: data.group_by("g").agg(n=tc.count(), s=tc.sum("x")),
}


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize("goal", [{"rho": 0.5}, {"epsilon": 1}], ids=str)
@pytest.mark.parametrize("name", WORKLOADS)
def test_the_cost_of_a_mechanism_is_worked_out_again(name, goal, adjacency):
    frame = pd.DataFrame({"pid": [1, 1, 2], "g": list("aba"), "h": list("cdd"), "x": [1.0, 2.0, 3.0]})
    data = tc.protect(
        frame, unit="pid", name="d", limits={"rows": 2}, keys={"g": ["a", "b"], "h": ["c", "d", "e"]},
        bounds={"x": (0, 4)}, budget=tc.Budget(epsilon=50, delta=1e-3), ledger=(ledger := tc.Ledger.memory()),
        adjacency=adjacency,
    )  # fmt: skip
    plan = WORKLOADS[name](data).plan(**goal)
    assert plan.release().certificate.problems(ledger) == []
    [member] = members_of(plan)
    steps = tuple(replace(step, mechanism=forged(step.mechanism)) for step in member.task.steps)
    task = replace(member.task, steps=steps)
    cheap = Plan.of(data, task, promised=plan.promised)
    assert cheap.cost.spend.rho < plan.cost.spend.rho / 2
    problems = cheap.release().certificate.problems(ledger)
    assert "the cost of mechanism 1 does not follow from its parameters" in problems


def test_documents_that_no_mechanism_writes_are_not_believed():
    law = ResidualNoise((2, 3), {(): 4, (0,): 6}).to_json()
    assert not cost_is_too_small(law, "add/remove")
    assert cost_is_too_small(law, "replace")  # the same noise, and a cost for other neighbours
    hidden = {name: value for name, value in law.items() if name != "sigmas"}
    for change in ({"sets": 2, "sigmas_sha256": "0"}, {"sigmas": [[[0], "9"], [[0], "6"]]}, {"sigmas": 3}):
        with pytest.raises((TypeError, ValueError)):
            cost_is_too_small(hidden | change, "add/remove")
    many = {**hidden, "sets": 2001, "sigmas_sha256": "0"}
    assert not cost_is_too_small(many, "add/remove")  # its noise is not in the document
