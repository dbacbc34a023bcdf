"""The ask page: an editor with schema and keys beside it, the price card below, and a button that asks.

The card costs nothing. The button posts the same fields to ``queries``, with a fresh idempotency key. Beside
the editor an analyst has tables, columns and keys, and questions to start from. Fixes are offered that work
when they are used: other fields of the question, tried before they are offered.

A rehearsal in the sandbox answers a question at once on invented rows of the declared schema, free and
without limit. Nothing of the data is involved, and nothing of the service's ledger. Every answer is labelled
as invented.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from tacit.accounting import Budget
from tacit.engines import quote
from tacit.errors import TacitError
from tacit.fixes import ACTIONS, Choose, Do, Either, Fix, Set
from tacit.service._bodies import MAX_QUESTION, DatasetName, Words
from tacit.service._kinds import methods_of
from tacit.service._operations import Answer, Download, Operation
from tacit.service._refusals import problem_of, status_of
from tacit.service._service import pause_shown
from tacit.service._times import new_id
from tacit.service.plans._asks import AskBody, plan_of, read_ask
from tacit.service.plans._cards import MAY_PLAN, shown_card

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tacit.core import Fact, Release, Table
    from tacit.service._operations import ServiceCall
    from tacit.service._service import OpenDataset, Service
    from tacit.tables import TableDataset


_MAX_KEYS = 40  # shown of one column
_RESERVED = frozenset(
    (
        "ALL", "AND", "AS", "ASC", "BY", "CASE", "CAST", "DESC", "DISTINCT", "ELSE", "END", "EXCEPT", "FALSE",
        "FROM", "GROUP", "HAVING", "IN", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NOT", "NULL", "OFFSET", "ON",
        "OR", "ORDER", "SELECT", "TABLE", "THEN", "TO", "TRUE", "UNION", "USING", "VALUES", "WHEN", "WHERE",
        "WINDOW", "WITH",
    )
)  # fmt: skip
_KINDS = {"moment": "date", "date": "date", "text": "text", "number": "number", "boolean": "boolean"}
_TRIED = 4  # candidates: each costs a plan
_NUMBERS = frozenset({"epsilon", "delta", "rho", "within", "confidence", "advantage"})
_RISKS = ("advantage", "attack", "belief", "total")
_FIELDS = ("sql", "method", "epsilon", "delta", "rho", "within", "confidence", "keys", "limits", "size")
_SHOWN = (*_FIELDS, *_RISKS, "arguments", "account")
#: The label of every answer of a rehearsal.
INVENTED: Final = "invented rows"
_SECONDS = 10.0
_WAIT = 10.0  # seconds until there must be a free thread
_AT_ONCE = 2  # rehearsals in one process


def schema_of(dataset: TableDataset) -> list[dict[str, Any]]:
    """Return the tables with what is public of their columns: type, range, keys."""
    return [
        {
            "name": name,
            "sql": sql_word(name),
            "public": table.key is not None,
            "columns": [_column(column, table.facts.get(column)) for column in _columns(table)],
        }
        for name, table in sorted(dataset.tables.items(), key=lambda pair: pair[0] != dataset.main)
    ]


def example_questions(dataset: TableDataset) -> list[dict[str, str]]:
    """Return a few questions that the dataset can answer, from its schema alone."""
    table = dataset.tables[dataset.main]
    columns = [_column(column, table.facts.get(column)) for column in _columns(table)]
    unit = dataset.unit
    keyed = next((one for one in columns if one["keys"] and not one["is_unit"]), None)
    ranged = next((one for one in columns if one["bounds"] and not one["is_unit"]), None)
    source = sql_word(dataset.main)
    questions = [("How many rows?", f"SELECT COUNT(*) AS n\nFROM {source}")]
    if not unit.is_row and len(unit.columns) == 1:
        owner = sql_word(unit.columns[0])
        questions.append((f"How many {unit.noun}s?", f"SELECT COUNT(DISTINCT {owner}) AS n\nFROM {source}"))
    if keyed is not None:
        group = keyed["sql"]
        questions.append(
            (f"Rows by {keyed['name']}", f"SELECT {group}, COUNT(*) AS n\nFROM {source}\nGROUP BY {group}")
        )
    if ranged is not None:
        value = ranged["sql"]
        questions.append((f"The mean of {ranged['name']}", f"SELECT AVG({value}) AS mean\nFROM {source}"))
        questions.append(
            (f"The median of {ranged['name']}", f"SELECT MEDIAN({value}) AS median\nFROM {source}")
        )
    if keyed is not None and ranged is not None:
        group, value = keyed["sql"], ranged["sql"]
        text = f"SELECT {group}, AVG({value}) AS mean\nFROM {source}\nGROUP BY {group}"
        questions.append((f"The mean of {ranged['name']} by {keyed['name']}", text))
    return [{"label": label, "sql": sql} for label, sql in questions]


def _columns(table: Table) -> tuple[str, ...]:
    return tuple(table.columns or table.facts)


def _column(name: str, fact: Fact | None) -> dict[str, Any]:
    bounds = None if fact is None or fact.bounds is None else [_short(end) for end in fact.bounds]
    keys = () if fact is None or fact.keys is None else fact.keys
    kind = None if fact is None else fact.kind or _KINDS.get(fact.stored)
    return {
        "name": name,
        "sql": sql_word(name),
        "kind": kind or "unknown",
        "bounds": bounds,
        "keys": [_short(key) for key in keys[:_MAX_KEYS]],
        "more_keys": max(0, len(keys) - _MAX_KEYS),
        "is_unit": fact is not None and fact.unit,
    }


def _short(value: object) -> object:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def sql_word(name: str) -> str:
    """Write a name as SQL does: in double quotes if it is not a plain word.

    Examples
    --------
    >>> sql_word("stay"), sql_word("Patient ID"), sql_word("order")
    ('stay', '"Patient ID"', '"order"')
    """
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None and name.upper() not in _RESERVED
    return name if plain else quote(name)


def usable_fixes(dataset: OpenDataset, ask: dict[str, Any], error: TacitError) -> list[dict[str, Any]]:
    """Return changes of a refused question that can be planned, each with a label and the changed fields.

    Nothing is offered that would be refused again.
    """
    if "sql" not in ask:
        return []
    offered: list[dict[str, Any]] = []
    for label, fields in _candidates(dataset, ask, error)[:_TRIED]:
        if _can_be_planned(dataset, {**ask, **fields}) and fields not in [one["fields"] for one in offered]:
            offered.append({"label": label, "fields": fields})
    return offered


def _candidates(
    dataset: OpenDataset, ask: dict[str, Any], error: TacitError
) -> list[tuple[str, dict[str, Any]]]:
    candidates = [
        pair for pair in _of_fix(error.fix, ask["sql"]) if pair[1].get("sql", ask["sql"]) or pair[1]
    ]
    if error.code in {"bad-sql", "not-allowed", "unknown-table"}:
        example = example_questions(dataset.dataset)[0]  # type: ignore[arg-type]
        candidates.append((f"Start from an example: {example['label']}", {"sql": example["sql"]}))
    return candidates


def _of_fix(fix: Fix, sql: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield changed fields for a fix; what only the curator can do has none."""
    match fix:
        case Choose(names, given, close) if given:
            for name in [close] if close else names[:2]:
                if (changed := _replaced(sql, given, name)) != sql:
                    yield f"Write {name} for {given}", {"sql": changed}
        case Do(("ask-a-count" | "summarise-units") as action, arguments):
            yield "Ask this instead", {"sql": ACTIONS[action].format(**arguments)}
        case Do(("convert-in-question" | "compare-in-question") as action, arguments):
            text = ACTIONS[action].format(**arguments)
            if (changed := _replaced(sql, str(arguments["expression"]), text)) != sql:
                yield f"Write {text}", {"sql": changed}
        case Set(values) if values and set(values) <= _NUMBERS:
            fields = {name: str(value) for name, value in values.items()}
            text_of_fields = " and ".join(f"{name} to {value}" for name, value in fields.items())
            yield f"Set {text_of_fields}", fields
        case Either(fixes):
            for part in fixes:
                yield from _of_fix(part, sql)


