"""Tables: SQL and fluent questions with privacy for the unit, not the row.

In reading order:

- `_protect`: declare a dataset: who is protected, what is public, and how the data is divided into blocks
- `_dataset`: the dataset of tables, and what can be asked of it
- `questions`: rows, groups and aggregates, in Python and as documents
- `sql`: the same questions in SQL
- `planning`: what is measured, and what it costs
- `reading`: values and intervals from noisy integers
- `workloads`: cross tables, ranges and hierarchies: many counts in one plan
- `_consortium`: one question to several datasets
- `_start`: a dataset, its first question and the answer in one call
- `_public_facts`: the public facts of a dataset as a document, and a dataset from them
- `_config`: datasets that are declared in ``tacit.toml``
- `_invented`: example visits, rehearsals and neighbouring tables for audits; no row in them is real
"""

from tacit.algebra import Contribution
from tacit.calls import refuse_wrong_calls
from tacit.engines import Conversion, convert_csv, csv_file
from tacit.tables._config import Config, load_config, open_config, read_config
from tacit.tables._consortium import Consortium, consortium
from tacit.tables._dataset import TableDataset
from tacit.tables._invented import (
    EXAMPLE_HOSPITALS,
    InventedTables,
    StepChange,
    TablePair,
    example_visits,
    rehearsal,
)
from tacit.tables._protect import protect
from tacit.tables._public_facts import open_facts
from tacit.tables._start import start
from tacit.tables.planning._found_bounds_subject import FoundBoundsSubject
from tacit.tables.planning._steps import AddNoise, MeasuredStep
from tacit.tables.planning._table_subject import TableSubject
from tacit.tables.questions._aggregate_functions import (
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
from tacit.tables.questions._aggregates import is_yes_no
from tacit.tables.questions._keys import at_most_cells, at_most_groups
from tacit.tables.questions._python_expressions import Expr, col, when
from tacit.tables.questions._rows import Rows
from tacit.tables.questions._rows_questions import (
    RowsDesign,
    RowsQuestion,
    RowsQuestionKind,
    RowsSubject,
    read_rows,
    rows_document,
    rows_question,
)
from tacit.tables.reading._readings import StepNoise
from tacit.tables.workloads._axes import Axis, BinsGiven, read_axes
from tacit.tables.workloads._coded_rows import CodedRows, CodedSource, CountedSubject
from tacit.tables.workloads._cross_tables import CrossNoise, CrossTables
from tacit.tables.workloads._crosstabs import CrossWorkload
from tacit.tables.workloads._hierarchy import HierarchyCounts
from tacit.tables.workloads._ordered_counts import OrderedCounts

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
    "FoundBoundsSubject",
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
    "start",
    "std",
    "sum",
    "variance",
    "when",
]

refuse_wrong_calls(__name__, __all__)
