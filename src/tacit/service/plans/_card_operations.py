"""The operation ``plans``: the card of a question. It has no side effect and no entry in the ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.service._bodies import MOST_QUESTION
from tacit.service._operations import Download, Operation, needs
from tacit.service.plans._asks import AskBody, read_ask
from tacit.service.plans._cards import account_part, card_bytes, card_of, shelf_of
from tacit.service.plans._paying import own_account

if TYPE_CHECKING:
    from tacit.service._operations import ServiceCall
    from tacit.service._service import OpenDataset
    from tacit.service.plans._cards import KeptPlan

#: Who may see prices of a dataset.
MAY_PLAN = needs("analyst", on="dataset", scope="plan")


def planned(call: ServiceCall, body: AskBody) -> tuple[OpenDataset, KeptPlan, dict[str, Any]]:
    """Check the grant on the dataset that the body names, and plan; nothing of it is kept for others."""
    from tacit.service.drawer import check_work, lag_of  # it imports this area

    MAY_PLAN.check(call.caller, body.dataset)
    ask = read_ask(body)
    opened = call.service.dataset(body.dataset)
    kept = shelf_of(call.service).plan(opened, ask, call.person.id)
    row = own_account(call.service.database, call.person.id, body.dataset, body.account, kept.hash)
    own = account_part(call.service, opened, kept, None if row is None else str(row["name"]))
    if not (own["stored"] or {}).get("paid"):
        check_work(call.service.settings, lag_of(opened.policy, call.service.settings), kept.plan)
    return opened, kept, own


def shown_card(call: ServiceCall, body: AskBody) -> dict[str, Any]:
    """Return the card of a question as a document."""
    _, kept, own = planned(call, body)
    return card_of(kept, own)


def _post_plan(call: ServiceCall) -> Any:
    if call.is_page:
        return shown_card(call, call.body)
    _, kept, own = planned(call, call.body)
    return Download(card_bytes(kept, own), "application/json")


CARD_OPERATIONS = (
    Operation(
        "POST", "/plans", needs("analyst", scope="plan"), _post_plan, body=AskBody, page="plans/card.html",
        most=MOST_QUESTION,
        summary="Show the price, the meaning and the expected error of a question; nothing is charged",
    ),
)  # fmt: skip
