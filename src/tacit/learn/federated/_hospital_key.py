"""The key of a hospital: with it, it signs the keys of each round, so that nobody can pose as it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import TacitError, bad_parameter
from tacit.fixes import Code

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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

        given: object = secret
        if not isinstance(given, bytes) or len(secret) != _LENGTH:
            raise bad_parameter("secret", f"{_LENGTH} bytes", type(secret))
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
        place = Path(path)
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
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
