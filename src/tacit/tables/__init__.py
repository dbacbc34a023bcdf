"""Tables: SQL and fluent questions with privacy for the unit, not the row."""

from tacit.algebra import Contribution
from tacit.calls import refuse_wrong_calls
from tacit.engines import Conversion, convert_csv, csv_file
from tacit.tables._aggregate_functions import (
    best,
    correlation,
    count,
    count_distinct,
    count_units,
    covariance,
    histogram,
    intercept,
    max,
    mean,
    median,
    min,
    most_common,
    quantile,
    quantiles,
    r_squared,
    slope,
    std,
    sum,
    variance,
)
from tacit.tables._aggregates import is_yes_no
from tacit.tables._axes import Axis, BinsGiven, read_axes
from tacit.tables._coded_rows import CodedRows
from tacit.tables._coded_source import CodedSource
from tacit.tables._config import Config, load_config, open_config, read_config
from tacit.tables._consortium import Consortium, consortium
from tacit.tables._counted_subject import CountedSubject
from tacit.tables._cross_noise import CrossNoise
from tacit.tables._cross_tables import CrossTables
from tacit.tables._cross_workload import CrossWorkload
from tacit.tables._dataset import TableDataset
from tacit.tables._examples import EXAMPLE_HOSPITALS, example_visits
from tacit.tables._hierarchy_counts import HierarchyCounts
from tacit.tables._invented import InventedTables, StepChange, TablePair
from tacit.tables._keys import at_most_cells, at_most_groups
from tacit.tables._open_facts import open_facts
from tacit.tables._ordered_counts import OrderedCounts
from tacit.tables._protect import protect
from tacit.tables._python_expressions import Expr, col, when
from tacit.tables._readings import StepNoise
from tacit.tables._rehearsal import rehearsal
from tacit.tables._rows import Rows
from tacit.tables._rows_questions import (
    RowsDesign,
    RowsQuestion,
    RowsQuestionKind,
    read_rows,
    rows_document,
    rows_question,
)
from tacit.tables._rows_subject import RowsSubject
from tacit.tables._steps import AddNoise, MeasuredStep
from tacit.tables._table_subject import TableSubject

__all__ = [
    "EXAMPLE_HOSPITALS",
    "AddNoise",
    "Axis",
    "BinsGiven",
    "CodedRows",
    "CodedSource",
    "Config",
    "Consortium",
    "Contribution",
    "Conversion",
    "CountedSubject",
    "CrossNoise",
    "CrossTables",
    "CrossWorkload",
    "Expr",
    "HierarchyCounts",
    "InventedTables",
    "MeasuredStep",
    "OrderedCounts",
    "Rows",
    "RowsDesign",
    "RowsQuestion",
    "RowsQuestionKind",
    "RowsSubject",
    "StepChange",
    "StepNoise",
    "TableDataset",
    "TablePair",
    "TableSubject",
    "at_most_cells",
    "at_most_groups",
    "best",
    "col",
    "consortium",
    "convert_csv",
    "correlation",
    "count",
    "count_distinct",
    "count_units",
    "covariance",
    "csv_file",
    "example_visits",
    "histogram",
    "intercept",
    "is_yes_no",
    "load_config",
    "max",
    "mean",
    "median",
    "min",
    "most_common",
    "open_config",
    "open_facts",
    "protect",
    "quantile",
    "quantiles",
    "r_squared",
    "read_axes",
    "read_config",
    "read_rows",
    "rehearsal",
    "rows_document",
    "rows_question",
    "slope",
    "std",
    "sum",
    "variance",
    "when",
]

refuse_wrong_calls(__name__, __all__)
