"""A service with a runner that serves the jobs of curation, and invented people of every role."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tacit as tc
from tacit.errors import TacitError
from tacit.service._kinds import facts_of_kind, open_kind
from tacit.service.curation import protect_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

DECLARED = {
    "name": "visits",
    "source": "visits",
    "unit": "patient_id",
    "bounds": {"age": ["0", "120"], "length_of_stay": ["0", "30"]},
    "keys": {"hospital": ["North", "South"]},
    "limits": {"rows": 5},
    "budget": {"epsilon": "3"},
    "title": "Hospital visits",
    "about": "Visits of one year.",
}


def _kind(fact: dict[str, Any]) -> str:
    return {"moment": "date"}.get(fact.get("stored", ""), fact.get("stored", ""))


def serve(service: Any, kind: str, document: dict[str, Any]) -> dict[str, Any]:
    """Do what the runner does for one job, with the real `protect`."""
    if kind == "describe":
        place = service.settings.sources[document["source"]].place
        facts = tc.protect(place, unit=tc.Unit.row(), budget=tc.Budget(epsilon=1), name="x").public_facts()
        return {
            "tables": {
                table["name"]: [
                    {"name": c, "kind": _kind(table["facts"].get(c, {}))} for c in table["columns"]
                ]
                for table in facts["tables"]
            }
        }
    place = service.settings.sources[document["policy"]["source"]].place
    kind, policy = document["policy"]["kind"], document["policy"]
    if kind != "table":
        open_kind(kind, place, document["dataset"], policy, service.ledger)
        return facts_of_kind(kind, document["dataset"], policy)
    arguments = protect_arguments(policy)
    if not Path(place).exists():
        raise TacitError("bad-parameter", "the source does not exist")
    return tc.protect(place, name=document["dataset"], ledger=tc.Ledger.memory(), **arguments).public_facts()


class StandIn(threading.Thread):
    """The jobs of the runner, in a thread."""

    def __init__(self, service: Any) -> None:
        super().__init__(daemon=True)
        self.service, self.stopped = service, threading.Event()
        self.before: Any = None  # a test may do something while a job runs

    def run(self) -> None:
        database = self.service.database
        while not self.stopped.wait(0.005):
            for job in database.rows("SELECT * FROM jobs WHERE state = 'waiting'"):
                if self.before is not None:
                    self.before()
                try:
                    state, result = "done", serve(self.service, job["kind"], json.loads(job["document"]))
                except TacitError as refusal:
                    state = "refused"
                    result = {
                        "code": refusal.code, "what": refusal.what, "why": refusal.why,
                        "fix": str(refusal.fix),
                    }  # fmt: skip
                with database.change() as change:
                    change.run(
                        "UPDATE jobs SET state = ?, result = ? WHERE id = ?",
                        state,
                        json.dumps(result),
                        job["id"],
                    )


@pytest.fixture
def runner(house: Any) -> Iterator[StandIn]:
    found = StandIn(house.service)
    found.start()
    yield found
    found.stopped.set()
    found.join()


@pytest.fixture
def people(house: Any, runner: StandIn) -> dict[str, str]:
    """Tokens of a person for each role; ``cora`` declares datasets and owns them."""
    house.person("cora", everywhere="curator")
    house.person("carl", visits="curator")
    house.person("olga", visits="owner")
    house.person("ana", visits="analyst")
    house.person("ben", visits="analyst")
    house.person("otto", visits="auditor")
    house.person("ada", everywhere="admin")
    house.person("eve")
    return {name: house.token(name) for name in house.people}


@pytest.fixture
def visits(house: Any, people: dict[str, str]) -> dict[str, str]:
    """The dataset visits, declared through the API; returns the tokens."""
    answer = house.call("POST", "/api/v1/datasets", people["cora"], json=DECLARED)
    assert answer.status_code == 201, answer.text
    return people