def _replaced(sql: str, old: str, new: str) -> str:
    """Replace a name or an expression where it stands by itself, in quotes or not."""
    pattern = rf'"{re.escape(old)}"|(?<![\w"\']){re.escape(old)}(?![\w"\'])'
    return re.sub(pattern, lambda _: new, sql)


def _can_be_planned(dataset: OpenDataset, ask: dict[str, Any]) -> bool:
    try:
        plan_of(dataset.dataset, ask)
    except (TacitError, ValueError):
        return False
    return True


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
    accounts = []
    for row in rows:
        try:
            remaining = str(service.ledger.remaining(row["name"]))
        except TacitError:  # a ledger that cannot be read now
            remaining = ""
        accounts.append(
            {"name": row["name"], "purpose": row["purpose"], "left": remaining, "plan": row["plan"]}
        )
    return accounts


def page_document(call: ServiceCall, dataset: OpenDataset, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page shows whatever was asked: schema, examples, allotments, the fields as written."""
    title = dataset.policy.get("title") or dataset.name
    has_tables = dataset.kind == "table"
    return {
        "dataset": {
            "name": dataset.name,
            "title": title,
            "kind": dataset.kind,
            "unit": dataset.dataset.unit.noun,
            "policy": dataset.number,
            "paused": pause_shown(dataset.paused),
        },
        "tables": schema_of(dataset.dataset) if has_tables else [],  # type: ignore[arg-type]
        "examples": example_questions(dataset.dataset) if has_tables else [],  # type: ignore[arg-type]
        "methods": methods_of(dataset.kind) if not has_tables else [],
        "accounts": accounts_of(call.service, call.person.id, dataset.name),
        "fields": {name: fields.get(name) or "" for name in _SHOWN},
        "card": None,
        "problem": None,
        "use": [],
        "key": "",
    }


def written_fields(body: AskBody) -> dict[str, str]:
    """Return the fields of a question as a form holds them."""
    fields = {}
    for name in _SHOWN:
        value = getattr(body, name)
        if value is not None:
            parts = value if isinstance(value, tuple) else (value,)
            fields[name] = exact_json(value) if isinstance(value, dict) else ", ".join(map(str, parts))
    return fields


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
    dataset = call.service.dataset(call.dataset)
    document = page_document(call, dataset, {"epsilon": "1/2"})
    examples = document["examples"]
    document["fields"]["sql"] = examples[0]["sql"] if examples else ""
    return document


def _post_page(call: ServiceCall) -> Any:
    body: AskPageBody = call.body.model_copy(update={"dataset": call.dataset})
    dataset = call.service.dataset(call.dataset)
    document = page_document(call, dataset, written_fields(body))
    if body.do == "fill":
        return document
    try:
        card = shown_card(call, body)
    except TacitError as refusal:
        if not call.is_page:
            raise
        problem = problem_of(refusal, call.id)
        use = usable_fixes(dataset, read_ask(body), refusal) if _is_readable(body) else []
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


def _page_again(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the page beside a problem of the form itself, with everything as it was written."""
    return page_document(call, call.service.dataset(call.dataset), fields)


ASK_OPERATIONS = (
    Operation(
        "GET", "/datasets/{dataset}/ask", MAY_PLAN, _get_page, page="plans/ask.html",
        summary="What can be asked of a dataset: tables, columns, keys, examples, your allotments",
    ),
    Operation(
        "POST", "/datasets/{dataset}/ask", MAY_PLAN, _post_page, body=AskPageBody, page="plans/ask.html",
        form=_page_again, most=MAX_QUESTION,
        summary="The page of a question with its card; nothing is charged",
    ),
)  # fmt: skip


class SandboxBody(AskBody):
    """A question to rehearse; as a form, or with the answer as CSV."""

    dataset: DatasetName = ""
    do: Literal["card", "fill", "csv"] = "card"
    purpose: Words = ""


async def _post_sandbox(call: ServiceCall) -> Any:
    body: SandboxBody = call.body.model_copy(update={"dataset": call.dataset})
    dataset = call.service.dataset(call.dataset)
    page = page_document(call, dataset, written_fields(body)) if call.is_page else {}
    try:
        ask = read_ask(body)
        release = await _in_turn(call, dataset, ask)
    except TacitError as refusal:
        if not call.is_page:
            raise
        use = usable_fixes(dataset, read_ask(body), refusal) if refusal.code != "bad-parameter" else []
        document = {**page, "problem": problem_of(refusal, call.id), "use": use, "release": None}
        return Answer(document, status=status_of(refusal.code))
    if body.do == "csv":
        return Download(_csv(release).encode("utf-8"), "text/csv; charset=utf-8", "invented-rows.csv")
    return {**page, "release": _document(release, dataset)}


@cache
def _rehearsals() -> ThreadPoolExecutor:
    """Return the threads of rehearsals: a few run at once in this process; nothing else waits for them."""
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="rehearsal")


