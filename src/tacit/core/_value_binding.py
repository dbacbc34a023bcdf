"""What binds a release's values to its certificate: their digests, and the ledger's keyed digest of both.

The certificate's body is settled before the data is touched, so the ledger's entry for the charge cannot hold
a digest of the values. The certificate gets it when the release is read off what the ledger has stored: the
digests of the content as it is shown, the SHA-256 of the stored answer (which the ledger's log holds), and a
keyed digest of the whole certificate, which nobody can make without the ledger's key. So each way to show one
stored answer, with other names, order or confidence, is bound, and so is an answer that was stored before
certificates bound values. All of it follows from noisy values, so it reveals nothing more.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tacit.core._plan_run import digest_of

if TYPE_CHECKING:
    from tacit.core._certificate import Certificate
    from tacit.core._protocols import JSON
    from tacit.core._release import Content

_PURPOSE = "values of releases"


def content_digest(kind: str, document: object) -> str:
    """Return the digest of a content's JSON; raises ``ValueError`` for text that no file can hold.

    Examples
    --------
    >>> content_digest("answer-table", {"n": [1, 2]}) == content_digest("answer-table", {"n": (1, 2)})
    True
    """
    text = json.dumps([kind, document], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def content_digests(content: Content) -> list[str]:
    """Return the digests by which a release is recognised: of the whole, and of each answer of a batch."""
    answers = [one.content for one in getattr(content, "answers", ())]
    return [content_digest(one.kind, json.loads(json.dumps(one.to_json()))) for one in (content, *answers)]


def payload_digest(payload: bytes) -> str:
    """Return the digest that a ledger's log holds of what it has stored."""
    return hashlib.sha256(payload).hexdigest()


def vouches(ledger: object) -> bool:
    """Whether a ledger can bind values: it has a key, and makes keyed digests."""
    return hasattr(ledger, "keyed_digest")


def bound_values(fields: Mapping[str, JSON], digests: Sequence[str], ledger: Any, of: str) -> dict[str, JSON]:
    """Return what a certificate states of the values, with the ledger's keyed digest of all of it.

    Where several datasets answered together, ``of`` is the plan of all; each of their ledgers binds the sum.
    """
    earlier: Any = fields.get("values")
    values: dict[str, JSON] = {
        "stored": earlier["stored"],
        "digests": list(digests),
        **({"of": of} if of else {}),
    }
    return {**values, "keyed": _keyed({**fields, "values": values}, ledger)}


def _keyed(fields: Mapping[str, JSON], ledger: Any) -> str:
    return str(ledger.keyed_digest(_PURPOSE, digest_of(fields).encode()))


def binding_problems(certificate: Certificate, ledger: Any) -> list[str]:
    """Say what is wrong with what a certificate states of the values; older certificates state nothing."""
    values = certificate.fields.get("values")
    if values is None:
        cut = ["what binds the values was removed from it"]
        return cut if "binds" in certificate.fields else []
    if not isinstance(values, Mapping) or not set(values) <= {"stored", "digests", "keyed", "of"}:
        return ["what it says of the values cannot be read"]
    if "keyed" not in values:
        return ["what binds the values was removed from it"]
    if not vouches(ledger):
        return ["this ledger cannot check what binds the values"]
    stated = {name: one for name, one in values.items() if name != "keyed"}
    right = _keyed({**certificate.fields, "values": stated}, ledger)
    if hmac.compare_digest(right.encode(), str(values["keyed"]).encode("utf-8", "replace")):
        return []
    return ["the digest of the values, or another part of it, was edited"]
