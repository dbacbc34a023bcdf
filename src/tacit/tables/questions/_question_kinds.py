"""The questions about tables, each declared once, and tables as a kind of dataset for services and commands.

`protect` and `open_facts` declare the datasets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.algebra import document
from tacit.core import (
    ANY_TOTAL,
    RHO_WITH_DELTA,
    SIZE,
    WEIGHTS,
    WITHIN,
    AnswerTable,
    Argument,
    DatasetKind,
    Draft,
    Goal,
    QuestionKind,
    WireForm,
)
from tacit.exact import rational, read_fraction
from tacit.parameters import Anything, ColumnName, Integer, Text
from tacit.tables.planning._drafts import draft_table
from tacit.tables.questions._limit_advice import cut_query, limit_query
from tacit.tables.questions._rows_questions import rows_question
from tacit.tables.questions._wire import read_post, read_question
from tacit.tables.workloads._crosstabs import cross_design, read_crosstabs
from tacit.tables.workloads._hierarchy import hierarchy_design, read_hierarchy
from tacit.tables.workloads._ranges import prefixes_design, ranges_design, read_ranges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.algebra import TableQuestion
    from tacit.core import JSON, Question
    from tacit.tables._dataset import TableDataset
    from tacit.tables.planning._drafts import TableMember
    from tacit.tables.reading._postprocessing import Presentation


#: What the plan of a table may be asked with.
TABLE_GOAL = ANY_TOTAL | {RHO_WITH_DELTA, WITHIN, SIZE, WEIGHTS}
_WITHIN = ANY_TOTAL | {WITHIN}
_NAMED = Argument("table", Text("the name of a table"), words="whose rows; the main table by default")


def read_member(dataset: TableDataset, request: Any) -> TableMember:
    """Read what a plan's document asks of a dataset."""
    goal_document = request["goal"]
    options: dict[str, Any] = {
        name: value if value is None or name == "size" else read_fraction(value)
        for name, value in goal_document.items()
        if name != "weights"
    }
    weights = goal_document["weights"]
    weights_by_name = None if weights is None else {name: read_fraction(one) for name, one in weights.items()}
    goal = Goal.read(**options, weights=weights_by_name, takes=TABLE_GOAL)
    return dataset, read_question(request["question"], dataset), goal, read_post(request["post"], dataset)


def _read_table(dataset: Any, request: Mapping[str, Any]) -> tuple[Mapping[str, Any], Goal] | None:
    if "asks" in request:  # a question that is not answered with one table
        return None
    _, question, goal, post = read_member(dataset, request)
    return {"question": question, "post": post}, goal


def _request(question: TableQuestion, goal: Goal, post: Presentation | None) -> JSON:
    """Write a question for a table, with the whole goal."""
    weights = None if goal.weights is None else {name: str(one) for name, one in goal.weights.items()}
    within = None if goal.within is None else str(rational("within", goal.within))
    goal_document: JSON = {**goal.to_json(), "within": within, "size": goal.size, "weights": weights}
    return {"question": document(question), "goal": goal_document, "post": document(post)}


def _write_table(question: Question[Any], goal: Goal) -> JSON:
    return _request(question.arguments["question"], goal, question.arguments["post"])


def _draft_limits(dataset: TableDataset, goal: Goal, **arguments: Any) -> Draft[AnswerTable]:
    question, post = limit_query(dataset, **arguments)
    return draft_table(dataset, goal, question=question, post=post)


def _draft_cut(dataset: TableDataset, goal: Goal, **arguments: Any) -> Draft[AnswerTable]:
    question, post = cut_query(dataset, **arguments)
    return draft_table(dataset, goal, question=question, post=post)


def _write_limits(question: Question[Any], goal: Goal) -> JSON:
    dataset: Any = question.dataset
    asked_question, post = limit_query(dataset, **question.arguments)
    return _request(asked_question, goal, post)


def _write_cut(question: Question[Any], goal: Goal) -> JSON:
    dataset: Any = question.dataset
    asked_question, post = cut_query(dataset, **question.arguments)
    return _request(asked_question, goal, post)


def _as_table(_dataset: object, _request: object) -> None:
    """Leave a request to the question for a table, which it is."""


TABLE = QuestionKind(
    name="agg", words="Aggregate the rows", draft=draft_table,
    arguments=(
        Argument("question", Anything("rows, groups and aggregates"), needed=True),
        Argument("post", Anything("how the release is shown")),
    ),
    takes=TABLE_GOAL, served=False, wire=WireForm(_write_table, _read_table),
)  # fmt: skip
SUGGEST_LIMITS = QuestionKind(
    name="suggest_limits", words="How many rows do units have?", draft=_draft_limits,
    arguments=(
        Argument("by", ColumnName(), words="a column to group by later"),
        _NAMED,
        Argument("most", Integer(1), default=1000, words="the largest number that is looked for",
                 served=Integer(1, 100_000)),
    ),
    takes=frozenset(), wire=WireForm(_write_limits, _as_table),
)  # fmt: skip
MEASURE_CUT = QuestionKind(
    name="measure_cut", words="What share of rows or values do limits and bounds cut?", draft=_draft_cut,
    arguments=(
        Argument("column", ColumnName(), words="a column whose bounds clip values"),
        _NAMED,
        Argument("cap", Integer(1), words="how many rows of one unit are looked at",
                 served=Integer(1, 100_000)),
    ),
    takes=frozenset(), wire=WireForm(_write_cut, _as_table),
)  # fmt: skip
CROSSTABS = rows_question(
    name="crosstabs", words="Many cross tables at once", design=cross_design, read=read_crosstabs,
    takes=_WITHIN,
)  # fmt: skip
RANGES = rows_question(
    name="ranges", words="All ranges of an ordered column", design=ranges_design, read=read_ranges,
    takes=_WITHIN,
)  # fmt: skip
PREFIXES = rows_question(
    name="prefixes", words="The distribution of an ordered column", design=prefixes_design, read=read_ranges,
    takes=_WITHIN,
)  # fmt: skip
HIERARCHY = rows_question(
    name="hierarchy", words="The counts of a public tree", design=hierarchy_design, read=read_hierarchy,
    takes=_WITHIN,
)  # fmt: skip

QUESTIONS = (TABLE, SUGGEST_LIMITS, MEASURE_CUT, CROSSTABS, RANGES, PREFIXES, HIERARCHY)


TABLES = DatasetKind(name="table", label="tables", questions=QUESTIONS)
