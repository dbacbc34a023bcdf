"""The wire form of table questions: read them back from documents, the other half of `document`.

A document may come from anywhere, so it can say nothing that the fluent API could not say. Only listed
classes are made. Then every node is checked against the dataset's own facts: tables are protected where rows
are scanned and public where they are looked up, with a row limit that a question may have; expressions use
known columns and operators of the right kinds; names do not shadow the owner of a row; aggregates are those
that their own functions make.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from tacit.algebra import (
    OPERATORS,
    Call,
    Column,
    JoinPublic,
    JoinUnits,
    Literal,
    Measure,
    Node,
    PerUnit,
    Project,
    Relation,
    Scan,
    Scope,
    TableQuestion,
    Where,
    as_date,
    document,
    expand_kinds,
    lit,
    names_unit,
    resolve,
    rows_per_unit,
    scans_of,
    scope,
)
from tacit.core import KINDS, Fact, Table, read_bounds
from tacit.exact import read_fraction
from tacit.tables.planning._steps import MAX_SAMPLED
from tacit.tables.questions import _aggregate_functions as ask
from tacit.tables.questions import _aggregates, _choice_aggregates, _pair_aggregates
from tacit.tables.questions._choice_aggregates import BestOf
from tacit.tables.questions._keys import MAX_KEYS, MAX_LEVELS, check_levels, key_nodes, read_column_keys
from tacit.tables.questions._limit_advice import CutCaption, LimitCaption, ShareBeyond, share_beyond
from tacit.tables.questions._python_expressions import Expr, check_name
from tacit.tables.reading._postprocessing import PostProcessing
from tacit.tables.reading._release_functions import ORDERED, OVER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.core import Kind, Limits
    from tacit.tables._dataset import TableDataset
    from tacit.tables.questions._aggregates import Aggregate
    from tacit.tables.reading._postprocessing import Presentation


_NODES: dict[str, type] = {
    node.__name__: node
    for node in (
        JoinPublic, JoinUnits, Measure, PerUnit, Project, Scan, TableQuestion, Where,
        *(getattr(_aggregates, name) for name in (
            "CountDistinct", "CountRows", "CountUnits", "MeanOf", "PopulationStdOf", "PopulationVarianceOf",
            "StdOf", "SumOf", "VarianceOf",
        )),
        *(getattr(_choice_aggregates, name) for name in (
            "ExtremeOf", "HistogramOf", "MedianOf", "MostCommonOf", "QuantileIntervalOf", "QuantileOf",
            "QuantilesOf",
        )),
        *(getattr(_pair_aggregates, name) for name in (
            "CorrelationOf", "CovarianceOf", "DeterminationOf", "InterceptOf", "SlopeOf",
        )),
        BestOf,
        CutCaption,
        LimitCaption,
        ShareBeyond,
        Call,
        Column,
        Literal,
        PostProcessing,
    )
}  # fmt: skip

#: How each aggregate is made by the function that users call; what it refuses, a document cannot say.
_MAKERS: dict[str, Callable[[Any, Expr], Aggregate]] = {
    "CountUnits": lambda _, __: ask.count_units(),
    "CountDistinct": lambda _, x: ask.count_distinct(x),
    "SumOf": lambda a, x: ask.sum(x, bounds=a.bounds, cut=a.cut),
    "MeanOf": lambda a, x: ask.mean(x, bounds=a.bounds, cut=a.cut, spread=a.spread),
    "VarianceOf": lambda a, x: ask.variance(x, bounds=a.bounds, cut=a.cut),
    "StdOf": lambda a, x: ask.std(x, bounds=a.bounds, cut=a.cut),
    "PopulationVarianceOf": lambda a, x: ask.variance(x, bounds=a.bounds, cut=a.cut, population=True),
    "PopulationStdOf": lambda a, x: ask.std(x, bounds=a.bounds, cut=a.cut, population=True),
    "QuantileOf": lambda a, x: ask.quantile(
        x, *a.levels, bounds=a.bounds, cut=a.cut, candidates=a.candidates or None
    ),
    "QuantileIntervalOf": lambda a, x: ask.quantile(
        x, *a.levels, bounds=a.bounds, cut=a.cut, candidates=a.candidates or None, interval=True
    ),
    "MedianOf": lambda a, x: ask.median(x, bounds=a.bounds, cut=a.cut, candidates=a.candidates or None),
    "QuantilesOf": lambda a, x: ask.quantiles(
        x, a.levels, bounds=a.bounds, cut=a.cut, candidates=a.candidates or None
    ),
    "ExtremeOf": lambda a, x: (ask.max if a.largest else ask.min)(
        x, bounds=a.bounds, cut=a.cut, candidates=a.candidates or None
    ),
    "HistogramOf": lambda a, x: ask.histogram(x, a.edges),
    "MostCommonOf": lambda a, x: ask.most_common(x, a.k, a.candidates),
}
_MAKERS |= {
    "CorrelationOf": lambda a, x: ask.correlation(x, Expr(a.other), bounds=(a.bounds, a.other_bounds)),
    "SlopeOf": lambda a, x: ask.slope(x, Expr(a.other), bounds=(a.bounds, a.other_bounds)),
    "InterceptOf": lambda a, x: ask.intercept(x, Expr(a.other), bounds=(a.bounds, a.other_bounds)),
    "DeterminationOf": lambda a, x: ask.r_squared(x, Expr(a.other), bounds=(a.bounds, a.other_bounds)),
    "CovarianceOf": lambda a, x: ask.covariance(
        x, Expr(a.other), bounds=(a.bounds, a.other_bounds), population=a.population
    ),
    "ShareBeyond": lambda a, x: share_beyond(x, a.limit, a.cap),
    "BestOf": lambda a, _: ask.best(
        a.candidates, _scores(a.candidates, a.scores).__getitem__, bounds=a.bounds
    ),
}


_WITHIN_UNIT = frozenset({"count", "sum", "mean", "min", "max", "count_distinct"})
_MAX_LIMIT = 10**9


def _scores(candidates: tuple[object, ...], scores: tuple[Node, ...]) -> dict[object, Expr]:
    return {candidate: Expr(score) for candidate, score in zip(candidates, scores, strict=True)}


def read_question(document: Any, dataset: TableDataset) -> TableQuestion:
    """Read a question from its document and check it as the fluent API would have.

    Raises ``KeyError``, ``TypeError``, ``ValueError`` or a refusal where it is not one; `plan_from` then
    refuses the document.
    """
    question = _node(document, dataset.tables)
    if not isinstance(question, TableQuestion):
        raise TypeError(type(question).__name__)
    check_relation(question.input, dataset)
    check_rows(question.input, dataset.limits)
    facts = scope(question.input)
    for name, node in question.by:
        check_name(name)
        check_expression(node, facts)
    if question.keys is not None:
        _check_keys(question)
    insist(_is_boolean(question.missing) and (question.private_keys or not question.missing))
    for limit in (question.groups, question.per_group):
        check_limit(limit)
    _check_levels(question)
    if question.sample is not None:
        insist(type(question.sample) is int and 0 < question.sample < MAX_SAMPLED)
    insist(bool(question.aggregates))
    for columns in (question.by, question.aggregates):
        insist(len({name for name, _ in columns}) == len(columns))
    for name, aggregate in question.aggregates:
        check_name(name)
        _check_aggregate(aggregate, facts)
    return question


def read_relation(document: Any, dataset: TableDataset) -> Relation:
    """Read rows from the document of their relation, and check them as `read_question` does."""
    relation = _node(document, dataset.tables)
    if not isinstance(relation, Scan | Where | Project | JoinUnits | JoinPublic | PerUnit):
        raise TypeError(type(relation).__name__)
    check_relation(relation, dataset)
    check_rows(relation, dataset.limits)
    return relation


def read_post(document: Any, dataset: TableDataset) -> Presentation | None:
    """Read how a release is shown; post-processing checks itself, and touches released values only."""
    post = _node(document, dataset.tables)
    if post is None:
        return None
    if isinstance(post, LimitCaption | CutCaption):
        kinds = {"int": int, "str": str}
        insist(all(type(getattr(post, f.name)) is kinds[str(f.type)] for f in fields(post)))
        return post
    if not isinstance(post, PostProcessing):
        raise TypeError(type(post).__name__)
    for name, node in post.outputs:
        insist(type(name) is str and bool(name))
        _check_shown(node)
    for node, descending in post.order:
        insist(type(descending) is bool)
        _check_shown(node)
    if post.having is not None:
        _check_shown(post.having)
    insist(post.limit is None or (type(post.limit) is int and post.limit >= 0))
    return post


def _check_shown(node: Node) -> None:
    """Check an expression over released values: known operators with as many arguments as they take."""
    match node:
        case Column(name, _):
            insist(type(name) is str)
        case Literal():
            check_parts(node, Scope({}))
        case Call(op, args):
            if op in OVER:
                insist(len(args) >= (2 if op in ORDERED else 1))
            else:
                expand_kinds(op, len(args))
            for arg in args:
                _check_shown(arg)
        case _:
            raise TypeError(type(node).__name__)


def _node(document_node: Any, tables: Mapping[str, Table]) -> Any:
    """Make a node from its document."""
    match document_node:
        case None | bool() | int() | str():
            return document_node
        case {"number": str(text)}:
            return float.fromhex(text)
        case {"fraction": text}:
            return read_fraction(text)
        case {"table": str(name)}:
            insist(document(tables[name]) == document_node)  # a table that is read in the same way
            return tables[name]
        case {"node": str(name)}:
            node = _NODES[name]
            arguments = {k: _node(v, tables) for k, v in document_node.items() if k != "node"}
            node_fields = [field for field in fields(node) if field.init]
            needed = {field.name for field in node_fields if not field.metadata}
            insist(needed <= set(arguments) <= {field.name for field in node_fields})
            return node(**arguments)
        case list() | tuple():
            return tuple(_node(one, tables) for one in document_node)
        case _:
            raise TypeError(type(document_node).__name__)


def _is_boolean(node: object) -> bool:
    return isinstance(node, bool)


def _check_keys(question: TableQuestion) -> None:
    """Check that public keys are plain, all different, and of the kind of their column.

    A key of another kind would make the engine convert the data, and one row could then fail the question.
    """
    keys, width, facts = question.keys or (), len(question.by), scope(question.input)
    insist(bool(keys) and width > 0 and all(type(key) is tuple and len(key) == width for key in keys))
    insist(len(set(keys)) == len(keys) and len(keys) <= MAX_KEYS)
    insist(all(value is None or type(value) in {float, str, bool} for key in keys for value in key))
    for i, (name, _) in enumerate(question.by):
        column = tuple(dict.fromkeys(key[i] for key in keys))
        insist(set(read_column_keys(name, column)) == set(column))
    insist(key_nodes(question.by, keys, facts) == question.by)


def _check_levels(question: TableQuestion) -> None:
    """Check that levels name some of the columns, each once and in their order."""
    levels, places = question.levels, range(len(question.by))
    insist(type(levels) is tuple and len(levels) <= MAX_LEVELS and len(set(levels)) == len(levels))
    for level in levels:
        insist(type(level) is tuple and all(type(i) is int and i in places for i in level))
        insist(list(level) == sorted(set(level)))
    check_levels(question)


def _check_aggregate(aggregate: Aggregate, facts: Scope) -> None:
    """Check that an aggregate is what its own function makes of its parts."""
    kind = type(aggregate).__name__
    for node in aggregate.arguments:
        check_expression(node, facts)
    if kind == "CountRows":
        rebuilt = ask.count(None if aggregate.argument is None else Expr(aggregate.argument))
    else:
        rebuilt = _MAKERS[kind](aggregate, Expr(aggregate.argument or lit(None)))
    insist(rebuilt.resolved(facts) == aggregate)


def insist(holds: bool) -> None:  # noqa: FBT001 - reads as a sentence
    """Refuse the document unless a condition holds."""
    if not holds:
        raise ValueError("the document contains something that no question can ask")


def check_relation(relation: Relation, dataset: TableDataset) -> None:
    """Check rows against the dataset's own tables, columns and limits."""
    match relation:
        case Scan(table, rows):
            insist(_is_table(table) and table.key is None)
            insist(rows is None or not dataset.unit.is_row)  # it would act on the whole table
            check_limit(rows)
        case Where(inner, predicate):
            check_relation(inner, dataset)
            check_expression(predicate, scope(inner), "boolean")
        case Project(inner, columns):
            check_relation(inner, dataset)
            for name, node in columns:
                check_name(name)
                _check_column(node, scope(inner))
            _check_different([name for name, _ in columns])
        case JoinUnits(left, right, how, rows):
            check_relation(left, dataset)
            check_relation(right, dataset)
            insist(how in {"inner", "left"} and not dataset.unit.is_row)
            check_limit(rows)
            _check_different([*scope(left), *scope(right)])
        case JoinPublic(left, _, _, _, how):
            check_relation(left, dataset)
            _check_lookup(relation, scope(left))
            insist(how in {"inner", "left"})
        case PerUnit(inner, by, measures):
            check_relation(inner, dataset)
            insist(not dataset.unit.is_row)
            for name, node in by:
                check_name(name)
                check_expression(node, scope(inner))
            for measure in measures:
                _check_measure(measure, scope(inner))
                insist(measure.function != "sum" or _sums(inner, by, dataset.limits))
            _check_different([*(name for name, _ in by), *(measure.name for measure in measures)])
        case _:
            raise TypeError(type(relation).__name__)


