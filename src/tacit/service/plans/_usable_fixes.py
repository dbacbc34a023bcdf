"""Fixes that work when they are used: other fields of the question, tried before they are offered."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.fixes import ACTIONS, Choose, Do, Either, Fix, Set
from tacit.service.plans._asked_plans import plan_of
from tacit.service.plans._schema import example_questions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.service._service import OpenDataset

_TRIED = 4  # candidates: each costs a plan
_NUMBERS = frozenset({"epsilon", "delta", "rho", "within", "confidence"})


def usable_fixes(opened: OpenDataset, ask: dict[str, Any], error: TacitError) -> list[dict[str, Any]]:
    """Return changes of a refused question that can be planned, each with a label and the changed fields.

    Nothing is offered that would be refused again.
    """
    if "sql" not in ask:
        return []
    offered: list[dict[str, Any]] = []
    for label, fields in _candidates(opened, ask, error)[:_TRIED]:
        if _can_be_planned(opened, {**ask, **fields}) and fields not in [one["fields"] for one in offered]:
            offered.append({"label": label, "fields": fields})
    return offered


def _candidates(
    opened: OpenDataset, ask: dict[str, Any], error: TacitError
) -> list[tuple[str, dict[str, Any]]]:
    found = [pair for pair in _of_fix(error.fix, ask["sql"]) if pair[1].get("sql", ask["sql"]) or pair[1]]
    if error.code in {"bad-sql", "not-allowed", "unknown-table"}:
        first = example_questions(opened.dataset)[0]  # type: ignore[arg-type]
        found.append((f"Start from an example: {first['label']}", {"sql": first["sql"]}))
    return found


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
            written = ACTIONS[action].format(**arguments)
            if (changed := _replaced(sql, str(arguments["expression"]), written)) != sql:
                yield f"Write {written}", {"sql": changed}
        case Set(values) if values and set(values) <= _NUMBERS:
            fields = {name: str(value) for name, value in values.items()}
            shown = " and ".join(f"{name} to {value}" for name, value in fields.items())
            yield f"Set {shown}", fields
        case Either(fixes):
            for one in fixes:
                yield from _of_fix(one, sql)


def _replaced(sql: str, old: str, new: str) -> str:
    """Replace a name or an expression where it stands by itself, in quotes or not."""
    alone = rf'"{re.escape(old)}"|(?<![\w"\']){re.escape(old)}(?![\w"\'])'
    return re.sub(alone, lambda _: new, sql)


def _can_be_planned(opened: OpenDataset, ask: dict[str, Any]) -> bool:
    try:
        plan_of(opened.dataset, ask)
    except (TacitError, ValueError):
        return False
    return True
