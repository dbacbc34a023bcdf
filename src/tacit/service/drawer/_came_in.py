"""Which days of a stream have come in, as everybody may know it: what a curator said, at public times.

Whether a file is there, and how long it took to read, is not shown. A curator has days taken in, and they
count as come in from a rung of a coarse ladder after that request on.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.fixes import Either, Say
from tacit.service.drawer._clock import now

if TYPE_CHECKING:
    from tacit.service._service import OpenDataset, Service


def came_in(service: Service, opened: OpenDataset) -> str:
    """Return the last day that has come in, as text; empty for none."""
    row = service.database.row(
        "SELECT MAX(through) AS last FROM days WHERE dataset = ? AND version = ? AND shown_from <= ?",
        opened.name, opened.dataset.version, now(),
    )  # fmt: skip
    return "" if row is None or row["last"] is None else str(row["last"])


def files_before(service: Service, dataset: str, version: int) -> dict[str, str]:
    """Return the digests of the files of days that have come in, by day; for the process of the data alone.

    A backup has no rows, and another machine has a folder of its own: days are taken in again there.
    """
    rows = service.database.rows(
        "SELECT files FROM days WHERE dataset = ? AND version = ? ORDER BY created DESC", dataset, version
    )
    return {day: digest for row in rows for day, digest in json.loads(row["files"]).items()}


def check_came_in(service: Service, opened: OpenDataset, day: str) -> None:
    """Refuse a day that has not come in, and a question for a series that names no day."""
    last = came_in(service, opened)
    dataset: Any = opened.dataset
    if day and day <= last:
        return
    if not day:
        raise TacitError(
            "bad-parameter",
            "a series ends with a day, but the question names no day",
            why="the price is the same for all days; nothing was charged",
            fix=f"give the argument through, such as {last or dataset.horizon.start}",
        )
    raise TacitError(
        "day-missing",
        f"the last day that has come in is {last}" if last else "no day of this stream has come in yet",
        why="a running total needs its own day and all days before it; nothing was charged",
        fix=Either(Say(f"ask for days up to {last}"), Say("wait until the curator has taken the day in"))
        if last
        else Say("wait until the curator has taken days in"),
    )
