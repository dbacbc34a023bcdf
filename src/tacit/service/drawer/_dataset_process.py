"""The process of one dataset: it alone opens the data, within limits of its own, and answers draws.

It speaks to the drawer over one connection. What it says after a charge is the noisy answer, or one failure
without details; and it says either only after the time at which the draw is stored.
"""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.service._kinds import prepare_kind, try_questions
from tacit.service._problems import problem_of
from tacit.service._service import OpenDataset
from tacit.service._stream_kind import day_asked
from tacit.service.drawer._clock import sleep_until
from tacit.service.drawer._days import take_listed_days, unread_day
from tacit.service.drawer._opening import describe_source, open_policy
from tacit.service.drawer._release_documents import document_of
from tacit.service.drawer._timed_ledger import TimedLedger, drawing_at
from tacit.service.plans import plan_of

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from tacit.core import Plan, Release
    from tacit.service._settings import ServiceSettings
    from tacit.service.drawer._clock import Slot

_OVERHEAD = 1024  # MiB beyond the limit of DuckDB: Python and its packages, stacks of threads


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
    """Days of a stream that are to be taken in: for which job, up to which day, and what came in before."""

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
        pass  # the drawer has gone
    finally:
        connection.close()
        if limited:
            os._exit(0)  # not even for a draw that is still computing


def _limit(settings: ServiceSettings, opening: Opening) -> None:
    """Limit what this process may take, and let it end with the drawer."""
    import ctypes
    import resource
    import signal

    from tacit.core import admit_packages
    from tacit.engines import limit_connections

    admit_packages(settings.packages)
    limit_connections(memory=settings.memory, threads=max(1, (os.cpu_count() or 2) - 1))
    most = (settings.memory + _OVERHEAD + 8 * opening.width) * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        return  # elsewhere than on Linux the end of the connection is enough


def _describe(connection: Connection, settings: ServiceSettings) -> None:
    """Describe sources as often as the drawer asks."""
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
    opened = OpenDataset(opening.name, opening.kind, opening.number, opening.policy, facts, dataset, "")
    speaker = Speaker(connection)
    with (
        ThreadPoolExecutor(opening.width, thread_name_prefix="draw") as pool,
        ThreadPoolExecutor(1, thread_name_prefix="days") as beside,  # no draw waits for days that come in
    ):
        while (task := connection.recv()) is not None:
            if isinstance(task, DaysTask):
                beside.submit(_take, speaker, settings, opened, task)
            else:
                pool.submit(_answer, speaker, opened, task)
    ledger.close()


class Speaker:
    """Sends whole messages from several threads: a connection alone would mix the parts of large ones."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()

    def say(self, said: str, what: object) -> None:
        """Send a message."""
        with self._lock:
            self._connection.send((said, what))


def _answer(speaker: Speaker, opened: OpenDataset, task: DrawTask) -> None:
    outcome = draw(opened, task)
    try:
        speaker.say("drawn", outcome)
    except (OSError, ValueError):
        return  # the drawer has gone; the ledger knows what happened


def _take(speaker: Speaker, settings: ServiceSettings, opened: OpenDataset, task: DaysTask) -> None:
    """Take in days of a stream; its curator is told what was refused, without a value of the rows."""
    what: dict[str, Any]
    try:
        files = take_listed_days(settings, opened, task.through, task.before)
        said, what = "taken", {"through": task.through, "files": files}
    except TacitError as refusal:
        said, what = "untaken", {**_told(refusal)}
    except Exception:  # noqa: BLE001 - what went wrong may hold values
        said, what = "untaken", {**_told(unread_day())}
    try:
        speaker.say(said, (task.job, what))
    except (OSError, ValueError):
        return  # the drawer has gone; what came in stays


def draw(opened: OpenDataset, task: DrawTask) -> DrawOutcome:
    """Draw one plan, or say how it failed; a plan that is not the one that was priced is not drawn."""
    try:
        plan = plan_of(opened.dataset, task.ask)
        _check_same(plan.hash, task.plan)
        with drawing_at(task.slot):
            release = _released(opened.dataset, plan, task)
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


def _check_same(made: str, priced: str) -> None:
    if made != priced:
        raise TacitError(
            "plan-differs",
            "the dataset has a new policy, under which this question is another plan",
            why="nothing was charged",
            fix="ask for the price again",
        )


def _told(refusal: TacitError) -> dict[str, str]:
    """Write a refusal for `Service.ask_drawer`; it says nothing of files and servers."""
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
