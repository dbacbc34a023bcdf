"""The sampling secret of mechanisms: it decides, for each unit by its name, whether it is in a sample."""

from __future__ import annotations

from tacit import noise

_WORDS, _BITS = 4, 62


def sampling_secret() -> str:
    """Draw a fresh uniform secret of 248 bits, as text, for one Poisson sample.

    A unit is in the sample if the SHA-256 of this secret and its name starts with a number below a threshold.
    To whoever does not know the secret, these numbers are independent and uniform (SHA-256 with a secret
    prefix of fixed length as a pseudorandom function, an assumption of the same kind as the one about the
    operating system's generator). Each release draws its own secret, and it never leaves the process:
    amplification by sampling holds only while nobody knows who is in the sample.

    Examples
    --------
    >>> len(sampling_secret())
    64
    """
    return "".join(f"{int(noise.uniform_below(2**_BITS)):016x}" for _ in range(_WORDS))
