"""What becomes of a draw: its outcome is written before its answer leaves, and a late one fails.

After a crash, what the ledger knows of a query decides what becomes of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.errors import TacitError
from tacit.service._kinds import day_asked
from tacit.service._refusals import problem_of
from tacit.service._service import ENDED, FAILED, LATE
from tacit.service._times import moment_text, new_id, now_text
from tacit.service.plans import plan_of
from tacit.service.runner._release_documents import document_of

if TYPE_CHECKING:
    from tacit.service._database import Change, ServiceRow
    from tacit.service._service import Service
    from tacit.service.runner._clock import Slot
    from tacit.service.runner._dataset_process import DatasetChild, DrawOutcome


def settle(service: Service, row: ServiceRow, *, lost: str) -> str:
    """Settle a query that was running when its process ended; return its new state.

    Guarantee: a query whose answer is stored is finished. One whose charge is in the ledger without an answer
    is ``lost`` (``spent`` or ``failed``): it is never drawn again. One that was never charged waits again.
    A draw of days waits again too if the runner ended: the next draw has its days, and what was drawn and not
    stored is never drawn again; under a new policy that makes it another plan, it is ``lost``. If the process
    of the data ended, it has failed, and the dataset pauses.

    Parameters
    ----------
    service
        The service.
    row
        The query.
    lost
        What a charge without an answer becomes.
    """
    document = stored_document(service, row)
    charged = _is_lost(service, row, lost)
    state = "finished" if document is not None else lost if charged else "waiting"
    release = new_id("r") if state == "finished" else ""
    code = {"failed": "release-failed", "spent": "spent"}.get(state, "")
    with service.database.change() as change:
        if state == "waiting":
            updated = change.run(
                "UPDATE queries SET state = 'waiting', admitted = NULL, answer_at = NULL"
                " WHERE id = ? AND state = 'running'",
                row["id"],
            )
        else:
            updated = change.run(
                "UPDATE queries SET state = ?, code = ?, release = ? WHERE id = ? AND state = 'running'",
                state, code, release, row["id"],
            )  # fmt: skip
        if updated and release and document is not None:
            keep_release(change, row["id"], release, document, float(row["answer_at"]))
    return state


def _is_lost(service: Service, row: ServiceRow, lost: str) -> bool:
    """Whether a query that has no stored answer was charged for nothing."""
    if not day_asked(json.loads(row["ask"])):
        return _is_charged(service, row)
    if lost != "failed":
        return _is_charged(service, row) and not _can_go_on(service, row)
    version = service.dataset_under(row["dataset"], int(row["policy"])).dataset.version
    return service.ledger.paid_run(row["account"], row["plan"], version=version) is not None


def _is_charged(service: Service, row: ServiceRow) -> bool:
    return service.ledger.keyed_receipt(row["account"], f"q:{row['id']}") is not None


def _can_go_on(service: Service, row: ServiceRow) -> bool:
    """Whether the policy of today draws from the series that was charged."""
    try:
        plan = plan_of(service.dataset(row["dataset"]).dataset, json.loads(row["ask"]))
    except TacitError:
        return False
    return bool(plan.hash == row["plan"])


def stored_document(service: Service, row: ServiceRow) -> dict[str, Any] | None:
    """Return the stored answer of a query if its account has paid for it, without the data.

    A policy that came later may not allow the question, or may make it another plan; what was paid for stays
    paid. So the question is planned under the policy under which it was asked.
    """
    from tacit.streams import stored_days

    ask = json.loads(row["ask"])
    try:
        dataset: Any = service.dataset_under(row["dataset"], int(row["policy"])).dataset
        plan = plan_of(dataset, ask)
    except TacitError:
        return None
    if plan.hash != row["plan"]:
        return None
    if plan.instalments is None:
        release = plan.stored(account=row["account"])
    else:
        release = stored_days(dataset, plan, day_asked(ask), account=row["account"])
    return None if release is None else document_of(release)


def keep_release(
    change: Change, query: str, release: str, document: dict[str, Any], shown_from: float
) -> None:
    """Keep the release of a query; nobody is shown it before its time."""
    row = change.row("SELECT dataset, person, account, plan FROM queries WHERE id = ?", query)
    if row is not None:
        columns = (row["dataset"], row["person"], row["account"], row["plan"])
        keep_stored(change, release, *columns, document, shown_from, query)


def keep_stored(
    change: Change,
    release: str,
    dataset: str,
    person: str,
    account: str,
    plan: str,
    document: dict[str, Any],
    shown_from: float,
    query: str = "",
) -> None:
    """Keep a release that an account has paid for; it is as old as its time, not as this row.

    When a row is written depends on what else the processes compute.
    """
    change.run(
        "INSERT INTO releases"
        " (id, query, dataset, person, account, plan, document, created, shown_from, position)"
        " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, COALESCE(MAX(position), 0) + 1 FROM releases",
        release, query, dataset, person, account, plan, json.dumps(document, ensure_ascii=False),
        moment_text(shown_from), shown_from,
    )  # fmt: skip


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

    def write(self, flights: list[tuple[Flight, DrawOutcome]]) -> list[str]:
        """Write outcomes in one transaction; return the queries whose outcome was in time."""
        if not flights:
            return []
        done = []
        with self._service.database.change() as change:
            for flight, outcome in flights:
                release = new_id("r") if outcome.state == "finished" else ""
                problem = "" if release or not outcome.document else json.dumps(outcome.document)
                updated = change.run(
                    "UPDATE queries SET state = ?, code = ?, problem = ?, release = ?"
                    " WHERE id = ? AND state = 'running'",
                    outcome.state, outcome.code, problem, release, flight.query,
                )  # fmt: skip
                if updated and release:
                    keep_release(change, flight.query, release, outcome.document, flight.slot.answer_at)
                if updated:
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
