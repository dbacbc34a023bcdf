"""Maps: where people and places are, released as surfaces that give no single one away."""

from __future__ import annotations

__all__: list[str] = []
