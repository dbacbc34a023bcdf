"""Inference: what releases say about the population, with noise and sampling together."""

from typing import TYPE_CHECKING, Any

from tacit.inference._correlation import correlation
from tacit.inference._estimate import Estimate
from tacit.inference._logistic_question import LogisticQuestion
from tacit.inference._regress import rebuild_regress, regress
from tacit.inference._regression_question import LinearQuestion
from tacit.inference._regression_table import RegressionTable
from tacit.inference._survival_curves import SurvivalCurves
from tacit.inference._survival_question import SurvivalQuestion, rebuild_survival, survival

if TYPE_CHECKING:
    from tacit.core import Plan
    from tacit.tables import TableDataset

__all__ = [
    "Estimate",
    "LinearQuestion",
    "LogisticQuestion",
    "RegressionTable",
    "SurvivalCurves",
    "SurvivalQuestion",
    "correlation",
    "rebuild",
    "regress",
    "survival",
]


_REBUILT: dict[str, Any] = {"regress": rebuild_regress, "survival": rebuild_survival}


def rebuild(dataset: "TableDataset", request: Any) -> "Plan[Any]":
    """Rebuild a plan from its document."""
    plan: Plan[Any] = _REBUILT[request["asks"]](dataset, request)
    return plan
