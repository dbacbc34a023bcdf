"""Running the service: its processes, probes, logs, metrics, limits and backups.

In reading order:

- `_preparation`: the first settings, and the examination before a start
- `_supervisor`: the processes, started, watched and stopped
- `_shared`: what they share: counts and rates
- `_edge`: what every request passes, and logs
- `_connections`: limits of a web worker's connections
- `_metrics`: probes and metrics
- `_backup`: backup and restore
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.service.operation._backup import BackupReport, back_up, restore
from tacit.service.operation._edge import Edge, place_of_error, start_logging
from tacit.service.operation._metrics import PROBES, beat, readiness
from tacit.service.operation._preparation import (
    SETTINGS_FILE,
    Finding,
    examine_service,
    prepare,
    start_notes,
    write_first_settings,
)
from tacit.service.operation._shared import CounterNames, SharedState, check_rate, note_effort
from tacit.service.operation._supervisor import Supervisor, open_socket, serve_runner_process

if TYPE_CHECKING:
    from tacit.service._operations import Operation

__all__ = [
    "OPERATIONS",
    "SETTINGS_FILE",
    "BackupReport",
    "CounterNames",
    "Edge",
    "Finding",
    "SharedState",
    "Supervisor",
    "back_up",
    "beat",
    "check_rate",
    "examine_service",
    "note_effort",
    "open_socket",
    "place_of_error",
    "prepare",
    "readiness",
    "restore",
    "serve_runner_process",
    "start_logging",
    "start_notes",
    "write_first_settings",
]

OPERATIONS: tuple[Operation, ...] = PROBES
