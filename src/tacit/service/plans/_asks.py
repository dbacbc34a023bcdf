"""What a person or a program asks, all of it limited, and the one way from there to a plan.

A question is SQL, a plan's document or a method, with its total. A worker without data and the runner with it
make the same plan of it.

Planning takes time, and a worker plans for people whom nobody trusts. So it is limited how much work a plan's
document asks of a worker in cross tables, ranges and synthetic rows. The library's own limits are for people
who wait for their own machine.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence, Sized
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from tacit.errors import TacitError
from tacit.exact import count
from tacit.parameters import exactly_one
from tacit.service._bodies import (
    MAX_QUESTION,
    Body,
    DatasetName,
    ExactNumber,
    Name,
    empty_as_none,
    json_field,
    read_document,
    read_exact,
    typed_integer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.core import Dataset, Plan


#: The most bytes of a question in SQL.
MAX_SQL: Final = 16 * 1024
#: The most keys that a question brings along, in all its columns together.
MAX_KEYS: Final = 10_000
_MAX_TOKENS = 2_500  # words and signs of a question: planning takes time for each
_TOKEN = re.compile(r"\w+|[^\w\s]")
_LIMITS = ("rows", "groups", "per_group", "joined")
_MAX_LIMIT = 10**9
_NUMBERS = ("epsilon", "delta", "rho", "within", "confidence", "advantage")
_PAIRS = ("attack", "belief")
_MAX_TABLES: Final = 500  # cross tables in one document
_MAX_CELLS: Final = 200_000  # of all cross tables in one document
_MAX_RANGE_CELLS: Final = 200  # of all ordered columns in one document
_MAX_CHOICES: Final = 2_000  # tables among which synthetic rows choose
_MAX_SIZE: Final = 200_000  # cells of a model
_MAX_COLUMNS = 64
_DECIMAL = re.compile(r"-?[0-9]{1,60}(\.[0-9]{1,60})?(E[+-]?[0-9]{1,3})?", re.ASCII)  # as `_asks` writes them


def _keys(value: object) -> object:
    """Read keys as JSON, or as a person writes them in a form: one line ``ward: A, B`` for each column."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        return read_document(value, max_bytes=MAX_QUESTION)
    keys: dict[str, object] = {}
    for line in value.splitlines():
        column, colon, values = line.partition(":")
        if line.strip() and not (colon and column.strip()):
            raise ValueError("must have one line for each column, such as ward: A, B")
        if line.strip():
            keys[column.strip()] = [_key(one) for one in values.split(",") if one.strip()]
    return keys or None


def _key(text: str) -> object:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    return Decimal(text) if re.fullmatch(r"-?[0-9]{1,15}(\.[0-9]{1,15})?", text, re.ASCII) else text


def _pair(value: object) -> object:
    """Read two numbers: as a list, or with a comma between them."""
    parts = value.split(",") if isinstance(value, str) and value.strip() else empty_as_none(value)
    if parts is None:
        return None
    if not isinstance(parts, list | tuple) or len(parts) != 2:
        raise ValueError("must be two numbers, such as 0.01, 0.02")
    return tuple(read_exact(part) for part in parts)


_AskPair = Annotated[
    tuple[Fraction, Fraction] | None,
    BeforeValidator(_pair),
    WithJsonSchema({"anyOf": [{"type": "array", "minItems": 2, "maxItems": 2}, {"type": "null"}]}),
]
_AskNumber = Annotated[ExactNumber | None, BeforeValidator(empty_as_none)]
_Object = Annotated[
    dict[str, Any] | None,
    json_field("JSON", MAX_QUESTION),
    BeforeValidator(empty_as_none),  # runs first
    WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "null"}]}),
]


class AskBody(Body):
    """A question and its total: exactly one of ``sql``, ``plan`` and ``method``."""

    dataset: DatasetName
    sql: Annotated[
        Annotated[str, StringConstraints(max_length=MAX_SQL, pattern=r"^[^\x00]*$")] | None,
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
    advantage: _AskNumber = None
    attack: _AskPair = None
    belief: _AskPair = None
    total: Annotated[Literal["epsilon", "rho"] | None, BeforeValidator(empty_as_none)] = None
    keys: Annotated[
        dict[str, Any] | None,
        BeforeValidator(_keys),
        WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "null"}]}),
    ] = None
    limits: _Object = None
    bounds: _Object = None
    cut: Annotated[Literal["rare"] | None, BeforeValidator(empty_as_none)] = None
    size: Annotated[Annotated[int, Field(ge=1, le=10**12)] | None, BeforeValidator(typed_integer)] = None
    #: The allotment that pays; by default one that has paid for the answer, else the person's newest.
    account: Annotated[Name | None, BeforeValidator(empty_as_none)] = None


