"""Declaring a dataset and changing its policy: everything is checked, then written in one transaction.

Curators see the sources that they may protect: their names, and the names and types of their columns; never a
row.

What a crash leaves. The runner checks a policy against a ledger in memory, so that before the last step there
is no account. The last step is one transaction of the service's database; inside it, after every row was
accepted and before the commit, the ledger opens the account. A crash before that leaves nothing. A crash
between the ledger's commit and the database's leaves an account that no dataset names: nobody can be charged
there, because questions are charged only to accounts that the database knows. Declaring the dataset again
with the same unit, adjacency and budget finds that account (`Ledger.create_account` opens nothing twice);
with other facts the name stays taken and another name is needed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.ledger import source_places
from tacit.parameters import Integer
from tacit.service._bodies import read_field
from tacit.service._operations import Answer
from tacit.service._refusals import not_found
from tacit.service._times import now_text
from tacit.service.curation._amounts import budget_from, budget_text
from tacit.service.curation._policies import changed_policy, declared_policy
from tacit.service.curation._roles import changed_meanwhile, needs_role, roles_now

if TYPE_CHECKING:
    from tacit.service._database import Change, Database
    from tacit.service._operations import ServiceCall
    from tacit.service._service import Service
    from tacit.service._settings import ListedSource, ServiceSettings
    from tacit.service.curation._policies import DatasetDeclared, PolicyChanged

_VERSIONS_GROW = "each version has its own stored answers, and versions only grow"


def list_sources(call: ServiceCall) -> dict[str, Any]:
    """List the sources that the operator offers: names and kinds. Where they are is the operator's affair."""
    sources = call.service.settings.sources
    return {"sources": [{"name": one.name, "kind": one.kind} for _, one in sorted(sources.items())]}


async def describe_source(call: ServiceCall) -> dict[str, Any]:
    """Return the names and types of a source's columns, by table.

    Guarantee: the runner reads the schema alone; the answer has no row, no number of rows and no value.
    """
    return await described(call.service, call.path["source"])


async def described(service: Service, name: str) -> dict[str, Any]:
    """Ask the runner for the columns of a listed source."""
    source = service.settings.sources.get(name)
    if source is None:
        raise not_found()
    description = await service.ask_runner("describe", {"source": source.name})
    tables = [
        {"name": table, "columns": [{"name": one["name"], "kind": one["kind"]} for one in columns]}
        for table, columns in description["tables"].items()
    ]
    return {"source": source.name, "kind": source.kind, "tables": tables}


async def declare_dataset(call: ServiceCall) -> Answer:
    """Declare a dataset; whoever declares it becomes its owner.

    Guarantee: no row of the data is read. If anything is refused, nothing is written, in the database or in
    the ledger.
    """
    return await declare(call, call.body)


async def declare(call: ServiceCall, declaration: DatasetDeclared) -> Answer:
    """Declare the dataset that a program or the wizard has described."""
    service = call.service
    policy = declared_policy(declaration, service.settings)
    _refuse_taken(service.database.row("SELECT name FROM datasets WHERE name = ?", declaration.name))
    _refuse_allotment(service.database, policy["parent"])
    _refuse_second(service.database, service.settings, policy)
    job = {"dataset": declaration.name, "policy": policy, "number": 1}
    facts = await service.ask_runner("open", job)
    try:
        _write_declared(call, declaration, policy, facts)
    except TacitError:
        service.tell_runner("close", job)  # its process would wait for questions that nobody can ask
        raise
    return Answer(
        {"dataset": declaration.name, "policy": 1, "policy_document": policy},
        201,
        f"/datasets/{declaration.name}",
    )


def _write_declared(
    call: ServiceCall, declaration: DatasetDeclared, policy: dict[str, Any], facts: dict[str, Any]
) -> None:
    """Write a dataset, its first policy and its owner, after everything was checked once more."""
    service, person = call.service, call.person.id
    _check_facts(facts, declaration.name, policy)
    with service.database.change() as change:
        needs_role(roles_now(change, person, ""), "curator")
        _refuse_taken(change.row("SELECT name FROM datasets WHERE name = ?", declaration.name))
        _refuse_allotment(change, policy["parent"])
        _refuse_second(change, service.settings, policy)
        change.run(
            "INSERT INTO datasets (name, kind, policy, created_by, created) VALUES (?, ?, 1, ?, ?)",
            declaration.name, policy["kind"], person, now_text(),
        )  # fmt: skip
        insert_policy(change, declaration.name, 1, policy, facts, person)
        change.run(
            "INSERT INTO grants (person, dataset, role, granted_by, granted) VALUES (?, ?, 'owner', ?, ?)"
            " ON CONFLICT DO NOTHING",
            person, declaration.name, person, now_text(),
        )  # fmt: skip
        service.record(change, person, "dataset-declared", declaration.name, call.id)
        _open_account(call, declaration.name, policy)  # the last act before the commit


async def change_policy(call: ServiceCall) -> Answer:
    """Write the next policy of a dataset; the unit, the adjacency and the budget stay as they are."""
    return await write_change(call, call.body)


