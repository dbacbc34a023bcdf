"""What a cost means, in odds, bits and pictures, and which epsilon an answer needs; from public facts alone.

The room is also its main function: ``tc.explain(cost)`` is ``tc.explain.explain(cost)``, while
``tc.explain.tradeoff``
and the others stay names of the room. (`import tacit.explain` binds the module to ``tacit.explain``, so a
function of that name could not survive; a callable module can.)

Examples
--------
>>> import tacit as tc
>>> tc.explain(tc.Cost.pure(0.5)).sentence
'An attacker who gave 50:50 that you are in the data can reach at most 62:38 (62.3 %).'
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from tacit.explain.deployments import DEPLOYMENTS, Deployment
from tacit.explain.economy import Purchase, Spending, what_a_budget_buys
from tacit.explain.explanation import Explanation, Family, Limit
from tacit.explain.figures import RateDistortion, RatePoint, SmallCrowd, rate_distortion, small_crowd
from tacit.explain.meaning import Priced, explain
from tacit.explain.odds import Belief, believe
from tacit.explain.question import Question
from tacit.explain.tradeoff import Tradeoff, tradeoff

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DEPLOYMENTS",
    "Belief",
    "Deployment",
    "Explanation",
    "Family",
    "Limit",
    "Priced",
    "Purchase",
    "Question",
    "RateDistortion",
    "RatePoint",
    "SmallCrowd",
    "Spending",
    "Tradeoff",
    "believe",
    "explain",
    "rate_distortion",
    "small_crowd",
    "tradeoff",
    "what_a_budget_buys",
]


class _Room(ModuleType):
    """A module that can be called: `explain`."""

    __call__: Callable[..., Explanation] = staticmethod(explain)


sys.modules[__name__].__class__ = _Room
