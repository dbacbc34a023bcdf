"""The ``tacit`` command: one module for each sub-command, registered by importing it here."""

from __future__ import annotations

from tacit.cli import acts, audit, budget, demo, doctor, explain, init, lab, plan, query, verify
from tacit.cli.app import app, main

__all__ = [
    "acts",
    "app",
    "audit",
    "budget",
    "demo",
    "doctor",
    "explain",
    "init",
    "lab",
    "main",
    "plan",
    "query",
    "verify",
]
