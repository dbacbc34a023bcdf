"""The supervisor: starts the web workers and the runner, starts again what dies, and stops all in order.

Each of its processes, a web worker or the runner, ends with its supervisor.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from typing import TYPE_CHECKING, Any

from tacit.core import admit_packages
from tacit.errors import TacitError
from tacit.service.operation._edge import place_of_error, start_logging
from tacit.service.operation._metrics import MetricsListener, readiness
from tacit.service.operation._shared import CounterNames, SharedState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.process import BaseProcess

    from tacit.service._service import Service
    from tacit.service._settings import ServiceSettings


_PROCESS_LOG = logging.getLogger("tacit.service")
_CONNECTIONS = 2000  # of one worker; beyond them it answers 503
_LAST_SECONDS = 10  # in which running requests may end when the worker stops
_LOG = logging.getLogger("tacit.service.supervisor")
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0  # seconds before a dead process is started again
_STEADY = 60.0  # seconds after which an earlier death no longer counts
_GRACE = 15.0  # seconds that a process gets to end by itself


def run_web_worker(
    settings: ServiceSettings, shared: SharedState, sockets: Sequence[socket.socket], *, log_requests: bool
) -> None:
    """Serve requests until the process is told to stop."""
    with _quietly(log_requests=log_requests):
        admit_packages(settings.packages)
        _serve(settings, shared, sockets)


def _serve(settings: ServiceSettings, shared: SharedState, sockets: Sequence[socket.socket]) -> None:
    import uvicorn

    from tacit.service._app import create_app
    from tacit.service.operation._connections import shared_connections

    app = create_app(settings)
    app.state.shared = shared
    secure: dict[str, Any] = {}
    if settings.certificate:
        secure = {"ssl_certfile": settings.certificate, "ssl_keyfile": settings.private_key or None}
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, lifespan="on", ws="none",
        proxy_headers=settings.behind_proxy, forwarded_allow_ips=settings.proxies,
        limit_concurrency=_CONNECTIONS, timeout_graceful_shutdown=_LAST_SECONDS, timeout_keep_alive=30,
        http=shared_connections(settings.connections, settings.proxies if settings.behind_proxy else ""),
        **secure,
    )  # fmt: skip
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=list(sockets))


def serve_runner_process(settings: ServiceSettings) -> None:
    """Run the one process that opens data; what it writes is for its user alone."""
    os.umask(0o077)
    with _quietly(log_requests=False):
        from tacit.service.runner import serve_runner

        admit_packages(settings.packages)
        serve_runner(settings)


@contextmanager
def _quietly(*, log_requests: bool) -> Iterator[None]:
    """Begin a process; if it fails, log the type and the place of the error, and nothing of its text.

    Without this, `multiprocessing` would print the whole error, with values and SQL.
    """
    _begin(log_requests=log_requests)
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the process ends, and is started again
        where = {"kind": type(error).__name__, "place": place_of_error(error.__traceback__)}
        _PROCESS_LOG.error("process failed", extra=where)
        raise SystemExit(1) from None


def _begin(*, log_requests: bool) -> None:
    """Leave the terminal's group, so that Ctrl-C reaches the supervisor alone, and watch the supervisor."""
    with suppress(OSError, AttributeError):
        os.setpgid(0, 0)
    start_logging(requests=log_requests)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    """End in order when the supervisor is gone, however it went."""
    connection.wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def open_socket(address: str, port: int) -> socket.socket:
    """Listen on an address; all workers share the socket."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((address, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise TacitError(
            "bad-parameter",
            f"the service cannot listen on {address} port {port}:"
            f" {getattr(error, 'strerror', None) or 'there is no such port'}",
            why="another program may use the port, or the address belongs to another machine",
            fix=f"--port {port % 60000 + 1}",
        ) from None
    listening.listen(2048)
    return listening


@dataclass(slots=True)
class _Child:
    """One process that must run, and when it may be started again."""

    name: str
    start: Callable[[], BaseProcess]
    process: BaseProcess | None = None
    started: float = 0.0
    deaths: int = 0
    not_before: float = 0.0

    def run(self) -> None:
        self.process = self.start()
        self.started = time.monotonic()

    def pause(self) -> float:
        """Return for how long to wait before the next start; longer after each death in a row."""
        self.deaths = 1 if time.monotonic() - self.started > _STEADY else self.deaths + 1
        return float(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (self.deaths - 1)))


class Supervisor:
    """Keeps the processes of a service running.

    Guarantee: a process that dies is started again, after pauses that grow. On `stop`, the service is not
    ready at once and the runner admits nothing more; draws that were admitted end at their boundary, while
    the workers still answer; then the workers end their requests and close.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        listening: socket.socket,
        *,
        log_requests: bool = True,
        with_runner: bool = True,
    ) -> None:
        self._settings, self._socket, self._log_requests = settings, listening, log_requests
        self._context: Any = multiprocessing.get_context("spawn")
        self.shared = SharedState.between(self._context, settings.workers, limited=settings.rate > 0)
        self._wake, self._waker = socket.socketpair()
        self._stopping = threading.Event()
        self._workers = [_Child(f"worker {n}", self._worker(n)) for n in range(settings.workers)]
        self._runners = [_Child("drawer", self._runner)] if with_runner else []
        self._service: Service | None = None
        self.metrics = MetricsListener(self, settings.metrics) if settings.metrics else None

    def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Run until SIGTERM, SIGINT or `stop`; ``started`` is called when every process was started."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.stop())
        for child in self._children:
            child.run()
        if self.metrics is not None:
            self.metrics.start()
        started()
        while not self._stopping.is_set():
            self._look_after()
        self._end()

    def stop(self) -> None:
        """Ask the service to stop; safe in a signal handler."""
        self._stopping.set()
        self._waker.send(b".")

    @property
    def _children(self) -> list[_Child]:
        return self._runners + self._workers

    def processes(self) -> dict[str, tuple[int, int]]:
        """Return for each process its number (0 while it does not run) and how often it died."""
        processes = {}
        for child in self._children:
            alive = child.process is not None and child.process.is_alive()
            processes[child.name] = ((child.process.pid or 0) if child.process and alive else 0, child.deaths)
        return processes

    def counter_names(self) -> CounterNames:
        """Return the list of counters that all workers use."""
        from tacit.service._app import route_templates

        return CounterNames(route_templates())

    def readiness(self) -> dict[str, str]:
        """Return for each part of the service ``ok`` or what is wrong."""
        if self._service is None:
            from tacit.service._service import Service

            self._service = Service(self._settings)
        states = readiness(self._service.database, self._service.ledger)
        return states | ({"service": "stopping"} if self._stopping.is_set() else {})

    def _look_after(self) -> None:
        """Wait until something happens; start again what died."""
        now = time.monotonic()
        for child in self._children:
            if child.process is None and child.not_before <= now:
                child.run()
        waiting = [child.not_before - now for child in self._children if child.process is None]
        running = {child.process.sentinel: child for child in self._children if child.process is not None}
        awake = connection.wait([self._wake, *running], min([*waiting, 60.0]))
        for sentinel, child in running.items():
            if sentinel not in awake or child.process is None:
                continue
            child.process.join()
            pause = child.pause()
            _LOG.warning(
                "process died",
                extra={
                    "part": child.name, "exit_code": child.process.exitcode, "seconds_to_wait": pause,
                },
            )  # fmt: skip
            child.process, child.not_before = None, time.monotonic() + pause

    def _end(self) -> None:
        """Stop in order: no admissions, admitted draws end, then the workers."""
        _LOG.info("stopping")
        self.shared.stopping.set()
        lag = float(self._settings.lag * self._settings.tick)
        self._end_all(self._runners, _GRACE + lag)
        self._end_all(self._workers, _GRACE)
        if self.metrics is not None:
            self.metrics.stop()
        if self._service is not None:
            self._service.close()
        self._socket.close()
        _LOG.info("stopped")

    def _end_all(self, children: list[_Child], seconds: float) -> None:
        running = [child.process for child in children if child.process is not None]
        for process in running:
            process.terminate()
        end = time.monotonic() + seconds
        for process in running:
            process.join(max(0.0, end - time.monotonic()))
            if process.is_alive():
                _LOG.warning("process killed", extra={"pid": process.pid})
                process.kill()
                process.join()

    def _worker(self, number: int) -> Callable[[], BaseProcess]:
        from dataclasses import replace

        shared = replace(self.shared, worker=number)
        options = {"log_requests": self._log_requests}
        return lambda: self._start(run_web_worker, (self._settings, shared, (self._socket,)), options)

    def _runner(self) -> BaseProcess:
        return self._start(serve_runner_process, (self._settings,), {})

    def _start(self, run: Callable[..., None], args: tuple[Any, ...], options: dict[str, Any]) -> BaseProcess:
        process: BaseProcess = self._context.Process(target=run, args=args, kwargs=options)
        process.start()
        return process
