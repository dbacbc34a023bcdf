"""The ledger's artifacts: payloads that are too long for a row are kept outside, under their digest.

Beside a ledger file, each of them is a file of its own (`ArtifactFiles`).
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from tacit.ledger import _refusals

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tacit.ledger.stores._store import ReleaseRow, Store


#: A payload of more bytes is an artifact.
ARTIFACT_BYTES = 2**20


class KeptPayload(NamedTuple):
    """A payload as its row will hold it: the bytes themselves, or the name of an artifact that is durable."""

    digest: str
    inline: bytes
    artifact: str


def keep_payload(store: Store, payload: bytes) -> KeptPayload:
    """Prepare a payload for its row; a long one is durable as an artifact when this returns.

    An artifact that no entry names is harmless: nobody can ask for it, and it is written again if the same
    payload is stored later.
    """
    digest = hashlib.sha256(payload).hexdigest()
    if len(payload) <= ARTIFACT_BYTES:
        return KeptPayload(digest, payload, "")
    store.keep_artifact(digest, payload)
    return KeptPayload(digest, b"", digest)


def stored_digest(release: ReleaseRow) -> str:
    """Return the digest that a row claims for its payload; a row with both forms of a payload has none."""
    if not release.artifact:
        return hashlib.sha256(release.payload).hexdigest()
    return "" if release.payload else release.artifact


def read_payload_of(release: ReleaseRow, artifact: Callable[[str], bytes | None]) -> bytes:
    """Return the payload of a row whose digest was compared with the chain, or say that it is lost."""
    if not release.artifact:
        return release.payload
    payload = artifact(release.artifact)
    if payload is None or hashlib.sha256(payload).hexdigest() != release.artifact:
        raise _refusals.artifact_lost(
            release.receipt, release.part, release.artifact, damaged=payload is not None
        )
    return payload


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
                remaining = memoryview(payload)
                while remaining:
                    remaining = remaining[os.write(handle, remaining) :]
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
