"""The stream: rows that come in day by day, and releases of days that one plan pays for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from tacit.core import Dataset
from tacit.engines import KEPT
from tacit.errors import TacitError
from tacit.fixes import Choose, Code, Either, Say, Set
from tacit.streams._admission import folder_lock
from tacit.streams._alarms import StreamAlarms
from tacit.streams._day_question import DayQuestion, DaysQuestion
from tacit.streams._former_plans import FormerStreamPlans
from tacit.streams._incoming import StreamRows
from tacit.streams._progress import BegunPlan
from tacit.streams._questions import DAILY, QUESTIONS
from tacit.streams._status import StreamStatus
from tacit.streams._stream_fixes import fixes_of_streams
from tacit.tables import col

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from tacit.core import JSON, Plan, Question, QuestionKind, Release
    from tacit.engines import Engine
    from tacit.streams._admission import Admission
    from tacit.streams._choice import Focus
    from tacit.streams._folder import StreamFolder
    from tacit.streams._horizon import Horizon
    from tacit.streams._planning import Charging
    from tacit.streams._series import Series
    from tacit.tables import Expr, TableDataset

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
class Stream(StreamRows, StreamAlarms, FormerStreamPlans, Dataset):
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

    def _figures(
        self, aggregates: Mapping[str, Any], by: str | Sequence[str] | None, where: Expr | str | None
    ) -> DayQuestion:
        """Return the question of one day."""
        named = [by] if isinstance(by, str) else list(by or ())
        with fixes_of_streams():
            rows = self._rows(where)
            query = (rows.group_by(*named) if named else rows).agg(**aggregates)
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
        asked = {"question": question, "post": None}
        try:
            return DayQuestion(
                table._rebuild({**asked, "goal": {"epsilon": "1", "rho": None, **none}}),  # noqa: SLF001
                table._rebuild({**asked, "goal": {"epsilon": None, "rho": "1", **none}}),  # noqa: SLF001
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
        listed = self._folder.days()[:8] if self._session.headed and not self._hosted else []
        days = [day for day in listed if self._folder.columns(day)]
        table = self._protected(self._folder.path(days[0] if days else "none"))
        return replace(table, record=self.record)  # what the ledger keeps of a question

    def _open_day(self, number: int) -> Engine | None:
        """Return the engine with the rows of a day; None if nobody came. Called after the charge."""
        day = self.horizon.name(number)
        if not self._folder.columns(day):
            return None
        return self._protected(self._folder.path(day))._engine  # noqa: SLF001 - after the charge

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

    def __repr__(self) -> str:
        return (
            f"stream {self.name}, protects {self.promise}; {self.horizon.days:,} days from "
            f"{self.horizon.start} to {self.horizon.last}, {len(self._folder.days()):,} came in\n"
            "ask: .daily(n=tc.count()).plan(epsilon=1), .begin(plan), .append(day, rows), .release(day)"
            + "".join(f"\nbudget: {note}" for note in self.account_notes)
        )

    def _refresh(self) -> None:
        """Read what other processes have written since."""
        found = self._folder.load()
        if found is not None:
            session = self._session
            session.begun = {one["plan"]: one for one in found["begun"]} | session.begun
            session.columns = None if found["columns"] is None else tuple(found["columns"])
            session.files = dict(found.get("files", {}))
            session.headed = found.get("headed", session.columns is not None)

    def _begun(self, plan: Plan[Series] | None) -> BegunPlan:
        """Return a plan that was begun, as this process goes on with it."""
        if not self._session.begun or (plan is not None and plan.hash not in self._session.begun):
            self._refresh()
        known = self._session.begun
        if plan is None and len(known) == 1:
            return self._begun_with(next(iter(known)))
        if plan is not None and plan.hash in known:
            return self._begun_with(plan.hash)
        if plan is None and known:
            raise TacitError(
                "not-begun",
                f"{len(known)} plans were begun, and none was named",
                fix=Code("stream.release(day, plan)"),
            )
        raise TacitError(
            "not-begun",
            "no plan was begun" if plan is None else "this plan was not begun",
            why="a day is released only after the plan was charged",
            fix=Code("stream.begin(plan)"),
        )

    def _begun_with(self, hash_: str) -> BegunPlan:
        opened = self._session.open
        if hash_ not in opened:
            stored = self._session.begun[hash_]
            plan = self.plan_from({k: stored[k] for k in ("schema", "dataset", "request", "plan")})
            run = plan.run(who=stored["who"], purpose=stored["purpose"])
            opened[hash_] = BegunPlan(plan, run, self.horizon)
        return opened[hash_]

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
