"""Inference: what releases say about the population, with noise and sampling together."""

from __future__ import annotations

from tacit.inference._association import fit, g_test, independence, rank_test
from tacit.inference._correlation import correlation
from tacit.inference._estimate import Estimate
from tacit.inference._examples import example_trial
from tacit.inference._logistic_question import LogisticQuestion
from tacit.inference._means import anova, difference, mean, proportion
from tacit.inference._power import PowerForecast, power
from tacit.inference._regress import rebuild_regress, regress
from tacit.inference._regression_question import LinearQuestion
from tacit.inference._regression_table import RegressionTable
from tacit.inference._survival_curves import SurvivalCurves
from tacit.inference._survival_question import SurvivalQuestion, rebuild_survival, survival
from tacit.inference._views import with_intervals
from tacit.tables import FormerQuestion

__all__ = [
    "REGRESS",
    "SURVIVAL",
    "Estimate",
    "LinearQuestion",
    "LogisticQuestion",
    "PowerForecast",
    "RegressionTable",
    "SurvivalCurves",
    "SurvivalQuestion",
    "anova",
    "correlation",
    "difference",
    "example_trial",
    "fit",
    "g_test",
    "independence",
    "mean",
    "power",
    "proportion",
    "rank_test",
    "regress",
    "survival",
    "with_intervals",
]

REGRESS = FormerQuestion("regress", regress, rebuild_regress)
SURVIVAL = FormerQuestion("survival", survival, rebuild_survival)
