"""What changed between two policies, in words: added, removed, changed, old and new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.service.curation._amounts import amount_document, budget_from

if TYPE_CHECKING:
    from collections.abc import Mapping

_SINGLE = {
    "title": "title",
    "about": "description",
    "source": "source",
    "version": "version of the data",
    "budget": "budget",
    "per_charge": "largest single charge",
    "parent": "shared account",
    "record": "what the log keeps of a question",
    "lag": "boundaries until an answer leaves",
    "width": "questions that one boundary admits",
    "shows_stored": "whether stored answers are announced",
}
_BY_COLUMN = {"bounds": "bounds of", "keys": "keys of", "types": "type of", "declared": "fact"}


def policy_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what changed from one policy to the next; each change says what, how, the old and the new.

    Examples
    --------
    >>> empty = {"bounds": {}, "keys": {}, "types": {}, "never_null": [], "limits": None, "version": 1}
    >>> changed = policy_changes(empty, {**empty, "bounds": {"age": ["0", "120"]}, "version": 2})
    >>> [one["sentence"] for one in changed]
    ['version of the data changed from 1 to 2', 'bounds of age added: 0 to 120']
    """
    found = [
        _change(words, _written(name, before.get(name)), _written(name, after.get(name)))
        for name, words in _SINGLE.items()
        if before.get(name) != after.get(name)
    ]
    for name, words in _BY_COLUMN.items():
        found += _by_key(words, name, before.get(name) or {}, after.get(name) or {})
    found += _by_key("limit of", "limits", _flat(before.get("limits")), _flat(after.get("limits")))
    old, new = before.get("never_null") or (), after.get("never_null") or ()
    found += [_change(f"column {one} never missing", "", "yes") for one in new if one not in old]
    found += [_change(f"column {one} never missing", "yes", "") for one in old if one not in new]
    return found


def _by_key(words: str, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        _change(f"{words} {key}", _written(name, old.get(key)), _written(name, new.get(key)))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]


def _flat(limits: Mapping[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in (limits or {}).items():
        if isinstance(value, dict):
            found |= {f"{one} in table {name}": limit for one, limit in value.items()}
        else:
            found[name] = value
    return found


def _change(what: str, old: str, new: str) -> dict[str, str]:
    if not old:
        kind, sentence = "added", f"{what} added: {new}"
    elif not new:
        kind, sentence = "removed", f"{what} removed: {old}"
    else:
        kind, sentence = "changed", f"{what} changed from {old} to {new}"
    return {"what": what, "kind": kind, "old": old, "new": new, "sentence": sentence}


def _written(name: str, value: Any) -> str:
    """Write one fact for people; empty where there is none."""
    match name, value:
        case _, None:
            return ""
        case (("budget" | "per_charge"), dict()):
            budget = budget_from(value)
            return str(amount_document(budget.epsilon, budget.delta, budget.rho)["words"])
        case "bounds", [low, high]:
            return f"{low} to {high}"
        case "keys", list():
            return ", ".join("missing" if one is None else str(one) for one in value)
        case _, bool():
            return "yes" if value else "no"
    return str(value)
