"""The folder of a stream: a file with its declaration, one Parquet file a day, and who counts on which day.

Each file is written beside its place, flushed to the disk and then put into place in one step, so that a
crash leaves a whole file or none. A day's file is replaced only on request, and as a whole.

At person level, each person is admitted to a bounded number of days, in the order of arrival. Whether a
person counts in a day depends on that person's own earlier days alone. So adding or removing a person changes
nothing for anybody else, and changes at most ``most_days`` days, at least ``apart`` apart. If a day is
replaced, its persons are admitted again, by all other days. What bars a person is again that person's rows
alone, and each person still counts in at most ``most_days`` days that are ``apart``.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.engines import KEPT, CsvSource, cell_text, read_kept, read_note, read_source, write_rows
from tacit.errors import TacitError
from tacit.fixes import Code, Fix, Say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tacit.engines import Source
    from tacit.streams._horizon import Horizon


STREAM_SCHEMA = "tacit/stream/1"
#: Where a book of reports keeps the rows of days that have not closed.
REPORTS = "reports"
_FACTS = "stream.json"
_EMPTY = "tacit_empty"
_FORMS = "the rows of a day are a data frame, a CSV or Parquet file, or a list of dictionaries"


class StreamFolder:
    """Where a stream keeps its declaration and the rows of its days."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._days = place / "days"

    @classmethod
    def temporary(cls) -> StreamFolder:
        """Make a folder that vanishes with the stream."""
        folder = cls(Path(tempfile.mkdtemp(prefix="tacit-stream-")))
        weakref.finalize(folder, shutil.rmtree, folder.place, ignore_errors=True)
        return folder

    def load(self) -> dict[str, Any] | None:
        """Return what was written about the stream, or None if the folder is new."""
        try:
            text = (self.place / _FACTS).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            document: dict[str, Any] = json.loads(text)
        except ValueError:
            document = {}
        if document.get("schema") != STREAM_SCHEMA:
            raise TacitError(
                "stream-differs",
                f"{self.place / _FACTS} cannot be read as the declaration of a stream",
                why="it was changed, or a newer version of Tacit wrote it",
                fix=Say("restore the file from a backup"),
            )
        return document

    def store(self, facts: Mapping[str, Any]) -> None:
        """Write what is known about the stream, in place of what was written before."""
        self._days.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"schema": STREAM_SCHEMA, **facts}, indent=1, ensure_ascii=False)
        with self._beside(self.place) as draft:
            draft.write_text(text + "\n", encoding="utf-8")
            _flush(draft)
            draft.replace(self.place / _FACTS)
        _flush(self.place)

    def forget(self) -> None:
        """Remove what was written about the stream."""
        (self.place / _FACTS).unlink(missing_ok=True)

    def path(self, day: str) -> Path:
        """Return where the rows of a day are, or will be."""
        return self._days / f"{day}.parquet"

    def has(self, day: str) -> bool:
        """Return whether the rows of a day arrived."""
        return self.path(day).exists()

    def days(self) -> list[str]:
        """Return the days whose rows came in, in order."""
        return sorted(path.stem for path in self._days.glob("*.parquet"))

    def columns(self, day: str) -> tuple[str, ...]:
        """Return the columns of a day's rows; none if nobody came and no columns were given."""
        schema = read_source(self.path(day)).schema(day) or ()
        return tuple(name for name, _ in schema if name not in {_EMPTY, KEPT})

    def note(self) -> str:
        """Return the note beside the rows of the first day that has one; empty for none."""
        return next((note for day in self.days()[:8] if (note := read_note(self.path(day)))), "")

    def is_empty(self, day: str) -> bool:
        """Return whether a day that arrived has no rows."""
        import duckdb

        with duckdb.connect() as con:
            first_row = con.execute("SELECT 1 FROM read_parquet(?) LIMIT 1", [str(self.path(day))])
            return first_row.fetchone() is None

    def append(
        self,
        day: str,
        source: Source | None,
        check: Callable[[Sequence[str]], None],
        unit: str | None = None,
        barred: Callable[[Iterable[str]], list[str]] | None = None,
        *,
        note: str = "",
        replace: bool = False,
    ) -> bool:
        """Store the rows of a day; return False if its file was there already and is not to be replaced.

        ``check`` may refuse the columns before anything is stored.
        """
        self._days.mkdir(parents=True, exist_ok=True)
        with self._beside(self._days) as draft:
            if source is None:
                source = _no_rows(draft.with_suffix(".csv"))
                write_rows(source, draft)
                Path(str(source.place)).unlink()
            else:
                names = source.columns() or [c for c, _ in source.schema(day) or ()]
                check(names)
                _write(source, draft, unit, barred, note)
            draft.chmod(0o600)  # true rows, for their owner alone
            _flush(draft)
            if replace:
                draft.replace(self.path(day))
            else:
                try:
                    os.link(draft, self.path(day))
                except FileExistsError:
                    return False
        _flush(self._days)
        return True

    @contextlib.contextmanager
    def _beside(self, folder: Path) -> Iterator[Path]:
        """Give a path of its own for a draft; what is left of it is removed."""
        number, name = tempfile.mkstemp(prefix=".draft-", dir=folder)
        os.close(number)
        draft = Path(name)
        try:
            yield draft
        finally:
            draft.unlink(missing_ok=True)


