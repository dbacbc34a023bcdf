"""Strategies: what to measure so that many questions are answered best. Public numbers only; no data."""

from tacit.strategies._dial import dial_coefficients, inverse_series, window_series
from tacit.strategies._factorisation import MOST_CELLS, Factorisation, factorise, whole_factor
from tacit.strategies._nonnegative import nonnegative_counts, whole_counts
from tacit.strategies._residuals import ColumnSet, ResidualSets, replace_cost, tables_up_to
from tacit.strategies._strategy import RangeStrategy, factored, tree_of_cells, trees_for
from tacit.strategies._trees import alike, consistent, level_shares, variances_of, weights_of, whole_down
from tacit.strategies._workloads import Workload

__all__ = [
    "MOST_CELLS",
    "ColumnSet",
    "Factorisation",
    "RangeStrategy",
    "ResidualSets",
    "Workload",
    "alike",
    "consistent",
    "dial_coefficients",
    "factored",
    "factorise",
    "inverse_series",
    "level_shares",
    "nonnegative_counts",
    "replace_cost",
    "tables_up_to",
    "tree_of_cells",
    "trees_for",
    "variances_of",
    "weights_of",
    "whole_counts",
    "whole_down",
    "whole_factor",
    "window_series",
]
