"""Explain a cost, from public facts only: in odds, bits and pictures, and which epsilon an answer needs.

The package is also its main function: ``tc.explain(cost)`` is ``tc.explain.explain(cost)``, and
``tc.explain.tradeoff`` and the other names stay available. (``import tacit.explain`` binds the module to the
name ``tacit.explain``, so a function of that name would be overwritten; a module that can be called is not.)

In reading order: `_explanation` (`explain`, its result, the interactive page), `_question` (what is asked, in
public facts), `_odds` (what an attacker can believe), `_tradeoff` (error against epsilon), `_deployments`
(well-known ones), `_figures` (pictures).

Examples
--------
>>> import tacit as tc
>>> tc.explain(tc.Cost.pure(0.5)).sentence
'An attacker who gave 50:50 odds that you are in the data can reach at most 62:38 (62.3 %).'
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from tacit.calls import refuse_wrong_calls
from tacit.explain._deployments import DEPLOYMENTS, Deployment
from tacit.explain._explanation import Explanation, FamilyReading, OddsLimit, Priced, explain
from tacit.explain._figures import (
    audit_curves,
    beacon_powers,
    friendship_curves,
    genome_powers,
    membership_curve,
    recovered_pictures,
    repeated_questions,
    sharpened_maps,
    success_curve,
    unique_people,
    update_areas,
)
from tacit.explain._odds import Belief, believe
from tacit.explain._question import ExplainedQuestion
from tacit.explain._tradeoff import (
    Purchase,
    RateDistortion,
    RatePoint,
    SmallCrowd,
    Spending,
    Tradeoff,
    rate_distortion,
    small_crowd,
    tradeoff,
    what_a_budget_buys,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DEPLOYMENTS",
    "Belief",
    "Deployment",
    "ExplainedQuestion",
    "Explanation",
    "FamilyReading",
    "OddsLimit",
    "Priced",
    "Purchase",
    "RateDistortion",
    "RatePoint",
    "SmallCrowd",
    "Spending",
    "Tradeoff",
    "audit_curves",
    "beacon_powers",
    "believe",
    "explain",
    "friendship_curves",
    "genome_powers",
    "membership_curve",
    "rate_distortion",
    "recovered_pictures",
    "repeated_questions",
    "sharpened_maps",
    "small_crowd",
    "success_curve",
    "tradeoff",
    "unique_people",
    "update_areas",
    "what_a_budget_buys",
]


class _CallableModule(ModuleType):
    """A module that can be called; the call is `explain`."""

    __call__: Callable[..., Explanation] = staticmethod(explain)


refuse_wrong_calls(__name__, __all__)
sys.modules[__name__].__class__ = _CallableModule
