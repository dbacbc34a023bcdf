"""Metrics as Prometheus reads them, on a listener of their own that only this machine reaches.

They hold requests by route and status, refusals by code, facts of the web processes, and readiness. They
hold no counts of data, people, questions or charges, and nothing of the drawer but whether it runs: the time
and the memory that a draw takes depend on the data.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tacit.service.operation._counters import CounterNames
    from tacit.service.operation._supervisor import Supervisor


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
    """Return time and memory of the web workers; not of the drawer, where they depend on the data."""
    found: dict[str, tuple[float, int]] = {}
    for name, (pid, _) in processes.items():
        if name != "drawer" and pid:
            with suppress(OSError, ValueError, IndexError):
                parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                seconds = (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
                found[name] = seconds, int(parts[21]) * os.sysconf("SC_PAGE_SIZE")
    yield "# TYPE tacit_process_cpu_seconds_total counter"
    for name, (seconds, _) in found.items():
        yield f'tacit_process_cpu_seconds_total{{process="{name}"}} {seconds:.2f}'
    yield "# TYPE tacit_process_resident_bytes gauge"
    for name, (_, size) in found.items():
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
