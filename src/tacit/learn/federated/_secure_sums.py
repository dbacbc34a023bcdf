"""Secure sums: pairs of hospitals add and subtract the same secret numbers, modulo 2^64.

Each hospital makes a key for one round (X25519) and signs it with its own key, so that nobody can pose as it.
When it learns who takes part, it derives one stream of 64-bit numbers with each other member, bound to the
study, the round and the exact list of members. In the sum over all members the streams cancel; any part of it
is uniformly random to whoever lacks the keys.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code, Say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from numpy.typing import NDArray

    from tacit.core import JSON


_LENGTH = 32


class HospitalKey:
    """The secret key of a hospital (Ed25519); its public half stands in the study.

    Hospitals exchange their public keys before the study, by a way that the coordinator does not control.

    Examples
    --------
    >>> key = HospitalKey.generate()
    >>> len(key.public), key.public == HospitalKey(key.secret()).public
    (64, True)
    >>> signature = key.sign(b"hello")
    >>> is_signed(b"hello", signature, key.public), is_signed(b"other", signature, key.public)
    (True, False)
    """

    __slots__ = ("_key",)

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        content: object = secret
        if not isinstance(content, bytes) or len(secret) != _LENGTH:
            got = f"{len(content)} of them" if isinstance(content, bytes) else type(content).__name__
            raise bad_parameter("secret", f"{_LENGTH} bytes", got, fix=Code("HospitalKey.generate()"))
        self._key: Ed25519PrivateKey = Ed25519PrivateKey.from_private_bytes(secret)

    @classmethod
    def generate(cls) -> HospitalKey:
        """Make a new key, from the operating system's randomness."""
        return cls(os.urandom(_LENGTH))

    @property
    def public(self) -> str:
        """The public half, 64 hexadecimal signs: what the study names."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, words: bytes) -> bytes:
        """Return the signature of some bytes."""
        return self._key.sign(words)

    def secret(self) -> bytes:
        """Return the secret half; whoever has it can pose as this hospital."""
        return self._key.private_bytes_raw()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the secret key to a new file that only its owner can read."""
        target = Path(path)
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self.secret().hex() + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> HospitalKey:
        """Read a key from the file that `save` wrote."""
        try:
            return cls(bytes.fromhex(Path(path).read_text(encoding="ascii").strip()))
        except (OSError, ValueError, TacitError):
            raise TacitError(
                "bad-parameter",
                f"{Path(path).name} is not the key of a hospital",
                why="the file is missing, or it does not hold 64 hexadecimal signs",
                fix=Code('HospitalKey.generate().save("hospital.key")'),
            ) from None

    def __repr__(self) -> str:
        return f"HospitalKey(public={self.public[:12]}...)"

    def __reduce__(self) -> str:
        raise TypeError("a secret key is not pickled; save it to a file")


