"""Audits, which attack Tacit itself: lower bounds on epsilon, and the largest change between neighbours.

The package is also its main function: ``tc.audit(plan)`` attacks a whole plan, ``tc.audit(mechanism)`` a
mechanism. (``import tacit.audit`` binds the module to the name, so a function of that name would be
overwritten; a module that can be called is not.)

In reading order: `_audit` (black-box audits and their result), `_outputs` (samples, scores, events),
`_neighbours` (pairs and the search), `_plan_audit` (whole plans), `_model_audits` (one run with canaries,
reports on trained models); `lab` has attacks on what others publish.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tacit.audit._audit import AuditResult, EventWitness, audit
from tacit.audit._model_audits import (
    MembershipReport,
    OneRunAudit,
    audit_training,
    draw_canaries,
    membership,
    one_run,
)
from tacit.audit._neighbours import NeighbourResult, neighbouring_rows, neighbours
from tacit.audit._plan_audit import PlanAudit, audit_plan
from tacit.calls import refuse_wrong_calls

__all__ = [
    "AuditResult",
    "EventWitness",
    "MembershipReport",
    "NeighbourResult",
    "OneRunAudit",
    "PlanAudit",
    "audit",
    "audit_plan",
    "audit_training",
    "draw_canaries",
    "membership",
    "neighbouring_rows",
    "neighbours",
    "one_run",
]


class _AuditModule(ModuleType):
    """A module that can be called: with a plan it is `audit_plan`, with anything else `audit`."""

    def __call__(self, target: object, *inputs: object, **options: Any) -> AuditResult | PlanAudit:
        from tacit.core import Plan

        if isinstance(target, Plan):
            return audit_plan(target, *inputs, **options)
        return audit(target, *inputs, **options)


refuse_wrong_calls(__name__, __all__)
sys.modules[__name__].__class__ = _AuditModule