def read_ask(body: AskBody) -> dict[str, Any]:
    """Check what a question may hold and return its document; numbers in it are exact, in text.

    Guarantee: equal questions have equal documents. `plan_of` takes the document, on a worker and in the
    runner alike.
    """
    example = "send the field sql with one SELECT, such as SELECT COUNT(*) FROM visits"
    exactly_one("a question", sql=body.sql, plan=body.plan, method=body.method, fix=example)
    if body.sql is not None:
        _check_size(body.sql)
    _check_keys(body.keys)
    _check_limits(body.limits)
    _check_bounds(body.bounds)
    return ask_document(body)


def ask_document(body: AskBody) -> dict[str, Any]:
    """Return a question as JSON, without what is empty; numbers are exact, in text."""
    document: dict[str, Any] = {"dataset": body.dataset}
    for name in ("sql", "plan", "method", "arguments", "keys", "limits", "bounds", "cut", "size"):
        if (value := getattr(body, name)) is not None:
            document[name] = value if name in {"sql", "cut"} else _plain(value)
    for name in _NUMBERS:
        if (number := getattr(body, name)) is not None:
            document[name] = str(number)
    for name in _PAIRS:
        if (pair := getattr(body, name)) is not None:
            document[name] = [str(number) for number in pair]
    if body.total is not None:
        document["total"] = body.total
    return document


def _check_size(sql: str) -> None:
    """Refuse text that takes too long to plan, before it is read as SQL."""
    if len(sql.encode("utf-8", "replace")) > MAX_SQL:
        raise TacitError(
            "question-too-large",
            f"the SQL is larger than {MAX_SQL // 1024} KiB",
            fix="ask in smaller parts",
        )
    if len(_TOKEN.findall(sql)) > _MAX_TOKENS:
        raise TacitError(
            "question-too-large",
            f"the SQL has more than {_MAX_TOKENS:,} words and signs",
            fix="ask in smaller parts",
        )


def _check_keys(keys: dict[str, Any] | None) -> None:
    """Check the form of keys and that they, and the groups that they make, are not too many."""
    groups, total = 1, 0
    for values in (keys or {}).values():
        if isinstance(values, str):  # the name of a public table
            continue
        plain = isinstance(values, list) and all(
            one is None or isinstance(one, str | int | Decimal | bool) for one in values
        )
        if not plain:
            raise TacitError(
                "bad-parameter", "keys must have a list of texts, numbers or dates for each column",
                fix='send keys as {"ward": ["A", "B"]}',
            )  # fmt: skip
        groups, total = groups * max(len(values), 1), total + len(values)
    if max(groups, total) > MAX_KEYS:
        raise TacitError(
            "question-too-large",
            f"a question may bring at most {MAX_KEYS:,} keys",
            why="with several columns, every combination of their keys is a group",
            fix="group by fewer columns, or ask in smaller parts",
        )


def _check_limits(limits: dict[str, Any] | None) -> None:
    """Check the names of limits and that they are whole numbers; the dataset decides which it allows."""
    for name, value in (limits or {}).items():
        if name in _LIMITS and value == "auto":
            continue  # the dataset refuses it with its reason
        is_integer = value is None or (type(value) is int and 0 < value <= _MAX_LIMIT)
        if name not in _LIMITS or not is_integer:
            raise TacitError(
                "bad-parameter",
                f"limits must be whole numbers with the names {', '.join(_LIMITS)}",
                fix='send limits as {"rows": 10}',
            )


