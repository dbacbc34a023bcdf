"""Queries as clients and pages read them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.service.drawer._clock import now
from tacit.service.drawer._query_states import problem_shown, shown_state
from tacit.service.plans import shelf_of

if TYPE_CHECKING:
    from tacit.service._database import ServiceRow
    from tacit.service._operations import ServiceCall

_SENTENCES = {
    "waiting": "The question waits for a free slot. Nothing is charged yet.",
    "running": "The question is being answered. The answer leaves at a fixed time, however long it takes.",
    "finished": "The answer is there.",
    "failed": "The release failed after its charge.",
    "refused": "The question was refused. Nothing was charged.",
    "spent": "The question was charged, but its answer was lost.",
    "cancelled": "The question was cancelled. Nothing was charged.",
}


def listed_query(call: ServiceCall, row: ServiceRow) -> dict[str, Any]:
    """Return what a list says of a query. The question itself is for the person who asked it."""
    state, mine = shown_state(row), row["person"] == call.person.id
    return {
        "query": row["id"],
        "dataset": row["dataset"],
        "state": state,
        "created": row["created"],
        "account": row["account"],
        "plan": row["plan"],
        "purpose": row["purpose"],
        "person": row["person"],
        "sql": json.loads(row["ask"]).get("sql") if mine else None,
        "words": _in_short(json.loads(row["ask"])) if mine else None,
        "release": row["release"] if state == "finished" else None,
    }


def query_document(call: ServiceCall, row: ServiceRow) -> dict[str, Any]:
    """Return a query: its state, its price, when its answer leaves, and its release or problem.

    Curators and auditors of the dataset see all of it but the question, which may hold literals; what the log
    of the ledger keeps of a question is the policy's decision.
    """
    listed = listed_query(call, row)
    running, kept = listed["state"] == "running", _card(call, row)
    return {
        **listed,
        "policy": row["policy"],
        **question_words(call, row),
        "price": None if kept is None else kept["price"],
        "sentence": _SENTENCES[listed["state"]],
        "done": listed["state"] not in {"waiting", "running"},
        "answer_at": row["answer_at"] if running else None,
        "answer_in_s": max(0.0, round(float(row["answer_at"]) - now(), 3)) if running else None,
        "problem": problem_shown(row, call.id),
    }


def question_words(call: ServiceCall, row: ServiceRow) -> dict[str, Any]:
    """Return the question as it was asked, and in words; nothing of it for others than who asked it."""
    if row["person"] != call.person.id:
        return {"ask": None, "words": None}
    ask, kept = json.loads(row["ask"]), _card(call, row)
    return {"ask": ask, "words": _in_short(ask) if kept is None else kept["asked"]}


def _in_short(ask: dict[str, Any]) -> str | None:
    """Name a question without planning it: its SQL, its method, or the columns of a plan made elsewhere."""
    match ask:
        case {"sql": str(sql)}:
            return sql
        case {"method": str(method), **rest}:
            given = rest.get("arguments") or {}
            return f"{method}({', '.join(f'{name}={value}' for name, value in given.items())})"
        case {"plan": {"request": {"question": {"aggregates": list(aggregates)}}}}:
            return ", ".join(str(name) for name, *_ in aggregates)
    return None


def _card(call: ServiceCall, row: ServiceRow) -> dict[str, Any] | None:
    """Return the card of a question's plan; None if it would be another plan under the policy of today."""
    try:
        opened = call.service.dataset(row["dataset"])
        kept = shelf_of(call.service).plan(opened, json.loads(row["ask"]), str(row["person"]))
    except TacitError:
        return None
    return kept.document if kept.hash == row["plan"] else None
