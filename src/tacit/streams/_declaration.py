"""The functions ``tc.stream`` and `open_stream`: declare rows that come in day by day, or open them again."""

from __future__ import annotations

import os
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.core import Unit, open_account, read_identity
from tacit.errors import TacitError
from tacit.exact import count, rational
from tacit.fixes import Code, Declare, Either, Say, Set
from tacit.ledger import Blocks, Ledger, open_ledger, own_memory
from tacit.parameters import Choice, Needed, Omitted, refuse_auto
from tacit.streams._folder import Admission, StreamFolder
from tacit.streams._horizon import read_horizon
from tacit.streams._stream import Level, Stream, _Session, fixes_of_streams
from tacit.tables import protect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.accounting import Budget
    from tacit.core import JSON, LimitGiven
    from tacit.exact import Number
    from tacit.tables import TableDataset

_LEVELS = ("event", "person-day", "person")


def stream(
    source: str | os.PathLike[str] | None,
    *,
    name: str,
    level: Level,
    start: str | date,
    days: int,
    budget: Budget,
    unit: str | None = None,
    most_days: int | None = None,
    apart: int = 1,
    version: int = 1,
    bounds: Mapping[str, Sequence[Number]] | None = None,
    keys: Mapping[str, Sequence[object]] | None = None,
    types: Mapping[str, str] | None = None,
    never_null: Sequence[str] = (),
    limits: Mapping[str, LimitGiven] | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    parent: str | None = None,
) -> Stream:
    """Declare rows that come in day by day: who is protected, which days there are, and what is public.

    Guarantee
    ---------
    All releases of the stream together are private for one unit within the budget: for one row
    (``"event"``), for what one person does on one day (``"person-day"``), or for everything that one person
    does (``"person"``). The proof is in ``docs/proofs/streams.md``.

    Parameters
    ----------
    source
        The folder that keeps the rows and the stream's declaration; None for a temporary one, to try it out.
        At person level, the folder knows who has counted: go on in this folder, and keep it with the ledger.
    name, version
        Declared identity, to which the budget is bound.
    level
        Who is protected.
    start, days
        The first day, and for how many days rows may come in. Declare a long horizon: 10 times too long
        costs little accuracy, and a stream that is over cannot be made longer.
    budget
        What may be learned in total.
    unit
        The column that says to whom a row belongs; not at event level.
    most_days, apart
        At person level: in how many days one person counts (the first ones to come in), and how many days
        apart at least. Rows of a person's other days do not count.
    bounds, keys, types, never_null, limits
        Public facts, as in `tacit.protect`; ``limits`` bound what one person adds on one day.
    ledger
        A `Ledger`, or where to open one; needed with a folder. None keeps it in memory.
    parent
        An account that several datasets share, as in `tacit.protect`.

    Examples
    --------
    >>> import tacit as tc
    >>> flu = stream(
    ...     None, name="flu", level="event", start="2026-01-01", days=365, types={"result": "text"},
    ...     budget=tc.Budget(epsilon=0.8),
    ... )
    >>> flu.append("2026-01-01", [{"result": "positive"}, {"result": "negative"}])
    >>> flu.begin(flu.daily(positive=tc.count(), where="result = 'positive'").plan(epsilon=0.8))
    >>> release = flu.release("2026-01-01")
    >>> release["positive"].low[0] <= release["positive"].value[0]
    True
    >>> float(flu.remaining.epsilon)     # the whole year is paid for
    0.0
    """
    whom, max_days, gap = _read_level(level, unit, most_days, apart)
    horizon = read_horizon(start, days)
    with fixes_of_streams():
        identity = read_identity(name=name, version=version, unit=whom)

    def day_table(day: object) -> TableDataset:
        """Declare the rows of one day; its plans are never released, and its ledger is its own."""
        with fixes_of_streams():
            return protect(
                day, name=name, unit=Unit(unit) if unit else Unit.row(), budget=budget, bounds=bounds,
                keys=keys, types=types, never_null=never_null, limits=None if level == "event" else limits,
                ledger=Ledger.memory(),
            )  # fmt: skip

    day_table("none.parquet")  # refuses facts that do not fit together
    session = _Session(None, {})
    folder = _folder_of(source, name, ledger, level)
    where = None if ledger is None or not isinstance(ledger, str | os.PathLike) else os.fspath(ledger)
    declared: dict[str, JSON] = {
        "name": name, "version": version, "unit": unit, "level": level,
        "start": horizon.start.isoformat(), "days": horizon.days, "most_days": max_days, "apart": gap,
        **_facts_as_json(bounds, keys, types),
        "never_null": list(never_null),
        "limits": dict(limits) if limits else None,
    }  # fmt: skip
    _join(folder, session, declared)
    books = open_ledger(ledger) if ledger is not None else own_memory()
    blocks = None if level == "person" else Blocks("day", kind="date")
    with fixes_of_streams():
        open_account(identity, budget, books, parent=parent, blocks=blocks)
    declared_stream = Stream(
        identity, books, horizon, level, max_days, gap, declared, folder, day_table, session
    )
    if where is not None:
        declared["ledger"] = str(Path(where).absolute()) if "://" not in where else where
    with declared_stream._lock():  # noqa: SLF001 - made here
        declared_stream._refresh()  # noqa: SLF001
        declared_stream._store()  # noqa: SLF001
    return declared_stream


