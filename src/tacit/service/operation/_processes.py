"""The processes of a service: a web worker, and the drawer. Each ends with its supervisor."""

from __future__ import annotations

import logging
import os
import signal
import threading
from contextlib import contextmanager, suppress
from multiprocessing import connection, parent_process
from typing import TYPE_CHECKING, Any

from tacit.core import admit_packages
from tacit.service.operation._logs import place_of_error, start_logging

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence

    from tacit.service._settings import ServiceSettings
    from tacit.service.operation._shared import SharedState

_LOG = logging.getLogger("tacit.service")
_CONNECTIONS = 2000  # of one worker; beyond them it answers 503
_LAST_SECONDS = 10  # in which running requests may end when the worker stops


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


def run_drawer_process(settings: ServiceSettings) -> None:
    """Run the one process that opens data; what it writes is for its user alone."""
    os.umask(0o077)
    with _quietly(log_requests=False):
        from tacit.service.drawer import run_drawer

        admit_packages(settings.packages)
        run_drawer(settings)


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
        _LOG.error("process failed", extra=where)
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
