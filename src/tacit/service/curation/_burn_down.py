"""The burn-down of a budget: what was spent at which time, from the ledger's log."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.service.curation._amounts import main_name

if TYPE_CHECKING:
    from tacit.ledger import Ledger

_POINTS = 120
_LONG = 2_000  # entries of a log that takes a while to read
_FRESH = 10.0  # seconds for which the points of a long log are not made again


class BurnDown:
    """The points of each account's burn-down, kept until the log grows; of a long log for 10 seconds."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[int, float, list[dict[str, Any]]]] = {}

    def points(self, ledger: Ledger, account: str) -> list[dict[str, Any]]:
        """Return times with what was spent by then: exact text and float; at most 120 points."""
        key, head, now = (ledger.id, account), ledger.head.count, time.monotonic()
        kept = self._kept.get(key)
        if kept is not None and (kept[0] == head or (head > _LONG and now - kept[1] < _FRESH)):
            return kept[2]
        states = ledger.filters(account)
        chosen = states if len(states) <= _POINTS else _thinned(states)
        points = []
        for at, filter_ in chosen:
            name, left = main_name(filter_.budget), filter_.remaining
            spent = getattr(filter_.budget, name) - (getattr(left, name) or Fraction(0))
            points.append({"at": at, "spent": str(spent), "value": float(spent)})
        self._kept[key] = (head, now, points)
        return points


def _thinned(states: list[Any]) -> list[Any]:
    """Keep the first, the last and evenly spaced points between."""
    step = (len(states) - 1) / (_POINTS - 1)
    return [states[round(place * step)] for place in range(_POINTS)]
