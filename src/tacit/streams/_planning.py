"""The planning of a stream: mechanisms for all days, cost and forecast, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tacit.core import ANY_TOTAL, Forecast, Goal, Plan, left_afterwards, members_of, warn_of_delta
from tacit.engines import KEPT
from tacit.errors import TacitError, bad_parameter
from tacit.exact import read_fraction
from tacit.fixes import Choose, Either, Set
from tacit.mechanisms import DiscreteGaussian, DiscreteLaplace, LinearNoise
from tacit.streams._choice import WINDOWS, choose_noise, read_focus
from tacit.streams._readings import WindowNoise
from tacit.streams._series import SUFFIXES
from tacit.streams._task import DaysWanted, StreamTask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import JSON
    from tacit.mechanisms import StreamNoise
    from tacit.streams._choice import Focus, StreamChoice
    from tacit.streams._series import Series
    from tacit.streams._stream import Stream
    from tacit.tables import TableSubject

__all__ = ["Charging", "StreamGoal", "make_stream_plan", "unseen_fact"]

Charging = Literal["run", "day"]
_FOCUS = {
    "day": "exact days",
    "week": "exact 7-day sums",
    "total": "exact running totals",
    "balanced": "days, 7-day sums and running totals equally",
}
_WORDS = {"day": "", "week": ", last 7 days", "total": ", all days so far, on the last day"}
_MOST_BLOCKS = 1_000  # a charge names at most so many blocks


@dataclass(frozen=True, slots=True)
class StreamGoal(Goal):
    """What a user gives to ``plan``: the total cost, what the noise is chosen for, how days are charged."""

    focus: Focus = "balanced"
    charge: Charging = "run"

    @classmethod
    def read(cls, *, focus: Any = "balanced", charge: Any = "run", **goal: Any) -> Any:  # type: ignore[override]
        """Read the goal of a stream."""
        from dataclasses import fields

        read = Goal.read(**goal, takes=ANY_TOTAL | {"size"})
        return cls(**{one.name: getattr(read, one.name) for one in fields(Goal)}, focus=focus, charge=charge)

    @classmethod
    def from_json(cls, document: Any, takes: Any = None) -> Any:
        """Read the goal back."""
        numbers = ("epsilon", "delta", "rho", "confidence")
        exact = {name: None if document[name] is None else read_fraction(document[name]) for name in numbers}
        return cls.read(**exact, **{name: document[name] for name in ("focus", "charge", "size")})

    def __post_init__(self) -> None:
        object.__setattr__(self, "focus", read_focus(self.focus))
        if self.charge not in {"run", "day"}:
            fix = Choose(("run", "day"), given=str(self.charge))
            raise bad_parameter("charge", "run or day", self.charge, fix=fix)

    def to_json(self) -> dict[str, JSON]:
        """Return the goal as JSON, numbers exactly."""
        own = {"focus": self.focus, "charge": self.charge, "size": self.size}
        return Goal.to_json(self) | own


def make_stream_plan(
    stream: Stream, pure: Plan[Any], concentrated: Plan[Any], request: JSON, goal: StreamGoal
) -> Plan[Series]:
    """Make the plan of all days from the plan of one day, once with epsilon and once with rho.

    Those two are never released: they say what one unit can change in one day, in L1 and in L2.
    """
    table: Any = members_of(pure)[0].task.subject
    other: Any = members_of(concentrated)[0].task.subject
    choice = choose_noise(
        _moves(table, other),
        days=stream.horizon.days,
        most_days=stream.most_days,
        apart=stream.apart,
        focus=goal.focus,
        epsilon=goal.epsilon,
        delta=goal.delta,
        rho=goal.rho,
    )
    daily = goal.charge == "day"
    if daily and stream.level == "person":
        raise TacitError(
            "not-allowed",
            "days cannot be charged one by one at the level person",
            why="a person may come on several days, so the charges of these days add up for this person",
            fix=Either(Set(charge="run"), Set(level="person-day")),
        )
    task = StreamTask(
        table, choice.mechanisms, stream.horizon, stream.facts, daily, _blocks(stream, daily=daily),
        stream._open_day, stream._marks, DaysWanted(),  # noqa: SLF001 - the parts of a stream
    )  # fmt: skip
    warning = warn_of_delta(float(goal.delta), goal.size) if goal.delta else ""
    made: Plan[Series] = Plan.of(
        stream,
        task,
        promised=goal.promised,
        forecast=lambda: _forecast(table, choice.mechanisms, goal),
        facts=lambda: [
            *_facts(stream, table, choice, goal),
            *(
                (name, f"on each day, {words}")
                for name, words in pure.facts
                if name == "limits" and not stream.unit.is_row
            ),
            *unseen_fact(stream, request),
            *([("delta", warning)] if warning else []),
            *_afterwards(stream, task, made),
        ],
        confidence=float(goal.confidence),
        asked=f"each day: {pure.asked.replace(f', where {KEPT}', '')}",
        request=lambda: request,
    )
    return made


def _afterwards(stream: Stream, task: StreamTask, plan: Plan[Series]) -> list[tuple[str, str]]:
    """Say what a charge of all days leaves to them; a plan that is charged as a whole says it by itself."""
    if not task.blocks:
        return []
    try:
        filter_ = stream._ledger.account(stream.identity.name).filter  # noqa: SLF001
    except TacitError:  # a ledger that is closed, or cannot be reached now
        return []
    return [("left afterwards", left_afterwards(filter_, plan.cost))]


def unseen_fact(stream: Stream, request: JSON) -> list[tuple[str, str]]:
    """Say which columns the plan names that were neither declared nor in any rows so far."""
    unseen = stream._unseen_columns(request)  # noqa: SLF001 - the parts of a stream
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


def _forecast(table: TableSubject, noises: Sequence[StreamNoise], goal: StreamGoal) -> list[Forecast]:
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
    stream: Stream, table: TableSubject, choice: StreamChoice, goal: StreamGoal
) -> list[tuple[str, str]]:
    """Say which days there are, who counts how often, how days are charged, and what was compared."""
    horizon, step = stream.horizon, float(table.steps[0].statistic.step)
    lines = [
        f"{words}: {' / '.join(f'{step * error:.3g}' for error in errors)}"
        for words, errors in choice.alternatives
    ]
    charged = {
        "run": "all days are charged at once, when the plan is begun",
        "day": "each day is charged by itself, when it is released",
    }
    return [
        ("days", f"{horizon.days:,}, from {horizon.start} to {horizon.last}"),
        ("protects", stream.promise),
        ("run", charged[goal.charge]),
        ("noise", f"chosen for {_FOCUS[goal.focus]}: {lines[0]}"),
        ("compared with", "; ".join(lines[1:]) or "nothing else"),
        ("these figures", "root mean square error of a day / 7 days / all days so far, over the horizon"),
    ]
