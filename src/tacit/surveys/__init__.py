"""Surveys: polls without a trusted collector; each respondent randomizes the answer on their own device.

In reading order: `_survey_questions`, `_survey` (declare one), `_forecasts` (what it will be able to say),
`_form` (the questionnaire), `_answering` (at the respondent), `_true_answers` (many at once, to try a
survey), `_collection` and `_reports` (at the collector), `_estimates`, `_results`, `_regression`,
`_heavy_hitters`, `_pooling`.
"""

from tacit.calls import refuse_wrong_calls
from tacit.surveys._answering import REPORT_SCHEMA, Memory, SequenceLoss, SurveyReport
from tacit.surveys._estimates import norm_sub
from tacit.surveys._forecasts import SurveyForecast
from tacit.surveys._heavy_hitters import HeavyHitters, HeavyRow, StringHashing, find_heavy
from tacit.surveys._pooling import change, pool, randomize_waves
from tacit.surveys._regression import Regression, fit_linear, fit_logistic
from tacit.surveys._reports import AnsweredQuestion, Reports
from tacit.surveys._results import CrossTable, DifferenceTable, MeanTable, ShareTable
from tacit.surveys._survey import SURVEY_SCHEMA, Survey, load, survey
from tacit.surveys._survey_questions import DeclaredQuestion, SurveyQuestion, question

__all__ = [
    "REPORT_SCHEMA",
    "SURVEY_SCHEMA",
    "AnsweredQuestion",
    "CrossTable",
    "DeclaredQuestion",
    "DifferenceTable",
    "HeavyHitters",
    "HeavyRow",
    "MeanTable",
    "Memory",
    "Regression",
    "Reports",
    "SequenceLoss",
    "ShareTable",
    "StringHashing",
    "Survey",
    "SurveyForecast",
    "SurveyQuestion",
    "SurveyReport",
    "change",
    "find_heavy",
    "fit_linear",
    "fit_logistic",
    "load",
    "norm_sub",
    "pool",
    "question",
    "randomize_waves",
    "survey",
]

refuse_wrong_calls(__name__, __all__)