def open_stream(
    source: str | os.PathLike[str], *, ledger: Ledger | str | os.PathLike[str] | None = None
) -> Stream:
    """Open a stream that was declared before, from its folder and its ledger alone.

    Parameters
    ----------
    source
        The folder.
    ledger
        The ledger; by default the one that the stream was declared with.

    Examples
    --------
    >>> import tempfile
    >>> import tacit as tc
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = tc.Ledger.memory()
    >>> _ = stream(
    ...     folder.name, name="flu", level="event", start="2026-01-01", days=365,
    ...     budget=tc.Budget(epsilon=1), ledger=ledger,
    ... )
    >>> open_stream(folder.name, ledger=ledger).horizon.days
    365
    >>> folder.cleanup()
    """
    _check_folder(source)
    stored = StreamFolder(Path(source).absolute()).load()
    if stored is None:
        raise TacitError(
            "stream-differs",
            f"{os.fspath(source)} is not the folder of a stream",
            why="it has no file stream.json",
            fix=Code('tc.stream("flu/", name="flu", level="event", start="2026-01-01", days=365)'),
        )
    declared = dict(stored["declaration"])
    where = declared.pop("ledger", None)
    if where is None:
        Needed[object]("flu.ledger", why="the folder does not say where the ledger is").read("ledger", ledger)
    declared["bounds"] = {c: [Fraction(end) for end in pair] for c, pair in declared["bounds"].items()}
    books = open_ledger(ledger if ledger is not None else where)
    declared["bounds"] = {c: [Fraction(end) for end in ends] for c, ends in declared["bounds"].items()}
    account = books.account(declared["name"])
    reopened = stream(source, budget=account.budget, ledger=books, parent=account.parent, **declared)
    if where is not None:
        reopened.declared["ledger"] = where
        with reopened._lock():  # noqa: SLF001 - made here
            reopened._refresh()  # noqa: SLF001
            reopened._store()  # noqa: SLF001
    return reopened


def _folder_of(
    source: str | os.PathLike[str] | None, name: str, ledger: object, level: Level
) -> StreamFolder:
    """Return the folder of a stream, or a temporary one; a folder that stays needs a ledger that stays.

    At person level also the other way round: the folder knows who has counted, and the run goes on.
    """
    if source is None:
        where = ledger if isinstance(ledger, str | os.PathLike) else getattr(ledger, "name", ":memory:")
        if level == "person" and os.fspath(where) != ":memory:":
            Needed[object](
                f"{name}/", "as a folder if a stream with a ledger protects whole persons",
                why="the folder keeps who has counted; with a new temporary folder, each person would count "
                "again, but the ledger would charge nothing",
            ).read("source", source)  # fmt: skip
        return StreamFolder.temporary()
    _check_folder(source)
    Needed[object](
        f"{name}.ledger", "for a stream with a folder",
        why="a ledger in memory forgets what was charged when the program ends",
    ).read("ledger", ledger)  # fmt: skip
    return StreamFolder(Path(source).absolute())


