"""The states of a query as others see them: nothing but waiting and running before its answer leaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.service._problems import problem_of
from tacit.service._stream_kind import day_asked
from tacit.service.drawer._clock import now

if TYPE_CHECKING:
    from tacit.service._database import Database, ServiceRow

ENDED: Final = ("finished", "failed", "refused", "spent", "cancelled")
_FAILED = TacitError(
    "release-failed",
    "the release failed after its charge",
    why="the reason may depend on the data, so nobody is told; the charge stays",
    fix=Say("ask the curator of the dataset; asking again is charged again unless the answer was stored"),
)
_FAILED_DAYS = TacitError(
    "release-failed",
    "the draw of these days failed",
    why="the reason may depend on the data, so nobody is told; the charge stays, and pays for all days",
    fix=Say("ask the curator of the dataset; asking again draws the same days and is not charged again"),
)
_SPENT = TacitError(
    "spent",
    "the question was charged, but the service stopped before its answer was stored",
    why="a second draw would be a second answer for one charge, so it is never drawn again",
    fix=Say("ask again, which is charged again; the curator can give you a larger allotment"),
)


def shown_state(row: ServiceRow) -> str:
    """Return the state of a query that may be shown now.

    A function of the row's boundary, of its outcome once its answer has left, and of the time.
    """
    state = str(row["state"])
    if state in {"waiting", "cancelled"}:
        return state
    if row["answer_at"] is not None and now() < float(row["answer_at"]):
        return "running"
    return state


def looked_at(database: Database, row: ServiceRow) -> ServiceRow:
    """Return a query as it is now; one that is still running when its answer is due has failed."""
    due = row["answer_at"] is not None and now() >= float(row["answer_at"])
    if row["state"] != "running" or not due:
        return row
    with database.change() as change:
        change.run(
            "UPDATE queries SET state = 'failed', code = 'release-failed' WHERE id = ? AND state = 'running'",
            row["id"],
        )
        found = change.row("SELECT * FROM queries WHERE id = ?", row["id"])
    return row if found is None else found


def problem_shown(row: ServiceRow, request: str) -> dict[str, Any] | None:
    """Return why a query has no answer; None while it may still have one, or has it.

    Every failure after the charge has the same words.
    """
    match shown_state(row):
        case "failed":
            days = bool(day_asked(json.loads(row["ask"])))
            return problem_of(_FAILED_DAYS if days else _FAILED, request)
        case "spent":
            return problem_of(_SPENT, request)
        case "refused":
            kept = json.loads(row["problem"]) if row["problem"] else problem_of(_FAILED, "")
            return {**kept, "request": request}
    return None
