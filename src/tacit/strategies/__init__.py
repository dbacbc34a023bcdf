"""Strategies: what to measure so that many questions are answered best. Public numbers only; no data.

In reading order:

- ``_ranges``: ranges of an ordered column, and the sums of cells that answer them best
- ``_trees``: trees of measurements that add up to the top, and whole counts
- ``_residuals``: many cross tables measured together
- ``_toeplitz``: the days of a stream and the steps of training
- ``_octaves``: bounds for clipping and limits of rows, read from noisy counts of octaves and of units
"""

from tacit.strategies._octaves import (
    ANSWER_SHARE,
    LIMIT_SHARE,
    MAX_GROUPS,
    NARROWING_SHARE,
    OCTAVE_SHARE,
    WIDENING,
    CellNoise,
    OctaveCells,
    OctaveRange,
    answer_share,
    choose_limit,
    find_bounds,
    find_group_bounds,
    narrow_group_bounds,
    round_numbers,
)
from tacit.strategies._ranges import (
    MOST_CELLS,
    Factorisation,
    RangeStrategy,
    Workload,
    factored,
    factorise,
    tree_of_cells,
    trees_for,
    whole_factor,
)
from tacit.strategies._residuals import ColumnSet, ResidualSets, replace_cost, tables_up_to
from tacit.strategies._toeplitz import (
    band_coefficients,
    column_norm_squared,
    dial_coefficients,
    inverse_series,
    sums_error,
    totals_error,
    window_series,
)
from tacit.strategies._trees import (
    alike,
    consistent,
    level_shares,
    nonnegative_counts,
    variances_of,
    weights_of,
    whole_counts,
    whole_down,
)

__all__ = [
    "ANSWER_SHARE",
    "LIMIT_SHARE",
    "MAX_GROUPS",
    "MOST_CELLS",
    "NARROWING_SHARE",
    "OCTAVE_SHARE",
    "WIDENING",
    "CellNoise",
    "ColumnSet",
    "Factorisation",
    "OctaveCells",
    "OctaveRange",
    "RangeStrategy",
    "ResidualSets",
    "Workload",
    "alike",
    "answer_share",
    "band_coefficients",
    "choose_limit",
    "column_norm_squared",
    "consistent",
    "dial_coefficients",
    "factored",
    "factorise",
    "find_bounds",
    "find_group_bounds",
    "inverse_series",
    "level_shares",
    "narrow_group_bounds",
    "nonnegative_counts",
    "replace_cost",
    "round_numbers",
    "sums_error",
    "tables_up_to",
    "totals_error",
    "tree_of_cells",
    "trees_for",
    "variances_of",
    "weights_of",
    "whole_counts",
    "whole_down",
    "whole_factor",
    "window_series",
]
