"""The rows of a stream as they come in: each day once, with the same columns, and who counts in it."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from tacit.engines import KEPT
from tacit.errors import TacitError
from tacit.fixes import Choose, Code, Either, Say, Set
from tacit.streams._admission import Admission
from tacit.streams._folder import REPORTS, file_digest, rows_as_source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from tacit.core import JSON, Unit
    from tacit.streams._day_question import DayQuestion
    from tacit.streams._folder import StreamFolder
    from tacit.streams._horizon import Horizon
    from tacit.streams._progress import BegunPlan
    from tacit.tables import TableDataset

#: Names that readers give to columns without one.
_UNNAMED = re.compile(r"\s*|column\d+|Unnamed: \d+|__index_level_\d+__")


class StreamRows:
    """The part of a stream that takes rows in."""

    __slots__ = ()

    if TYPE_CHECKING:
        horizon: Horizon
        level: str
        most_days: int
        apart: int
        declared: dict[str, JSON]
        _folder: StreamFolder
        _protected: Callable[[object], TableDataset]
        _session: Any
        _hosted: bool

        @property
        def unit(self) -> Unit: ...
        def _begun_with(self, hash_: str) -> BegunPlan: ...
        def _one_day(self, table: TableDataset, question: JSON) -> DayQuestion: ...
        def _lock(self) -> AbstractContextManager[None]: ...
        def _refresh(self) -> None: ...
        def _store(self) -> None: ...

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
        found = self._folder.load()
        before: Any = None if found is None else dict(found["declaration"])
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
        begun = [self._begun_with(one) for one in self._session.begun]
        self._refuse_forgotten(max((one.through() for one in begun), default=0))
        for one in begun:
            self._refuse_other_marks(one)
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
        named = {c for name in ("bounds", "keys", "types") for c in cast("Any", self.declared[name])}
        return named | {*cast("Any", self.declared["never_null"]), *self.unit.columns} - {"day"}

    def _check_columns(self, names: Sequence[str]) -> None:
        """Refuse rows that lack a column of the stream, or have others; names of columns are public."""
        expected = self._session.columns
        needed = self._declared_columns
        given = set(names)
        lacking = sorted((set(expected) if expected else needed) - given)
        own = {name for name in given if name.lower() == KEPT}
        extra = sorted(given - set(expected)) if expected else sorted(own)
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
        seen = self._session.columns if self._session.headed and not self._hosted else None
        known, unseen = [*(seen or sorted(self._declared_columns)), KEPT], list[str]()
        while True:
            table = self._protected(SimpleNamespace(columns=[*known, *unseen]))
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
        """Whether a day was released, also if its file was removed since."""
        return any(self._begun_with(one).through() >= number for one in self._session.begun)


def _has_header(rows: object) -> bool:
    """Whether rows name their columns also if there are none; a list of dictionaries does not."""
    return isinstance(rows, str | os.PathLike) or not isinstance(rows, list | tuple)
