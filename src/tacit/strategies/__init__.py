"""Strategies: what to measure so that many questions are answered best. Public numbers only; no data."""

from tacit.strategies._dial import dial_coefficients, inverse_series, window_series
from tacit.strategies._factorisation import MOST_CELLS, Factorisation, factorise, whole_factor
from tacit.strategies._strategy import RangeStrategy, factored, tree_of_cells, trees_for
from tacit.strategies._trees import (
    alike,
    consistent,
    level_shares,
    nonnegative_counts,
    variances_of,
    weights_of,
    whole_down,
)
from tacit.strategies._workloads import Workload

__all__ = [
    "MOST_CELLS",
    "Factorisation",
    "RangeStrategy",
    "Workload",
    "alike",
    "consistent",
    "dial_coefficients",
    "factored",
    "factorise",
    "inverse_series",
    "level_shares",
    "nonnegative_counts",
    "tree_of_cells",
    "trees_for",
    "variances_of",
    "weights_of",
    "whole_down",
    "whole_factor",
    "window_series",
]
