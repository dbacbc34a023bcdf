"""The process of one dataset: it alone opens the data, within limits of its own, and answers draws.

It opens a listed source as its policy says, and speaks to the runner over one connection. What it says after
a charge is the noisy answer, or one failure without details; and it says either only after the time at which
the draw is stored. The runner's side of these processes is here too: start, tell, hear, kill.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from tacit.errors import TacitError
from tacit.fixes import Choose
from tacit.service._kinds import day_asked, prepare_kind, try_questions
from tacit.service._refusals import problem_of
from tacit.service._service import OpenDataset
from tacit.service.plans import plan_of
from tacit.service.runner._arrivals import days_folder, first_day, kept_days, take_listed_days, unread_day
from tacit.service.runner._clock import TimedLedger, drawing_at, sleep_until
from tacit.service.runner._release_documents import document_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from multiprocessing.connection import Connection

    from tacit.core import Dataset, Plan, Release
    from tacit.ledger import Ledger
    from tacit.service._settings import ListedSource, ServiceSettings
    from tacit.service.runner._clock import Slot
    from tacit.tables import TableDataset


#: The kinds of columns as policies name them, where the engine says more.
_KINDS = {"moment": "date"}
#: What a policy that does not say otherwise declares.
_DEFAULTS: dict[str, Any] = {
    "adjacency": "add/remove", "version": 1, "bounds": {}, "keys": {}, "types": {}, "never_null": [],
    "limits": None, "record": "words", "budget": {"epsilon": "1", "delta": "0", "rho": None},
}  # fmt: skip
_OVERHEAD = 1024  # MiB beyond the limit of DuckDB: Python and its packages, stacks of threads


def listed_source(settings: ServiceSettings, name: object) -> ListedSource:
    """Return a source that the operator lists; nothing else can be opened."""
    source = settings.sources.get(name) if isinstance(name, str) else None
    if source is None:
        raise TacitError(
            "unknown-table",
            "the operator of this service lists no source of that name",
            fix=Choose(tuple(sorted(settings.sources))),
        )
    return source


def describe_source(settings: ServiceSettings, name: object) -> dict[str, Any]:
    """Return the tables of a listed source with the names and kinds of their columns; no row is read.

    The kind is empty where the source declares none, as in CSV files, and ``unreadable`` where no question
    can use the column.
    """
    from tacit.engines import SourceTable, open_engine

    source = listed_source(settings, name)
    places = _places(source, source.name) if source.kind != "stream" else _first_place(source)
    if not places:  # no day has arrived yet
        return {"source": source.name, "kind": source.kind, "tables": {source.name: []}}
    engine = open_engine({table: SourceTable(place, None) for table, place in places.items()}, key=0)
    tables: dict[str, list[dict[str, str]]] = {}
    try:
        for table in places:
            columns = engine.columns(table)
            if columns is None:
                raise _not_there()
            stored = engine.stored_as(table)
            kinds = {one: "unreadable" if bad else str(stored.get(one, "")) for one, bad in columns.items()}
            tables[table] = [{"name": one, "kind": _KINDS.get(kind, kind)} for one, kind in kinds.items()]
    finally:
        engine.close()
    return {"source": source.name, "kind": source.kind, "tables": tables}


def open_policy(
    settings: ServiceSettings, name: str, policy: Mapping[str, Any], ledger: Ledger
) -> tuple[Dataset, dict[str, Any]]:
    """Open a listed source as its policy says, and return it with what is public of it.

    Draws are charged to the account of that name. Nothing is written to the ledger: whoever declares the
    dataset opens its account, and may still be refused after this. So the policy is checked with a ledger in
    memory, which the service's ledger then replaces.
    """
    source = listed_source(settings, policy["source"])
    if policy["kind"] != source.kind:
        raise TacitError(
            "not-allowed",
            "the operator lists this source as another kind of dataset now",
            fix="ask the operator",
        )
    if source.kind != "table":
        return _open_other(settings, source, name, policy, ledger)
    dataset = _open_table(source, name, policy, ledger)
    return dataset, dataset.public_facts()


def _open_table(source: ListedSource, name: str, policy: Mapping[str, Any], ledger: Ledger) -> TableDataset:
    from tacit.ledger import Ledger
    from tacit.service.curation import protect_arguments
    from tacit.tables import protect

    arguments = protect_arguments({**_DEFAULTS, **policy})
    dataset = protect(_places(source, name), name=name, ledger=Ledger.memory(), **arguments)
    if any(table.columns is None for table in dataset.tables.values()):
        raise _not_there()
    return replace(dataset, _ledger=ledger)


def _first_place(source: ListedSource) -> dict[str, Any]:
    """Return the file of the earliest day of a stream, whose columns are those of all days."""
    from tacit.engines import place_source

    folder = days_folder(source)
    if folder is None:
        raise _not_there()
    day = first_day(folder)
    return {} if day is None else {source.name: place_source(str(day), None)}


def _open_other(
    settings: ServiceSettings, source: ListedSource, name: str, policy: Mapping[str, Any], ledger: Ledger
) -> tuple[Dataset, dict[str, Any]]:
    """Open points on a map or a graph: one file, or one table, that DuckDB reads; or a stream's folder."""
    from tacit.service._kinds import facts_of_kind, open_kind

    if source.kind == "stream":
        if days_folder(source) is None:
            raise _not_there()
        days = kept_days(settings, name, policy)
        return open_kind("stream", days, name, policy, ledger), facts_of_kind("stream", name, policy)
    describe_source(settings, source.name)  # refuses what is not there, and names no file
    places = _places(source, name)
    if source.engine != "duckdb" or len(places) != 1:
        raise TacitError(
            "not-allowed",
            f"a source of the kind {source.kind} is one file or one table that DuckDB reads",
            fix="ask the operator to list it as one file or one table",
        )
    (path,) = places.values()
    return open_kind(source.kind, path, name, policy, ledger), facts_of_kind(source.kind, name, policy)


