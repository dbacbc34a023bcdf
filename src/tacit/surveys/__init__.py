"""Surveys: polls without a trusted collector; each respondent randomizes the answer on their own device."""

from tacit.calls import refuse_wrong_calls
from tacit.surveys._answering import REPORT_SCHEMA, SurveyReport
from tacit.surveys._declarations import DeclaredQuestion, question
from tacit.surveys._declare import survey
from tacit.surveys._forecasts import SurveyForecast
from tacit.surveys._heavy_hitters import HeavyHitters, HeavyRow, find_heavy
from tacit.surveys._memory import Memory, SequenceLoss
from tacit.surveys._norm_sub import norm_sub
from tacit.surveys._pooling import pool
from tacit.surveys._regression import Regression, fit_linear, fit_logistic
from tacit.surveys._reports import AnsweredQuestion, Reports
from tacit.surveys._results import CrossTable, DifferenceTable, MeanTable, ShareTable
from tacit.surveys._string_hashing import StringHashing
from tacit.surveys._survey import Survey, load
from tacit.surveys._survey_documents import SURVEY_SCHEMA
from tacit.surveys._survey_questions import SurveyQuestion
from tacit.surveys._waves import change, randomize_waves

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
