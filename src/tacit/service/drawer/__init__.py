"""Answers: queries that wait for public times, the drawer that has them drawn, and what was released."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.service.drawer._admission import check_work, lag_of
from tacit.service.drawer._asking import QueryBody
from tacit.service.drawer._came_in import came_in
from tacit.service.drawer._children import start_process, start_thread
from tacit.service.drawer._clock import Slot, WallClock, boundary_after, now, rung_after, use_clock
from tacit.service.drawer._drawer import Drawer, run_drawer
from tacit.service.drawer._queries import QUERY_OPERATIONS
from tacit.service.drawer._recovery import keep_stored
from tacit.service.drawer._release_documents import has_columns, release_words, shown_release
from tacit.service.drawer._releases import (
    RELEASE_OPERATIONS,
    csv_bytes,
    json_bytes,
    parquet_bytes,
    svg_bytes,
)

if TYPE_CHECKING:
    from tacit.service._operations import Operation

__all__ = [
    "OPERATIONS",
    "Drawer",
    "QueryBody",
    "Slot",
    "WallClock",
    "boundary_after",
    "came_in",
    "check_work",
    "csv_bytes",
    "has_columns",
    "json_bytes",
    "keep_stored",
    "lag_of",
    "now",
    "parquet_bytes",
    "release_words",
    "run_drawer",
    "rung_after",
    "shown_release",
    "start_process",
    "start_thread",
    "svg_bytes",
    "use_clock",
]

OPERATIONS: tuple[Operation, ...] = (*QUERY_OPERATIONS, *RELEASE_OPERATIONS)
