"""The wizard: a dataset, or its next policy, declared step by step with plain forms. No row is ever read.

What was filled in, and the declaration that it stands for, travels from step to step in one hidden field. It
is the browser's, so nothing in it is trusted: the last step reads all of it through the same door as a
program's declaration.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import model_validator

from tacit.core import Unit
from tacit.errors import TacitError
from tacit.parameters import Integer
from tacit.service._bodies import Body, read_body, read_json, read_typed
from tacit.service._refusals import body_unreadable
from tacit.service.curation._amounts import budget_document, budget_from, budget_meaning, budget_text
from tacit.service.curation._declaration import declare, described, write_change
from tacit.service.curation._policies import (
    DatasetDeclared,
    PolicyChanged,
    changed_policy,
    declared_policy,
    policy_changes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._operations import Answer, ServiceCall
    from tacit.service._service import OpenDataset


COLUMNS_PER_PAGE: Final = 25  # five fields each; a form has at most 200
#: What the kinds other than tables need to know: points on a map, then graphs, then streams.
KIND_FIELDS: Final = (
    "lat", "lon", "south", "west", "north", "east",
    "source_column", "target_column", "nodes", "degree_bound", "directed",
    "start", "days", "most_days", "apart",
)  # fmt: skip
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", re.ASCII)
_MISSING: Final = "(missing)"  # the key of missing values
_EMPTY: Final = {"kind": "", "low": "", "high": "", "keys": "", "never_null": ""}
_STEPS: Final = ("source", "unit", "declared", "columns", "limits", "budget", "review")
_CHANGE_STEPS: Final = ("columns", "limits", "answers", "review")
_BOXES: Final = ("shows_stored", "directed")  # an empty box is not sent
_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "source": ("source", "name", "title", "about"),
    "unit": ("unit", "per", "adjacency"),
    "declared": KIND_FIELDS,
    "limits": ("rows", "groups", "per_group", "minimum_people"),
    "budget": ("epsilon", "delta", "rho", "largest", "lag", "record", "shows_stored"),
    "answers": ("version", "lag", "width", "record", "shows_stored", "title", "about"),
}
_START: Final = {
    "source": "", "name": "", "title": "", "about": "", "unit": "", "per": "", "adjacency": "add/remove",
    "rows": "10", "groups": "", "per_group": "", "minimum_people": "", "epsilon": "", "delta": "", "rho": "",
    "largest": "",
    "lag": "", "width": "", "record": "words", "version": "1", "tables": [], "columns": {}, "changes": "",
    "shows_stored": "yes", "of_tables": {}, "kind": "table", **dict.fromkeys(KIND_FIELDS, ""),
}  # fmt: skip


def clean_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state that came back from the browser with exactly the parts that a state has, all of text."""
    try:
        tables = [
            {
                "name": str(table["name"]),
                "columns": [{"name": str(one["name"]), "kind": str(one["kind"])} for one in table["columns"]],
            }
            for table in state["tables"]
        ]
        columns = {
            str(name): {key: str(one.get(key, "")) for key in _EMPTY}
            for name, one in state["columns"].items()
        }
        of_tables = {str(name): {"rows": int(one["rows"])} for name, one in state["of_tables"].items()}
    except (KeyError, TypeError, AttributeError, ValueError):
        raise body_unreadable("it is not a step of this form") from None
    return {**state, "tables": tables, "columns": columns, "of_tables": of_tables}


