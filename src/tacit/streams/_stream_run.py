"""The run of a plan for a stream: what it measures, its state, and the draw of more days.

The exact numbers of each day go to mechanisms that span the whole run. An instalment releases the rows of all
days that have come in since the last stored one, up to the day that was asked for. So a draw that was lost in
a crash does not lose its days: they are in the next instalment. Each row is stored once and handed out only
after that.

The state is how many days the run has released, and at person level who has counted on them. It is the first
part of the run's secret, so it is encrypted, and it is stored in one commit with each instalment. A folder
whose marks are others cannot go on with the run: a person would count on more days than were paid for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tacit.bisection import first_integer
from tacit.core import RunTask, SharedReadings, Step, members_of
from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.streams._noise_choice import read_windows
from tacit.streams._series import Series

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from tacit.core import JSON, DrawnBefore, Noisy, Plan, Release, Run
    from tacit.engines import Engine
    from tacit.mechanisms import StreamNoise
    from tacit.streams._horizon import Horizon
    from tacit.tables import TableSubject


#: Instalments beyond one for each day: so many draws may be lost before a day is.
SPARE = 64


@dataclass(frozen=True, slots=True)
class RunState:
    """How far the stored instalments of a run go.

    Parameters
    ----------
    through
        The number of the last day that was released; 0 for none.
    marks
        A digest of who counted on these days; empty below the person level, and in runs that an earlier
        version of Tacit drew.

    Examples
    --------
    >>> RunState.read(b""), RunState.read(b"12"), RunState(12, "a1b2").write()
    (RunState(through=0, marks=''), RunState(through=12, marks=''), b'12 a1b2')
    """

    through: int
    marks: str = ""

    @classmethod
    def read(cls, state: bytes) -> Self:
        """Read what `write` wrote; nothing stands for a run without a stored instalment."""
        through, _, marks = state.decode().partition(" ")
        return cls(int(through or 0), marks)

    def write(self) -> bytes:
        """Return the state as bytes, whose length is public."""
        return f"{self.through} {self.marks}".rstrip().encode()


@dataclass(slots=True)
class DaysWanted:
    """Up to which day the next instalment goes, and which days are paid for."""

    through: int = 0
    paid: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class NewDays:
    """What an instalment reads: the exact numbers of its days, and the state of the run after it.

    ``exact`` has one entry for each day: step, group, number.
    """

    exact: list[list[list[list[int]]]]
    left: bytes


def _of_step(step: int, days: NewDays, _noisy: object) -> list[list[list[int]]]:
    """Return the numbers of one step: day, group, number."""
    return [day[step] for day in days.exact]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSubject:
    """What a plan of all days measures, and how its rows are read.

    Parameters
    ----------
    table
        The question of one day.
    noises
        The mechanism of each of its steps, over all days.
    horizon
        The days.
    facts
        Level, and in how many days one unit can be.
    daily
        Whether each day is charged by itself, when it is released.
    blocks
        The blocks that the run is charged to; none stands for all of the data.
    open_day
        Returns the engine with the rows of a day, or None if nobody came.
    marks
        Returns a digest of who counts on the days up to one; empty below the person level.
    since
        The number of the first day that is measured.
    wanted
        Up to which day the next instalment goes.
    """

    table: TableSubject
    noises: tuple[StreamNoise, ...] = ()
    horizon: Horizon
    facts: Mapping[str, JSON]
    daily: bool = False
    blocks: tuple[str, ...] = ()
    open_day: Callable[[int], Engine | None]
    marks: Callable[[int], str]
    since: int = 1
    wanted: DaysWanted = field(default_factory=DaysWanted)

    @property
    def document(self) -> dict[str, JSON]:
        """What is measured each day, of which days, and how the days are charged."""
        return {
            "stream": {
                "start": self.horizon.start.isoformat(),
                "days": self.horizon.days,
                "charge": "day" if self.daily else "run",
                **self.facts,
            },
            "table": self.table.document,
            **self.more,
        }

    @property
    def more(self) -> dict[str, JSON]:
        """What else decides on the integers."""
        return {}

    @property
    def steps(self) -> tuple[Step[NewDays], ...]:
        """The steps of every instalment: each mechanism gets the numbers of the new days."""
        return tuple(Step(noise, partial(_of_step, step)) for step, noise in enumerate(self.noises))

    @property
    def task(self) -> RunTask[NewDays, Any]:
        """The task of all days, with some instalments to spare."""
        steps = self.steps
        return RunTask(
            document=lambda: self.document, statements=lambda: self.table.sql, blocks=self.blocks,
            instalments=self.horizon.days + SPARE, steps_of=lambda _: steps, open=self.new_days,
            reading=self.reading, left=lambda days: days.left, composition="once", subject=self,
        )  # fmt: skip

    def new_days(self, before: DrawnBefore) -> NewDays:
        """Read the days that are wanted and were not released yet.

        The marks of the released days must be those that the run was drawn with. Whoever draws checks this
        before; the run may have gone on elsewhere since.
        """
        state = RunState.read(before.state)
        if state.marks not in {"", self.marks(state.through)}:
            raise RuntimeError("others counted on the released days")
        through = max(state.through, self.wanted.through)
        run_state = RunState(through, self.marks(through)).write()
        new = range(max(state.through + 1, self.since), self.wanted.through + 1)
        if self.daily and not self.wanted.paid.issuperset(new):
            raise RuntimeError("a day was not paid for")
        return NewDays([self._integers(day) for day in new], run_state)

    def _integers(self, day: int) -> list[list[list[int]]]:
        """Return the exact numbers of one day: step, group, number."""
        engine = self.open_day(day)
        if engine is None:
            groups = len(self.table.asked.keys or ()) if self.table.asked.by else 1
            return [[[0] * step.statistic.size for _ in range(groups)] for step in self.table.steps]
        try:
            task = self.table.on(engine)
            with SharedReadings.opened() as readings:
                data = task.open(readings)
                integers = [step.exact(data, ()) for step in task.steps]
        finally:
            engine.close()
        return integers

    def reading(self, number: int, noisy: Mapping[int, Sequence[Noisy]], confidence: Fraction) -> Any:
        """Read all days up to the last one of an instalment."""
        stored = [noisy[one] for one in range(1, number + 1) if one in noisy]
        rows = [
            np.array([row for own in stored for row in own[step]], dtype=np.float64)
            for step in range(len(self.noises))
        ]
        return self._series(self._days_of(len(rows[0])), rows, confidence)

    def up_to(self, content: Any, day: int, confidence: Fraction) -> Any:
        """Return a release of later days as it would be if it ended with a day: its rows up to there."""
        rows = [own[: noise.rows(day)] for own, noise in zip(content.rows, self.noises, strict=True)]
        return self._series(day, rows, confidence)

    def _series(self, days: int, rows: list[Any], confidence: Fraction) -> Series:
        return Series(
            days, lambda: read_windows(self.table, self.noises, rows, self.horizon, confidence), rows
        )

    def _days_of(self, rows: int) -> int:
        """Return how many days so many rows stand for."""
        noise = self.noises[0]
        return first_integer(lambda days: noise.rows(days) > rows, 0, self.horizon.days + 1) - 1


class BegunPlan:
    """A plan that was charged, and how far its releases go."""

    def __init__(self, plan: Plan[Series], run: Run[Series], horizon: Horizon) -> None:
        self.plan = plan
        self._run = run
        self._horizon = horizon
        self.subject = subject_of(plan)
        self._claimed = 0  # instalments that were looked at, and are stored or lost for certain
        self._ends: list[tuple[int, int]] = []  # the number of a stored instalment, and its last day

    def through(self) -> int:
        """Return the number of the last day that is stored; 0 for none."""
        claimed = self._run.instalments - self._run.remaining
        if claimed > self._claimed:
            self._look(claimed)
        return self._ends[-1][1] if self._ends else 0

    @property
    def state(self) -> RunState:
        """How far the stored instalments go, and who counted on their days; from the run's secret."""
        return RunState.read(self._run.state)

    def _look(self, claimed: int) -> None:
        """Read how far instalments go that this process did not draw; lost ones go nowhere.

        The last one may still be in the making elsewhere, and is looked at again: it is lost for certain only
        when a later one was started.
        """
        for number in range(self._claimed + 1, claimed + 1):
            try:
                self._note(number, self._run[number])
            except TacitError as error:
                if error.code != "instalment-lost":
                    raise
                if number == claimed:
                    return
            self._claimed = max(self._claimed, number)

    def _note(self, number: int, release: Release[Series]) -> None:
        if not self._ends or release.content.days > self._ends[-1][1]:
            self._ends.append((number, release.content.days))

    def draw(self, through: int, ledger: Any, account: str) -> Release[Series]:
        """Pay for the days that are charged one by one, draw the rows of all days up to one, return them."""
        days_wanted = self.subject.wanted
        days_wanted.paid.add(1)  # the charge of the run itself
        if self.subject.daily:
            for day in range(self.through() + 1, through + 1):
                self._pay(day, ledger, account)
        days_wanted.through = through
        try:
            instalment = self._run.next()
        finally:
            days_wanted.through = (
                0  # an instalment that is drawn in another way, without the lock, has no days
            )
        entry: Any = instalment.certificate.fields["ledger"]
        if entry["instalment"] == self._claimed + 1:  # nobody else drew one
            self._claimed += 1
            self._note(self._claimed, instalment)
        return instalment if instalment.content.days == through else self.release_of(through)

    def _pay(self, day: int, ledger: Any, account: str) -> None:
        """Charge one day to its own block; asking again is free."""
        if day not in self.subject.wanted.paid:
            name = self._horizon.name(day)
            ledger.charge(
                account,
                self.plan.cost,
                plan=self.plan.hash,
                asked=self.plan.asked,
                key=f"{self.plan.hash}:{name}",
                blocks=(name,),
            )
            self.subject.wanted.paid.add(day)

    def release_of(self, day: int) -> Release[Series]:
        """Return the stored release that a day was in, up to this day."""
        self.through()
        number = next(number for number, last in self._ends if last >= day)
        release = self._run[number]
        if release.content.days == day:
            return release
        level = self.plan.confidence
        release_shown = replace(release, content=self.subject.up_to(release.content, day, level))
        return release_shown.bound_by([member.ledger for member in members_of(self.plan)])

    def rows(self) -> tuple[Sequence[Any], int]:
        """Return the noisy rows of each step so far, and the number of the last day in them."""
        through = self.through()
        return (self.release_of(through).content.rows if through else ()), through


def subject_of(plan: Plan[Any]) -> StreamSubject:
    """Return what the plan of a stream measures."""
    subject = members_of(plan)[0].task.subject
    if not isinstance(subject, StreamSubject):
        raise TacitError(
            "not-allowed",
            "this is not a plan of a stream",
            fix=Code("stream.daily(n=tc.count()).plan(epsilon=1)"),
        )
    return subject
