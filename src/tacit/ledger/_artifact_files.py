"""The ledger's artifact files: long payloads beside a ledger file, each under its own digest."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tacit.ledger import _refusals

if TYPE_CHECKING:
    from pathlib import Path

_DAY = 86_400.0


class ArtifactFiles:
    """A folder of files, named by the SHA-256 of what they hold.

    Guarantee: `keep` returns when the file and its name are durable. A file appears complete or not at all,
    and is never replaced by another content.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sweep()

    def _sweep(self) -> None:
        """Remove what killed processes left half written; a younger draft may still be in the making."""
        with suppress(OSError):
            for draft in self._folder.glob("*.new"):
                if time.time() - draft.stat().st_mtime > _DAY:
                    draft.unlink()

    def keep(self, digest: str, payload: bytes) -> None:
        """Keep a payload under its digest, durably."""
        path = self._folder / digest
        draft = self._folder / f"{digest}.{os.urandom(8).hex()}.new"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                left = memoryview(payload)
                while left:
                    left = left[os.write(handle, left) :]
                os.fsync(handle)
            finally:
                os.close(handle)
            draft.replace(path)
            _sync_folder(self._folder)
            _sync_folder(self._folder.parent)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            raise _refusals.unavailable(f"{path} cannot be written: {error.strerror}") from None

    def read(self, digest: str) -> bytes | None:
        """Return a payload as it is on the disk, unchecked, or None if it is lost."""
        try:
            return (self._folder / digest).read_bytes()
        except OSError:
            return None


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