def file_digest(path: Path) -> str:
    """Return the digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def rows_as_source(rows: object, scratch: Path) -> Source | None:
    """Read rows as the caller gives them: a frame, a file, dictionaries; None for no rows at all.

    Dictionaries are written to a CSV file in ``scratch`` first.
    """
    if isinstance(rows, Mapping):
        try:
            columns = {str(name): list(values) for name, values in rows.items()}
            lines = [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]
        except (TypeError, ValueError):
            raise _wrong_rows(
                "the columns of a day are lists of the same length",
                Code('stream.append("2026-01-31", {"patient_id": [7, 8], "temp": [38.2, 36.9]})'),
            ) from None
        return _as_csv(lines, tuple(columns), scratch)
    if isinstance(rows, Sequence) and not isinstance(rows, str | bytes):
        if not all(isinstance(row, Mapping) for row in rows):
            raise _wrong_rows(
                _FORMS,
                Code('stream.append("2026-01-31", [{"patient_id": 7, "temp": 38.2}])'),
            )
        names = dict.fromkeys(str(name) for row in rows for name in row)
        return _as_csv([{str(k): v for k, v in row.items()} for row in rows], tuple(names), scratch)
    source = read_source(rows)
    if isinstance(source, CsvSource) and (source.encoding or source.decimal != "."):
        raise _wrong_rows(
            "the CSV file of a day must be in UTF-8 and have decimal points",
            Say("read it into a data frame first"),
            why="its rows are stored as they are",
        )
    if source.kind not in {"frame", "csv", "parquet"} or (source.kind != "frame" and not source.is_there):
        fix = Say("check the name of the file")
        raise _wrong_rows(f"there are no rows at {source.place}", fix, why=_FORMS)
    return source


def _wrong_rows(problem: str, fix: Fix, *, why: str = "") -> TacitError:
    return TacitError("bad-parameter", problem, why=why, fix=fix)


def _write(
    source: Source,
    draft: Path,
    unit: str | None,
    barred: Callable[[Iterable[str]], list[str]] | None,
    note: str,
) -> None:
    import duckdb

    try:
        write_rows(source, draft, unit, barred, note)
    except duckdb.Error as error:
        raise _wrong_rows(
            "the rows cannot be stored as a Parquet file",
            Say("correct the rows, or give the columns plain types"),
            why=f"{str(error).splitlines()[0]}; nothing was stored",
        ) from None


def _as_csv(lines: list[dict[str, Any]], names: tuple[str, ...], scratch: Path) -> Source | None:
    if not names:
        return None
    path = scratch / "rows.csv"
    # a cell that is not text in Unicode must not keep the rows of others out
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([[_cell(line.get(name)) for name in names] for line in lines])
    return read_source(path)


def _cell(value: object) -> str:
    """Write a cell as it is written in a data frame, so that a person has one name however a day comes in."""
    if _is_missing(value):
        return ""
    text = cell_text(value)
    if text is not None:
        return text
    if isinstance(value, bytes):
        return ""  # bytes that are not a text must not become somebody's text
    return hex(value) if isinstance(value, int) else str(value)  # Python writes no more than 4,300 digits


def _is_missing(value: object) -> bool:
    """Return whether a cell is empty: None, NaN, or what pandas writes for nothing."""
    try:
        return value is None or bool(value != value)
    except ArithmeticError:  # the signalling NaN of a decimal
        return True
    except (TypeError, ValueError):  # pandas.NA, or a cell with several values
        return type(value).__name__ == "NAType"


def _no_rows(path: Path) -> Source:
    """Return a source without rows: a day on which nothing happened."""
    path.write_text(f"{_EMPTY}\n", encoding="utf-8")
    return read_source(path)


def _flush(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    try:
        number = os.open(path, os.O_RDONLY)
    except PermissionError:  # pragma: no cover - a folder cannot be opened on Windows
        return
    try:
        os.fsync(number)
    finally:
        os.close(number)


@dataclass(slots=True)
class Admission:
    """In which days each person counts, as the files of the stream say."""

    unit: str
    most_days: int
    apart: int
    _kept: dict[str, list[int]] = field(default_factory=dict)
    _seen: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    _digests: dict[int, bytes] = field(default_factory=dict)

    @property
    def rule(self) -> str:
        """The rule in words; it is kept beside the marks that were made by it."""
        return f"most_days={self.most_days} apart={self.apart}"

    def refresh(self, folder: StreamFolder, horizon: Horizon, but: str = "") -> None:
        """Read the days that came in since, but for one; all of them, if a day was replaced."""
        files = {day: _version(folder.path(day)) for day in folder.days() if day != but}
        if any(files.get(day) != version for day, version in self._seen.items()):
            self._kept.clear()
            self._seen.clear()
            self._digests.clear()
        for day, version in files.items():
            if day not in self._seen:
                number = horizon.number(day)
                owners = sorted(read_kept(folder.path(day), self.unit))
                for owner in owners:
                    self._kept.setdefault(owner, []).append(number)
                self._digests[number] = hashlib.sha256(json.dumps(owners).encode()).digest()
                self._seen[day] = version

    def barred(self, number: int, owners: Iterable[str]) -> list[str]:
        """Return the persons that do not count in a day: they have their days, or come back too soon."""
        return [owner for owner in owners if not self._admits(number, self._kept.get(owner, ()))]

    def _admits(self, number: int, earlier: Iterable[int]) -> bool:
        days = tuple(earlier)
        return len(days) < self.most_days and all(abs(day - number) >= self.apart for day in days)

    def digest(self, through: int) -> str | None:
        """Return a digest of who counts on the days up to one; None if their marks do not fit together.

        Marks that were made one after another fit together. Files from several copies of a folder may not.
        """
        days = range(1, through + 1)
        if not all(map(self._digests.__contains__, days)):
            return None
        if not all(self._fit([day for day in kept if day <= through]) for kept in self._kept.values()):
            return None
        return hashlib.sha256(b"".join(self._digests[day] for day in days)).hexdigest()

    def _fit(self, days: list[int]) -> bool:
        spaced = (later - day >= self.apart for day, later in pairwise(sorted(days)))
        return len(days) <= self.most_days and all(spaced)


def _version(path: Path) -> tuple[int, int, int]:
    """Return what changes if a file is replaced."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


@contextlib.contextmanager
def folder_lock(path: Path) -> Iterator[None]:
    """Let one process at a time store a day; the lock ends with the process that holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        try:
            import fcntl
        except ImportError:  # pragma: no cover - Windows
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
            try:
                yield
            finally:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
