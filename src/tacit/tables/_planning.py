"""The planning of a table question: steps, split, cost, forecast, SQL; from public input, never data."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.core import AnswerTable, Forecast, Plan
from tacit.errors import TacitError, bad_parameter
from tacit.exact import Number, count, rational
from tacit.fixes import Declare, Either, Set
from tacit.tables._algebra import document, read_fraction
from tacit.tables._captions import facts_of, left_out
from tacit.tables._contribution import contribution
from tacit.tables._emit import statements
from tacit.tables._lowering import lower
from tacit.tables._readings import ChosenValue, StepNoise
from tacit.tables._steps import Ask, calibrate
from tacit.tables._task import TableTask
from tacit.tables._words import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tacit.core import JSON
    from tacit.tables._algebra import TableQuestion
    from tacit.tables._contribution import Contribution
    from tacit.tables._dataset import TableDataset
    from tacit.tables._lowering import ReleasedColumn
    from tacit.tables._postprocessing import PostProcessing
    from tacit.tables._steps import PaidStep, Step

__all__ = ["Goal", "make_plan"]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a user gives to ``plan``: a total cost, or the error to stay within."""

    epsilon: Number | None = None
    delta: Number = 0
    rho: Number | None = None
    within: Number | None = None
    confidence: Number = Fraction(95, 100)
    size: int | None = None
    weights: Mapping[str, Number] | None = None

    def to_json(self) -> JSON:
        """Return the goal as JSON, numbers exactly."""
        written: dict[str, JSON] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if value is None or one.name == "size":
                written[one.name] = value
            elif one.name == "weights":
                written[one.name] = {name: str(_exact(weight)) for name, weight in value.items()}
            else:
                written[one.name] = str(_exact(value))
        return written

    @classmethod
    def from_json(cls, document: Any) -> Goal:
        """Read a goal back."""
        read: dict[str, Any] = {
            name: value if value is None or name == "size" else read_fraction(value)
            for name, value in document.items()
            if name != "weights"
        }
        weights = document["weights"]
        named = None if weights is None else {name: read_fraction(weight) for name, weight in weights.items()}
        return cls(**read, weights=named)


def _exact(value: Number) -> Fraction:
    return rational("a number of the plan", value, zero=True, negative=True)


def make_plan(
    dataset: TableDataset,
    question: TableQuestion,
    goal: Goal,
    post: PostProcessing | None = None,
    others: tuple[Goal, ...] = (),
) -> Plan[AnswerTable]:
    """Turn a question and a goal into a plan.

    ``others`` are the goals of other members of a consortium that answer the same question: their noisy
    integers are added to this dataset's, and errors are those of the sums.
    """
    unit, adjacency = dataset.identity.unit, dataset.identity.adjacency
    who = contribution(question, row_level=unit.is_row, adjacency=adjacency)
    steps, columns = lower(
        question,
        by_row=unit.is_row,
        replaced=dataset.is_one_table and adjacency == "replace",
        added=bool(others),
    )
    level = rational("confidence", goal.confidence)
    if not level < 1:
        raise bad_parameter("confidence", "between 0 and 1", goal.confidence, fix=Set(confidence=0.95))
    size = None if goal.size is None else count("size", goal.size, zero=False)
    _insist_on_keys(question, goal, dataset)
    pricing = _Pricing(question, steps, columns, who, level, size)
    members = len(others) + 1
    ask = pricing.ask(goal, members)
    paid = pricing.paid(ask, goal)
    noises = pricing.noises([paid, *(pricing.paid(pricing.ask(other, members), other) for other in others)])
    emitted = statements(question, tuple(dict.fromkeys(step.statistic for step in steps)))
    dropped = left_out(question, paid, unit)
    task = TableTask(question, emitted, paid, noises, columns, dataset._engine, dropped)
    return Plan.of(
        dataset,
        task,
        promised={k: v for k, v in (("epsilon", ask.epsilon), ("delta", ask.delta), ("rho", ask.rho)) if v},
        forecast=[_forecast(column, noises[column.step], level, size) for column in columns],
        facts=facts_of(question, who, paid, columns, unit),
        confidence=float(level),
        asked=in_words(question),
        request=lambda: {
            "question": document(question),
            "goal": goal.to_json(),
            "others": [other.to_json() for other in others],
            "post": document(post),
        },
        present=None if post is None else post.apply,
    )


