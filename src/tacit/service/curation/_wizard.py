"""The wizard: a dataset, or its next policy, declared step by step with plain forms. No row is ever read.

What was filled in travels from step to step in one hidden field. It is the browser's, so nothing in it is
trusted: the last step reads all of it through the same door as a program's declaration.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import model_validator

from tacit.core import Unit
from tacit.errors import TacitError
from tacit.service._bodies import Body, read_body, read_json
from tacit.service._refusals import body_unreadable
from tacit.service.curation._amounts import budget_document, budget_from, budget_text
from tacit.service.curation._declaration import declare, write_change
from tacit.service.curation._meaning import budget_meaning
from tacit.service.curation._policies import DatasetDeclared, PolicyChanged, changed_policy, declared_policy
from tacit.service.curation._policy_changes import policy_changes
from tacit.service.curation._sources import described
from tacit.service.curation._wizard_state import (
    COLUMNS_PER_PAGE,
    KIND_FIELDS,
    clean_state,
    column_names,
    given_policy,
    read_columns,
    state_of_policy,
    unit_names,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._operations import Answer, ServiceCall

_STEPS: Final = ("source", "unit", "declared", "columns", "limits", "budget", "review")
_CHANGE_STEPS: Final = ("columns", "limits", "answers", "review")
_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "source": ("source", "name", "title", "about"),
    "unit": ("unit", "per", "adjacency"),
    "declared": KIND_FIELDS,
    "limits": ("rows", "groups", "per_group"),
    "budget": ("epsilon", "delta", "rho", "largest", "lag", "record", "shows_stored"),
    "answers": ("version", "lag", "width", "record", "shows_stored", "title", "about"),
}
_BOXES: Final = ("shows_stored", "directed")  # an empty box is not sent
_START: Final = {
    "source": "", "name": "", "title": "", "about": "", "unit": "", "per": "", "adjacency": "add/remove",
    "rows": "10", "groups": "", "per_group": "", "epsilon": "", "delta": "", "rho": "", "largest": "",
    "lag": "", "width": "", "record": "words", "version": "1", "tables": [], "columns": {}, "changes": "",
    "shows_stored": "yes", "of_tables": {}, "kind": "table", **dict.fromkeys(KIND_FIELDS, ""),
}  # fmt: skip


class WizardForm(Body):
    """The fields of whichever step was sent."""

    fields: dict[str, str]
    model_config: ClassVar = {"extra": "forbid", "strict": True, "frozen": True}

    @model_validator(mode="before")
    @classmethod
    def _collect(cls, given: Any) -> Any:
        return {"fields": given}


def begin_declaration(call: ServiceCall) -> dict[str, Any]:
    """Show the first step: which source."""
    return _document(call, dict(_START), "source", 0)


async def begin_change(call: ServiceCall) -> dict[str, Any]:
    """Show the first step of a new policy: the columns as they are declared now."""
    opened = call.service.dataset(call.dataset)
    state = {**_START, **state_of_policy(opened)}
    return _document(call, state, _steps(state)[0], 0)


async def continue_wizard(call: ServiceCall) -> Answer | dict[str, Any]:
    """Take one step: keep what was filled in, then show the next step, or declare."""
    fields = call.body.fields
    state, step, page = _read(call, fields)
    if fields.get("do") == "back":
        return _document(call, state, *_before(state, step, page))
    state = _filled(state, step, page, fields)
    if step == "source":
        found = await described(call.service, state["source"])
        state |= {"tables": found["tables"], "kind": found["kind"]}
    _check(call, state, step)
    if fields.get("do") == "show":  # what a budget means, before going on
        return _document(call, state, step, page)
    if step == "review":
        if state["changes"]:
            return await write_change(call, read_body(PolicyChanged, given_policy(state, new=False)))
        return await declare(call, read_body(DatasetDeclared, given_policy(state, new=True)))
    return _document(call, state, *_after(state, step, page))


def wizard_form(call: ServiceCall, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the step that was refused, as it was filled in."""
    state, step, page = _read(call, fields)
    return _document(call, _filled(state, step, page, fields), step, page)


def _read(call: ServiceCall, fields: Mapping[str, str]) -> tuple[dict[str, Any], str, int]:
    """Read what the steps before have filled in; only known names of known types are kept."""
    given = read_json(fields.get("state", "{}").encode("utf-8", "replace"))
    step, page = fields.get("step", ""), fields.get("page", "0")
    if (
        not isinstance(given, dict)
        or step not in {*_STEPS, *_CHANGE_STEPS}
        or page not in map(str, range(1000))
    ):
        raise body_unreadable("it is not a step of this form")
    state: dict[str, Any] = dict(_START)
    for name, usual in _START.items():
        value = given.get(name, usual)
        if type(value) is not type(usual):
            raise body_unreadable("it is not a step of this form")
        state[name] = value
    return {**clean_state(state), "changes": call.dataset}, step, int(page)


