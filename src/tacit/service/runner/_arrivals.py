"""Which days of a stream have arrived, as everybody may know it, and the files that hold their rows.

Whether a file is there, and how long it took to read, is not shown. A curator has days taken in, and they
count as arrived from a rung of a coarse ladder after that request on: everybody knows what a curator said, at
public times.

There is one file for each day, in a folder that the operator lists. The service keeps the rows of the days
that were taken in, in a folder of its own: what the operator's files become later changes nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError
from tacit.fixes import Either, Say
from tacit.service.runner._clock import now

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.service._service import OpenDataset, Service
    from tacit.service._settings import ListedSource, ServiceSettings

_ENDINGS: Final = (".parquet", ".csv")
_TOLD: Final = {"day-missing", "day-outside", "rows-differ", "rows-twice"}  # these name days and columns only


def last_arrived_day(service: Service, dataset: OpenDataset) -> str:
    """Return the last day that has arrived, as text; empty for none."""
    row = service.database.row(
        "SELECT MAX(through) AS last FROM days WHERE dataset = ? AND version = ? AND shown_from <= ?",
        dataset.name, dataset.dataset.version, now(),
    )  # fmt: skip
    return "" if row is None or row["last"] is None else str(row["last"])


def files_before(service: Service, dataset: str, version: int) -> dict[str, str]:
    """Return the digests of the files of days that have arrived, by day; for the process of the data alone.

    A backup has no rows, and another machine has a folder of its own: days are taken in again there.
    """
    rows = service.database.rows(
        "SELECT files FROM days WHERE dataset = ? AND version = ? ORDER BY created DESC", dataset, version
    )
    return {day: digest for row in rows for day, digest in json.loads(row["files"]).items()}


def check_arrived(service: Service, open_dataset: OpenDataset, day: str) -> None:
    """Refuse a day that has not arrived, and a question for a series that names no day."""
    last_day = last_arrived_day(service, open_dataset)
    dataset: Any = open_dataset.dataset
    if day and day <= last_day:
        return
    if not day:
        raise TacitError(
            "bad-parameter",
            "a series ends with a day, but the question names no day",
            why="the price is the same for all days; nothing was charged",
            fix=f"give the argument through, such as {last_day or dataset.horizon.start}",
        )
    raise TacitError(
        "day-missing",
        f"the last day that has arrived is {last_day}"
        if last_day
        else "no day of this stream has arrived yet",
        why="a running total needs its own day and all days before it; nothing was charged",
        fix=Either(Say(f"ask for days up to {last_day}"), Say("wait until the curator has taken the day in"))
        if last_day
        else Say("wait until the curator has taken days in"),
    )


def days_folder(source: ListedSource) -> Path | None:
    """Return the folder of a listed stream, or None if it is not there."""
    location = source.place
    folder = Path(location) if isinstance(location, str) and "://" not in location else None
    return folder if folder is not None and source.engine == "duckdb" and folder.is_dir() else None


def day_file(folder: Path, day: str) -> Path | None:
    """Return the file of a day: ``2026-01-31.parquet`` or ``2026-01-31.csv``; None if there is none."""
    return next((file for one in _ENDINGS if (file := folder / f"{day}{one}").is_file()), None)


def first_day(folder: Path) -> Path | None:
    """Return the file of the earliest day in a folder, which shows the columns of all."""
    shape = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
    return min((file for one in _ENDINGS for file in folder.glob(shape + one)), default=None)


def kept_days(settings: ServiceSettings, name: str, policy: Mapping[str, Any]) -> Path:
    """Return the folder in which the service keeps the days of one version of a stream."""
    return settings.folder / "streams" / name / str(int(policy.get("version", 1)))


def take_listed_days(
    settings: ServiceSettings, dataset: OpenDataset, through: str, before: Mapping[str, str]
) -> dict[str, str]:
    """Take in all days of a stream up to one, and return the digests of files that are not in ``before``.

    A refusal says nothing of values or files.
    """
    from tacit.streams import take_days

    folder = days_folder(settings.sources[dataset.policy["source"]])
    if folder is None:
        raise TacitError("unknown-table", "the source cannot be read now", fix="ask the operator")
    try:
        stream: Any = dataset.dataset
        digests = take_days(stream, through, lambda day: day_file(folder, day), before)
    except TacitError as refusal:
        if refusal.code not in _TOLD:
            raise unread_day() from None
        if refusal.code == "rows-twice":
            fix = "ask the operator to write the file of this day again: it has the rows of another day"
            raise TacitError("rows-twice", refusal.what, why=refusal.why, fix=fix) from None
        raise
    return {day: digest for day, digest in digests.items() if day not in before}


def unread_day() -> TacitError:
    """Return what a curator is told about a file that cannot be taken in, whatever is wrong with it."""
    return TacitError(
        "bad-parameter",
        "the file of a day cannot be taken in",
        why="the reason may depend on its rows, so it is not shown; the days before it were taken in",
        fix="ask the operator to check that the file is a CSV file in UTF-8 or a Parquet file",
    )
