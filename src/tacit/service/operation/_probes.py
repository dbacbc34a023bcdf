"""What machines ask: does the process answer, is the service ready, and who am I."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError
from tacit.service._operations import ANYONE, SIGNED_IN, Answer, Operation, ServiceCall
from tacit.service._times import later_text, now_text
from tacit.service.operation._shared import shared_of

if TYPE_CHECKING:
    from tacit.ledger import Ledger
    from tacit.service._database import Database

#: Where the drawer notes that it is alive; and where this module tries whether the database takes a change.
_DRAWER: Final = "drawer_seen"
_WORKER: Final = "worker_seen"
_LATE = 15.0  # seconds without a sign of life after which the drawer is away
_KEPT = 1.0  # seconds for which a worker keeps what it found


def beat(database: Database, name: str = _DRAWER) -> None:
    """Note that a part of the service is alive, now."""
    with database.change() as change:
        change.run(
            "INSERT INTO facts (name, fact) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET fact = excluded.fact",
            name, now_text(),
        )  # fmt: skip


def readiness(database: Database, ledger: Ledger, *, stopping: bool = False) -> dict[str, str]:
    """Return for each part of the service ``ok``, or the code of what is wrong; nothing of the details.

    The parts are ``ledger`` (open, unsealed, in its place, and the witness has seen nothing that it lacks),
    ``database`` (takes a change), ``drawer`` (gave a sign of life) and ``service`` (is not stopping).
    """
    return {
        "service": "stopping" if stopping else "ok",
        "ledger": _ledger_state(ledger),
        "database": _database_state(database),
        "drawer": _drawer_state(database),
    }


def _ledger_state(ledger: Ledger) -> str:
    try:
        if ledger.sealed is not None:
            return "ledger-sealed"
        if ledger.missing is not None:
            return "ledger-rolled-back"
        refused = ledger.refusal
    except TacitError as refusal:
        return refusal.code
    except Exception:  # noqa: BLE001 - whatever it is, the ledger cannot be used
        return "ledger-unavailable"
    return "ok" if refused is None else refused.code


def _database_state(database: Database) -> str:
    try:
        beat(database, _WORKER)
    except Exception:  # noqa: BLE001 - a full disk, a lock, a server that went away
        return "not-writable"
    return "ok"


def _drawer_state(database: Database) -> str:
    try:
        row = database.row("SELECT fact FROM facts WHERE name = ?", _DRAWER)
        return "ok" if row is not None and row["fact"] > later_text(seconds=-_LATE) else "drawer-away"
    except Exception:  # noqa: BLE001 - then nobody knows
        return "drawer-away"


def _health(_: ServiceCall) -> dict[str, Any]:
    return {"health": "ok"}


def _ready(call: ServiceCall) -> Answer:
    shared, state = shared_of(call.request), call.request.app.state
    found: tuple[float, dict[str, str]] | None = getattr(state, "readiness", None)
    if found is None or time.monotonic() - found[0] > _KEPT:  # the probe is open to all, so it must be cheap
        found = time.monotonic(), readiness(call.service.database, call.service.ledger)
        state.readiness = found
    checks = found[1] | ({"service": "stopping"} if shared.stopping.is_set() else {})
    is_ready = all(value == "ok" for value in checks.values())
    return Answer({"ready": is_ready, "checks": checks}, 200 if is_ready else 503)


def _whoami(call: ServiceCall) -> dict[str, Any]:
    caller = call.person
    return {"id": caller.id, "name": caller.name, "roles": sorted(caller.roles)}


PROBES: Final = (
    Operation("GET", "/health", ANYONE, _health, summary="Whether the process answers."),
    Operation("GET", "/ready", ANYONE, _ready, summary="Whether the service can take questions."),
    Operation("GET", "/whoami", SIGNED_IN, _whoami, summary="Who the caller is, and with which roles."),
)
