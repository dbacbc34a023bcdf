"""The core, which every field shares: units, datasets, plans, releases of any content, certificates.

Modules, in reading order:

- `_protocols`: what the core asks of a field, a ledger and an engine
- `_unit`, `_facts`, `_dataset`: who is protected, what is public, and the data
- `_goal`, `_question`: what may be spent, and what is asked
- `_task`: what a field brings to a plan
- `_plan`, `_plan_run`: what it costs; the only place where exact integers meet noise
- `_run`: one charge, many numbered releases
- `_certificate`, `_release`, `_tabular`: the promise, the content with it, its tables in files
- `_answer_table`, `_shown_digits`, `_found_bounds`: the content of most releases, what is shown of its
  numbers, and the bounds that its plan found
- `_display`, `_answer_display`: plans and answers in terminals and notebooks
- `_batch`, `_batch_split`: several questions with one charge
- `_budget_schedule`: a year's plan for a budget
- `_registry`: contents, datasets and questions that rooms and other packages add
"""

from tacit.calls import refuse_wrong_calls
from tacit.core._answer_display import interval_words, placed_series
from tacit.core._answer_table import AnswerTable, Cells, MeasuredIntegers, Value
from tacit.core._batch import AnswerBatch, BatchAnswer, BatchQuestion, BatchReleases, batch
from tacit.core._budget_schedule import AskedReport, BudgetSchedule, PricedReport, Remedy, budget_plan
from tacit.core._certificate import Certificate
from tacit.core._dataset import Dataset
from tacit.core._display import (
    budget_risk,
    left_afterwards,
    odds_factor,
    plan_meaning,
    plan_text,
    risk_lines,
    risk_words,
    shown_cell,
)
from tacit.core._facts import (
    DEFAULT_PAIRS,
    KEY_KINDS,
    KINDS,
    Fact,
    Kind,
    LimitGiven,
    Limits,
    Table,
    fixes_of,
    is_writable,
    read_bounds,
    read_keys,
    read_kind,
)
from tacit.core._found_bounds import RARE_CUT, FoundBounds
from tacit.core._goal import ANY_TOTAL, DELTA, RHO, RHO_WITH_DELTA, SIZE, WEIGHTS, WITHIN, Goal, warn_of_delta
from tacit.core._plan import PLAN_SCHEMA, Forecast, Plan, in_promised_words, members_of, with_audit
from tacit.core._protocols import (
    JSON,
    AnsweringService,
    Charger,
    Exact,
    Measurement,
    Noisy,
    RememberingMeasurement,
)
from tacit.core._question import (
    Argument,
    Draft,
    Question,
    QuestionKind,
    WireForm,
    plannable,
    questions_by_name,
)
from tacit.core._registry import (
    DatasetKind,
    admit_packages,
    dataset_kinds,
    packages_of,
    question_of,
    questions_of,
    registered,
)
from tacit.core._release import UNBOUND, Content, Release, about_release, content_named
from tacit.core._run import Run, paid_run
from tacit.core._shown_digits import HIDDEN, hidden_values, is_hidden, least_shown, swamped, without_hidden
from tacit.core._tabular import for_spreadsheet, joined, needs, plain_table, write_csv
from tacit.core._task import DrawnBefore, RunTask, SharedReadings, Step, Task, measure
from tacit.core._unit import Identity, Unit, budget_of, open_account, read_identity
from tacit.show import visible

__all__ = [
    "ANY_TOTAL",
    "DEFAULT_PAIRS",
    "DELTA",
    "HIDDEN",
    "JSON",
    "KEY_KINDS",
    "KINDS",
    "PLAN_SCHEMA",
    "RARE_CUT",
    "RHO",
    "RHO_WITH_DELTA",
    "SIZE",
    "UNBOUND",
    "WEIGHTS",
    "WITHIN",
    "AnswerBatch",
    "AnswerTable",
    "AnsweringService",
    "Argument",
    "AskedReport",
    "BatchAnswer",
    "BatchQuestion",
    "BatchReleases",
    "BudgetSchedule",
    "Cells",
    "Certificate",
    "Charger",
    "Content",
    "Dataset",
    "DatasetKind",
    "Draft",
    "DrawnBefore",
    "Exact",
    "Fact",
    "Forecast",
    "FoundBounds",
    "Goal",
    "Identity",
    "Kind",
    "LimitGiven",
    "Limits",
    "MeasuredIntegers",
    "Measurement",
    "Noisy",
    "Plan",
    "PricedReport",
    "Question",
    "QuestionKind",
    "Release",
    "Remedy",
    "RememberingMeasurement",
    "Run",
    "RunTask",
    "SharedReadings",
    "Step",
    "Table",
    "Task",
    "Unit",
    "Value",
    "WireForm",
    "about_release",
    "admit_packages",
    "batch",
    "budget_of",
    "budget_plan",
    "budget_risk",
    "content_named",
    "dataset_kinds",
    "fixes_of",
    "for_spreadsheet",
    "hidden_values",
    "in_promised_words",
    "interval_words",
    "is_hidden",
    "is_writable",
    "joined",
    "least_shown",
    "left_afterwards",
    "measure",
    "members_of",
    "needs",
    "odds_factor",
    "open_account",
    "packages_of",
    "paid_run",
    "placed_series",
    "plain_table",
    "plan_meaning",
    "plan_text",
    "plannable",
    "question_of",
    "questions_by_name",
    "questions_of",
    "read_bounds",
    "read_identity",
    "read_keys",
    "read_kind",
    "registered",
    "risk_lines",
    "risk_words",
    "shown_cell",
    "swamped",
    "visible",
    "warn_of_delta",
    "with_audit",
    "without_hidden",
    "write_csv",
]

refuse_wrong_calls(__name__, __all__)
