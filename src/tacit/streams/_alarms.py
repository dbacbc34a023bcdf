"""The alarms of a stream: a threshold on noisy days, and a plan that answers yes or no each day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from tacit.streams._alarm import make_alarm
from tacit.streams._day_question import DaysQuestion
from tacit.streams._questions import SILENT_ALARM
from tacit.tables import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tacit.core import Plan, Question
    from tacit.exact import Number
    from tacit.streams._alarm import Alarm
    from tacit.streams._alarm_days import AlarmDays
    from tacit.streams._day_question import DayQuestion
    from tacit.streams._progress import BegunPlan
    from tacit.streams._series import Series
    from tacit.streams._stream import Stream
    from tacit.tables import Expr


class StreamAlarms:
    """The part of a stream that sounds alarms."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _begun(self, plan: Plan[Series] | None) -> BegunPlan: ...
        def _figures(
            self,
            aggregates: Mapping[str, Any],
            by: str | Sequence[str] | None,
            where: Expr | str | None,
        ) -> DayQuestion: ...

    def alarm(
        self,
        column: str | None = None,
        *,
        baseline: Number | Mapping[Any, Number] | None = None,
        days_before: int | None = None,
        false_alarm: Number = 0.05,
        window: Literal["day", "week"] = "day",
        plan: Plan[Series] | None = None,
    ) -> Alarm:
        """Set a threshold on the noisy days that a plan releases anyway. Free.

        Guarantee
        ---------
        If the true number of no day (and of no group) exceeds its baseline, the chance that the alarm rings
        at all over the horizon is at most ``false_alarm``. This counts the noise; chance in the true numbers
        is part of them, so declare a baseline with room for it.

        Parameters
        ----------
        column
            A count of the plan; not needed if it has one count.
        baseline
            The quiet level: a number that is public, or one for each group. Fix it before the days come in.
        days_before
            Instead of a baseline: the mean of so many released days before; the first days are not watched.
            This mean follows an outbreak: after so many days of it, the outbreak is the baseline.
        false_alarm
            The accepted chance of a false alarm over all days and groups together.
        window
            Watch each ``"day"``, or the sum of 7 days (``"week"``), whose baseline is that of 7 days.
        plan
            Which plan, if several were begun.

        Examples
        --------
        >>> import tacit as tc
        >>> flu = tc.stream(
        ...     None, name="flu", level="event", start="2026-01-01", days=365, budget=tc.Budget(epsilon=1)
        ... )
        >>> flu.begin(flu.daily(cases=tc.count(), focus="day").plan(epsilon=1))
        >>> flu.alarm("cases", baseline=40, false_alarm=0.01)
        the alarm rings if cases is at least 11 above the declared 40
        false alarms: at most 0.44 % over the whole horizon, if every day is quiet
        """
        return make_alarm(
            self._begun(plan), column, baseline=baseline, days_before=days_before, false_alarm=false_alarm,
            window=window,
        )  # fmt: skip

    def silent_alarm(
        self,
        *,
        baseline: Number,
        where: Expr | str | None = None,
        false_alarm: Number = 0.05,
        alarms: int = 1,
        since: object = None,
    ) -> Question[AlarmDays]:
        """Ask for an alarm that releases yes or no each day, and nothing else.

        Guarantee
        ---------
        All answers together, up to the last yes, cost epsilon once for one unit, in however many days the
        unit is. At person level this is better than `alarm` from about 3 days a person on.

        Parameters
        ----------
        baseline
            The quiet level of the count: a public number.
        where
            Count only rows for which this condition is true.
        false_alarm
            The accepted chance of a false alarm over all days together.
        alarms
            After so many alarms it ends; more alarms need more noise.
        since
            The first day that is watched; by default the first of the stream. After an alarm, ask for another
            one from the next day on, at its price.

        Examples
        --------
        >>> import tacit as tc
        >>> flu = tc.stream(
        ...     None, name="flu", unit="patient_id", level="person", most_days=20, start="2026-01-01",
        ...     days=365, limits={"rows": 1}, budget=tc.Budget(epsilon=1),
        ... )
        >>> dict(flu.silent_alarm(baseline=40, false_alarm=0.01).plan(epsilon=1).facts)["alarm"]
        'at 23 above the baseline, apart from the noise; ends after the first yes'
        """
        asked = {
            "figures": self._figures({"alarm": count()}, None, where), "baseline": baseline,
            "false_alarm": false_alarm, "alarms": alarms, "since": since,
        }  # fmt: skip
        return DaysQuestion(cast("Stream", self), SILENT_ALARM, SILENT_ALARM.read(asked))
