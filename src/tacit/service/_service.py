"""The running service: its settings, its database, its ledger, and the datasets as web workers know them.

A dataset may be paused. Curators and auditors read why the runner stopped it, everybody else one sentence:
which cause it was depends on the data, and on how long and in how much memory an answer was computed.

A release may be registered by a curator: then it says who did so, when, and what the service knows of its
charge.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError
from tacit.ledger import Ledger
from tacit.service._database import Change, Database
from tacit.service._refusals import not_found
from tacit.service._times import new_id, now_text

if TYPE_CHECKING:
    from tacit.core import Dataset
    from tacit.service._settings import ServiceSettings


LATE: Final = (
    "An answer was not ready at its time, so this dataset has stopped taking questions. Raise the lag of its "
    "policy, or lower its width, and resume it. Each time this happens, analysts learn that one answer took "
    "longer than the lag."
)
FAILED: Final = (
    "An answer failed while it was computed, or was not ready when it had to be stored, so this dataset has "
    "stopped taking questions. Raise the lag of its policy, or ask the operator for more memory, and resume "
    "it. Each time this happens, analysts learn that one answer failed."
)
ENDED: Final = (
    "The process of this dataset ended while it computed an answer, perhaps for lack of memory, so the "
    "dataset has stopped taking questions. Ask the operator, then resume it."
)
UNOPENED: Final = (
    "The data could not be opened or prepared, so this dataset takes no questions. Ask the operator whether "
    "the source is there and fits into the memory that the service may take, then resume it."
)
_SHOWN = "The service has stopped questions to this dataset. Ask its curator."
_JOB_WAIT = 60.0  # seconds that a curator waits for the runner to read a schema


def pause_shown(paused: str, *, oversees: bool = False) -> str:
    """Return why a dataset is paused, as a person may read it; what a curator wrote is for everybody.

    Examples
    --------
    >>> pause_shown(LATE) == pause_shown(ENDED), pause_shown("We move."), pause_shown("")
    (True, 'We move.', '')
    """
    return _SHOWN if paused in {LATE, FAILED, ENDED, UNOPENED} and not oversees else paused


#: What the service says of the charge of a registered release.
CHARGE_WORDS: Final = {
    "bound": (
        "The charge is in the ledger of this service. The certificate agrees with it and was made for these "
        "values."
    ),
    "here": (
        "The charge is in the ledger of this service, and the certificate agrees with it. The values are "
        "those that the curator sent: they were not verified, because the certificate was not made for them."
    ),
    "elsewhere": "Charged in another ledger; not verified here.",
    "none": (
        "The answers were randomized on the respondents' devices: no ledger was charged, so nothing can be "
        "verified here."
    ),
}


def registration_of(database: Database | Change, release: str) -> dict[str, Any] | None:
    """Return who registered a release, and what is known of its charge; None if it was drawn here."""
    row = database.row(
        "SELECT r.person, r.charge, r.note, r.created, u.shown, u.erased FROM registrations r"
        " LEFT JOIN users u ON u.id = r.person WHERE r.release = ?",
        release,
    )
    if row is None:
        return None
    return {
        "by": row["person"],
        "by_name": "" if row["erased"] or row["shown"] is None else row["shown"],
        "at": row["created"],
        "charge": row["charge"],
        "verified": row["charge"] == "bound",
        "sentence": CHARGE_WORDS[row["charge"]],
        "note": row["note"],
    }


@dataclass(frozen=True, slots=True)
class OpenDataset:
    """A dataset as a web worker knows it: its policy and its public facts. The data is not there.

    Parameters
    ----------
    name, kind
        Its name, and the field that answers: ``table``, ``points`` ...
    number
        The number of its policy.
    policy
        What its curator declared.
    facts
        What the runner found to be public, from which `dataset` was opened.
    dataset
        Plans, but has no data.
    paused
        Why no questions are taken now; empty if they are.
    """

    name: str
    kind: str
    number: int
    policy: dict[str, Any]
    facts: dict[str, Any]
    dataset: Dataset
    paused: str


class Service:
    """What an operation needs; one for each process."""

    def __init__(self, settings: ServiceSettings) -> None:
        settings.folder.mkdir(parents=True, exist_ok=True)
        self.settings = settings
        self.database = Database.open(settings.database_place)
        self.ledger = Ledger.open(
            settings.ledger_place, key=settings.key_place or None, witness=settings.witness or None
        )
        self._opened: dict[tuple[str, int], OpenDataset] = {}

    def close(self) -> None:
        """Close the ledger and the database."""
        self.ledger.close()
        self.database.close()

    def dataset(self, name: str) -> OpenDataset:
        """Return a dataset with its current policy, or refuse as not found."""
        row = self.database.row("SELECT policy, paused FROM datasets WHERE name = ?", name)
        if row is None:
            raise not_found()
        dataset = self.dataset_under(name, int(row["policy"]))
        return dataset if dataset.paused == row["paused"] else replace(dataset, paused=row["paused"])

    def dataset_under(self, name: str, number: int) -> OpenDataset:
        """Return a dataset with one of its policies, which may have been replaced, or refuse as not found."""
        dataset = self._opened.get((name, number))
        if dataset is None:  # a policy never changes: a change is a policy of another number
            dataset = self._opened[name, number] = self._read(name, number)
        return dataset

    def _read(self, name: str, number: int) -> OpenDataset:
        row = self.database.row(
            "SELECT d.kind, d.paused, p.document, p.facts FROM datasets d"
            " JOIN policies p ON p.dataset = d.name WHERE d.name = ? AND p.number = ?",
            name, number,
        )  # fmt: skip
        if row is None:
            raise not_found()
        policy, facts = json.loads(row["document"]), json.loads(row["facts"])
        dataset = self._open(row["kind"], facts)
        return OpenDataset(name, row["kind"], number, policy, facts, dataset, row["paused"])

    def _open(self, kind: str, facts: dict[str, Any]) -> Dataset:
        from tacit.service._kinds import open_kind_facts

        return open_kind_facts(kind, facts, self.ledger)

    def record(self, change: Change, person: str, event: str, about: str, request: str) -> None:
        """Record in the audit events who did what; ``about`` holds ids only, no literals and no values."""
        change.run(
            "INSERT INTO events (position, at, person, what, about, request)"
            " SELECT COALESCE(MAX(position), 0) + 1, ?, ?, ?, ?, ? FROM events",
            now_text(), person, event, about, request,
        )  # fmt: skip

    def tell_runner(self, kind: str, document: dict[str, Any]) -> str:
        """Give the runner a job without waiting for it; return its number."""
        job = new_id("j")
        with self.database.change() as change:
            change.run(
                "INSERT INTO jobs (id, kind, document, state, created) VALUES (?, ?, ?, 'waiting', ?)",
                job, kind, json.dumps(document), now_text(),
            )  # fmt: skip
        return job

    async def ask_runner(self, kind: str, document: dict[str, Any]) -> dict[str, Any]:
        """Let the runner do something that needs the sources, and wait; its refusals come back as such.

        Parameters
        ----------
        kind
            ``describe`` (names and types of a listed source's columns) or ``open`` (a policy: check it, and
            make the dataset's snapshot).
        document
            What the job needs.
        """
        job = self.tell_runner(kind, document)
        end = time.monotonic() + _JOB_WAIT
        while time.monotonic() < end:
            row = self.database.row("SELECT state, result FROM jobs WHERE id = ?", job)
            if row is not None and row["state"] in {"done", "refused"}:
                result: dict[str, Any] = json.loads(row["result"])
                if row["state"] == "refused":
                    raise TacitError(result["code"], result["what"], why=result["why"], fix=result["fix"])
                return result
            await asyncio.sleep(0.05)
        raise TacitError(
            "drawer-away",
            "the process that reads the data does not answer",
            fix="try again, or ask the operator",
        )
