"""How a stream is declared by a service: on the folder of its days, and on a stand-in without rows.

The level follows from the unit: ``row`` protects each row, ``COLUMN per day`` what one person does on one
day, and ``COLUMN`` everything that one person does.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget
from tacit.core import Argument, DatasetKind, Unit, budget_of
from tacit.errors import TacitError
from tacit.parameters import Day, Integer
from tacit.streams._hosted import hosted_stream
from tacit.streams._questions import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.ledger import Ledger
    from tacit.streams._stream import Level, Stream

#: The most days of a stream in a service: planning takes time for each.
MOST_DAYS = 3_660


def _level(policy: Mapping[str, Any]) -> tuple[Level, str | None]:
    """Return the level, and the column that says to whom a row belongs."""
    unit = Unit.from_text(policy["unit"])
    if policy.get("adjacency", "add/remove") != "add/remove" or unit.kind not in {"column", "row"}:
        raise TacitError(
            "not-allowed",
            "a stream protects rows or people, and it hides whether one of them is added or removed",
            fix="choose add/remove, and row or a column of people as the unit",
        )
    if unit.is_row:
        return "event", None
    if unit.per not in {"", "day"}:
        raise TacitError(
            "not-allowed",
            "a stream protects people, or what one person does on one day",
            fix="choose one column, or one column per day",
        )
    return ("person-day" if unit.per else "person"), unit.column


def _columns(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Read the public facts about columns, whose numbers are text."""
    return {
        "bounds": {c: [Fraction(end) for end in ends] for c, ends in policy.get("bounds", {}).items()},
        "keys": {c: list(values) for c, values in policy.get("keys", {}).items()},
        "types": dict(policy.get("types", {})),
        "never_null": tuple(policy.get("never_null", ())),
        "limits": policy.get("limits"),
    }


def _declare(
    source: Any, *, name: str, policy: Mapping[str, Any], facts: Mapping[str, Any], ledger: Ledger
) -> Stream:
    """Declare a stream; ``source`` is the folder that keeps its rows, or None for one without rows."""
    del ledger  # the one that the service replaces
    level, unit = _level(policy)
    try:
        return hosted_stream(
            source, name=name, level=level, unit=unit, version=policy.get("version", 1),
            budget=budget_of(policy), **facts, **_columns(policy),
        )  # fmt: skip
    except TacitError as refusal:
        if refusal.code != "stream-differs":
            raise
        raise TacitError(
            "stream-differs",
            "days of this stream have come in under other bounds, keys, types or limits",
            why="these facts belong to the version of the data; a new version begins with no days",
            fix="keep them as they are, or give the data a new version",
        ) from None


def _trial() -> Stream:
    """Return an invented stream of one day, with budget for one series."""
    made = hosted_stream(
        None, name="trial", level="event", start="2026-01-01", days=7, budget=Budget(epsilon=100)
    )
    made.append("2026-01-01", [{"x": 1}, {"x": 2}])
    return made


STREAM = DatasetKind(
    name="stream",
    label="a stream of days",
    questions=QUESTIONS,
    facts=(
        Argument("start", Day(), needed=True, words="the first day"),
        Argument("days", Integer(1, MOST_DAYS), needed=True, words="how many days there are"),
        Argument("most_days", Integer(1, MOST_DAYS), words="on how many days one person counts"),
        Argument("apart", Integer(1, MOST_DAYS), words="how many days lie between two days of one person"),
    ),
    declare=_declare,
    stand_in=lambda _facts: None,
    trial=_trial,
    has_columns=True,
)
