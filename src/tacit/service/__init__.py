"""The service: a boundary between analysts and rows. Curators decide, analysts ask, auditors check.

The package needs the extra ``service``. ``tacit serve`` runs it. In reading order:

- `_settings`: what an operator decides
- `_service`: the running service and its datasets
- `_operations`: what can be done, by which rule
- `_bodies`: what is read from a request
- `_refusals`: what is refused, and in which words
- `_rendering`: pages, and what they show of a release
- `_kinds`: the kinds of datasets and their questions
- `_database`, `_times`: where the service remembers, and how it writes times and names
- `_app`: the application that serves all operations
- `access`, `curation`, `plans`, `runner`, `pages`, `operation`: the areas, each with its operations
"""

from __future__ import annotations

from tacit.calls import refuse_wrong_calls
from tacit.service._app import create_app
from tacit.service._settings import ListedSource, ServiceSettings

__all__ = ["ListedSource", "ServiceSettings", "create_app"]

refuse_wrong_calls(__name__, __all__)
