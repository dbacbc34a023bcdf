"""Answers: queries that wait for public times, the runner that has them drawn, and what was released.

In reading order:

- `_clock`: public times, and the ledger that keeps to them
- `_admission`: how much work a boundary admits
- `_arrivals`: the days of a stream that have arrived
- `_queries`: asking, and the states and the history of what was asked
- `_release_documents`: what was released, as it is kept and shown
- `_releases`: reading, downloading and listing releases
- `_dataset_process`: the process that alone opens the data
- `_outcomes`: what becomes of a draw, also after a crash
- `_runner`: the process that admits queries and keeps time
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.service.runner._admission import check_work, lag_of
from tacit.service.runner._arrivals import last_arrived_day
from tacit.service.runner._clock import Slot, WallClock, boundary_after, now, rung_after, use_clock
from tacit.service.runner._dataset_process import start_process, start_thread
from tacit.service.runner._outcomes import keep_stored
from tacit.service.runner._queries import QUERY_OPERATIONS, QueryBody
from tacit.service.runner._release_documents import has_columns, release_words, shown_release
from tacit.service.runner._releases import (
    RELEASE_OPERATIONS,
    csv_bytes,
    json_bytes,
    parquet_bytes,
    svg_bytes,
)
from tacit.service.runner._runner import Runner, serve_runner

if TYPE_CHECKING:
    from tacit.service._operations import Operation

__all__ = [
    "OPERATIONS",
    "QueryBody",
    "Runner",
    "Slot",
    "WallClock",
    "boundary_after",
    "check_work",
    "csv_bytes",
    "has_columns",
    "json_bytes",
    "keep_stored",
    "lag_of",
    "last_arrived_day",
    "now",
    "parquet_bytes",
    "release_words",
    "rung_after",
    "serve_runner",
    "shown_release",
    "start_process",
    "start_thread",
    "svg_bytes",
    "use_clock",
]

OPERATIONS: tuple[Operation, ...] = (*QUERY_OPERATIONS, *RELEASE_OPERATIONS)