async def _in_turn(call: ServiceCall, dataset: OpenDataset, ask: Mapping[str, Any]) -> Release[Any]:
    """Rehearse when there is a free thread; waiting for one is nobody's effort."""
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def rehearsed() -> Release[Any]:
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(begun.set)
        return _rehearsed(dataset, ask)

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


def _rehearsed(dataset: OpenDataset, ask: Mapping[str, Any]) -> Release[Any]:
    """Plan on the declared facts, then run the same plan on invented rows."""
    if dataset.kind != "table":
        raise TacitError("not-allowed", f"datasets of the kind {dataset.kind} have no rehearsal")
    plan = plan_of(dataset.dataset, ask)
    if plan.instalments is not None:
        raise TacitError("not-allowed", "a run of several instalments has no rehearsal")
    release = plan_of(_trial(dataset, dict(plan.promised)), ask).release()
    return release.changed(release.content, INVENTED)


def _trial(dataset: OpenDataset, promised: dict[str, Any]) -> TableDataset:
    """Make the dataset of invented rows, fixed for each policy; its ledger has room for one plan."""
    from tacit.tables import rehearsal

    name = f"{dataset.name}\x1f{dataset.number}".encode()
    seed = int.from_bytes(hashlib.sha256(name).digest()[:8], "big")
    return rehearsal(dataset.dataset, seed=seed, budget=Budget(**promised))  # type: ignore[arg-type]


