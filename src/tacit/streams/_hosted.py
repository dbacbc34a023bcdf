"""Streams that a service looks after: it owns the ledger and the folder, and one charge pays for each series.

A hosted stream plans from declared facts alone, so that a process without rows and one with them make plans
of the same hash. Days come in in order, and each once.

`STREAM` says how a service declares a stream: on the folder of its days, and on a stand-in without rows. The
level follows from the unit: ``row`` protects each row, ``COLUMN per day`` what one person does on one day,
and ``COLUMN`` everything that one person does.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.accounting import Budget
from tacit.calls import refusing
from tacit.core import Argument, DatasetKind, Unit, budget_of, paid_run
from tacit.errors import TacitError
from tacit.fixes import Say
from tacit.ledger import Ledger
from tacit.parameters import Day, Integer
from tacit.streams._declaration import stream
from tacit.streams._folder import StreamFolder, file_digest, folder_lock
from tacit.streams._questions import QUESTIONS
from tacit.streams._stream_run import BegunPlan

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from tacit.core import Plan, Release
    from tacit.streams._series import Series
    from tacit.streams._stream import Level, Stream


#: The most days of a stream in a service: planning takes time for each.
MAX_DAYS = 3_660


def hosted_stream(source: str | os.PathLike[str] | None, **declared: Any) -> Stream:
    """Declare a stream for a service, which uses its own ledger for it and opens the account.

    Guarantee: nothing is written to a ledger. An earlier declaration under which no day came in is forgotten.
    A series of the stream is charged as a whole, to an account without blocks.

    Parameters
    ----------
    source
        The folder that keeps the rows; None for a temporary one without rows.
    declared
        As in `stream`, without ``ledger``.

    Examples
    --------
    >>> import tacit as tc
    >>> flu = hosted_stream(
    ...     None, name="flu", level="event", start="2026-01-01", days=30, budget=tc.Budget(epsilon=1)
    ... )
    >>> flu.horizon.days
    30
    """
    if source is not None:
        _forget_empty(Path(source))
    return replace(refusing(stream)(source, ledger=Ledger.memory(), **declared), _hosted=True)


def _forget_empty(stream_place: Path) -> None:
    """Forget an earlier declaration under which no day came in, such as one that was refused later.

    A process that still has it takes no days in: it finds no declaration, or another one.
    """
    folder = StreamFolder(stream_place)
    with folder_lock(stream_place / "stream.lock"):
        if not folder.days():
            folder.forget()


def draw_days(
    hosted: Stream,
    plan: Plan[Series],
    day: object,
    *,
    who: str = "",
    purpose: str = "",
    account: str | None = None,
    key: str | None = None,
) -> Release[Series]:
    """Charge a series, or go on with it, and return all days up to one; days that are not stored are drawn.

    Guarantee: as for `Stream.release`. Each day is drawn once, over all processes and crashes, and stored
    before it is returned. If a draw is lost, no day is lost: the next draw contains its days.

    Parameters
    ----------
    hosted, plan, day
        The stream, a plan of it, and a day. The rows of this day and of all days before it must have come in.
    who, purpose, account, key
        As in `Plan.release`.
    """
    stored, number = stored_days(hosted, plan, day, account=account), hosted.horizon.number(day)
    if stored is not None:
        return stored
    _refuse_gone(hosted, number)
    run = plan.run(who=who, purpose=purpose, account=account, key=key)
    begun = BegunPlan(plan, run, hosted.horizon)
    if number <= begun.through():
        return begun.release_of(number)
    hosted._refuse_other_marks(begun, number)  # noqa: SLF001 - the parts of a stream
    return begun.draw(number, None, "")


def _refuse_gone(hosted: Stream, through: int) -> None:
    """Refuse, before the charge, days that came in and whose rows are gone, such as after a restore."""
    names = map(hosted.horizon.name, range(1, through + 1))
    gone = next((name for name in names if not hosted._folder.has(name)), None)  # noqa: SLF001
    if gone is not None:
        raise TacitError(
            "day-missing",
            f"the rows of {gone} are not there",
            why="a running total needs its own day and all days before it; nothing was charged",
            fix=Say("ask the curator to take in the days again"),
        )


def stored_days(
    hosted: Stream, plan: Plan[Series], day: object, *, account: str | None = None
) -> Release[Series] | None:
    """Return all days up to one if they are stored and this account has paid; nothing is charged or read."""
    run = paid_run(plan, account=account)
    if run is None:
        return None
    begun, number = BegunPlan(plan, run, hosted.horizon), hosted.horizon.number(day)
    return begun.release_of(number) if number <= begun.through() else None


def take_days(
    hosted: Stream, day: object, find: Callable[[str], Path | None], before: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Take in the rows of all days up to one that did not come in before, in order.

    Guarantee: a day that came in stays as it is. If a day is refused, those before it have come in. A day
    that is taken in again, because the folder was lost, must have the file that it had: what was released
    was drawn from it, and it decided on which days a person counts.

    Parameters
    ----------
    hosted, day
        The stream, and the last day.
    find
        Returns the file with the rows of a day, or None if there is none.
    before
        The digests of files that came in before, by day.

    Returns
    -------
    dict[str, str]
        The digests of all files that have come in, by day; a day on which nobody came has none.
    """
    for number in range(1, hosted.horizon.number(day) + 1):
        name = hosted.horizon.name(number)
        if hosted._folder.has(name):  # noqa: SLF001 - the parts of a stream
            continue
        file = find(name)
        if file is None:
            raise TacitError(
                "day-missing",
                f"the rows of {name} have not come in",
                why="days come in one after another; the days before this one were taken in",
                fix=Say("write the file of this day; a file with columns and no rows says that nobody came"),
            )
        _refuse_other_file(name, file, (before or {}).get(name))
        hosted.append(name, file)
    return dict(hosted._session.files)  # noqa: SLF001


def _refuse_other_file(name: str, file: Path, digest: str | None) -> None:
    if digest is not None and file_digest(file) != digest:
        raise TacitError(
            "rows-differ",
            f"the file of {name} is not the one that came in before",
            why="days were released from it; nothing was stored",
            fix=Say("put the earlier file back, or give the data a new version"),
        )


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
    trial = hosted_stream(
        None, name="trial", level="event", start="2026-01-01", days=7, budget=Budget(epsilon=100)
    )
    trial.append("2026-01-01", [{"x": 1}, {"x": 2}])
    return trial


STREAM = DatasetKind(
    name="stream",
    label="a stream of days",
    questions=QUESTIONS,
    facts=(
        Argument("start", Day(), needed=True, words="the first day"),
        Argument("days", Integer(1, MAX_DAYS), needed=True, words="how many days there are"),
        Argument("most_days", Integer(1, MAX_DAYS), words="on how many days one person counts"),
        Argument("apart", Integer(1, MAX_DAYS), words="how many days lie between two days of one person"),
    ),
    declare=_declare,
    stand_in=lambda _facts: None,
    trial=_trial,
    has_columns=True,
)
