"""The stream: rows that come in day by day, and releases of days that one plan pays for.

Each day comes in once, with the same columns, and the status says for people which days came in and which
were released. Refusals of a day's table speak in the words of a stream: facts are declared by ``tc.stream``.
"""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from tacit.core import Dataset, fixes_of
from tacit.engines import KEPT
from tacit.errors import TacitError
from tacit.fixes import Choose, Code, Either, Say, Set
from tacit.streams._alarm import make_alarm
from tacit.streams._folder import REPORTS, Admission, file_digest, folder_lock, rows_as_source
from tacit.streams._planning import DayQuestion, DaysQuestion
from tacit.streams._questions import DAILY, QUESTIONS, SILENT_ALARM
from tacit.streams._stream_run import BegunPlan
from tacit.tables import col, count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from tacit.core import JSON, Plan, Question, QuestionKind, Release
    from tacit.engines import Engine
    from tacit.exact import Number
    from tacit.streams._alarm import Alarm, AlarmDays
    from tacit.streams._folder import StreamFolder
    from tacit.streams._horizon import Horizon
    from tacit.streams._noise_choice import Focus
    from tacit.streams._planning import Charging
    from tacit.streams._series import Series
    from tacit.tables import Expr, TableDataset


@dataclass(frozen=True, slots=True, repr=False)
class StreamStatus:
    """Where a stream stands; nothing in it depends on what the rows say.

    Parameters
    ----------
    name
        The stream.
    horizon
        Its days.
    appended
        The days whose rows came in.
    plans
        Each plan that was begun, in words, and the number of the last day that it has released.
    left
        What is left of the budget.
    """

    name: str
    horizon: Horizon
    appended: tuple[str, ...]
    plans: tuple[tuple[str, int], ...]
    left: str

    @property
    def missing(self) -> tuple[str, ...]:
        """The days before the last one that came in whose rows have not come in."""
        if not self.appended:
            return ()
        last_number, arrived = self.horizon.number(self.appended[-1]), set(self.appended)
        names = [self.horizon.name(number) for number in range(1, last_number + 1)]
        return tuple(name for name in names if name not in arrived)

    def __repr__(self) -> str:
        came = f"{len(self.appended):,} of {self.horizon.days:,} days came in"
        came += f", the last one {self.appended[-1]}" if self.appended else ""
        lines = [f"stream {self.name}: {came}"]
        if self.missing:
            more = f" and {len(self.missing) - 3} more" if len(self.missing) > 3 else ""
            lines.append(f"missing: {', '.join(self.missing[:3])}{more}")
        for number, (words, through) in enumerate(self.plans, 1):
            so_far = f"released up to {self.horizon.name(through)}" if through else "nothing released yet"
            lines.append(f"plan {number}, {words}: {so_far}")
        if not self.plans:
            lines.append("no plan was begun")
        return "\n".join([*lines, f"left: {self.left}"])


def fixes_of_streams() -> AbstractContextManager[None]:
    """Let refusals of a day's table say what to write for a stream."""
    return fixes_of("tc.stream")


#: Names that readers give to columns without one.
_UNNAMED = re.compile(r"\s*|column\d+|Unnamed: \d+|__index_level_\d+__")
#: Who is protected: one row, what one person does on one day, or everything that one person does.
Level = Literal["event", "person-day", "person"]


