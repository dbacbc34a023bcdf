"""The log's rows and the keyed chain that binds each to all before it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from tacit.accounting import Spend

__all__ = ["START", "Chain", "Head", "Row", "canonical", "spend_from_text", "spend_to_text"]

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)

#: What the first entry is chained to.
START = bytes(32)


@dataclass(frozen=True, order=True, slots=True)
class Head:
    """The end of the log: how many entries it has and the last one's hash.

    A head is all that a witness needs to keep: whoever holds it can later prove that the log still contains
    everything up to it.

    Examples
    --------
    >>> Head(0, "00" * 32).count
    0
    """

    count: int
    hash: str


class Row(NamedTuple):
    """One entry as it is stored; every column but the last is covered by the hash in the last."""

    seq: int
    kind: str
    account: int
    levels: str
    spend: str
    plan: str
    key: str
    body: str
    mac: bytes


class Chain:
    """HMAC-SHA-256 (RFC 2104) over the previous hash and all columns, the key's two states prepared once.

    Guarantee: without the key nobody can produce a row that continues the chain, so an edited, inserted,
    dropped or reordered row breaks it. The columns are joined by the unit separator, which none of them may
    contain (`seq` and `account` are numbers, `levels` and `spend` have a closed alphabet, `plan` and `key`
    are checked at the door, `body` is ASCII JSON), so two different rows never give the same message.
    """

    __slots__ = ("_inner", "_outer", "fingerprint")

    def __init__(self, key: bytes) -> None:
        block = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
        self._inner = hashlib.sha256(bytes(b ^ 0x36 for b in block))
        self._outer = hashlib.sha256(bytes(b ^ 0x5C for b in block))
        self.fingerprint: str = self._mac(b"tacit ledger key")[:16].hex()

    def _mac(self, message: bytes) -> bytes:
        inner = self._inner.copy()
        inner.update(message)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.digest()

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
        """Return the hash of an entry that follows ``before``."""
        text = f"{seq}\x1f{kind}\x1f{account}\x1f{levels}\x1f{spend}\x1f{plan}\x1f{key}\x1f{body}"
        return self._mac(before + text.encode("utf-8", "surrogatepass"))


def canonical(value: object) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII, no NaN."""
    return _ENCODER.encode(value)


def spend_to_text(spend: Spend) -> str:
    """Write a spend as ``epsilon;delta;rho`` in exact fractions, ``-`` where there is no finite value."""
    parts = (spend.epsilon, spend.delta, spend.rho)
    return ";".join("-" if part is None else str(part) for part in parts)


def spend_from_text(text: str) -> Spend:
    """Read what `spend_to_text` wrote."""
    epsilon, delta, rho = (None if part == "-" else Fraction(part) for part in text.split(";"))
    return Spend(epsilon, Fraction(0) if delta is None else delta, rho)
