"""The planning of a table question: cost, forecast, SQL and task; from public input, never data."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from tacit.core import AnswerTable, Draft, Forecast, warn_of_delta
from tacit.errors import TacitError
from tacit.mechanisms import KeySelection
from tacit.tables.planning._advice import PRICE, advice_on
from tacit.tables.planning._bounds_search import is_open, search_steps
from tacit.tables.planning._found_bounds_subject import FoundBoundsSubject
from tacit.tables.planning._pricing import Pricing, asks_of, noises_of
from tacit.tables.planning._steps import calibrate, share_of_sample
from tacit.tables.planning._table_subject import TableSubject, forecast_of_levels, levels_together
from tacit.tables.reading._captions import facts_of, facts_of_blocks, in_words, left_out, selected_sizes
from tacit.tables.reading._postprocessing import PostProcessing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from tacit.algebra import TableQuestion
    from tacit.core import Goal
    from tacit.tables._dataset import TableDataset
    from tacit.tables.planning._pricing import ReleasedColumn
    from tacit.tables.planning._steps import Ask, PaidStep
    from tacit.tables.reading._postprocessing import Presentation
    from tacit.tables.reading._readings import StepNoise
    from tacit.tables.workloads._crosstabs import PaidNoise


#: One dataset's part of a question: what it is asked, its goal, and how the release is shown.
TableMember: TypeAlias = "tuple[TableDataset, TableQuestion, Goal, Presentation | None]"
_MANY_ROWS = 10**12  # so many that no error reaches the width of its range


def draft_table(
    dataset: TableDataset, goal: Goal, *, question: TableQuestion, post: Presentation | None
) -> Draft[AnswerTable]:
    """Draft the plan of a question for one dataset."""
    return drafts_of([(dataset, question, goal, post)])[0]


def drafts_of(members: Sequence[TableMember]) -> list[Draft[AnswerTable]]:
    """Draft the plan of a question for one dataset, or for several, each with its own limits and goal.

    Their noisy integers are added, so that every plan forecasts and reads the sums with the noise of all.
    """
    goals = [goal for _, _, goal, _ in members]
    pricings = [
        Pricing.of(dataset, question, goal, added=len(members) > 1) for dataset, question, goal, _ in members
    ]
    if any(_meaning(one) != _meaning(pricings[0]) for one in pricings[1:]):
        raise TacitError(
            "not-allowed",
            "the members understand the question differently",
            why="their keys, bounds or other declared facts differ, so their numbers cannot be added",
            fix="declare the same bounds and keys with every member",
        )
    asks, inner = asks_of(pricings, goals)
    paid_steps = [
        calibrate(one.steps, one.who, ask, one.weights) for one, ask in zip(pricings, inner, strict=True)
    ]
    noises = noises_of(pricings, paid_steps)
    return [
        _draft(dataset, pricing, goal, post, ask, own, noises, single=len(members) == 1)
        for (dataset, _, goal, post), pricing, ask, own in zip(
            members, pricings, asks, paid_steps, strict=True
        )
    ]


def _meaning(pricing: Pricing) -> tuple[object, ...]:
    """Return what must be the same where numbers are added: groups, integers and how they are read."""
    question = pricing.question
    return question.by, question.keys, question.sample, pricing.steps, pricing.columns, pricing.minimum


def _draft(
    dataset: TableDataset,
    pricing: Pricing,
    goal: Goal,
    post: Presentation | None,
    ask: Ask,
    paid_steps: tuple[PaidStep, ...],
    noises: tuple[StepNoise, ...],
    *,
    single: bool,
) -> Draft[AnswerTable]:
    question, columns, level = pricing.question, pricing.columns, pricing.level
    if post is not None:
        post.check_columns([*(name for name, _ in question.by), *(column.name for column in columns)])
    independent = isinstance(post, PostProcessing) and post.looks_over_lines  # sums need independent lines
    plain = not single or goal.within is not None or independent
    joint = None if plain else levels_together(pricing, ask, paid_steps)
    subject = _subject(dataset, pricing, paid_steps, noises, joint)
    return Draft(
        task=subject.task,
        promised={k: v for k, v in (("epsilon", ask.epsilon), ("delta", ask.delta), ("rho", ask.rho)) if v},
        forecast=lambda: (
            [_forecast(column, noises[column.step], level, pricing.size) for column in columns]
            if joint is None
            else forecast_of_levels(question, columns, joint, level)
        ),
        facts=lambda: [
            *_facts(dataset, pricing, ask, paid_steps, noises, subject.blocks, joint=joint is not None),
            *(advice_on(question, dataset, partial(_errors, dataset, goal)) if single else ()),
        ],
        asked=in_words(question, shape=dataset.record == "shape"),
        present=None if post is None else post.apply,
    )


def _subject(
    dataset: TableDataset,
    pricing: Pricing,
    paid_steps: tuple[PaidStep, ...],
    noises: tuple[StepNoise, ...],
    joint: PaidNoise | None,
) -> TableSubject:
    """Return what is measured; what cannot be written as SQL is refused."""
    question, columns = pricing.question, pricing.columns

    def captions() -> dict[str, str]:
        captions = {c.name: _stands_for(c, noises[c.step], pricing.level, dataset) for c in columns}
        return {name: text for name, text in captions.items() if text}

    kind = FoundBoundsSubject if search_steps(pricing.steps) else TableSubject
    subject = kind(
        asked=question,
        engine=dataset._engine,
        blocks=() if dataset.block_column is None else dataset.block_column.concerned(question),
        steps=pricing.steps,
        mechanisms=tuple(one.mechanism for one in paid_steps),
        noises=noises,
        columns=columns,
        captions=captions,
        omissions=lambda: (
            *left_out(question, pricing.who, paid_steps, dataset),
            *(text for _, text in _minimum(pricing, noises, dataset)),
        ),
        sampled=None if question.sample is None else share_of_sample(question.sample),
        rows_per_unit=None if dataset.identity.unit.per else pricing.who.total,
        levels=joint,
        minimum=pricing.minimum,
    )
    _ = subject.sql  # what cannot be written is refused now
    return subject


def _facts(
    dataset: TableDataset,
    pricing: Pricing,
    ask: Ask,
    paid_steps: tuple[PaidStep, ...],
    noises: tuple[StepNoise, ...],
    blocks: tuple[str, ...],
    *,
    joint: bool,
) -> list[tuple[str, str]]:
    warning = warn_of_delta(float(ask.delta), pricing.size) if ask.delta else None
    return [
        *facts_of(pricing.question, pricing.who, paid_steps, pricing.columns, dataset, joint=joint),
        *facts_of_blocks(dataset, blocks),
        *_minimum(pricing, noises, dataset),
        *([("delta", warning)] if warning else []),
    ]


def _errors(dataset: TableDataset, goal: Goal, question: TableQuestion) -> dict[str, float]:
    """Return the error of each column that a question would have at this price, for comparison.

    Ratios of errors do not depend on the number of rows, so that any large number stands for it.
    """
    pricing = Pricing.of(dataset, question, goal, added=False)
    [ask], [inner] = asks_of([pricing], [goal])
    if goal.within is not None:
        return {PRICE: float(ask.epsilon or 0)}
    paid_steps = calibrate(pricing.steps, pricing.who, inner, pricing.weights)
    noises = noises_of([pricing], [paid_steps])
    errors = {c.name: c.reading.expected(noises[c.step], pricing.level, _MANY_ROWS) for c in pricing.columns}
    return {name: error for name, error in errors.items() if error is not None}


def _minimum(pricing: Pricing, noises: tuple[StepNoise, ...], dataset: TableDataset) -> list[tuple[str, str]]:
    """Say which lines the curator's minimum hides, if there is one."""
    if pricing.minimum is None:
        return []
    return [("minimum", pricing.minimum.words(noises[pricing.minimum.step], dataset.identity.unit))]