def _check_folder(source: str | os.PathLike[str]) -> None:
    if Path(source).exists() and not Path(source).is_dir():
        raise TacitError(
            "bad-parameter",
            f"{os.fspath(source)} is a file, and a stream needs a folder",
            why="a stream keeps its declaration and the rows of each day in a folder",
            fix=Say("name a new folder, and append the file as the rows of its day"),
        )


def _read_level(level: object, unit: object, most_days: object, apart: object) -> tuple[Unit, int, int]:
    """Read who is protected, and in how many days one unit can be."""
    Choice(_LEVELS).read("level", level)
    if level == "event":
        fix = Either(Set(unit=None), Set(level="person-day"))
        Omitted("at the level event", why="each row is protected on its own", fix=fix).read("unit", unit)
    else:
        fix = Either(Set(unit="patient_id"), Set(level="event"))
        where, why = f"at the level {level}", "a unit owns its rows"
        Needed[object]("patient_id", where, why, fix).read("unit", unit)
    gap = count("apart", apart, zero=False)  # type: ignore[arg-type]
    if level != "person":
        elsewhere = Omitted("unless the level is person", fix=Set(level="person"))
        elsewhere.read("most_days", None if most_days == 1 else most_days)
        elsewhere.read("apart", None if gap == 1 else gap)
        whom = Unit.row() if level == "event" else Unit(str(unit), per="day")
        return whom, 1, 1
    if most_days is None:
        raise TacitError(
            "missing-limit",
            "nothing bounds the number of days on which one person can count",
            why="noise can hide one person only if there is a bound on what this person can change",
            fix=Set(most_days=3),
        )
    return Unit(str(unit)), count("most_days", most_days, zero=False), gap  # type: ignore[arg-type]


def _join(folder: StreamFolder, session: _Session, declared: dict[str, JSON]) -> None:
    """Go on with the stream of a folder, or refuse if it was declared differently."""
    stored = folder.load()
    if stored is None:
        if folder.days():
            raise TacitError(
                "stream-differs",
                f"{folder.place} has the rows of days, but not the declaration of their stream",
                why="the lost declaration decided on which days a person counts",
                fix=Say("restore the file stream.json from a backup, or use another folder"),
            )
        return
    before: dict[str, Any] = dict(stored["declaration"])
    before.pop("ledger", None)
    other = next((key for key in declared if before.get(key) != declared[key]), None)
    if other is not None:
        raise TacitError(
            "stream-differs",
            f"the folder belongs to a stream that was declared differently: {other}",
            why=f"it was {before.get(other)!r}; noise and cost were chosen for the first declaration",
            fix=Say("repeat the first declaration, or use another folder"),
        )
    if declared["level"] == "person":
        rule = Admission(str(declared["unit"]), _whole(declared["most_days"]), _whole(declared["apart"])).rule
        if folder.note() not in {"", rule}:
            raise TacitError(
                "stream-differs",
                "the rows of this stream were stored with other values of most_days and apart",
                why=f"the values were {folder.note()}; the file stream.json was changed since",
                fix=Say("restore the file stream.json from a backup, or use another folder"),
            )
    session.columns = None if stored["columns"] is None else tuple(stored["columns"])
    session.headed = stored.get("headed", session.columns is not None)
    session.begun = {one["plan"]: one for one in stored["begun"]}


def _facts_as_json(
    bounds: Mapping[str, Sequence[Number]] | None,
    keys: Mapping[str, Sequence[object]] | None,
    types: Mapping[str, str] | None,
) -> dict[str, JSON]:
    """Return the public facts about columns as the folder keeps them."""
    for column, pair in (bounds or {}).items():
        refuse_auto("a stream", pair, Declare("bounds", (0, 30), column=column, function="tc.stream"))
    return {
        "bounds": {
            c: [str(rational(c, b, zero=True, negative=True)) for b in pair]
            for c, pair in (bounds or {}).items()
        },
        "keys": {c: [_plain(v) for v in values] for c, values in (keys or {}).items()},
        "types": {c: str(t) for c, t in (types or {}).items()},
    }


def _whole(value: JSON) -> int:
    return int(str(value))


def _plain(value: object) -> JSON:
    if isinstance(value, date):
        return value.isoformat()
    if hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
