"""The runner: it admits queries at boundaries, has them drawn by the processes of their datasets, keeps time.

It opens no data itself. Everything that it writes for others to see is written at public times, and what it
writes there follows from public facts, from noisy answers, and from whether a process met its deadline.

There is one runner at a time: a locked file on this machine sees to that; on PostgreSQL a lock of the server
does so for all machines. Two runners would settle each other's draws. The ledger charges a query once whoever
draws it, so nobody would pay twice; but a draw that is still computed would be called lost.
"""

from __future__ import annotations

import fcntl
import json
import logging
import signal
import threading
import time
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from tacit.errors import TacitError
from tacit.service._service import UNOPENED, Service
from tacit.service._times import now_text
from tacit.service.runner._admission import BoundaryAdmission, WorkLimits, lag_of, too_much_work
from tacit.service.runner._arrivals import files_before
from tacit.service.runner._clock import Slot, boundary_after, now, rung_after
from tacit.service.runner._dataset_process import DatasetChild, DaysTask, DrawTask, Opening, start_process
from tacit.service.runner._outcomes import Flight, Outcomes, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tacit.service._database import ServiceRow
    from tacit.service._settings import ServiceSettings


_CLASS: Final = 722_306_180  # of the server's locks; the other half of the name is the schema
_ASK: Final = 0.5  # seconds between two attempts, and between two looks whether the lock is still held
#: Seconds after which a machine that cannot be reached counts as gone, on both sides of the connection.
_GONE: Final = 10
#: Seconds that a runner waits after another one, which may notice only then that it has lost the lock.
GRACE: Final = 15.0
_LOG = logging.getLogger("tacit.service.runner")
_POLL = 0.05  # seconds between two looks for jobs
_SEEN = 2.0  # seconds between two signs of life
_CANCEL = "UPDATE queries SET state = 'cancelled' WHERE id = ? AND state = 'waiting'"
_IDLE = 600.0  # seconds after which the process of a policy that nobody uses ends
_UNKNOWN = {"code": "bad-parameter", "what": "the runner does not know this job", "why": "", "fix": ""}
#: Only a query of somebody who may still ask runs.
_RUN = (
    "UPDATE queries SET state = 'running', admitted = ?, answer_at = ? WHERE id = ? AND state = 'waiting'"
    " AND EXISTS (SELECT 1 FROM grants g JOIN users u ON u.id = g.person WHERE g.person = queries.person"
    " AND g.dataset IN ('', queries.dataset) AND g.role = 'analyst' AND u.disabled = 0)"
)


class _Held(Protocol):
    def check(self) -> None: ...


class _Alone:
    """On one machine the locked file is enough."""

    def check(self) -> None:
        """Do nothing: whoever has the file open holds the lock."""


class ServerLock:
    """A lock of the PostgreSQL server that holds as long as one connection; one for each schema.

    Guarantee: two processes never hold it at the same time. `check` refuses at the latest half a second after
    this process could notice that the connection has ended.

    Parameters
    ----------
    place
        The address of the database. A pooler between must keep the session: PgBouncer in session mode.
    """

    def __init__(self, address: str) -> None:
        self._place = address
        self._connection: Any = None
        self._looked = 0.0

    def wait(self, stop: threading.Event) -> bool:
        """Wait until this process holds the lock, or until ``stop`` is set; return whether it holds it."""
        waited = False
        while not self._try():
            waited = True
            if stop.wait(_ASK):
                return False
        if waited and stop.wait(GRACE):
            return False
        self.check()
        return True

    def check(self) -> None:
        """Refuse if the lock is lost: another runner may run now, so this one must end."""
        if time.monotonic() < self._looked + _ASK:
            return
        try:
            self._connection.execute("SELECT 1")
        except Exception:  # noqa: BLE001 - whatever it was, nobody knows whether the lock is held
            raise TacitError(
                "drawer-away",
                "the runner has lost the connection that keeps other runners away",
                why="another runner may run now, and two runners would interfere with each other's draws",
                fix="start the runner again; it waits until it is the only one",
            ) from None
        self._looked = time.monotonic()

    def close(self) -> None:
        """Give the lock back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _try(self) -> bool:
        if self._connection is None:
            self._connection = self._connect()
        row = self._connection.execute(
            "SELECT pg_try_advisory_lock(%s, hashtext(current_schema()))", (_CLASS,)
        ).fetchone()
        return bool(row[0])

    def _connect(self) -> Any:
        import psycopg

        connection = psycopg.connect(
            self._place, autocommit=True, connect_timeout=_GONE, keepalives_idle=_GONE // 2,
            keepalives_interval=2, keepalives_count=2, tcp_user_timeout=1000 * _GONE,
        )  # fmt: skip
        for name, value in {
            "tcp_keepalives_idle": _GONE // 2, "tcp_keepalives_interval": 2, "tcp_keepalives_count": 2,
            "tcp_user_timeout": 1000 * _GONE, "idle_session_timeout": 0,
        }.items():  # fmt: skip
            with suppress(psycopg.Error):  # an older server does not know all of them
                connection.execute(f"SET {name} = {value}")
        return connection


def _locked(file: IO[str], stop: threading.Event) -> bool:
    """Wait until this process holds the file's lock, or until ``stop`` is set; return whether it holds it."""
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if stop.wait(_ASK):
                return False
        else:
            return True


