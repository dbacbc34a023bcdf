"""The ``tacit`` command line: one module for each sub-command, registered by importing it here."""

from __future__ import annotations

from tacit.cli import (  # noqa: F401 - each registers its command
    _ask,
    _audit,
    _budget,
    _budget_changes,
    _budget_plan,
    _budget_restrictions,
    _burn_down,
    _convert,
    _demo,
    _doctor,
    _explain,
    _genome,
    _genome_association,
    _graph,
    _history,
    _init,
    _lab,
    _limits,
    _map,
    _mcp,
    _plan,
    _query,
    _serve,
    _stream,
    _survey,
    _synth,
    _verify,
)
from tacit.cli._app import app, main

__all__ = ["app", "main"]