def _places(source: ListedSource, name: str) -> dict[str, Any]:
    """Return the places of a source's tables by name, as the engine reads them."""
    from tacit.engines import csv_file, place_source

    many = source.place if isinstance(source.place, dict) else {name: source.place}
    engine = None if source.engine == "duckdb" else source.engine
    paths = {}
    for table, path in many.items():
        is_csv = engine is None and str(path).lower().endswith((".csv", ".tsv"))
        options = dict(source.options) if is_csv else {}
        paths[table] = csv_file(str(path), **options) if options else place_source(path, engine)
    return paths


def _not_there() -> TacitError:
    return TacitError(
        "unknown-table", "the source cannot be read now", fix="ask the operator whether it is there"
    )


@dataclass(frozen=True, slots=True)
class Opening:
    """What a process opens: a dataset with one of its policies; without a name, it describes sources."""

    name: str = ""
    kind: str = "table"
    number: int = 0
    policy: dict[str, Any] = field(default_factory=dict)
    width: int = 1


@dataclass(frozen=True, slots=True)
class DrawTask:
    """One draw: which plan, who pays, and when it is computed, stored and answered."""

    query: str
    ask: dict[str, Any]
    plan: str
    account: str
    who: str
    purpose: str
    slot: Slot


@dataclass(frozen=True, slots=True)
class DaysTask:
    """Days of a stream that are to be taken in: for which job, up to which day, what had arrived before."""

    job: str
    through: str
    before: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DrawOutcome:
    """How a draw ended: ``finished`` with a release; ``failed``, ``refused`` or ``spent`` with a problem."""

    query: str
    state: str
    document: dict[str, Any]
    code: str = ""


def serve_dataset(
    connection: Connection, settings: ServiceSettings, opening: Opening, *, limited: bool
) -> None:
    """Open a dataset, make its snapshot, and answer draws until the connection ends."""
    if limited:
        _limit(settings, opening)
    try:
        if not opening.name:
            _describe(connection, settings)
        else:
            _serve(connection, settings, opening, limited=limited)
    except (EOFError, OSError):
        pass  # the runner has gone
    finally:
        connection.close()
        if limited:
            os._exit(0)  # not even for a draw that is still computing


def _limit(settings: ServiceSettings, opening: Opening) -> None:
    """Limit what this process may take, and let it end with the runner."""
    import ctypes
    import resource
    import signal

    from tacit.core import admit_packages
    from tacit.engines import limit_connections

    admit_packages(settings.packages)
    limit_connections(memory=settings.memory, threads=max(1, (os.cpu_count() or 2) - 1))
    max_bytes = (settings.memory + _OVERHEAD + 8 * opening.width) * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, max_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        return  # elsewhere than on Linux the end of the connection is enough


def _describe(connection: Connection, settings: ServiceSettings) -> None:
    """Describe sources as often as the runner asks."""
    connection.send(("ready", None))
    while True:
        job, source = connection.recv()
        try:
            connection.send(("described", (job, describe_source(settings, source))))
        except TacitError as refusal:
            connection.send(("undescribed", (job, _told(refusal))))
        except (OSError, EOFError):
            raise
        except Exception:  # noqa: BLE001 - a broken file must not end the process
            unread = TacitError("unknown-table", "this source cannot be read", fix="ask the operator")
            connection.send(("undescribed", (job, _told(unread))))


