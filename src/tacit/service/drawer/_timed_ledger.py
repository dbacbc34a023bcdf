"""A ledger whose draws are computed and stored at public times.

The number of an entry stands in certificates. If an answer were stored as soon as it is computed, the numbers
of other people's entries would tell how long it took. So a draw is charged at once, computed from one public
time on, and stored at another; what is not ready by then is never stored.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.ledger import Ledger, LedgerRun
from tacit.service.drawer._clock import now, sleep_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tacit.ledger import Instalment, StoredRelease
    from tacit.service.drawer._clock import Slot

T = TypeVar("T")
_SLOT = threading.local()


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

    def computed(*given: Any) -> T:
        sleep_until(slot.start_at)
        try:
            made = compute(*given)
            if now() > slot.store_at:
                raise TimeoutError  # becomes the one opaque failure
            return made
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

    def draw(self, *given: Any, compute: Callable[..., Any], **more: Any) -> StoredRelease:
        """Charge, compute, store, return, as `Ledger.draw` does, at the times of this thread's slot."""
        slot: Slot | None = getattr(_SLOT, "slot", None)
        return super().draw(*given, compute=compute if slot is None else _in_slot(slot, compute), **more)

    def run(self, *given: Any, **more: Any) -> LedgerRun:
        """Charge a run, or go on with it; its instalments follow the times of this thread's slot."""
        slot: Slot | None = getattr(_SLOT, "slot", None)
        made = super().run(*given, **more)
        return made if slot is None else TimedRun(made, slot)
