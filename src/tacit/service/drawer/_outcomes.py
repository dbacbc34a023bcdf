"""What becomes of a draw: its outcome is written before its answer leaves, and a late one fails."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.service._pauses import ENDED, FAILED, LATE
from tacit.service._problems import problem_of
from tacit.service._times import new_id, now_text
from tacit.service.drawer._recovery import keep_release, settle

if TYPE_CHECKING:
    from tacit.errors import TacitError
    from tacit.service._service import Service
    from tacit.service.drawer._children import DatasetChild
    from tacit.service.drawer._clock import Slot
    from tacit.service.drawer._dataset_process import DrawOutcome


@dataclass(slots=True, eq=False)
class Flight:
    """A draw between its boundary and the time of its answer; it holds a slot of its dataset."""

    query: str
    dataset: str
    plan: str
    person: str
    work: float
    slot: Slot
    child: DatasetChild
    written: bool = False
    failed: bool = False


class Outcomes:
    """Writes how draws ended into the service's database."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def write(self, listed: list[tuple[Flight, DrawOutcome]]) -> list[str]:
        """Write outcomes in one transaction; return the queries whose outcome was in time."""
        if not listed:
            return []
        done = []
        with self._service.database.change() as change:
            for flight, outcome in listed:
                release = new_id("r") if outcome.state == "finished" else ""
                problem = "" if release or not outcome.document else json.dumps(outcome.document)
                moved = change.run(
                    "UPDATE queries SET state = ?, code = ?, problem = ?, release = ?"
                    " WHERE id = ? AND state = 'running'",
                    outcome.state, outcome.code, problem, release, flight.query,
                )  # fmt: skip
                if moved and release:
                    keep_release(change, flight.query, release, outcome.document, flight.slot.answer_at)
                if moved:
                    done.append(flight.query)
                    flight.failed = outcome.state == "failed"
        return done

    def refuse(self, query: str, refusal: TacitError) -> None:
        """Refuse a query that waits; nothing is drawn and nothing charged for it."""
        with self._service.database.change() as change:
            change.run(
                "UPDATE queries SET state = 'refused', code = ?, problem = ?"
                " WHERE id = ? AND state = 'waiting'",
                refusal.code, json.dumps(problem_of(refusal, "")), query,
            )  # fmt: skip

    def end(self, flight: Flight) -> None:
        """End a draw whose answer leaves now; a failure after the charge pauses its dataset.

        What failed may have failed for the data: one more row, one more second, one more byte. If questions
        were taken again at once, analysts would learn one such bit for each of them.
        """
        if not flight.written:
            self.overrun(flight)
        elif flight.failed:
            self.pause(flight.dataset, FAILED)

    def overrun(self, flight: Flight) -> None:
        """End a draw that has no outcome at its time.

        A process that is late is killed, its answer fails, and its dataset pauses. If the process ended by
        itself, the ledger says what was charged; what was not waits again.
        """
        late = flight.child.state != "dead"
        if late:
            flight.child.kill()
            self._fail(flight.query)
            self.pause(flight.dataset, LATE)
            return
        row = self._service.database.row("SELECT * FROM queries WHERE id = ?", flight.query)
        if row is not None and settle(self._service, row, lost="failed") == "failed":
            self.pause(flight.dataset, ENDED)

    def _fail(self, query: str) -> None:
        with self._service.database.change() as change:
            change.run(
                "UPDATE queries SET state = 'failed', code = 'release-failed'"
                " WHERE id = ? AND state = 'running'",
                query,
            )

    def pause(self, dataset: str, why: str) -> None:
        """Let a dataset take no questions until its curator acts; the reason is for curators."""
        with self._service.database.change() as change:
            if change.run("UPDATE datasets SET paused = ? WHERE name = ? AND paused = ''", why, dataset):
                self._service.record(change, "", "dataset-paused", f"{dataset} {now_text()}", "")
