"""Strategies: what to measure so that many questions are answered best. Public numbers only; no data."""

from tacit.strategies._dial import dial_coefficients, inverse_series, window_series
from tacit.strategies._nonnegative import nonnegative_counts, whole_counts
from tacit.strategies._residuals import ColumnSet, ResidualSets, replace_cost, tables_up_to

__all__ = [
    "ColumnSet",
    "ResidualSets",
    "dial_coefficients",
    "inverse_series",
    "nonnegative_counts",
    "replace_cost",
    "tables_up_to",
    "whole_counts",
    "window_series",
]
