"""Attacks on ourselves: empirical lower bounds on epsilon, and the largest change between neighbours."""

from __future__ import annotations

from tacit.audit._result import AuditResult, Witness
from tacit.audit.empirical import audit
from tacit.audit.pairs import neighbouring_rows
from tacit.audit.search import NeighbourResult, neighbours

__all__ = ["AuditResult", "NeighbourResult", "Witness", "audit", "neighbouring_rows", "neighbours"]
