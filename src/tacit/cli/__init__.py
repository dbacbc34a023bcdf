"""The ``tacit`` command line: each module adds its commands to the app when it is imported here.

In reading order: `_app` (global options, errors), `_context`, `_options`, `_output`, `_fixes`, `_ledger`
(what commands share); `_declaration`, `_init`, `_plan`, `_query`, `_ask`, `_budget`, `_budget_changes`
(tables); `_field_command`, `_fields`, `_stream`, `_survey`, `_synth` (fields); `_explain`, `_attacks`,
`_demo`, `_doctor`, `_serve`.
"""

from __future__ import annotations

from tacit.cli import (  # noqa: F401 - each registers its commands
    _attacks,
    _budget,
    _budget_changes,
    _demo,
    _doctor,
    _explain,
    _field_command,
    _fields,
    _init,
    _plan,
    _query,
    _serve,
    _stream,
    _survey,
    _synth,
)
from tacit.cli._app import app, main

__all__ = ["app", "main"]
