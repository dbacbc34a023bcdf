"""The one way from a question to a plan, on a worker without data and in the drawer with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Sized
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.exact import count
from tacit.service.plans._asks import MOST_KEYS
from tacit.service.plans._plan_effort import range_cells

if TYPE_CHECKING:
    from tacit.core import Dataset, Plan

_MOST_COLUMNS = 64
_DECIMAL = re.compile(r"-?[0-9]{1,60}(\.[0-9]{1,60})?(E[+-]?[0-9]{1,3})?", re.ASCII)  # as `_asks` writes them
_TOTALS = ("epsilon", "delta", "rho", "within", "confidence")


def plan_of(dataset: Dataset, ask: Mapping[str, Any]) -> Plan[Any]:
    """Plan a question.

    Guarantee: the plan is a function of the question and of the dataset's public facts, so a worker without
    data and the drawer with it make plans of the same hash. Nothing is read, charged or recorded.

    Parameters
    ----------
    dataset
        The dataset: with its data, or opened from its public facts alone.
    ask
        The question as `read_ask` returns it: ``{sql}``, ``{plan}`` or ``{method, arguments}``, with
        ``{epsilon, delta, rho, within, confidence, keys, limits, size}``.

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
    with at_most_groups(MOST_KEYS), at_most_cells(range_cells(document)):
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
    with at_most_groups(MOST_KEYS):
        query = dataset.sql(ask["sql"], keys=None if keys is None else _keys(keys), limits=ask.get("limits"))
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
    if len(aggregates) > _MOST_COLUMNS:
        raise TacitError(
            "question-too-large",
            f"the question asks for more than {_MOST_COLUMNS} columns",
            fix="ask in smaller parts",
        )


def _check_groups(keys: object) -> None:
    """Refuse a plan that lists more groups than a question in SQL may have."""
    if isinstance(keys, list) and len(keys) > MOST_KEYS:
        raise TacitError(
            "question-too-large",
            f"a question may have at most {MOST_KEYS:,} public groups",
            why="with several columns, every combination of their keys is a group",
            fix="group by fewer columns, or ask in smaller parts",
        )


def _totals(ask: Mapping[str, Any]) -> dict[str, Fraction]:
    """Return the totals that were given, exactly; Tacit's own door checks them."""
    return {name: Fraction(ask[name]) for name in _TOTALS if name in ask}


def _keys(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return keys with their numbers as floats, which is what keys are compared as."""
    read = exact_values(given)
    return {
        name: [float(one) if isinstance(one, Decimal) else one for one in listed]
        if isinstance(listed, list)
        else listed
        for name, listed in read.items()
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
