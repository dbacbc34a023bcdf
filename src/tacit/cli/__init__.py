"""The ``tacit`` command."""

from __future__ import annotations

from tacit.cli.app import main

__all__ = ["main"]
