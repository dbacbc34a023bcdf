"""The pricing of a table question: which steps it takes, and which epsilon a wanted error needs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.algebra import Call, Column, contribution, kind_of, scope, whole_numbers
from tacit.errors import TacitError, bad_parameter
from tacit.exact import rational
from tacit.fixes import Declare, Do, Either, Set
from tacit.parameters import Mapped
from tacit.tables._keys import example_keys
from tacit.tables._levels import check_totals
from tacit.tables._lowering import lower
from tacit.tables._readings import ChosenValue, StepNoise
from tacit.tables._sampling import amplified_ask, check_sample, inner_ask, share_of_sample
from tacit.tables._steps import Ask, Flippable, calibrate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tacit.algebra import Contribution, Node, TableQuestion
    from tacit.core import Goal
    from tacit.tables._dataset import TableDataset
    from tacit.tables._lowering import ReleasedColumn
    from tacit.tables._steps import MeasuredStep, PaidStep


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

    @classmethod
    def of(cls, dataset: TableDataset, question: TableQuestion, goal: Goal, *, added: bool) -> Pricing:
        """Find the steps of a question; ``added``: noisy integers of several datasets are added."""
        by_row, adjacency = dataset.identity.unit.kind == "row", dataset.identity.adjacency
        pairs = dataset.limits.pairs
        who = contribution(question, row_level=by_row, adjacency=adjacency, pairs=pairs)
        if question.sample is not None:
            check_sample(dataset.identity.unit, adjacency)
        replaced = dataset.is_one_table and adjacency == "replace"
        summed = added or bool(question.levels)
        steps, columns = lower(
            question, by_row=by_row, replaced=replaced, added=summed, single=who.total == 1
        )
        if question.levels:
            check_totals(steps, columns, who, [name for name, _ in question.by])
        if question.private_keys and not goal.delta:
            raise _owners(question, dataset) or _keys_missing(question, dataset)
        weights = _weights(goal.weights or {}, question, columns, len(steps))
        flip = _only_epsilon_counts(dataset, goal, steps)
        ask = None if goal.within is not None else Ask(goal.epsilon, goal.delta, goal.rho, flip)
        found = cls(question, steps, columns, who, goal.confidence, goal.size, ask, weights, flip)
        if ask is None and len(steps) > 1:  # an error is wanted, the same for every column
            errors = found._errors_alone(goal.delta)
            return replace(found, weights=tuple(w * e for w, e in zip(weights, errors, strict=True)))
        return found

    def _errors_alone(self, delta: Fraction) -> list[Fraction]:
        """Return the error that each step has alone at epsilon 1, to two digits, the largest of its columns.

        Steps that share a budget in these proportions have equal errors. A selection of keys that no column
        is read off counts with their mean.
        """
        ask, one = Ask(Fraction(1), delta), (Fraction(1),)
        errors: list[Fraction | None] = []
        for i, step in enumerate(self.steps):
            (paid,) = calibrate((step,), self.who, ask, one)
            noise = StepNoise(step.statistic, (paid.mechanism,))
            largest = max((self.error(c, noise) for c in self.columns if c.step == i), default=None)
            errors.append(None if largest is None else max(Fraction(f"{largest:.1e}"), Fraction(1, 10**9)))
        known = [error for error in errors if error is not None]
        mean = sum(known, Fraction(0)) / len(known)
        return [mean if error is None else error for error in errors]

    def error(self, column: ReleasedColumn, noise: StepNoise) -> float:
        """Return the half-width to expect of a column, or refuse where it cannot be known."""
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
    known = whole_numbers(node, scope(question.input))
    if not isinstance(node, Column):
        examples = _YEARS if isinstance(node, Call) and node.op == "year" else example_keys(kind_of(node))
        return Set(keys={name: examples if known is None else known})
    for table in dataset.tables.values():
        if table.key is not None and node.name in (table.columns or ()):
            return Declare("keys", f"{table.name}.{node.name}", column=name, example=False)
    return Declare("keys", example_keys(kind_of(node)), column=name)


def _weights(
    given: Mapping[str, Fraction],
    question: TableQuestion,
    columns: tuple[ReleasedColumn, ...],
    steps: int,
) -> tuple[Fraction, ...]:
    """Weigh each step as much as the heaviest aggregate that is read off it; 1 where nothing is said."""
    known = [name for name, _ in question.aggregates]
    example = f"weights={{{known[0]!r}: 2}}"
    Mapped("numbers by column", example, tuple(sorted(known))).read("weights", given)
    return tuple(
        max((given.get(c.asked, Fraction(1)) for c in columns if c.step == i), default=Fraction(1))
        for i in range(steps)
    )


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
    found = [one.ask for one in pricings if one.ask is not None]
    if len(found) == len(pricings):
        return found, found if sample is None else [inner_ask(ask, sample) for ask in found]
    inner = _within(pricings, goals[0])
    if sample is None:
        return [inner] * len(pricings), [inner] * len(pricings)
    inner = replace(inner, delta=inner.delta / share_of_sample(sample), laplace=True)
    return [amplified_ask(inner, sample)] * len(pricings), [inner] * len(pricings)


def _within(pricings: Sequence[Pricing], goal: Goal) -> Ask:
    """Find the smallest epsilon of each member with which all columns stay within the wanted error."""
    within, delta = float(rational("within", goal.within)), goal.delta
    first = pricings[0]
    flip = all(one.flip for one in pricings)

    def fits(epsilon: float) -> bool:
        ask = Ask(Fraction(epsilon), delta, flip=flip, laplace=first.question.sample is not None)
        try:
            members = [calibrate(one.steps, one.who, ask, one.weights) for one in pricings]
        except TacitError as refusal:
            if refusal.code == "bad-parameter":  # noise beyond 64 bits
                return False
            raise
        noises = noises_of(pricings, members)
        return all(first.error(column, noises[column.step]) <= within for column in first.columns)

    return Ask(smallest_epsilon(fits, within), delta, flip=flip)


def goal_within(goal: Goal, error: Callable[[Goal], float]) -> Goal:
    """Return the goal with the smallest epsilon whose largest error stays within the wanted one."""
    wanted = float(rational("within", goal.within))

    def fits(found: float) -> bool:
        try:
            return bool(error(replace(goal, epsilon=Fraction(found), within=None)) <= wanted)
        except TacitError as refusal:
            if refusal.code == "bad-parameter":  # noise beyond 64 bits
                return False
            raise

    return replace(goal, epsilon=smallest_epsilon(fits, wanted), within=None)


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
    while high / low > 1.0005:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    short = Fraction(Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(high))
    return short if fits(float(short)) else Fraction(high)
