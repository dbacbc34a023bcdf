"""What a person or a program asks: SQL, a plan's document or a method, with its total; all of it limited."""

from __future__ import annotations

import hashlib
import json
import re
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from tacit.errors import TacitError
from tacit.service._bodies import (
    MOST_QUESTION,
    Body,
    DatasetName,
    ExactNumber,
    Name,
    empty_as_none,
    json_field,
    read_document,
    typed_integer,
)

#: The most bytes of a question in SQL.
MOST_SQL: Final = 16 * 1024
#: The most keys that a question brings along, in all its columns together.
MOST_KEYS: Final = 10_000
_MOST_TOKENS = 2_500  # words and signs of a question: planning takes time for each
_TOKEN = re.compile(r"\w+|[^\w\s]")
_LIMITS = ("rows", "groups", "per_group", "joined")
_MOST_LIMIT = 10**9
_NUMBERS = ("epsilon", "delta", "rho", "within", "confidence")


def _keys(value: object) -> object:
    """Read keys as JSON, or as a person writes them in a form: one line ``ward: A, B`` for each column."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        return read_document(value, most=MOST_QUESTION)
    found: dict[str, object] = {}
    for line in value.splitlines():
        column, colon, listed = line.partition(":")
        if line.strip() and not (colon and column.strip()):
            raise ValueError("must have one line for each column, such as ward: A, B")
        if line.strip():
            found[column.strip()] = [_key(one) for one in listed.split(",") if one.strip()]
    return found or None


def _key(text: str) -> object:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    return Decimal(text) if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", text, re.ASCII) else text


_AskNumber = Annotated[ExactNumber | None, BeforeValidator(empty_as_none)]
_Object = Annotated[
    dict[str, Any] | None,
    json_field("JSON", MOST_QUESTION),
    BeforeValidator(empty_as_none),  # runs first
    WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "null"}]}),
]


class AskBody(Body):
    """A question and its total: exactly one of ``sql``, ``plan`` and ``method``."""

    dataset: DatasetName
    sql: Annotated[
        Annotated[str, StringConstraints(max_length=MOST_SQL, pattern=r"^[^\x00]*$")] | None,
        BeforeValidator(empty_as_none),
    ] = None
    plan: _Object = None
    method: Annotated[Name | None, BeforeValidator(empty_as_none)] = None
    arguments: _Object = None
    epsilon: _AskNumber = None
    delta: _AskNumber = None
    rho: _AskNumber = None
    within: _AskNumber = None
    confidence: _AskNumber = None
    keys: Annotated[
        dict[str, Any] | None,
        BeforeValidator(_keys),
        WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "null"}]}),
    ] = None
    limits: _Object = None
    size: Annotated[Annotated[int, Field(ge=1, le=10**12)] | None, BeforeValidator(typed_integer)] = None
    #: The allotment that pays; by default one that has paid for the answer, else the person's newest.
    account: Annotated[Name | None, BeforeValidator(empty_as_none)] = None


def read_ask(given: AskBody) -> dict[str, Any]:
    """Check what a question may hold and return its document; numbers in it are exact, in text.

    Guarantee: equal questions have equal documents. `plan_of` takes the document, on a worker and in the
    drawer alike.
    """
    named = [name for name in ("sql", "plan", "method") if getattr(given, name) is not None]
    if len(named) != 1:
        raise TacitError(
            "bad-parameter",
            "a question is exactly one of: sql, plan, method",
            fix="send the field sql with one SELECT, such as SELECT COUNT(*) FROM visits",
        )
    if given.sql is not None:
        _check_size(given.sql)
    _check_keys(given.keys)
    _check_limits(given.limits)
    return ask_document(given)


def ask_document(given: AskBody) -> dict[str, Any]:
    """Return a question as JSON, without what is empty; numbers are exact, in text."""
    document: dict[str, Any] = {"dataset": given.dataset}
    for name in ("sql", "plan", "method", "arguments", "keys", "limits", "size"):
        if (value := getattr(given, name)) is not None:
            document[name] = value if name == "sql" else _plain(value)
    for name in _NUMBERS:
        if (number := getattr(given, name)) is not None:
            document[name] = str(number)
    return document


def _check_size(sql: str) -> None:
    """Refuse text that takes too long to plan, before it is read as SQL."""
    if len(sql.encode("utf-8", "replace")) > MOST_SQL:
        raise TacitError(
            "question-too-large",
            f"the SQL is larger than {MOST_SQL // 1024} KiB",
            fix="ask in smaller parts",
        )
    if len(_TOKEN.findall(sql)) > _MOST_TOKENS:
        raise TacitError(
            "question-too-large",
            f"the SQL has more than {_MOST_TOKENS:,} words and signs",
            fix="ask in smaller parts",
        )


def _check_keys(keys: dict[str, Any] | None) -> None:
    """Check the form of keys and that they, and the groups that they make, are not too many."""
    groups, total = 1, 0
    for listed in (keys or {}).values():
        if isinstance(listed, str):  # the name of a public table
            continue
        plain = isinstance(listed, list) and all(
            one is None or isinstance(one, str | int | Decimal | bool) for one in listed
        )
        if not plain:
            raise TacitError(
                "bad-parameter", "keys must have a list of texts, numbers or dates for each column",
                fix='send keys as {"ward": ["A", "B"]}',
            )  # fmt: skip
        groups, total = groups * max(len(listed), 1), total + len(listed)
    if max(groups, total) > MOST_KEYS:
        raise TacitError(
            "question-too-large",
            f"a question may bring at most {MOST_KEYS:,} keys",
            why="with several columns, every combination of their keys is a group",
            fix="group by fewer columns, or ask in smaller parts",
        )


def _check_limits(limits: dict[str, Any] | None) -> None:
    """Check the names of limits and that they are whole numbers; the dataset decides which it allows."""
    for name, value in (limits or {}).items():
        whole = value is None or (type(value) is int and 0 < value <= _MOST_LIMIT)
        if name not in _LIMITS or not whole:
            raise TacitError(
                "bad-parameter",
                f"limits must be whole numbers with the names {', '.join(_LIMITS)}",
                fix='send limits as {"rows": 10}',
            )


def _plain(value: Any) -> Any:
    """Return what JSON can hold exactly: decimals as whole numbers or as text."""
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else {"decimal": str(value)}
        case Fraction():
            return str(value)
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case list():
            return [_plain(one) for one in value]
        case _:
            return value


def ask_key(document: dict[str, Any]) -> str:
    """Return the text under which a question is remembered."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def digest_of_ask(document: dict[str, Any]) -> str:
    """Return a digest by which a question is found among those asked before."""
    return hashlib.sha256(ask_key(document).encode()).hexdigest()
