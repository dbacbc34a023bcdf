"""Rehearsals: a question answered at once on invented rows of the declared schema, free and without limit.

Nothing of the data is involved, and nothing of the service's ledger. Every answer is labelled as invented.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
from typing import TYPE_CHECKING, Any, Final, Literal

from tacit.accounting import Budget
from tacit.errors import TacitError
from tacit.service._bodies import MOST_QUESTION, DatasetName, Words
from tacit.service._operations import Answer, Download, Operation
from tacit.service._problems import problem_of, status_of
from tacit.service.plans._ask_page import page_document, written_fields
from tacit.service.plans._asked_plans import plan_of
from tacit.service.plans._asks import AskBody, read_ask
from tacit.service.plans._card_operations import MAY_PLAN
from tacit.service.plans._usable_fixes import usable_fixes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import Release
    from tacit.service._operations import ServiceCall
    from tacit.service._service import OpenDataset, Service
    from tacit.tables import TableDataset

__all__ = ["INVENTED", "SANDBOX_OPERATIONS"]

#: The label of every answer of a rehearsal.
INVENTED: Final = "invented rows"
_SECONDS = 10.0
_AT_ONCE = 2  # rehearsals in one process


class SandboxBody(AskBody):
    """A question to rehearse; as a form, or with the answer as CSV."""

    dataset: DatasetName = ""
    do: Literal["card", "fill", "csv"] = "card"
    purpose: Words = ""


async def _post_sandbox(call: ServiceCall) -> Any:
    body: SandboxBody = call.body.model_copy(update={"dataset": call.dataset})
    opened = call.service.dataset(call.dataset)
    page = page_document(call, opened, written_fields(body)) if call.is_page else {}
    try:
        ask = read_ask(body)
        async with _turn(call.service):
            release = await asyncio.wait_for(call.in_thread(_rehearsed, opened, ask), _SECONDS)
    except TimeoutError:
        call.effort += _SECONDS  # it goes on beside this, and nobody can stop it
        raise TacitError(
            "question-too-large",
            f"the rehearsal takes more than {_SECONDS:g} seconds",
            fix="ask in smaller parts",
        ) from None
    except TacitError as refusal:
        if not call.is_page:
            raise
        use = usable_fixes(opened, read_ask(body), refusal) if refusal.code != "bad-parameter" else []
        document = {**page, "problem": problem_of(refusal, call.id), "use": use, "release": None}
        return Answer(document, status=status_of(refusal.code))
    if body.do == "csv":
        return Download(_csv(release).encode("utf-8"), "text/csv; charset=utf-8", "invented-rows.csv")
    return {**page, "release": _document(release, opened)}


def _turn(service: Service) -> asyncio.Semaphore:
    """Return what lets a few rehearsals run at once in this process."""
    found: asyncio.Semaphore = service.__dict__.setdefault("rehearsing", asyncio.Semaphore(_AT_ONCE))
    return found


def _rehearsed(opened: OpenDataset, ask: Mapping[str, Any]) -> Release[Any]:
    """Plan on the declared facts, then run the same plan on invented rows."""
    if opened.kind != "table":
        raise TacitError("not-allowed", f"datasets of the kind {opened.kind} have no rehearsal")
    plan = plan_of(opened.dataset, ask)
    if plan.instalments is not None:
        raise TacitError("not-allowed", "a run of several instalments has no rehearsal")
    release = plan_of(_trial(opened, dict(plan.promised)), ask).release()
    return release.changed(release.content, INVENTED)


def _trial(opened: OpenDataset, promised: dict[str, Any]) -> TableDataset:
    """Make the dataset of invented rows, fixed for each policy; its ledger has room for one plan."""
    from tacit.tables import rehearsal

    written = f"{opened.name}\x1f{opened.number}".encode()
    seed = int.from_bytes(hashlib.sha256(written).digest()[:8], "big")
    return rehearsal(opened.dataset, seed=seed, budget=Budget(**promised))  # type: ignore[arg-type]


def _document(release: Release[Any], opened: OpenDataset) -> dict[str, Any]:
    """Return the release with its label, without the certificate, whose ledger is gone."""
    written = dict(release.to_json())
    written.pop("certificate", None)
    content: Any = written.get("content") or {}
    return {
        "invented": True,
        "marks": list(release.marks),
        "note": f"These numbers come from {INVENTED}, not from {opened.name} itself. Nothing was charged.",
        "keys": content.get("keys", {}),
        "columns": content.get("columns", {}),
        "confidence": content.get("confidence"),
        "notes": content.get("notes", {}),
        "left_out": content.get("left_out", []),
        "content": content,
    }


def _csv(release: Release[Any]) -> str:
    """Return the answer as CSV; every line says that its rows were invented."""
    rows = list(csv.reader(io.StringIO(release.to_csv())))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for number, row in enumerate(rows):
        writer.writerow(["source" if number == 0 else INVENTED, *row])
    return out.getvalue()


def _get_sandbox(call: ServiceCall) -> dict[str, Any]:
    opened = call.service.dataset(call.dataset)
    document = page_document(call, opened, {"epsilon": "1/2"})
    examples = document["examples"]
    document["fields"]["sql"] = examples[0]["sql"] if examples else ""
    return {**document, "release": None}


def _form(call: ServiceCall, written: Mapping[str, str]) -> dict[str, Any]:
    return {**page_document(call, call.service.dataset(call.dataset), written), "release": None}


SANDBOX_OPERATIONS = (
    Operation(
        "GET", "/datasets/{dataset}/sandbox", MAY_PLAN, _get_sandbox, page="plans/sandbox.html",
        summary="The page on which questions are rehearsed",
    ),
    Operation(
        "POST", "/datasets/{dataset}/sandbox", MAY_PLAN, _post_sandbox, body=SandboxBody,
        page="plans/sandbox.html", form=_form, most=MOST_QUESTION,
        summary="Rehearse a question on invented rows: free, at once, nothing is charged or recorded",
    ),
)  # fmt: skip
