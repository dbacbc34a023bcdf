"""Rehearsals: a question answered at once on invented rows of the declared schema, free and without limit.

Nothing of the data is involved, and nothing of the service's ledger. Every answer is labelled as invented.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
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
    from tacit.service._service import OpenDataset
    from tacit.tables import TableDataset

#: The label of every answer of a rehearsal.
INVENTED: Final = "invented rows"
_SECONDS = 10.0
_WAIT = 10.0  # seconds until there must be a free thread
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
        release = await _in_turn(call, opened, ask)
    except TacitError as refusal:
        if not call.is_page:
            raise
        use = usable_fixes(opened, read_ask(body), refusal) if refusal.code != "bad-parameter" else []
        document = {**page, "problem": problem_of(refusal, call.id), "use": use, "release": None}
        return Answer(document, status=status_of(refusal.code))
    if body.do == "csv":
        return Download(_csv(release).encode("utf-8"), "text/csv; charset=utf-8", "invented-rows.csv")
    return {**page, "release": _document(release, opened)}


@cache
def _rehearsals() -> ThreadPoolExecutor:
    """Return the threads of rehearsals: a few run at once in this process; nothing else waits for them."""
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="rehearsal")


async def _in_turn(call: ServiceCall, opened: OpenDataset, ask: Mapping[str, Any]) -> Release[Any]:
    """Rehearse when there is a free thread; waiting for one is nobody's effort."""
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def rehearsed() -> Release[Any]:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(begun.set)
        return _rehearsed(opened, ask)

    work = asyncio.ensure_future(call.in_pool(_rehearsals(), rehearsed))
    work.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait_for(begun.wait(), _WAIT)
    except TimeoutError:
        work.cancel()
        raise TacitError(
            "too-many-requests",
            "too many questions are being rehearsed at this moment",
            fix="try again in a few seconds",
        ) from None
    try:
        return await asyncio.wait_for(asyncio.shield(work), _SECONDS)
    except TimeoutError:
        call.effort += _SECONDS  # it goes on beside this, and nobody can stop it
        raise TacitError(
            "question-too-large",
            f"the rehearsal takes more than {_SECONDS:g} seconds",
            fix="ask in smaller parts",
        ) from None


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