def _insist_on_keys(question: TableQuestion, goal: Goal, dataset: TableDataset) -> None:
    """Refuse groups that are neither public nor to be selected privately, with the columns that need keys."""
    if question.private_keys and not goal.delta:
        names = [name for name, _ in question.by]
        raise TacitError(
            "keys-missing",
            f"the groups of {', '.join(names)} are not public, and the plan has no delta",
            why="which groups exist is private; without a delta, private groups cannot be shown",
            fix=Either(
                *(Declare("keys", ["A", "B"], column=name) for name in names),
                *([Set(delta=1e-7)] if dataset.budget.delta else []),
            ),
        )


@dataclass(frozen=True, slots=True)
class _Pricing:
    """The public facts that decide what a question costs."""

    question: TableQuestion
    steps: tuple[Step, ...]
    columns: tuple[ReleasedColumn, ...]
    who: Contribution
    level: Fraction
    size: int | None

    def weights(self, given: Mapping[str, Number] | None) -> tuple[Fraction, ...]:
        """Weigh each step as much as the heaviest aggregate that is read off it; 1 where nothing is said."""
        known = [name for name, _ in self.question.aggregates]
        for name in given or {}:
            if name not in known:
                fix = Set(weights={known[0]: 2})
                raise bad_parameter("weights", f"weights of {', '.join(sorted(known))}", name, fix=fix)
        read = {name: rational(f"the weight of {name}", w) for name, w in (given or {}).items()}
        return tuple(
            max((read.get(c.asked, Fraction(1)) for c in self.columns if c.step == i), default=Fraction(1))
            for i in range(len(self.steps))
        )

    def paid(self, ask: Ask, goal: Goal) -> tuple[PaidStep, ...]:
        """Split the budget and choose the mechanisms."""
        return calibrate(self.steps, self.who, ask, self.weights(goal.weights))

    def noises(self, members: list[tuple[PaidStep, ...]]) -> tuple[StepNoise, ...]:
        """Put together the noise of all members on each step."""
        return tuple(
            StepNoise(step.statistic, tuple(paid[i].mechanism for paid in members))
            for i, step in enumerate(self.steps)
        )

    def ask(self, goal: Goal, members: int) -> Ask:
        """Read the total that a plan may cost, or find the smallest that keeps the wanted error."""
        given = [n for n in ("epsilon", "rho", "within") if getattr(goal, n) is not None]
        if len(given) != 1:
            raise TacitError(
                "bad-parameter",
                f"a plan needs one of epsilon, rho and within, got {' and '.join(given) or 'none'}",
                why="two of them could contradict each other" if given else "nothing has a default epsilon",
                fix=Either(Set(epsilon=0.5), Set(within=5, confidence=0.95)),
            )
        delta = rational("delta", goal.delta, zero=True)
        if not delta < 1:
            raise bad_parameter("delta", "below 1", goal.delta, fix=Set(delta=1e-6))
        if goal.epsilon is not None:
            return Ask(rational("epsilon", goal.epsilon), delta)
        if goal.rho is not None:
            return Ask(None, delta, rational("rho", goal.rho))
        within = float(rational("within", goal.within or 0))
        self.weights(goal.weights)  # refuses unknown names before the search

        def fits(epsilon: float) -> bool:
            try:
                paid = self.paid(Ask(Fraction(epsilon), delta), goal)
            except TacitError as refusal:
                if refusal.code == "bad-parameter":  # noise beyond 64 bits
                    return False
                raise
            noises = self.noises([paid] * members)
            return all(self._error(c, noises[c.step]) <= within for c in self.columns)

        return Ask(_smallest(fits, within), delta)

    def _error(self, column: ReleasedColumn, noise: StepNoise) -> float:
        expected = column.reading.expected(noise, self.level, self.size)
        if expected is None:
            picked = isinstance(column.reading, ChosenValue)
            raise TacitError(
                "bad-parameter",
                f"the error of {column.name} "
                + ("is not a number" if picked else "depends on how many rows there are"),
                why="a plan knows no data, so it needs a public guess, which it uses for planning only",
                fix=Set(epsilon=0.5) if picked else Set(within=1, size=1000),
            )
        return expected


def _smallest(fits: Callable[[float], bool], within: float) -> Fraction:
    """Find an epsilon of four digits that fits and is at most 0.2 % above the smallest; checked forward."""
    low, high = 0.5, 1.0
    while not fits(high):
        low, high = high, high * 2
        if high > 2**12:
            raise bad_parameter(
                "within",
                "an error that some epsilon up to 4096 reaches",
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


def _forecast(column: ReleasedColumn, noise: StepNoise, level: Fraction, size: int | None) -> Forecast:
    reading = column.reading
    expected = reading.expected(noise, level, size)
    mechanism = noise.mechanisms[0].describe(noise.statistic.step)
    return Forecast(
        column.name,
        column.aggregate.words,
        mechanism,
        expected,
        reading.note(noise, level),
        column.aggregate.caution,
    )
