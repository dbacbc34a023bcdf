"""The lowering of table aggregates to steps: what is measured, which mechanism answers, what is read off.

Sharing. A mean carries its own count of values and its sum, a variance carries all three: aggregates of one
expression with the same bounds are read off one statistic, and pay once. ``count()`` counts rows and joins
in only where the expression is declared never NULL.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tacit.algebra import (
    Call,
    Column,
    Literal,
    MomentSums,
    Node,
    RowCounts,
    Scan,
    SquareSums,
    Sums,
    UnitCounts,
    scope,
)
from tacit.tables._aggregates import LoweringContext, OnBounds, SumOf, kept_column
from tacit.tables._steps import AddNoise, MeasuredStep, SelectKeys

if TYPE_CHECKING:
    from tacit.algebra import Relation, TableQuestion
    from tacit.tables._aggregates import Aggregate, Range
    from tacit.tables._readings import Reading


@dataclass(frozen=True, slots=True)
class ReleasedColumn:
    """One column of the answer: its name, the aggregate that asked for it, its step and how to read it."""

    name: str
    asked: str
    aggregate: Aggregate
    step: int
    reading: Reading


def lower(
    question: TableQuestion,
    *,
    by_row: bool,
    replaced: bool = False,
    added: bool = False,
    single: bool = False,
) -> tuple[tuple[MeasuredStep, ...], tuple[ReleasedColumn, ...]]:
    """Return the steps that a question takes and the columns read off them.

    The order of the steps does not depend on the order or the names of the columns, so that a plan's
    identity does not either.

    Parameters
    ----------
    question
        What is asked.
    by_row
        Whether each row is a unit.
    replaced
        Whether neighbours differ in one unit that is in the (only) protected table of both.
    added
        Whether several datasets answer and their noisy integers are added.
    single
        Whether each unit adds at most one row, so that the rows are a sample of units.
    """
    context = _context(question, by_row=by_row, added=added, single=single)
    narrow = replaced and not question.by and _one_row_each(question.input, by_row=by_row)
    keys = (
        [MeasuredStep(RowCounts() if by_row else UnitCounts(), SelectKeys())] if question.private_keys else []
    )
    found: list[tuple[str, str, Aggregate, MeasuredStep, Reading]] = []
    for asked, aggregate in question.aggregates:
        for name, step, reading in aggregate.lowered(asked, context):
            if narrow and isinstance(step.statistic, Sums) and aggregate.argument in context.never_null:
                step = _one_value_each(step.statistic, aggregate)
            if keys and step == replace(keys[0], method=AddNoise()):
                step = keys[0]  # the selection of keys releases these numbers of units anyway
            found.append((name, asked, aggregate, step, reading))
    wanted = {step for *_, step, _ in found if step not in keys}
    steps = (*keys, *sorted(wanted, key=lambda step: json.dumps(step.document, sort_keys=True)))
    return steps, tuple(
        ReleasedColumn(name, asked, aggregate, steps.index(step), reading)
        for name, asked, aggregate, step, reading in found
    )


def _context(question: TableQuestion, *, by_row: bool, added: bool, single: bool) -> LoweringContext:
    order = (Sums, MomentSums, SquareSums)
    hosts: dict[tuple[Node, Range], MomentSums | Sums] = {}
    for _, aggregate in question.aggregates:
        if isinstance(aggregate, SumOf):
            key = aggregate.argument, aggregate.needed_bounds
            own = aggregate.smallest_host(single=single)
            hosts[key] = max(hosts.get(key, own), own, key=lambda host: order.index(type(host)))
    facts = scope(question.input)
    arguments = [a.argument for _, a in question.aggregates]
    used = [c for a in arguments for c in (a, kept_column(a)) if isinstance(c, Column)]
    return LoweringContext(
        hosts,
        never_null=frozenset(c for c in used if facts[c.name].never_null),
        own=frozenset(c for c in used if facts[c.name].unit),
        by_row=by_row,
        added=added,
    )


def _one_row_each(relation: Relation, *, by_row: bool) -> bool:
    """Whether every unit of the table has exactly one row: nothing is filtered, joined or grouped."""
    return isinstance(relation, Scan) and (by_row or relation.rows == 1)


def _one_value_each(statistic: Sums, aggregate: Aggregate) -> MeasuredStep:
    """Put a value that is missing after all at the lower bound: each row has one, whatever it holds.

    The narrower sensitivity then holds for every table, also where ``never_null`` was declared in error.
    """
    if not isinstance(aggregate, OnBounds):
        return MeasuredStep(statistic, AddNoise())
    low, high = (Literal(float(b), "number") for b in aggregate.needed_bounds)
    present = Call("coalesce", (Call("clip", (statistic.argument, low, high)), low))
    return MeasuredStep(replace(statistic, argument=present, whole=True), AddNoise())
