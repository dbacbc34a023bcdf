"""How the plans of a stream were made before there were questions; these calls go on working."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.core import Plan, Question
    from tacit.exact import Number
    from tacit.streams._alarm_days import AlarmDays
    from tacit.streams._series import Series


class FormerStreamPlans:
    """The part of a stream that plans in one step, as before."""

    __slots__ = ()

    if TYPE_CHECKING:
        daily: Callable[..., Question[Series]]
        silent_alarm: Callable[..., Question[AlarmDays]]

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        confidence: Number = 0.95,
        size: int | None = None,
        **asked: Any,
    ) -> Plan[Series]:
        """Plan the same question for every day: now ``daily(...).plan(...)``."""
        goal = {"epsilon": epsilon, "delta": delta or None, "rho": rho, "size": size}
        given: dict[str, Any] = {name: value for name, value in goal.items() if value is not None}
        if confidence != 0.95:
            given["confidence"] = confidence
        _warn("daily", given)
        return self.daily(**asked).plan(**given)

    def alarm_plan(self, *, epsilon: Number, **asked: Any) -> Plan[AlarmDays]:
        """Plan an alarm that releases yes or no each day: now ``silent_alarm(...).plan(...)``."""
        _warn("silent_alarm", {"epsilon": epsilon})
        return self.silent_alarm(**asked).plan(epsilon=epsilon)


def _warn(name: str, goal: dict[str, Any]) -> None:
    told = ", ".join(f"{one}={value!r}" for one, value in goal.items())
    warnings.warn(
        f"a stream is asked first and planned in a second step now: .{name}(...).plan({told})",
        DeprecationWarning,
        stacklevel=4,
    )
