"""Advice in plans: one public fact that would make the error much smaller, found by planning again.

Guarantee: advice is a function of the question and of public facts alone. It never says what the data holds,
only what a plan with another limit or another range would cost, and for which data that plan would be right.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from tacit.algebra import Call, Column, Literal, TableQuestion, Where, contribution, scans_of, with_rows
from tacit.tables.questions._aggregates import OnBounds
from tacit.tables.reading._captions import limits_below_units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tacit.algebra import Node, Relation
    from tacit.tables._dataset import TableDataset


#: The error of each column that a plan of some question would have; of a plan with a given error, its price.
Errors: TypeAlias = "Callable[[TableQuestion], Mapping[str, float]]"
#: The price of a plan with a given error, in place of the error of a column.
PRICE = "epsilon"
#: The noise of a plan whose columns have no errors of their own, in place of the error of a column.
_NOISE = "noise"
#: What is worth saying: an error that is so many times smaller.
_WORTH = 1.5


def advice_on(question: TableQuestion, dataset: TableDataset, errors: Errors) -> list[tuple[str, str]]:
    """Plan the question again with one public fact changed, and say what would be 1.5 times better or more.

    Only the limit on rows that nobody chose is changed, and a range of which the condition of the question
    itself leaves only a part.
    """
    return [
        ("advice", text) for text in (*_on_limits(question, dataset, errors), *_on_ranges(question, errors))
    ]


def advice_on_counts(question: TableQuestion, dataset: TableDataset) -> list[tuple[str, str]]:
    """Advise on the limits of rows that are counted on axes: the noise grows with what one unit adds."""

    def noise(limited: TableQuestion) -> dict[str, float]:
        contributed = contribution(
            limited, row_level=dataset.unit.is_row, adjacency=dataset.adjacency, pairs=dataset.limits.pairs
        )
        return {_NOISE: float(contributed.total)}

    return [("advice", text) for text in _on_limits(question, dataset, noise)]


def _on_limits(question: TableQuestion, dataset: TableDataset, errors: Errors) -> Iterator[str]:
    """Advise to count one row of each unit, table by table, where nobody chose how many rows count."""
    for table in default_tables(question.input, dataset):
        limited = replace(question, input=with_rows(question.input, 1, frozenset({table})))
        if gain := _gain(errors(question), errors(limited)):
            in_table = f" in {table}" if len(list(scans_of(question.input))) > 1 else ""
            yield (
                f"with the limit rows=1{in_table}, {gain}; this is right if no {dataset.unit.noun} has two "
                f"rows{in_table}, and otherwise drops the other rows"
            )


def default_tables(relation: Relation, dataset: TableDataset) -> list[str]:
    """Return the tables of which several rows of a unit count only because nobody chose a limit.

    Numbers within a unit, such as its number of rows, would be other numbers with another limit.
    """
    if dataset.unit.is_row or limits_below_units(relation):
        return []
    scans = [(scan.table.name, scan.rows) for scan in scans_of(relation)]
    limits = dataset.limits
    return sorted(
        {t for t, rows in scans if limits.is_default_of(t) and rows == limits.rows_of(t) and rows != 1}
    )


def _on_ranges(question: TableQuestion, errors: Errors) -> Iterator[str]:
    """Advise to clip a column to the values that the condition of the question leaves."""
    for position, (name, aggregate) in enumerate(question.aggregates):
        column = aggregate.argument
        if not isinstance(aggregate, OnBounds) or not isinstance(column, Column):
            continue
        if not isinstance(aggregate.bounds, tuple):
            continue
        low, high = _left(question.input, column, aggregate.bounds)
        if not low < high or (low, high) == aggregate.bounds:
            continue
        aggregates = list(question.aggregates)
        aggregates[position] = (name, replace(aggregate, bounds=(low, high)))
        now, then = errors(question), errors(replace(question, aggregates=tuple(aggregates)))
        if gain := _gain({c: e for c, e in now.items() if c in (name, PRICE)}, then):
            yield (
                f"the condition leaves only values of {column.name} from {float(low):g} to {float(high):g}; "
                f"if the question gives this range for {name}, {gain}"
            )


def _left(rows: Relation, column: Column, bounds: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
    """Return the part of a column's range that the conditions on these rows leave."""
    low, high = bounds
    while isinstance(rows, Where):
        for part in _parts(rows.predicate):
            match part:
                case Call(comparison, (own, Literal(float(end) | int(end), "number"))) if own == column:
                    if math.isfinite(end) and comparison in {"ge", "gt"}:
                        low = max(low, Fraction(str(end)))
                    elif math.isfinite(end) and comparison in {"le", "lt"}:
                        high = min(high, Fraction(str(end)))
        rows = rows.input
    return low, high


def _parts(predicate: Node) -> tuple[Node, ...]:
    return predicate.args if isinstance(predicate, Call) and predicate.op == "and" else (predicate,)


def _gain(now: Mapping[str, float], then: Mapping[str, float]) -> str:
    """Say how many times smaller errors would be; empty where none of them is worth it."""
    ratios = {name: error / then[name] for name, error in now.items() if then.get(name) and error}
    worth = {name: ratio for name, ratio in ratios.items() if ratio >= _WORTH}
    if not worth:
        return ""
    if PRICE in worth:
        return f"the same error costs {_times(worth[PRICE])} less epsilon"
    if _NOISE in worth:
        return f"the noise is {_times(worth[_NOISE])} smaller"
    if len(worth) == len(ratios) and len({_times(ratio) for ratio in worth.values()}) == 1:
        whose = "the error is" if len(worth) == 1 else "the errors are"
        return f"{whose} {_times(max(worth.values()))} smaller"
    parts = [f"{_times(ratio)} smaller ({name})" for name, ratio in worth.items()]
    return f"the errors are {' and '.join((', '.join(parts[:-1]), parts[-1]) if parts[1:] else parts)}"


def _times(ratio: float) -> str:
    return f"{ratio:.2g} times" if ratio < 10 else f"{ratio:,.0f} times"
