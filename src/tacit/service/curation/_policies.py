"""Policies: what a curator declares about a dataset. A policy never changes; a change is the next number.

What changed between two policies is said in words: added, removed, changed, old and new.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, WithJsonSchema

from tacit.core import Unit
from tacit.errors import TacitError
from tacit.service._bodies import Body, DatasetName, ExactNumber, Name, Words
from tacit.service.curation._amounts import amount_document, budget_from, budget_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._settings import ServiceSettings


_EXACT: TypeAdapter[Fraction] = TypeAdapter(ExactNumber)
_MAX_TICKS = 100_000
_STREAM_TICKS = 40  # a tenth of them is enough to write down the intervals of a year
_Type = Literal["number", "text", "boolean", "date"]
_BY_COLUMN = {"bounds": "bounds of", "keys": "keys of", "types": "type of", "declared": "fact"}


def _signed(value: object) -> Fraction:
    """Read an exact number that may be negative."""
    if isinstance(value, str) and value.strip().startswith("-"):
        return -_EXACT.validate_python(value.strip()[1:])
    if isinstance(value, int | Decimal | Fraction) and not isinstance(value, bool) and value < 0:
        return -_EXACT.validate_python(-value)
    return _EXACT.validate_python(value)


def _key(value: object) -> object:
    """Read a public key: text, a number, a truth value, or null for missing values."""
    if isinstance(value, Decimal):
        return float(value)
    if value is None or isinstance(value, str | bool | int):
        return value
    raise ValueError("must be text, a number, true, false or null")


def _plain(value: object) -> object:
    """Return a document with decimal numbers as exact text."""
    match value:
        case Decimal():
            return str(value)
        case dict():
            return {str(name): _plain(one) for name, one in value.items()}
        case list():
            return [_plain(one) for one in value]
    return value


#: An exact number that may be negative: text such as ``"-1/2"``, or a JSON number.
SignedNumber = Annotated[
    Fraction,
    BeforeValidator(_signed),
    WithJsonSchema({"anyOf": [{"type": "string", "maxLength": 61}, {"type": "number"}]}),
]
PublicKey = Annotated[
    Any, BeforeValidator(_key), WithJsonSchema({"type": ["string", "number", "boolean", "null"]})
]
_Declared = Annotated[dict[str, Any], BeforeValidator(_plain), WithJsonSchema({"type": "object"})]
_Bounds = Annotated[list[SignedNumber], Field(min_length=2, max_length=2)] | Literal["auto"]
_Keys = Annotated[list[PublicKey], Field(min_length=1, max_length=10_000)]
_Count = Annotated[int, Field(ge=1, le=10**9)]
_Ticks = Annotated[int, Field(ge=1, le=_MAX_TICKS)]


class BudgetGiven(Body):
    """A budget, in epsilon or in rho."""

    epsilon: ExactNumber | None = None
    delta: ExactNumber = Fraction(0)
    rho: ExactNumber | None = None


class PolicyChanged(Body):
    """What a later policy may change; who is protected and the budget are not among it."""

    version: _Count = 1
    bounds: dict[Name, _Bounds] = Field(default_factory=dict)
    keys: dict[Name, _Keys] = Field(default_factory=dict)
    types: dict[Name, _Type] = Field(default_factory=dict)
    never_null: list[Name] = Field(default_factory=list)
    limits: dict[Name, _Count | dict[Name, _Count]] | None = None
    #: How many units a line of a grouped answer needs to be shown.
    minimum_people: Annotated[int, Field(ge=2, le=10**9)] | None = None
    record: Literal["words", "shape"] = "words"
    lag: _Ticks | None = None
    width: _Ticks | None = None
    shows_stored: bool = True
    title: Name | None = None
    about: Words = ""


class DatasetDeclared(PolicyChanged):
    """A new dataset: everything that its first policy says."""

    name: DatasetName
    source: Name
    unit: Name
    adjacency: Literal["add/remove", "replace"] = "add/remove"
    budget: BudgetGiven
    per_charge: BudgetGiven | None = None
    parent: Name | None = None
    #: The facts of a kind other than tables: the box of a map, the columns of an edge list.
    declared: _Declared = Field(default_factory=dict)


def _facts_given(declaration: PolicyChanged) -> dict[str, Any]:
    """Return the part of a policy that may change, as JSON with exact numbers in text."""
    return {
        "version": declaration.version,
        "bounds": {
            column: pair if pair == "auto" else [str(one) for one in pair]
            for column, pair in declaration.bounds.items()
        },
        "keys": {column: list(values) for column, values in declaration.keys.items()},
        "types": dict(declaration.types),
        "never_null": list(declaration.never_null),
        "limits": declaration.limits,
        "record": declaration.record,
        "shows_stored": declaration.shows_stored,
        "about": declaration.about,
        **({} if declaration.minimum_people is None else {"minimum_people": declaration.minimum_people}),
    }


def _refuse_minimum(kind: str, declaration: PolicyChanged) -> None:
    """Refuse a minimum of people for data that has no groups of them."""
    if declaration.minimum_people is not None and kind != "table":
        raise TacitError(
            "bad-parameter",
            "only tables have a minimum of people",
            fix="leave the minimum out",
        )


def declared_policy(declaration: DatasetDeclared, settings: ServiceSettings) -> dict[str, Any]:
    """Return the first policy of a dataset, with the service's defaults filled in.

    Guarantee: the budget, the unit and the source were read and are valid; the columns are checked by the
    runner, which knows them.
    """
    source = settings.sources.get(declaration.source)
    if source is None:
        raise TacitError(
            "bad-parameter", "there is no listed source of that name", fix="choose one of the listed sources"
        )
    if declaration.declared and source.kind == "table":
        raise TacitError(
            "bad-parameter",
            "tables have no facts under declared",
            fix="declare bounds, keys, types and limits",
        )
    _refuse_minimum(source.kind, declaration)
    limit = declaration.per_charge
    return {
        "source": source.name,
        "kind": source.kind,
        "unit": str(Unit.from_text(declaration.unit)),
        "adjacency": declaration.adjacency,
        "budget": budget_text(budget_from(dict(declaration.budget))),
        "per_charge": None if limit is None else budget_text(budget_from(dict(limit))),
        "parent": declaration.parent,
        "declared": declaration.declared,
        **_facts_given(declaration),
        "lag": _usual_lag(source.kind, settings) if declaration.lag is None else declaration.lag,
        "width": settings.width if declaration.width is None else declaration.width,
        "title": declaration.name if declaration.title is None else declaration.title,
    }


def _usual_lag(kind: str, settings: ServiceSettings) -> int:
    """Return the lag of a policy that names none; a stream draws many days at once, without haste."""
    return max(settings.lag, _STREAM_TICKS) if kind == "stream" else settings.lag


def changed_policy(
    before: Mapping[str, Any], declaration: PolicyChanged, budget: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the next policy: what was given, beside what cannot change; the budget is the ledger's."""
    _refuse_minimum(before.get("kind", "table"), declaration)
    return {
        **{name: value for name, value in before.items() if name != "minimum_people"},
        **_facts_given(declaration),
        "budget": dict(budget),
        "lag": before["lag"] if declaration.lag is None else declaration.lag,
        "width": before["width"] if declaration.width is None else declaration.width,
        "title": before["title"] if declaration.title is None else declaration.title,
    }


