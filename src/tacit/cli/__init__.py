"""The ``tacit`` command: one module for each sub-command, registered by importing it here."""

from __future__ import annotations

from tacit.cli import audit, demo, doctor, explain, lab
from tacit.cli.app import app, main

__all__ = ["app", "audit", "demo", "doctor", "explain", "lab", "main"]
