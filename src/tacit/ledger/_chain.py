"""The ledger's keyed hash chain over its log: each hash covers its entry and the hash before it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting import Spend

if TYPE_CHECKING:
    from tacit.ledger._rows import EntryRow

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)

#: The hash that the first entry follows.
START = bytes(32)


@dataclass(frozen=True, order=True, slots=True)
class Head:
    """The end of the log: how many entries it has, and the hash of the last one.

    A head is all that a witness needs to keep. Whoever holds it can prove later that the log still contains
    everything up to it.

    Examples
    --------
    >>> Head(0, "00" * 32).count
    0
    """

    count: int
    hash: str


class Chain:
    """HMAC-SHA-256 (RFC 2104) over the previous hash and all columns; the key's two states are prepared once.

    Guarantee: without the key nobody can produce an entry that continues the chain, so an edited, inserted,
    dropped or reordered entry breaks it. The columns are joined by the unit separator, which none of them can
    contain: `seq` and `account` are numbers, `levels` and `spend` have a closed alphabet, `plan` and `key`
    are checked when they are given, `body` is ASCII JSON. So two different entries never give the same
    message.
    """

    __slots__ = ("_inner", "_outer", "_seals", "fingerprint")

    def __init__(self, key: bytes) -> None:
        block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
        self._inner = hashlib.sha256(bytes(b ^ 0x36 for b in block))
        self._outer = hashlib.sha256(bytes(b ^ 0x5C for b in block))
        self.fingerprint: str = self._mac(b"tacit ledger key")[:16].hex()
        self._seals = self.derived("seals")

    def _mac(self, message: bytes) -> bytes:
        inner = self._inner.copy()
        inner.update(message)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()

    def derived(self, purpose: str) -> bytes:
        """Return a key of 32 bytes for another purpose; it reveals neither this key nor the others."""
        return self._mac(f"tacit ledger key for {purpose}".encode())

    def seal(self, entry: bytes, *fields: object) -> str:
        """Return the keyed digest of a stored row and of the entry that changed it last.

        No field contains the unit separator (see the class), so two different rows never give the same
        message.
        """
        text = "\x1f".join(map(str, fields))
        message = entry + text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(message, digest_size=32, key=self._seals).hexdigest()

    def follows(self, row: EntryRow, before: EntryRow | None) -> bool:
        """Whether an entry's hash is right for what it says and for the entry before it."""
        return self.link(START if before is None else before.mac, *row[:-1]) == row.mac

    def link(
        self,
        before: bytes,
        seq: int,
        kind: str,
        account: int,
        levels: str,
        spend: str,
        plan: str,
        key: str,
        body: str,
    ) -> bytes:
        """Return the hash of an entry that follows the hash ``before``."""
        text = f"{seq}\x1f{kind}\x1f{account}\x1f{levels}\x1f{spend}\x1f{plan}\x1f{key}\x1f{body}"
        return self._mac(before + text.encode("utf-8", "surrogatepass"))


def canonical(value: object) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII, no NaN."""
    return _ENCODER.encode(value)


def blocks_of(body: str) -> list[str]:
    """Read the blocks that a charge names from its body, canonical JSON; none stands for all of the data.

    ``blocks`` comes before ``cost``. What people wrote cannot be mistaken for either: inside a JSON string
    every quote follows a backslash.

    Examples
    --------
    >>> blocks_of('{"at":"2026","blocks":["a","b"],"cost":{}}')
    ['a', 'b']
    """
    start = body.find(',"blocks":[')
    if start < 0 or start > body.find(',"cost":'):
        return []
    names = json.JSONDecoder().raw_decode(body, start + 10)[0]
    return [str(name) for name in names]


def spend_to_text(spend: Spend) -> str:
    """Write a spend as ``epsilon;delta;rho`` in exact fractions, ``-`` where there is no finite value.

    With a curve, a fourth part follows: ``order:divergence,order:divergence``.

    Examples
    --------
    >>> spend_to_text(Spend(rho=Fraction(1, 10), curve=[(2, Fraction(1, 8)), (3, None)]))
    '-;0;1/10;2:1/8,3:-'
    """
    parts = [_part(part) for part in (spend.epsilon, spend.delta, spend.rho)]
    if spend.curve:
        parts.append(",".join(f"{order}:{_part(value)}" for order, value in spend.curve))
    return ";".join(parts)


def _part(value: Fraction | None) -> str:
    return "-" if value is None else str(value)


def spend_from_text(text: str) -> Spend:
    """Read what `spend_to_text` wrote."""
    parts = text.split(";")
    epsilon, delta, rho = map(_read_part, parts[:3])
    points = [point.split(":") for part in parts[3:] for point in part.split(",")]
    curve = [(Fraction(order), _read_part(value)) for order, value in points]
    return Spend(epsilon, Fraction(0) if delta is None else delta, rho, curve)


def _read_part(text: str) -> Fraction | None:
    return None if text == "-" else Fraction(text)
