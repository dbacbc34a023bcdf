"""An engine's scratch folder for snapshots and spilled data, removed when its process ends.

The process holds the lock on the folder's file ``alive`` as long as it lives, however it ends. A folder
whose lock is free belongs to a process that was killed, and the next process removes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows, where no folder is removed for another process
    fcntl = None  # type: ignore[assignment]

_PREFIX = "tacit-"
_ALIVE = "alive"


def scratch_folder(owner: object) -> tuple[Path, Callable[[], object]]:
    """Make a folder that only this user can enter; return it with the function that removes it.

    The folder is removed together with its owner at the latest. Folders that killed processes of this user
    left behind are removed first.
    """
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder / "new", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    if fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "new").rename(folder / _ALIVE)  # so the file of this name is locked from the start
    return folder, weakref.finalize(owner, _remove, folder, lock, os.getpid())


def _remove(folder: Path, lock: int, maker: int) -> None:
    """Remove the folder, unless this is a forked child of the process that made it."""
    if os.getpid() == maker:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_abandoned() -> None:
    if fcntl is None:  # pragma: no cover
        return
    for file in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_ALIVE}"):
        try:
            if file.parent.stat().st_uid != os.getuid():
                continue
            lock = os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)  # its process is alive
        else:
            _remove(file.parent, lock, os.getpid())
