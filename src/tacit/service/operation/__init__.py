"""Running the service: its processes, probes, logs, metrics, limits and backups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.service.operation._backup import BackupReport, back_up, restore
from tacit.service.operation._counters import CounterNames
from tacit.service.operation._edge import Edge
from tacit.service.operation._examination import Finding, examine_service, start_notes
from tacit.service.operation._first_settings import SETTINGS_FILE, write_first_settings
from tacit.service.operation._logs import place_of_error, start_logging
from tacit.service.operation._preparation import prepare
from tacit.service.operation._probes import PROBES, beat, readiness
from tacit.service.operation._processes import run_drawer_process
from tacit.service.operation._rates import check_rate, note_effort
from tacit.service.operation._shared import SharedState
from tacit.service.operation._supervisor import Supervisor, open_socket

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
    "run_drawer_process",
    "start_logging",
    "start_notes",
    "write_first_settings",
]

OPERATIONS: tuple[Operation, ...] = PROBES