def protect_arguments(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments with which `tacit.protect` opens the dataset of a policy.

    The name, the ledger, the parent and the source are not among them: the caller knows them. A budget that
    has grown since is the ledger's: ``ledger.account(name).budget``.

    Examples
    --------
    >>> policy = {
    ...     "unit": "patient_id", "adjacency": "add/remove", "version": 1, "bounds": {"age": ["0", "1/2"]},
    ...     "keys": {}, "types": {}, "never_null": [], "limits": None, "record": "words",
    ...     "budget": {"epsilon": "3", "delta": "0", "rho": None},
    ... }
    >>> made = protect_arguments(policy)
    >>> made["unit"], made["bounds"], made["budget"]
    (Unit('patient_id'), {'age': (Fraction(0, 1), Fraction(1, 2))}, Budget(epsilon=3))
    """
    return {
        "unit": Unit.from_text(policy["unit"]),
        "adjacency": policy["adjacency"],
        "version": policy["version"],
        "bounds": {
            column: pair if pair == "auto" else (Fraction(pair[0]), Fraction(pair[1]))
            for column, pair in policy["bounds"].items()
        },
        "keys": {column: list(values) for column, values in policy["keys"].items()},
        "types": dict(policy["types"]),
        "never_null": tuple(policy["never_null"]),
        "limits": policy["limits"],
        "record": policy["record"],
        "budget": budget_from(policy["budget"]),
        **({"minimum_people": n} if (n := policy.get("minimum_people")) is not None else {}),
    }


_SINGLE = {
    "title": "title",
    "about": "description",
    "source": "source",
    "version": "version of the data",
    "budget": "budget",
    "per_charge": "largest single charge",
    "parent": "shared account",
    "minimum_people": "fewest people of a line that is shown",
    "record": "what the log keeps of a question",
    "lag": "boundaries until an answer leaves",
    "width": "questions that one boundary admits",
    "shows_stored": "whether stored answers are announced",
}


def policy_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what changed from one policy to the next; each change says what, how, the old and the new.

    Examples
    --------
    >>> empty = {"bounds": {}, "keys": {}, "types": {}, "never_null": [], "limits": None, "version": 1}
    >>> changed = policy_changes(empty, {**empty, "bounds": {"age": ["0", "120"]}, "version": 2})
    >>> [one["sentence"] for one in changed]
    ['version of the data changed from 1 to 2', 'bounds of age added: 0 to 120']
    """
    changes = [
        _change(words, _written(name, before.get(name)), _written(name, after.get(name)))
        for name, words in _SINGLE.items()
        if before.get(name) != after.get(name)
    ]
    for name, words in _BY_COLUMN.items():
        changes += _by_key(words, name, before.get(name) or {}, after.get(name) or {})
    changes += _by_key("limit of", "limits", _flat(before.get("limits")), _flat(after.get("limits")))
    old, new = before.get("never_null") or (), after.get("never_null") or ()
    changes += [_change(f"column {one} never missing", "", "yes") for one in new if one not in old]
    changes += [_change(f"column {one} never missing", "yes", "") for one in old if one not in new]
    return changes


def _by_key(words: str, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        _change(f"{words} {key}", _written(name, old.get(key)), _written(name, new.get(key)))
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]


def _flat(limits: Mapping[str, Any] | None) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in (limits or {}).items():
        if isinstance(value, dict):
            flat |= {f"{one} in table {name}": limit for one, limit in value.items()}
        else:
            flat[name] = value
    return flat


def _change(subject: str, old: str, new: str) -> dict[str, str]:
    if not old:
        kind, sentence = "added", f"{subject} added: {new}"
    elif not new:
        kind, sentence = "removed", f"{subject} removed: {old}"
    else:
        kind, sentence = "changed", f"{subject} changed from {old} to {new}"
    return {"what": subject, "kind": kind, "old": old, "new": new, "sentence": sentence}


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
