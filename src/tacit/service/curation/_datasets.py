"""Datasets as people see them: the catalogue, one dataset, its policies and what changed between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tacit.core import Unit
from tacit.service._pauses import pause_shown
from tacit.service._refusals import not_found
from tacit.service.curation._accounts import account_documents, accounts_below, is_overbooked
from tacit.service.curation._amounts import budget_document, left_document, main_name, spent_document
from tacit.service.curation._burn_down import BurnDown
from tacit.service.curation._meaning import promise_sentence
from tacit.service.curation._pausing import pauses_of
from tacit.service.curation._people import analysts_of, names_of
from tacit.service.curation._policy_changes import policy_changes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.ledger import Account
    from tacit.service._operations import ServiceCall
    from tacit.service._service import OpenDataset

_BURN_DOWN = BurnDown()
_OVERSEERS = frozenset({"curator", "auditor"})


def list_datasets(call: ServiceCall) -> dict[str, Any]:
    """List the datasets on which the caller has any role; others do not exist for the caller."""
    caller = call.person
    rows = call.service.database.rows(
        "SELECT d.name, d.kind, d.policy, d.paused, p.document FROM datasets d"
        " JOIN policies p ON p.dataset = d.name AND p.number = d.policy ORDER BY d.name"
    )
    found = []
    for row in rows:
        roles = caller.roles_on(row["name"])
        if not roles:
            continue
        policy = json.loads(row["document"])
        account = call.service.ledger.account(row["name"])
        found.append(
            {
                "name": row["name"],
                "kind": row["kind"],
                "title": policy["title"],
                "about": policy["about"],
                "unit": policy["unit"],
                "unit_noun": Unit.from_text(policy["unit"]).noun,
                "policy": row["policy"],
                "budget": budget_document(account.budget),
                "left": left_document(account.filter.remaining),
                "state": _state(row["paused"], account),
                "roles": sorted(roles),
            }
        )
    return {"datasets": found, "may_declare": caller.may("curator") and "curate" in caller.scopes}


def show_dataset(call: ServiceCall) -> dict[str, Any]:
    """Show a dataset: who is protected, what is public, the budget and what is left; never a number of rows.

    Curators and auditors see all accounts; an analyst sees the own ones.
    """
    opened = call.service.dataset(call.dataset)
    roles = call.person.roles_on(opened.name)
    own, below = accounts_below(call.service, opened.name)
    oversees = bool(roles & _OVERSEERS)
    tick = call.service.settings.tick
    return {
        **_declared(opened),
        "state": _state(opened.paused, own),
        "paused": pause_shown(opened.paused, oversees=oversees),
        "frozen": own.frozen,
        "answer_after": {
            "exact": str(opened.policy["lag"] * tick),
            "seconds": float(opened.policy["lag"] * tick),
            "ticks": opened.policy["lag"],
            "tick": str(tick),
        },
        "counted_in": main_name(own.budget),
        "budget": budget_document(own.budget),
        "meaning": promise_sentence(
            own.budget, opened.dataset.unit.noun, opened.policy["adjacency"], "all answers together move"
        ),
        "spent": spent_document(own),
        "left": left_document(own.filter.remaining),
        "overbooked": is_overbooked(own, below),
        "burn_down": _BURN_DOWN.points(call.service.ledger, own.name),
        "accounts": account_documents(call.service, opened.name, call.person.id, oversees=oversees),
        "oversees": oversees,
        "analysts": analysts_of(call.service.database, opened.name, call.person.id)
        if "curator" in roles
        else [],
        "pauses": pauses_of(call.service, opened.name) if oversees else [],
        "roles": sorted(roles),
    }


def _declared(opened: OpenDataset) -> dict[str, Any]:
    """Return what the policy and the facts say, in the words of the page."""
    policy = opened.policy
    return {
        "name": opened.name,
        "kind": opened.kind,
        "title": policy["title"],
        "about": policy["about"],
        "unit": policy["unit"],
        "unit_noun": Unit.from_text(policy["unit"]).noun,
        "adjacency": policy["adjacency"],
        "version": policy["version"],
        "policy": opened.number,
        "record": policy["record"],
        "shows_stored": policy["shows_stored"],
        "limits": opened.facts.get("limits"),
        "columns": _columns(opened),
        "declared": policy.get("declared") or {},
        "facts": opened.facts,
    }


def _columns(opened: OpenDataset) -> list[dict[str, Any]]:
    """Return the columns with their public facts."""
    found: list[dict[str, Any]] = []
    for table in opened.facts.get("tables", ()):
        for column in table["columns"] or sorted(table["facts"]):
            fact = table["facts"].get(column, {})
            keys = opened.policy["keys"].get(f"{table['name']}.{column}", opened.policy["keys"].get(column))
            found.append(
                {
                    "table": table["name"],
                    "name": column,
                    "kind": fact.get("kind") or _STORED.get(fact.get("stored", ""), fact.get("stored", "")),
                    "bounds": fact.get("bounds"),
                    "keys": keys,
                    "never_null": bool(fact.get("never_null")),
                    "names_unit": bool(fact.get("unit")),
                    "public": table["key"] is not None,
                }
            )
    return found


_STORED = {"moment": "date"}


def _state(paused: str, account: Account) -> str:
    return "frozen" if account.frozen else "paused" if paused else "open"


def list_policies(call: ServiceCall) -> dict[str, Any]:
    """List the policies of a dataset, the latest first."""
    rows = call.service.database.rows(
        "SELECT number, created_by, created FROM policies WHERE dataset = ? ORDER BY number DESC",
        call.dataset,
    )
    if not rows:
        raise not_found()
    names = names_of(call.service.database, (row["created_by"] for row in rows))
    return {
        "dataset": call.dataset,
        "policies": [{**row, "created_by_name": names.get(row["created_by"], "")} for row in rows],
    }


def show_policy(call: ServiceCall) -> dict[str, Any]:
    """Show one policy, and in words what it changed."""
    text = call.path["number"]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    rows = {
        row["number"]: row
        for row in call.service.database.rows(
            "SELECT number, document, created_by, created FROM policies"
            " WHERE dataset = ? AND number IN (?, ?)",
            call.dataset,
            number - 1,
            number,
        )
    }
    if number not in rows:
        raise not_found()
    row, policy = rows[number], json.loads(rows[number]["document"])
    before = json.loads(rows[number - 1]["document"]) if number - 1 in rows else None
    names = names_of(call.service.database, [row["created_by"]])
    return {
        "dataset": call.dataset,
        "number": number,
        "created": row["created"],
        "created_by": row["created_by"],
        "created_by_name": names.get(row["created_by"], ""),
        "policy": policy,
        "before": None if before is None else number - 1,
        "changes": [] if before is None else policy_changes(before, policy),
    }


def dataset_again(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Show the dataset again."""
    return {**show_dataset(call), "written": written}