async def write_change(call: ServiceCall, declaration: PolicyChanged) -> Answer:
    """Write the policy that a program or the wizard has described."""
    service, name = call.service, call.dataset
    before = service.dataset(name)
    account = service.ledger.account(name)
    policy = changed_policy(before.policy, declaration, budget_text(account.budget))
    read_field(Integer(before.policy["version"], why=_VERSIONS_GROW), "version", policy["version"])
    job = {"dataset": name, "policy": policy, "number": before.number + 1}
    facts = await service.ask_runner("open", job)
    try:
        _check_facts(facts, name, policy)
        number = _write(call, before.number, policy, facts)
    except TacitError:
        service.tell_runner("close", job)
        raise
    return Answer(
        {"dataset": name, "policy": number, "policy_document": policy},
        201,
        f"/datasets/{name}/policies/{number}",
    )


def _write(call: ServiceCall, before: int, policy: dict[str, Any], facts: dict[str, Any]) -> int:
    """Write policy ``before + 1``, unless somebody else has written it meanwhile."""
    service, name, person = call.service, call.dataset, call.person.id
    with service.database.change() as change:
        needs_role(roles_now(change, person, name), "curator")
        updated = change.run(
            "UPDATE datasets SET policy = ? WHERE name = ? AND policy = ?", before + 1, name, before
        )
        if not updated:
            raise changed_meanwhile()
        insert_policy(change, name, before + 1, policy, facts, person)
        service.record(change, person, "policy-written", f"{name} {before + 1}", call.id)
        _open_account(call, name, policy)  # records a new version of the data, or that the log keeps less
    return before + 1


def insert_policy(
    change: Change, name: str, number: int, policy: dict[str, Any], facts: dict[str, Any], person: str
) -> None:
    change.run(
        "INSERT INTO policies (dataset, number, document, facts, created_by, created)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        name, number, json.dumps(policy), json.dumps(facts), person, now_text(),
    )  # fmt: skip


def _open_account(call: ServiceCall, name: str, policy: dict[str, Any]) -> None:
    limit = None if policy["per_charge"] is None else budget_from(policy["per_charge"])
    account = call.service.ledger.create_account(
        name,
        unit=policy["unit"],
        adjacency=policy["adjacency"],
        version=policy["version"],
        budget=budget_from(policy["budget"]),
        per_charge=limit,
        parent=policy["parent"],
        record=policy["record"],
        dataset=True,
    )
    if account.per_charge != limit:
        raise TacitError(
            "account-differs",
            "the account of this name has another largest single charge",
            why="opening an account again does not change it",
            fix="choose another name",
        )


def _refuse_taken(row: object) -> None:
    if row is not None:
        raise TacitError(
            "account-differs",
            "there is a dataset of that name already",
            why="the budget is bound to the name, and a new declaration does not reset it",
            fix="choose another name, or write a new policy for the dataset",
        )


def _refuse_allotment(change: Change | Database, parent: str | None) -> None:
    """Refuse an allotment as the account above a dataset: others would spend what one person was given."""
    if parent is None:
        return
    above = change.row("SELECT name FROM datasets WHERE name = ?", parent.partition("/")[0])
    allotment = change.row("SELECT name FROM accounts WHERE name = ?", parent)
    if allotment is not None or (above is not None and "/" in parent):
        raise TacitError(
            "bad-parameter",
            "the shared account of a dataset cannot be the allotment of one person",
            why="questions to the dataset would spend what was given to that person",
            fix="name the account of another dataset, or one that the operator has opened for several",
        )


def _refuse_second(change: Change | Database, settings: ServiceSettings, policy: dict[str, Any]) -> None:
    """Refuse a second budget for the same data, which one person alone could open.

    A dataset is allowed that pays from the account of the other one, or that shares the account above it.
    """
    source = settings.sources[policy["source"]]
    same = {name for name, one in settings.sources.items() if _is_same(one, source)}
    for row in change.rows(
        "SELECT d.name, p.document FROM datasets d"
        " JOIN policies p ON p.dataset = d.name AND p.number = d.policy"
    ):
        other = json.loads(row["document"])
        shared = policy["parent"] is not None and policy["parent"] in {row["name"], other["parent"]}
        if other["source"] in same and not shared and not source.several:
            raise TacitError(
                "not-allowed",
                "another dataset protects this source already",
                why="for a person in the data, the budgets of two datasets add up, and one curator alone may "
                "not enlarge a budget",
                fix="change the policy of that dataset, or propose a larger budget for it; for several "
                "budgets, ask the operator to write several = true at the source",
            )


def _is_same(source: ListedSource, other: ListedSource) -> bool:
    """Whether two listed sources have a file or a table in common, whatever they call it."""
    places = [set(source_places(each.place, each.engine)) for each in (source, other)]
    return not places[0].isdisjoint(places[1]) or source is other


def _check_facts(facts: dict[str, Any], name: str, policy: dict[str, Any]) -> None:
    """Refuse facts that speak of something else than the policy; the runner has failed then."""
    expected = {"name": name, **{fact: policy[fact] for fact in ("version", "unit", "adjacency")}}
    told = facts.get("dataset") == expected if policy["kind"] == "table" else facts.get("name") == name
    if not told:
        raise TacitError("service-failed", "the service failed")
