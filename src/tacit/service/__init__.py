"""The service: a boundary between analysts and rows. Curators decide, analysts ask, auditors check.

The package needs the extra ``service``. ``tacit serve`` runs it.
"""

from __future__ import annotations

from tacit.service._app import create_app
from tacit.service._settings import ListedSource, ServiceSettings

__all__ = ["ListedSource", "ServiceSettings", "create_app"]
