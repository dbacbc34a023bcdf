"""The ledger's keyed hash chain over its log: each hash covers its entry and the hash before it.

The key lies in a file outside the store, which is made once and never replaced silently.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.accounting import Budget, Spend
from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Do, Either, Say, Set

if TYPE_CHECKING:
    from tacit.ledger.stores._store import EntryRow


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)

#: The hash that the first entry follows.
START = bytes(32)
#: Environment variable that names the key file where no argument does.
KEY_FILE_VARIABLE = "TACIT_LEDGER_KEY_FILE"
_BYTES = 32


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

    With a curve, a fourth part follows: ``order:divergence,order:divergence``. With a promise, a fifth:
    ``epsilon:delta``; the fourth is then empty where there is no curve.

    Examples
    --------
    >>> spend_to_text(Spend(rho=Fraction(1, 10), curve=[(2, Fraction(1, 8)), (3, None)]))
    '-;0;1/10;2:1/8,3:-'
    """
    parts = [_part(part) for part in (spend.epsilon, spend.delta, spend.rho)]
    if spend.curve:
        parts.append(",".join(f"{order}:{_part(value)}" for order, value in spend.curve))
    if spend.promise is not None:
        parts += [*([] if spend.curve else [""]), f"{spend.promise.epsilon}:{spend.promise.delta}"]
    return ";".join(parts)


def _part(value: Fraction | None) -> str:
    return "-" if value is None else str(value)


def spend_from_text(text: str) -> Spend:
    """Read what `spend_to_text` wrote."""
    parts = text.split(";")
    epsilon, delta, rho = map(_read_part, parts[:3])
    points = [point.split(":") for part in parts[3:4] if part for point in part.split(",")]
    curve = [(Fraction(order), _read_part(value)) for order, value in points]
    promise = None
    if len(parts) > 4:
        promised_epsilon, promised_delta = map(Fraction, parts[4].split(":"))
        promise = Budget(promised_epsilon, promised_delta)
    return Spend(epsilon, Fraction(0) if delta is None else delta, rho, curve, promise)


def _read_part(text: str) -> Fraction | None:
    return None if text == "-" else Fraction(text)


def new_key() -> bytes:
    """Draw a key. It protects the log and adds no noise, so it does not come from ``noise/``."""
    return os.urandom(_BYTES)


def load_key(key: bytes | str | os.PathLike[str] | None, default: Path | None, *, create: bool) -> bytes:
    """Return the key, given as bytes or read from a file; a missing file is made if ``create`` allows it."""
    if isinstance(key, bytes):
        if len(key) < 16:
            raise bad_parameter("key", "at least 16 bytes", f"{len(key)} bytes", fix=Set(key="hospital.key"))
        return key
    location = key if key is not None else os.environ.get(KEY_FILE_VARIABLE)
    path = Path(location) if location is not None else default
    if path is None:
        raise TacitError(
            "ledger-key",
            "this ledger needs a key file, and none is named",
            why="the chain over its entries needs a key that is kept outside the store; the variable "
            f"{KEY_FILE_VARIABLE} can name its file",
            fix=Do("give-key-file", path="ledger.key"),
        )
    if not _exists(path):
        if not create:
            raise TacitError(
                "ledger-key",
                f"the ledger's key {path} is missing",
                why="without it, entries can be neither checked nor added",
                fix=Either(
                    Say(f"restore {path} from your backup"), Do("give-key-file", path="where/it/is.key")
                ),
            )
        _make(path)
    return _read(path)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:  # a name that is too long, a folder that nobody may enter
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> TacitError:
    return TacitError(
        "ledger-key",
        f"the key {path} cannot be read: {error.strerror}",
        fix=f"make {path} readable for yourself",
    )


def _make(path: Path) -> None:
    """Write a new key so that it appears complete or not at all; if two processes race, only one wins."""
    draft = path.with_name(f"{path.name}.{os.urandom(8).hex()}.new")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(handle, new_key().hex().encode() + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    except OSError as error:
        raise TacitError(
            "ledger-key",
            f"the ledger's key cannot be written to {path}: {error.strerror}",
            fix=Do("give-key-file", path="a/folder/you/may/write/ledger.key"),
        ) from None


def _read(path: Path) -> bytes:
    try:
        key = bytes.fromhex(path.read_text("ascii").strip())
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError:
        key = b""
    if len(key) < 16:
        raise TacitError(
            "ledger-key",
            f"{path} does not hold a ledger key",
            why="a key file holds at least 16 bytes in hexadecimal",
            fix=f"restore {path} from your backup",
        )
    return key