def _check_bounds(bounds: dict[str, Any] | None) -> None:
    """Check that bounds are pairs of numbers or the word auto; the question checks the columns."""
    for value in (bounds or {}).values():
        is_pair = isinstance(value, list) and len(value) == 2
        if value != "auto" and not (is_pair and all(type(one) in {int, Decimal} for one in value)):
            raise TacitError(
                "bad-parameter",
                "bounds must be a pair of numbers, or the word auto, for each column",
                fix='send bounds as {"stay": "auto"} or {"stay": [0, 30]}',
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


def range_cells(document: Mapping[str, Any]) -> int:
    """Check what a document asks for, and return how many cells each ordered column in it may have.

    What has another form than plans have is left to the library, which refuses it.
    """
    tables = cells = choices = columns = 0
    for request in _requests(document):
        match request:
            case {"asks": "crosstabs", "tables": list(listed)}:
                tables += len(listed)
                cells += _cells(request, listed)
            case {"asks": "ranges" | "prefixes"}:
                columns += 1
            case {"asks": "synthesize", "columns": list(listed)}:
                choices += _choices(request, len(listed))
                size = request.get("size")
                if isinstance(size, int) and size > _MAX_SIZE:
                    raise _too_large(f"a model of more than {_MAX_SIZE:,} cells", f"size={_MAX_SIZE}")
    if tables > _MAX_TABLES:
        raise _too_large(f"more than {_MAX_TABLES} cross tables", "ask for fewer tables, or in smaller parts")
    if cells > _MAX_CELLS:
        raise _too_large(f"more than {_MAX_CELLS:,} cells", "use fewer bins, or fewer tables")
    if choices > _MAX_CHOICES:
        raise _too_large(
            f"synthetic rows that choose among more than {_MAX_CHOICES:,} tables", "use fewer columns"
        )
    return max(2, _MAX_RANGE_CELLS // max(1, columns))


def _requests(document: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the requests of a document: its own, or those of the members of a batch."""
    match document:
        case {"request": {"batch": list(members)}}:
            for member in members:
                match member:
                    case [_, request]:
                        yield request
        case {"request": request}:
            yield request


def _cells(request: Mapping[str, Any], tables: list[Any]) -> int:
    """Return about how many cells the tables have, from the places of their columns."""
    places: dict[Any, int] = {}
    for part, more in (
        ("bins", 0),
        ("keys", 2),
    ):  # n cuts make n - 1 cells; missing and other values have one
        listed_cells = request.get(part)
        if isinstance(listed_cells, dict):
            places |= {name: len(one) + more for name, one in listed_cells.items() if isinstance(one, list)}
            places |= {
                name: abs(one) + 1 for name, one in listed_cells.items() if type(one) is int
            }  # so many bins
    total = 0
    for table in tables:
        if isinstance(table, list):
            total += math.prod(places.get(one, 1) for one in table if isinstance(one, str))
    return total


def _choices(request: Mapping[str, Any], columns: int) -> int:
    """Return among how many tables a method chooses: those of up to ``up_to`` columns; a tree has pairs."""
    if columns > _MAX_CHOICES:
        return columns
    max_width = request.get("up_to")
    width = (
        2
        if request.get("method") == "mst"
        else max_width
        if isinstance(max_width, int) and max_width > 0
        else 3
    )
    return sum(math.comb(columns, k) for k in range(1, min(width, columns, 10) + 1))


def _too_large(sentence: str, fix: str) -> TacitError:
    return TacitError(
        "question-too-large",
        f"the plan asks for {sentence}",
        why="planning takes time, and others wait for the same service",
        fix=fix,
    )


def plan_of(dataset: Dataset, ask: Mapping[str, Any]) -> Plan[Any]:
    """Plan a question.

    Guarantee: the plan is a function of the question and of the dataset's public facts, so a worker without
    data and the runner with it make plans of the same hash. Nothing is read, charged or recorded.

    Parameters
    ----------
    dataset
        The dataset: with its data, or opened from its public facts alone.
    ask
        The question as `read_ask` returns it: ``{sql}``, ``{plan}`` or ``{method, arguments}``, with
        ``{epsilon, delta, rho, within, confidence, keys, limits, bounds, cut, size}``; or a risk and its
        ``total`` in place of the first.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.protect(tc.tables.example_visits(), unit="patient_id", budget=tc.Budget(epsilon=1))
    >>> plan = plan_of(visits, {"sql": "SELECT COUNT(*) AS n FROM data", "epsilon": "1/2"})
    >>> plan == visits.agg(n=tc.count()).plan(epsilon=0.5)
    True
    """
    if "plan" in ask:
        _check_takes_plans(dataset)
        plan = _plan_of_document(dataset, ask["plan"])
    elif "sql" in ask:
        plan = _plan_of_sql(dataset, ask)
    else:
        from tacit.service._kinds import plan_of_question

        plan = plan_of_question(dataset, ask["method"], exact_values(ask.get("arguments", {})), _totals(ask))
    return plan


def _plan_of_document(dataset: Any, document: Mapping[str, Any]) -> Plan[Any]:
    """Rebuild a plan that was made elsewhere, if the effort is one that a worker may take."""
    from tacit.tables import at_most_cells, at_most_groups

    match document:
        case {"request": {"question": {"aggregates": list(aggregates)} as question}}:
            _check_columns(aggregates)
            _check_groups(question.get("keys"))
        case {"request": {"batch": list(members)}}:
            _check_columns([column for member in members for column in _columns_of(member)])
    with at_most_groups(MAX_KEYS), at_most_cells(range_cells(document)):
        plan: Plan[Any] = dataset.plan_from(document)
    return plan


def _check_takes_plans(dataset: Any) -> None:
    """Refuse plans of other kinds than tables: their documents could ask for more than the listed methods."""
    if not hasattr(dataset, "sql"):
        raise TacitError(
            "not-allowed",
            "this dataset takes no plans that were made elsewhere",
            fix="name one of its methods in the field method",
        )


def _plan_of_sql(dataset: Any, ask: Mapping[str, Any]) -> Plan[Any]:
    if not hasattr(dataset, "sql"):
        raise TacitError(
            "not-allowed",
            "this dataset does not answer SQL",
            fix="name one of its methods in the field method",
        )
    from tacit.tables import at_most_groups

    keys = ask.get("keys")
    with at_most_groups(MAX_KEYS):
        query = dataset.sql(
            ask["sql"],
            keys=None if keys is None else _float_keys(keys),
            limits=ask.get("limits"),
            bounds=exact_values(ask["bounds"]) if "bounds" in ask else None,
            cut=ask.get("cut"),
        )
    _check_columns(query.question.aggregates)
    size = ask.get("size")
    more = {} if size is None else {"size": count("size", size, zero=False)}
    plan: Plan[Any] = query.plan(**_totals(ask), **more)
    return plan


def _columns_of(member: Any) -> Sequence[Any]:
    """Return the columns that a member of a batch asks for; a member of any other kind counts as one."""
    match member:
        case [_, {"question": {"aggregates": list(aggregates)}}]:
            return aggregates
    return (member,)


def _check_columns(aggregates: Sized) -> None:
    """Refuse very many columns: each takes time to plan."""
    if len(aggregates) > _MAX_COLUMNS:
        raise TacitError(
            "question-too-large",
            f"the question asks for more than {_MAX_COLUMNS} columns",
            fix="ask in smaller parts",
        )


def _check_groups(keys: object) -> None:
    """Refuse a plan that lists more groups than a question in SQL may have."""
    if isinstance(keys, list) and len(keys) > MAX_KEYS:
        raise TacitError(
            "question-too-large",
            f"a question may have at most {MAX_KEYS:,} public groups",
            why="with several columns, every combination of their keys is a group",
            fix="group by fewer columns, or ask in smaller parts",
        )


def _totals(ask: Mapping[str, Any]) -> dict[str, Any]:
    """Return the totals and the risk that were given, exactly; Tacit's own door checks them."""
    pairs = {name: tuple(Fraction(one) for one in ask[name]) for name in _PAIRS if name in ask}
    total = {"total": ask["total"]} if "total" in ask else {}
    return {name: Fraction(ask[name]) for name in _NUMBERS if name in ask} | pairs | total


def _float_keys(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return keys with their numbers as floats, which is what keys are compared as."""
    exact_keys = exact_values(keys)
    return {
        name: [float(one) if isinstance(one, Decimal) else one for one in listed]
        if isinstance(listed, list)
        else listed
        for name, listed in exact_keys.items()
    }


def exact_values(value: Any) -> Any:
    """Return a document with its decimal numbers as such; what only looks like one stays as it is."""
    match value:
        case {"decimal": str(text)} if len(value) == 1 and _DECIMAL.fullmatch(text):
            return Decimal(text)
        case Mapping():
            return {name: exact_values(one) for name, one in value.items()}
        case list():
            return [exact_values(one) for one in value]
        case _:
            return value
