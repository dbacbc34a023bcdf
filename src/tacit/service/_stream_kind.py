"""Streams in a service: how a folder of days is declared, and which day a question asks for.

The level follows from the unit: ``row`` protects each row, ``COLUMN per day`` what one person does on one
day, and ``COLUMN`` everything that one person does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError, bad_parameter
from tacit.parameters import Day

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import Dataset
    from tacit.ledger import Ledger

__all__ = ["MOST_DAYS", "STREAM_FACTS", "day_asked", "declare_stream", "stream_without_rows", "try_stream"]

#: The most days of a stream in a service: planning takes time for each.
MOST_DAYS: Final = 3_660
#: The facts that a stream needs beside unit and columns; and those that it may have.
STREAM_FACTS: Final = (frozenset({"start", "days"}), frozenset({"most_days", "apart"}))


def day_asked(ask: Mapping[str, Any]) -> str:
    """Return the day up to which a question asks for a series; empty text for every other question.

    Examples
    --------
    >>> day_asked({"method": "series", "arguments": {"measure": "count", "through": "2026-01-31"}})
    '2026-01-31'
    >>> day_asked({"sql": "SELECT COUNT(*) FROM visits"})
    ''
    """
    given = ask.get("arguments") or {}
    return str(given.get("through", "")) if ask.get("method") == "series" else ""


def _level(policy: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the level, and the column that says to whom a row belongs."""
    from tacit.core import Unit

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


def _facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Read the facts of a stream strictly; what cannot be read is not repeated."""
    found: dict[str, Any] = {}
    try:
        found["start"] = DayArgument().read(facts["start"])
    except ValueError as error:
        raise bad_parameter("start", str(error), "another text") from None
    for name in ("days", "most_days", "apart"):
        value = facts.get(name)
        if value is None and name != "days":
            continue
        if type(value) is not int or not 1 <= value <= MOST_DAYS:
            raise bad_parameter(name, f"a whole number from 1 to {MOST_DAYS:,}", "something else")
        found[name] = value
    return found


def declare_stream(
    place: object, *, name: str, policy: Mapping[str, Any], facts: Mapping[str, Any], ledger: Ledger
) -> Dataset:
    """Declare a stream; ``place`` is the folder that keeps its rows, or None for one without rows."""
    from tacit.service.curation import protect_arguments
    from tacit.streams import hosted_stream

    del ledger  # the one that the service replaces
    level, unit = _level(policy)
    columns: dict[str, Any] = {
        "bounds": {},
        "keys": {},
        "types": {},
        "never_null": [],
        "record": "words",
        "limits": None,
    }
    given = protect_arguments({"adjacency": "add/remove", "version": 1, **columns, **policy})
    kept = ("version", "bounds", "keys", "types", "never_null", "limits", "budget")
    try:
        return hosted_stream(
            place,  # type: ignore[arg-type]
            name=name, level=level, unit=unit, **_facts(facts), **{one: given[one] for one in kept},
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


def stream_without_rows(facts: Mapping[str, Any]) -> object:
    """Return the place of a stream without rows."""
    del facts
    return None


def try_stream() -> Dataset:
    """Return an invented stream of one day, with budget for one series."""
    from tacit.accounting import Budget
    from tacit.streams import hosted_stream

    made = hosted_stream(
        None, name="trial", level="event", start="2026-01-01", days=7, budget=Budget(epsilon=100)
    )
    made.append("2026-01-01", [{"x": 1}, {"x": 2}])
    return made
