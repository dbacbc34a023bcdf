"""The secrets of runs: encrypted and authenticated with keys that follow from the ledger's key.

A run may need to remember what it must not show, such as past noise that later noise is correlated with. The
secret is a text of bytes, replaced whenever an instalment is stored. It is kept like this, with the standard
library alone:

- Two keys of 32 bytes, for encryption and for authentication, are derived from the ledger's key with
  HMAC-SHA-256. So neither reveals the other, nor the chain's key.
- The *place* of a secret is the hash of the run's charge (which covers everything in the log up to it, and is
  thus different in every ledger), the number of the instalment, and the digest of that instalment's payload.
- ``stream = SHAKE-256(encryption key, place, nonce)`` as long as the secret, with a fresh nonce of 32 random
  bytes; ``hidden = secret XOR stream``. Every part but the stream has a fixed length. SHAKE-256 with a secret
  prefix is a pseudorandom function, because a sponge does not let anyone extend a message (Bertoni and
  others, 2011); the nonce never comes back, so no two secrets share a stream.
- ``tag = BLAKE2b-256(authentication key; place, nonce, hidden)``, compared before anything is decrypted
  (encrypt, then authenticate: Bellare and Namprempre, 2000).

Guarantee: without the key, nobody learns more of a secret than its length, and whatever is not the secret
that was stored with this instalment of this run is refused: an edited one, that of another run, ledger or
instalment, and the one of an earlier instalment. Which instalment was stored last follows from the log.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import TYPE_CHECKING

from tacit.ledger._rows import RunRow

if TYPE_CHECKING:
    from tacit.ledger._chain import Chain
    from tacit.ledger._rows import EntryRow

_NONCE = 32
_TAG = 32


def hide_secret(chain: Chain, run: EntryRow, part: int, payload_digest: str, secret: bytes) -> RunRow:
    """Encrypt the secret of a run as it is after one of its instalments.

    Examples
    --------
    >>> from tacit.ledger._chain import Chain
    >>> from tacit.ledger._rows import EntryRow
    >>> chain, run = Chain(bytes(32)), EntryRow(2, "run", 1, "1", "1;0;-", "p", "", "{}", bytes(32))
    >>> row = hide_secret(chain, run, 1, "00" * 32, b"past noise")
    >>> reveal_secret(chain, run, 1, "00" * 32, row)
    b'past noise'
    >>> reveal_secret(chain, run, 2, "00" * 32, row) is None
    True
    """
    place, nonce = _place(run, part, payload_digest), os.urandom(_NONCE)
    hidden = _mixed(chain, place, nonce, secret)
    return RunRow(run.seq, nonce + hidden + _tag(chain, place, nonce + hidden))


def reveal_secret(chain: Chain, run: EntryRow, part: int, payload_digest: str, row: RunRow) -> bytes | None:
    """Decrypt the secret of a run, or return None if it is not the one that this instalment left."""
    place, kept = _place(run, part, payload_digest), bytes(row.secret)
    body, tag = kept[:-_TAG], kept[-_TAG:]
    if len(body) < _NONCE or not hmac.compare_digest(tag, _tag(chain, place, body)):
        return None
    return _mixed(chain, place, body[:_NONCE], body[_NONCE:])


def _place(run: EntryRow, part: int, payload_digest: str) -> bytes:
    return run.mac + part.to_bytes(8, "big") + bytes.fromhex(payload_digest)


def _mixed(chain: Chain, place: bytes, nonce: bytes, text: bytes) -> bytes:
    """Combine bytes with the stream of this place and nonce: hides a secret, and reveals a hidden one."""
    key = chain.derived("run secrets: encryption")
    stream = hashlib.shake_256(key + place + nonce).digest(len(text))
    mixed = int.from_bytes(text, "big") ^ int.from_bytes(stream, "big")
    return mixed.to_bytes(len(text), "big")


def _tag(chain: Chain, place: bytes, body: bytes) -> bytes:
    key = chain.derived("run secrets: authentication")
    return hashlib.blake2b(place + body, digest_size=_TAG, key=key).digest()
