"""One drawer at a time: a locked file on this machine; on PostgreSQL a lock of the server for all machines.

Two drawers would settle each other's draws. The ledger charges a query once whoever draws it, so nobody would
pay twice; but a draw that is still computed would be called lost.
"""

from __future__ import annotations

import fcntl
import time
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

from tacit.errors import TacitError

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from tacit.service._settings import ServiceSettings

_CLASS: Final = 722_306_180  # of the server's locks; the other half of the name is the schema
_ASK: Final = 0.5  # seconds between two attempts, and between two looks whether the lock is still held
#: Seconds after which a machine that cannot be reached counts as gone, on both sides of the connection.
_GONE: Final = 10
#: Seconds that a drawer waits after another one, which may notice only then that it has lost the lock.
GRACE: Final = 15.0


class _Held(Protocol):
    def check(self) -> None: ...


class _Alone:
    """On one machine the locked file is enough."""

    def check(self) -> None:
        """Do nothing: whoever has the file open holds the lock."""


class ServerLock:
    """A lock of the PostgreSQL server that holds as long as one connection; one for each schema.

    Guarantee: two processes never hold it at the same time. `check` refuses at the latest half a second after
    this process could notice that the connection has ended.

    Parameters
    ----------
    place
        The address of the database. A pooler between must keep the session: PgBouncer in session mode.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._connection: Any = None
        self._looked = 0.0

    def wait(self, stop: threading.Event) -> bool:
        """Wait until this process holds the lock, or until ``stop`` is set; return whether it holds it."""
        waited = False
        while not self._try():
            waited = True
            if stop.wait(_ASK):
                return False
        if waited and stop.wait(GRACE):
            return False
        self.check()
        return True

    def check(self) -> None:
        """Refuse if the lock is lost: another drawer may run now, so this one must end."""
        if time.monotonic() < self._looked + _ASK:
            return
        try:
            self._connection.execute("SELECT 1")
        except Exception:  # noqa: BLE001 - whatever it was, nobody knows whether the lock is held
            raise TacitError(
                "drawer-away",
                "the drawer has lost the connection that keeps other drawers away",
                why="another drawer may run now, and two drawers would interfere with each other's draws",
                fix="start the drawer again; it waits until it is the only one",
            ) from None
        self._looked = time.monotonic()

    def close(self) -> None:
        """Give the lock back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _try(self) -> bool:
        if self._connection is None:
            self._connection = self._connect()
        found = self._connection.execute(
            "SELECT pg_try_advisory_lock(%s, hashtext(current_schema()))", (_CLASS,)
        ).fetchone()
        return bool(found[0])

    def _connect(self) -> Any:
        import psycopg

        connection = psycopg.connect(
            self._place, autocommit=True, connect_timeout=_GONE, keepalives_idle=_GONE // 2,
            keepalives_interval=2, keepalives_count=2, tcp_user_timeout=1000 * _GONE,
        )  # fmt: skip
        for name, value in {
            "tcp_keepalives_idle": _GONE // 2, "tcp_keepalives_interval": 2, "tcp_keepalives_count": 2,
            "tcp_user_timeout": 1000 * _GONE, "idle_session_timeout": 0,
        }.items():  # fmt: skip
            with suppress(psycopg.Error):  # an older server does not know all of them
                connection.execute(f"SET {name} = {value}")
        return connection


def _locked(file: IO[str], stop: threading.Event) -> bool:
    """Wait until this process holds the file's lock, or until ``stop`` is set; return whether it holds it."""
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if stop.wait(_ASK):
                return False
        else:
            return True


@contextmanager
def only_drawer(settings: ServiceSettings, stop: threading.Event) -> Iterator[_Held | None]:
    """Wait until no other drawer runs, and keep others away; None if ``stop`` was set before.

    Parameters
    ----------
    settings
        The operator's settings: the folder, and the database.
    stop
        Ends the wait.
    """
    settings.folder.mkdir(parents=True, exist_ok=True)
    with (settings.folder / "drawer.lock").open("w") as held:
        if not _locked(held, stop):
            yield None
            return
        if not settings.database_place.startswith(("postgresql://", "postgres://")):
            yield _Alone()
            return
        lock = ServerLock(settings.database_place)
        try:
            yield lock if lock.wait(stop) else None
        finally:
            lock.close()
