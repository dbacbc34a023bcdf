"""The ledger's artifacts: payloads that are too long for a row are kept outside, under their digest."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from tacit.ledger import _refusals

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.ledger._rows import ReleaseRow
    from tacit.ledger._store import Store

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
