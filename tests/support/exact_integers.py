"""The exact integers of a task, without noise: what tests compare between neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.core import SharedReadings, members_of
from tacit.core._task import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.core import Plan, Task

__all__ = ["exact_of", "exact_of_plan"]


def _echo(_position: int, exact: Any) -> Any:
    return plain(exact)


def exact_of(task: Task[Any, Any], noisy: Callable[[int, Any], Any] = _echo) -> list[Any]:
    """Return the exact integers of every step, all parts of a batch one after the other.

    ``noisy`` stands in for the mechanisms: from a step's position and its exact integers it makes what the
    later steps see. By default they see the exact ones.
    """
    with SharedReadings.opened() as readings:
        return _exact(task, readings, noisy)


def _exact(task: Task[Any, Any], readings: SharedReadings, noisy: Callable[[int, Any], Any]) -> list[Any]:
    if task.parts:
        return [exact for part in task.parts for exact in _exact(part, readings, noisy)]
    data, seen, found = task.open(readings), [], []
    for position, step in enumerate(task.steps):
        found.append(step.exact(data, seen))
        seen.append(noisy(position, found[-1]))
    return found


def exact_of_plan(plan: Plan[Any], noisy: Callable[[int, Any], Any] = _echo) -> list[Any]:
    """Return the exact integers of a plan of one dataset."""
    return exact_of(members_of(plan)[0].task, noisy)
