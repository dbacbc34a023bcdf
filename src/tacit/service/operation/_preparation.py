"""What happens before the processes start: files are made, and the operator learns what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.service._service import Service
from tacit.service.access import first_link

if TYPE_CHECKING:
    from tacit.service._settings import ServiceSettings


def prepare(settings: ServiceSettings) -> tuple[str, str]:
    """Open the service once: its files are made and brought to their newest form, or a refusal says why not.

    Returns
    -------
    tuple
        The one-time link of the first administrator, empty if there is one; and what makes the ledger
        read-only, empty if nothing does.
    """
    service = Service(settings)
    try:
        _check_accounts(service)
        refusal = service.ledger.refusal
        return first_link(service), "" if refusal is None else refusal.what
    finally:
        service.close()


def _check_accounts(service: Service) -> None:
    """Refuse a ledger that lacks the accounts of datasets: another one has taken its place, or a new one."""
    if service.ledger.refusal is not None:
        return
    missing = []
    for row in service.database.rows("SELECT name FROM datasets ORDER BY name"):
        try:
            service.ledger.account(row["name"])
        except TacitError as refusal:
            if refusal.code != "unknown-account":
                raise
            missing.append(row["name"])
    if missing:
        raise TacitError(
            "ledger-rolled-back",
            f"the ledger does not know the dataset {missing[0]!r}, which the service's database knows"
            + (f", and {len(missing) - 1} more" if missing[1:] else ""),
            why="another ledger has taken its place, or a new one was made because its file was missing; "
            "what was spent would be forgotten",
            fix="put the ledger, its key and its artifacts back from a backup",
        )