def is_signed(words: bytes, signature: bytes, public: str) -> bool:
    """Whether the owner of a public key signed these bytes."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(signature, words)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


_KEY, _SIGNATURE = 32, 64


@dataclass(frozen=True, slots=True)
class SignedKey:
    """The public key of one hospital for one round, signed by the hospital."""

    name: str
    key: bytes
    signature: bytes

    def document(self) -> list[JSON]:
        """Return it as JSON."""
        return [self.name, self.key.hex(), self.signature.hex()]

    @classmethod
    def read(cls, document: object) -> SignedKey:
        """Read it back; raises ``ValueError`` where it is none."""
        if not isinstance(document, list) or len(document) != 3:
            raise ValueError("not a signed key")
        name, key, signature = document
        if not all(isinstance(part, str) for part in document):
            raise ValueError("not a signed key")
        signed = cls(name, bytes.fromhex(key), bytes.fromhex(signature))
        if len(signed.key) != _KEY or len(signed.signature) != _SIGNATURE:
            raise ValueError("not a signed key")
        return signed

    def is_genuine(self, study: str, number: int, public: str) -> bool:
        """Whether the hospital with this public identity signed this key for this round of this study."""
        return is_signed(_signed_words(study, number, self.name, self.key), self.signature, public)


class RoundKey:
    """The secret key of one hospital for one round; it lives in memory and masks one reply.

    Examples
    --------
    >>> from tacit.learn.federated import HospitalKey
    >>> north, south = HospitalKey.generate(), HospitalKey.generate()
    >>> keys = {"north": RoundKey("ab", 1, "north", north), "south": RoundKey("ab", 1, "south", south)}
    >>> members = [keys[name].signed for name in sorted(keys)]
    >>> masks = [mask_for(key, members, study="ab", number=1, size=4) for key in keys.values()]
    >>> (masks[0] + masks[1]).tolist()
    [0, 0, 0, 0]
    """

    __slots__ = ("_key", "signed")

    def __init__(self, study: str, number: int, name: str, identity: HospitalKey) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self._key: X25519PrivateKey = X25519PrivateKey.generate()
        public = self._key.public_key().public_bytes_raw()
        self.signed = SignedKey(name, public, identity.sign(_signed_words(study, number, name, public)))

    def stream(self, other: SignedKey, about: bytes, size: int) -> NDArray[np.uint64]:
        """Return the secret numbers that this hospital shares with another one."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        secret = self._key.exchange(X25519PublicKey.from_public_bytes(other.key))
        pair = json.dumps(sorted([self.signed.name, other.name])).encode()
        seed = HKDF(algorithm=SHA256(), length=32, salt=None, info=about + pair).derive(secret)
        cipher = Cipher(algorithms.ChaCha20(seed, bytes(16)), mode=None).encryptor()
        return np.frombuffer(cipher.update(bytes(8 * size)), dtype="<u8").astype(np.uint64)

    def __reduce__(self) -> str:
        raise TypeError("a secret key is not pickled")


def mask_for(
    round_key: RoundKey, members: Sequence[SignedKey], *, study: str, number: int, size: int
) -> NDArray[np.uint64]:
    """Return the mask of one member: streams with later members added, with earlier ones subtracted."""
    member_list = json.dumps([one.document() for one in members]).encode()
    about = b"tacit/federated/mask/1" + hashlib.sha256(_words(study, number) + member_list).digest()
    mask = np.zeros(size, dtype=np.uint64)
    for other in members:
        if other.name == round_key.signed.name:
            continue
        try:
            stream = round_key.stream(other, about, size)
        except ValueError:  # the point of a key that makes every secret the same
            raise _refused(f"the key of {other.name} keeps no secret") from None
        mask = mask + stream if round_key.signed.name < other.name else mask - stream
    return mask


def read_members(
    documents: object,
    *,
    own_key: SignedKey,
    study: str,
    number: int,
    identities: Mapping[str, str],
    min_members: int,
) -> tuple[SignedKey, ...]:
    """Read the list of a round's members, or refuse it before anything is masked.

    The list must be sorted and name each hospital of the study at most once, with a key that the hospital
    signed for this very round; it must hold this hospital's own key, and at least ``min_members`` members.
    """
    if not isinstance(documents, list) or len(documents) > len(identities):
        raise _refused("it is not a list of hospitals of the study")
    try:
        members = tuple(SignedKey.read(member) for member in documents)
    except (ValueError, TypeError):
        raise _refused("a key or a signature in it cannot be read") from None
    names = [member.name for member in members]
    if names != sorted(set(names)) or not set(names) <= set(identities):
        raise _refused("it names a hospital twice, or one that is not in the study")
    if len(members) < min_members:
        raise _refused(f"it names {len(members)} hospitals, and the noise needs at least {min_members}")
    if own_key not in members:
        raise _refused("it does not hold the key that this hospital made for this round")
    for member in members:
        if member != own_key and not member.is_genuine(study, number, identities[member.name]):
            raise _refused(f"{member.name} did not sign its key for this round")
    return members


def _refused(why: str) -> TacitError:
    return TacitError(
        "members-refused",
        "this hospital does not mask its sum for this list of members",
        why=why,
        fix=Say("list each hospital that is ready once, with the key that it sent for this round"),
    )


def _words(study: str, number: int) -> bytes:
    return json.dumps([study, number]).encode()


def _signed_words(study: str, number: int, name: str, key: bytes) -> bytes:
    """Return what a hospital signs: its name and its key, for one round of one study."""
    return b"tacit/federated/key/1" + json.dumps([study, number, name, key.hex()]).encode()