def _stands_for(column: ReleasedColumn, noise: StepNoise, level: Fraction, dataset: TableDataset) -> str:
    """Say what a released column is, and what is known of its error beside the interval."""
    selection = noise.mechanisms[0]
    if isinstance(selection, KeySelection):
        return selected_sizes(selection, dataset.identity.unit)
    meaning = column.aggregate.stands_for(column.reading)
    if is_open(noise.statistic):
        return "; ".join(filter(None, (meaning, _picked_in_range(column, noise, level))))
    caption = column.reading.caption(noise, level)
    return f"{meaning}, {caption}" if caption else meaning


def _picked_in_range(column: ReleasedColumn, noise: StepNoise, level: Fraction) -> str:
    """Say of a quantile how far it may lie from its position; empty for what is not one."""
    rows = column.reading.rows_in_words(noise, level)
    most = f"rounded to one of at most {noise.statistic.size:,} values in the range that is found"
    return f"{most}, at most {rows} from the exact position" if rows else ""


def _forecast(column: ReleasedColumn, noise: StepNoise, level: Fraction, size: int | None) -> Forecast:
    reading = column.reading
    if is_open(noise.statistic):
        shares = noise.mechanisms[0].describe(noise.statistic.step)
        note = _picked_in_range(column, noise, level) or (
            "in shares of the range that is found, so its size is not known yet"
        )
        caution = "; ".join(filter(None, (reading.caution(noise, size), column.aggregate.caution)))
        return Forecast(column.name, column.aggregate.words, shares, None, note, caution)
    expected = reading.expected(noise, level, size)
    mechanism = noise.mechanisms[0].describe(noise.statistic.step)
    return Forecast(
        column.name,
        column.aggregate.words,
        mechanism,
        expected,
        reading.note(noise, level),
        "; ".join(filter(None, (reading.caution(noise, size), column.aggregate.caution))),
    )
