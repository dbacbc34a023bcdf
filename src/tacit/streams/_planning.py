"""The planning of a stream: mechanisms for all days, cost and forecast, from public facts alone.

A question about a stream asks each day's rows the same. A series asks one measure of every day by its name,
which is what services and commands offer of a stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from tacit.core import Content, Draft, Forecast, Question, left_afterwards, members_of, warn_of_delta
from tacit.engines import KEPT
from tacit.errors import TacitError
from tacit.fixes import Choose, Declare, Either, Say, Set
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace, LinearNoise
from tacit.parameters import Needed, Omitted
from tacit.streams._noise_choice import WINDOWS, WindowNoise, choose_noise
from tacit.streams._series import SUFFIXES
from tacit.streams._stream_run import StreamSubject
from tacit.tables import FoundBoundsSubject, TableSubject, count, count_units, mean
from tacit.tables import sum as sum_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tacit.core import JSON, AnswerTable, Goal, Plan
    from tacit.mechanisms import StreamNoise
    from tacit.streams._noise_choice import Focus, StreamChoice
    from tacit.streams._series import Series
    from tacit.streams._stream import Stream


C = TypeVar("C", bound=Content)
#: What a series measures of each day: the name of its column, how it is asked, and whether of a column.
MEASURES: Final[dict[str, tuple[str, Callable[..., Any], bool]]] = {
    "count": ("count", count, False),
    "count_units": ("units", count_units, False),
    "sum": ("sum", sum_of, True),
    "mean": ("mean", mean, True),
}


@dataclass(frozen=True, slots=True)
class DayQuestion:
    """The question of one day, planned once with epsilon and once with rho.

    The two plans are never released: they say what one unit can change in one day, in L1 and in L2.
    """

    pure: Plan[AnswerTable]
    concentrated: Plan[AnswerTable]

    @property
    def words(self) -> str:
        """The question in words."""
        return self.pure.asked.replace(f", where {KEPT}", "")

    @property
    def document(self) -> JSON:
        """The question as the table of a day writes it."""
        request: Any = self.pure.to_json()["request"]
        return cast("JSON", request["question"])

    @property
    def table(self) -> TableSubject:
        """What is measured of one day, with noise for epsilon."""
        return _table_of(self.pure)

    @property
    def concentrated_table(self) -> TableSubject:
        """What is measured of one day, with noise for rho."""
        return _table_of(self.concentrated)


@dataclass(frozen=True, repr=False, eq=False)
class DaysQuestion(Question[C]):
    """A question for all days, whose words name what is asked of each."""

    @property
    def words(self) -> str:
        """The question in words."""
        return f"{super().words}: {self.arguments['figures'].words}"


def _table_of(plan: Plan[AnswerTable]) -> TableSubject:
    subject = members_of(plan)[0].task.subject
    if isinstance(subject, FoundBoundsSubject):
        raise TacitError(
            "not-allowed",
            "a stream cannot find bounds",
            why="all days have the same bounds, so they must be known before the first day",
            fix=Declare("bounds", (0, 30), column=next(iter(subject.searched)), function="tc.stream"),
        )
    assert isinstance(subject, TableSubject)  # noqa: S101 - a pure plan of one table has no private groups
    return subject


Charging = Literal["run", "day"]
_FOCUS = {
    "day": "exact days",
    "week": "exact 7-day sums",
    "total": "exact running totals",
    "balanced": "days, 7-day sums and running totals equally",
}
_CHARGED = {
    "run": "all days are charged at once, when the plan is begun",
    "day": "each day is charged by itself, when it is released",
}
_WORDS = {"day": "", "week": ", last 7 days", "total": ", all days so far, on the last day"}
_MAX_BLOCKS = 1_000  # a charge names at most so many blocks


def draft_daily(
    stream: Stream, goal: Goal, *, figures: DayQuestion, focus: Focus, charge: Charging
) -> Draft[Series]:
    """Draft the plan of all days from the question of one day."""
    table = figures.table
    choice = choose_noise(
        _sensitivities(table, figures.concentrated_table),
        days=stream.horizon.days,
        most_days=stream.most_days,
        apart=stream.apart,
        focus=focus,
        epsilon=goal.epsilon,
        delta=goal.delta,
        rho=goal.rho,
    )
    daily = charge == "day"
    if daily and stream.level == "person":
        raise TacitError(
            "not-allowed",
            "days cannot be charged one by one at the level person",
            why="a person may come on several days, so the charges of these days add up for this person",
            fix=Either(Set(charge="run"), Set(level="person-day")),
        )
    subject = StreamSubject(
        table=table, noises=choice.mechanisms, horizon=stream.horizon, facts=stream.facts, daily=daily,
        blocks=_blocks(stream, daily=daily), open_day=stream._open_day, marks=stream._marks,  # noqa: SLF001
    )  # fmt: skip
    warning = warn_of_delta(float(goal.delta), goal.size) if goal.delta else ""
    return Draft(
        task=subject.task,
        asked=f"each day: {figures.words}",
        forecast=lambda: _forecast(table, choice.mechanisms, goal),
        facts=lambda: [
            *_facts(stream, table, choice, focus, charge),
            *(
                (name, f"on each day, {words}")
                for name, words in figures.pure.facts
                if name == "limits" and not stream.unit.is_row
            ),
            *unseen_fact(stream, figures),
            *([("delta", warning)] if warning else []),
            *_afterwards(stream, subject),
        ],
    )


def _afterwards(stream: Stream, subject: StreamSubject) -> list[tuple[str, str]]:
    """Say what a charge of all days leaves to them; a plan that is charged as a whole says it by itself."""
    if not subject.blocks:
        return []
    try:
        filter_ = stream._ledger.account(stream.identity.name).filter  # noqa: SLF001
    except TacitError:  # a ledger that is closed, or cannot be reached now
        return []
    return [("left afterwards", left_afterwards(filter_, reduce(add, [one.cost for one in subject.noises])))]


def unseen_fact(stream: Stream, figures: DayQuestion) -> list[tuple[str, str]]:
    """Say which columns the plan names that were neither declared nor in any rows so far."""
    unseen = stream._unseen_columns(figures.document)  # noqa: SLF001 - the parts of a stream
    return [("columns not seen yet", ", ".join(unseen))] if unseen else []


def _sensitivities(pure: TableSubject, concentrated: TableSubject) -> list[tuple[int, int]]:
    """Return how far one unit moves one day of each step: in L1, and the square of L2."""
    moves = []
    for pure_step, concentrated_step in zip(pure.mechanisms, concentrated.mechanisms, strict=True):
        if not isinstance(pure_step, DiscreteLaplace) or not isinstance(concentrated_step, DiscreteGaussian):
            raise TacitError(
                "not-allowed",
                "a stream can add up counts, sums, means, variances and histograms, but not picked values",
                why="days are added up to 7-day sums and running totals, and a picked value cannot be added",
                fix="ask for counts, sums, means, variances or histograms",
            )
        moves.append((int(pure_step.sensitivity), int(concentrated_step.sensitivity_squared)))
    return moves


def _blocks(stream: Stream, *, daily: bool) -> tuple[str, ...]:
    """Return the blocks that the run is charged to: its first day, all its days, or all of the data."""
    days = stream.horizon.days
    if daily:
        return (stream.horizon.name(1),)
    if stream.level == "person" or days > _MAX_BLOCKS or stream._hosted:  # noqa: SLF001
        return ()
    return tuple(stream.horizon.name(day) for day in range(1, days + 1))


def _forecast(table: TableSubject, noises: Sequence[StreamNoise], goal: Goal) -> list[Forecast]:
    """Say what to expect of a day, of 7 days and of all days; never less than on the last day."""
    forecasts = []
    for column in table.columns:
        noise, statistic = noises[column.step], table.steps[column.step].statistic
        for name, window in WINDOWS.items():
            law = WindowNoise(statistic, (), _expected_error(noise, window))
            size = None if goal.size is None else goal.size * {"day": 1, "week": 7}.get(name, noise.days)
            expected = column.reading.expected(law, goal.confidence, size)
            forecasts.append(
                Forecast(
                    column.name + SUFFIXES[name],
                    column.aggregate.words + _WORDS[name],
                    noise.describe(statistic.step),
                    expected,
                    column.reading.note(law, goal.confidence) if expected is None else "",
                )
            )
    return forecasts


def _expected_error(noise: StreamNoise, window: int | None) -> LinearNoise:
    """Return the noise of the last day; of a day or 7 days that of an average day, where it is larger.

    The noise of a Toeplitz matrix never falls from one day to the next; that of a tree may.
    """
    last_day = noise.noise_on(window, noise.days, noise.days)
    if window is None or math.sqrt(2) * last_day.scale >= (1 - 1e-9) * noise.spread(window):
        return last_day
    return LinearNoise(normal=noise.spread(window))


def _facts(
    stream: Stream, table: TableSubject, choice: StreamChoice, focus: Focus, charge: Charging
) -> list[tuple[str, str]]:
    """Say which days there are, who counts how often, how days are charged, and what was compared."""
    horizon, step = stream.horizon, float(table.steps[0].statistic.step)
    lines = [
        f"{words}: {' / '.join(f'{step * error:.3g}' for error in errors)}"
        for words, errors in choice.alternatives
    ]
    return [
        ("days", f"{horizon.days:,}, from {horizon.start} to {horizon.last}"),
        ("protects", stream.promise),
        ("run", _CHARGED[charge]),
        ("noise", f"chosen for {_FOCUS[focus]}: {lines[0]}"),
        ("compared with", "; ".join(lines[1:]) or "nothing else"),
        ("these figures", "root mean square error of a day / 7 days / all days so far, over the horizon"),
    ]


def draft_series(
    stream: Stream, goal: Goal, *, focus: Focus | None, size: int | None, through: str | None, **asked: Any
) -> Draft[Series]:
    """Draft one measure of every day; columns that were not declared are refused.

    The plan is the same for all days ``through`` which days are to be drawn.
    """
    if through is not None:
        stream.horizon.number(through)
    figures = figures_of_series(stream, **asked)
    unseen = stream._unseen_columns(figures.document)  # noqa: SLF001 - the parts of a stream
    if unseen:
        declared = tuple(sorted(stream._declared_columns))  # noqa: SLF001
        raise TacitError(
            "unknown-column",
            f"the stream declares no column {unseen[0]!r}",
            why="a misspelt column would make the series useless after its charge; nothing was charged",
            fix=Choose(declared, given=unseen[0]) if declared else Say("ask for a column to be declared"),
        )
    sized = replace(goal, size=size)
    draft = draft_daily(stream, sized, figures=figures, focus=focus or "balanced", charge="run")
    return replace(draft, goal=sized)


def figures_of_series(
    stream: Stream, *, measure: str, column: str | None, by: str | None, where: str | None, **_rest: Any
) -> DayQuestion:
    """Return what a series asks of one day."""
    name, aggregate, needs_column = MEASURES[measure]
    if needs_column:
        Needed[str](
            "temp", f"for the measure {measure}", why="it is computed from a column with bounds"
        ).read("column", column)
    else:
        Omitted(f"for the measure {measure}", why="it counts rows or units").read("column", column)
    figure = aggregate(*([] if column is None else [column]))
    return stream._figures({name: figure}, by, where)  # noqa: SLF001