def check_rows(relation: Relation, limits: Limits, *, one_row_left: bool = False) -> None:
    """Check that tables are read with a row limit that a question may have.

    Without one only where one row of each unit is left, or where none was declared.
    """
    match relation:
        case Scan(table, rows):
            insist(limits.allows(table.name, rows) or (one_row_left and rows is None))
        case JoinUnits(left, right, _, _):
            check_rows(left, limits)
            check_rows(right, limits)
        case PerUnit(inner, by, _):
            check_rows(inner, limits, one_row_left=one_row_left or names_unit(inner, by))
        case Where(inner, _) | Project(inner, _) | JoinPublic(inner, _, _, _, _):
            check_rows(inner, limits, one_row_left=one_row_left)


def _sums(inner: Relation, by: tuple[tuple[str, Node], ...], limits: Limits) -> bool:
    """Return whether the fluent API can sum a unit's rows: they are limited, or each unit has one row."""
    if rows_per_unit(inner) is not None:
        return True
    return names_unit(inner, by) and all(limits.rows_of(scan.table.name) for scan in scans_of(inner))


def _is_table(relation: object) -> bool:
    return isinstance(relation, Table)


def _check_lookup(join: JoinPublic, facts: Scope) -> None:
    """Check that a looked-up table is public and that its columns exist and shadow none."""
    insist(_is_table(join.table) and join.table.key is not None)
    check_expression(join.on, facts)
    for name, source in join.columns:
        check_name(name)
        insist(source in (join.table.columns or ()) and source != join.table.key)
    _check_different([*facts, *(name for name, _ in join.columns)])


