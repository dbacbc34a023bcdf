"""The planning of a stream: mechanisms for all days, cost and forecast, from public facts alone."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Literal

from tacit.core import Draft, Forecast, left_afterwards, warn_of_delta
from tacit.errors import TacitError
from tacit.fixes import Either, Set
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace, LinearNoise
from tacit.streams._choice import WINDOWS, choose_noise
from tacit.streams._readings import WindowNoise
from tacit.streams._series import SUFFIXES
from tacit.streams._stream_subject import StreamSubject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import Goal
    from tacit.mechanisms import StreamNoise
    from tacit.streams._choice import Focus, StreamChoice
    from tacit.streams._day_question import DayQuestion
    from tacit.streams._series import Series
    from tacit.streams._stream import Stream
    from tacit.tables import TableSubject

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
_MOST_BLOCKS = 1_000  # a charge names at most so many blocks


def draft_daily(
    stream: Stream, goal: Goal, *, figures: DayQuestion, focus: Focus, charge: Charging
) -> Draft[Series]:
    """Draft the plan of all days from the question of one day."""
    table = figures.table
    choice = choose_noise(
        _moves(table, figures.concentrated_table),
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


def _moves(pure: TableSubject, concentrated: TableSubject) -> list[tuple[int, int]]:
    """Return how far one unit moves one day of each step: in L1, and the square of L2."""
    moves = []
    for one, other in zip(pure.mechanisms, concentrated.mechanisms, strict=True):
        if not isinstance(one, DiscreteLaplace) or not isinstance(other, DiscreteGaussian):
            raise TacitError(
                "not-allowed",
                "a stream can add up counts, sums, means, variances and histograms, but not picked values",
                why="days are added up to 7-day sums and running totals, and a picked value cannot be added",
                fix="ask for counts, sums, means, variances or histograms",
            )
        moves.append((int(one.sensitivity), int(other.sensitivity_squared)))
    return moves


def _blocks(stream: Stream, *, daily: bool) -> tuple[str, ...]:
    """Return the blocks that the run is charged to: its first day, all its days, or all of the data."""
    days = stream.horizon.days
    if daily:
        return (stream.horizon.name(1),)
    if stream.level == "person" or days > _MOST_BLOCKS or stream._hosted:  # noqa: SLF001
        return ()
    return tuple(stream.horizon.name(day) for day in range(1, days + 1))


def _forecast(table: TableSubject, noises: Sequence[StreamNoise], goal: Goal) -> list[Forecast]:
    """Say what to expect of a day, of 7 days and of all days; never less than on the last day."""
    found = []
    for column in table.columns:
        noise, statistic = noises[column.step], table.steps[column.step].statistic
        for name, window in WINDOWS.items():
            law = WindowNoise(statistic, (), _to_expect(noise, window))
            size = None if goal.size is None else goal.size * {"day": 1, "week": 7}.get(name, noise.days)
            expected = column.reading.expected(law, goal.confidence, size)
            found.append(
                Forecast(
                    column.name + SUFFIXES[name],
                    column.aggregate.words + _WORDS[name],
                    noise.describe(statistic.step),
                    expected,
                    column.reading.note(law, goal.confidence) if expected is None else "",
                )
            )
    return found


def _to_expect(noise: StreamNoise, window: int | None) -> LinearNoise:
    """Return the noise of the last day; of a day or 7 days that of an average day, where it is larger.

    The noise of a dial never falls from one day to the next; that of a tree may.
    """
    last = noise.noise_on(window, noise.days, noise.days)
    if window is None or math.sqrt(2) * last.scale >= (1 - 1e-9) * noise.spread(window):
        return last
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
