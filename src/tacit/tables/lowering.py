"""From aggregates to statistics: what is measured, which mechanism reads it, and which column is read off it.

Sharing. A mean carries its own count of values and its sum, a variance carries all three: aggregates of one
expression with the same bounds are read off one statistic, and pay once. ``count()`` counts rows and joins
in only where the expression is declared never NULL.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal as OneOf

from tacit.errors import TacitError
from tacit.exact import rational
from tacit.tables._expressions import Call, Column, Literal, Node, words_of
from tacit.tables.algebra import Aggregate, Bounds, Question, Relation, Scan, scope
from tacit.tables.statistics import Statistic, grid_for, nice_step

__all__ = ["Reading", "Step", "lower"]

Mechanism = OneOf["noise", "select", "top", "threshold"]


@dataclass(frozen=True, slots=True)
class Step:
    """One mechanism on one statistic; every step is paid for."""

    statistic: Statistic
    mechanism: Mechanism
    level: Fraction = Fraction(0)
    picks: int = 0


@dataclass(frozen=True, slots=True)
class Reading:
    """One column of the answer, read off a step: free post-processing."""

    column: str
    function: str
    step: int
    at: int = 0
    level: Fraction = Fraction(0)
    aggregate: str = ""


def lower(
    question: Question, *, unit: str, replaced: bool = False, summed: bool = False
) -> tuple[tuple[Step, ...], tuple[Reading, ...]]:
    """Return the steps that a question takes and the columns read off them.

    ``replaced``: neighbours differ in one unit that is in the (only) protected table of both. ``summed``:
    several datasets answer and their noisy integers are added, so a quantile is read off a histogram.
    """
    shared = _moments(question.aggregates)
    steps: list[Step] = []
    readings: list[Reading] = []
    if question.by and question.keys is None:
        steps.append(Step(Statistic("units" if unit else "rows"), "threshold"))
    never_null, own = _columns_that(question, "never_null"), _columns_that(question, "unit")
    one_each = replaced and not question.by and _one_row_each(question.input, unit)
    for aggregate in question.aggregates:
        for step, reading in _read(aggregate, shared, never_null, own, unit, summed=summed):
            if one_each and step.statistic.kind == "sum" and aggregate.argument in never_null:
                step = _whole(step, _bounds(aggregate))
            at = _place(steps, step)
            name = reading.column or aggregate.name
            readings.append(Reading(name, reading.function, at, reading.at, reading.level, aggregate.name))
    return tuple(steps), tuple(readings)


def _one_row_each(relation: Relation, unit: str) -> bool:
    """Tell whether every unit of the table has exactly one row: nothing is filtered, joined or grouped."""
    return isinstance(relation, Scan) and (not unit or relation.rows == 1)


def _whole(step: Step, bounds: Bounds) -> Step:
    """Let a value that is missing after all stand at the lower bound: each row has one, whatever it holds.

    The narrower sensitivity then holds for every table, also where ``never_null`` was declared in error.
    """
    low, high = (Literal(float(b), "number") for b in bounds)
    argument = step.statistic.argument
    if argument is None:
        return step
    present = Call("coalesce", (Call("clip", (argument, low, high)), low))
    return replace(step, statistic=replace(step.statistic, argument=present, whole=True))


def _place(steps: list[Step], step: Step) -> int:
    """Reuse a step that is there already; private keys give the numbers of units away with them."""
    if (
        step.mechanism == "noise"
        and steps
        and steps[0].mechanism == "threshold"
        and steps[0].statistic == step.statistic
    ):
        return 0
    if step not in steps:
        steps.append(step)
    return steps.index(step)


_Shared = dict[tuple[Node, Bounds], str]


def _moments(aggregates: tuple[Aggregate, ...]) -> _Shared:
    """Choose for each bounded expression the smallest statistic that answers all that is asked of it."""
    order = ("sum", "moments", "squares")
    needs = {"sum": "sum", "mean": "moments", "variance": "squares", "std": "squares"}
    chosen: _Shared = {}
    for a in aggregates:
        if a.function in needs and a.argument is not None:
            key = (a.argument, _bounds(a))
            chosen[key] = max(chosen.get(key, "sum"), needs[a.function], key=order.index)
    return chosen


def _bounds(aggregate: Aggregate) -> Bounds:
    if aggregate.bounds is None:
        what = "x" if aggregate.argument is None else words_of(aggregate.argument)
        plain = isinstance(aggregate.argument, Column)
        raise TacitError(
            "missing-bounds",
            f"{aggregate.function} of {what} needs bounds",
            why="without a public range one person could change the answer without limit",
            fix=f'tc.protect(..., bounds={{"{what}": (0, 30)}})'
            if plain
            else "bounds=(0, 30) in the aggregate",
        )
    return aggregate.bounds


def _columns_that(question: Question, fact: str) -> frozenset[Node]:
    """Return the arguments that are plain columns of which a fact still holds."""
    facts = scope(question.input)
    used = [a.argument for a in question.aggregates if a.argument is not None]
    return frozenset(e for e in used if isinstance(e, Column) and getattr(facts[e.name], fact))


def _read(
    aggregate: Aggregate,
    shared: _Shared,
    never_null: frozenset[Node],
    own: frozenset[Node],
    unit: str,
    *,
    summed: bool,
) -> list[tuple[Step, Reading]]:
    argument = aggregate.argument
    rows = Step(Statistic("rows"), "noise")
    units = Step(Statistic("units"), "noise") if unit else rows
    match aggregate.function:
        case "count":
            hosts = [
                (e, b, kind)
                for (e, b), kind in shared.items()
                if kind != "sum" and (e == argument or (argument is None and e in never_null))
            ]
            if hosts:
                e, b, kind = hosts[0]
                return [(_moment(e, b, kind), Reading("", "count", 0))]
            counted = rows if argument is None else Step(Statistic("rows", argument), "noise")
            return [(counted, Reading("", "count", 0))]
        case "count_units":
            return [(units, Reading("", "count", 0))]
        case "count_distinct" if argument in own:
            return [(units, Reading("", "count", 0))]
        case "count_distinct":
            return [(Step(Statistic("distinct", argument), "noise"), Reading("", "count", 0))]
        case "sum" | "mean" | "variance" | "std" as function if argument is not None:
            bounds = _bounds(aggregate)
            return [(_moment(argument, bounds, shared[argument, bounds]), Reading("", function, 0))]
        case "quantile" | "quantiles":
            return _quantiles(aggregate, summed=summed)
        case "histogram":
            edges = tuple(float(e) for e in aggregate.options)
            step = Step(Statistic("bins", argument, None, edges, "edges"), "noise")
            names = [f"{aggregate.name}[{a:g}, {b:g})" for a, b in itertools.pairwise(edges)]
            names[-1] = names[-1][:-1] + "]"
            return [(step, Reading(name, "cell", 0, i)) for i, name in enumerate(names)]
        case "most_common":
            picks = int(aggregate.levels[0])
            step = Step(Statistic("bins", argument, None, aggregate.options, "values"), "top", picks=picks)
            names = [aggregate.name] if picks == 1 else [f"{aggregate.name}_{i + 1}" for i in range(picks)]
            return [(step, Reading(name, "pick", 0, i)) for i, name in enumerate(names)]
        case other:
            raise TacitError(
                "not-allowed", f"there is no aggregate {other!r}", fix="tc.count(), tc.mean(column) ..."
            )


def _moment(argument: Node, bounds: Bounds, kind: str) -> Step:
    return Step(Statistic(kind, argument, grid_for(bounds, kind)), "noise")


def _quantiles(aggregate: Aggregate, *, summed: bool) -> list[tuple[Step, Reading]]:
    """One level: pick a candidate. Several: one noisy histogram over fewer candidates gives them all."""
    several = aggregate.function == "quantiles"
    statistic = _candidates(aggregate, 200 if several or summed else 1000)
    levels = [rational("level", q) for q in aggregate.levels]
    if not several and not summed:
        return [(Step(statistic, "select", levels[0]), Reading("", "quantile", 0, level=levels[0]))]
    step = Step(statistic, "noise")
    names = [f"{aggregate.name}_{float(q):g}" if several else "" for q in levels]
    return [(step, Reading(name, "level", 0, level=q)) for name, q in zip(names, levels, strict=True)]


def _candidates(aggregate: Aggregate, most: int) -> Statistic:
    """Return the public candidates.

    The user's, or evenly spaced between the bounds; values go to the nearest one.
    """
    given = tuple(float(c) for c in aggregate.options)
    if given:
        middles = tuple((a + b) / 2 for a, b in itertools.pairwise(given))
        return Statistic("bins", aggregate.argument, None, (*given, *middles), "candidates")
    low, high = _bounds(aggregate)
    step = nice_step((low, high), most)
    size = int((high - low) / step) + 1
    return Statistic("bins", aggregate.argument, None, (float(low), float(step), float(size)), "nearest")
