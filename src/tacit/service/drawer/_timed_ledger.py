"""A ledger whose draws are computed and stored at public times.

The number of an entry stands in certificates. If an answer were stored as soon as it is computed, the numbers
of other people's entries would tell how long it took. So a draw is charged at once, computed from one public
time on, and stored at another; what is not ready by then is never stored.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tacit.ledger import Ledger
from tacit.service.drawer._clock import now, sleep_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tacit.ledger import Receipt, StoredRelease
    from tacit.service.drawer._clock import Slot

__all__ = ["TimedLedger", "drawing_at"]

_SLOT = threading.local()


@contextmanager
def drawing_at(slot: Slot) -> Iterator[None]:
    """Let the draws of this thread follow the times of a slot."""
    _SLOT.slot = slot
    try:
        yield
    finally:
        del _SLOT.slot


class TimedLedger(Ledger):
    """A ledger that charges at once, computes from ``start_at`` and stores, or fails, at ``store_at``."""

    def draw(
        self, *given: Any, compute: Callable[[Receipt], bytes | Mapping[str, object]], **more: Any
    ) -> StoredRelease:
        """Charge, compute, store, return, as `Ledger.draw` does, at the times of this thread's slot."""
        slot: Slot | None = getattr(_SLOT, "slot", None)
        if slot is None:
            return super().draw(*given, compute=compute, **more)

        def computed(receipt: Receipt) -> bytes | Mapping[str, object]:
            sleep_until(slot.start_at)
            try:
                made = compute(receipt)
                if now() > slot.store_at:
                    raise TimeoutError  # becomes the one opaque failure
                return made
            finally:
                sleep_until(slot.store_at)

        return super().draw(*given, compute=computed, **more)