def _say_nothing() -> None:
    """Let nothing that this process writes reach the log of the service, before it reads a row.

    A library that panics, or a statement that ends the process, writes values of the data to standard error.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(nowhere, output)
    os.close(nowhere)


def _serve(connection: Connection, settings: ServiceSettings, opening: Opening, *, limited: bool) -> None:
    ledger = TimedLedger.open(
        settings.ledger_place, key=settings.key_place or None, witness=settings.witness or None
    )
    try:
        dataset, facts = open_policy(settings, opening.name, opening.policy, ledger)
    except TacitError as refusal:
        connection.send(("refused", _told(refusal)))
        return
    except Exception:  # noqa: BLE001 - what went wrong may name files
        unread = TacitError("bad-parameter", "this policy does not fit its source", fix="check its fields")
        connection.send(("refused", _told(unread)))
        return
    connection.send(("opened", facts))
    if limited:
        _say_nothing()
    try:
        prepare_kind(dataset)
        _warm_up()
        try_questions(opening.kind)
    except Exception:  # noqa: BLE001 - why may depend on the data
        connection.send(("unprepared", None))
        return
    connection.send(("ready", None))
    open_dataset = OpenDataset(opening.name, opening.kind, opening.number, opening.policy, facts, dataset, "")
    speaker = Speaker(connection)
    with (
        ThreadPoolExecutor(opening.width, thread_name_prefix="draw") as pool,
        ThreadPoolExecutor(1, thread_name_prefix="days") as beside,  # no draw waits for days that arrive
    ):
        while (task := connection.recv()) is not None:
            if isinstance(task, DaysTask):
                beside.submit(_take, speaker, settings, open_dataset, task)
            else:
                pool.submit(_answer, speaker, open_dataset, task)
    ledger.close()


class Speaker:
    """Sends whole messages from several threads: a connection alone would mix the parts of large ones."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()

    def say(self, kind: str, message: object) -> None:
        """Send a message."""
        with self._lock:
            self._connection.send((kind, message))


def _answer(speaker: Speaker, dataset: OpenDataset, task: DrawTask) -> None:
    outcome = draw(dataset, task)
    try:
        speaker.say("drawn", outcome)
    except (OSError, ValueError):
        return  # the runner has gone; the ledger knows what happened


def _take(speaker: Speaker, settings: ServiceSettings, dataset: OpenDataset, task: DaysTask) -> None:
    """Take in days of a stream; its curator is told what was refused, without a value of the rows."""
    message: dict[str, Any]
    try:
        files = take_listed_days(settings, dataset, task.through, task.before)
        kind, message = "taken", {"through": task.through, "files": files}
    except TacitError as refusal:
        kind, message = "untaken", {**_told(refusal)}
    except Exception:  # noqa: BLE001 - what went wrong may hold values
        kind, message = "untaken", {**_told(unread_day())}
    try:
        speaker.say(kind, (task.job, message))
    except (OSError, ValueError):
        return  # the runner has gone; what arrived stays


def draw(dataset: OpenDataset, task: DrawTask) -> DrawOutcome:
    """Draw one plan, or say how it failed; a plan that is not the one that was priced is not drawn."""
    try:
        plan = plan_of(dataset.dataset, task.ask)
        _check_same(plan.hash, task.plan)
        with drawing_at(task.slot):
            release = _released(dataset.dataset, plan, task)
        return DrawOutcome(task.query, "finished", document_of(release))
    except TacitError as refusal:
        state = {"release-failed": "failed", "spent": "spent"}.get(refusal.code, "refused")
        return DrawOutcome(task.query, state, problem_of(refusal, ""), refusal.code)
    except Exception:  # noqa: BLE001 - whatever it was, it looks like every other failure
        sleep_until(task.slot.store_at)
        return DrawOutcome(task.query, "failed", {}, "release-failed")


def _released(dataset: Any, plan: Plan[Any], task: DrawTask) -> Release[Any]:
    """Return the release of a plan, or the days of a series that are asked for."""
    from tacit.streams import draw_days

    told = {"who": task.who, "purpose": task.purpose, "account": task.account, "key": f"q:{task.query}"}
    if plan.instalments is None:
        return plan.release(**told)
    return draw_days(dataset, plan, day_asked(task.ask), **told)


def _check_same(plan_hash: str, priced: str) -> None:
    if plan_hash != priced:
        raise TacitError(
            "plan-differs",
            "the dataset has a new policy, under which this question is another plan",
            why="nothing was charged",
            fix="ask for the price again",
        )


