"""The clock by which answers leave: the times of a draw, and the ledger that keeps to them.

The times are functions of a draw's boundary and of public facts. A draw that is admitted at boundary k is
charged from ``k``, computed from ``k + 1/4``, stored in the middle between two boundaries after about four
fifths of the lag, and answered at ``k + lag``, all in ticks. Nothing that others can see, not even the number
of an entry in the ledger, then depends on how long it was computed.

The number of an entry stands in certificates. If an answer were stored as soon as it is computed, the numbers
of other people's entries would tell how long it took. So a `TimedLedger` charges a draw at once, computes it
from one public time on, and stores it at another; what is not ready by then is never stored.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tacit.ledger import Ledger, LedgerRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from fractions import Fraction

    from tacit.ledger import Instalment, StoredRelease


_RUNG = 8  # ticks
_STEP = 0.2  # seconds; the wall clock may be set while somebody sleeps
T = TypeVar("T")
_SLOT = threading.local()


class WallClock:
    """The time of day, in seconds since the epoch; all processes of the service share it."""

    def now(self) -> float:
        """Return this moment."""
        return time.time()

    def sleep_until(self, moment: float) -> None:
        """Return at a moment, or at once if it has passed."""
        while (remaining := moment - self.now()) > 0:
            time.sleep(min(remaining, _STEP))


_CLOCK: Final[list[WallClock]] = [WallClock()]


def now() -> float:
    """Return this moment by the clock of the service."""
    return _CLOCK[0].now()


def use_clock(clock: WallClock) -> WallClock:
    """Use another clock in this process (tests do), and return the one that was used before."""
    before, _CLOCK[0] = _CLOCK[0], clock
    return before


def sleep_until(moment: float) -> None:
    """Sleep by the clock of the service."""
    _CLOCK[0].sleep_until(moment)


def boundary_after(moment: float, tick: Fraction) -> int:
    """Return the number of the first boundary after a moment.

    Examples
    --------
    >>> from fractions import Fraction
    >>> boundary_after(10.0, Fraction(1, 2)), boundary_after(10.4, Fraction(1, 2))
    (21, 21)
    """
    return math.floor(moment / float(tick)) + 1


def rung_after(started: float, tick: Fraction) -> float:
    """Return when something that ends now is shown to have ended: a rung of a ladder from its start on.

    How long it took depends on the data; who waits learns only between which rungs it was: 8 ticks, 32, 128
    and so on.

    Examples
    --------
    >>> from fractions import Fraction
    >>> rung_after(now(), Fraction(1, 2)) - now() <= 4
    True
    """
    wait_for = _RUNG
    while started + wait_for * float(tick) < now():
        wait_for *= 4
    return started + wait_for * float(tick)


@dataclass(frozen=True, slots=True)
class Slot:
    """When a draw is computed, stored and answered.

    Parameters
    ----------
    admitted
        The number of the boundary.
    start_at, store_at, answer_at
        When computing begins, when the answer is stored, and when it leaves.
    """

    admitted: int
    start_at: float
    store_at: float
    answer_at: float

    @classmethod
    def at(cls, boundary: int, lag: int, tick: Fraction) -> Slot:
        """Return the times of a draw that a boundary admits.

        Examples
        --------
        >>> from fractions import Fraction
        >>> Slot.at(20, 4, Fraction(1, 2))
        Slot(admitted=20, start_at=10.125, store_at=11.25, answer_at=12.0)
        """
        t, store = float(tick), math.floor(0.8 * lag - 0.5) + 0.5
        return cls(boundary, (boundary + 0.25) * t, (boundary + store) * t, (boundary + lag) * t)


@contextmanager
def drawing_at(slot: Slot) -> Iterator[None]:
    """Let the draws of this thread follow the times of a slot."""
    _SLOT.slot = slot
    try:
        yield
    finally:
        del _SLOT.slot


def _in_slot(slot: Slot, compute: Callable[..., T]) -> Callable[..., T]:
    """Compute from ``start_at`` on, and return, or fail, at ``store_at``."""

    def computed(*args: Any) -> T:
        sleep_until(slot.start_at)
        try:
            draw = compute(*args)
            if now() > slot.store_at:
                raise TimeoutError  # becomes the one opaque failure
            return draw
        finally:
            sleep_until(slot.store_at)

    return computed


class TimedRun(LedgerRun):
    """A run that claims an instalment at once, computes from ``start_at`` and stores at ``store_at``."""

    def __init__(self, run: LedgerRun, slot: Slot) -> None:
        vars(self).update(vars(run))
        self._slot = slot

    def draw(self, compute: Callable[..., Any]) -> Instalment:
        """Claim, compute, store, return, as `LedgerRun.draw` does, at the times of a slot."""
        return super().draw(_in_slot(self._slot, compute))


class TimedLedger(Ledger):
    """A ledger that charges at once, computes from ``start_at`` and stores, or fails, at ``store_at``."""

    def draw(self, *args: Any, compute: Callable[..., Any], **more: Any) -> StoredRelease:
        """Charge, compute, store, return, as `Ledger.draw` does, at the times of this thread's slot."""
        slot: Slot | None = getattr(_SLOT, "slot", None)
        return super().draw(*args, compute=compute if slot is None else _in_slot(slot, compute), **more)

    def run(self, *args: Any, **more: Any) -> LedgerRun:
        """Charge a run, or go on with it; its instalments follow the times of this thread's slot."""
        slot: Slot | None = getattr(_SLOT, "slot", None)
        run = super().run(*args, **more)
        return run if slot is None else TimedRun(run, slot)