@contextmanager
def only_runner(settings: ServiceSettings, stop: threading.Event) -> Iterator[_Held | None]:
    """Wait until no other runner runs, and keep others away; None if ``stop`` was set before.

    Parameters
    ----------
    settings
        The operator's settings: the folder, and the database.
    stop
        Ends the wait.
    """
    settings.folder.mkdir(parents=True, exist_ok=True)
    with (settings.folder / "drawer.lock").open("w") as file:  # its name stays: an older version looks for it
        if not _locked(file, stop):
            yield None
            return
        if not settings.database_place.startswith(("postgresql://", "postgres://")):
            yield _Alone()
            return
        lock = ServerLock(settings.database_place)
        try:
            yield lock if lock.wait(stop) else None
        finally:
            lock.close()


def serve_runner(settings: ServiceSettings, stop: threading.Event | None = None) -> None:
    """Run the runner until it is told to stop (SIGTERM); admitted draws end at their boundary.

    There is one at a time: another one in the same folder, or with the same database on PostgreSQL, waits
    until this one has ended. One that loses the connection that keeps others away ends.

    Parameters
    ----------
    settings
        The operator's settings.
    stop
        Stops the runner when it is set; a process of its own needs none.
    """
    stop = stop or threading.Event()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        signal.signal(signal.SIGINT, lambda *_: stop.set())
    with only_runner(settings, stop) as lock:
        if lock is not None:
            _run(settings, stop, lock.check)


def _run(settings: ServiceSettings, stop: threading.Event, still_alone: Callable[[], None]) -> None:
    runner = Runner(settings)
    runner.stop, runner.still_alone = stop, still_alone
    try:
        runner.run()
    finally:
        runner.close()