def column_names(state: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the columns with what is filled in; of several tables, each has its table in front.

    Examples
    --------
    >>> one = {"tables": [{"name": "data", "columns": [{"name": "age", "kind": "number"}]}], "columns": {}}
    >>> column_names(one)[0]["name"]
    'age'
    """
    columns: list[dict[str, str]] = []
    many = len(state["tables"]) > 1
    for table in state["tables"]:
        for column in table["columns"]:
            name = f"{table['name']}.{column['name']}" if many else column["name"]
            stored = {"moment": "date"}.get(column["kind"], column["kind"])
            now = {**_EMPTY, **state["columns"].get(name, {})}
            kind = now["kind"] or (stored if stored in {"number", "text", "boolean", "date"} else "")
            columns.append({**now, "name": name, "stored": stored, "kind": kind})
    return columns


def unit_names(state: Mapping[str, Any]) -> list[str]:
    """Return what may be the unit: a column that every table has, or a single row; of a graph its parts."""
    if state["kind"] == "graph":
        return ["edge", "node"]
    tables = [[str(one["name"]) for one in table["columns"]] for table in state["tables"]]
    shared = [name for name in (tables[0] if tables else []) if all(name in table for table in tables)]
    return [*shared, "row"]


def read_columns(state: Mapping[str, Any], page: int, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the state with one page of columns, as they were filled in."""
    columns = dict(state["columns"])
    start = page * COLUMNS_PER_PAGE
    for index, column in enumerate(column_names(state)[start : start + COLUMNS_PER_PAGE], start):
        now = {key: fields.get(f"{key}-{index}", "").strip() for key in _EMPTY}
        if now["kind"] == column["stored"]:
            now["kind"] = ""
        columns[column["name"]] = now
    return {**state, "columns": {name: one for name, one in columns.items() if one != _EMPTY}}


def given_policy(state: Mapping[str, Any], *, new: bool) -> dict[str, Any]:
    """Return the declaration that a state stands for, as a program would send it."""
    columns = {one["name"]: one for one in column_names(state)}
    chosen = {name: one for name, one in columns.items() if name in state["columns"]}
    declaration: dict[str, Any] = {
        "version": _whole("version", state["version"]) or 1,
        "bounds": {name: _bounds(name, one) for name, one in chosen.items() if one["low"] or one["high"]},
        "keys": {name: _keys(one) for name, one in chosen.items() if one["keys"].strip()},
        "types": {
            name: one["kind"] for name, one in chosen.items() if one["kind"] and one["kind"] != one["stored"]
        },
        "never_null": [name for name, one in chosen.items() if one["never_null"]],
        "limits": _limits(state),
        "minimum_people": _whole("minimum_people", state.get("minimum_people", "")),
        "record": state["record"],
        "lag": _whole("lag", state["lag"]),
        "width": _whole("width", state["width"]),
        "about": state["about"],
        "shows_stored": bool(state["shows_stored"]),
        **({"title": state["title"]} if state["title"] else {}),
    }
    if not new:
        return declaration
    budget = {name: state[name] for name in ("epsilon", "delta", "rho") if state[name]}
    measure = "rho" if state["rho"] else "epsilon"
    return {
        **declaration,
        "name": state["name"],
        "source": state["source"],
        "unit": f"{state['unit']} per {state['per']}" if state["per"] else state["unit"],
        "adjacency": state["adjacency"],
        "budget": budget,
        "per_charge": {measure: state["largest"]} if state["largest"] else None,
        "declared": _declared(state),
    }


def _declared(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a kind other than tables, without what is empty."""
    match state["kind"]:
        case "points":
            box = [[state["south"], state["west"]], [state["north"], state["east"]]]
            return {"lat": state["lat"], "lon": state["lon"], "box": box}
        case "graph":
            facts: dict[str, Any] = {name: state[name] for name in ("source_column", "target_column")}
            numbers = {name: _whole(name, state[name]) for name in ("nodes", "degree_bound")}
            facts |= {name: one for name, one in numbers.items() if one is not None}
            return {**facts, "directed": True} if state["directed"] else facts
        case "stream":
            integers = {name: _whole(name, state[name]) for name in ("days", "most_days", "apart")}
            return {
                "start": state["start"],
                **{name: one for name, one in integers.items() if one is not None},
            }
    return {}


def _tables_of(dataset: OpenDataset) -> list[dict[str, Any]]:
    """Return the tables with their columns; those of a stream are the columns that were declared."""
    if dataset.kind == "stream":
        return [{"name": dataset.name, "columns": _declared_columns(dataset.policy)}]
    return [
        {
            "name": table["name"],
            "columns": [
                {"name": one, "kind": table["facts"].get(one, {}).get("stored", "")}
                for one in table["columns"] or ()
            ],
        }
        for table in dataset.facts.get("tables", ())
        if table["key"] is None
    ]


def _declared_columns(policy: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the columns that a policy names, with the kinds by which their keys are read again."""
    names = {name for fact in ("bounds", "keys", "types", "never_null") for name in policy[fact]}
    columns = []
    for name in sorted(names):
        keys = [one for one in policy["keys"].get(name, ()) if one is not None]
        kind = "number" if name in policy["bounds"] else "text"
        if keys and all(isinstance(one, bool) for one in keys):
            kind = "boolean"
        elif keys and all(isinstance(one, int | float) for one in keys):
            kind = "number"
        columns.append({"name": name, "kind": "" if name in policy["types"] else kind})
    return columns


def state_of_policy(dataset: OpenDataset) -> dict[str, Any]:
    """Return the state that stands for the present policy, to change it."""
    policy, limits = dataset.policy, dataset.policy["limits"] or {}
    columns: dict[str, dict[str, str]] = {}
    for name, pair in policy["bounds"].items():
        low, high = ("auto", "") if pair == "auto" else pair
        columns.setdefault(name, dict(_EMPTY)).update(low=low, high=high)
    for name, keys in policy["keys"].items():
        columns.setdefault(name, dict(_EMPTY))["keys"] = "\n".join(
            _MISSING if one is None else str(one).lower() if isinstance(one, bool) else str(one)
            for one in keys
        )
    for name, kind in policy["types"].items():
        columns.setdefault(name, dict(_EMPTY))["kind"] = kind
    for name in policy["never_null"]:
        columns.setdefault(name, dict(_EMPTY))["never_null"] = "yes"
    return {
        "tables": _tables_of(dataset),
        "columns": columns,
        "changes": dataset.name,
        "kind": dataset.kind,
        "unit": policy["unit"],
        "title": policy["title"],
        "about": policy["about"],
        "shows_stored": "yes" if policy["shows_stored"] else "",
        "of_tables": {name: one for name, one in limits.items() if isinstance(one, dict)},
        "minimum_people": str(policy.get("minimum_people") or ""),
        "record": policy["record"],
        "version": str(policy["version"]),
        "lag": str(policy["lag"]),
        "width": str(policy["width"]),
        **{
            name: "" if isinstance(limits.get(name), dict) else str(limits.get(name) or "")
            for name in ("rows", "groups", "per_group")
        },
    }


def _limits(state: Mapping[str, Any]) -> dict[str, Any] | None:
    if state["unit"] in {"row", "edge", "node"}:
        return None
    limits = {name: _whole(name, state[name]) for name in ("rows", "groups", "per_group")}
    return {**{name: one for name, one in limits.items() if one is not None}, **state["of_tables"]} or None


def _whole(name: str, text: str) -> int | None:
    if not text:
        return None
    limit: int = read_typed(Integer(0, 10**9 - 1, instead=1), name, text)
    return limit


def _bounds(name: str, column: Mapping[str, str]) -> list[str] | str:
    if column["low"].strip() == "auto" and not column["high"].strip():
        return "auto"
    if not (column["low"] and column["high"]):
        raise TacitError(
            "bad-parameter",
            f"the column {name} has only one bound",
            fix="give the smallest and the largest value that everybody knows to be possible, or neither",
        )
    return [column["low"], column["high"]]


def _keys(column: Mapping[str, str]) -> list[object]:
    """Read one key on each line, as the column's kind is read."""
    texts = [line.strip() for line in column["keys"].splitlines() if line.strip()]
    if _MISSING in texts:
        return [*_keys({**column, "keys": "\n".join(text for text in texts if text != _MISSING)}), None]
    match column["kind"]:
        case "number":
            if not all(_NUMBER.fullmatch(text) for text in texts):
                raise _not_keys(column, "numbers, one on each line")
            return [Decimal(text) if "." in text else int(text) for text in texts]
        case "boolean":
            booleans = {"true": True, "false": False, "yes": True, "no": False}
            if not all(text.lower() in booleans for text in texts):
                raise _not_keys(column, "true or false")
            return [booleans[text.lower()] for text in texts]
    return list(texts)


def _not_keys(column: Mapping[str, str], words: str) -> TacitError:
    return TacitError("bad-parameter", f"the keys of {column['name']} must be {words}")


class WizardForm(Body):
    """The fields of whichever step was sent."""

    fields: dict[str, str]
    model_config: ClassVar = {"extra": "forbid", "strict": True, "frozen": True}

    @model_validator(mode="before")
    @classmethod
    def _collect(cls, document: Any) -> Any:
        return {"fields": document}


def begin_declaration(call: ServiceCall) -> dict[str, Any]:
    """Show the first step: which source."""
    return _document(call, dict(_START), "source", 0)


async def begin_change(call: ServiceCall) -> dict[str, Any]:
    """Show the first step of a new policy: the columns as they are declared now."""
    dataset = call.service.dataset(call.dataset)
    state = {**_START, **state_of_policy(dataset)}
    return _document(call, state, _steps(state)[0], 0)


async def continue_wizard(call: ServiceCall) -> Answer | dict[str, Any]:
    """Take one step: keep what was filled in, then show the next step, or declare."""
    fields = call.body.fields
    state, step, page = _read(call, fields)
    if fields.get("do") == "back":
        return _document(call, state, *_before(state, step, page))
    state = _filled(state, step, page, fields)
    if step == "source":
        columns = await described(call.service, state["source"])
        state |= {"tables": columns["tables"], "kind": columns["kind"]}
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
    document = read_json(fields.get("state", "{}").encode("utf-8", "replace"))
    step, page = fields.get("step", ""), fields.get("page", "0")
    if (
        not isinstance(document, dict)
        or step not in {*_STEPS, *_CHANGE_STEPS}
        or page not in map(str, range(1000))
    ):
        raise body_unreadable("it is not a step of this form")
    state: dict[str, Any] = dict(_START)
    for name, usual in _START.items():
        value = document.get(name, usual)
        if type(value) is not type(usual):
            raise body_unreadable("it is not a step of this form")
        state[name] = value
    return {**clean_state(state), "changes": call.dataset}, step, int(page)


def _filled(state: dict[str, Any], step: str, page: int, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the state with the fields of one step."""
    names = _FIELDS.get(step, ())
    filled = {name: fields[name].strip() for name in names if name in fields}
    filled |= {name: "" for name in _BOXES if name in names and name not in fields}
    changed = {**state, **filled}
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
    document: dict[str, Any] = {
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
    return {**document, **_meaning(state, step), **(_review(call, state) if step == "review" else {})}


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
        dataset = call.service.dataset(state["changes"])
        budget = budget_text(call.service.ledger.account(dataset.name).budget)
        policy = changed_policy(
            dataset.policy, read_body(PolicyChanged, given_policy(state, new=False)), budget
        )
        return {"policy": policy, "changes": policy_changes(dataset.policy, policy)}
    policy = declared_policy(read_body(DatasetDeclared, given_policy(state, new=True)), call.service.settings)
    return {"policy": policy, "changes": policy_changes({}, policy)}
