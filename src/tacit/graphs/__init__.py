"""Graphs: private answers about friendships, contacts and other connections."""

from __future__ import annotations

__all__: list[str] = []