def _document(release: Release[Any], dataset: OpenDataset) -> dict[str, Any]:
    """Return the release with its label, without the certificate, whose ledger is gone."""
    document = dict(release.to_json())
    document.pop("certificate", None)
    content: Any = document.get("content") or {}
    return {
        "invented": True,
        "marks": list(release.marks),
        "note": f"These numbers come from {INVENTED}, not from {dataset.name} itself. Nothing was charged.",
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
    dataset = call.service.dataset(call.dataset)
    document = page_document(call, dataset, {"epsilon": "1/2"})
    examples = document["examples"]
    document["fields"]["sql"] = examples[0]["sql"] if examples else ""
    return {**document, "release": None}


def _sandbox_again(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    return {**page_document(call, call.service.dataset(call.dataset), fields), "release": None}


SANDBOX_OPERATIONS = (
    Operation(
        "GET", "/datasets/{dataset}/sandbox", MAY_PLAN, _get_sandbox, page="plans/sandbox.html",
        summary="The page on which questions are rehearsed",
    ),
    Operation(
        "POST", "/datasets/{dataset}/sandbox", MAY_PLAN, _post_sandbox, body=SandboxBody,
        page="plans/sandbox.html", form=_sandbox_again, most=MAX_QUESTION,
        summary="Rehearse a question on invented rows: free, at once, nothing is charged or recorded",
    ),
)  # fmt: skip