def _filled(state: dict[str, Any], step: str, page: int, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the state with the fields of one step."""
    named = _FIELDS.get(step, ())
    known = {name: fields[name].strip() for name in named if name in fields}
    known |= {name: "" for name in _BOXES if name in named and name not in fields}
    changed = {**state, **known}
    return read_columns(changed, page, fields) if step == "columns" else changed


def _steps(state: Mapping[str, Any]) -> tuple[str, ...]:
    steps = _CHANGE_STEPS if state["changes"] else _STEPS
    skipped = {"table": {"declared"}, "stream": set[str]()}.get(state["kind"], {"columns"})
    skipped |= {"limits"} if state["unit"] in {"row", "edge", "node"} else set()
    return tuple(one for one in steps if one not in skipped)


def _after(state: Mapping[str, Any], step: str, page: int) -> tuple[str, int]:
    if step == "columns" and (page + 1) * COLUMNS_PER_PAGE < len(column_names(state)):
        return "columns", page + 1
    steps = _steps(state)
    return steps[min(steps.index(step) + 1, len(steps) - 1)] if step in steps else steps[0], 0


def _before(state: Mapping[str, Any], step: str, page: int) -> tuple[str, int]:
    if step == "columns" and page:
        return "columns", page - 1
    steps = _steps(state)
    earlier = steps[max(steps.index(step) - 1, 0)] if step in steps else steps[0]
    pages = max(0, (len(column_names(state)) - 1) // COLUMNS_PER_PAGE)
    return earlier, pages if earlier == "columns" else 0


def _check(call: ServiceCall, state: dict[str, Any], step: str) -> None:
    """Refuse what is wrong in this step, so that it is mended where it stands."""
    name = state["name"]
    if step == "source" and call.service.database.row("SELECT name FROM datasets WHERE name = ?", name):
        raise TacitError(
            "bad-parameter", "there is a dataset of that name already", fix="choose another name"
        )
    if step == "unit" and state["unit"] not in unit_names(state):
        raise TacitError("bad-parameter", "choose who is protected", fix="choose one of the answers")
    upto = _STEPS.index(step) if step in _STEPS and not state["changes"] else len(_STEPS)
    filled = dict(state)
    if upto < _STEPS.index("unit"):
        filled |= {"unit": "row"}
    if upto < _STEPS.index("budget"):
        filled |= {"epsilon": "1", "delta": "", "rho": "", "largest": ""}
    if upto < _STEPS.index("declared"):
        filled |= {"kind": "table"}
    if state["changes"]:
        read_body(PolicyChanged, given_policy(filled, new=False))
    else:
        declared_policy(read_body(DatasetDeclared, given_policy(filled, new=True)), call.service.settings)


def _document(call: ServiceCall, state: dict[str, Any], step: str, page: int) -> dict[str, Any]:
    """Return what the page of a step shows."""
    names = column_names(state)
    start = page * COLUMNS_PER_PAGE
    steps = _steps(state)
    shown: dict[str, Any] = {
        "action": f"/datasets/{state['changes']}/change" if state["changes"] else "/declare",
        "state": state,
        "kept": json.dumps(state),
        "step": step,
        "page": page,
        "steps": [{"name": one, "is_now": one == step} for one in steps],
        "is_first": step == steps[0] and not page,
        "sources": sorted(call.service.settings.sources),
        "units": unit_names(state),
        "noun": _noun(state),
        "names": [one["name"] for one in names],
        "columns": names[start : start + COLUMNS_PER_PAGE],
        "start": start,
        "total": len(names),
        "tick": float(call.service.settings.tick),
        "lag": call.service.settings.lag,
        "meaning": None,
        "budget": None,
        "changes": [],
        "policy": None,
    }
    return {**shown, **_meaning(state, step), **(_review(call, state) if step == "review" else {})}


def _meaning(state: Mapping[str, Any], step: str) -> dict[str, Any]:
    """Return what the budget means in odds, where it can be read already."""
    if step not in {"budget", "review"} or state["changes"]:
        return {}
    try:
        budget = budget_from({name: state[name] for name in ("epsilon", "delta", "rho")})
    except (TacitError, ValueError, ZeroDivisionError):
        return {}
    meaning = budget_meaning(budget, _noun(state), state["adjacency"])
    return {"budget": budget_document(budget), "meaning": meaning}


def _noun(state: Mapping[str, Any]) -> str:
    """Return what the page calls whoever is protected; plain words until that is chosen."""
    try:
        return Unit.from_text(_unit(state)).noun
    except (TacitError, ValueError):
        return "person"


def _unit(state: Mapping[str, Any]) -> str:
    return f"{state['unit']} per {state['per']}" if state["per"] else str(state["unit"])


def _review(call: ServiceCall, state: dict[str, Any]) -> dict[str, Any]:
    """Return the policy that would be written, and in words what is new in it."""
    if state["changes"]:
        opened = call.service.dataset(state["changes"])
        budget = budget_text(call.service.ledger.account(opened.name).budget)
        policy = changed_policy(
            opened.policy, read_body(PolicyChanged, given_policy(state, new=False)), budget
        )
        return {"policy": policy, "changes": policy_changes(opened.policy, policy)}
    policy = declared_policy(read_body(DatasetDeclared, given_policy(state, new=True)), call.service.settings)
    return {"policy": policy, "changes": policy_changes({}, policy)}
