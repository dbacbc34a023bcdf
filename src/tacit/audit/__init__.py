"""Audits, our attacks on ourselves: lower bounds on epsilon, and the largest change between neighbours."""

from __future__ import annotations

from tacit.audit._audit import audit
from tacit.audit._neighbour_pairs import neighbouring_rows
from tacit.audit._neighbour_search import NeighbourResult, neighbours
from tacit.audit._result import AuditResult, EventWitness

__all__ = ["AuditResult", "EventWitness", "NeighbourResult", "audit", "neighbouring_rows", "neighbours"]
