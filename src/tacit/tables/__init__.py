"""Tables: SQL and fluent questions with privacy for the unit, not the row."""

from tacit.tables.aggregates import (
    count,
    count_distinct,
    count_units,
    histogram,
    max,
    mean,
    median,
    min,
    most_common,
    quantile,
    quantiles,
    std,
    sum,
    variance,
)
from tacit.tables.config import Config, load_config, open_config, read_config
from tacit.tables.consortia import Consortium, consortium
from tacit.tables.dataset import Dataset, protect
from tacit.tables.examples import EXAMPLE_HOSPITALS, example_visits
from tacit.tables.fluent import Expr, col, when

__all__ = [
    "EXAMPLE_HOSPITALS",
    "Config",
    "Consortium",
    "Dataset",
    "Expr",
    "col",
    "consortium",
    "count",
    "count_distinct",
    "count_units",
    "example_visits",
    "histogram",
    "load_config",
    "max",
    "mean",
    "median",
    "min",
    "most_common",
    "open_config",
    "protect",
    "quantile",
    "quantiles",
    "read_config",
    "std",
    "sum",
    "variance",
    "when",
]
