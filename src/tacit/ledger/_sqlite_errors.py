"""SQLite's errors as refusals of the ledger."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from tacit.errors import TacitError
from tacit.ledger import _refusals

if TYPE_CHECKING:
    from tacit.ledger._ledger_file import LedgerFile

#: Failures after which nobody knows what is on the disk; a failed read, lock or map of memory is not one.
_FAILED_WRITES = frozenset(
    {
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_DIR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_IOERR_DELETE,
        sqlite3.SQLITE_IOERR_COMMIT_ATOMIC,
        sqlite3.SQLITE_IOERR_BEGIN_ATOMIC,
        sqlite3.SQLITE_IOERR_CLOSE,
        sqlite3.SQLITE_IOERR,
    }
)
_SHARED_MEMORY = frozenset(
    {sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP}
)
_MAY_BE_FULL = _SHARED_MEMORY | {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_TRUNCATE}


def refusal_of(error: sqlite3.Error, file: LedgerFile, *, wait: float, writing: bool) -> TacitError:
    """Return the refusal for an error; ``ledger-sealed`` if a write failed and the store must be sealed."""
    code = getattr(error, "sqlite_errorcode", None)
    name = getattr(error, "sqlite_errorname", None) or str(error)
    here = str(file.path)
    if code is None and isinstance(error, sqlite3.OperationalError):  # Python's own: text that is not UTF-8
        return _refusals.damaged(f"{here} is damaged: {error}")
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return _refusals.locked(here, wait)
        case sqlite3.SQLITE_FULL:
            return _refusals.disk_full(here)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return _refusals.read_only(here, fix=f"make {here} and its folder writable")
        case sqlite3.SQLITE_CANTOPEN:
            return TacitError(
                "ledger-unavailable",
                f"{here} cannot be opened",
                why="its folder is missing, or you may not write there",
                fix="name a file in a folder where you may write",
            )
        case sqlite3.SQLITE_NOTADB:
            return _refusals.not_a_ledger(here)
        case sqlite3.SQLITE_CORRUPT:
            return _refusals.damaged(f"{here} is damaged: {error}")
        case sqlite3.SQLITE_IOERR:
            return _disk_refusal(error.sqlite_errorcode, name, file, writing=writing)
        case _:
            return TacitError(
                "ledger-unavailable",
                f"{here} did not accept the change: {name}",
                why="nothing was charged",
                fix="try again",
            )


def _disk_refusal(code: int, name: str, file: LedgerFile, *, writing: bool) -> TacitError:
    """Tell a full disk from a failing one, and a failed write from a failed read."""
    here = str(file.path)
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return _refusals.damaged(f"{here} is shorter than it should be")
    if code == sqlite3.SQLITE_IOERR_SHMSIZE or (code in _MAY_BE_FULL and file.has_no_room()):
        return _refusals.disk_full(here)
    if writing and code in _FAILED_WRITES:
        return _refusals.sealed(f"the disk failed: {name} on {here}")
    return TacitError(
        "ledger-unavailable",
        f"the disk of {here} failed: {name}",
        why="nothing was written",
        fix="check the disk and the file system, then try again",
    )
