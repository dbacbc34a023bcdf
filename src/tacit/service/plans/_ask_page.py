"""The ask page: an editor with schema and keys beside it, the price card below, and a button that asks.

The card costs nothing. The button posts the same fields to ``queries``, with a fresh idempotency key.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from tacit.errors import TacitError
from tacit.service._bodies import MOST_QUESTION, DatasetName, Words
from tacit.service._kinds import methods_of
from tacit.service._operations import Answer, Operation
from tacit.service._pauses import pause_shown
from tacit.service._problems import problem_of, status_of
from tacit.service._times import new_id
from tacit.service.plans._asks import AskBody, read_ask
from tacit.service.plans._card_operations import MAY_PLAN, shown_card
from tacit.service.plans._schema import example_questions, schema_of
from tacit.service.plans._usable_fixes import usable_fixes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._operations import ServiceCall
    from tacit.service._service import OpenDataset, Service

_FIELDS = ("sql", "method", "epsilon", "delta", "rho", "within", "confidence", "keys", "limits", "size")
_SHOWN = (*_FIELDS, "arguments", "account")


class AskPageBody(AskBody):
    """The form of the ask page: a question, and whether to price it or only to put it into the editor."""

    dataset: DatasetName = ""
    do: Literal["card", "fill"] = "card"
    purpose: Words = ""


def accounts_of(service: Service, person: str, dataset: str) -> list[dict[str, Any]]:
    """Return the allotments of a person for a dataset, with what is left of each; the newest first."""
    rows = service.database.rows(
        "SELECT name, purpose, plan FROM accounts WHERE dataset = ? AND person = ?"
        " ORDER BY created DESC, name DESC LIMIT 50",
        dataset, person,
    )  # fmt: skip
    found = []
    for row in rows:
        try:
            left = str(service.ledger.remaining(row["name"]))
        except TacitError:  # a ledger that cannot be read now
            left = ""
        found.append({"name": row["name"], "purpose": row["purpose"], "left": left, "plan": row["plan"]})
    return found


def page_document(call: ServiceCall, opened: OpenDataset, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows whatever was asked: schema, examples, allotments, the fields as written."""
    title = opened.policy.get("title") or opened.name
    has_tables = opened.kind == "table"
    return {
        "dataset": {
            "name": opened.name,
            "title": title,
            "kind": opened.kind,
            "unit": opened.dataset.unit.noun,
            "policy": opened.number,
            "paused": pause_shown(opened.paused),
        },
        "tables": schema_of(opened.dataset) if has_tables else [],  # type: ignore[arg-type]
        "examples": example_questions(opened.dataset) if has_tables else [],  # type: ignore[arg-type]
        "methods": methods_of(opened.kind) if not has_tables else [],
        "accounts": accounts_of(call.service, call.person.id, opened.name),
        "fields": {name: fields.get(name) or "" for name in _SHOWN},
        "card": None,
        "problem": None,
        "use": [],
        "key": "",
    }


def written_fields(body: AskBody) -> dict[str, str]:
    """Return the fields of a question as a form holds them."""
    found = {}
    for name in _SHOWN:
        value = getattr(body, name)
        if value is not None:
            found[name] = exact_json(value) if isinstance(value, dict) else str(value)
    return found


def exact_json(value: Any) -> str:
    """Write JSON with decimals as they are: the field that is read back is the field that was written.

    Examples
    --------
    >>> exact_json({"age": [Decimal("0.10"), "1"]})
    '{"age": [0.10, "1"]}'
    """
    match value:
        case Decimal():
            return f"{value:f}"
        case dict():
            return "{" + ", ".join(f"{json.dumps(k)}: {exact_json(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(exact_json, value)) + "]"
        case _:
            return json.dumps(value)


def _get_page(call: ServiceCall) -> dict[str, Any]:
    opened = call.service.dataset(call.dataset)
    first = page_document(call, opened, {"epsilon": "1/2"})
    examples = first["examples"]
    first["fields"]["sql"] = examples[0]["sql"] if examples else ""
    return first


def _post_page(call: ServiceCall) -> Any:
    body: AskPageBody = call.body.model_copy(update={"dataset": call.dataset})
    opened = call.service.dataset(call.dataset)
    document = page_document(call, opened, written_fields(body))
    if body.do == "fill":
        return document
    try:
        card = shown_card(call, body)
    except TacitError as refusal:
        if not call.is_page:
            raise
        problem = problem_of(refusal, call.id)
        use = usable_fixes(opened, read_ask(body), refusal) if _is_readable(body) else []
        return Answer({**document, "problem": problem, "use": use}, status=status_of(refusal.code))
    account = (card["account"] or {}).get("name")
    purpose = next((one["purpose"] for one in document["accounts"] if one["name"] == account), "")
    return {**document, "card": card, "key": new_id("k"), "purpose": purpose, "account": account}


def _is_readable(body: AskBody) -> bool:
    try:
        read_ask(body)
    except TacitError:
        return False
    return True


def _form(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    """Return the page beside a problem of the form itself, with everything as it was written."""
    return page_document(call, call.service.dataset(call.dataset), written)


ASK_OPERATIONS = (
    Operation(
        "GET", "/datasets/{dataset}/ask", MAY_PLAN, _get_page, page="plans/ask.html",
        summary="What can be asked of a dataset: tables, columns, keys, examples, your allotments",
    ),
    Operation(
        "POST", "/datasets/{dataset}/ask", MAY_PLAN, _post_page, body=AskPageBody, page="plans/ask.html",
        form=_form, most=MOST_QUESTION,
        summary="The page of a question with its card; nothing is charged",
    ),
)  # fmt: skip
