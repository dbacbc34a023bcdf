"""What happens before the processes start: files are made, and the operator learns what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.service._service import Service
from tacit.service.access import first_link

if TYPE_CHECKING:
    from tacit.service._settings import ServiceSettings

__all__ = ["prepare"]


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
        refusal = service.ledger.refusal
        return first_link(service), "" if refusal is None else refusal.what
    finally:
        service.close()