class Runner:
    """Admits queries, starts and kills the processes of datasets, and answers jobs.

    Parameters
    ----------
    settings
        The operator's settings.
    start
        How the process of a dataset is started; tests start threads.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        start: Callable[[ServiceSettings, Opening, float], DatasetChild] = start_process,
    ) -> None:
        self.settings = settings
        self.service = Service(settings)
        self.stop = threading.Event()
        self.still_alone: Callable[[], None] = lambda: None
        self._start = start
        self._children: dict[tuple[str, int], DatasetChild] = {}
        self._describer: DatasetChild | None = None
        self._flights: dict[str, Flight] = {}
        self._last_served: dict[tuple[str, str], int] = {}  # the boundary, by dataset and person
        self._outcomes = Outcomes(self.service)
        self._boundary = boundary_after(now(), settings.tick)
        self._seen = self._polled = 0.0

    def run(self) -> None:
        """Recover, then serve until the event ``stop`` is set and every admitted draw has ended."""
        self.recover()
        while not (self.stop.is_set() and not self._flights):
            self.still_alone()
            self.step()
            wake = min((self._boundary * float(self.settings.tick), *self._due_times()))
            self._wait(max(0.0, min(wake - now(), _POLL)))

    def close(self) -> None:
        """End all processes and close the database and the ledger."""
        for child in [*self._children.values(), *([self._describer] if self._describer else [])]:
            child.kill()
        self.service.close()

    def recover(self) -> None:
        """Settle what an earlier runner left running, by what the ledger knows of it; open all datasets."""
        for row in self.service.database.rows("SELECT * FROM queries WHERE state = 'running'"):
            settle(self.service, row, lost="spent")
        for row in self._datasets():
            if not row["paused"]:
                self._open(row)

    def step(self) -> None:
        """Do what is due now: hear the processes, answer jobs, end and admit draws."""
        self.listen()
        moment = now()
        self._follow_clock(moment)
        if any(due <= moment for due in self._due_times()):
            self._end_flights(moment)
        if moment >= self._boundary * float(self.settings.tick):
            current = boundary_after(moment, self.settings.tick) - 1
            if not self.stop.is_set():
                self._admit(max(current, self._boundary))
            self._boundary = max(current, self._boundary) + 1
            self._show_life(moment)

    def _follow_clock(self, moment: float) -> None:
        """Go on at once after the clock was set back; draws under way leave at their announced time."""
        tick, following = float(self.settings.tick), boundary_after(moment, self.settings.tick)
        back = (self._boundary - following) * tick
        if back <= tick:
            return
        _LOG.warning("the clock was set back", extra={"seconds": round(back)})
        self._boundary, self._seen = following, min(self._seen, moment)
        self._last_served.clear()
        for child in self._all_children():
            child.set_back(back)

    def listen(self) -> None:
        """Hear the processes and take jobs; nothing here waits for a boundary."""
        self._hear()
        if time.monotonic() >= self._polled + _POLL:
            self._polled = time.monotonic()
            self._take_jobs()

    def _wait(self, seconds: float) -> None:
        connections = [c.connection for c in self._all_children() if c.alive]
        if connections:
            wait(connections, seconds)
        else:
            self.stop.wait(seconds)

    def _all_children(self) -> list[DatasetChild]:
        return [*self._children.values(), *([self._describer] if self._describer is not None else [])]

    def _due_times(self) -> list[float]:
        return [flight.slot.answer_at for flight in self._flights.values()]

    def _datasets(self) -> list[ServiceRow]:
        return self.service.database.rows(
            "SELECT d.name, d.kind, d.policy, d.paused, p.document FROM datasets d"
            " JOIN policies p ON p.dataset = d.name AND p.number = d.policy"
        )

    def _show_life(self, moment: float) -> None:
        """Say that the runner is alive, for the service's readiness."""
        if moment < self._seen + _SEEN:
            return
        self._seen = moment
        with self.service.database.change() as change:
            if not change.run("UPDATE facts SET fact = ? WHERE name = 'drawer_seen'", now_text()):
                change.run("INSERT INTO facts (name, fact) VALUES ('drawer_seen', ?)", now_text())

    # Processes ----------------------------------------------------------------------------------------------

    def _open(self, row: ServiceRow) -> DatasetChild:
        """Return the process of a dataset's policy; start it if there is none."""
        key, policy = (str(row["name"]), int(row["policy"])), json.loads(row["document"])
        child = self._children.get(key)
        other = child is not None and child.opening.policy != policy
        if child is not None and other:  # another curator had this number checked, and lost the race
            child.kill()
        ended = child is not None and child.state == "dead" and child.held_until <= now()
        if child is None or other or ended:
            child = self._children[key] = self._launch(key, str(row["kind"]), policy)
        return child

    def _launch(self, key: tuple[str, int], kind: str, policy: dict[str, Any]) -> DatasetChild:
        width = int(policy.get("width") or self.settings.width)
        return self._start(self.settings, Opening(key[0], kind, key[1], policy, width), now())

    def _hear(self) -> None:
        """Hear all processes; outcomes of draws are written together."""
        outcomes = []
        for child in self._all_children():
            if not child.alive:
                continue
            for kind, message in child.heard():
                if kind == "drawn":
                    outcomes.append(message)
                else:
                    self._heard(child, kind, message)
        landed = [(self._flights[one.query], one) for one in outcomes if one.query in self._flights]
        done = self._outcomes.write(landed)
        for query in done:
            self._flights[query].written = True

    def _heard(self, child: DatasetChild, kind: str, message: Any) -> None:
        match kind:
            case "opened":
                child.state = "opened"
                self._finish_job(child.job, "done", message)
            case "ready":
                child.state = "ready"
                child.ready_at = rung_after(child.started, self.settings.tick)
            case "refused":
                child.state = "refused"
                child.ready_at = rung_after(child.started, self.settings.tick)
                self._finish_job(child.job, "refused", message)
            case "unprepared":
                child.state = "unprepared"
                child.ready_at = rung_after(child.started, self.settings.tick)
            case "described" | "taken":
                self._finish_job(message[0], "done", message[1])
            case "undescribed" | "untaken":
                self._finish_job(message[0], "refused", message[1])
            case "dead":
                _LOG.warning("process ended", extra={"dataset": child.opening.name})
                if child.state == "dead":  # while it took questions
                    flying = [f.slot.answer_at for f in self._flights.values() if f.child is child]
                    child.held_until = max(flying, default=0.0)
                else:
                    child.ready_at = rung_after(child.started, self.settings.tick)
                self._finish_job(child.job, "refused", _ENDED)

    # Jobs ---------------------------------------------------------------------------------------------------

    def _take_jobs(self) -> None:
        for job in self.service.database.rows("SELECT * FROM jobs WHERE state = 'waiting' ORDER BY created"):
            with self.service.database.change() as change:
                updated = change.run(
                    "UPDATE jobs SET state = 'taken' WHERE id = ? AND state = 'waiting'", job["id"]
                )
            if updated:
                self._take(job["id"], job["kind"], json.loads(job["document"]))

    def _take(self, job: str, kind: str, document: dict[str, Any]) -> None:
        if kind == "describe":
            if self._describer is None or not self._describer.alive:
                self._describer = self._start(self.settings, Opening(), now())
            self._describer.job = job
            self._describer.tell((job, document.get("source")))
        elif kind == "open":
            key = (str(document.get("dataset", "")), int(document.get("number", 1)))
            self._open_for(job, key, dict(document.get("policy") or {}))
        elif kind == "days":
            key = (str(document.get("dataset", "")), int(document.get("number", 1)))
            taker = self._children.get(key)
            if taker is None or taker.state != "ready":
                self._finish_job(job, "refused", _NOT_READY)
            else:
                version = int(taker.opening.policy.get("version", 1))
                before = files_before(self.service, key[0], version)
                taker.tell(DaysTask(job, str(document.get("through", "")), before))
        elif kind == "close":
            self._close((str(document.get("dataset", "")), int(document.get("number", 1))), document)
            self._finish_job(job, "done", {})
        else:
            self._finish_job(job, "refused", _UNKNOWN)

    def _open_for(self, job: str, key: tuple[str, int], policy: dict[str, Any]) -> None:
        """Start the process of a policy that is to be checked; an earlier one of that number lost the race.

        A policy that the dataset has already, and its process, stay: answers are being computed there.
        """
        earlier = self._children.get(key)
        is_flying = any(flight.child is earlier for flight in self._flights.values())
        if self._is_used(key) or is_flying:
            self._finish_job(job, "refused", _CHANGED)
            return
        if earlier is not None:
            earlier.kill()
        child = self._children[key] = self._launch(key, str(policy.get("kind", "table")), policy)
        child.job = job

    def _is_used(self, key: tuple[str, int]) -> bool:
        """Whether a dataset has this policy or a later one."""
        return any(row["name"] == key[0] and row["policy"] >= key[1] for row in self._datasets())

    def _close(self, key: tuple[str, int], document: dict[str, Any]) -> None:
        """End the process of a policy that was refused after it had been opened."""
        child = self._children.get(key)
        if (
            child is None or self._is_used(key) or child.state == "starting"
        ):  # it may be opened for somebody else
            return
        if child.opening.policy == document.get("policy"):
            child.kill()
            del self._children[key]

    def _finish_job(self, job: str, state: str, result: dict[str, Any]) -> None:
        if job:
            with self.service.database.change() as change:
                change.run(
                    "UPDATE jobs SET state = ?, result = ? WHERE id = ? AND state = 'taken'",
                    state, json.dumps(result), job,
                )  # fmt: skip

    # Draws --------------------------------------------------------------------------------------------------

    def _admit(self, boundary: int) -> None:
        """Admit waiting queries as far as their dataset has room: a slot is held until the answer leaves.

        Whoever was admitted longest ago comes first, and then whoever asked first.
        """
        waiting = self.service.database.rows(
            "SELECT id, dataset, plan, person, work FROM queries WHERE state = 'waiting' ORDER BY position"
        )
        if not waiting and not self._children:
            return
        datasets = {row["name"]: row for row in self._datasets()}
        self._end_unused(datasets)
        takers = {
            name: child
            for name in dict.fromkeys(row["dataset"] for row in waiting)
            if name in datasets and (child := self._taker(datasets[name], boundary)) is not None
        }
        admissions = {name: self._admission(name, child) for name, child in takers.items()}
        chosen: list[tuple[str, DatasetChild, Slot]] = []
        for row in sorted(waiting, key=self._served):
            child = takers.get(row["dataset"])
            if child is None:
                continue
            admission, lag = admissions[row["dataset"]], lag_of(child.opening.policy, self.settings)
            if row["work"] > admission.limits.share:  # it was asked under a policy with a larger lag
                self._outcomes.refuse(row["id"], too_much_work(self.settings, lag, row["work"]))
                continue
            if not admission.admits(row):
                continue
            self._last_served[row["dataset"], row["person"]] = boundary
            chosen.append((row["id"], child, Slot.at(boundary, lag, self.settings.tick)))
        if chosen:
            self._send(chosen)

    def _served(self, row: ServiceRow) -> int:
        return self._last_served.get((row["dataset"], row["person"]), 0)

    def _admission(self, name: str, child: DatasetChild) -> BoundaryAdmission:
        limits = WorkLimits.of(self.settings, lag_of(child.opening.policy, self.settings))
        admission = BoundaryAdmission(child.opening.width, limits)
        for flight in self._flights.values():
            if flight.dataset == name:
                admission.hold(flight)
        return admission

    def _taker(self, dataset: ServiceRow, boundary: int) -> DatasetChild | None:
        """Return the process that takes a dataset's questions at a boundary; None if it takes none now.

        One that ended while it computed is held as if it went on until the answers of its draws are due: when
        it ended depends on the data. What it is told is lost; it is not charged and waits again.
        """
        if dataset["paused"]:
            return None
        child = self._open(dataset)
        due = child.ready_at <= boundary * float(self.settings.tick)
        if due and child.state in {"refused", "unprepared"}:
            self._outcomes.pause(dataset["name"], UNOPENED)
            del self._children[dataset["name"], dataset["policy"]]  # to be started again when it is resumed
        return child if due and child.state in {"ready", "dead"} else None

    def _send(self, chosen: list[tuple[str, DatasetChild, Slot]]) -> None:
        """Write that queries run, durably, and hand them to their processes.

        A query of somebody who may no longer ask is cancelled: what was taken from a person spends nothing.
        """
        flights: list[tuple[Flight, DrawTask]] = []
        with self.service.database.change() as change:
            for query, child, slot in chosen:
                updated = change.run(_RUN, slot.admitted, slot.answer_at, query)
                if not updated and change.run(_CANCEL, query):
                    self.service.record(change, "", "query-cancelled", query, "")
                row = change.row("SELECT * FROM queries WHERE id = ?", query)
                if updated and row is not None:
                    task = DrawTask(
                        query, json.loads(row["ask"]), row["plan"], row["account"], row["person"],
                        row["purpose"], slot,
                    )  # fmt: skip
                    facts = (query, row["dataset"], row["plan"], row["person"], float(row["work"]))
                    flights.append((Flight(*facts, slot, child), task))
        for flight, task in flights:
            self._flights[flight.query] = flight
            flight.child.tell(task)

    def _end_flights(self, moment: float) -> None:
        """Give back the slots of draws whose answers leave now; whoever is late fails, and is ended."""
        ended = [flight for flight in self._flights.values() if flight.slot.answer_at <= moment]
        for flight in ended:
            del self._flights[flight.query]
            self._outcomes.end(flight)

    def _end_unused(self, datasets: dict[str, ServiceRow]) -> None:
        """End the processes of policies that were replaced, once their draws have ended."""
        for (name, number), child in list(self._children.items()):
            current = datasets.get(name)
            old = current is not None and current["policy"] > number
            is_superseded = current is None or current["policy"] < number
            flying = any(flight.child is child for flight in self._flights.values())
            if not flying and (old or (is_superseded and now() > child.started + _IDLE)):
                child.kill()
                del self._children[name, number]


_ENDED = {
    "code": "bad-parameter",
    "what": "the data could not be opened within the limits of this service",
    "why": "",
    "fix": "ask the operator",
}
_NOT_READY = {
    "code": "drawer-away",
    "what": "the dataset is paused, or its data is still being opened",
    "why": "",
    "fix": "try again in a minute, or resume the dataset",
}
_CHANGED = {
    "code": "already-decided",
    "what": "somebody else has changed this dataset in the meantime",
    "why": "",
    "fix": "open the page again, look at what has changed, and try again",
}
