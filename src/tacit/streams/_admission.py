"""The admission of persons to days: each person counts in a bounded number of days, in the order of arrival.

Whether a person counts in a day depends on that person's own earlier days alone. So adding or removing a
person changes nothing for anybody else, and changes at most ``most_days`` days, at least ``apart`` apart.
If a day is replaced, its persons are admitted again, by all other days. What bars a person is again that
person's rows alone, and each person still counts in at most ``most_days`` days that are ``apart``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from tacit.engines import read_kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tacit.streams._folder import StreamFolder
    from tacit.streams._horizon import Horizon


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

    def _admits(self, number: int, kept: Iterable[int]) -> bool:
        days = tuple(kept)
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

    def _fit(self, kept: list[int]) -> bool:
        apart = (later - day >= self.apart for day, later in pairwise(sorted(kept)))
        return len(kept) <= self.most_days and all(apart)


def _version(path: Path) -> tuple[int, int, int]:
    """Return what changes if a file is replaced."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


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
