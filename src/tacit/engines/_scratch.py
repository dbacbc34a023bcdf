"""A private folder for snapshots and spilling, gone with its process; what a killed one left is swept away.

A folder holds the lock of its file ``alive`` for as long as its process lives, however the process ends. A
folder whose lock is free belongs to nobody.
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
except ImportError:  # pragma: no cover - not on Windows; nothing is swept there
    fcntl = None  # type: ignore[assignment]

__all__ = ["scratch_folder"]

_PREFIX = "tacit-"
_ALIVE = "alive"


def scratch_folder(owner: object) -> tuple[Path, Callable[[], object]]:
    """Make a folder that only this user can enter, and what removes it, at the latest with its owner.

    Folders that processes of this user have left behind are removed first.
    """
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = os.open(folder / "new", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    if fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_EX)
    (folder / "new").rename(folder / _ALIVE)  # under this name it is locked from the first moment on
    return folder, weakref.finalize(owner, _remove_own, folder, lock, os.getpid())


def _remove_own(folder: Path, lock: int, maker: int) -> None:
    """Remove the folder, unless this is a forked child that ends while its parent lives."""
    if os.getpid() == maker:
        _remove(folder, lock)


def _remove(folder: Path, lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _sweep() -> None:
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
            os.close(lock)  # its process lives
        else:
            _remove(file.parent, lock)
