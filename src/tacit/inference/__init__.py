"""Inference: what releases say about the population, with noise and sampling together.

In reading order: `_measurements` (the noisy integers of a release), `_sampling_intervals`, `_estimate` (an
answer), `_means` and `_mean_tests`, `_contingency` and `_association` (tests of tables), `_questions`
(regressions and survival as questions, designs of regressions), `_measured_rows`, `_linear_regression`,
`_logistic_regression`, `_regression_table`, `_survival`, `_power` (before spending),
`_views`, `_examples`.
"""

from __future__ import annotations

from tacit.calls import refuse_wrong_calls
from tacit.inference._association import correlation, fit, g_test, independence, rank_test
from tacit.inference._estimate import Estimate
from tacit.inference._examples import example_trial
from tacit.inference._means import anova, difference, mean, proportion
from tacit.inference._power import PowerForecast, power
from tacit.inference._questions import REGRESS, SURVIVAL, regress, survival
from tacit.inference._regression_table import RegressionTable
from tacit.inference._survival import SurvivalCurves
from tacit.inference._views import with_intervals

__all__ = [
    "REGRESS",
    "SURVIVAL",
    "Estimate",
    "PowerForecast",
    "RegressionTable",
    "SurvivalCurves",
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

refuse_wrong_calls(__name__, __all__)
