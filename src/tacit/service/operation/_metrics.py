"""What machines ask: does the process answer, is the service ready, who am I; and metrics for Prometheus.

Metrics are on a listener of their own that only this machine reaches. They hold requests by route and status,
refusals by code, facts of the web processes, and readiness. They hold no counts of data, people, questions or
charges, and nothing of the runner but whether it runs: the time and the memory that a draw takes depend on
the data.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError
from tacit.service._operations import ANYONE, SIGNED_IN, Answer, Operation, ServiceCall
from tacit.service._times import later_text, now_text
from tacit.service.operation._shared import shared_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.ledger import Ledger
    from tacit.service._database import Database
    from tacit.service.operation._shared import CounterNames
    from tacit.service.operation._supervisor import Supervisor


#: Where the runner notes that it is alive; and where this module tries whether the database takes a change.
_RUNNER_SEEN: Final = "drawer_seen"
_WORKER: Final = "worker_seen"
_LATE = 15.0  # seconds without a sign of life after which the runner is away
_KEPT = 1.0  # seconds for which a worker keeps what it found


def beat(database: Database, name: str = _RUNNER_SEEN) -> None:
    """Note that a part of the service is alive, now."""
    with database.change() as change:
        change.run(
            "INSERT INTO facts (name, fact) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET fact = excluded.fact",
            name, now_text(),
        )  # fmt: skip


def readiness(database: Database, ledger: Ledger, *, stopping: bool = False) -> dict[str, str]:
    """Return for each part of the service ``ok``, or the code of what is wrong; nothing of the details.

    The parts are ``ledger`` (open, unsealed, in its place, and the witness has seen nothing that it lacks),
    ``database`` (takes a change), ``drawer`` (the runner gave a sign of life), ``service`` (is not stopping).
    """
    return {
        "service": "stopping" if stopping else "ok",
        "ledger": _ledger_state(ledger),
        "database": _database_state(database),
        "drawer": _runner_state(database),
    }


def _ledger_state(ledger: Ledger) -> str:
    try:
        if ledger.sealed is not None:
            return "ledger-sealed"
        if ledger.missing is not None:
            return "ledger-rolled-back"
        refused = ledger.refusal
    except TacitError as refusal:
        return refusal.code
    except Exception:  # noqa: BLE001 - whatever it is, the ledger cannot be used
        return "ledger-unavailable"
    return "ok" if refused is None else refused.code


def _database_state(database: Database) -> str:
    try:
        beat(database, _WORKER)
    except Exception:  # noqa: BLE001 - a full disk, a lock, a server that went away
        return "not-writable"
    return "ok"


def _runner_state(database: Database) -> str:
    try:
        row = database.row("SELECT fact FROM facts WHERE name = ?", _RUNNER_SEEN)
        return "ok" if row is not None and row["fact"] > later_text(seconds=-_LATE) else "drawer-away"
    except Exception:  # noqa: BLE001 - then nobody knows
        return "drawer-away"


def _health(_: ServiceCall) -> dict[str, Any]:
    return {"health": "ok"}


def _ready(call: ServiceCall) -> Answer:
    shared, state = shared_of(call.request), call.request.app.state
    cached: tuple[float, dict[str, str]] | None = getattr(state, "readiness", None)
    if (
        cached is None or time.monotonic() - cached[0] > _KEPT
    ):  # the probe is open to all, so it must be cheap
        cached = time.monotonic(), readiness(call.service.database, call.service.ledger)
        state.readiness = cached
    checks = cached[1] | ({"service": "stopping"} if shared.stopping.is_set() else {})
    is_ready = all(value == "ok" for value in checks.values())
    return Answer({"ready": is_ready, "checks": checks}, 200 if is_ready else 503)


def _whoami(call: ServiceCall) -> dict[str, Any]:
    caller = call.person
    return {"id": caller.id, "name": caller.name, "roles": sorted(caller.roles)}


PROBES: Final = (
    Operation("GET", "/health", ANYONE, _health, summary="Whether the process answers."),
    Operation("GET", "/ready", ANYONE, _ready, summary="Whether the service can take questions."),
    Operation("GET", "/whoami", SIGNED_IN, _whoami, summary="Who the caller is, and with which roles."),
)


def metrics_text(
    names: CounterNames,
    counts: tuple[Any, ...],
    processes: dict[str, tuple[int, int]],
    ready: dict[str, str],
) -> str:
    """Write the metrics.

    Parameters
    ----------
    names, counts
        The counters, and their values for each worker.
    processes
        For each process its number and how often it died.
    ready
        For each part of the service ``ok`` or what is wrong.
    """
    lines = ["# TYPE tacit_requests_total counter"]
    for route, status, count in names.requests(counts):
        lines.append(f'tacit_requests_total{{route="{route}",status="{status}"}} {count}')
    lines.append("# TYPE tacit_refusals_total counter")
    lines += [f'tacit_refusals_total{{code="{code}"}} {count}' for code, count in names.refusals(counts)]
    lines.append("# TYPE tacit_process_up gauge")
    lines += [f'tacit_process_up{{process="{name}"}} {int(pid > 0)}' for name, (pid, _) in processes.items()]
    lines.append("# TYPE tacit_process_restarts gauge")
    lines += [f'tacit_process_restarts{{process="{name}"}} {died}' for name, (_, died) in processes.items()]
    lines += _web_processes(processes)
    lines.append("# TYPE tacit_ready gauge")
    lines += [f'tacit_ready{{part="{part}"}} {int(state == "ok")}' for part, state in ready.items()]
    return "\n".join(lines) + "\n"


def _web_processes(processes: dict[str, tuple[int, int]]) -> Iterator[str]:
    """Return time and memory of the web workers; not of the runner, where they depend on the data."""
    usage: dict[str, tuple[float, int]] = {}
    for name, (pid, _) in processes.items():
        if name != "drawer" and pid:
            with suppress(OSError, ValueError, IndexError):
                parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                seconds = (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
                usage[name] = seconds, int(parts[21]) * os.sysconf("SC_PAGE_SIZE")
    yield "# TYPE tacit_process_cpu_seconds_total counter"
    for name, (seconds, _) in usage.items():
        yield f'tacit_process_cpu_seconds_total{{process="{name}"}} {seconds:.2f}'
    yield "# TYPE tacit_process_resident_bytes gauge"
    for name, (_, size) in usage.items():
        yield f'tacit_process_resident_bytes{{process="{name}"}} {size}'


class MetricsListener:
    """Answers ``GET /metrics`` on a port of this machine, and nothing else."""

    def __init__(self, supervisor: Supervisor, port: int) -> None:
        listener = self

        class Handler(BaseHTTPRequestHandler):
            server_version, sys_version = "tacit", ""
            timeout = 10

            def do_GET(self) -> None:
                body = listener.text().encode() if self.path == "/metrics" else b""
                self.send_response(200 if body else 404)
                self.send_header("content-type", "text/plain; version=0.0.4")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Log nothing: the line would hold what was asked."""

        self._supervisor = supervisor
        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        self._server.daemon_threads = True
        self._names: CounterNames | None = None
        self._kept: tuple[float, str] = (float("-inf"), "")
        self._lock = threading.Lock()

    def start(self) -> None:
        """Answer in a thread."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

    def text(self) -> str:
        """Return the metrics; at most one second old."""
        with self._lock:
            if time.monotonic() - self._kept[0] > 1:
                self._kept = time.monotonic(), self._text()
            return self._kept[1]

    def _text(self) -> str:
        names = self._names = self._names or self._supervisor.counter_names()
        supervisor = self._supervisor
        return metrics_text(names, supervisor.shared.counts, supervisor.processes(), supervisor.readiness())
