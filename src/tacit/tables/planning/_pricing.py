"""The pricing of a table question: which steps it takes, and which epsilon a wanted error needs.

`lower` turns aggregates into steps: what is measured, which mechanism answers, what is read off. Steps are
shared. A mean carries its own count of values and its sum, a variance carries all three: aggregates of one
expression with the same bounds are read off one statistic, and pay once. ``count()`` counts rows and joins in
only where the expression is declared never NULL.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
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
    contribution,
    kind_of,
    scope,
    whole_numbers,
)
from tacit.bisection import first_number
from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational
from tacit.fixes import Declare, Do, Either, Set
from tacit.parameters import Mapped
from tacit.tables.planning._bounds_search import check_search, is_open, search_steps, search_weights
from tacit.tables.planning._minimum_people import MinimumPeople, people_count
from tacit.tables.planning._steps import (
    AddNoise,
    Ask,
    Flippable,
    MeasuredStep,
    SelectKeys,
    SelectLargeKeys,
    amplified_ask,
    calibrate,
    check_sample,
    inner_ask,
    share_of_sample,
)
from tacit.tables.questions._aggregates import LoweringContext, OnBounds, SumOf, kept_column
from tacit.tables.questions._keys import check_totals, example_keys
from tacit.tables.reading._readings import ChosenValue, StepNoise

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tacit.algebra import Contribution, Relation, TableQuestion
    from tacit.core import Goal
    from tacit.tables._dataset import TableDataset
    from tacit.tables.planning._steps import PaidStep
    from tacit.tables.questions._aggregates import Aggregate, HostKey
    from tacit.tables.reading._readings import Reading


@dataclass(frozen=True, slots=True)
class Pricing:
    """The public facts that decide what a question costs one dataset."""

    question: TableQuestion
    steps: tuple[MeasuredStep, ...]
    columns: tuple[ReleasedColumn, ...]
    who: Contribution
    level: Fraction
    size: int | None
    ask: Ask | None
    weights: tuple[Fraction, ...]
    flip: bool
    minimum: MinimumPeople | None = None

    @classmethod
    def of(cls, dataset: TableDataset, question: TableQuestion, goal: Goal, *, added: bool) -> Pricing:
        """Find the steps of a question; ``added``: noisy integers of several datasets are added."""
        by_row, adjacency = dataset.identity.unit.kind == "row", dataset.identity.adjacency
        pairs = dataset.limits.pairs
        contributed = contribution(question, row_level=by_row, adjacency=adjacency, pairs=pairs)
        if question.sample is not None:
            check_sample(dataset.identity.unit, adjacency)
        replaced = dataset.is_one_table and adjacency == "replace"
        summed = added or bool(question.levels)
        single, minimum = contributed.total == 1, dataset.minimum_people if question.by else None
        steps, columns = lower(
            question, by_row=by_row, replaced=replaced, added=summed, single=single, minimum=minimum
        )
        check_search(question, steps, added=added)
        if question.levels:
            check_totals(steps, columns, contributed, [name for name, _ in question.by])
        if question.private_keys and not goal.delta:
            raise _owners(question, dataset) or _keys_missing(question, dataset)
        weights = _weights(goal.weights or {}, question, columns, steps)
        flip = _only_epsilon_counts(dataset, goal, steps)
        ask = None if goal.within is not None else Ask(goal.epsilon, goal.delta, goal.rho, flip)
        counted = people_count(by_row, single)
        rule = None if minimum is None else MinimumPeople.among(minimum, steps, counted, contributed)
        pricing = cls(
            question, steps, columns, contributed, goal.confidence, goal.size, ask, weights, flip, rule
        )
        if ask is None and len(steps) > 1:  # an error is wanted, the same for every column
            errors = pricing._errors_alone(goal.delta)
            return replace(pricing, weights=tuple(w * e for w, e in zip(weights, errors, strict=True)))
        return pricing

    def _errors_alone(self, delta: Fraction) -> list[Fraction]:
        """Return the error that each step has alone at epsilon 1, to two digits, the largest of its columns.

        Steps that share a budget in these proportions have equal errors. A selection of keys that no column
        is read off counts with their mean.
        """
        ask, full_share = Ask(Fraction(1), delta), (Fraction(1),)
        errors: list[Fraction | None] = []
        for i, step in enumerate(self.steps):
            (paid_step,) = calibrate((step,), self.who, ask, full_share)
            noise = StepNoise(step.statistic, (paid_step.mechanism,))
            largest = max((self.error(c, noise) for c in self.columns if c.step == i), default=None)
            errors.append(None if largest is None else max(Fraction(f"{largest:.1e}"), Fraction(1, 10**9)))
        known_errors = [error for error in errors if error is not None]
        mean = sum(known_errors, Fraction(0)) / len(known_errors)
        return [mean if error is None else error for error in errors]

    def error(self, column: ReleasedColumn, noise: StepNoise) -> float:
        """Return the half-width to expect of a column, or refuse where it cannot be known."""
        if is_open(noise.statistic):
            raise TacitError(
                "not-allowed",
                f"the error of {column.name} depends on the bounds that the plan finds",
                why="a plan for a wanted error must know it before any data is read",
                fix=Either(Set(epsilon=0.5), Set(bounds=(0, 30))),
            )
        expected = column.reading.expected(noise, self.level, self.size)
        if expected is None:
            picked = isinstance(column.reading, ChosenValue)
            raise TacitError(
                "bad-parameter",
                f"{column.name} is picked from candidates, so its error is not a number"
                if picked
                else f"the error of {column.name} depends on how many rows there are",
                why="a plan for a picked value needs a cost"
                if picked
                else "a plan reads no data, so it needs a public guess, which it uses for planning only",
                fix=Set(epsilon=0.5) if picked else Set(within=1, size=1000),
            )
        return expected


def _only_epsilon_counts(dataset: TableDataset, goal: Goal, steps: tuple[MeasuredStep, ...]) -> bool:
    """Return whether choices may be charged as pure epsilon: plan and budget know neither rho nor delta."""
    if goal.rho is not None or goal.delta:
        return False
    if not any(isinstance(step.method, Flippable) for step in steps):
        return False
    budget = dataset.budget
    return budget.rho is None and not budget.delta


def _owners(question: TableQuestion, dataset: TableDataset) -> TacitError | None:
    """Refuse private groups that each hold one unit: a delta would not show them either."""
    facts, unit = scope(question.input), dataset.identity.unit
    if not any(isinstance(node, Column) and facts[node.name].unit for _, node in question.by):
        return None
    return TacitError(
        "keys-missing",
        f"each group of {unit.column} is one {unit.noun}, so none of them can be shown",
        why=f"a private group is shown only if many {unit.noun}s are in it",
        fix=Do("summarise-units", unit=unit.column, table=dataset.main),
    )


def _keys_missing(question: TableQuestion, dataset: TableDataset) -> TacitError:
    """Refuse groups that are neither public nor to be selected privately, with the columns that need keys."""
    names = [name for name, _ in question.by]
    return TacitError(
        "keys-missing",
        f"the groups of {', '.join(names)} are not public, and the plan has no delta",
        why="which groups exist is private; without a delta, private groups cannot be shown",
        fix=Either(
            *(_keys_to_give(name, node, question, dataset) for name, node in question.by),
            *([Set(delta=1e-7)] if dataset.budget.delta else []),
        ),
    )


_YEARS: list[object] = [2025, 2026]


def _keys_to_give(name: str, node: Node, question: TableQuestion, dataset: TableDataset) -> Declare | Set:
    """Offer keys that are known: those of a public table, or whole numbers between bounds; else examples.

    Keys of a column are declared with the dataset; those of an expression are given with the question.
    """
    candidates = whole_numbers(node, scope(question.input))
    if not isinstance(node, Column):
        examples = _YEARS if isinstance(node, Call) and node.op == "year" else example_keys(kind_of(node))
        return Set(keys={name: examples if candidates is None else candidates})
    for table in dataset.tables.values():
        if table.key is not None and node.name in (table.columns or ()):
            return Declare("keys", f"{table.name}.{node.name}", column=name, example=False)
    return Declare("keys", example_keys(kind_of(node)), column=name)


def _weights(
    weights: Mapping[str, Fraction],
    question: TableQuestion,
    columns: tuple[ReleasedColumn, ...],
    steps: tuple[MeasuredStep, ...],
) -> tuple[Fraction, ...]:
    """Weigh each step as much as the heaviest aggregate that is read off it; the default is 1.

    A search for bounds takes its share of the cost first.
    """
    names = [name for name, _ in question.aggregates]
    example = f"weights={{{names[0]!r}: 2}}"
    Mapped("numbers by column", example, tuple(sorted(names))).read("weights", weights)
    of_steps = tuple(
        max((weights.get(c.asked, Fraction(1)) for c in columns if c.step == i), default=Fraction(1))
        for i in range(len(steps))
    )
    search = search_steps(steps)
    if not search:
        return of_steps
    first = steps.index(search[0])
    before, after = of_steps[:first], of_steps[first + len(search) :]
    return (*before, *search_weights(search, (*before, *after)), *after)


def noises_of(pricings: Sequence[Pricing], members: Sequence[tuple[PaidStep, ...]]) -> tuple[StepNoise, ...]:
    """Put together the noise of all members on each step."""
    return tuple(
        StepNoise(step.statistic, tuple(paid[i].mechanism for paid in members))
        for i, step in enumerate(pricings[0].steps)
    )


def asks_of(pricings: Sequence[Pricing], goals: Sequence[Goal]) -> tuple[list[Ask], list[Ask]]:
    """Return what each member may pay, and what its mechanisms may cost, which is more on a sample.

    Where an error is wanted, find the smallest epsilon of the mechanisms that keeps it.
    """
    sample = pricings[0].question.sample
    asks = [one.ask for one in pricings if one.ask is not None]
    if len(asks) == len(pricings):
        return asks, asks if sample is None else [inner_ask(ask, sample) for ask in asks]
    inner = _within(pricings, goals[0])
    if sample is None:
        return [inner] * len(pricings), [inner] * len(pricings)
    inner = replace(inner, delta=inner.delta / share_of_sample(sample), laplace=True)
    return [amplified_ask(inner, sample)] * len(pricings), [inner] * len(pricings)


def _within(pricings: Sequence[Pricing], goal: Goal) -> Ask:
    """Find the smallest epsilon of each member with which all columns stay within the wanted error."""
    within, delta = float(rational("within", goal.within)), goal.delta
    pricing = pricings[0]
    flip = all(one.flip for one in pricings)

    def fits(epsilon: float) -> bool:
        ask = Ask(Fraction(epsilon), delta, flip=flip, laplace=pricing.question.sample is not None)
        try:
            members = [calibrate(one.steps, one.who, ask, one.weights) for one in pricings]
        except TacitError as refusal:
            if refusal.code == "bad-parameter":  # noise beyond 64 bits
                return False
            raise
        noises = noises_of(pricings, members)
        return all(pricing.error(column, noises[column.step]) <= within for column in pricing.columns)

    return Ask(smallest_epsilon(fits, within), delta, flip=flip)


def goal_within(goal: Goal, error: Callable[[Goal], float]) -> Goal:
    """Return the goal with the smallest epsilon whose largest error stays within the wanted one."""
    tolerance = float(rational("within", goal.within))

    def fits(epsilon: float) -> bool:
        try:
            return bool(error(replace(goal, epsilon=Fraction(epsilon), within=None)) <= tolerance)
        except TacitError as refusal:
            if refusal.code == "bad-parameter":  # noise beyond 64 bits
                return False
            raise

    return replace(goal, epsilon=smallest_epsilon(fits, tolerance), within=None)


def smallest_epsilon(fits: Callable[[float], bool], within: float) -> Fraction:
    """Find an epsilon of four digits that fits and is at most 0.2 % above the smallest; checked forward."""
    low, high = 0.5, 1.0
    while not fits(high):
        low, high = high, high * 2
        if high > 2**12:
            raise bad_parameter(
                "within",
                "an error that an epsilon of at most 4096 can reach",
                within,
                fix=Set(within=10 * within),
            )
    while low > 2.0**-30 and fits(low):
        low, high = low / 2, low
    epsilon = first_number(fits, low, high, ratio=1.0005)
    short = Fraction(Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(epsilon))
    return short if fits(float(short)) else Fraction(epsilon)


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
    minimum: int | None = None,
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
    minimum
        The fewest units of a group that is shown: the units of each group are then counted in any case.
    """
    context = _context(question, by_row=by_row, added=added, single=single)
    narrow = replaced and not question.by and _one_row_each(question.input, by_row=by_row)
    select = SelectKeys() if minimum is None else SelectLargeKeys(minimum)
    keys = [MeasuredStep(RowCounts() if by_row else UnitCounts(), select)] if question.private_keys else []
    lowered: list[tuple[str, str, Aggregate, MeasuredStep, Reading]] = []
    for answer, aggregate in question.aggregates:
        for name, step, reading in aggregate.lowered(answer, context):
            if narrow and isinstance(step.statistic, Sums) and aggregate.argument in context.never_null:
                step = _one_value_each(step.statistic, aggregate)
            if keys and step == replace(keys[0], method=AddNoise()):
                step = keys[0]  # the selection of keys releases these numbers of units anyway
            lowered.append((name, answer, aggregate, step, reading))
    needed_steps = {step for *_, step, _ in lowered if step not in keys}
    if minimum is not None and not keys:
        needed_steps.add(MeasuredStep(people_count(by_row, single), AddNoise()))
    answers = sorted(needed_steps, key=lambda step: json.dumps(step.document, sort_keys=True))
    steps = (*keys, *search_steps(answers), *answers)
    return steps, tuple(
        ReleasedColumn(name, answer, aggregate, steps.index(step), reading)
        for name, answer, aggregate, step, reading in lowered
    )


def _context(question: TableQuestion, *, by_row: bool, added: bool, single: bool) -> LoweringContext:
    order = (Sums, MomentSums, SquareSums)
    hosts: dict[HostKey, MomentSums | Sums] = {}
    for _, aggregate in question.aggregates:
        if isinstance(aggregate, SumOf):
            key = aggregate.host_key
            smallest = aggregate.smallest_host(single=single)
            hosts[key] = max(hosts.get(key, smallest), smallest, key=lambda host: order.index(type(host)))
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
    """Return whether every unit of the table has exactly one row: nothing is filtered, joined or grouped."""
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