def _check_measure(measure: Measure, facts: Scope) -> None:
    check_name(measure.name)
    insist(measure.function in _WITHIN_UNIT)
    if measure.argument is not None:
        counts = measure.function in {"count", "count_distinct"}
        check_expression(measure.argument, facts, None if counts else "number")
    if measure.bounds is not None:
        low, high = read_bounds(measure.name, measure.bounds)
        insist((low, high) == measure.bounds)


def check_limit(limit: object) -> None:
    """Check a limit: none, or a whole number above 0."""
    insist(limit is None or (type(limit) is int and 0 < limit <= _MAX_LIMIT))


def _check_different(names: list[str]) -> None:
    insist(len({name.lower() for name in names}) == len(names))


def check_expression(node: Node, facts: Scope, want: Kind | None = None) -> None:
    """Check columns, constants and operators, and that their kinds fit."""
    check_parts(node, facts)
    insist(resolve(node, facts, want) == node)


def _check_column(node: Node, facts: Scope) -> None:
    """Check a column that is made; one that is passed on untouched may be of a type that is never read."""
    if isinstance(node, Column) and facts[node.name].unreadable:
        insist(node.kind == facts[node.name].kind)
    else:
        check_expression(node, facts)


def check_parts(node: Node, facts: Scope) -> None:
    """Check that columns and operators exist, and that constants are written in the one way."""
    match node:
        case Column(name, kind):
            plain: Fact = facts[name]
            insist(not plain.unreadable and kind in {None, *KINDS} and plain.kind in {None, kind})
            check_name(name)
        case Literal(value, "date"):
            insist(as_date(str(value)) == node)
        case Literal(value, _):
            insist(lit(value) == node)
        case Call(op, args):
            insist(op in OPERATORS)
            for arg in args:
                check_parts(arg, facts)
        case _:
            raise TypeError(type(node).__name__)
