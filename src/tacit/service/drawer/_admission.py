"""How many draws a boundary admits, by their estimated work.

An answer that is not ready at its time fails and pauses its dataset for everybody. So a dataset admits no
more work than its process can do in the time of a slot, and one person gets a share of it. The estimate is a
function of the plan, which consists of public facts. It is made before anything is charged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tacit.errors import TacitError
from tacit.service.drawer._clock import Slot
from tacit.service.drawer._plan_work import work_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tacit.core import Plan
    from tacit.service._database import ServiceRow
    from tacit.service._settings import ServiceSettings
    from tacit.service.drawer._outcomes import Flight

_MOST_LAG: Final = 10_000


@dataclass(frozen=True, slots=True)
class WorkLimits:
    """How much estimated work a dataset takes on at a time.

    Parameters
    ----------
    total
        Of all draws that hold a slot.
    share
        Of one plan, and of all draws of one person that hold a slot.
    """

    total: float
    share: float

    @classmethod
    def of(cls, settings: ServiceSettings, lag: int) -> WorkLimits:
        """Return the limits of a dataset with a lag: they grow with the time that a draw may compute.

        Examples
        --------
        >>> from tacit.service import ServiceSettings
        >>> WorkLimits.of(ServiceSettings(), lag=4)
        WorkLimits(total=900.0, share=450.0)
        """
        slot = Slot.at(0, lag, settings.tick)
        total = settings.work * max(0.0, slot.store_at - slot.start_at)
        return cls(total, total * float(settings.share))


def check_work(settings: ServiceSettings, lag: int, plan: Plan[Any]) -> int:
    """Refuse a plan that is too much work for one draw; return its estimated work.

    Guarantee: nothing is charged, and the refusal is a function of the plan and of the settings.
    """
    work = work_of(plan)
    if work > WorkLimits.of(settings, lag).share:
        raise too_much_work(settings, lag, work)
    return work


def too_much_work(settings: ServiceSettings, lag: int, work: float) -> TacitError:
    """Return the refusal of a question that is more work than one draw may be."""
    times = work / WorkLimits.of(settings, lag).share
    return TacitError(
        "question-too-large",
        f"this question is about {times:.2g} times the work that one draw of this dataset may be",
        why="an answer that is not ready at its time would pause the dataset for everybody",
        fix=f"ask in smaller parts: fewer columns or groups at once{_raise_lag(settings, work)}",
    )


def _raise_lag(settings: ServiceSettings, work: float) -> str:
    """Return the smallest lag with which the question would be admitted, as advice to the curator."""
    for lag in range(2, _MOST_LAG):
        if WorkLimits.of(settings, lag).share >= work:
            return f"; or ask the curator to raise the lag of the dataset to {lag}"
    return ""


@dataclass(slots=True)
class BoundaryAdmission:
    """What one boundary admits of a dataset's waiting queries, beside the draws that hold a slot already.

    Guarantee: what is admitted is a function of requests, settings, policies and pauses. A plan that holds a
    slot is not admitted again, so that nobody's charge waits for somebody else's computation.

    Parameters
    ----------
    width
        How many draws may hold a slot.
    limits
        How much work they may be, in all and for one person.
    """

    width: int
    limits: WorkLimits
    plans: set[str] = field(default_factory=set)
    work: dict[str, float] = field(default_factory=dict)  # by person
    draws: int = 0
    full: bool = False

    def hold(self, flight: Flight) -> None:
        """Count a draw that holds a slot."""
        self._count(flight.plan, flight.person, flight.work)

    def admits(self, row: ServiceRow) -> bool:
        """Whether a waiting query is admitted now; if so, it holds a slot from now on.

        A person beyond the own share waits alone. Where the whole dataset has no room, all later queries wait
        too, so that small ones cannot keep a large one waiting for ever.
        """
        plan, person, work = str(row["plan"]), str(row["person"]), float(row["work"])
        if self.full or self.draws >= self.width or plan in self.plans:
            return False
        own = self.work.get(person, 0.0)
        if own and own + work > self.limits.share:
            return False
        if self.draws and sum(self.work.values()) + work > self.limits.total:
            self.full = True
            return False
        self._count(plan, person, work)
        return True

    def _count(self, plan: str, person: str, work: float) -> None:
        self.draws += 1
        self.plans.add(plan)
        self.work[person] = self.work.get(person, 0.0) + work


def lag_of(policy: Mapping[str, Any], settings: ServiceSettings) -> int:
    """Return after how many boundaries an answer of a dataset leaves."""
    return int(policy.get("lag") or settings.lag)