def _told(refusal: TacitError) -> dict[str, str]:
    """Write a refusal for `Service.ask_runner`; it says nothing of files and servers."""
    problem = problem_of(refusal, "")
    return {"code": refusal.code, "what": problem["title"], "why": problem["why"], "fix": problem["fix"]}


@cache  # once in a process
def _warm_up() -> None:
    """Answer a question about invented people, so that no paying question waits for modules to be loaded."""
    from tacit.accounting import Budget
    from tacit.tables import example_visits, protect

    example = protect(
        example_visits(),
        unit="patient_id",
        budget=Budget(epsilon=2),
        bounds={"length_of_stay": (0, 30)},
    )
    for sql in ("SELECT COUNT(*) AS n FROM data", "SELECT AVG(length_of_stay) AS stay FROM data"):
        json.dumps(document_of(example.sql(sql).plan(epsilon=1).release()))


class _Worker(Protocol):
    def kill(self) -> None: ...


@dataclass(slots=True, eq=False)
class DatasetChild:
    """One process that serves a dataset, or describes sources.

    Parameters
    ----------
    opening
        What it opens.
    connection, worker
        How it is told and heard, and what can be killed.
    started
        When, by the clock of the service.
    state
        ``starting``, ``opened`` (its facts are known), ``ready`` (its snapshot is made), ``refused``,
        ``unprepared``, ``dead``.
    job
        The job that waits for its facts.
    ready_at
        When it takes questions, or when it is said that it never will; a rung of a ladder.
    held_until
        When the last of the draws that it computed at its end is answered. Until then nobody is shown that it
        has ended.
    """

    opening: Opening
    connection: Connection
    worker: _Worker
    started: float
    state: str = "starting"
    job: str = ""
    ready_at: float = 0.0
    held_until: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def alive(self) -> bool:
        """Whether it can be told something."""
        return self.state in {"starting", "opened", "ready"}

    def tell(self, message: object) -> None:
        """Send a message; one to a process that has ended is lost."""
        with contextlib.suppress(OSError, ValueError), self._lock:
            self.connection.send(message)

    def heard(self) -> Iterator[tuple[str, Any]]:
        """Return what the process has said; its end is the message ``dead``."""
        try:
            while self.connection.poll():
                yield self.connection.recv()
        except (EOFError, OSError):
            before = self.state
            self.kill()
            if before != "ready":  # it would end again
                self.state = before if before in {"refused", "unprepared"} else "unprepared"
            yield "dead", before

    def set_back(self, seconds: float) -> None:
        """Follow a clock that was set back: the process takes questions as long from now on as before."""
        self.started -= seconds
        self.ready_at -= seconds

    def kill(self) -> None:
        """End the process at once, whatever it does."""
        self.state = "dead"
        self.worker.kill()
        with contextlib.suppress(OSError):
            self.connection.close()

    def close(self) -> None:
        """Let the process end by itself, once its draws have ended."""
        self.tell(None)


class _Process:
    def __init__(self, *args: object) -> None:
        context = multiprocessing.get_context("spawn")
        options = {"target": serve_dataset, "args": args, "kwargs": {"limited": True}, "daemon": True}
        self.process = context.Process(**options)  # type: ignore[arg-type]
        self.process.start()

    def kill(self) -> None:
        """End the process; nobody waits until its memory is given back, which depends on its size."""
        self.process.kill()
        threading.Thread(target=self.process.join, args=(60,), daemon=True).start()


class _Thread:
    """In place of a process, for tests; it cannot be killed, but nobody hears it any more."""

    def __init__(self, *args: object) -> None:
        options = {"target": serve_dataset, "args": args, "kwargs": {"limited": False}, "daemon": True}
        self.thread = threading.Thread(**options)  # type: ignore[arg-type]
        self.thread.start()

    def kill(self) -> None:
        """Do nothing: the connection is closed."""


def start_process(settings: ServiceSettings, opening: Opening, started: float) -> DatasetChild:
    """Start a process for a dataset, with limits of its own."""
    mine, its = multiprocessing.get_context("spawn").Pipe()
    worker = _Process(its, settings, opening)
    its.close()  # so that its end is heard
    return DatasetChild(opening, mine, worker, started)


def start_thread(settings: ServiceSettings, opening: Opening, started: float) -> DatasetChild:
    """Serve a dataset in a thread of this process: for tests that need no kill."""
    mine, its = multiprocessing.Pipe()
    return DatasetChild(opening, mine, _Thread(its, settings, opening), started)