@dataclass(slots=True)
class _Session:
    """What one process knows of a stream; everything in it can be read again from the disk."""

    columns: tuple[str, ...] | None
    begun: dict[str, Any]
    #: Whether rows came in with a header, which names the columns whether or not somebody came.
    headed: bool = False
    files: dict[str, str] = field(default_factory=dict)
    open: dict[str, BegunPlan] = field(default_factory=dict)
    admission: Admission | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stream(Dataset):
    """Rows that come in day by day, the unit that is protected, and public facts. Made by `tacit.stream`.

    Parameters
    ----------
    horizon
        The days for which rows may come in.
    level
        Who is protected.
    most_days, apart
        At person level: in how many days one person counts, and how many days apart at least.
    declared
        The public facts, as the stream's folder keeps them.

    Examples
    --------
    >>> import tacit as tc
    >>> visits = tc.stream(
    ...     None, name="visits", level="person", unit="pid", most_days=2, start="2026-01-01", days=90,
    ...     limits={"rows": 1}, budget=tc.Budget(rho=0.5),
    ... )
    >>> plan = visits.daily(visitors=tc.count_units(), focus="total").plan(rho=0.5)
    >>> visits.begin(plan)
    >>> visits.append("2026-01-01", [{"pid": 1}, {"pid": 2}])
    >>> visits.append("2026-01-02", [{"pid": 2}, {"pid": 3}])
    >>> release = visits.release("2026-01-02")
    >>> release.days, len(release.to_dict()["visitors"])
    (2, 2)
    >>> visits.status()
    stream visits: 2 of 90 days came in, the last one 2026-01-02
    plan 1, each day: visitors = count_units, of visits: released up to 2026-01-02
    left: rho ... of 0.5
    """

    kind: ClassVar[str] = "stream"
    questions: ClassVar[tuple[QuestionKind[Any], ...]] = QUESTIONS

    horizon: Horizon
    level: Level
    most_days: int
    apart: int
    declared: dict[str, JSON]
    _folder: StreamFolder
    _protected: Callable[[object], TableDataset]
    _session: _Session
    #: Whether a service looks after the rows: plans follow from declared facts alone, and one charge pays.
    _hosted: bool = False

    @property
    def facts(self) -> dict[str, JSON]:
        """The public facts that decide what one unit can change."""
        more: dict[str, JSON] = {"most_days": self.most_days, "apart": self.apart}
        return {"level": self.level, **(more if self.level == "person" else {})}

    @property
    def promise(self) -> str:
        """Who is protected, in words."""
        noun = self.unit.noun
        if self.level == "event":
            return "each row"
        if self.level == "person-day":
            return f"everything that one {noun.removesuffix(' and day')} does on one day"
        often = "1 day" if self.most_days == 1 else f"{self.most_days} days"
        gap = f", at least {self.apart} days apart" if self.apart > 1 and self.most_days > 1 else ""
        return f"each {noun}, who counts on at most {often}{gap}"

    def daily(
        self,
        *,
        by: str | Sequence[str] | None = None,
        where: Expr | str | None = None,
        focus: Focus = "balanced",
        charge: Charging = "run",
        **aggregates: Any,
    ) -> Question[Series]:
        """Ask the same question for every day of the horizon.

        Guarantee
        ---------
        All releases of the plan together cost what the plan states, for one unit, however many days are
        released and however the rows of a day depend on earlier releases.

        Parameters
        ----------
        by
            Columns with public keys to group by.
        where
            Count only rows for which this condition is true: an expression, or SQL text.
        focus
            Which error the noise is chosen for: of a ``"day"``, of a 7-day sum (``"week"``), of the running
            ``"total"``, or of all three (``"balanced"``). The plan prints the alternatives.
        charge
            ``"run"``: all days are charged when the plan is begun. ``"day"``: each day is charged when it is
            released, to its own part of the budget (not if whole persons are protected).
        **aggregates
            What is measured: ``cases=tc.count()``, ``temp=tc.mean("temp")``.

        Examples
        --------
        >>> import tacit as tc
        >>> flu = tc.stream(
        ...     None, name="flu", level="event", start="2026-01-01", days=365, budget=tc.Budget(epsilon=1)
        ... )
        >>> plan = flu.daily(cases=tc.count(), focus="week").plan(epsilon=1)
        >>> plan.cost.spend.epsilon     # for all days together
        Fraction(1, 1)
        """
        figures = self._figures(aggregates, by, where)
        return DaysQuestion(self, DAILY, DAILY.read({"figures": figures, "focus": focus, "charge": charge}))

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
        arguments = {
            "figures": self._figures({"alarm": count()}, None, where), "baseline": baseline,
            "false_alarm": false_alarm, "alarms": alarms, "since": since,
        }  # fmt: skip
        return DaysQuestion(self, SILENT_ALARM, SILENT_ALARM.read(arguments))

    def append(self, day: object, rows: object, *, replace: bool = False, again: bool = False) -> None:
        """Store the rows of a day, all of them at once; the day is then complete.

        Guarantee: when this returns, the rows are on the disk; if it does not return, they are there as a
        whole or not at all. Nothing is charged.

        Parameters
        ----------
        day
            A day of the horizon: a date, or text such as ``"2026-01-31"``. Each day comes in once.
        rows
            A pandas, Polars or Arrow table, a CSV or Parquet file, a list of dictionaries, or a dictionary of
            columns. An empty list says that nobody came.
        replace
            Whether these rows replace those of a day that came in before and that no plan has released.
        again
            Whether a file may have come in under another day before, with the same content.
        """
        self._append_day(day, rows, replace=replace, again=again)

    def begin(self, plan: Plan[Series], *, who: str = "", purpose: str = "") -> None:
        """Charge a plan, or go on with one that was charged before; the folder remembers it.

        With ``charge="day"`` only the first day is charged now, and each other day when it is released. If
        the plan names columns that were not declared, a day must have come in as a table or a file, so that
        a misspelt column is refused before the charge. Dictionaries do not count, since an empty list of them
        names no columns: what can be planned would show whether anybody came.
        """
        self._refresh()
        request = cast("Any", plan.to_json()["request"])
        if self._session.headed:
            self._day_question(request)  # refuses columns that the rows lack
        elif unseen := self._unseen_columns(request["question"]):
            raise TacitError(
                "unknown-column",
                f"no table has come in yet, and the plan names columns that were not declared: "
                f"{', '.join(unseen)}",
                why="a misspelt column would make the plan useless after its charge; a list of dictionaries "
                "names its columns only if somebody came, so it does not count; nothing was charged",
                fix=Either(Say("append a day as a table with these columns before you begin the plan"),
                           Set(types=dict.fromkeys(unseen, "text"))),
            )  # fmt: skip
        run = plan.run(who=who, purpose=purpose)
        if plan.hash not in self._session.begun:
            with self._lock():  # written before anybody can draw from it, so that released days stay closed
                self._refresh()
                entry = {**plan.to_json(), "who": who, "purpose": purpose}
                state = BegunPlan(plan, run, self.horizon).state
                if self.level == "person" and state.through and not state.marks:
                    entry["elsewhere"] = True  # another folder has its marks; stored days can be read here
                self._session.begun[plan.hash] = entry
                self._store()

    def release(self, day: object, plan: Plan[Series] | None = None) -> Release[Series]:
        """Release all days up to a day that were not released before, with noise; return the series.

        Guarantee: each day is drawn once, stored and only then returned. Asking again returns what is
        stored. If the process stops in between, the next call, in any process, goes on: no day is lost, and
        none is released twice.

        Parameters
        ----------
        day
            A day. Its rows and the rows of all days before it must have come in.
        plan
            Which plan, if several were begun.
        """
        number = self.horizon.number(day)
        begun = self._begun(plan)
        before = begun.through()
        if number > before:
            self._refuse_forgotten(before)
            missing = next(
                (n for n in range(before + 1, number + 1) if not self._folder.has(self.horizon.name(n))), None
            )
            if missing is not None:
                raise TacitError(
                    "day-missing",
                    f"the rows of {self.horizon.name(missing)} have not come in",
                    why="a running total needs its own day and all days before it; nothing was charged",
                    fix=Code(f'stream.append("{self.horizon.name(missing)}", []) says that nobody came'),
                )
            with self._lock():  # no day is replaced while it is drawn
                self._refuse_other_marks(begun, number)
                return begun.draw(number, self._ledger, self.identity.name)
        return begun.release_of(number)

    def status(self) -> StreamStatus:
        """Say which days came in, which were released by which plan, and what is left of the budget. Free."""
        days = self._folder.days()
        begun = [self._begun_with(hash_) for hash_ in self._session.begun]
        return StreamStatus(
            self.name,
            self.horizon,
            tuple(days),
            tuple((one.plan.asked, one.through()) for one in begun),
            str(self.remaining),
        )

    @property
    def plans(self) -> tuple[Plan[Series], ...]:
        """The plans that were begun, in this process or another, in order."""
        return tuple(self._begun_with(one).plan for one in self._session.begun)

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
        arguments: dict[str, Any] = {name: value for name, value in goal.items() if value is not None}
        if confidence != 0.95:
            arguments["confidence"] = confidence
        _warn("daily", arguments)
        return self.daily(**asked).plan(**arguments)

    def alarm_plan(self, *, epsilon: Number, **asked: Any) -> Plan[AlarmDays]:
        """Plan an alarm that releases yes or no each day: now ``silent_alarm(...).plan(...)``."""
        _warn("silent_alarm", {"epsilon": epsilon})
        return self.silent_alarm(**asked).plan(epsilon=epsilon)

    def __repr__(self) -> str:
        return (
            f"stream {self.name}, protects {self.promise}; {self.horizon.days:,} days from "
            f"{self.horizon.start} to {self.horizon.last}, {len(self._folder.days()):,} came in\n"
            "ask: .daily(n=tc.count()).plan(epsilon=1), .begin(plan), .append(day, rows), .release(day)"
            + "".join(f"\nbudget: {note}" for note in self.account_notes)
        )

    def _figures(
        self, aggregates: Mapping[str, Any], by: str | Sequence[str] | None, where: Expr | str | None
    ) -> DayQuestion:
        """Return the question of one day."""
        names = [by] if isinstance(by, str) else list(by or ())
        with fixes_of_streams():
            rows = self._rows(where)
            query = (rows.group_by(*names) if names else rows).agg(**aggregates)
            return DayQuestion(query.plan(epsilon=1), query.plan(rho=1))

    def _rows(self, where: Expr | str | None) -> Any:
        """Return the rows of one day that count."""
        table = self._template()
        rows = table[table.main]
        if self.level == "person":
            rows = rows.where(col(KEPT))
        return rows if where is None else rows.where(where)

    def _day_question(self, request: Any) -> DayQuestion:
        """Read the question of one day back from a plan's request."""
        return self._one_day(self._template(), request["question"])

    def _one_day(self, table: TableDataset, question: JSON) -> DayQuestion:
        """Ask a table, which stands for any day, the question of one day."""
        none = {"delta": "0", "within": None, "confidence": "19/20", "size": None, "weights": None}
        request = {"question": question, "post": None}
        try:
            return DayQuestion(
                table._rebuild({**request, "goal": {"epsilon": "1", "rho": None, **none}}),  # noqa: SLF001
                table._rebuild({**request, "goal": {"epsilon": None, "rho": "1", **none}}),  # noqa: SLF001
            )
        except KeyError as missing:
            raise TacitError(
                "unknown-column",
                f"the rows have no column {missing.args[0]!r}",
                why="the plan needs it",
                fix=Choose(tuple(c for c in table.columns if c != KEPT), given=str(missing.args[0])),
            ) from None

    def _template(self) -> TableDataset:
        """Return the table of one day, without its rows; some day's columns, if one came in."""
        recent = self._folder.days()[:8] if self._session.headed and not self._hosted else []
        days = [day for day in recent if self._folder.columns(day)]
        table = self._protected(self._folder.path(days[0] if days else "none"))
        return replace(table, record=self.record)  # what the ledger keeps of a question

    def _open_day(self, number: int) -> Engine | None:
        """Return the engine with the rows of a day; None if nobody came. Called after the charge."""
        day = self.horizon.name(number)
        if not self._folder.columns(day):
            return None
        return self._protected(self._folder.path(day))._engine  # noqa: SLF001 - after the charge

    def _append_day(
        self, day: object, rows: object, *, replace: bool = False, again: bool = False, booked: bool = False
    ) -> None:
        """Store the rows of a day; ``booked`` if the book of reports gives them."""
        number = self.horizon.number(day)
        name = self.horizon.name(number)
        with self._lock(), tempfile.TemporaryDirectory() as scratch:
            if not booked:
                self._refuse_beside_book()
            self._refuse_declared_since()
            self._refresh()
            if self._is_closed(number) or (self._folder.has(name) and not replace):
                raise self._came_before(number)
            digest = None if again or booked else self._digest(name, rows)
            source = rows_as_source(rows, Path(scratch))
            if self._folder.days() in ([], [name]):
                self._session.columns, self._session.headed = None, False  # these rows are the first ones
            unit, barred, rule = None, None, ""
            if self.level == "person":
                admission = self._admission(name)
                unit, rule = self.unit.column, admission.rule
                barred = lambda owners: admission.barred(number, owners)  # noqa: E731
            check = self._check_columns
            if not self._folder.append(name, source, check, unit, barred, note=rule, replace=replace):
                raise self._came_before(number)
            self._note_rows(name, digest, headed=not booked and _has_header(rows))

    def _note_rows(self, name: str, digest: str | None, *, headed: bool) -> None:
        """Write down the columns of the first rows, and which file a day came from."""
        session = self._session
        before = session.columns, session.files.get(name), session.headed
        session.headed = session.headed or headed
        if session.columns is None:
            session.columns = self._folder.columns(name) or None
        session.files.pop(name, None)
        if digest is not None and not self._folder.is_empty(name):
            session.files[name] = digest
        if (session.columns, session.files.get(name), session.headed) != before:
            self._store()

    def _refuse_declared_since(self) -> None:
        """Refuse rows if the stream was declared differently since: other people would count in them."""
        stored = self._folder.load()
        before: Any = None if stored is None else dict(stored["declaration"])
        same = not self._hosted if before is None else all(
            before.get(name) == value for name, value in self.declared.items() if name != "ledger"
        )  # fmt: skip
        if not same:
            raise TacitError(
                "stream-differs",
                "the stream was declared differently in the meantime",
                why="days have come in under one declaration only; nothing was stored",
                fix=Say("open the stream again"),
            )

    def _refuse_beside_book(self) -> None:
        if (self._folder.place / REPORTS / "lag.json").exists():
            raise TacitError(
                "bad-parameter",
                "the rows of this stream must go through its book of reports",
                why="rows that the book holds for a day would be lost; nothing was stored",
                fix=Code("book.report(day, {event_day: rows})"),
            )

    def _digest(self, name: str, rows: object) -> str | None:
        """Return the digest of a file, or refuse one that came in under another day; None for other rows."""
        if not isinstance(rows, str | os.PathLike) or not Path(rows).is_file():
            return None
        digest = file_digest(Path(rows))
        other = next((day for day, one in self._session.files.items() if one == digest and day != name), None)
        if other is not None and self._folder.has(other):
            raise TacitError(
                "rows-twice",
                f"the same rows were appended for {other}",
                why="a row belongs to one day; nothing was stored",
                fix=Either(Say("give the file of this day"), Set(again=True)),
            )
        return digest

    def _admission(self, but: str) -> Admission:
        """Return who counts in which days, all but the one that comes in now."""
        begun = [self._begun_with(progress) for progress in self._session.begun]
        self._refuse_forgotten(max((progress.through() for progress in begun), default=0))
        for progress in begun:
            self._refuse_other_marks(progress)
        return self._refreshed(but)

    def _refreshed(self, but: str = "") -> Admission:
        """Return who counts in which days, as the files say now, but for one."""
        if self._session.admission is None:
            self._session.admission = Admission(self.unit.column, self.most_days, self.apart)
        admission: Admission = self._session.admission
        admission.refresh(self._folder, self.horizon, but)
        return admission

    def _marks(self, through: int) -> str:
        """Return a digest of who counts on the days up to one, at person level; nothing at other levels."""
        if self.level != "person":
            return ""
        digest = self._refreshed().digest(through)
        if digest is None:
            raise self._marks_differ(through)
        return digest

    def _refuse_other_marks(self, begun: BegunPlan, through: int = 0) -> None:
        """At person level, refuse to go on with a run if others have counted on the days that it released.

        Days up to ``through``, which are to be drawn, must fit to them.

        The secret of a run that an earlier version of Tacit drew does not hold its marks yet. The run goes on
        in a folder that knew it already, and gets the marks of this folder when its next days are drawn.
        """
        self._marks(through)
        if self.level != "person" or not (state := begun.state).through:
            return
        entry = self._session.begun.get(begun.plan.hash, {})
        if entry.get("elsewhere") if not state.marks else state.marks != self._marks(state.through):
            raise self._marks_differ(state.through)

    def _marks_differ(self, through: int) -> TacitError:
        days = "1 day" if self.most_days == 1 else f"{self.most_days} days"
        return TacitError(
            "stream-differs",
            f"the files of the days up to {self.horizon.name(through)} are not those that were released",
            why=f"the files show who has counted, and each {self.unit.noun} counts on at most {days}; "
            "nothing was stored, drawn or charged",
            fix=Say(
                "go on in the folder from which these days were released, or restore the whole folder from "
                "its latest backup"
            ),
        )

    def _refuse_forgotten(self, released: int) -> None:
        """At person level, refuse to go on without the file of a released day: it says who counted on it."""
        days = map(self.horizon.name, range(1, released + 1)) if self.level == "person" else ()
        gone = next((day for day in days if not self._folder.has(day)), None)
        if gone is not None:
            raise TacitError(
                "day-missing",
                f"the rows of {gone} were released, and their file is gone",
                why="the file shows who counted on that day, and each person counts on a bounded number of "
                "days; nothing was stored or charged",
                fix=Say(f"restore {self._folder.path(gone)} from a backup"),
            )

    @property
    def _declared_columns(self) -> set[str]:
        """The columns that the declaration names."""
        columns = {c for name in ("bounds", "keys", "types") for c in cast("Any", self.declared[name])}
        return columns | {*cast("Any", self.declared["never_null"]), *self.unit.columns} - {"day"}

    def _check_columns(self, names: Sequence[str]) -> None:
        """Refuse rows that lack a column of the stream, or have others; names of columns are public."""
        expected = self._session.columns
        needed = self._declared_columns
        columns = set(names)
        lacking = sorted((set(expected) if expected else needed) - columns)
        reserved = {name for name in columns if name.lower() == KEPT}
        extra = sorted(columns - set(expected)) if expected else sorted(reserved)
        if lacking or extra:
            word = f"lack the column {lacking[0]!r}" if lacking else f"have another column, {extra[0]!r}"
            raise TacitError(
                "rows-differ",
                f"the rows {word}",
                why="all days have the same columns; nothing was stored",
                fix=Choose(tuple(expected or sorted(needed)), given=(extra or [""])[0])
                if expected or needed
                else Say("rename the column"),
            )
        unnamed = [name for name in names if _UNNAMED.fullmatch(name) and name not in needed]
        if unnamed and not expected:
            raise TacitError(
                "rows-differ",
                f"the rows have a column without a name, which was read as {unnamed[0]!r}",
                why="the columns of the first rows are those of all days; nothing was stored",
                fix=Say(
                    "name the columns in the first line of the file, and drop the column with row numbers"
                ),
            )
        if expected is None:
            self._check_plans(names)

    def _check_plans(self, names: Sequence[str]) -> None:
        """Refuse the first rows if they lack a column that a plan needs which was begun before."""
        table = self._protected(SimpleNamespace(columns=[*names, KEPT]))
        for begun in self._session.begun.values():
            try:
                self._one_day(table, begun["request"]["question"])
            except TacitError as refusal:
                raise TacitError(
                    "rows-differ",
                    f"the rows do not fit a plan that was begun: {refusal.what}",
                    why="the plan could not release this day; nothing was stored",
                    fix=refusal.fix,
                ) from None

    def _unseen_columns(self, question: JSON) -> list[str]:
        """Return the columns that a question names and that nobody knows: not declared, in no rows yet."""
        columns = self._session.columns if self._session.headed and not self._hosted else None
        available, unseen = [*(columns or sorted(self._declared_columns)), KEPT], list[str]()
        while True:
            table = self._protected(SimpleNamespace(columns=[*available, *unseen]))
            try:
                self._one_day(table, question)
            except TacitError as refusal:
                name = refusal.fix.given if isinstance(refusal.fix, Choose) else ""
                if refusal.code != "unknown-column" or not name or name in unseen:
                    raise
                unseen.append(name)
            else:
                return unseen

    def _came_before(self, number: int) -> TacitError:
        day, closed = self.horizon.name(number), self._is_closed(number)
        late = Say("put late rows into a separate stream, or count each row on the day of its report")
        return TacitError(
            "day-closed" if closed else "day-twice",
            f"the rows of {day} were appended before" + (", and the day was released" if closed else ""),
            why="each day is appended once, with all its rows; nothing was stored or charged",
            fix=late if closed else Either(Set(replace=True), late),
        )

    def _is_closed(self, number: int) -> bool:
        """Return whether a day was released, also if its file was removed since."""
        return any(self._begun_with(one).through() >= number for one in self._session.begun)

    def _refresh(self) -> None:
        """Read what other processes have written since."""
        stored = self._folder.load()
        if stored is not None:
            session = self._session
            session.begun = {one["plan"]: one for one in stored["begun"]} | session.begun
            session.columns = None if stored["columns"] is None else tuple(stored["columns"])
            session.files = dict(stored.get("files", {}))
            session.headed = stored.get("headed", session.columns is not None)

    def _begun(self, plan: Plan[Series] | None) -> BegunPlan:
        """Return a plan that was begun, as this process goes on with it."""
        if not self._session.begun or (plan is not None and plan.hash not in self._session.begun):
            self._refresh()
        begun = self._session.begun
        if plan is None and len(begun) == 1:
            return self._begun_with(next(iter(begun)))
        if plan is not None and plan.hash in begun:
            return self._begun_with(plan.hash)
        if plan is None and begun:
            raise TacitError(
                "not-begun",
                f"{len(begun)} plans were begun, and none was named",
                fix=Code("stream.release(day, plan)"),
            )
        raise TacitError(
            "not-begun",
            "no plan was begun" if plan is None else "this plan was not begun",
            why="a day is released only after the plan was charged",
            fix=Code("stream.begin(plan)"),
        )

    def _begun_with(self, hash_: str) -> BegunPlan:
        runs = self._session.open
        if hash_ not in runs:
            stored = self._session.begun[hash_]
            plan = self.plan_from({k: stored[k] for k in ("schema", "dataset", "request", "plan")})
            run = plan.run(who=stored["who"], purpose=stored["purpose"])
            runs[hash_] = BegunPlan(plan, run, self.horizon)
        return runs[hash_]

    def _lock(self) -> AbstractContextManager[None]:
        """Let one process at a time change the folder."""
        return folder_lock(self._folder.place / "stream.lock")

    def _store(self) -> None:
        """Write what is known now; the caller holds the lock and has read what others have written."""
        session = self._session
        self._folder.store({
            "declaration": self.declared,
            "columns": None if session.columns is None else list(session.columns),
            "headed": session.headed,
            "files": session.files,
            "begun": list(session.begun.values()),
        })  # fmt: skip


def _has_header(rows: object) -> bool:
    """Return whether rows name their columns also if there are none; a list of dictionaries does not."""
    return isinstance(rows, str | os.PathLike) or not isinstance(rows, list | tuple)


def _warn(name: str, goal: dict[str, Any]) -> None:
    told = ", ".join(f"{one}={value!r}" for one, value in goal.items())
    warnings.warn(
        f"a stream is asked first and planned in a second step now: .{name}(...).plan({told})",
        DeprecationWarning,
        stacklevel=4,
    )
