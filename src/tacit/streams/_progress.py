"""The progress of a plan that was begun: which days its stored instalments hold, and the draw of more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tacit.core import members_of
from tacit.errors import TacitError
from tacit.fixes import Code
from tacit.streams._run_state import RunState
from tacit.streams._stream_subject import StreamSubject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.core import Plan, Release, Run
    from tacit.streams._horizon import Horizon
    from tacit.streams._series import Series


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
        wanted = self.subject.wanted
        wanted.paid.add(1)  # the charge of the run itself
        if self.subject.daily:
            for day in range(self.through() + 1, through + 1):
                self._pay(day, ledger, account)
        wanted.through = through
        try:
            drawn = self._run.next()
        finally:
            wanted.through = 0  # an instalment that is drawn in another way, without the lock, has no days
        entry: Any = drawn.certificate.fields["ledger"]
        if entry["instalment"] == self._claimed + 1:  # nobody else drew one
            self._claimed += 1
            self._note(self._claimed, drawn)
        return drawn if drawn.content.days == through else self.release_of(through)

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
        shown = replace(release, content=self.subject.up_to(release.content, day, level))
        return shown.bound_by([member.ledger for member in members_of(self.plan)])

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
